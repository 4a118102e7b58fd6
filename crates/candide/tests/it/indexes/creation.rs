//! Tests of indexes that are created while rows change.

use crate::common::{
    Random, Seat, builder, check_index, database_with, ok, scene, seat, share, spawn,
};
use candide::schema::KeyColumn;
use candide::{Abort, Database, Error, IndexOptions, Protocol, RunOptions, Tx};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

thread_local! {
    /// A callback that runs once, when an index key is next computed.
    static AT_KEY: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// A part of an index key whose computation runs the test's callback.
const WATCHED: KeyColumn<Seat, u64> = KeyColumn::new("watched", |_| {
    if let Some(step) = AT_KEY.with(|at| at.borrow_mut().take()) {
        step();
    }
    0
});

protocol_tests!(overlapping: a_row_changed_while_its_index_is_built_leaves_no_wrong_entry);
fn a_row_changed_while_its_index_is_built_leaves_no_wrong_entry<P: Protocol>() {
    for (unique, change) in
        [false, true].into_iter().flat_map(|unique| (0..4).map(move |change| (unique, change)))
    {
        let (db, table) = scene::<P>();
        ok(db.run(|tx| (0..20).try_for_each(|id| table.insert(tx, seat(0, id, id)))));
        let (mut writer, mut reader) = (db.session().unwrap(), db.session().unwrap());
        let (has_begun, begun) = mpsc::channel::<()>();
        let (may_go_on, go_on) = mpsc::channel::<()>();
        let (has_built, built) = mpsc::channel::<()>();
        let index = std::thread::scope(|scope| {
            let table = &table;
            let builder = spawn(scope, move || {
                AT_KEY.with(|at| {
                    *at.borrow_mut() = Some(Box::new(move || {
                        has_begun.send(()).unwrap();
                        go_on.recv().unwrap();
                    }));
                });
                let options = IndexOptions::ordered();
                let options = if unique { options.unique() } else { options };
                let index = table.create_index("by_owner", (Seat::OWNER, WATCHED), options);
                has_built.send(()).unwrap();
                index
            });
            begun.recv().unwrap();
            // Row 10 has no entry yet. It gets one before this transaction commits.
            ok(writer.run(|tx| {
                match change {
                    0 => drop(table.delete_if_present(tx, &(0, 10))?),
                    1 => table.modify(tx, &(0, 10), Seat::OWNER, |owner| *owner = 100)?,
                    2 => table.put(tx, seat(0, 10, 100))?,
                    _ => {
                        if table.delete_if_present(tx, &(0, 10))? {
                            table.insert(tx, seat(0, 10, 100))?;
                        }
                    }
                }
                if tx.attempt_number() == 1 {
                    may_go_on.send(()).unwrap();
                    built.recv().unwrap();
                }
                Ok(())
            }));
            builder.join().unwrap()
        });
        let index = index.unwrap();
        let read = reader.with(RunOptions::new().attempts_max(50)).run(|tx| {
            let rows: Result<Vec<_>, _> =
                index.scan(tx, .., Seat::OWNER).map(|row| row.map(|row| row.1)).collect();
            rows
        });
        let mut expected: Vec<_> = (0..20).filter(|&owner| owner != 10).collect();
        if change > 0 {
            expected.push(100);
        }
        assert_eq!(read, Ok(expected), "{} unique {unique} change {change}", P::NAME);
    }
}

protocol_tests!(all: an_index_may_consist_of_the_primary_key);
fn an_index_may_consist_of_the_primary_key<P: Protocol>() {
    for splitting in [false, true] {
        let db = builder::<P>().timestamp_splitting(splitting).build().unwrap();
        let table = db.table::<Seat>("seats").unwrap();
        ok(db.run(|tx| {
            table.insert(tx, seat(1, 5, 0))?;
            table.insert(tx, seat(2, 6, 0))
        }));
        ok(db.run(|tx| table.delete(tx, &(2, 6))));
        let by_seat = table.create_index("by_seat", Seat::SEAT, IndexOptions::ordered()).unwrap();
        let seats = |expected: &[(u64, u64)]| {
            let found = db.with(RunOptions::new().attempts_max(20)).run(|tx| {
                let keys: Result<Vec<_>, _> =
                    by_seat.scan(tx, .., ()).map(|row| row.map(|row| row.0)).collect();
                keys
            });
            assert_eq!(found, Ok(expected.to_vec()), "{} splitting {splitting}", P::NAME);
        };
        seats(&[(1, 5)]);
        ok(db.run(|tx| table.put(tx, seat(3, 4, 0))));
        seats(&[(3, 4), (1, 5)]);
        ok(db.run(|tx| table.insert(tx, seat(4, 9, 0))));
        seats(&[(3, 4), (1, 5), (4, 9)]);
        ok(db.run(|tx| table.put(tx, seat(4, 9, 3))));
        assert_eq!(db.run(|tx| table.delete(tx, &(8, 8))), Err(Abort::NotFound));
        ok(db.run(|tx| table.delete(tx, &(1, 5))));
        seats(&[(3, 4), (4, 9)]);
    }
}

protocol_tests!(all: a_recreated_index_has_its_new_key);
fn a_recreated_index_has_its_new_key<P: Protocol>() {
    let (db, table) = scene::<P>();
    ok(db.run(|tx| table.insert(tx, seat(1, 5, 0))));
    table.create_index("by_part", Seat::HALL, IndexOptions::ordered()).unwrap();
    table.drop_index("by_part").unwrap();
    let by_seat = table.create_index("by_part", Seat::SEAT, IndexOptions::ordered()).unwrap();
    let found =
        ok(db.run(|tx| Ok([by_seat.get(tx, 1, ())?.is_some(), by_seat.get(tx, 5, ())?.is_some()])));
    assert_eq!(found, [false, true]);
    table.drop_index("by_part").unwrap();
    // A dropped index leaves room for further indexes.
    for _ in 0..40 {
        table.create_index("by_part", Seat::SEAT, IndexOptions::ordered()).unwrap();
        table.drop_index("by_part").unwrap();
    }
}

/// `modify` and `put` can change indexed columns, even while an index is added.
#[test]
fn modify_is_not_refused_while_indexes_come_and_go() {
    let db = Database::new();
    let table = db.table::<Seat>("seats").unwrap();
    ok(db.run(|tx| table.insert(tx, seat(1, 5, 0))));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let changer = spawn(scope, || {
            while !stop.load(Ordering::Relaxed) {
                table.create_index("by_owner", Seat::OWNER, IndexOptions::ordered()).unwrap();
                table.drop_index("by_owner").unwrap();
            }
        });
        let mut session = db.session().unwrap();
        let results: BTreeSet<_> = (0..200_000)
            .map(|_| {
                session.run(|tx| {
                    table.modify(tx, &(1, 5), (Seat::PRICE, Seat::OWNER), |row| row.1 += 1)
                })
            })
            .map(|result: Result<(), Abort>| format!("{result:?}"))
            .collect();
        stop.store(true, Ordering::Relaxed);
        changer.join().unwrap();
        assert_eq!(results, BTreeSet::from(["Ok(())".to_owned()]));
    });
}

