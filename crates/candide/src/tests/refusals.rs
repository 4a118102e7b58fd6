//! Tests that a unique index refuses a row only for a valid reason, whatever concurrent changes of
//! the row and of the index happen.

use super::indexed_rows::{Filed, Parcel};
use super::threads::spawn;
use super::waiting::eventually;
use crate::engine::{Protocol, Stage};
use crate::protocols::{Mvcc, Mvto};
use crate::sync::{AtomicUsize, Ordering, Point, with_hook};
use crate::{Abort, Database, IndexOptions, RunOptions, Table};
use std::sync::{Arc, Mutex};
use std::thread::{self, Scope};

/// Returns a row with this number and code.
fn row(number: u16, code: u32) -> Parcel {
    Parcel { code, ..Parcel::new(1, number) }
}

/// Makes a table of rows 1 and 2 with codes 100 and 200.
fn two_rows<P: Protocol>() -> (Database<P>, Table<Parcel, P>) {
    let db = Database::<P>::builder().build().unwrap();
    let parcels = db.table::<Parcel>("parcels").unwrap();
    assert_eq!(db.run(|tx| parcels.insert_many(tx, [row(1, 100), row(2, 200)])), Ok(()));
    (db, parcels)
}

/// The progress of threads that wait for each other.
#[derive(Default)]
pub(super) struct Step(AtomicUsize);

impl Step {
    /// Raises the progress to `step`. A repeated attempt does not lower the progress.
    pub(super) fn reach(&self, step: usize) {
        self.0.fetch_max(step, Ordering::SeqCst);
    }

    pub(super) fn has_reached(&self, step: usize) -> bool {
        self.0.load(Ordering::SeqCst) >= step
    }

    pub(super) fn wait_for(&self, step: usize) {
        wait_until(|| self.has_reached(step));
    }
}

/// Returns a hook that reports when a change of the table's first index waits for transactions. The
/// hook reports step 1 while the index is enforced, and step 2 while it is not. The change does not
/// wait for transactions that begin after the report.
pub(super) fn reporter_of_waits<P: Protocol>(
    parcels: &Table<Parcel, P>,
    waits: &Arc<Step>,
) -> impl FnMut(Point) + 'static {
    let (parcels, waits) = (parcels.clone(), waits.clone());
    move |point| {
        let indexes = &parcels.core().indexes;
        if point == Point::Awaiting
            && let Some(index) = indexes.get(0)
        {
            // The change waits for every transaction of the epoch in which its wait began. The
            // epoch of the wait may be the current one, since a pass may have begun it before the
            // wait and ended during the wait.
            let epochs = &parcels.inner().engine.epochs;
            epochs.advance_past(epochs.now());
            waits.reach(if indexes.is_at(index, Stage::Enforced) { 1 } else { 2 });
        }
    }
}

/// Waits until `is_so` returns `true`. Fails if it never does.
pub(super) fn wait_until(is_so: impl Fn() -> bool) {
    eventually("another thread's step", is_so);
}

protocol_tests!(overlapping: a_row_is_not_refused_for_a_key_of_its_own);
fn a_row_is_not_refused_for_a_key_of_its_own<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    let filed = db.table::<Filed>("filed").unwrap();
    let (mut first, mut second) = (db.session().unwrap(), db.session().unwrap());
    let (own, outcomes) = (filed.clone(), Arc::new(Mutex::new(Vec::new())));
    let noted = outcomes.clone();
    // The commit installs the entries one by one, and the row before or after them.
    let hook = move |point| {
        if point == Point::Installing {
            let once = RunOptions::new().attempts_max(1);
            let inserted = second.with(once).run(|tx| own.insert(tx, Parcel::new(1, 7).into()));
            noted.lock().unwrap().push(inserted);
        }
    };
    let inserted = with_hook(hook, || first.run(|tx| filed.insert(tx, Parcel::new(1, 7).into())));
    assert_eq!(inserted, Ok(()));
    let outcomes = outcomes.lock().unwrap();
    assert!(
        outcomes.len() > 3 && !outcomes.contains(&Err(Abort::NotUnique)),
        "{}: {outcomes:?}",
        P::NAME
    );
}

