//! Tests of what the end of an object costs, and of where it happens.

use crate::engine::Protocol;
use crate::objects::{Boxed, TBox, TMap};
use crate::protocols::Serial;
use crate::{Abort, Database};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

fn database<P: Protocol>() -> Database<P> {
    Database::<P>::builder().manual_epochs(1).build().unwrap()
}

/// Returns the number of observations of the transactions that empty the table of a map with
/// `rows` entries.
fn observations_to_empty<P: Protocol>(rows: u64) -> u64 {
    let db = database::<P>();
    let map = TMap::<u64, u64, P>::new(&db).unwrap();
    for begin in (0..rows).step_by(500) {
        db.run(|tx| (begin..begin + 500).try_for_each(|key| map.put(tx, key, key))).unwrap();
    }
    drop(map);
    let before = db.stats().read_set;
    for _ in 0..40 {
        db.inner.engine.epochs.pass();
        db.run(|_| Ok(())).unwrap();
    }
    let tables = db.inner.engine.tables.read().unwrap();
    let left = tables.iter().find(|table| table.name.starts_with("candide.object.map")).unwrap();
    assert_eq!(left.linked.sum(), 0, "{}: the table is empty", P::NAME);
    db.stats().read_set - before
}

protocol_tests!(overlapping: emptying_a_map_costs_as_much_as_it_has_entries);
fn emptying_a_map_costs_as_much_as_it_has_entries<P: Protocol>() {
    let (small, large) = (observations_to_empty::<P>(5_000), observations_to_empty::<P>(40_000));
    assert!(large < 16 * small, "{}: {small} for 5,000 rows, {large} for 40,000", P::NAME);
}

#[test]
fn dropped_boxes_are_deleted_after_the_only_session() {
    let db = database::<Serial>();
    let cells = || {
        let tables = db.inner.engine.tables.read().unwrap();
        tables.iter().find(|table| &*table.name == "candide.object.unnamed.1").unwrap().linked.sum()
    };
    let mut session = db.session().unwrap();
    for _ in 0..1_000 {
        drop(session.try_run(|tx| TBox::create(tx, &db, 0u64)).unwrap());
        db.inner.engine.epochs.pass();
    }
    assert_eq!(cells(), 1_000, "a deletion needs a session");
    drop(session);
    for _ in 0..40 {
        db.inner.engine.epochs.pass();
        db.run(|_| Ok(())).unwrap();
    }
    assert_eq!(cells(), 0);
}

/// A value whose drop runs a transaction of another database, and sends its result.
struct Reports(Database, Sender<Result<(), Abort>>);

impl Drop for Reports {
    fn drop(&mut self) {
        let _ = self.1.send(self.0.run(|_| Ok(())));
    }
}

#[test]
fn values_of_a_database_that_ends_in_a_transaction_are_dropped_outside_of_it() {
    let (sender, results) = channel();
    let (outer, inner) = (Database::new(), Database::new());
    let value = |_| Boxed(Some(Reports(outer.clone(), sender.clone())));
    let held = crate::objects::TArray::new(&inner, 1, value).unwrap();
    let mut ending = Some(inner);
    outer
        .run(|_| {
            drop(ending.take());
            Ok(())
        })
        .unwrap();
    drop(held);
    assert_eq!(results.recv_timeout(Duration::from_secs(60)), Ok(Ok(())));
}
