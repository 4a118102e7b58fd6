//! Tests of the layers above the protocols: of their calls of the user's code, of indexes that come
//! and go, and of a protocol's serial order.

use super::indexed_rows::{Filed, Parcel};
use super::refusals::{Step, drop_slowly, reporter_of_waits, wait_until};
use super::threads::spawn;
use crate::engine::{Protocol, Stage};
use crate::schema::KeyColumn;
use crate::sync::size::share;
use crate::sync::{Point, with_hook};
use crate::{Abort, Database, Index, IndexOptions, Ordered, Table, TableOptions};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread;

protocol_tests!(all: a_row_that_goes_while_it_is_modified_leaves_no_entries);
/// A row is deleted while it is being modified.
fn a_row_that_goes_while_it_is_modified_leaves_no_entries<P: Protocol>() {
    let db = Database::<P>::builder().passing_epochs().build().unwrap();
    let filed = db.table::<Filed>("filed").unwrap();
    assert_eq!(db.run(|tx| filed.insert(tx, Parcel::new(1, 7).into())), Ok(()));
    let mut session = db.session().unwrap();
    let changed = session.run(|tx| {
        let changed = filed.modify(tx, &(1, 7), Filed::CODE, |code| {
            filed.delete(tx, &(1, 7)).unwrap();
            *code = 5;
        });
        assert_eq!(changed, Err(Abort::NotFound), "{}", P::NAME);
        Ok(())
    });
    assert_eq!(changed, Ok(()));
    let options = crate::RunOptions::new().attempts_max(3);
    let found = session.with(options).run(|tx| filed.index(Filed::BY_CODE).get(tx, 5, Filed::NOTE));
    assert_eq!(found, Ok(None), "{}", P::NAME);
}

/// A writer that calls back at the first write after the beginning of the stream.
struct Slow<'a> {
    bytes: usize,
    meet: Option<&'a dyn Fn()>,
}

impl std::io::Write for Slow<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.bytes += bytes.len();
        if self.bytes > 1_000
            && let Some(meet) = self.meet.take()
        {
            meet();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_transaction_that_ends_during_an_export_stays_visible_until_counted() {
    let db = Database::new();
    let parcels = db.table::<Parcel>("parcels").unwrap();
    let rows = (1..=2_000).map(|number| Parcel::new(1, number));
    assert_eq!(db.run(|tx| parcels.insert_many(tx, rows.clone())), Ok(()));
    let step = Arc::new(Step::default());
    thread::scope(|scope| {
        let meet = || {
            let own = step.clone();
            spawn(scope, || {
                let mut session = db.session().unwrap();
                let hook = move |point| {
                    if point == Point::Unpinned {
                        own.reach(1);
                        own.wait_for(2);
                    }
                };
                let note = |tx: &crate::Tx<'_>, number| {
                    parcels.update(tx, &(1, number), Parcel::NOTE.set(1))
                };
                let changed = with_hook(hook, || {
                    session.run(|tx| note(tx, 1).and_then(|()| note(tx, 2_000)))
                });
                assert_eq!(changed, Ok(()));
            });
            step.wait_for(1);
        };
        let exported = parcels.export(&mut Slow { bytes: 0, meet: Some(&meet) });
        step.reach(2);
        assert!(
            exported.is_err(),
            "it has row 1 from before and row 2000 from after: {exported:?}"
        );
    });
}

protocol_tests!(overlapping: a_write_that_an_index_refuses_observes_nothing);
/// A write in a read-only transaction is refused. The refusal does not depend on the existence of
/// the row.
fn a_write_that_an_index_refuses_observes_nothing<P: Protocol>() {
    let db = Database::<P>::builder().passing_epochs().build().unwrap();
    let parcels = db.table::<Parcel>("parcels").unwrap();
    assert_eq!(db.run(|tx| parcels.insert(tx, Parcel::new(1, 7))), Ok(()));
    let (mut session, mut other) = (db.session().unwrap(), db.session().unwrap());
    let options = crate::RunOptions::new().read_only();
    let seen = session.with(options).run(|tx| {
        let deleted = parcels.delete_if_present(tx, &(1, 7));
        if tx.attempt_number() == 1 {
            other.run(|tx| {
                parcels.delete(tx, &(1, 7))?;
                parcels.insert(tx, Parcel::new(1, 8))
            })?;
        }
        Ok((deleted, parcels.get(tx, &(1, 8), Parcel::NUMBER)?))
    });
    assert_eq!(seen.unwrap().0, Err(Abort::ReadOnly), "{}", P::NAME);
    let elsewhere = session.with(options).run(|tx| parcels.delete_if_present(tx, &(1, 9)));
    assert_eq!(elsewhere, Err(Abort::ReadOnly), "{}: whether or not it is there", P::NAME);
    for number in [8, 9] {
        let held = session
            .with(options)
            .run(|tx| parcels.get_for_update(tx, &(1, number), Parcel::NUMBER).map(drop));
        assert_eq!(held, Err(Abort::ReadOnly), "{}: whether or not it is there", P::NAME);
    }
}