#[test]
fn an_index_entry_older_than_the_build_refuses_no_row() {
    refuses_no_row::<Mvcc>();
}

#[test]
fn an_index_entry_older_than_the_build_refuses_no_row_of_an_earlier_timestamp() {
    refuses_no_row::<Mvto>();
}

fn refuses_no_row<P: Protocol>() {
    let (db, parcels) = two_rows::<P>();
    let indexes = &parcels.core().indexes;
    let is_enforced = || indexes.get(0).is_some_and(|index| indexes.is_at(index, Stage::Enforced));
    let step = Arc::new(Step::default());
    thread::scope(|scope| {
        // Two transactions write row 1: the first began before the index was added, the second
        // after. The first transaction commits last, so the entry of the second, for code 101, is
        // wrong.
        spawn(scope, || {
            let put = db.session().unwrap().run(|tx| {
                parcels.put(tx, row(1, 102))?;
                step.reach(1);
                step.wait_for(2);
                Ok(())
            });
            assert_eq!(put, Ok(()));
        });
        spawn(scope, || {
            step.wait_for(1);
            wait_until(|| indexes.kept().next().is_some());
            let changed = db
                .session()
                .unwrap()
                .run(|tx| parcels.modify(tx, &(1, 1), Parcel::CODE, |code| *code = 101));
            assert_eq!(changed, Ok(()));
            step.reach(2);
        });
        // This transaction begins before the wrong entry is removed, and cannot move on in time
        // afterwards.
        spawn(scope, || {
            step.wait_for(3);
            let (mut session, mut other) = (db.session().unwrap(), db.session().unwrap());
            let inserted = session.run(|tx| {
                parcels.read(tx, &(1, 2), Parcel::NOTE)?;
                if tx.attempt_number() == 1 {
                    other.run(|tx| parcels.update(tx, &(1, 2), Parcel::NOTE.set(5)))?;
                    step.reach(4);
                    wait_until(is_enforced);
                }
                // As a part: its outcome is validated as of the time at which this attempt reads.
                tx.attempt(|tx| parcels.insert(tx, row(3, 101)))
            });
            assert_eq!(inserted, Ok(()), "no row has this code");
        });
        step.wait_for(1);
        let (own, mut is_first) = (step.clone(), true);
        let hook = move |point| {
            // The builder is about to remove the wrong entry.
            if point == Point::Unlocked && std::mem::take(&mut is_first) {
                own.reach(3);
                own.wait_for(4);
            }
        };
        let options = IndexOptions::hashed().unique();
        let made =
            with_hook(hook, || parcels.create_index("by_code", Parcel::CODE, options).map(drop));
        assert!(made.is_ok(), "{made:?}");
    });
}

/// Inserts a row with the code of row 2, which is refused. Then waits, and lets row 2 take another
/// code, if that is possible. Asserts that the refused transaction sees no state in which the
/// refusal was wrong. Other threads wait until `refused` has been called. `waits` is the progress
/// of the change that drops the index.
fn assert_refused_with_reason<P: Protocol>(
    db: &Database<P>,
    parcels: &Table<Parcel, P>,
    waits: &Step,
    refused: impl Fn(),
) {
    let (mut session, mut other) = (db.session().unwrap(), db.session().unwrap());
    let (inserted, codes) = session
        .run(|tx| {
            let inserted = tx.attempt(|tx| parcels.insert(tx, row(3, 200)));
            if tx.attempt_number() == 1 {
                refused();
                // If the change of the index does not wait, the index is no longer maintained.
                wait_until(|| waits.has_reached(2) || parcels.core().indexes.kept().count() == 0);
                match other.run(|tx| parcels.update(tx, &(1, 2), Parcel::CODE.set(201))) {
                    Ok(()) | Err(Abort::Indexed) => {}
                    Err(abort) => return Err(abort),
                }
            }
            let codes = parcels
                .iter(tx, Parcel::CODE)
                .map(|row| Ok(row?.1))
                .collect::<Result<Vec<_>, Abort>>()?;
            Ok((inserted, codes))
        })
        .unwrap();
    assert!(inserted.is_ok() || codes.contains(&200), "{}: {inserted:?} {codes:?}", P::NAME);
}

