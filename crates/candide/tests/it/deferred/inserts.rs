//! Tests of rows that are inserted before their columns are known.

use super::{add, count, items};
use crate::common::{Item, Seat, database_with, ok, seat};
use candide::{Abort, IndexOptions, Later, Protocol, RunOptions, Whole};
use std::panic::{AssertUnwindSafe, catch_unwind};

protocol_tests!(all: a_row_of_results_is_inserted_at_the_commit);
fn a_row_of_results_is_inserted_at_the_commit<P: Protocol>() {
    let (db, items) = items::<P>();
    ok(db.run(|tx| {
        let sum = add(tx, &items, 1, 1)?;
        let row = sum.map(|sum| Item { other: 200 + *sum as u64, ..Item::new(7, *sum) });
        items.defer_insert(tx, 7, row)?;
        assert_eq!(items.read(tx, 7, Item::COUNT), Err(Abort::NotYet));
        assert_eq!(items.read(tx, 7, Item::OTHER), Err(Abort::NotYet));
        assert_eq!(items.insert(tx, Item::new(7, 0)), Err(Abort::Duplicate));
        items.update(tx, 7, Item::COUNT.add(100))?;
        // A row that is known.
        items.defer_insert(tx, 8, Item::new(8, 80))
    }));
    let read = |id| db.run(|tx| items.read(tx, id, Whole));
    assert_eq!(read(7), Ok(Item { other: 211, ..Item::new(7, 111) }));
    assert_eq!(read(8), Ok(Item::new(8, 80)));
    // A key whose row has been deleted.
    ok(db.run(|tx| items.delete(tx, 7)));
    ok(db.run(|tx| {
        let sum = add(tx, &items, 1, 1)?;
        items.defer_insert(tx, 7, sum.map(|sum| Item::new(7, *sum)))
    }));
    assert_eq!(read(7), Ok(Item::new(7, 12)));
    // A row that is deleted by the same transaction.
    ok(db.run(|tx| {
        items.defer_insert(tx, 9, Later::ready(Item::new(9, 0)))?;
        items.delete(tx, 9)?;
        items.delete(tx, 7)?;
        items.defer_insert(tx, 7, Later::ready(Item::new(7, 1)))
    }));
    assert_eq!((read(7), read(9)), (Ok(Item::new(7, 1)), Err(Abort::NotFound)));
}

protocol_tests!(all: a_row_that_cannot_be_inserted_is_refused);
fn a_row_that_cannot_be_inserted_is_refused<P: Protocol>() {
    let (db, items) = items::<P>();
    let (_, others) = database_with::<Item, P>("items");
    let row = |id| Later::ready(Item::new(id, 1));
    ok(db.run(|tx| {
        assert_eq!(items.defer_insert(tx, 1, row(1)), Err(Abort::Duplicate));
        assert_eq!(others.defer_insert(tx, 1, row(1)), Err(Abort::ForeignTable));
        Ok(())
    }));
    let reads = db.with(RunOptions::new().read_only());
    assert_eq!(reads.run(|tx| items.defer_insert(tx, 7, row(7))), Err(Abort::ReadOnly));
    let other_key = catch_unwind(AssertUnwindSafe(|| {
        db.run(|tx| {
            items.update(tx, 1, Item::COUNT.set(0))?;
            let sum = add(tx, &items, 2, 1)?;
            items.defer_insert(tx, 7, sum.map(|sum| Item::new(8, *sum)))
        })
    }));
    assert!(other_key.is_err());
    assert_eq!(ok(db.run(|tx| items.get(tx, 7, Whole))), None);
    assert_eq!((count(&db, &items, 1), count(&db, &items, 2)), (10, 20));
    let (db, seats) = database_with::<Seat, P>("seats");
    seats.create_index("by_owner", Seat::OWNER, IndexOptions::ordered()).unwrap();
    let inserted = db.run(|tx| seats.defer_insert(tx, &(1, 5), Later::ready(seat(1, 5, 0))));
    assert_eq!(inserted, Err(Abort::Indexed));
    assert_eq!(ok(db.run(|tx| seats.get(tx, &(1, 5), Whole))), None);
}
