//! Transactions that depend on one another: some serial order explains their results.

use super::super::rows::Item;
use super::{attempt, count, database, explore, explore_as_it_is, race};
use crate::engine::Protocol;
use crate::protocols::{Mvcc, Mvto, Occ, Serial, TicToc, under_a_lock};
use crate::sync::thread;
use crate::timestamps::by_the_clock;
use crate::{Abort, Table, Tx};
use std::cell::Cell;

/// Plays write skew: each transaction writes the row that the other reads.
fn write_skew<P: Protocol>() {
    let (db, table) = database::<P>(2);
    race(
        &db,
        &table,
        move |table, tx| {
            let zero = table.read(tx, 0, Item::COUNT)?;
            table.update(tx, 1, Item::COUNT.set(zero + 1))
        },
        move |table, tx| {
            let one = table.read(tx, 1, Item::COUNT)?;
            table.update(tx, 0, Item::COUNT.set(one + 1))
        },
    );
    let rows = count(&db, &table, [0, 1]);
    assert_ne!(rows, [1, 1], "both committed after reading what the other replaced");
}

/// A view that moves on to an epoch after that of a commit in progress notices the commit at the
/// row it has seen, or sees the commit's later rows as newer than the view.
#[test]
fn loom_view_moves_on_against_a_commit() {
    explore_as_it_is(3, || {
        let (db, table) = database::<Occ>(3);
        let (mut mine, mut own, mut other) =
            (db.session().unwrap(), db.session().unwrap(), db.session().unwrap());
        let advance = || db.inner.engine.epochs.advance_past(db.inner.engine.epochs.now());
        // The rows are older than the attempts.
        advance();
        let items = table.clone();
        let writer = thread::spawn(move || {
            attempt(&mut other, |tx| {
                [0, 1].iter().try_for_each(|id| items.update(tx, id, Item::COUNT.set(1)))
            });
            drop(other);
        });
        let seen = Cell::new(None);
        attempt(&mut mine, |tx| {
            let zero = table.read(tx, 0, Item::COUNT)?;
            attempt(&mut own, |tx| table.update(tx, 2, Item::COUNT.set(1)));
            advance();
            table.read(tx, 2, Item::COUNT)?;
            seen.set(Some((zero, table.read(tx, 1, Item::COUNT)?)));
            Ok(())
        });
        assert!(!matches!(seen.get(), Some((0, 1) | (1, 0))), "{seen:?}");
        writer.join().unwrap();
    });
}

scenes! {
    /// Without the fence between locking and validating, both transactions would see the old row.
    loom_write_skew = explore(5, write_skew::<Occ>);
    loom_write_skew_under_one_lock = under_a_lock(|| explore(3, write_skew::<Serial>));
    loom_write_skew_in_timestamp_order = explore(4, write_skew::<TicToc>);
    loom_write_skew_in_versions = explore(3, write_skew::<Mvcc>);
    loom_write_skew_by_timestamps = explore(3, write_skew::<Mvto>);
    loom_write_skew_by_the_clock = by_the_clock(|| explore(2, write_skew::<Mvto>));
}

