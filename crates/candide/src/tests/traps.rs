//! Ways to get concurrency control subtly wrong, each with the interleaving that shows it.
//!
//! Most need no threads: a session's closure runs another session's whole transaction inside
//! itself, or at a named point of its commit.

use super::rows::Item;
use super::steps::{CONFLICT, ONCE, acting, run};
use super::{ForProtocol, for_each_concurrent, for_each_overlapping};
use crate::engine::Protocol;
use crate::protocols::{Mvto, Occ};
use crate::sync::{AtomicU64, Ordering, Point, with_hook};
use crate::{Abort, Database, Refused, Session, Table, Updater, Whole};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, Barrier};

/// A database with rows 0..4, and two sessions.
struct Scene<P: Protocol> {
    db: Database<P>,
    table: Table<Item, P>,
    first: Session<P>,
    second: Session<P>,
}

fn scene<P: Protocol>() -> Scene<P> {
    let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
    let table = db.table::<Item>("rows").unwrap();
    db.run(|tx| (0..4).try_for_each(|id| table.insert(tx, Item::new(id, 0))))
        .unwrap_or_else(|e: Abort| panic!("{e}"));
    let (first, second) = (db.session().unwrap(), db.session().unwrap());
    Scene { db, table, first, second }
}

/// Runs a test under the protocols that certify in commit order, where an attempt with outdated
/// reads fails.
fn for_each_in_commit_order(test: &impl ForProtocol) {
    test.run::<Occ>();
}

struct WriteSkew;

impl ForProtocol for WriteSkew {
    fn run<P: Protocol>(&self) {
        let Scene { table, mut first, mut second, .. } = scene::<P>();
        let mut inner = Ok(());
        let outer = first.run_with(ONCE(), |tx| {
            let zero = table.read(tx, &0, Item::COUNT)?;
            table.update(tx, &1, Item::COUNT.set(zero + 1))?;
            inner = second.run_with(ONCE(), |tx| {
                let one = table.read(tx, &1, Item::COUNT)?;
                table.update(tx, &0, Item::COUNT.set(one + 1))
            });
            Ok(())
        });
        assert!(outer == CONFLICT || inner == CONFLICT, "{outer:?} {inner:?}");
    }
}

#[test]
fn write_skew_fails_one_of_the_two() {
    for_each_overlapping(&WriteSkew);
}

struct OtherCommitsBetweenLockAndValidation;

impl ForProtocol for OtherCommitsBetweenLockAndValidation {
    fn run<P: Protocol>(&self) {
        // Both have read the row that the other is about to write; the first has locked when the
        // second commits.
        let Scene { table, mut first, mut second, .. } = scene::<P>();
        let (inner_table, inner) = (table.clone(), Rc::new(Cell::new(Ok(()))));
        let inner_result = inner.clone();
        let outer = with_hook(
            move |point| {
                if point == Point::Locked {
                    // Reads row 1, which the first has locked; or writes row 0, which the first has
                    // read.
                    inner_result.set(second.run_with(ONCE(), |tx| {
                        let one = inner_table.read(tx, &1, Item::COUNT)?;
                        inner_table.update(tx, &0, Item::COUNT.set(one + 1))
                    }));
                }
            },
            || {
                first.run_with(ONCE(), |tx| {
                    let zero = table.read(tx, &0, Item::COUNT)?;
                    table.update(tx, &1, Item::COUNT.set(zero + 1))
                })
            },
        );
        assert!(outer == CONFLICT || inner.get() == CONFLICT, "{outer:?} {:?}", inner.get());
    }
}

#[test]
fn a_lock_between_locking_and_validating_is_respected() {
    for_each_overlapping(&OtherCommitsBetweenLockAndValidation);
}

/// Validation that ignores others' locks: two committers stop each other between locking and
/// validating.
#[test]
fn two_committers_that_have_locked_each_others_reads_do_not_both_commit() {
    for _ in 0..200 {
        let Scene { table, mut first, mut second, .. } = scene::<Occ>();
        let (locked, read) = (Arc::new(Barrier::new(2)), Barrier::new(2));
        // Commits that have validated, or failed: none installs before both have, or that would
        // be noticed instead.
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
                    session.run_with(ONCE(), |tx| {
                        let count = table.read(tx, &others, Item::COUNT)?;
                        table.update(tx, &mine, Item::COUNT.set(count + 1))?;
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
            let other = scope.spawn(|| commit(&mut second, 1, 0));
            [commit(&mut first, 0, 1), other.join().unwrap()]
        });
        assert!(results.contains(&CONFLICT), "{results:?}");
    }
}

