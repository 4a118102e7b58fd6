//! Which thread drops values, when, and how many of them at once.

use super::{Ledger, Values, scene, settle, table};
use crate::engine::{Protocol, VALUES_AT_ONCE};
use crate::epoch::Epochs;
use crate::sync::{AtomicBool, Ordering};
use crate::tests::rows::Item;
use crate::tests::waiting::eventually;
use crate::{Abort, Database, Occ, RunOptions, Table};
use std::cell::Cell;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// A database whose epochs the test moves, with values, and an item 1 that counts.
struct Stage<P: Protocol> {
    db: Arc<Database<P>>,
    epochs: Arc<Epochs>,
    values: Values<P>,
    items: Table<Item, P>,
    ledger: Ledger,
}

impl<P: Protocol> Stage<P> {
    fn new() -> Stage<P> {
        let db = Arc::new(Database::<P>::builder().manual_epochs(1).build().unwrap());
        let epochs = db.inner.engine.epochs.clone();
        let (values, items) = (table(&db), db.table::<Item>("items").unwrap());
        db.run(|tx| items.insert(tx, Item::new(1, 0))).unwrap();
        Stage { db, epochs, values, items, ledger: Ledger::default() }
    }

    /// Lets epochs pass, so that all garbage of transactions that have ended is due.
    fn pass(&self) {
        (0..4).for_each(|_| self.epochs.pass());
    }
}

protocol_tests!(concurrent: a_session_that_sleeps_leaves_its_values_to_others);
fn a_session_that_sleeps_leaves_its_values_to_others<P: Protocol>() {
    let stage = Stage::<P>::new();
    let Stage { db, values, items, ledger, .. } = &stage;
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let deadline = Instant::now() + Duration::from_secs(60);
            db.with(RunOptions::new().deadline(deadline)).run(|tx| {
                values.put(tx, 1, ledger.probe())?;
                tx.check(items.read(tx, 1, Item::COUNT)? == 1)
            })
        });
        eventually("the drop of the value of the attempt that waits", || {
            stage.pass();
            db.run(|_| Ok(())).unwrap();
            ledger.made() > 0 && !ledger.is_alive(0)
        });
        db.run(|tx| items.update(tx, 1, Item::COUNT.set(1))).unwrap();
        assert_eq!(waiter.join().unwrap(), Ok(()), "{}", P::NAME);
    });
}

protocol_tests!(overlapping: no_value_is_dropped_inside_another_transaction_of_the_thread);
fn no_value_is_dropped_inside_another_transaction_of_the_thread<P: Protocol>() {
    let stage = Stage::<P>::new();
    let Stage { db, values, items, ledger, .. } = &stage;
    let results: Arc<Mutex<Vec<Result<(), Abort>>>> = Arc::default();
    let counting = || {
        let (db, results) = (Arc::downgrade(db), results.clone());
        ledger.probe_with(move || {
            let Some(db) = db.upgrade() else { return };
            let items = db.table::<Item>("items").unwrap();
            results.lock().unwrap().push(db.run(|tx| items.update(tx, 1, Item::COUNT.add(1))));
        })
    };
    let mut session = db.session().unwrap();
    db.run(|tx| values.put(tx, 1, counting())).unwrap();
    db.run(|tx| values.put(tx, 1, counting())).unwrap();
    stage.pass();
    let alive = ledger.alive().len();
    session
        .run(|tx| {
            items.get_for_update(tx, 1, Item::COUNT)?;
            db.run(|_| Ok(()))?;
            drop(db.session().unwrap());
            assert_eq!(ledger.alive().len(), alive, "{}: inside of a session", P::NAME);
            Ok(())
        })
        .unwrap();
    for _ in 0..3 {
        stage.pass();
        db.run(|_| Ok(())).unwrap();
    }
    assert_eq!(ledger.alive().len(), 1, "{}", P::NAME);
    // The other way round: the session of the thread is in use.
    session.run(|tx| values.put(tx, 1, counting())).unwrap();
    session.run(|tx| values.put(tx, 1, counting())).unwrap();
    stage.pass();
    let alive = ledger.alive().len();
    db.run(|tx| {
        items.get_for_update(tx, 1, Item::COUNT)?;
        session.run(|_| Ok(()))?;
        assert_eq!(ledger.alive().len(), alive, "{}: inside of `Database::run`", P::NAME);
        Ok(())
    })
    .unwrap();
    for _ in 0..3 {
        stage.pass();
        session.run(|_| Ok(())).unwrap();
    }
    assert_eq!(ledger.alive().len(), 1, "{}", P::NAME);
    assert_eq!(*results.lock().unwrap(), vec![Ok(()); 3], "{}", P::NAME);
}

