//! Subtle faults of concurrency control. Each test is the interleaving that shows one such fault.
//!
//! Most tests need no threads: a session runs another session's whole transaction inside its own
//! closure, or at a named point of its own commit.

use super::interleaving::acting;
use super::rows::Item;
use super::threads::spawn;
use super::transactions::{CONFLICT, ONCE, run};
use super::two_sessions::{Scene, read_then_write, scene};
use crate::engine::Protocol;
use crate::protocols::{Mvto, Occ};
use crate::sync::{AtomicU64, Ordering, Point, with_hook};
use crate::{Abort, Database, Session, Whole};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::{Arc, Barrier};

protocol_tests!(overlapping: write_skew_fails_one_of_two_commits);
fn write_skew_fails_one_of_two_commits<P: Protocol>() {
    let Scene { table, mut first, mut second, .. } = scene::<P>();
    let mut inner = Ok(());
    let outer = first.with(ONCE()).run(|tx| {
        read_then_write(&table, tx, 0, 1)?;
        inner = second.with(ONCE()).run(|tx| read_then_write(&table, tx, 1, 0));
        Ok(())
    });
    assert!(outer == CONFLICT || inner == CONFLICT, "{outer:?} {inner:?}");
}

protocol_tests!(overlapping: a_lock_between_locking_and_validating_is_respected);
fn a_lock_between_locking_and_validating_is_respected<P: Protocol>() {
    // Each session has read the row that the other is about to write. The first session has locked
    // its row when the second commits.
    let Scene { table, mut first, mut second, .. } = scene::<P>();
    let (inner_table, inner) = (table.clone(), Rc::new(Cell::new(Ok(()))));
    let inner_result = inner.clone();
    let outer = with_hook(
        move |point| {
            if point == Point::Locked {
                // The second session reads row 1, which the first has locked, and writes row 0,
                // which the first has read.
                inner_result
                    .set(second.with(ONCE()).run(|tx| read_then_write(&inner_table, tx, 1, 0)));
            }
        },
        || first.with(ONCE()).run(|tx| read_then_write(&table, tx, 0, 1)),
    );
    assert!(outer == CONFLICT || inner.get() == CONFLICT, "{outer:?} {:?}", inner.get());
}

/// This test detects a validation that ignores locks of other transactions. Each of two commits
/// stops between locking and validating until the other has locked, too.
#[test]
fn two_commits_that_have_locked_each_others_reads_do_not_both_succeed() {
    for _ in 0..200 {
        let Scene { table, mut first, mut second, .. } = scene::<Occ>();
        let (locked, read) = (Arc::new(Barrier::new(2)), Barrier::new(2));
        // The number of commits that have validated or failed. No commit installs before both have
        // reached this point, since otherwise the other would notice the installed version and not
        // the lock.
        let settled = Arc::new(AtomicU64::new(0));
        let commit = |session: &mut Session<Occ>, mine: u64, others: u64| {
            let (locked, validated) = (locked.clone(), settled.clone());
            let result = with_hook(
                move |point| match point {
                    Point::Locked => drop(locked.wait()),
                    Point::Validated => {
                        validated.fetch_add(1, Ordering::SeqCst);
                        while validated.load(Ordering::SeqCst) < 2 {
                            std::thread::yield_now();
                        }
                    }
                    _ => {}
                },
                || {
                    session.with(ONCE()).run(|tx| {
                        read_then_write(&table, tx, others, mine)?;
                        read.wait();
                        Ok(())
                    })
                },
            );
            if result.is_err() {
                settled.fetch_add(1, Ordering::SeqCst);
            }
            result
        };
        let results = std::thread::scope(|scope| {
            let other = spawn(scope, || commit(&mut second, 1, 0));
            [commit(&mut first, 0, 1), other.join().unwrap()]
        });
        assert!(results.contains(&CONFLICT), "{results:?}");
    }
}

#[test]
fn a_row_deleted_and_reinserted_fails_validation() {
    let Scene { db, table, mut first, mut second } = scene::<Occ>();
    let epochs = db.inner.engine.epochs.clone();
    let outer = first.with(ONCE()).run(|tx| {
        let row = table.find(tx, 0)?;
        row.read(Item::COUNT)?;
        second.run(|tx| table.delete(tx, 0))?;
        second.run(|tx| table.insert(tx, Item::new(0, 0)))?;
        // The row has the same bytes in the same place again, but another version.
        table.update(tx, 1, Item::COUNT.add(1))
    });
    assert_eq!(outer, CONFLICT);
    // If a record is unlinked while a transaction has a handle on it, the record's memory is not
    // reused before the handle ends.
    let outer = first.with(ONCE()).run(|tx| {
        let row = table.find(tx, 0)?;
        second.run(|tx| table.delete(tx, 0))?;
        for key in 1_000..1_400 {
            epochs.pass();
            second.run(|tx| {
                table.insert(tx, Item::new(key, 1))?;
                table.delete(tx, &key)
            })?;
        }
        // The record may be absent or dead, but it never holds the row of another key.
        match row.get(Whole) {
            Ok(found) => assert_eq!(found, None),
            Err(abort) => assert!(abort.is_conflict()),
        }
        Ok(())
    });
    assert!(outer == Ok(()) || outer == CONFLICT, "{outer:?}");
}