/// Runs a transaction that looks for key 9 with `find` and writes a row, against a transaction that
/// reads the row and inserts the key.
fn find_against_insert<P: Protocol>(find: fn(&Table<Item, P>, &Tx<'_, P>) -> Result<bool, Abort>) {
    let (db, table) = database::<P>(1);
    let (first, second) = race(
        &db,
        &table,
        move |table, tx| {
            let there = find(table, tx)?;
            table.update(tx, 0, Item::COUNT.set(if there { 5 } else { 1 }))
        },
        move |table, tx| {
            let count = table.read(tx, 0, Item::COUNT)?;
            table.insert(tx, Item::new(9, count))
        },
    );
    if first && second {
        // Either the insert (of 0) came first, and then the update that saw the inserted row; or
        // the update came first, and then the insert (of 1).
        let rows = count(&db, &table, [0, 9]);
        assert!(rows == [5, 0] || rows == [1, 1], "{rows:?}");
    }
}

fn absent_read_against_insert<P: Protocol>() {
    find_against_insert::<P>(|table, tx| Ok(table.get(tx, 9, Item::COUNT)?.is_some()));
}

scenes! {
    loom_absent_read_against_insert = explore(4, absent_read_against_insert::<Occ>);
    loom_absent_read_against_insert_in_timestamp_order =
        explore(3, absent_read_against_insert::<TicToc>);
    loom_absent_read_against_insert_in_versions = explore(3, absent_read_against_insert::<Mvcc>);
    loom_absent_read_against_insert_by_timestamps = explore(2, absent_read_against_insert::<Mvto>);
    loom_absent_read_against_insert_by_the_clock =
        by_the_clock(|| explore(2, absent_read_against_insert::<Mvto>));
}

/// An absent read races with an insert that has the smaller number, while time stands still unless
/// a thread waits for it.
#[test]
fn loom_absent_read_against_insert_in_one_tick() {
    let scene = || {
        let (db, table) = database::<Mvto>(1);
        let (mut inserting, mut missing) = (db.session().unwrap(), db.session().unwrap());
        for session in [&mut inserting, &mut missing] {
            assert!(attempt(session, |tx| table.update(tx, 0, Item::COUNT.set(0))));
        }
        let inner = table.clone();
        let inserting = thread::spawn(move || {
            let inserted = attempt(&mut inserting, |tx| {
                let count = inner.read(tx, 0, Item::COUNT)?;
                inner.insert(tx, Item::new(9, count))
            });
            drop(inserting);
            inserted
        });
        let missed = attempt(&mut missing, |tx| {
            let there = table.get(tx, 9, Item::COUNT)?.is_some();
            table.update(tx, 0, Item::COUNT.set(if there { 5 } else { 1 }))
        });
        if inserting.join().unwrap() && missed {
            let rows = count(&db, &table, [0, 9]);
            assert!(rows == [5, 0] || rows == [1, 1], "{rows:?}");
        }
    };
    by_the_clock(|| explore(2, scene));
}

/// Two transactions update one row under the global lock, without other concurrency control. The
/// second update works on the result of the first.
#[test]
fn loom_two_updates_under_one_lock() {
    let scene = || {
        let (db, table) = database::<Serial>(1);
        let committed = race(
            &db,
            &table,
            move |table, tx| table.update(tx, 0, Item::COUNT.add(1)),
            move |table, tx| table.update(tx, 0, Item::COUNT.add(1)),
        );
        assert_eq!(committed, (true, true));
        assert_eq!(count(&db, &table, [0]), [2]);
    };
    under_a_lock(|| explore(3, scene));
}

/// An absent read, after a scan of every bucket, races with an insert.
#[test]
fn loom_iteration_against_insert() {
    explore(3, || {
        let (db, table) = database::<Occ>(1);
        let (first, second) = race(
            &db,
            &table,
            move |table, tx| {
                let rows = table.iter(tx, ()).collect::<Result<Vec<_>, _>>()?.len();
                table.update(tx, 0, Item::COUNT.set(rows as i64))
            },
            move |table, tx| {
                let count = table.read(tx, 0, Item::COUNT)?;
                table.insert(tx, Item::new(9, count))
            },
        );
        if first && second {
            let rows = count(&db, &table, [0, 9]);
            assert!(rows == [2, 0] || rows == [1, 1], "{rows:?}");
        }
    });
}

/// An absent read, by a lookup of several keys at once, races with an insert.
#[test]
fn loom_many_lookups_against_insert() {
    explore(3, || {
        find_against_insert::<Occ>(|table, tx| {
            Ok(table.find_many(tx, &[0, 9])?[1].get(Item::COUNT)?.is_some())
        });
    });
}

/// Runs two blind updates of one row. The update that locks second works on the words that the
/// first has installed.
fn two_updates_of_one_row<P: Protocol>() {
    let (db, table) = database::<P>(1);
    let (first, second) = race(
        &db,
        &table,
        move |table, tx| table.update(tx, 0, Item::COUNT.add(1)),
        move |table, tx| table.update(tx, 0, Item::COUNT.add(1)),
    );
    assert_eq!(count(&db, &table, [0]), [i64::from(first) + i64::from(second)]);
}

scenes! {
    loom_two_updates_of_one_row = explore(4, two_updates_of_one_row::<Occ>);
    loom_two_updates_of_one_row_in_timestamp_order = explore(4, two_updates_of_one_row::<TicToc>);
    loom_two_updates_of_one_row_by_timestamps = explore(3, two_updates_of_one_row::<Mvto>);
}