protocol_tests!(concurrent: a_readable_index_agrees_with_its_table);
/// Indexes are added and dropped while rows change. A readable index must always be right.
fn a_readable_index_agrees_with_its_table<P: Protocol>() {
    let (db, table) = database_with::<Seat, P>("seats");
    ok(db.run(|tx| table.insert_many(tx, (0..300).map(|id| seat(id / 40, id % 40, id % 50)))));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (db, table, stop) = (&db, &table, &stop);
            spawn(scope, move || {
                let mut random = Random::seeded(thread);
                let mut session = db.session().unwrap();
                while !stop.load(Ordering::Relaxed) {
                    let key = (random.below(8), random.below(40));
                    let (what, owner) = (random.below(4), random.below(50));
                    ok(session.run(|tx| match what {
                        0 => table.delete_if_present(tx, &key).map(drop),
                        1 => table.insert_if_absent(tx, seat(key.0, key.1, owner)).map(drop),
                        2 => table.put(tx, seat(key.0, key.1, owner)),
                        _ => table
                            .modify_if_present(tx, &key, Seat::OWNER, |old| *old = owner)
                            .map(drop),
                    }));
                }
            });
        }
        let mut session = db.session().unwrap();
        let mut built = 0;
        for _ in 0..share(18) {
            let index =
                table.create_index("by_owner", Seat::OWNER, IndexOptions::ordered()).unwrap();
            let checked = session.with(RunOptions::new().attempts_max(3_000)).run(|tx| {
                let indexed: Result<Vec<_>, _> = index.scan(tx, .., Seat::OWNER).collect();
                let rows: Result<Vec<_>, _> = table.scan(tx, .., Seat::OWNER).collect();
                let (indexed, mut rows) = (indexed?, rows?);
                rows.sort_by_key(|row| row.1);
                Ok(indexed == rows)
            });
            assert!(checked == Ok(true) || checked == Err(Abort::AttemptsExhausted), "{checked:?}");
            built += u32::from(checked.is_ok());
            table.drop_index("by_owner").unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        eprintln!("checked {built} times");
    });
    let mut session = db.session().unwrap();
    let index = table.create_index("by_owner", Seat::OWNER, IndexOptions::ordered()).unwrap();
    check_index(&mut session, &table, &index);
}

