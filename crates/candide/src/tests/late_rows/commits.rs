//! Commits that compute keys, beside transactions that look for these keys, and alone.

use super::super::rows::Item;
use super::super::transactions::{CONFLICT, ONCE};
use super::{append, find_and_write, read_and_append, scene};
use crate::engine::Protocol;
use crate::objects::TVec;
use crate::protocols::{Mvcc, Occ, Recorded, TicToc};
use crate::sync::{Point, with_hook};
use crate::{Abort, Database, RunOptions, Table, Tx};
use std::cell::Cell;
use std::rc::Rc;

/// A transaction misses the key of a late row, and commits, when the commit of the late row has
/// been validated. Both commit only if the row was in the index before.
fn a_key_that_is_missed<P: Protocol>() {
    let (db, table) = scene::<P>();
    let (mut mine, mut other) = (db.session().unwrap(), db.session().unwrap());
    let inner = Rc::new(Cell::new(None));
    let (inner_result, inner_table) = (inner.clone(), table.clone());
    let outer = with_hook(
        move |point| {
            if point == Point::Validated && inner_result.get().is_none() {
                inner_result.set(Some(CONFLICT));
                let found = other.with(ONCE()).run(|tx| find_and_write(&inner_table, tx));
                inner_result.set(Some(found));
            }
        },
        || mine.with(ONCE()).run(|tx| read_and_append(&table, tx)),
    );
    let inner = inner.get().expect("the commit has been validated");
    let rows = db.run(|tx| Ok([0, 9].map(|id| table.get(tx, id, Item::COUNT)))).unwrap();
    if outer.is_ok() && inner.is_ok() {
        // Either order is possible, but the reader cannot have missed the row and come later.
        let rows = rows.map(|row| row.unwrap().unwrap());
        assert!(rows == [5, 0] || rows == [1, 1], "{}: {rows:?}", P::NAME);
    }
    assert!(outer.is_ok() || inner.is_ok(), "{}: {outer:?} {inner:?}", P::NAME);
}

#[test]
fn a_late_row_is_in_the_index_before_the_commit_validates() {
    a_key_that_is_missed::<Occ>();
}

#[test]
fn a_late_row_is_in_the_index_before_its_commit_has_a_timestamp() {
    a_key_that_is_missed::<TicToc>();
}

#[test]
fn a_late_row_is_in_the_index_before_its_commit_draws_a_timestamp() {
    a_key_that_is_missed::<Mvcc>();
}

protocol_tests!(all: a_late_row_has_the_key_that_its_base_has_at_the_commit);
fn a_late_row_has_the_key_that_its_base_has_at_the_commit<P: Protocol>() {
    let (db, table) = scene::<P>();
    // A key that is found twice is a conflict each time.
    let some_attempts = RunOptions::new().attempts_max(100);
    let appended = db.with(some_attempts).run(|tx| {
        (0..3).try_for_each(|count| append(&table, tx, count))?;
        // The transaction itself does not see the keys, but what it has added.
        table.read(tx, 1, Item::COUNT)
    });
    assert_eq!(appended, Ok(12), "{}", P::NAME);
    let counts = db.run(|tx| (9..12).map(|id| table.read(tx, id, Item::COUNT)).collect());
    assert_eq!(counts, Ok(vec![0, 1, 2]), "{}", P::NAME);
    // A base that is replaced is read.
    db.run(|tx| {
        table.update(tx, 1, Item::COUNT.set(20))?;
        append(&table, tx, 7)
    })
    .unwrap();
    let rows = db.run(|tx| Ok((table.read(tx, 20, Item::COUNT)?, table.read(tx, 1, Item::COUNT)?)));
    assert_eq!(rows, Ok((7, 21)), "{}", P::NAME);
    // A row under the key is replaced, and one that was deleted is there again.
    for round in 0..3 {
        db.run(|tx| table.delete_if_present(tx, 21 + round % 2)).unwrap();
        db.run(|tx| table.update(tx, 1, Item::COUNT.set(21))).unwrap();
        db.run(|tx| append(&table, tx, 30 + round as i64)).unwrap();
        let row = db.run(|tx| table.read(tx, 21, Item::COUNT));
        assert_eq!(row, Ok(30 + round as i64), "{}", P::NAME);
    }
}

/// Lets a transaction fail.
type Fails<P> = fn(&Table<Item, P>, &Tx<'_, P>) -> Result<(), Abort>;

protocol_tests!(all: a_late_row_of_an_attempt_without_effect_leaves_nothing);
fn a_late_row_of_an_attempt_without_effect_leaves_nothing<P: Protocol>() {
    let (db, table) = scene::<P>();
    let failures: [Fails<P>; 2] = [
        |_, _| Err(Abort::Duplicate),
        |table, tx| table.update(tx, 0, Item::COUNT.add(1).at_least(9)),
    ];
    for fails in failures {
        let failed = db.run(|tx| {
            append(&table, tx, 1)?;
            fails(&table, tx)
        });
        assert!(failed.is_err(), "{}", P::NAME);
        let rows = db.run(|tx| Ok((table.read(tx, 1, Item::COUNT)?, table.get(tx, 9, ())?)));
        assert_eq!(rows, Ok((9, None)), "{}", P::NAME);
    }
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = db.run(|tx| {
            append(&table, tx, 1)?;
            table
                .defer(tx, 0, Item::COUNT, (), |_, ()| panic!("a step of the test"))
                .map(|later: crate::Later<()>| drop(later))
        });
    }));
    assert!(panicked.is_err(), "{}", P::NAME);
    db.run(|tx| append(&table, tx, 3)).unwrap();
    assert_eq!(db.run(|tx| table.read(tx, 9, Item::COUNT)), Ok(3), "{}", P::NAME);
    assert_eq!(db.run(|tx| table.delete_if_present(tx, 10)), Ok(false), "{}", P::NAME);
}

/// The history of a late row has the version of the base from which its key follows.
#[test]
fn a_late_row_is_recorded_with_a_read_of_its_base() {
    let (db, table) = scene::<Recorded<Occ>>();
    db.take_history();
    db.run(|tx| append(&table, tx, 1)).unwrap();
    let mut told = Vec::new();
    for event in db.take_history().events {
        if let crate::history::Event::Transaction(transaction) = event {
            told.push(transaction);
        }
    }
    let [appended] = &told[..] else { panic!("{told:?}") };
    let keys = |accesses: &[crate::history::Access]| -> Vec<Vec<u64>> {
        accesses.iter().map(|access| access.key.to_vec()).collect()
    };
    assert_eq!(keys(&appended.reads), [[1]]);
    assert_eq!(keys(&appended.writes), [[1], [9]]);
}

/// A transaction that has to know the keys of its late rows conflicts with others that append.
#[test]
fn a_transaction_that_settles_its_rows_observes_their_base() {
    settles_beside_an_append::<Occ>();
    settles_beside_an_append::<TicToc>();
    settles_beside_an_append::<Mvcc>();
}

fn settles_beside_an_append<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    let vec = TVec::<u64, P>::new(&db).unwrap();
    let (mut first, mut second) = (db.session().unwrap(), db.session().unwrap());
    let settled = first.with(ONCE()).run(|tx| {
        vec.push(tx, 1)?;
        // The value is read under the key that it has now.
        assert_eq!(vec.get(tx, 0)?, Some(1));
        second.run(|tx| vec.push(tx, 2))
    });
    assert_eq!(settled, CONFLICT, "{}", P::NAME);
    assert_eq!(db.run(|tx| vec.to_vec(tx)), Ok(vec![2]), "{}", P::NAME);
}
