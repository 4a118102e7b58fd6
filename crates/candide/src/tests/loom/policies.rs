//! Locks of policies, in the second word of a cell, beside commits.

use super::super::rows::Item;
use super::{attempt, explore, explore_as_it_is, race};
use crate::index::Found;
use crate::locks::{Lock, RASK};
use crate::policy::Policy;
use crate::protocols::Occ;
use crate::record::{CellAt, Tid};
use crate::sync::{Ordering, thread};
use crate::{Abort, Database, Table, Tx};

/// A database with two tables whose cells have a second word, each with row 0. The first table has
/// the policy `policy`, the second one has [`Policy::NoWait`].
fn two_tables(policy: Policy) -> (Database<Occ>, [Table<Item, Occ>; 2]) {
    let db = Database::<Occ>::builder()
        .policy(Policy::NoWait)
        .timestamp_splitting(false)
        .build()
        .unwrap();
    let tables = ["one", "other"].map(|name| db.table::<Item>(name).unwrap());
    let mut session = db.session().unwrap();
    session
        .run(|tx| tables.iter().try_for_each(|table| table.insert(tx, Item::new(0, 0))))
        .unwrap();
    tables[0].set_policy(policy).unwrap();
    (db, tables)
}

/// Returns the cell of row 0.
fn cell(table: &Table<Item, Occ>) -> CellAt {
    let Found::Record(record) = table.core().index.find(&[0]) else { panic!("it is there") };
    table.core().layout.first_of(record)
}

/// Reads row 0. If the reader then holds the second word for reading, no commit installs the row.
fn read_under_the_second_word(table: &Table<Item, Occ>, tx: &Tx<'_, Occ>) -> Result<(), Abort> {
    table.read(tx, 0, Item::COUNT)?;
    let at = cell(table);
    let tid = || Tid(at.cell_word(0).load(Ordering::Acquire));
    if Lock::of(&at).word().readers() > 0 && tid().has(RASK) {
        assert!(!tid().has(Tid::INSTALL), "LK6: it is installed under a reader");
    }
    Ok(())
}

fn expect_free(table: &Table<Item, Occ>) {
    assert_eq!(cell(table).cell_word(1).load(Ordering::Relaxed), 0, "a lock is left");
}

/// A reader that holds the second word keeps a writer out until it ends.
#[test]
fn loom_reader_by_policy_against_a_writer() {
    explore(3, || {
        let (db, [table, _]) = two_tables(Policy::NoWait);
        race(
            &db,
            &table,
            |table, tx| table.update(tx, 0, Item::COUNT.set(1)),
            |table, tx| read_under_the_second_word(table, tx),
        );
        expect_free(&table);
    });
}

/// A writer waits for a reader, which ends. Whether or not the writer gives up, it leaves no trace.
#[test]
fn loom_last_reader_against_a_writer_that_waits() {
    explore(3, || {
        let (db, [table, _]) = two_tables(Policy::NoWait);
        let at = cell(&table);
        assert_eq!(Lock::of(&at).take_to_read(9), Ok(()));
        let rows = table.clone();
        let mut session = db.session().unwrap();
        let writer = thread::spawn(move || {
            attempt(&mut session, |tx| rows.update(tx, 0, Item::COUNT.set(1)));
            drop(session);
        });
        Lock::of(&at).release_reader();
        writer.join().unwrap();
        expect_free(&table);
    });
}

/// The flags of a row are set while a writer commits that has seen no flags. If `asks_before`, the
/// same transaction has asked another table's policy before.
fn flags_that_are_set_against_a_writer(asks_before: bool) {
    explore_as_it_is(3, move || {
        let (db, [table, other]) = two_tables(Policy::Optimistic);
        let (rows, mut session) = (table.clone(), db.session().unwrap());
        let ask =
            |other: &Table<Item, Occ>, tx: &Tx<'_, Occ>| other.update(tx, 0, Item::COUNT.set(1));
        if !asks_before {
            // The session gets a desk, without which it would lock nothing by policy.
            attempt(&mut session, |tx| ask(&other, tx));
        }
        let writer = thread::spawn(move || {
            attempt(&mut session, |tx| {
                if asks_before {
                    ask(&other, tx)?;
                }
                rows.update(tx, 0, Item::COUNT.set(1))
            });
            drop(session);
        });
        table.set_policy(Policy::NoWait).unwrap();
        let mut session = db.session().unwrap();
        attempt(&mut session, |tx| read_under_the_second_word(&table, tx));
        writer.join().unwrap();
        expect_free(&table);
    });
}

scenes! {
    loom_flags_that_are_set_against_a_writer = flags_that_are_set_against_a_writer(false);
    loom_flags_that_are_set_against_a_writer_of_two_rows =
        flags_that_are_set_against_a_writer(true);
}