struct OwnInsertIntoOwnAbsentRead;

impl ForProtocol for OwnInsertIntoOwnAbsentRead {
    fn run<P: Protocol>(&self) {
        let Scene { table, mut first, mut second, .. } = scene::<P>();
        // The transaction's own inserts do not invalidate its absent reads, of the same key or of
        // another in the same bucket.
        first
            .run_with(ONCE(), |tx| {
                for key in 100..130 {
                    assert_eq!(table.get(tx, &key, Item::COUNT)?, None);
                }
                (100..130).try_for_each(|key| table.insert(tx, Item::new(key, 1)))
            })
            .unwrap();
        // But others' commits of a key that was read absent do, even if the first transaction has
        // linked its record.
        let overwritten = first.run_with(ONCE(), |tx| {
            assert_eq!(table.get(tx, &200, Item::COUNT)?, None);
            table.put(tx, Item::new(200, 1))?;
            second.run(|tx| table.insert(tx, Item::new(200, 7)))
        });
        assert_eq!(overwritten, CONFLICT);
        assert_eq!(second.run(|tx| table.read(tx, &200, Item::COUNT)), Ok::<_, Abort>(7));
    }
}

#[test]
fn own_inserts_keep_own_absent_reads_and_others_spoil_them() {
    for_each_in_commit_order(&OwnInsertIntoOwnAbsentRead);
}

struct PhantomThroughUncommittedRecord;

impl ForProtocol for PhantomThroughUncommittedRecord {
    fn run<P: Protocol>(&self) {
        let Scene { table, mut first, mut second, db } = scene::<P>();
        // A inserts k (its record is linked); B sees no k and writes z; A, which read the old z,
        // must not commit as well.
        let mut inner = Ok(());
        let outer = first.run_with(ONCE(), |tx| {
            table.insert(tx, Item::new(50, 1))?;
            let z = table.read(tx, &0, Item::COUNT)?;
            inner = second.run_with(ONCE(), |tx| {
                assert_eq!(table.get(tx, &50, Item::COUNT)?, None);
                table.update(tx, &0, Item::COUNT.set(z + 1))
            });
            Ok(())
        });
        assert!(outer == CONFLICT || inner == CONFLICT, "{outer:?} {inner:?}");
        // And the other way round: one that saw no k commits only if k is not inserted.
        let outer = first.run_with(ONCE(), |tx| {
            assert_eq!(table.get(tx, &60, Item::COUNT)?, None);
            db.run(|tx| table.insert(tx, Item::new(60, 1)))?;
            table.update(tx, &1, Item::COUNT.add(1))
        });
        assert_eq!(outer, CONFLICT);
        // And with the record of a deleted row.
        db.run(|tx| table.insert(tx, Item::new(70, 1))).unwrap_or_else(|e: Abort| panic!("{e}"));
        db.run(|tx| table.delete(tx, &70)).unwrap_or_else(|e: Abort| panic!("{e}"));
        let outer = first.run_with(ONCE(), |tx| {
            assert_eq!(table.get(tx, &70, Item::COUNT)?, None);
            db.run(|tx| table.insert(tx, Item::new(70, 1)))?;
            table.update(tx, &1, Item::COUNT.add(1))
        });
        assert_eq!(outer, CONFLICT);
    }
}

#[test]
fn an_uncommitted_record_is_an_absence_that_is_observed() {
    for_each_in_commit_order(&PhantomThroughUncommittedRecord);
}

struct DeleteTouchesEveryGroup;

impl ForProtocol for DeleteTouchesEveryGroup {
    fn run<P: Protocol>(&self) {
        for change in [
            |table: &Table<Item, P>, tx: &crate::Tx<'_, P>| table.delete(tx, &0),
            |table: &Table<Item, P>, tx: &crate::Tx<'_, P>| table.put(tx, Item::new(0, 9)),
        ] {
            let Scene { table, mut first, mut second, .. } = scene::<P>();
            let outer = first.run_with(ONCE(), |tx| {
                table.read(tx, &0, Item::OTHER)?;
                second.run(|tx| change(&table, tx))?;
                table.update(tx, &1, Item::COUNT.add(1))
            });
            assert_eq!(outer, CONFLICT);
        }
        // But an update of another group does not conflict.
        let Scene { table, mut first, mut second, .. } = scene::<P>();
        first
            .run_with(ONCE(), |tx| {
                table.read(tx, &0, Item::OTHER)?;
                second.run(|tx| table.update(tx, &0, Item::COUNT.add(1)))?;
                table.update(tx, &1, Item::COUNT.add(1))
            })
            .unwrap();
    }
}

