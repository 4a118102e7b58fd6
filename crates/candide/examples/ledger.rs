//! A ledger: accounts, a journal of what was moved between them, transfers from several threads,
//! and an audit that sees the same total however many transfers are under way.
//!
//! ```sh
//! cargo run --release -p candide --example ledger
//! ```

use candide::{Abort, Database, Prefix, Record, Session, Table, Tx};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

const ACCOUNTS: u32 = 64;
const OPENING_CENTS: i64 = 1_000;
const THREADS: u64 = 4;
const TRANSFERS_PER_THREAD: u32 = 10_000;

/// An account. Each column group is a unit of conflict: a read of the owner is never disturbed
/// by a transfer, and an audit, which reads balances only, is not disturbed by the numbering of
/// journal entries.
#[derive(Record, Clone, Debug)]
#[record(ordered)]
struct Account {
    #[key]
    id: u32,
    owner: String,
    #[group(balance)]
    cents: i64,
    #[group(journal)]
    entries: u32,
}

/// A line of the journal. The key is `(account, number)`, so one account's lines lie side by side
/// in their order.
#[derive(Record, Clone, Copy, Debug)]
#[record(ordered)]
struct Entry {
    #[key]
    account: u32,
    #[key]
    number: u32,
    counterparty: u32,
    cents: i64,
}

/// Why a transfer did not happen.
#[derive(Debug, Clone, Copy, PartialEq)]
enum TransferError {
    InsufficientFunds,
    NoSuchAccount,
    /// Anything else. Conflicts are repeated by `run` and never get here.
    Engine(Abort),
}

impl From<Abort> for TransferError {
    fn from(abort: Abort) -> TransferError {
        match abort {
            Abort::Guard => TransferError::InsufficientFunds,
            Abort::NotFound => TransferError::NoSuchAccount,
            other => TransferError::Engine(other),
        }
    }
}

impl fmt::Display for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TransferError::InsufficientFunds => f.write_str("insufficient funds"),
            TransferError::NoSuchAccount => f.write_str("no such account"),
            TransferError::Engine(abort) => abort.fmt(f),
        }
    }
}

impl std::error::Error for TransferError {}

/// The tables. Handles are cheap to clone and shared by all threads.
struct Ledger {
    accounts: Table<Account>,
    journal: Table<Entry>,
}

impl Ledger {
    fn open(db: &Database) -> Result<Ledger, candide::Error> {
        Ok(Ledger { accounts: db.table("accounts")?, journal: db.table("journal")? })
    }

    /// Moves money and writes two journal entries, within the caller's transaction.
    fn transfer(&self, tx: &Tx<'_>, from: u32, to: u32, cents: i64) -> Result<(), TransferError> {
        // Updates of the balances read nothing: they are applied when the transaction commits, and
        // the guard is checked then.
        self.accounts.update(tx, from, Account::CENTS.sub(cents).at_least(0))?;
        self.accounts.update(tx, to, Account::CENTS.add(cents))?;
        self.enter(tx, from, to, -cents)?;
        self.enter(tx, to, from, cents)?;
        Ok(())
    }

    /// Appends to an account's journal. The number has to be known now, so this reads what it
    /// changes.
    fn enter(&self, tx: &Tx<'_>, account: u32, counterparty: u32, cents: i64) -> Result<(), Abort> {
        let number = self.accounts.modify(tx, account, Account::ENTRIES, |entries| {
            *entries += 1;
            *entries
        })?;
        self.journal.insert(tx, Entry { account, number, counterparty, cents })
    }

    /// The sum of all balances.
    fn total(&self, tx: &Tx<'_>) -> Result<i64, Abort> {
        self.accounts.sum(tx, Account::CENTS)
    }

    /// The last entries of an account, the newest first.
    fn statement(
        &self,
        tx: &Tx<'_>,
        account: u32,
        limit: usize,
    ) -> Result<Vec<(u32, u32, i64)>, Abort> {
        let entries = self.journal.scan_rev(
            tx,
            Prefix((account,)),
            (Entry::NUMBER, Entry::COUNTERPARTY, Entry::CENTS),
        );
        entries.take(limit).map(|row| Ok(row?.1)).collect()
    }
}

/// What came of one thread's transfers.
#[derive(Default)]
struct Tally {
    done: u32,
    refused: u32,
}

