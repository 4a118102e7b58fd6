//! Deferred updates that are collected, merged or read beside other transactions.

use super::super::rows::Item;
use super::{attempt, count, database, explore, race};
use crate::protocols::Mvto;
use crate::sync::thread;
use crate::{Abort, RunOptions, Session, Table, Whole};
use std::sync::Arc;

/// An updater that multiplies the count, and adds to it.
#[derive(Debug, Clone, Copy)]
struct Linear(i64, i64);

impl crate::schema::Updater<Item> for Linear {
    type Target = crate::Column<Item, i64>;
    const TOTAL: bool = true;

    fn target(&self) -> Self::Target {
        Item::COUNT
    }

    fn apply(&self, count: &mut i64) -> Result<(), crate::schema::Refused> {
        *count = *count * self.0 + self.1;
        Ok(())
    }
}

/// Explores the collection of a row's deferred updates by the session that has made them, while
/// another session reads the row. After the updates, the row's count is `expected`.
fn explore_collection_beside_a_read(
    updates: fn(&mut Session<Mvto>, &Table<Item, Mvto>),
    expected: i64,
) {
    explore(2, move || {
        let (db, table) = database::<Mvto>(1);
        let (mut mine, mut other) = (db.session().unwrap(), db.session().unwrap());
        updates(&mut mine, &table);
        let inner = table.clone();
        let reader = thread::spawn(move || {
            attempt(&mut other, |tx| {
                assert_eq!(inner.read(tx, 0, Whole)?, Item::new(0, expected));
                Ok(())
            });
            drop(other);
        });
        for _ in 0..2 {
            (0..2).for_each(|_| db.inner.engine.epochs.pass());
            attempt(&mut mine, |_| Ok(()));
        }
        reader.join().unwrap();
        assert_eq!(count(&db, &table, [0]), [expected]);
    });
}

/// One session turns deferred updates into a row and frees the versions below them. Meanwhile
/// another session reads the row, perhaps as it was before.
#[test]
fn loom_collecting_against_read_by_timestamps() {
    let updates = |mine: &mut Session<Mvto>, table: &Table<Item, Mvto>| {
        assert!(attempt(mine, |tx| table.update(tx, 0, Item::COUNT.wrapping_add(1))));
        assert!(attempt(mine, |tx| table.update_with(tx, 0, Linear(3, -1))));
    };
    explore_collection_beside_a_read(updates, 2);
}

/// One session merges a deferred update into the row. Meanwhile another session reads the row,
/// perhaps by way of the update that is being merged.
#[test]
fn loom_merging_against_read_by_timestamps() {
    let updates = |mine: &mut Session<Mvto>, table: &Table<Item, Mvto>| {
        assert!(attempt(mine, |tx| table.update(tx, 0, Item::COUNT.add(1))));
    };
    explore_collection_beside_a_read(updates, 1);
}

/// A row is deleted while another session updates it blindly.
#[test]
fn loom_delta_against_delete_by_timestamps() {
    explore(3, || {
        let (db, table) = database::<Mvto>(1);
        let found = Arc::new(std::sync::Mutex::new(false));
        let finds = found.clone();
        let (updated, deleted) = race(
            &db,
            &table,
            move |table, tx| {
                *finds.lock().unwrap() =
                    table.update_if_present(tx, 0, Item::COUNT.wrapping_add(1))?;
                Ok(())
            },
            move |table, tx| table.delete(tx, 0),
        );
        let mut session = db.session().unwrap();
        let left = session.run(|tx| table.get(tx, 0, Item::COUNT)).unwrap();
        let found = updated && *found.lock().unwrap();
        assert_eq!(left, (!deleted).then_some(i64::from(found)));
    });
}

/// An update is linked late, below a deferred update that is being read.
#[test]
fn loom_late_link_against_flattening_by_timestamps() {
    explore(2, || {
        let (db, table) = database::<Mvto>(1);
        let (mut mine, mut other) = (db.session().unwrap(), db.session().unwrap());
        let inner = table.clone();
        let late = thread::spawn(move || {
            let committed = attempt(&mut other, |tx| inner.update(tx, 0, Item::COUNT.set(10)));
            drop(other);
            committed
        });
        let added = attempt(&mut mine, |tx| table.update_with(tx, 0, Linear(1, 1)));
        let read =
            mine.with(RunOptions::new().attempts_max(1)).run(|tx| table.read(tx, 0, Item::COUNT));
        let set = late.join().unwrap();
        let last = count(&db, &table, [0])[0];
        match (set, added) {
            (true, true) => assert!(last == 10 || last == 11, "{last}"),
            _ => assert_eq!(last, if set { 10 } else { i64::from(added) }),
        }
        // The reader has read the final row, or the row from before the other update.
        let before = i64::from(added);
        assert!(
            read.is_err_and(|e: Abort| e == Abort::AttemptsExhausted)
                || read == Ok(last)
                || read == Ok(before) && last == 10
        );
    });
}
