//! What histories and the log have of steps.

use super::super::rows::{Item, OfCount};
use super::multiply;
use crate::engine::Protocol;
use crate::history::Transaction;
use crate::protocols::Recorded;
use crate::protocols::recorded::Event;
use crate::schema::Refused;
use crate::{Database, Table};
use std::cell::RefCell;

/// Returns a database with the items 0 and 1, whose counts are 1.
fn recorded<P: Protocol>() -> (Database<Recorded<P>>, Table<Item, Recorded<P>>) {
    let db = Database::<Recorded<P>>::builder().build().unwrap();
    let items = db.table::<Item>("items").unwrap();
    db.run(|tx| items.insert_many(tx, (0..2).map(|id| Item::new(id, 1)))).unwrap();
    (db, items)
}

/// Returns the transactions that a database has recorded.
fn transactions<P: Protocol>(db: &Database<Recorded<P>>) -> Vec<Transaction> {
    let transaction = |event| match event {
        Event::Transaction(transaction) => Some(transaction),
        _ => None,
    };
    db.take_history().events.into_iter().filter_map(transaction).collect()
}

protocol_tests!(all: a_step_is_recorded_as_a_read_of_the_version_that_it_replaces);
fn a_step_is_recorded_as_a_read_of_the_version_that_it_replaces<P: Protocol>() {
    let (db, items) = recorded::<P>();
    db.run(|tx| items.update(tx, 0, Item::COUNT.add(1))).unwrap();
    db.run(|tx| {
        multiply(&items, tx, 0, 3)?;
        items.update(tx, 0, Item::COUNT.add(1))?;
        // Nothing is read of a row that the transaction itself has made.
        items.put(tx, Item::new(1, 5))?;
        multiply(&items, tx, 1, 2).map(drop)
    })
    .unwrap();
    let transactions = transactions(&db);
    let [_, update, steps] = &transactions[..] else { panic!("{}: {transactions:?}", P::NAME) };
    let of_hot = |key: u64| {
        move |access: &&crate::history::Access| *access.key == [key] && access.group == 0
    };
    let written = update.writes.iter().find(of_hot(0)).expect("it was written");
    let read: Vec<_> = steps.reads.iter().filter(of_hot(0)).collect();
    assert_eq!(read.len(), 1, "{}: {steps:?}", P::NAME);
    assert_eq!((read[0].version, read[0].present), (written.version, true), "{}", P::NAME);
    assert!(!steps.reads.iter().any(|access| of_hot(1)(&access)), "{}: {steps:?}", P::NAME);
    assert!(steps.committed && steps.writes.iter().any(|access| of_hot(0)(&access)), "{}", P::NAME);
}

thread_local! {
    static INNER: RefCell<Option<Box<dyn Fn()>>> = const { RefCell::new(None) };
}

/// Runs the thread's inner transaction, if there is one, as an updater.
fn run_inner(_: &mut i64) -> Result<(), Refused> {
    INNER.with_borrow(|inner| inner.iter().for_each(|run| run()));
    Ok(())
}

protocol_tests!(all: a_transaction_that_an_updater_runs_leaves_the_reads_of_steps);
fn a_transaction_that_an_updater_runs_leaves_the_reads_of_steps<P: Protocol>() {
    let ((db, items), (inner_db, inner_items)) = (recorded::<P>(), recorded::<P>());
    INNER.set(Some(Box::new(move || {
        inner_db.run(|tx| multiply(&inner_items, tx, 0, 2).map(drop)).unwrap();
    })));
    db.run(|tx| {
        multiply(&items, tx, 0, 3)?;
        items.update_with(tx, 1, OfCount(run_inner))
    })
    .unwrap();
    INNER.set(None);
    let transactions = transactions(&db);
    let [_, outer] = &transactions[..] else { panic!("{}: {transactions:?}", P::NAME) };
    let reads = outer.reads.iter().filter(|access| *access.key == [0] && access.group == 0);
    assert_eq!(reads.count(), 1, "{}: {outer:?}", P::NAME);
}