protocol_tests!(concurrent: drops_that_run_transactions_are_not_nested);
/// The drop of each value replaces a value, and then runs transactions that collect it.
fn drops_that_run_transactions_are_not_nested<P: Protocol>() {
    thread_local! {
        static DEPTHS: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
    }
    fn chained<P: Protocol>(stage: &Arc<Stage<P>>, left: u32) -> super::Probe {
        let stage_again = Arc::downgrade(stage);
        stage.ledger.probe_with(move || {
            let Some(stage) = stage_again.upgrade() else { return };
            let (depth, deepest) = DEPTHS.get();
            DEPTHS.set((depth + 1, deepest.max(depth + 1)));
            if left > 0 {
                stage.db.run(|tx| stage.values.put(tx, 1, chained(&stage, left - 1))).unwrap();
            }
            // The first transaction takes over what the session has left, the second one drops it.
            for _ in 0..2 {
                stage.pass();
                stage.db.run(|_| Ok(())).unwrap();
            }
            DEPTHS.set((depth, DEPTHS.get().1));
        })
    }
    let stage = Arc::new(Stage::<P>::new());
    DEPTHS.set((0, 0));
    for _ in 0..2 {
        stage.db.run(|tx| stage.values.put(tx, 1, chained(&stage, 5))).unwrap();
    }
    for _ in 0..20 {
        stage.pass();
        stage.db.run(|_| Ok(())).unwrap();
    }
    assert_eq!(DEPTHS.get(), (0, 1), "{}", P::NAME);
    assert_eq!((stage.ledger.made(), stage.ledger.alive().len()), (12, 1), "{}", P::NAME);
}

#[test]
fn a_transaction_drops_some_of_very_many_values() {
    let stage = Stage::<crate::Occ>::new();
    let Stage { db, values, ledger, .. } = &stage;
    let many = VALUES_AT_ONCE as u64 + 100;
    db.run(|tx| (0..many).try_for_each(|key| values.insert(tx, key, ledger.probe()))).unwrap();
    db.run(|tx| (0..many).try_for_each(|key| values.delete(tx, key))).unwrap();
    stage.pass();
    for left in [100, 0] {
        db.run(|_| Ok(())).unwrap();
        assert_eq!(ledger.alive().len(), left);
    }
}

/// What panics with, and panics again when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        std::panic::resume_unwind(Box::new("in the drop of what a panic has thrown"));
    }
}

protocol_tests!(all: a_panic_whose_payload_panics_ends_with_its_value);
fn a_panic_whose_payload_panics_ends_with_its_value<P: Protocol>() {
    let (db, values, ledger) = scene::<P>();
    let panicking = || ledger.probe_with(|| std::panic::resume_unwind(Box::new(Bomb)));
    let ended = db.run(|tx| values.put(tx, 1, panicking()).and(Err::<(), _>(Abort::Guard)));
    assert_eq!(ended, Err(Abort::Guard), "{}", P::NAME);
    assert_eq!(ledger.alive().len(), 0, "{}", P::NAME);
}

protocol_tests!(overlapping: the_values_of_many_failed_attempts_do_not_pile_up);
/// Other threads drop the values of the attempts that have failed.
fn the_values_of_many_failed_attempts_do_not_pile_up<P: Protocol>() {
    let stage = Stage::<P>::new();
    let Stage { db, values, items, ledger, .. } = &stage;
    let mut other = db.session().unwrap();
    let mut attempts = 0;
    db.run(|tx| {
        attempts += 1;
        let read = items.read(tx, 1, Item::COUNT)?;
        (0..100).try_for_each(|key| values.put(tx, key, ledger.probe()))?;
        if attempts <= 8 {
            stage.epochs.pass();
            std::thread::scope(|scope| {
                scope.spawn(|| db.run(|_| Ok(())).unwrap()).join().unwrap();
            });
            other.run(|tx| items.update(tx, 1, Item::COUNT.add(1))).unwrap();
        }
        let alive = ledger.alive().len();
        assert!(alive <= 200, "{}: {alive} values in attempt {attempts}", P::NAME);
        items.update(tx, 1, Item::COUNT.set(read + 1))
    })
    .unwrap();
    assert!(attempts > 8, "{}", P::NAME);
}

protocol_tests!(all: the_value_of_a_refused_operation_outlives_the_attempt);
fn the_value_of_a_refused_operation_outlives_the_attempt<P: Protocol>() {
    let (db, values, ledger) = scene::<P>();
    db.run(|tx| {
        assert_eq!(values.replace(tx, 1, ledger.probe()).map(|_| ()), Err(Abort::NotFound));
        values.refuse(tx, ledger.probe())?;
        assert_eq!(ledger.alive().len(), 2, "{}", P::NAME);
        Ok(())
    })
    .unwrap();
    let read_only = db.read_view(|tx| {
        let refused = values.swap(tx, 1, ledger.probe()).map(|_| ());
        assert_eq!(ledger.alive().len(), 1, "{}", P::NAME);
        refused
    });
    assert_eq!(read_only, Err(Abort::ReadOnly), "{}", P::NAME);
    settle(&db, &values, &ledger);
}

/// Another thread, which counts, takes over what a session has just left. The session only reads
/// from then on, and is never idle.
#[test]
fn a_value_that_another_thread_has_counted_is_dropped_all_the_same() {
    let stage = Stage::<Occ>::new();
    let Stage { db, values, items, .. } = &stage;
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                let _ = db.memory();
            }
        });
        let mut before = Ledger::default();
        let kept = (0..1000).find_map(|_| {
            let ledger = Ledger::default();
            // What is staged and replaced makes the end of the attempt long.
            db.run(|tx| (0..100).try_for_each(|_| values.put(tx, 1, ledger.probe()))).unwrap();
            let is_dropped = (0..200).any(|_| {
                stage.epochs.pass();
                db.run(|tx| items.read(tx, 1, Item::COUNT).map(drop)).unwrap();
                before.alive().is_empty()
            });
            let replaced = std::mem::replace(&mut before, ledger);
            (!is_dropped).then(|| replaced.alive())
        });
        is_done.store(true, Ordering::Relaxed);
        assert_eq!(kept, None);
    });
}
