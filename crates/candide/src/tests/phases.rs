//! Tests of the order of a commit's phases. Each test would show the effect of a phase that is too
//! early, too late, or left out.
//!
//! The tests use no threads: at a named point of one session's commit, another session runs a whole
//! transaction.

use super::indexed_rows::Parcel;
use super::interleaving::acting;
use super::rows::Item;
use super::transactions::{CONFLICT, ONCE, run};
use super::two_sessions::{Scene, read_then_write, scene};
use crate::engine::Protocol;
use crate::protocols::recorded::{Event, Transaction};
use crate::protocols::{Mvcc, Occ, Recorded, TicToc};
use crate::record::Tid;
use crate::schema::{Refused, Updater};
use crate::sync::Point;
use crate::{Abort, Database, Table, Tx};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// Returns the versions written since the last call, in the order of the transactions' ends.
fn versions_written(db: &Database<Recorded<Occ>>) -> Vec<Tid> {
    let mut written = Vec::new();
    for event in db.take_history().events {
        if let Event::Transaction(Transaction { ended, writes, .. }) = event {
            written.extend(writes.first().and_then(|write| Some((ended, Tid(write.version?)))));
        }
    }
    written.sort_by_key(|&(ended, _)| ended);
    written.into_iter().map(|(_, version)| version).collect()
}

#[test]
fn a_commit_has_a_greater_version_than_the_commits_it_read() {
    let Scene { db, table, mut first, mut second } = scene::<Recorded<Occ>>();
    for _ in 0..5 {
        run(&mut first, |tx| table.update(tx, 0, Item::COUNT.add(1)));
    }
    // The second transaction replaces no write of the first, and its session has no version yet. A
    // log that keeps the greater of two versions could take the copy to be older than the original.
    run(&mut second, |tx| {
        let count = table.read(tx, 0, Item::COUNT)?;
        table.update(tx, 1, Item::COUNT.set(count))
    });
    let versions = versions_written(&db);
    assert!(versions.windows(2).all(|pair| pair[0].version() < pair[1].version()), "{versions:?}");
}

#[test]
fn a_row_never_has_the_same_version_twice() {
    let Scene { table, mut first, mut second, .. } = scene::<Occ>();
    // A session that has no version yet replaces the row that was read, in the same epoch in which
    // the row was inserted.
    let lost = first.with(ONCE()).run(|tx| {
        let count = table.read(tx, 0, Item::COUNT)?;
        run(&mut second, |tx| table.update(tx, 0, Item::COUNT.add(10)));
        table.update(tx, 0, Item::COUNT.set(count + 1))
    });
    assert_eq!(lost, CONFLICT);
    assert_eq!(run(&mut first, |tx| table.read(tx, 0, Item::COUNT)), 10);
}

#[test]
fn a_commit_that_replaces_a_version_read_by_another_has_no_earlier_epoch() {
    let Scene { db, table, mut first, mut second } = scene::<Recorded<Occ>>();
    versions_written(&db);
    let (inner, epochs) = (table.clone(), db.inner.engine.epochs.clone());
    // The first transaction is about to lock row 0. The epoch changes, and the second transaction
    // reads the old row 0. So the second one comes before the first in any serial order. The
    // commits up to the epoch of the first must include the second.
    let meanwhile = move || {
        epochs.pass();
        run(&mut second, |tx| read_then_write(&inner, tx, 0, 1));
    };
    acting(Point::Unlocked, meanwhile, || {
        run(&mut first, |tx| table.update(tx, 0, Item::COUNT.add(1)))
    });
    let epochs: Vec<_> = versions_written(&db).into_iter().map(Tid::epoch).collect();
    assert_eq!(epochs, [2, 2], "of the reader, and of who replaced what it had read");
}

