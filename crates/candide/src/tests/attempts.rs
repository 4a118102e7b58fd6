//! Tests of how often transactions try again while others hold what they need. The holder of a row
//! stops until the others have slept for it, so that nothing depends on the time that it takes.

use super::rows::Item;
use crate::engine::Protocol;
use crate::experiments::Factor;
use crate::sync::{AtomicU64, Duration, Ordering};
use crate::{Abort, Database, Table, Tx};
use std::sync::Barrier;

/// The most attempts of any transaction here.
const ATTEMPTS_MAX: u64 = 40;
/// How often each transaction sleeps while the holder of its row has stopped.
const SLEEPS: u64 = 4;

/// What the transactions do with the two rows of a script.
#[derive(Debug, Clone, Copy)]
enum Script {
    /// All rows are read for update; the holder has one of two when it stops.
    ForUpdateHalf,
    /// All rows are read for update; the holder has both.
    ForUpdate,
    /// All rows are modified; the holder has staged both.
    Modify,
    /// The holder reads for update, the others update without reading.
    Blind,
}

const SCRIPTS: [Script; 4] =
    [Script::ForUpdateHalf, Script::ForUpdate, Script::Modify, Script::Blind];

impl Script {
    /// Uses row `key` as the holder, or as one of the others.
    fn step<P: Protocol>(
        self,
        table: &Table<Item, P>,
        tx: &Tx<'_, P>,
        key: u64,
        holds: bool,
    ) -> Result<(), Abort> {
        match self {
            Script::Modify => table.modify(tx, &key, Item::COUNT, |count| *count += 1),
            Script::Blind if !holds => table.update(tx, &key, Item::COUNT.add(1)),
            _ => {
                table.read_for_update(tx, &key, Item::COUNT)?;
                table.update(tx, &key, Item::COUNT.add(1))
            }
        }
    }

    /// Returns the number of rows that the holder has when it stops.
    fn held(self) -> u64 {
        if matches!(self, Script::ForUpdateHalf) { 1 } else { 2 }
    }
}

/// Runs a holder that stops, and `count` transactions that want its rows in the opposite order.
/// Asserts that each transaction has made at most [`ATTEMPTS_MAX`] attempts.
fn meet_a_holder<P: Protocol>(
    db: &Database<P>,
    table: &Table<Item, P>,
    script: Script,
    count: u64,
) {
    let attempts: Vec<AtomicU64> = (0..=count).map(|_| AtomicU64::new(0)).collect();
    let most = || attempts.iter().map(|made| made.load(Ordering::Relaxed)).max().unwrap_or(0);
    let (held, entered) = (Barrier::new(count as usize + 1), || db.inner.engine.parking.entered());
    let ended = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let (attempts, held, ended) = (&attempts, &held, &ended);
        let (most, entered) = (&most, &entered);
        let run = move |number: usize, keys: [u64; 2], stop: &dyn Fn(u64)| {
            let mut session = db.session().unwrap();
            let result = session.run(|tx| {
                attempts[number].store(tx.attempt_number().into(), Ordering::Relaxed);
                for (key, done) in keys.into_iter().zip(1..) {
                    script.step(table, tx, key, number == 0)?;
                    if tx.attempt_number() == 1 {
                        stop(done);
                    }
                }
                Ok(())
            });
            assert_eq!(result, Ok(()), "{script:?}");
        };
        let stop = move |done| {
            if done == script.held() {
                let enough = entered() + SLEEPS * count;
                held.wait();
                // Transactions that are not kept out commit, and sleep for nothing.
                let all_done = || ended.load(Ordering::Relaxed) == count;
                while entered() < enough && most() <= ATTEMPTS_MAX && !all_done() {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        };
        scope.spawn(move || run(0, [0, 1], &stop));
        for number in 1..=count as usize {
            scope.spawn(move || {
                held.wait();
                run(number, [1, 0], &|_| ());
                ended.fetch_add(1, Ordering::Relaxed);
            });
        }
    });
    let name = super::properties::<P>().name;
    let made: Vec<u64> = attempts.iter().map(|made| made.load(Ordering::Relaxed)).collect();
    assert!(most() <= ATTEMPTS_MAX, "{name}, {script:?}, {count} beside: {made:?} attempts");
}

fn database<P: Protocol>(rows: u64, factors: Option<Factor>) -> (Database<P>, Table<Item, P>) {
    let db = Database::<P>::builder().timestamp_splitting(false).factors(factors).build().unwrap();
    let table = db.table::<Item>("rows").unwrap();
    db.run(|tx| (0..rows).try_for_each(|id| table.insert(tx, Item::new(id, 0)))).unwrap();
    (db, table)
}

protocol_tests!(overlapping: a_transaction_that_meets_a_stopped_holder_sleeps);
fn a_transaction_that_meets_a_stopped_holder_sleeps<P: Protocol>() {
    for (script, factor) in SCRIPTS
        .into_iter()
        .flat_map(|script| [None, Some(Factor::NoBackoff)].map(|factor| (script, factor)))
    {
        let (db, table) = database::<P>(2, factor);
        meet_a_holder(&db, &table, script, 1);
    }
}

protocol_tests!(overlapping: sixteen_transactions_that_meet_a_stopped_holder_sleep);
fn sixteen_transactions_that_meet_a_stopped_holder_sleep<P: Protocol>() {
    for script in SCRIPTS {
        let (db, table) = database::<P>(2, None);
        meet_a_holder(&db, &table, script, 16);
    }
}