protocol_tests!(overlapping: a_reader_by_a_new_index_is_ordered_after_its_creation);
/// A transaction begins while an index is being filled. Another transaction changes two rows: the
/// row that the first one reads, and an indexed column of a row without an entry. Then the first
/// transaction reads the index.
fn a_reader_by_a_new_index_is_ordered_after_its_creation<P: Protocol>() {
    let db = Database::<P>::builder().passing_epochs().build().unwrap();
    let parcels = db.table::<Parcel>("parcels").unwrap();
    let rows = (1..=100).map(|number| Parcel::new(1, number));
    assert_eq!(db.run(|tx| parcels.insert_many(tx, rows.clone())), Ok(()));
    let (indexes, step) = (&parcels.core().indexes, Arc::new(Step::default()));
    let is_readable = || indexes.get(0).is_some_and(|index| indexes.is_at(index, Stage::Readable));
    let by_code = || Index::<Parcel, u32, Ordered, P>::new(parcels.clone(), 0);
    thread::scope(|scope| {
        let own = step.clone();
        spawn(scope, || {
            let hook = move |point| {
                // The first rows have entries, and the last rows have none yet.
                if point == Point::Released {
                    own.reach(1);
                    own.wait_for(2);
                }
            };
            let options = IndexOptions::ordered();
            with_hook(hook, || parcels.create_index("by_code", Parcel::CODE, options).map(drop))
                .unwrap();
        });
        step.wait_for(1);
        let (mut session, mut other) = (db.session().unwrap(), db.session().unwrap());
        let (note, found) = session
            .run(|tx| {
                let note = parcels.read(tx, &(1, 1), Parcel::NOTE)?;
                if tx.attempt_number() == 1 {
                    other.run(|tx| {
                        parcels.update(tx, &(1, 1), Parcel::NOTE.set(1))?;
                        parcels.modify(tx, &(1, 100), Parcel::CODE, |code| *code = 7)
                    })?;
                    step.reach(2);
                    wait_until(is_readable);
                }
                let found = by_code().get(tx, 1_100, Parcel::NUMBER)?;
                Ok((note, found))
            })
            .unwrap();
        // The same transaction has changed both values.
        assert!(
            [(0, Some(100)), (1, None)].contains(&(note, found)),
            "{}: {note} {found:?}",
            P::NAME
        );
    });
}

/// Raises the read timestamp of row 1.
fn read_across<P: Protocol>(db: &Database<P>, parcels: &Table<Parcel, P>) {
    for note in 0..50 {
        assert_eq!(db.run(|tx| parcels.update(tx, &(1, 3), Parcel::NOTE.set(note))), Ok(()));
    }
    let late = db.run(|tx| {
        parcels.read(tx, &(1, 1), Parcel::NOTE)?;
        parcels.update(tx, &(1, 3), Parcel::NOTE.set(50))
    });
    assert_eq!(late, Ok(()));
}

/// Runs a transaction that is refused because row 2 has its code. The transaction then waits, and
/// then changes row 1.
fn write_is_refused<P: Protocol>(
    db: &Database<P>,
    parcels: &Table<Parcel, P>,
    step: &Step,
) -> Result<Result<(), Abort>, Abort> {
    db.session().unwrap().run(|tx| {
        let twin = Parcel { code: 1_002, ..Parcel::new(1, 999) };
        let inserted = tx.attempt(|tx| parcels.insert(tx, twin));
        if tx.attempt_number() == 1 {
            step.reach(2);
            step.wait_for(4);
        }
        parcels.update(tx, &(1, 1), Parcel::NOTE.set(1))?;
        Ok(inserted)
    })
}

/// Reads row 1 when the index is no longer enforced and the drop of the index still waits for the
/// refused transaction. Reads row 2 when the index has been dropped and row 2 has another code.
fn read_between_two_writes<P: Protocol>(
    db: &Database<P>,
    parcels: &Table<Parcel, P>,
    step: &Step,
    waits: &Step,
) -> (u64, u32) {
    step.wait_for(2);
    waits.wait_for(2);
    let (mut session, mut other) = (db.session().unwrap(), db.session().unwrap());
    let seen = session.run(|tx| {
        let note = parcels.read(tx, &(1, 1), Parcel::NOTE)?;
        if !step.has_reached(4) {
            step.reach(4);
            // The index has been dropped, but its entries still exist.
            wait_until(|| parcels.core().indexes.kept().count() == 0);
            other.run(|tx| parcels.update(tx, &(1, 2), Parcel::CODE.set(7)))?;
        }
        let code = parcels.read(tx, &(1, 2), Parcel::CODE)?;
        Ok((note, code))
    });
    seen.unwrap()
}

