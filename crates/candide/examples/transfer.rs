//! Transfers between a few busy accounts, in two forms. The eager form reads the balances, and runs
//! again if another transfer has changed one of them meanwhile. The deferred form reads nothing:
//! steps compute the balances when the transaction commits, and pass the amount from one to the
//! other. Both return what was paid, and both keep the sum.
//!
//! ```sh
//! cargo run --release -p candide --example transfer
//! ```

use candide::report::Stats;
use candide::{Abort, Database, Error, Later, Record, Session, Table};
use std::thread;

const ACCOUNTS: u64 = 4;
const THREADS: u64 = 4;
const TRANSFERS: u64 = 20_000;
const CENTS: i64 = 1_000;

#[derive(Record, Clone, Copy)]
struct Account {
    #[key]
    id: u64,
    cents: i64,
}

/// A transfer of `amount`, or of what there is, between two accounts.
#[derive(Clone, Copy)]
struct Transfer {
    from: u64,
    to: u64,
    amount: i64,
}

type Run = fn(&mut Session, &Table<Account>, Transfer) -> Result<i64, Abort>;

fn eager(
    session: &mut Session,
    accounts: &Table<Account>,
    Transfer { from, to, amount }: Transfer,
) -> Result<i64, Abort> {
    session.run(|tx| {
        let cents = accounts.read(tx, from, Account::CENTS)?;
        let paid = amount.min(cents);
        accounts.update(tx, from, Account::CENTS.set(cents - paid))?;
        let cents = accounts.read(tx, to, Account::CENTS)?;
        accounts.update(tx, to, Account::CENTS.set(cents + paid))?;
        Ok(paid)
    })
}

fn deferred(
    session: &mut Session,
    accounts: &Table<Account>,
    Transfer { from, to, amount }: Transfer,
) -> Result<i64, Abort> {
    session.run_deferred(|tx| {
        let paid: Later<i64> = accounts.defer(tx, from, Account::CENTS, (), move |cents, ()| {
            let paid = amount.min(*cents);
            *cents -= paid;
            paid
        })?;
        accounts.defer(tx, to, Account::CENTS, &paid, |cents, paid| *cents += paid)?;
        Ok(paid)
    })
}

/// Makes all transfers of a thread. Returns what has left the first account, less what has come in,
/// and the session's counts.
fn make_transfers(
    db: &Database,
    accounts: &Table<Account>,
    thread: u64,
    run: Run,
) -> Result<(i64, Stats), Error> {
    let mut session = db.session()?;
    let mut lost = 0;
    for number in 0..TRANSFERS {
        let (from, to) = ((number + thread) % ACCOUNTS, (number / 3 + 2 * thread) % ACCOUNTS);
        let amount = (number * 7 % 300) as i64;
        let paid = run(&mut session, accounts, Transfer { from, to, amount })?;
        lost += if from == 0 { paid } else { 0 } - if to == 0 { paid } else { 0 };
    }
    Ok((lost, session.stats()))
}

fn check(name: &str, run: Run) -> Result<(), Error> {
    let db = Database::new();
    let accounts = db.table::<Account>("accounts")?;
    db.run(|tx| accounts.insert_many(tx, (0..ACCOUNTS).map(|id| Account { id, cents: CENTS })))?;
    let ended: Vec<_> = thread::scope(|scope| {
        let threads = (0..THREADS).map(|thread| {
            let (db, accounts) = (&db, &accounts);
            scope.spawn(move || make_transfers(db, accounts, thread, run))
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
    });
    let (mut lost, mut read, mut repeated) = (0, 0, 0);
    for ended in ended {
        let (lost_there, stats) = ended?;
        (lost, read, repeated) =
            (lost + lost_there, read + stats.read_set, repeated + stats.retries);
    }
    println!("{name}: {read} balances read, {repeated} transfers repeated");
    let left = db.run(|tx| {
        (0..ACCOUNTS).map(|id| accounts.read(tx, id, Account::CENTS)).collect::<Result<Vec<_>, _>>()
    })?;
    assert_eq!(left.iter().sum::<i64>(), ACCOUNTS as i64 * CENTS, "nothing is lost");
    assert!(left.iter().all(|&cents| cents >= 0), "no account is overdrawn");
    assert_eq!(left[0], CENTS - lost, "what was returned is what was paid");
    Ok(())
}

fn main() -> Result<(), Error> {
    check("eager", eager)?;
    check("deferred", deferred)
}