#[test]
fn a_delete_is_seen_by_readers_of_every_group() {
    for_each_in_commit_order(&DeleteTouchesEveryGroup);
}

struct DeleteAndReinsert;

impl ForProtocol for DeleteAndReinsert {
    fn run<P: Protocol>(&self) {
        let Scene { db, table, mut first, mut second } = scene::<P>();
        let epochs = db.inner.engine.epochs.clone();
        let outer = first.run_with(ONCE(), |tx| {
            let row = table.find(tx, &0)?;
            row.read(Item::COUNT)?;
            second.run(|tx| table.delete(tx, &0))?;
            second.run(|tx| table.insert(tx, Item::new(0, 0)))?;
            // The same bytes again, in the same place; but not the same version.
            table.update(tx, &1, Item::COUNT.add(1))
        });
        assert_eq!(outer, CONFLICT);
        // A record that is unlinked while a handle on it is held is not reused under the handle.
        let outer = first.run_with(ONCE(), |tx| {
            let row = table.find(tx, &0)?;
            second.run(|tx| table.delete(tx, &0))?;
            for key in 1_000..1_400 {
                epochs.pass();
                second.run(|tx| {
                    table.insert(tx, Item::new(key, 1))?;
                    table.delete(tx, &key)
                })?;
            }
            // Absent or dead, but never the row of another key.
            match row.get(Whole) {
                Ok(found) => assert_eq!(found, None),
                Err(abort) => assert!(abort.is_conflict()),
            }
            Ok(())
        });
        assert!(outer == Ok(()) || outer == CONFLICT, "{outer:?}");
    }
}

#[test]
fn deleting_and_reinserting_is_not_nothing() {
    for_each_in_commit_order(&DeleteAndReinsert);
}

struct InsertWhileItIsBuried;

impl ForProtocol for InsertWhileItIsBuried {
    fn run<P: Protocol>(&self) {
        let Scene { db, table, mut first, mut second } = scene::<P>();
        run(&mut first, |tx| table.delete(tx, &1));
        (0..3).for_each(|_| db.inner.engine.epochs.pass());
        let (told, rows) = (Rc::new(Cell::new(None)), table.clone());
        let inserted = told.clone();
        let insert = move || {
            inserted.set(Some(second.run_with(ONCE(), |tx| rows.insert(tx, Item::new(1, 7)))))
        };
        acting(Point::Burying, insert, || run(&mut first, |_| Ok(())));
        let is_there = run(&mut first, |tx| Ok(table.get(tx, &1, ())?.is_some()));
        assert_eq!(told.get().map(|told| told.is_ok()), Some(is_there), "{}: {told:?}", P::NAME);
        if !is_there {
            run(&mut first, |tx| table.insert(tx, Item::new(1, 8)));
        }
    }
}

#[test]
fn who_inserts_a_row_while_its_record_is_buried_is_not_lost() {
    for_each_overlapping(&InsertWhileItIsBuried);
}

#[test]
fn who_inserts_a_row_while_its_chain_is_buried_is_not_lost() {
    InsertWhileItIsBuried.run::<Mvto>();
}

struct UpdateOfARowThatGoes;

impl ForProtocol for UpdateOfARowThatGoes {
    fn run<P: Protocol>(&self) {
        // A blind update observes nothing, but its row must exist when it commits, and the other
        // way round.
        let Scene { table, mut first, mut second, .. } = scene::<P>();
        let outer = first.run_with(ONCE(), |tx| {
            table.update(tx, &0, Item::COUNT.add(1))?;
            second.run(|tx| table.delete(tx, &0))
        });
        assert_eq!(outer, CONFLICT);
        assert_eq!(first.run(|tx| table.update(tx, &0, Item::COUNT.add(1))), Err(Abort::NotFound));
        let outer = first.run_with(ONCE(), |tx| {
            table.insert(tx, Item::new(0, 5))?;
            second.run(|tx| table.insert(tx, Item::new(0, 6)))
        });
        assert_eq!(outer, CONFLICT);
        assert_eq!(first.run(|tx| table.insert(tx, Item::new(0, 5))), Err(Abort::Duplicate));
    }
}