protocol_tests!(overlapping: a_transaction_from_before_an_index_was_built_finds_all_rows_by_it);
fn a_transaction_from_before_an_index_was_built_finds_all_rows_by_it<P: Protocol>() {
    let (db, table) = scene::<P>();
    ok(db.run(|tx| (0..200).try_for_each(|id| table.insert(tx, seat(0, id, id)))));
    let mut reader = db.session().unwrap();
    let (has_begun, begun) = mpsc::channel::<()>();
    let (may_go_on, go_on) = mpsc::channel::<()>();
    let (has_built, built) = mpsc::channel();
    std::thread::scope(|scope| {
        let table = &table;
        spawn(scope, move || {
            AT_KEY.with(|at| {
                *at.borrow_mut() = Some(Box::new(move || {
                    has_begun.send(()).unwrap();
                    go_on.recv().unwrap();
                }));
            });
            let index =
                table.create_index("by_owner", (Seat::OWNER, WATCHED), IndexOptions::ordered());
            has_built.send(index.unwrap()).unwrap();
        });
        begun.recv().unwrap();
        let mut index = None;
        let count = reader.run(|tx| {
            assert_eq!(table.read(tx, &(0, 3), Seat::OWNER), Ok(3));
            if index.is_none() {
                may_go_on.send(()).unwrap();
                index = Some(built.recv().unwrap());
            }
            let rows: Result<Vec<_>, _> = index.as_ref().unwrap().scan(tx, .., ()).collect();
            rows.map(|rows| rows.len())
        });
        assert_eq!(ok(count), 200, "{}", P::NAME);
    });
}

protocol_tests!(all: an_index_is_not_made_within_a_transaction_of_the_same_thread);
fn an_index_is_not_made_within_a_transaction_of_the_same_thread<P: Protocol>() {
    let (db, table) = scene::<P>();
    let create = || {
        table.create_index("by_owner", Seat::OWNER, IndexOptions::ordered()).map(drop).unwrap_err()
    };
    let change = |_: &Tx<'_, P>| Ok::<_, Abort>((create(), table.drop_index("by_owner")));
    let nested = Error::Transaction(Abort::Nested);
    let refused = Ok((nested.clone(), Err(nested)));
    assert_eq!(db.run(change), refused, "{}", P::NAME);
    let mut session = db.session().unwrap();
    assert_eq!(session.run(change), refused, "{}", P::NAME);
    drop(session);
    // Transactions that have ended, also by a panic, hold up no index.
    let panics = AssertUnwindSafe(|| db.run(|_| -> Result<(), Abort> { panic!("on purpose") }));
    assert!(catch_unwind(panics).is_err());
    table.create_index("by_owner", Seat::OWNER, IndexOptions::ordered()).unwrap();
    table.drop_index("by_owner").unwrap();
}