/// A search for a missing row.
type Look<P> = fn(&Scene<P>, &Table<Parcel, P>, &Tx<'_, P>) -> Result<bool, Abort>;

fn an_absent_key_is_observed_at_the_time_of_its_search_under<P: Protocol>() {
    // A transaction has searched for missing rows, in a hash index, in an ordered index, and by
    // scans of both. The rows are inserted before the transaction has noted the nodes. The
    // transaction must not commit with the rows' absence and the nodes' new versions.
    let looks: [Look<P>; 4] = [
        |scene, _, tx| Ok(scene.table.get(tx, 9, Item::COUNT)?.is_some()),
        |scene, _, tx| Ok(scene.table.iter(tx, ()).collect::<Result<Vec<_>, _>>()?.len() == 5),
        |_, parcels, tx| Ok(parcels.get(tx, &(1, 9), ())?.is_some()),
        |_, parcels, tx| Ok(parcels.scan(tx, .., ()).next().transpose()?.is_some()),
    ];
    for (number, look) in looks.into_iter().enumerate() {
        let scene = scene::<P>();
        let parcels = scene.db.table::<Parcel>("parcels").unwrap();
        let (rows, others, mut second) =
            (scene.table.clone(), parcels.clone(), scene.db.session().unwrap());
        let fill = move || {
            run(&mut second, |tx| {
                rows.insert(tx, Item::new(9, 1))?;
                others.insert(tx, Parcel::new(1, 9))?;
                rows.update(tx, 0, Item::COUNT.set(1))
            });
        };
        let mut first = scene.db.session().unwrap();
        let looked = acting(Point::Searched, fill, || {
            first.with(ONCE()).run(|tx| {
                let found = look(&scene, &parcels, tx)?;
                Ok((found, scene.table.read(tx, 0, Item::COUNT)?))
            })
        });
        assert!(
            matches!(looked, Err(Abort::AttemptsExhausted) | Ok((true, 1)) | Ok((false, 0))),
            "{number}: {looked:?}"
        );
    }
}

#[test]
fn an_absent_key_is_observed_at_the_time_of_its_search() {
    an_absent_key_is_observed_at_the_time_of_its_search_under::<Occ>();
    an_absent_key_is_observed_at_the_time_of_its_search_under::<TicToc>();
    an_absent_key_is_observed_at_the_time_of_its_search_under::<Mvcc>();
}

fn an_attempt_that_fails_validation_has_stored_nothing_under<P: Protocol>() {
    let Scene { table, mut first, mut second, .. } = scene::<P>();
    let failed = first.with(ONCE()).run(|tx| {
        let count = table.read(tx, 0, Item::COUNT)?;
        table.update(tx, 0, Item::COUNT.set(count + 5))?;
        table.update(tx, 1, Item::COUNT.add(5))?;
        // Only the commit can notice the change: the closure reads no further rows.
        run(&mut second, |tx| {
            let count = table.read(tx, 0, Item::COUNT)?;
            table.read(tx, 1, Item::COUNT)?;
            table.update(tx, 0, Item::COUNT.set(count + 1))
        });
        Ok(())
    });
    assert_eq!(failed, CONFLICT);
    let counts = run(&mut second, |tx| Ok([0, 1].map(|id| table.read(tx, &id, Item::COUNT))));
    assert_eq!(counts, [Ok(1), Ok(0)]);
}

#[test]
fn an_attempt_that_fails_validation_has_stored_nothing() {
    an_attempt_that_fails_validation_has_stored_nothing_under::<Occ>();
    an_attempt_that_fails_validation_has_stored_nothing_under::<TicToc>();
    an_attempt_that_fails_validation_has_stored_nothing_under::<Mvcc>();
}

#[test]
fn a_row_whose_words_are_being_stored_is_not_read() {
    let Scene { table, mut first, mut second, .. } = scene::<Occ>();
    let (inner, seen) = (table.clone(), Rc::new(Cell::new(None)));
    let result = seen.clone();
    let read =
        move || result.set(Some(second.with(ONCE()).run(|tx| inner.read(tx, 0, Item::COUNT))));
    acting(Point::Installing, read, || {
        run(&mut first, |tx| table.update(tx, 0, Item::COUNT.add(1)))
    });
    assert_eq!(seen.get(), Some(Err(Abort::AttemptsExhausted)));
    assert_eq!(run(&mut first, |tx| table.read(tx, 0, Item::COUNT)), 1);
}

/// An updater that ends in a given way.
#[derive(Debug, Clone, Copy)]
enum Ends {
    InAPanic,
    Refusing,
}

impl Updater<Item> for Ends {
    type Target = crate::Column<Item, i64>;

    fn target(&self) -> Self::Target {
        Item::COUNT
    }

    fn apply(&self, count: &mut i64) -> Result<(), Refused> {
        *count += 1;
        match self {
            Ends::InAPanic => panic!("deliberate"),
            Ends::Refusing => Err(Refused),
        }
    }
}

protocol_tests!(concurrent: an_updater_that_fails_leaves_no_part_of_its_commit);
fn an_updater_that_fails_leaves_no_part_of_its_commit<P: Protocol>() {
    for end in [Ends::InAPanic, Ends::Refusing] {
        // In one of the rounds the unit that fails is not the one installed first.
        for failing in [1, 2] {
            let Scene { table, mut first, mut second, .. } = scene::<P>();
            let ended = catch_unwind(AssertUnwindSafe(|| {
                first.with(ONCE()).run(|tx| {
                    table.update(tx, &(3 - failing), Item::COUNT.add(5))?;
                    table.update_with(tx, &failing, end)
                })
            }));
            match end {
                Ends::InAPanic => assert!(ended.is_err()),
                Ends::Refusing => assert_eq!(ended.unwrap(), Err(Abort::Guard)),
            }
            let counts =
                run(&mut second, |tx| Ok([1, 2].map(|id| table.read(tx, &id, Item::COUNT))));
            assert_eq!(counts, [Ok(0), Ok(0)], "{end:?}");
        }
    }
}