/// A teller: makes transfers with a session of its own.
fn work(ledger: &Ledger, session: &mut Session, seed: u64) -> Result<Tally, TransferError> {
    let mut tally = Tally::default();
    let mut random = seed;
    let mut below = |bound: u32| {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as u32 % bound
    };
    for _ in 0..TRANSFERS_PER_THREAD {
        let from = below(ACCOUNTS);
        let to = (from + 1 + below(ACCOUNTS - 1)) % ACCOUNTS;
        let cents = i64::from(1 + below(400));
        match session.try_run(|tx| ledger.transfer(tx, from, to, cents)) {
            Ok(()) => tally.done += 1,
            Err(TransferError::InsufficientFunds) => tally.refused += 1,
            Err(other) => return Err(other),
        }
    }
    Ok(tally)
}

/// Audits repeatedly, at least once, until `stop`; gives the number of audits.
fn audit(ledger: &Ledger, session: &mut Session, stop: &AtomicBool) -> Result<u32, Abort> {
    for audits in 1.. {
        let total = session.run(|tx| ledger.total(tx))?;
        assert_eq!(
            total,
            i64::from(ACCOUNTS) * OPENING_CENTS,
            "an audit sees all of a transfer or nothing"
        );
        if stop.load(Ordering::Relaxed) {
            return Ok(audits);
        }
    }
    unreachable!("the loop ends only by returning")
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let db = Database::new();
    let ledger = &Ledger::open(&db)?;
    let owners = ["Candide", "Cunegonde", "Pangloss", "Cacambo"].map(str::to_string);
    for (id, owner) in (0..ACCOUNTS).zip(owners.into_iter().cycle()) {
        let account = Account { id, owner, cents: OPENING_CENTS, entries: 0 };
        db.run(|tx| ledger.accounts.insert(tx, account.clone()))?;
    }

    let stop = &AtomicBool::new(false);
    let (tally, audits) = std::thread::scope(|scope| {
        let mut tellers = Vec::new();
        for seed in 1..=THREADS {
            let mut session = db.session()?;
            tellers.push(scope.spawn(move || work(ledger, &mut session, seed)));
        }
        let mut session = db.session()?;
        let auditor = scope.spawn(move || audit(ledger, &mut session, stop));

        let ends: Vec<_> = tellers.into_iter().map(|teller| teller.join()).collect();
        stop.store(true, Ordering::Relaxed);
        let mut sum = Tally::default();
        for end in ends {
            let tally = end.expect("a teller does not panic")?;
            sum.done += tally.done;
            sum.refused += tally.refused;
        }
        let audits = auditor.join().expect("every audit sees the same total")?;
        Ok::<_, Box<dyn std::error::Error>>((sum, audits))
    })?;
    println!(
        "{} transfers, {} refused for insufficient funds, {audits} audits meanwhile",
        tally.done, tally.refused
    );
    println!("{} attempts met a conflict and were repeated", db.stats().retries);
    assert_eq!(tally.done + tally.refused, THREADS as u32 * TRANSFERS_PER_THREAD);
    assert!(tally.refused > 0, "amounts are large enough for some accounts to run dry");

    // An error of the closure leaves nothing behind, however far the closure had come.
    assert_eq!(
        db.try_run(|tx| ledger.transfer(tx, 0, 1, i64::MAX)),
        Err(TransferError::InsufficientFunds)
    );
    assert_eq!(
        db.try_run(|tx| ledger.transfer(tx, 0, ACCOUNTS, 0)),
        Err(TransferError::NoSuchAccount)
    );

    // Every balance is what the journal says, and the journal has no gaps.
    db.run(|tx| {
        for row in ledger.accounts.scan(tx, .., (Account::ID, Account::CENTS, Account::ENTRIES)) {
            let (_, (id, cents, entries)) = row?;
            let lines = ledger.journal.scan(tx, Prefix((id,)), (Entry::NUMBER, Entry::CENTS));
            let lines = lines.map(|row| Ok(row?.1)).collect::<Result<Vec<_>, Abort>>()?;
            assert_eq!(
                OPENING_CENTS + lines.iter().map(|line| line.1).sum::<i64>(),
                cents,
                "account {id}"
            );
            assert!(cents >= 0 && lines.iter().map(|line| line.0).eq(1..=entries), "account {id}");
        }
        Ok(())
    })?;

    let ((owner, cents), lines) = db.run(|tx| {
        let account = ledger.accounts.read(tx, 7, (Account::OWNER, Account::CENTS))?;
        Ok((account, ledger.statement(tx, 7, 5)?))
    })?;
    println!("account 7 of {owner} holds {cents} cents; the last entries:");
    for (number, counterparty, cents) in &lines {
        println!("  {number:>5}  {cents:>+5} cents  account {counterparty}");
    }
    assert!(lines.len() == 5 && lines.is_sorted_by(|newer, older| newer.0 > older.0));
    Ok(())
}