#[test]
fn existence_is_checked_when_an_update_commits() {
    for_each_in_commit_order(&UpdateOfARowThatGoes);
}

struct ErrorsAreValidated;

impl ForProtocol for ErrorsAreValidated {
    fn run<P: Protocol>(&self) {
        let Scene { table, mut first, mut second, .. } = scene::<P>();
        // An error, a panic, a missing row, based on two reads of different times, never reach the
        // caller.
        for kind in 0..3 {
            let attempts = Cell::new(0);
            let result = first.run(|tx| {
                attempts.set(tx.attempt());
                let zero = table.read(tx, &0, Item::COUNT)?;
                if tx.attempt() == 1 {
                    second.run(|tx| {
                        table.update(tx, &0, Item::COUNT.add(1))?;
                        table.update(tx, &1, Item::COUNT.add(1))
                    })?;
                }
                let one = table.get(tx, &1, Item::COUNT);
                if one != Ok(Some(zero)) {
                    match kind {
                        0 => return Err(Abort::NotFound),
                        1 => panic!("never seen"),
                        _ => return Err(Abort::Duplicate),
                    }
                }
                Ok(())
            });
            assert_eq!((result, attempts.get()), (Ok(()), 2));
        }
        // An error depends also on the row that an update found.
        let attempts = Cell::new(0);
        let result: Result<(), Abort> = first.run(|tx| {
            attempts.set(tx.attempt());
            let there = table.update_if_present(tx, &2, Item::COUNT.add(1))?;
            if tx.attempt() == 1 {
                second.run(|tx| table.delete(tx, &2))?;
            }
            Err(if there { Abort::Duplicate } else { Abort::NotFound })
        });
        assert_eq!((result, attempts.get()), (Err(Abort::NotFound), 2));
        // And a guard that failed before the error comes first.
        let result: Result<(), Abort> = first.run(|tx| {
            table.update(tx, &3, Item::COUNT.sub(100).at_least(0))?;
            Err(Abort::NotFound)
        });
        assert_eq!(result, Err(Abort::Guard));
    }
}

#[test]
fn what_is_shown_to_the_caller_is_true() {
    for_each_in_commit_order(&ErrorsAreValidated);
}

struct LoopOnInconsistentValues;

impl ForProtocol for LoopOnInconsistentValues {
    fn run<P: Protocol>(&self) {
        let Scene { table, mut first, mut second, .. } = scene::<P>();
        // The first attempt would see rows 0 and 1 differ for ever; the periodic revalidation of
        // the read set ends it.
        first
            .run(|tx| {
                let zero = table.read(tx, &0, Item::COUNT)?;
                if tx.attempt() == 1 {
                    second.run(|tx| {
                        table.update(tx, &0, Item::COUNT.add(1))?;
                        table.update(tx, &1, Item::COUNT.add(1))
                    })?;
                }
                while table.read(tx, &1, Item::COUNT)? != zero {}
                Ok::<_, Abort>(())
            })
            .unwrap();
    }
}

#[test]
fn a_loop_on_inconsistent_values_ends() {
    for_each_overlapping(&LoopOnInconsistentValues);
}

/// An updater that panics on demand.
#[derive(Debug, Clone, Copy)]
struct Panics(bool);

impl Updater<Item> for Panics {
    type Target = crate::Column<Item, i64>;

    fn target(&self) -> Self::Target {
        Item::COUNT
    }

    fn apply(&self, count: &mut i64) -> Result<(), Refused> {
        assert!(!self.0, "deliberate");
        *count += 1;
        Ok(())
    }
}

struct PanicsLeaveNothing;

impl ForProtocol for PanicsLeaveNothing {
    fn run<P: Protocol>(&self) {
        let Scene { table, mut first, mut second, .. } = scene::<P>();
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            first.run(|tx| {
                table.update(tx, &0, Item::COUNT.add(5))?;
                table.insert(tx, Item::new(77, 1))?;
                table.update_with(tx, &1, Panics(true))?;
                table.delete(tx, &2)
            })
        }));
        assert!(caught.is_err());
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            first.run(|tx| table.modify(tx, &0, Item::COUNT, |_| -> () { panic!("deliberate") }))
        }));
        assert!(caught.is_err());
        // Nothing is locked, nothing has changed, and both sessions continue.
        for session in [&mut second, &mut first] {
            session
                .run_with(ONCE(), |tx| {
                    for key in 0..4 {
                        assert_eq!(table.read(tx, &key, Whole)?, Item::new(key, 0));
                    }
                    assert_eq!(table.get(tx, &77, Whole)?, None);
                    table.update_with(tx, &3, Panics(false))?;
                    table.update(tx, &3, Item::COUNT.sub(1))
                })
                .unwrap();
        }
    }
}