/// Drops the index of the codes on another thread. When the index has become unreadable, the drop
/// waits for a transaction that has read row `number` and ends at step 2 of `step`. The drop does
/// not wait for transactions that begin then. [`reporter_of_waits`] reports to `waits`.
pub(super) fn drop_slowly<'s, P: Protocol>(
    scope: &'s Scope<'s, '_>,
    db: &'s Database<P>,
    parcels: &'s Table<Parcel, P>,
    number: u16,
    (step, waits): (&'s Step, &'s Arc<Step>),
) {
    spawn(scope, move || {
        let read = db.session().unwrap().run(|tx| {
            parcels.read(tx, &(1, number), Parcel::NOTE)?;
            step.reach(1);
            step.wait_for(2);
            Ok(())
        });
        assert_eq!(read, Ok(()));
    });
    spawn(scope, || {
        step.wait_for(1);
        with_hook(reporter_of_waits(parcels, waits), || parcels.drop_index("by_code")).unwrap();
    });
}

protocol_tests!(overlapping: an_index_that_is_dropped_is_kept_for_writers_it_has_refused);
fn an_index_that_is_dropped_is_kept_for_writers_it_has_refused<P: Protocol>() {
    let (db, parcels) = two_rows::<P>();
    let by_code =
        parcels.create_index("by_code", Parcel::CODE, IndexOptions::hashed().unique()).unwrap();
    let (step, waits) = (Step::default(), Arc::new(Step::default()));
    thread::scope(|scope| {
        drop_slowly(scope, &db, &parcels, 1, (&step, &waits));
        waits.wait_for(1);
        assert_eq!(db.run(|tx| by_code.get(tx, 100, Parcel::CODE)), Err(Abort::NoIndex));
        assert_refused_with_reason(&db, &parcels, &waits, || step.reach(2));
    });
}

protocol_tests!(overlapping: an_index_that_could_not_be_made_is_kept_for_writers_it_has_refused);
fn an_index_that_could_not_be_made_is_kept_for_writers_it_has_refused<P: Protocol>() {
    let (db, parcels) = two_rows::<P>();
    let rows = (10..300).map(|number| row(number, 1_000 + u32::from(number)));
    assert_eq!(db.run(|tx| parcels.insert_many(tx, rows.clone())), Ok(()));
    // The last row to get its entry has the code of another row.
    assert_eq!(db.run(|tx| parcels.insert(tx, row(300, 1_299))), Ok(()));
    let (indexes, step) = (&parcels.core().indexes, Arc::new(Step::default()));
    let waits = Arc::new(Step::default());
    thread::scope(|scope| {
        let own = step.clone();
        spawn(scope, || {
            let (mut batches, mut reporter_of_waits) = (0, reporter_of_waits(&parcels, &waits));
            let hook = move |point| {
                // The hook does nothing during the wait before the index is enforced.
                if batches >= 4 {
                    reporter_of_waits(point);
                }
                // The index is enforced, and all rows but the last ones have entries.
                if point == Point::Released {
                    batches += 1;
                    if batches == 4 {
                        own.reach(1);
                        own.wait_for(2);
                    }
                }
            };
            let options = IndexOptions::hashed().unique();
            let made = with_hook(hook, || {
                parcels.create_index("by_code", Parcel::CODE, options).map(drop)
            });
            assert!(matches!(made, Err(crate::Error::NotUnique { .. })), "{made:?}");
        });
        step.wait_for(1);
        let index = indexes.get(0).expect("it is being made");
        assert!(indexes.is_at(index, Stage::Enforced));
        assert_refused_with_reason(&db, &parcels, &waits, || step.reach(2));
    });
    assert_eq!(indexes.kept().count(), 0, "there is none afterwards");
}