/// Asserts that the refused transaction comes before the change of the code: a reader that has seen
/// the change of the code has also seen the refused transaction's update.
fn assert_in_order<P: Protocol>(refused: Result<Result<(), Abort>, Abort>, seen: (u64, u32)) {
    assert!(
        !(refused == Ok(Err(Abort::NotUnique)) && seen == (0, 7)),
        "{}: {refused:?} {seen:?}",
        P::NAME
    );
}

protocol_tests!(
    overlapping: a_writer_refused_by_a_dropped_index_precedes_later_changes_of_the_key
);
/// Two transactions are about to commit. A unique index has refused the first; the second has read
/// the row that the first is about to change. Then the index is dropped, and the row that caused
/// the refusal changes.
fn a_writer_refused_by_a_dropped_index_precedes_later_changes_of_the_key<P: Protocol>() {
    let db = Database::<P>::builder().passing_epochs().build().unwrap();
    let parcels = db.table::<Parcel>("parcels").unwrap();
    let rows = (1..=3).map(|number| Parcel::new(1, number));
    assert_eq!(db.run(|tx| parcels.insert_many(tx, rows.clone())), Ok(()));
    let by_code =
        parcels.create_index("by_code", Parcel::CODE, IndexOptions::hashed().unique()).unwrap();
    read_across(&db, &parcels);
    let (step, waits) = (Step::default(), Arc::new(Step::default()));
    thread::scope(|scope| {
        drop_slowly(scope, &db, &parcels, 3, (&step, &waits));
        let refused = spawn(scope, || {
            waits.wait_for(1);
            assert_eq!(db.run(|tx| by_code.get(tx, 1_001, Parcel::CODE)), Err(Abort::NoIndex));
            write_is_refused(&db, &parcels, &step)
        });
        let seen = read_between_two_writes(&db, &parcels, &step, &waits);
        assert_in_order::<P>(refused.join().unwrap(), seen);
    });
}

thread_local! {
    /// A callback that runs when the key of the last row is computed.
    static AT_LAST: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

const LAST: u16 = 300;

/// A part of an index key. The part's value is equal for all rows.
const NOTHING: KeyColumn<Parcel, u16> = KeyColumn::new("nothing", |&(_, number)| {
    if number == LAST
        && let Some(act) = AT_LAST.take()
    {
        act();
    }
    0
});

protocol_tests!(
    overlapping: a_writer_refused_by_an_unfinished_index_precedes_later_changes_of_the_key
);
/// The scene of [`RefusedByADroppedIndex`], but with an index that is never completed, since the
/// user's code panics at the last key.
fn a_writer_refused_by_an_unfinished_index_precedes_later_changes_of_the_key<P: Protocol>() {
    let db = Database::<P>::builder().passing_epochs().build().unwrap();
    let parcels = db.table_with::<Parcel>("parcels", TableOptions::default().ordered()).unwrap();
    let rows = (1..=LAST).map(|number| Parcel::new(1, number));
    assert_eq!(db.run(|tx| parcels.insert_many(tx, rows.clone())), Ok(()));
    read_across(&db, &parcels);
    let (step, waits) = (Arc::new(Step::default()), Arc::new(Step::default()));
    thread::scope(|scope| {
        let (parcels, db, step, waits) = (&parcels, &db, &step, &waits);
        spawn(scope, move || {
            let at_last = step.clone();
            AT_LAST.set(Some(Box::new(move || {
                at_last.reach(1);
                at_last.wait_for(2);
                resume_unwind(Box::new("on purpose"))
            })));
            let options = IndexOptions::ordered().unique();
            let create =
                || parcels.create_index("by_code", (Parcel::CODE, NOTHING), options).map(drop);
            let (begun, mut reporter_of_waits) = (step.clone(), reporter_of_waits(parcels, waits));
            let hook = move |point| {
                // The hook does nothing during the wait before the index is enforced.
                if begun.has_reached(1) {
                    reporter_of_waits(point);
                }
            };
            assert!(with_hook(hook, || catch_unwind(AssertUnwindSafe(create))).is_err());
        });
        let refused = spawn(scope, move || {
            step.wait_for(1);
            write_is_refused(db, parcels, step)
        });
        let seen = read_between_two_writes(db, parcels, step, waits);
        assert_in_order::<P>(refused.join().unwrap(), seen);
    });
}

protocol_tests!(overlapping: one_thread_alone_with_indexes_meets_no_conflict);
/// One thread alone runs every kind of operation, and meets no conflict.
fn one_thread_alone_with_indexes_meets_no_conflict<P: Protocol>() {
    // There is no advancer: it would collect the garbage of a session whose thread is not
    // scheduled.
    let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
    let (parcels, filed) =
        (db.table::<Parcel>("parcels").unwrap(), db.table::<Filed>("filed").unwrap());
    let by_place = filed.index(Filed::BY_PLACE);
    let mut session = db.session().unwrap();
    let mut seed = 7_u64;
    let mut below = move |limit: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % limit
    };
    for turn in 0..share(3_000) {
        if turn % 16 == 0 {
            db.inner.engine.epochs.pass();
        }
        let steps: Vec<[u64; 3]> = (0..1 + below(12))
            .map(|_| [below(9), below(4), below((100 + turn).min(999))])
            .collect();
        let done = session.with(crate::RunOptions::new().attempts_max(1)).run(|tx| {
            for &[what, district, number] in &steps {
                let (district, number) = (district as u8, number as u16);
                let key = (district, number);
                let row = Parcel { shelf: (number % 7) as u8, ..Parcel::new(district, number) };
                match what {
                    0 => drop(parcels.get(tx, &key, Parcel::NOTE)?),
                    1 => drop(filed.get(tx, &key, Filed::NOTE)?),
                    2 => drop(parcels.insert_if_absent(tx, row)?),
                    3 => drop(filed.insert_if_absent(tx, row.into())?),
                    4 => drop(parcels.delete_if_present(tx, &key)?),
                    5 => drop(filed.delete_if_present(tx, &key)?),
                    6 => drop(filed.index(Filed::BY_CODE).get(tx, &row.code, Filed::NOTE)?),
                    7 => {
                        let place = (row.shelf, row.owner);
                        let rows = by_place.rows(tx, &place, Filed::NOTE);
                        drop(rows.take(20).collect::<Result<Vec<_>, _>>()?);
                    }
                    _ => {
                        let rows = parcels.scan(tx, key..(district, number + 30), Parcel::NOTE);
                        drop(rows.collect::<Result<Vec<_>, _>>()?);
                    }
                }
            }
            Ok(())
        });
        assert_eq!(done, Ok(()), "{}: turn {turn}, {:?}", P::NAME, session.last_conflict());
    }
}

