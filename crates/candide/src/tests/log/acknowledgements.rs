//! Tests that no result is acknowledged before all commits that it rests on are durable.

use super::super::indexed_rows::{Filed, Parcel};
use super::super::rows::{Item, OfCount};
use super::super::transactions::run;
use super::disk::Logged;
use crate::engine::{Protocol, Versioned};
use crate::index::Found;
use crate::protocols::Occ;
use crate::schema::Refused;
use crate::tests::properties;
use crate::{Abort, Database, Session, Table, TableOptions, Tx};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A database with a writing session and a looking session, which are the same session if the
/// protocol allows no second one.
struct Scene<P: Protocol> {
    logged: Logged<P>,
    items: Table<Item, P>,
    writer: Session<P>,
    other: Option<Session<P>>,
}

impl<P: Protocol> Scene<P> {
    fn new() -> Scene<P> {
        let logged = Logged::new(Database::<P>::builder().manual_epochs(5));
        let items = TableOptions::default().ordered();
        let items = logged.db.table_with::<Item>("items", items).unwrap();
        let writer = logged.db.session().unwrap();
        let other = (!properties::<P>().one_session).then(|| logged.db.session().unwrap());
        Scene { logged, items, writer, other }
    }

    /// Runs a transaction that commits, and returns its stamp. The stamp is above all those before.
    fn write(
        &mut self,
        mut body: impl FnMut(&Table<Item, P>, &Tx<'_, P>) -> Result<(), Abort>,
    ) -> u64 {
        self.logged.db.inner.engine.epochs.pass();
        self.logged.settle();
        let items = &self.items;
        run(&mut self.writer, |tx| body(items, tx));
        let stamp = self.writer.rests_on();
        assert!(self.logged.durable() < stamp, "{}: durable at once", P::NAME);
        stamp
    }

    /// Runs a transaction of the session that looks. Returns its end, and the stamp on which that
    /// rests.
    fn look<T>(
        &mut self,
        mut body: impl FnMut(&Table<Item, P>, &Tx<'_, P>) -> Result<T, Abort>,
    ) -> (Result<T, Abort>, u64) {
        let (session, items) = (self.other.as_mut().unwrap_or(&mut self.writer), &self.items);
        let run = || session.run(|tx| body(items, tx));
        let ended = catch_unwind(AssertUnwindSafe(run));
        let ended = ended.unwrap_or_else(|panic| {
            assert!(panic.is::<Deliberate>(), "the panic is ours");
            Err(Abort::Nested)
        });
        (ended, session.rests_on())
    }

    /// Lets epochs pass until the record of a deleted row has been removed.
    fn bury(&mut self, id: u64) {
        for _ in 0..20 {
            self.logged.db.inner.engine.epochs.pass();
            run(&mut self.writer, |_| Ok(()));
        }
        let found = self.items.core().index.find(&[id]);
        assert!(!matches!(found, Found::Record(_)), "{}: the record is there", P::NAME);
    }
}

/// The payload of a panic.
#[derive(Debug)]
struct Deliberate;

/// Panics if the count is not zero.
fn breaks(count: &mut i64) -> Result<(), Refused> {
    if *count != 0 { resume_unwind(Box::new(Deliberate)) } else { Ok(()) }
}

/// A transaction that looks, and its end.
type Look<P> = (fn(&Table<Item, P>, &Tx<'_, P>) -> Result<(), Abort>, Result<(), Abort>);

protocol_tests!(all: every_outcome_waits_for_the_commits_that_it_shows);
protocol_tests!(
    erased: every_outcome_waits_for_the_commits_that_it_shows_under_erased_protocols
        = every_outcome_waits_for_the_commits_that_it_shows()
);
/// Row 1 has count 1 since a commit that is not durable. All results depend on that commit.
fn every_outcome_waits_for_the_commits_that_it_shows<P: Protocol>() {
    let looks: [Look<P>; 13] = [
        (|items, tx| items.get(tx, 1, Item::COUNT).map(drop), Ok(())),
        (|items, tx| items.get_for_update(tx, 1, Item::COUNT).map(drop), Ok(())),
        (|items, tx| items.iter(tx, Item::COUNT).for_each(drop), Ok(())),
        (|items, tx| items.insert(tx, Item::new(1, 0)), Err(Abort::Duplicate)),
        (|items, tx| items.insert_if_absent(tx, Item::new(1, 0)).map(drop), Ok(())),
        // The closure's own error and panic, after a read.
        (|items, tx| items.get(tx, 1, Item::COUNT).and(Err(Abort::NotFound)), Err(Abort::NotFound)),
        (
            |items, tx| {
                items.get(tx, 1, Item::COUNT)?;
                resume_unwind(Box::new(Deliberate))
            },
            Err(Abort::Nested),
        ),
        // An error after an update that has assumed the row.
        (
            |items, tx| items.update(tx, 1, Item::COUNT.add(1)).and(Err(Abort::NotFound)),
            Err(Abort::NotFound),
        ),
        // The commit finds these outcomes.
        (|items, tx| items.update(tx, 1, Item::COUNT.sub(5).at_least(0)), Err(Abort::Guard)),
        (|items, tx| items.update(tx, 1, Item::COUNT.sub(i64::MIN)), Err(Abort::Overflow)),
        (|items, tx| items.update_with(tx, 1, OfCount(breaks)), Err(Abort::Nested)),
        // A commit that leaves no record.
        (
            |items, tx| {
                items.get(tx, 1, Item::COUNT)?;
                items.insert(tx, Item::new(9, 0))?;
                items.delete(tx, 9)
            },
            Ok(()),
        ),
        // A commit that writes something else.
        (
            |items, tx| {
                let count = items.read(tx, 1, Item::COUNT)?;
                items.put(tx, Item::new(8, count))
            },
            Ok(()),
        ),
    ];
    for (number, (look, end)) in looks.into_iter().enumerate() {
        let mut scene = Scene::<P>::new();
        // The looking session has its own results, which are acknowledged.
        assert_eq!(scene.look(|items, tx| items.insert(tx, Item::new(50, 0))).0, Ok(()));
        scene.write(|items, tx| items.insert(tx, Item::new(1, 0)));
        let stamp = scene.write(|items, tx| items.update(tx, 1, Item::COUNT.set(1)));
        let (ended, rests_on) = scene.look(look);
        assert_eq!(ended, end, "{}: number {number}", P::NAME);
        assert!(stamp <= rests_on, "{}: number {number} is acknowledged early", P::NAME);
        scene.logged.settle();
        assert!(rests_on <= scene.logged.durable(), "{}: number {number} waits", P::NAME);
    }
}

protocol_tests!(all: the_absence_of_a_row_waits_for_its_delete);
fn the_absence_of_a_row_waits_for_its_delete<P: Protocol>() {
    let looks: [Look<P>; 6] = [
        (|items, tx| items.get(tx, 1, Item::COUNT).map(drop), Ok(())),
        (|items, tx| items.read(tx, 1, Item::COUNT).map(drop), Err(Abort::NotFound)),
        (|items, tx| items.get_for_update(tx, 1, Item::COUNT).map(drop), Ok(())),
        (|items, tx| items.iter(tx, ()).for_each(drop), Ok(())),
        (|items, tx| items.delete_if_present(tx, 1).map(drop), Ok(())),
        (|items, tx| items.update(tx, 1, Item::COUNT.add(1)), Err(Abort::NotFound)),
    ];
    for (number, (look, end)) in looks.into_iter().enumerate() {
        for is_buried in [false, true] {
            let mut scene = Scene::<P>::new();
            scene.write(|items, tx| items.insert(tx, Item::new(1, 0)));
            let stamp = scene.write(|items, tx| items.delete(tx, 1));
            if is_buried {
                scene.bury(1);
            }
            let (ended, rests_on) = scene.look(look);
            assert_eq!(ended, end, "{}: number {number}", P::NAME);
            assert!(
                stamp <= rests_on,
                "{}: number {number} is acknowledged early, buried: {is_buried}",
                P::NAME
            );
        }
    }
}

protocol_tests!(all: a_refusal_by_an_index_waits_for_the_delete_of_the_row);
/// An insert finds no row with its key, and then another row with its code. Nothing is staged, and
/// nothing but the other row is read.
fn a_refusal_by_an_index_waits_for_the_delete_of_the_row<P: Protocol>() {
    for opaque in [true, false] {
        let logged = Logged::new(Database::<P>::builder().manual_epochs(5).opaque(opaque));
        let filed = logged.db.table::<Filed>("filed").unwrap();
        let mut session = logged.db.session().unwrap();
        let row = |number, code| Filed { code, ..Parcel::new(1, number).into() };
        run(&mut session, |tx| filed.insert(tx, row(1, 10)));
        run(&mut session, |tx| filed.insert(tx, row(2, 20)));
        logged.db.inner.engine.epochs.pass();
        logged.settle();
        run(&mut session, |tx| filed.delete(tx, &(1, 2)));
        let stamp = session.rests_on();
        assert!(logged.durable() < stamp);
        let insert = |tx: &Tx<'_, P>| tx.attempt(|tx| filed.insert(tx, row(2, 10)));
        let refused = run(&mut session, |tx| match insert(tx) {
            Err(abort @ (Abort::NotUnique | Abort::Duplicate)) => Ok(abort),
            other => panic!("{other:?}"),
        });
        assert_eq!(refused, Abort::NotUnique, "{}: the key was free", P::NAME);
        assert!(stamp <= session.rests_on(), "{}: opaque {opaque}", P::NAME);
    }
}

/// Rows that were durable when they were read need no further wait, though other commits are not
/// durable yet.
#[test]
fn rows_that_are_durable_are_acknowledged_at_once() {
    let mut scene = Scene::<Occ>::new();
    let old =
        scene.write(|items, tx| (1..=2).try_for_each(|id| items.insert(tx, Item::new(id, 0))));
    scene.write(|items, tx| items.update(tx, 2, Item::COUNT.set(1)));
    let (ended, rests_on) = scene.look(|items, tx| items.get(tx, 1, Item::COUNT));
    assert_eq!((ended, rests_on), (Ok(Some(0)), old));
    assert!(rests_on <= scene.logged.durable());
}

protocol_tests!(versioned: a_snapshot_waits_for_the_commits_before_its_opening);
fn a_snapshot_waits_for_the_commits_before_its_opening<P: Versioned>() {
    let mut scene = Scene::<P>::new();
    let old = scene.write(|items, tx| items.insert(tx, Item::new(1, 0)));
    let snapshot = scene.logged.db.snapshot();
    let new = scene.write(|items, tx| items.update(tx, 1, Item::COUNT.set(1)));
    let (items, reader) = (scene.items.clone(), scene.other.as_mut().expect("there are two"));
    let seen = snapshot.run_in(reader, |tx| items.get(tx, 1, Item::COUNT));
    assert_eq!(seen, Ok(Some(0)));
    let rests_on = reader.rests_on();
    assert!((old..new).contains(&rests_on), "{}: {rests_on}, not {old} to {new}", P::NAME);
}

/// The result of a query by an index that finds nothing depends on the delete of the entry.
#[test]
fn the_absence_of_an_index_entry_waits_for_its_delete() {
    let logged = Logged::new(Database::<Occ>::builder().manual_epochs(5));
    let filed = logged.db.table::<Filed>("filed").unwrap();
    let by_place = filed.index(Filed::BY_PLACE);
    let [mut writer, mut reader] = [0; 2].map(|_| logged.db.session().unwrap());
    run(&mut writer, |tx| filed.insert(tx, Parcel::new(1, 1).into()));
    logged.db.inner.engine.epochs.pass();
    logged.settle();
    run(&mut writer, |tx| filed.modify(tx, &(1, 1), Filed::SHELF, |shelf| *shelf = 5));
    let stamp = writer.rests_on();
    for _ in 0..20 {
        logged.db.inner.engine.epochs.pass();
        run(&mut writer, |_| Ok(()));
    }
    let rows = run(&mut reader, |tx| by_place.rows(tx, (1, 0), ()).count());
    assert_eq!(rows, 0);
    assert!(stamp <= reader.rests_on());
}
