//! What histories and the log have of steps.

use super::super::rows::Item;
use super::multiply;
use crate::Database;
use crate::engine::Protocol;
use crate::protocols::Recorded;
use crate::protocols::recorded::Event;

protocol_tests!(all: a_step_is_recorded_as_a_read_of_the_version_that_it_replaces);
fn a_step_is_recorded_as_a_read_of_the_version_that_it_replaces<P: Protocol>() {
    let db = Database::<Recorded<P>>::builder().build().unwrap();
    let items = db.table::<Item>("items").unwrap();
    db.run(|tx| items.insert_many(tx, (0..2).map(|id| Item::new(id, 1)))).unwrap();
    db.run(|tx| items.update(tx, 0, Item::COUNT.add(1))).unwrap();
    db.run(|tx| {
        multiply(&items, tx, 0, 3)?;
        items.update(tx, 0, Item::COUNT.add(1))?;
        // Nothing is read of a row that the transaction itself has made.
        items.put(tx, Item::new(1, 5))?;
        multiply(&items, tx, 1, 2).map(drop)
    })
    .unwrap();
    let history = db.take_history();
    let mut transactions = Vec::new();
    for event in history.events {
        if let Event::Transaction(transaction) = event {
            transactions.push(transaction);
        }
    }
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