#[test]
fn a_panic_leaves_the_database_as_if_the_transaction_had_never_been() {
    for_each_concurrent(&PanicsLeaveNothing);
}

struct EvaluatedUnderTheLock;

impl ForProtocol for EvaluatedUnderTheLock {
    fn run<P: Protocol>(&self) {
        // Updates are evaluated on the row as it is when it is locked, not as it was when they were
        // made.
        let Scene { table, mut first, mut second, .. } = scene::<P>();
        let (inner_table, other) = (table.clone(), RefCell::new(Some(())));
        first
            .run_with(ONCE(), |tx| {
                table.update(tx, &0, Item::COUNT.add(1))?;
                if other.take().is_some() {
                    second.run(|tx| inner_table.update(tx, &0, Item::COUNT.add(10)))?;
                }
                Ok::<_, Abort>(())
            })
            .unwrap();
        assert_eq!(first.run(|tx| table.read(tx, &0, Item::COUNT)), Ok::<_, Abort>(11));
    }
}

#[test]
fn blind_updates_do_not_conflict_and_none_is_lost() {
    for_each_in_commit_order(&EvaluatedUnderTheLock);
}

/// Another session commits an update of the same row between the end of the closure and the lock.
#[test]
fn an_update_is_evaluated_under_the_lock() {
    let Scene { table, mut first, mut second, .. } = scene::<Occ>();
    let (inner_table, mut done) = (table.clone(), false);
    let updated = with_hook(
        move |point| {
            if point == Point::Unlocked && !done {
                done = true;
                second
                    .run(|tx| inner_table.update(tx, &0, Item::COUNT.add(10)))
                    .unwrap_or_else(|e: Abort| panic!("{e}"));
            }
        },
        || first.run_with(ONCE(), |tx| table.update(tx, &0, Item::COUNT.add(1))),
    );
    assert_eq!(updated, Ok(()));
    assert_eq!(first.run(|tx| table.read(tx, &0, Item::COUNT)), Ok::<_, Abort>(11));
}

/// A reader that is stopped between the words and the second look, while a writer installs.
#[test]
fn a_torn_read_is_read_again() {
    let Scene { table, mut first, mut second, .. } = scene::<Occ>();
    let (inner_table, mut done) = (table.clone(), false);
    let row = with_hook(
        move |point| {
            if point == Point::Copied && !done {
                done = true;
                second
                    .run(|tx| inner_table.put(tx, Item { small: 9, ..Item::new(0, 4) }))
                    .unwrap_or_else(|e: Abort| panic!("{e}"));
            }
        },
        || first.run_with(ONCE(), |tx| table.read(tx, &0, Whole)),
    );
    let row = row.unwrap_or_else(|e: Abort| panic!("{e}"));
    // One group may be of the old row and the other of the new one only if the transaction fails.
    assert_eq!(row, Item { small: 9, ..Item::new(0, 4) });
}

/// Versions run out of sequence numbers, then out of epochs.
#[test]
fn versions_never_carry_and_end_with_a_refusal() {
    let last = crate::epoch::EPOCH_MAX;
    let db = Database::<Occ>::builder().manual_epochs(last - 1).build().unwrap();
    let table = db.table::<Item>("rows").unwrap();
    let mut session = db.session().unwrap();
    session.run(|tx| table.insert(tx, Item::new(0, 0))).unwrap_or_else(|e: Abort| panic!("{e}"));
    let mut commits = 0;
    let end = loop {
        match session.run(|tx| table.update(tx, &0, Item::COUNT.add(1))) {
            Ok(()) => commits += 1,
            Err(abort) => break abort,
        }
    };
    // All numbers of two epochs, less the insert's.
    assert_eq!((end, commits), (Abort::VersionsExhausted, 2 * (1 << 14) - 1));
    assert_eq!((db.inner.engine.epochs.now(), db.health().epochs_used_up), (last, 1));
    // Reading goes on, and nothing is locked.
    assert_eq!(session.run(|tx| table.read(tx, &0, Item::COUNT)), Ok::<_, Abort>(commits));
}
