//! Tests of the locks, values and panics that parts of a transaction leave after their ends.

use super::entries::assert_entries_match_rows;
use super::indexed_rows::{Filed, Parcel};
use super::transactions::{ONCE, run};
use crate::engine::Protocol;
use crate::{Abort, Database, Session, Table, Tx, Whole};
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

/// A table with the rows 0 to 5.
struct Scene<P: Protocol> {
    filed: Table<Filed, P>,
    session: Session<P>,
    db: Database<P>,
}

fn row(number: u16) -> Filed {
    Parcel::new(1, number).into()
}

fn scene<P: Protocol>() -> Scene<P> {
    let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
    let filed = db.table::<Filed>("filed").unwrap();
    let mut session = db.session().unwrap();
    run(&mut session, |tx| filed.insert_many(tx, (0..6).map(row)));
    Scene { filed, session, db }
}

impl<P: Protocol> Scene<P> {
    fn assert_rows(&mut self, wanted: &[Filed]) {
        let mut rows = Vec::new();
        self.filed.for_each_quiescent(|row| rows.push(*row)).unwrap();
        rows.sort_by_key(|row| row.number);
        assert_eq!(rows, wanted, "{}", P::NAME);
        assert_entries_match_rows(&mut self.session, &self.filed);
    }
}

/// Writes and locks in every way, in parts within parts that are undone.
fn write_and_undo<P: Protocol>(filed: &Table<Filed, P>, tx: &Tx<'_, P>) -> Result<(), Abort> {
    let undone = tx.attempt(|tx| {
        filed.read_for_update(tx, (1, 0), Whole)?;
        filed.update(tx, (1, 1), (Filed::WEIGHT.add(1), Filed::COUNT.set(2)))?;
        filed.delete(tx, (1, 2))?;
        filed.insert(tx, row(2))?;
        filed.insert(tx, row(9))?;
        tx.attempt(|tx| filed.modify(tx, (1, 3), Filed::CODE, |code| *code = 1_004))
            .and(Err::<(), _>(Abort::Duplicate))
            .or_else(|abort| match abort {
                Abort::NotUnique => Ok(()),
                other => Err(other),
            })?;
        tx.attempt(|tx| {
            filed.put(tx, Filed { code: 55, ..row(5) })?;
            filed.put(tx, row(8))
        })?;
        Err::<(), _>(Abort::Indexed)
    });
    if undone == Err(Abort::Indexed) { Ok(()) } else { undone }
}

