//! Where values are dropped: at the ends of transactions, sessions and databases.

use super::{Ledger, scene, settle, table};
use crate::engine::Protocol;
use crate::tests::rows::Item;
use crate::tests::waiting::eventually;
use crate::{Abort, Database};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;

protocol_tests!(all: a_dropped_database_drops_its_values);
/// The database has rows, and garbage that has not been collected.
fn a_dropped_database_drops_its_values<P: Protocol>() {
    let dropped_by: Arc<Mutex<Vec<ThreadId>>> = Arc::default();
    for garbage in [false, true] {
        let (db, values, ledger) = scene::<P>();
        let noting = || {
            let dropped_by = dropped_by.clone();
            ledger.probe_with(move || dropped_by.lock().unwrap().push(std::thread::current().id()))
        };
        db.run(|tx| (0..100).try_for_each(|key| values.insert(tx, key, noting()))).unwrap();
        if garbage {
            db.run(|tx| (0..90).try_for_each(|key| values.set(tx, key, noting()))).unwrap();
            db.run(|tx| (60..80).try_for_each(|key| values.delete(tx, key))).unwrap();
        }
        drop(db);
        assert!(ledger.alive().len() >= 80, "the table keeps the database");
        drop(values);
        assert_eq!(ledger.alive().len(), 0);
    }
    let me = std::thread::current().id();
    assert!(dropped_by.lock().unwrap().iter().all(|by| *by == me));
}

protocol_tests!(concurrent: sessions_of_other_threads_leave_their_values_to_the_database);
fn sessions_of_other_threads_leave_their_values_to_the_database<P: Protocol>() {
    let (db, values, ledger) = scene::<P>();
    let (idle, go) = std::sync::mpsc::channel::<()>();
    let (ready, is_ready) = std::sync::mpsc::channel();
    let db = Arc::new(db);
    let kept = {
        let (db, values, ledger) = (db.clone(), values.clone(), ledger.clone());
        std::thread::spawn(move || {
            for _ in 0..10 {
                db.run(|tx| values.put(tx, 1, ledger.probe())).unwrap();
            }
            // The thread keeps its session of the database, but nothing else.
            drop((db, values));
            ready.send(()).unwrap();
            let _ = go.recv();
        })
    };
    crate::tests::waiting::receive("the thread's commits", &is_ready);
    std::thread::scope(|scope| {
        scope.spawn(|| db.run(|tx| values.put(tx, 2, ledger.probe())).unwrap());
    });
    drop((db, values));
    assert_eq!(ledger.alive().len(), 0);
    drop(idle);
    kept.join().unwrap();
    assert_eq!(ledger.alive().len(), 0);
}

protocol_tests!(all: the_drop_of_a_value_can_run_transactions);
fn the_drop_of_a_value_can_run_transactions<P: Protocol>() {
    let db = Arc::new(Database::<P>::builder().build().unwrap());
    let (values, ledger) = (table(&db), Ledger::default());
    let items = db.table::<Item>("items").unwrap();
    db.run(|tx| items.insert(tx, Item::new(1, 0))).unwrap();
    let results: Arc<Mutex<Vec<Result<(), Abort>>>> = Arc::default();
    let counting = || {
        let (db, results) = (Arc::downgrade(&db), results.clone());
        ledger.probe_with(move || {
            let Some(db) = db.upgrade() else { return };
            let result = db.run(|_| Ok(())).and_then(|()| {
                let items = db.table::<Item>("items").unwrap();
                db.run(|tx| items.update(tx, 1, Item::COUNT.add(1)))
            });
            results.lock().unwrap().push(result);
        })
    };
    db.run(|tx| (0..10).try_for_each(|key| values.insert(tx, key, counting()))).unwrap();
    db.run(|tx| (0..10).try_for_each(|key| values.set(tx, key, counting()))).unwrap();
    let refused = db.run(|tx| values.set(tx, 1, counting()).and(Err::<(), _>(Abort::Guard)));
    assert_eq!(refused, Err(Abort::Guard));
    db.run(|tx| (0..5).try_for_each(|key| values.delete(tx, key))).unwrap();
    settle(&db, &values, &ledger);
    assert_eq!(*results.lock().unwrap(), vec![Ok(()); 16]);
    assert_eq!(db.run(|tx| items.read(tx, 1, Item::COUNT)), Ok(16));
}

