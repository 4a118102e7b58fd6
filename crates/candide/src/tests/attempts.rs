//! Tests of the number of attempts of transactions while other transactions hold their rows. The
//! holder of a row stops until the others have slept for it, so that nothing depends on the time
//! that it takes.

use super::properties;
use super::rows::Item;
use super::threads::spawn;
use crate::engine::Protocol;
use crate::experiments::Factor;
use crate::policy::by_policies;
use crate::policy::{MoccOptions, Policies, Policy};
use crate::protocols::Occ;
use crate::sync::{AtomicU64, Duration, Ordering, Point, with_hook};
use crate::{Abort, Database, Table, Tx};
use std::sync::{Arc, Barrier};

/// The largest number of attempts of any transaction of these tests.
const ATTEMPTS_MAX: u64 = 40;
/// The number of times that each transaction sleeps while the holder of its row has stopped.
const SLEEPS: u64 = 4;

/// The operations of the transactions on two rows, and the place where the holder stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Script {
    /// All transactions read for update; the holder stops when it holds one of the two rows.
    ForUpdateHalf,
    /// All transactions read for update; the holder stops when it holds both rows.
    ForUpdate,
    /// All transactions modify; the holder stops when it has staged both rows.
    Modify,
    /// The holder reads for update, and stops when it holds both rows; the others update without
    /// reading.
    Blind,
    /// All transactions modify; the holder stops in its commit, when it has locked both rows.
    ModifyCommitted,
    /// All transactions update without reading; the holder stops in its commit, when it has locked
    /// both rows.
    BlindCommitted,
}

const SCRIPTS: [Script; 6] = [
    Script::ForUpdateHalf,
    Script::ForUpdate,
    Script::Modify,
    Script::Blind,
    Script::ModifyCommitted,
    Script::BlindCommitted,
];

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
            Script::Modify | Script::ModifyCommitted => {
                table.modify(tx, &key, Item::COUNT, |count| *count += 1)
            }
            Script::BlindCommitted => table.update(tx, &key, Item::COUNT.add(1)),
            Script::Blind if !holds => table.update(tx, &key, Item::COUNT.add(1)),
            Script::ForUpdateHalf | Script::ForUpdate | Script::Blind => {
                table.read_for_update(tx, &key, Item::COUNT)?;
                table.update(tx, &key, Item::COUNT.add(1))
            }
        }
    }

    /// Returns the number of rows after which the closure of the holder stops; `None` if the holder
    /// stops in its commit.
    fn rows(self) -> Option<u64> {
        match self {
            Script::ForUpdateHalf => Some(1),
            Script::ForUpdate | Script::Modify | Script::Blind => Some(2),
            Script::ModifyCommitted | Script::BlindCommitted => None,
        }
    }
}

/// The data that the transactions of a meeting share.
struct Meeting {
    /// The number of attempts of each transaction; the holder is the first.
    attempts: Vec<AtomicU64>,
    /// The number of transactions beside the holder that have ended.
    ended: AtomicU64,
    /// The holder has stopped.
    stopped: Barrier,
}

impl Meeting {
    fn most(&self) -> u64 {
        self.attempts.iter().map(|made| made.load(Ordering::Relaxed)).max().unwrap_or(0)
    }

    /// Stops the holder until the others have slept for it, have tried too often, or have ended,
    /// since transactions that are not kept out sleep for nothing.
    fn stop<P: Protocol>(&self, script: Script, db: &Database<P>) {
        let (others, parking) = (self.attempts.len() as u64 - 1, &db.inner.engine.parking);
        // In a chain behind the holder, each sleeps once, for as long as it takes.
        let is_chain =
            script == Script::BlindCommitted && db.inner.engine.properties.name == "pipelined";
        let enough = parking.entered() + if is_chain { 1 } else { SLEEPS } * others;
        self.stopped.wait();
        while parking.entered() < enough
            && self.most() <= ATTEMPTS_MAX
            && self.ended.load(Ordering::Relaxed) < others
        {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Runs a holder that stops, and `count` transactions that want its rows in the opposite order.
/// Asserts that each transaction has made at most [`ATTEMPTS_MAX`] attempts.
fn meet_a_holder<P: Protocol>(script: Script, factor: Option<Factor>, count: u64) {
    let db = Database::<P>::builder().timestamp_splitting(false).factors(factor).build().unwrap();
    let table = db.table::<Item>("rows").unwrap();
    db.run(|tx| (0..2).try_for_each(|id| table.insert(tx, Item::new(id, 0)))).unwrap();
    let meeting = Arc::new(Meeting {
        attempts: (0..=count).map(|_| AtomicU64::new(0)).collect(),
        ended: AtomicU64::new(0),
        stopped: Barrier::new(count as usize + 1),
    });
    std::thread::scope(|scope| {
        let (db, table, meeting) = (&db, &table, &meeting);
        let run = move |number: usize, keys: [u64; 2]| {
            let result = db.session().unwrap().run(|tx| {
                meeting.attempts[number].store(tx.attempt_number().into(), Ordering::Relaxed);
                for (key, done) in keys.into_iter().zip(1..) {
                    script.step(table, tx, key, number == 0)?;
                    if number == 0 && tx.attempt_number() == 1 && script.rows() == Some(done) {
                        meeting.stop(script, db);
                    }
                }
                Ok(())
            });
            assert_eq!(result, Ok(()), "{script:?}");
        };
        spawn(scope, move || {
            if script.rows().is_some() {
                return run(0, [0, 1]);
            }
            let (mut stops, at, here) = (true, db.clone(), meeting.clone());
            let hook = move |point| {
                if point == Point::Locked && std::mem::take(&mut stops) {
                    here.stop(script, &at);
                }
            };
            with_hook(hook, || run(0, [0, 1]));
        });
        for number in 1..=count as usize {
            spawn(scope, move || {
                meeting.stopped.wait();
                run(number, [1, 0]);
                meeting.ended.fetch_add(1, Ordering::Relaxed);
            });
        }
    });
    let made: Vec<u64> = meeting.attempts.iter().map(|made| made.load(Ordering::Relaxed)).collect();
    let name = properties::<P>().name;
    assert!(meeting.most() <= ATTEMPTS_MAX, "{name}, {script:?}, {factor:?}: {made:?} attempts");
}

protocol_tests!(overlapping: a_transaction_that_meets_a_stopped_holder_sleeps);
fn a_transaction_that_meets_a_stopped_holder_sleeps<P: Protocol>() {
    for script in SCRIPTS {
        meet_a_holder::<P>(script, None, 1);
        meet_a_holder::<P>(script, Some(Factor::NoBackoff), 1);
    }
}

protocol_tests!(overlapping: sixteen_transactions_that_meet_a_stopped_holder_sleep);
fn sixteen_transactions_that_meet_a_stopped_holder_sleep<P: Protocol>() {
    for script in SCRIPTS {
        meet_a_holder::<P>(script, None, 16);
    }
}

/// The lists of these policies cannot prevent each conflict: a row that a commit has locked is left
/// out of them.
#[test]
fn many_transactions_that_learn_and_meet_a_stopped_holder_sleep() {
    for (policy, queues) in [Policy::Mocc, Policy::Hybrid]
        .into_iter()
        .flat_map(|policy| [(policy, false), (policy, true)])
    {
        let policies = Policies::of(policy).mocc(MoccOptions::new().queue_locks(queues));
        by_policies(policies, || {
            SCRIPTS.into_iter().for_each(|script| meet_a_holder::<Occ>(script, None, 64));
        });
    }
}