protocol_tests!(overlapping: an_insert_of_a_row_while_its_record_is_buried_is_not_lost);
fn an_insert_of_a_row_while_its_record_is_buried_is_not_lost<P: Protocol>() {
    let Scene { db, table, mut first, mut second } = scene::<P>();
    run(&mut first, |tx| table.delete(tx, 1));
    (0..3).for_each(|_| db.inner.engine.epochs.pass());
    let (told, rows) = (Rc::new(Cell::new(None)), table.clone());
    let inserted = told.clone();
    let insert =
        move || inserted.set(Some(second.with(ONCE()).run(|tx| rows.insert(tx, Item::new(1, 7)))));
    acting(Point::Reaping, insert, || run(&mut first, |_| Ok(())));
    let is_there = run(&mut first, |tx| Ok(table.get(tx, 1, ())?.is_some()));
    assert_eq!(told.get().map(|told| told.is_ok()), Some(is_there), "{}: {told:?}", P::NAME);
    if !is_there {
        run(&mut first, |tx| table.insert(tx, Item::new(1, 8)));
    }
}

#[test]
fn an_insert_of_a_row_while_its_chain_is_buried_is_not_lost() {
    an_insert_of_a_row_while_its_record_is_buried_is_not_lost::<Mvto>();
}

/// Another session commits an update of the same row between the end of the closure and the
/// locking.
#[test]
fn an_update_is_evaluated_under_the_lock() {
    let Scene { table, mut first, mut second, .. } = scene::<Occ>();
    let (inner_table, mut done) = (table.clone(), false);
    let updated = with_hook(
        move |point| {
            if point == Point::Unlocked && !done {
                done = true;
                second.run(|tx| inner_table.update(tx, 0, Item::COUNT.add(10))).unwrap();
            }
        },
        || first.with(ONCE()).run(|tx| table.update(tx, 0, Item::COUNT.add(1))),
    );
    assert_eq!(updated, Ok(()));
    assert_eq!(first.run(|tx| table.read(tx, 0, Item::COUNT)), Ok(11));
}

/// A reader is stopped after it has copied the words and before it loads the cell a second time.
/// Meanwhile a writer installs.
#[test]
fn a_torn_read_is_read_again() {
    let Scene { table, mut first, mut second, .. } = scene::<Occ>();
    let (inner_table, mut done) = (table.clone(), false);
    let row = with_hook(
        move |point| {
            if point == Point::Copied && !done {
                done = true;
                second.run(|tx| inner_table.put(tx, Item { small: 9, ..Item::new(0, 4) })).unwrap();
            }
        },
        || first.with(ONCE()).run(|tx| table.read(tx, 0, Whole)),
    );
    let row = row.unwrap();
    // The transaction has committed, so both groups are from the new row.
    assert_eq!(row, Item { small: 9, ..Item::new(0, 4) });
}

/// Commits use up the sequence numbers of an epoch, and then the epochs.
#[test]
fn versions_never_carry_and_are_refused_after_the_last() {
    let last = crate::epoch::EPOCH_MAX;
    let db = Database::<Occ>::builder().manual_epochs(last - 1).build().unwrap();
    let table = db.table::<Item>("rows").unwrap();
    let mut session = db.session().unwrap();
    session.run(|tx| table.insert(tx, Item::new(0, 0))).unwrap();
    let mut commits = 0;
    let end = loop {
        match session.run(|tx| table.update(tx, 0, Item::COUNT.add(1))) {
            Ok(()) => commits += 1,
            Err(abort) => break abort,
        }
    };
    // The commits have used all numbers of two epochs, except the number of the insert.
    assert_eq!((end, commits), (Abort::VersionsExhausted, 2 * (1 << 14) - 1));
    assert_eq!((db.inner.engine.epochs.now(), db.health().epochs_used_up), (last, 1));
    // Reads still succeed, and nothing is locked.
    assert_eq!(session.run(|tx| table.read(tx, 0, Item::COUNT)), Ok(commits));
}