protocol_tests!(overlapping: rows_of_an_undone_part_are_unlocked_after_the_transaction);
fn rows_of_an_undone_part_are_unlocked_after_the_transaction<P: Protocol>() {
    type End<P> = fn(&Table<Filed, P>, &Tx<'_, P>) -> Result<(), Abort>;
    let ends: [End<P>; 5] = [
        |_, _| Ok(()),
        |filed, tx| filed.update(tx, (1, 1), Filed::NOTE.set(0)),
        |_, _| Err(Abort::Duplicate),
        |filed, tx| filed.insert(tx, Filed { code: 1_000, ..row(7) }),
        |_, _| resume_unwind(Box::new("by a test")),
    ];
    for end in ends {
        let mut scene = scene::<P>();
        let (filed, mut other) = (scene.filed.clone(), scene.db.session().unwrap());
        let ended = catch_unwind(AssertUnwindSafe(|| {
            scene.session.with(ONCE()).run(|tx| {
                write_and_undo(&filed, tx)?;
                end(&filed, tx)
            })
        }));
        let is_expected = |ended: &Result<(), Abort>| {
            matches!(ended, Ok(()) | Err(Abort::Duplicate | Abort::NotUnique))
        };
        assert!(ended.as_ref().map_or(true, is_expected), "{}: {ended:?}", P::NAME);
        // Another session writes and locks all these rows at the first attempt.
        run(&mut other, |tx| {
            for number in 0..6 {
                filed.read_for_update(tx, (1, number), Whole)?;
                filed.modify(tx, (1, number), Filed::CODE, |code| *code += 100)?;
            }
            filed.insert(tx, row(8))?;
            filed.insert(tx, Filed { code: 55, ..row(9) })
        });
        let changed = (0..6).map(|number| Filed { code: 1_100 + u32::from(number), ..row(number) });
        let wanted: Vec<_> = changed.chain([row(8), Filed { code: 55, ..row(9) }]).collect();
        scene.assert_rows(&wanted);
    }
}

/// Runs a function when it is dropped.
struct AtDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for AtDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

protocol_tests!(all: the_value_of_a_refused_part_is_dropped_within_the_transaction);
/// A part that fails at its end has returned a value that writes when it is dropped; that write is
/// undone, too.
fn the_value_of_a_refused_part_is_dropped_within_the_transaction<P: Protocol>() {
    let mut scene = scene::<P>();
    let filed = scene.filed.clone();
    let drops = Cell::new(0);
    run(&mut scene.session, |tx| {
        let refused = tx.attempt(|_| {
            filed.insert(tx, Filed { code: 1_001, ..row(9) })?;
            Ok(AtDrop(|| {
                drops.set(drops.get() + 1);
                filed.delete(tx, (1, 5)).unwrap();
                filed.insert(tx, row(8)).unwrap();
            }))
        });
        assert_eq!(refused.map(drop), Err(Abort::NotUnique), "{}", P::NAME);
        filed.update(tx, (1, 5), Filed::NOTE.set(3))
    });
    assert_eq!(drops.get(), 1);
    let mut wanted: Vec<_> = (0..6).map(row).collect();
    wanted[5].note = 3;
    scene.assert_rows(&wanted);
}

/// An error that panics when it is made from an outcome.
#[derive(Debug)]
struct Alarm;

impl From<Abort> for Alarm {
    fn from(abort: Abort) -> Alarm {
        if abort.is_conflict() { Alarm } else { panic!("{abort}") }
    }
}

fn assert_panics<T>(part: impl FnOnce() -> T) {
    assert!(catch_unwind(AssertUnwindSafe(part)).is_err());
}

protocol_tests!(all: a_panic_at_the_end_of_a_part_leaves_the_transaction_consistent);
fn a_panic_at_the_end_of_a_part_leaves_the_transaction_consistent<P: Protocol>() {
    let mut scene = scene::<P>();
    let filed = scene.filed.clone();
    let ran = Rc::new(RefCell::new(Vec::new()));
    let note = |number: u32| {
        let ran = ran.clone();
        move || ran.borrow_mut().push(number)
    };
    scene
        .session
        .with(ONCE())
        .run(|tx| {
            tx.on_commit(note(1));
            filed.update(tx, (1, 0), Filed::NOTE.set(1))?;
            // The part's outcome is turned into the program's error.
            assert_panics(|| {
                tx.attempt(|tx| {
                    tx.on_commit(note(2));
                    filed.insert(tx, Filed { code: 1_001, ..row(9) }).unwrap();
                    Ok::<_, Alarm>(())
                })
            });
            // An effect of an undone part is dropped.
            assert_panics(|| {
                tx.attempt(|tx| {
                    let alarm = AtDrop(|| panic!("by a test"));
                    tx.on_commit(move || drop(alarm));
                    filed.delete(tx, (1, 1)).unwrap();
                    Err::<(), _>(Abort::Indexed)
                })
            });
            // A panic goes through two parts.
            assert_panics(|| {
                tx.attempt(|tx| {
                    tx.on_commit(note(3));
                    filed.put(tx, Filed { code: 77, ..row(2) }).unwrap();
                    tx.attempt(|tx| -> Result<(), Abort> {
                        filed.delete(tx, (1, 3)).unwrap();
                        resume_unwind(Box::new("by a test"))
                    })
                })
            });
            tx.on_commit(note(4));
            tx.attempt(|tx| {
                tx.on_commit(note(5));
                let undone = tx.attempt(|tx| {
                    tx.on_commit(note(6));
                    Err::<(), _>(Abort::Indexed)
                });
                assert_eq!(undone, Err(Abort::Indexed));
                tx.on_commit(note(7));
                filed.update(tx, (1, 4), Filed::NOTE.set(4))
            })?;
            tx.on_commit(note(8));
            Ok(())
        })
        .unwrap();
    assert_eq!(*ran.borrow(), [1, 4, 5, 7, 8], "{}", P::NAME);
    let mut wanted: Vec<_> = (0..6).map(row).collect();
    (wanted[0].note, wanted[4].note) = (1, 4);
    scene.assert_rows(&wanted);
}
