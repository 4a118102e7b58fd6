//! Deleted rows whose records are removed or used again.

use super::super::rows::Item;
use super::{attempt, database, explore, explore_as_it_is};
use crate::engine::Protocol;
use crate::protocols::{Mvto, Occ, TicToc};
use crate::sync::thread;
use crate::{Database, Whole};
use std::sync::Arc;

/// Removes the record of a deleted row of two groups while its key is inserted again. The insert
/// may commit or fail. A dead record must not be read as a row.
fn burial_against_insert<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    let table = db.table::<Item>("rows").unwrap();
    let (mut gravedigger, mut other) = (db.session().unwrap(), db.session().unwrap());
    for step in 0..2 {
        let act = |tx: &crate::Tx<'_, P>| match step {
            0 => table.insert(tx, Item::new(1, 0)),
            _ => table.delete(tx, 1),
        };
        gravedigger.run(act).unwrap();
    }
    (0..3).for_each(|_| db.inner.engine.epochs.pass());
    let inner = table.clone();
    let other = thread::spawn(move || {
        let inserted =
            attempt(&mut other, |tx| inner.insert(tx, Item { other: 5, ..Item::new(1, 5) }));
        drop(other);
        inserted
    });
    // The session collects its garbage at the end of a transaction.
    attempt(&mut gravedigger, |_| Ok(()));
    let inserted = other.join().unwrap();
    let mut last = db.session().unwrap();
    let row = last.run(|tx| table.get(tx, 1, Whole)).unwrap();
    assert_eq!(row, inserted.then_some(Item { other: 5, ..Item::new(1, 5) }));
}

scenes! {
    loom_burial_against_insert = explore(3, burial_against_insert::<Occ>);
    loom_burial_against_insert_by_timestamps = explore(2, burial_against_insert::<Mvto>);
}

/// Puts a row in a record while another session collects garbage. The attempt finds its own row.
/// The row that was there before is deleted by the other session, before the attempt begins or
/// beside it.
fn burial_against_upsert<P: Protocol>(deletes_beside: bool) {
    let (db, table) = database::<P>(1);
    let (mut gravedigger, mut other) = (db.session().unwrap(), db.session().unwrap());
    if !deletes_beside {
        assert!(attempt(&mut gravedigger, |tx| table.delete(tx, 0)));
        (0..2).for_each(|_| db.inner.engine.epochs.pass());
    }
    // The test checks the closure's reads outside of the closure: the panic of an attempt that is
    // going to fail would be discarded.
    let found = Arc::new(std::sync::Mutex::new(Some(5)));
    let (inner, seen) = (table.clone(), found.clone());
    let other = thread::spawn(move || {
        attempt(&mut other, |tx| {
            inner.put(tx, Item::new(0, 5))?;
            // Without this call, loom would switch here only if the put had changed a word that the
            // collector changes.
            thread::yield_now();
            *seen.lock().unwrap() = inner.get(tx, 0, Item::COUNT)?;
            Ok(())
        });
        drop(other);
    });
    // The session collects its garbage at the end of a transaction.
    if deletes_beside {
        attempt(&mut gravedigger, |tx| table.delete(tx, 0));
    } else {
        attempt(&mut gravedigger, |_| Ok(()));
    }
    (0..2).for_each(|_| db.inner.engine.epochs.pass());
    attempt(&mut gravedigger, |_| Ok(()));
    other.join().unwrap();
    assert_eq!(*found.lock().unwrap(), Some(5), "the row was put a moment before");
}

scenes! {
    loom_burial_against_put = explore_as_it_is(2, || burial_against_upsert::<Occ>(false));
    loom_burial_against_put_in_timestamp_order =
        explore_as_it_is(2, || burial_against_upsert::<TicToc>(false));
    loom_burial_against_put_by_timestamps =
        explore_as_it_is(2, || burial_against_upsert::<Mvto>(false));
    loom_delete_against_put = explore_as_it_is(2, || burial_against_upsert::<Occ>(true));
    loom_delete_against_put_in_timestamp_order =
        explore_as_it_is(2, || burial_against_upsert::<TicToc>(true));
}
