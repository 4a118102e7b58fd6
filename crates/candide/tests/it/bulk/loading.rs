//! Tests of loading and clearing tables.

use super::{filled, rows};
use crate::common::{Item, database_with};
use candide::{Abort, Error, LoadOptions, Occ, Protocol, Tx};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const THREE: NonZeroUsize = NonZeroUsize::new(3).unwrap();

protocol_tests!(all: loading_inserts_every_row_once_and_reports_it);
fn loading_inserts_every_row_once_and_reports_it<P: Protocol>() {
    let (_db, table) = database_with::<Item, P>("items");
    let (calls, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let progress = |rows| {
        calls.fetch_add(1, Ordering::Relaxed);
        most.fetch_max(rows, Ordering::Relaxed);
    };
    let options = LoadOptions::new().workers(THREE).progress(&progress);
    assert_eq!(table.load((0..10_000).map(|id| Item::new(id, 1)), options), Ok(10_000));
    assert!(calls.load(Ordering::Relaxed) > 10);
    assert_eq!(most.load(Ordering::Relaxed), 10_000);
    assert_eq!(rows(&table).len(), 10_000);
    assert_eq!(table.len_estimate(), 10_000);
}

#[test]
fn loading_ends_at_the_end_of_the_iterator() {
    for workers in [NonZeroUsize::MIN, THREE] {
        let (_db, table) = filled::<Occ>(0);
        let rows = (0..1_000).map_while(|id| (id != 100).then(|| Item::new(id, 0)));
        assert_eq!(table.load(rows, LoadOptions::new().workers(workers)), Ok(100));
    }
}

#[test]
fn a_panic_of_one_worker_ends_the_load() {
    let (_db, table) = filled::<Occ>(0);
    let is_first = AtomicBool::new(true);
    let progress = |_: usize| {
        if is_first.swap(false, Ordering::Relaxed) {
            std::panic::resume_unwind(Box::new("on purpose"));
        }
    };
    let options = LoadOptions::new().workers(THREE).progress(&progress);
    let load = || table.load((0..100_000).map(|id| Item::new(id, 0)), options);
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(load)).is_err());
    assert!(table.len_estimate() < 50_000, "{} rows", table.len_estimate());
}

#[test]
fn loading_ends_at_the_first_refused_row_and_counts_the_inserted_ones() {
    let (_db, table) = filled::<Occ>(0);
    let rows = (0..5_000).map(|number| Item::new(if number == 3_000 { 7 } else { number }, 0));
    match table.load(rows, LoadOptions::new()) {
        Err(Error::Load { rows, cause: Abort::Duplicate }) => {
            assert_eq!(rows, 3_000 / 256 * 256, "whole transactions");
            assert!(table.len_estimate() as usize >= rows);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_panic_of_the_iterator_is_passed_to_the_caller() {
    let (db, table) = filled::<Occ>(0);
    let rows =
        (0..1_000).map(|number| if number == 600 { panic!("mine") } else { Item::new(number, 0) });
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        table.load(rows, LoadOptions::new())
    }));
    assert!(result.is_err());
    db.run(|tx| table.put(tx, Item::new(1, 1))).unwrap();
}

protocol_tests!(all: clearing_is_part_of_its_transaction);
fn clearing_is_part_of_its_transaction<P: Protocol>() {
    let (db, table) = filled::<P>(500);
    let before = rows(&table);
    let cleared_and_filled_again = |tx: &Tx<'_, P>| {
        table.insert(tx, Item::new(1_000, 0))?;
        table.delete(tx, 3)?;
        assert_eq!(table.clear(tx)?, 500, "what the transaction sees: one more and one less");
        assert_eq!(table.clear(tx)?, 0);
        // Some rows are inserted again, and some of these are deleted again.
        (0..500).step_by(3).try_for_each(|id| table.insert(tx, Item::new(id, 7)))?;
        (0..500).step_by(6).try_for_each(|id| table.delete(tx, &id))?;
        let there = |id: &u64| Ok(table.get(tx, id, ())?.is_some());
        (0..500)
            .filter_map(|id| there(&id).map(|is| is.then_some(id)).transpose())
            .collect::<Result<Vec<_>, Abort>>()
    };
    let failed: Result<(), Abort> = db.run(|tx| {
        cleared_and_filled_again(tx)?;
        Err(Abort::NotFound)
    });
    assert_eq!(failed, Err(Abort::NotFound));
    assert_eq!(rows(&table), before, "the error took it back");
    let left: Vec<u64> = (3..500).step_by(6).collect();
    assert_eq!(db.run(cleared_and_filled_again), Ok(left.clone()));
    assert_eq!(rows(&table).iter().map(|row| row.id).collect::<Vec<_>>(), left);
    assert_eq!(db.run(|tx| table.clear(tx)), Ok(left.len()));
    assert_eq!(rows(&table).len(), 0);
}

protocol_tests!(all: insert_many_has_the_errors_of_insert);
fn insert_many_has_the_errors_of_insert<P: Protocol>() {
    let (db, table) = filled::<P>(3);
    let refused = db.run(|tx| table.insert_many(tx, [5, 6, 1, 7].map(|id| Item::new(id, 9))));
    assert_eq!(refused, Err(Abort::Duplicate));
    assert_eq!(rows(&table).len(), 3);
    let twice = db.run(|tx| table.insert_many(tx, [5, 6, 5].map(|id| Item::new(id, 9))));
    assert_eq!(twice, Err(Abort::Duplicate));
    let gone_on = db.run(|tx| {
        assert_eq!(
            table.insert_many(tx, [5, 1, 6].map(|id| Item::new(id, 9))),
            Err(Abort::Duplicate)
        );
        table.get(tx, 6, Item::COUNT)
    });
    assert_eq!(gone_on, Ok(None));
    assert_eq!(rows(&table).iter().map(|row| row.id).collect::<Vec<_>>(), [0, 1, 2, 5]);
}

#[test]
fn more_loading_workers_than_the_maximum_are_refused() {
    let (_db, table) = filled::<Occ>(0);
    let load = |workers| {
        let workers = NonZeroUsize::new(workers).unwrap();
        table.load((0..600).map(|id| Item::new(id, 0)), LoadOptions::new().workers(workers))
    };
    for given in [usize::MAX, 1_025] {
        let error = load(given).unwrap_err();
        let option = "LoadOptions::workers";
        assert_eq!(error, Error::OptionTooLarge { option, given: given as u64, most: 1_024 });
        assert_eq!(
            error.to_string(),
            format!("LoadOptions::workers is {given}, and at most 1024 is possible")
        );
    }
    assert_eq!(table.len_estimate(), 0);
    assert_eq!(load(1_024), Ok(600));
}

/// An iterator that does not tell its length.
struct Untold(std::ops::Range<u64>);

impl Iterator for Untold {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        self.0.next().map(|id| Item::new(id, 0))
    }
}

#[test]
fn loading_from_an_iterator_of_unknown_length_inserts_all() {
    let (_db, table) = filled::<Occ>(0);
    assert_eq!(table.load(Untold(0..1_000), LoadOptions::new().workers(THREE)), Ok(1_000));
}