protocol_tests!(all: a_panic_in_the_drop_of_a_value_changes_nothing_else);
fn a_panic_in_the_drop_of_a_value_changes_nothing_else<P: Protocol>() {
    let (db, values, ledger) = scene::<P>();
    let panicking = || ledger.probe_with(|| std::panic::resume_unwind(Box::new("in a drop")));
    db.run(|tx| (0..10).try_for_each(|key| values.insert(tx, key, panicking()))).unwrap();
    let ended = db.run(|tx| values.set(tx, 1, panicking()).and(Err::<(), _>(Abort::Guard)));
    assert_eq!(ended, Err(Abort::Guard));
    assert_eq!(ledger.alive().len(), 10);
    for round in 0..3 {
        let done = db.run(|tx| {
            (0..10).try_for_each(|key| values.set(tx, key, panicking()))?;
            Ok(round)
        });
        assert_eq!(done, Ok(round));
    }
    settle(&db, &values, &ledger);
    drop((db, values));
    assert_eq!(ledger.alive().len(), 0);
}

protocol_tests!(concurrent: values_of_an_idle_session_are_dropped_by_the_next_transaction);
/// The advancer collects for a session that is idle, and drops nothing.
fn values_of_an_idle_session_are_dropped_by_the_next_transaction<P: Protocol>() {
    let (db, values, ledger) = scene::<P>();
    let mut idle = db.session().unwrap();
    // While this pin holds back the bound and the horizon, the session collects once, and not the
    // value that it replaces afterwards.
    let (epochs, slot) = (&db.inner.engine.epochs, db.inner.engine.epochs.register());
    epochs.pin(&slot);
    let pinned = slot.pinned_epoch();
    eventually("the epoch of the pin", || {
        [epochs.bound(), epochs.horizon()].map(Some) == [pinned, pinned]
    });
    idle.run(|tx| values.insert(tx, 1, ledger.probe())).unwrap();
    idle.run(|_| Ok(())).unwrap();
    idle.run(|tx| values.set(tx, 1, ledger.probe())).unwrap();
    epochs.unpin(&slot);
    epochs.unregister(&slot);
    eventually("the collection of the idle session's garbage", || {
        !db.inner.engine.shared_garbage.is_empty() || ledger.alive().len() == 1
    });
    eventually("the drop by another session", || {
        db.run(|_| Ok(())).unwrap();
        ledger.alive().len() == 1
    });
    // What nothing drops, the end of the database drops.
    idle.run(|tx| values.set(tx, 1, ledger.probe())).unwrap();
    drop((idle, db, values));
    assert_eq!(ledger.alive().len(), 0);
}

protocol_tests!(all: values_can_be_of_any_type);
fn values_can_be_of_any_type<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    type Of<T, P> = crate::api::ValueTable<(u32, u32), T, crate::Hashed, P>;
    let texts = Of::<String, P>::open(&db, "texts", Default::default()).unwrap();
    let units = Of::<(), P>::open(&db, "units", Default::default()).unwrap();
    let wide = Of::<[u128; 9], P>::open(&db, "wide", Default::default()).unwrap();
    db.run(|tx| {
        texts.insert(tx, (1, 2), "one and two".to_owned())?;
        units.insert(tx, (1, 2), ())?;
        wide.insert(tx, (1, 2), [7; 9])
    })
    .unwrap();
    db.run(|tx| {
        texts.replace_with(tx, (1, 2), |text| text.repeat(100))?;
        assert_eq!(texts.read(tx, (1, 2))?.len(), 1_100);
        assert_eq!(*units.read(tx, (1, 2))?, ());
        assert_eq!(wide.read(tx, (1, 2))?.iter().sum::<u128>(), 63);
        assert!(wide.get(tx, (2, 1))?.is_none());
        Ok(())
    })
    .unwrap();
}