protocol_tests!(overlapping: a_reader_by_a_new_index_is_ordered_after_writers_that_did_not_know_it);
/// A transaction that began before the index deletes a row before the builder makes the row's
/// entry. The row is the only one in the last batch.
fn a_reader_by_a_new_index_is_ordered_after_writers_that_did_not_know_it<P: Protocol>() {
    let db = Database::<P>::builder().passing_epochs().build().unwrap();
    let parcels = db.table::<Parcel>("parcels").unwrap();
    let rows = (1..=129).map(|number| Parcel::new(1, number));
    assert_eq!(db.run(|tx| parcels.insert_many(tx, rows.clone())), Ok(()));
    let (indexes, step, waits) =
        (&parcels.core().indexes, Step::default(), Arc::new(Step::default()));
    let is_at = |stage| indexes.get(0).is_some_and(|index| indexes.is_at(index, stage));
    thread::scope(|scope| {
        spawn(scope, || {
            let deleted = db.session().unwrap().run(|tx| {
                parcels.delete(tx, &(1, 129))?;
                parcels.update(tx, &(1, 1), Parcel::NOTE.set(1))?;
                step.reach(1);
                step.wait_for(2);
                Ok(())
            });
            assert_eq!(deleted, Ok(()));
        });
        spawn(scope, || {
            step.wait_for(1);
            let options = IndexOptions::ordered();
            let create = || parcels.create_index("by_code", Parcel::CODE, options).map(drop);
            with_hook(reporter_of_waits(&parcels, &waits), create).unwrap();
        });
        // The builder waits for the transaction that began before the index. The builder does not
        // wait for transactions that begin now.
        waits.wait_for(2);
        assert!(is_at(Stage::Kept));
        let by_code = Index::<Parcel, u32, Ordered, P>::new(parcels.clone(), 0);
        let (note, found) = db
            .session()
            .unwrap()
            .run(|tx| {
                let note = parcels.read(tx, &(1, 1), Parcel::NOTE)?;
                step.reach(2);
                wait_until(|| is_at(Stage::Readable));
                Ok((note, by_code.get(tx, 1_129, Parcel::NUMBER)?))
            })
            .unwrap();
        assert!(
            [(0, Some(129)), (1, None)].contains(&(note, found)),
            "{}: {note} {found:?}",
            P::NAME
        );
    });
}
