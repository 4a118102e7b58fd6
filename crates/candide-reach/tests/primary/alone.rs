//! Databases that are opened without their places, which remember what the places lack.

use crate::promoted::follow_on;
use crate::rows::{counts, read};
use crate::snapshots::briefly;
use crate::{Item, insert, open, quickly, replicated, uuid};
use candide::{Abort, Database, Error, Level, LogOptions, Mvcc, Occ, OpenError};
use candide_log_testing::SimDisk;
use candide_reach::sim::SimPlace;
use candide_reach::{Promoted, Replicate};
use std::sync::Arc;

#[test]
fn a_database_without_its_place_keeps_the_log_and_sends_it_later() {
    for has_place in [true, false] {
        let (place, disk) = (SimPlace::new(1), SimDisk::default());
        let (db, items) = open(&disk, &place, briefly()).unwrap();
        let database = uuid(&db);
        insert(&db, &items, 0).unwrap();
        db.checkpoint().unwrap();
        insert(&db, &items, 1).unwrap();
        drop((db, items));
        if !has_place {
            place.set_faults(crate::UNANSWERED);
            let refused = open(&disk, &place, quickly()).unwrap_err().to_string();
            assert!(refused.contains("open_alone"), "{refused}");
        }
        let calls = place.calls();
        for round in 1..=3 {
            let (db, items) = open(&disk, &place, quickly().open_alone()).unwrap();
            let refused = db.with(replicated()).run(|tx| items.read(tx, 0, Item::COUNT));
            assert_eq!(refused, Err(Abort::NotReplicated));
            let pending = db.run_logged(|tx| items.insert(tx, Item { id: 10 * round, count: 0 }));
            assert!(pending.position().is_none());
            db.checkpoint().unwrap();
            db.run(|tx| items.insert(tx, Item { id: 10 * round + 1, count: 0 })).unwrap();
            db.checkpoint().unwrap();
        }
        assert_eq!(place.calls(), calls, "the place was asked");
        place.set_faults(Default::default());
        let (db, items) = open(&disk, &place, quickly()).unwrap();
        insert(&db, &items, 100).unwrap();
        let (rows, _) = read(&place, database);
        // The snapshot is that of the first checkpoint.
        assert_eq!((rows.rows.len(), rows.snapshots), (9, 1));
        let first = place.names().into_iter().filter(|name| name.starts_with("snapshot/")).count();
        assert_eq!(first, 1, "the log was not kept");
    }
}

#[test]
fn beyond_the_backlog_the_place_will_get_a_checkpoint() {
    let (place, disk) = (SimPlace::new(1), SimDisk::default());
    let (db, items) = open(&disk, &place, quickly()).unwrap();
    let database = uuid(&db);
    insert(&db, &items, 0).unwrap();
    drop((db, items));
    let alone = quickly().replicate_backlog(1000).open_alone();
    let (db, items) = open(&disk, &place, alone).unwrap();
    for id in 1..=50 {
        db.run(|tx| items.insert(tx, Item { id, count: 0 })).unwrap();
    }
    assert!(db.checkpoint().unwrap().is_new);
    drop((db, items));
    let (db, items) = open(&disk, &place, quickly()).unwrap();
    insert(&db, &items, 100).unwrap();
    let (rows, _) = read(&place, database);
    assert_eq!((rows.rows.len(), rows.snapshots), (52, 1));
}

#[test]
fn another_leader_meanwhile_is_noticed_after_an_opening_alone() {
    let (place, disk) = (SimPlace::new(1), SimDisk::default());
    let (db, items) = open(&disk, &place, quickly()).unwrap();
    let database = uuid(&db);
    insert(&db, &items, 0).unwrap();
    drop((db, items));
    let (db, items) = open(&disk, &place, quickly().open_alone()).unwrap();
    for id in 1..=3 {
        db.run(|tx| items.insert(tx, Item { id, count: 0 })).unwrap();
    }
    db.checkpoint().unwrap();
    drop((db, items));
    let _next = crate::claim_elsewhere(&place, database);
    let Err(OpenError::Diverged { what }) = open(&disk, &place, quickly()) else {
        panic!("it opens, or not for this reason");
    };
    assert!(what.contains("3 transactions are only here"), "{what}");
    assert_eq!(counts(&place, database).len(), 1);
}

#[test]
fn tables_that_differ_are_neither_dropped_nor_merged_by_a_take_over() {
    type Change<P> = fn(&Database<P>);
    let nothing: (Change<Occ>, Change<Mvcc>) = (|_| (), |_| ());
    let changes: [(Change<Occ>, Change<Mvcc>, &str); 5] = [
        (nothing.0, nothing.1, ""),
        (|db| db.drop_table("others").unwrap(), nothing.1, "table \"others\" is only in the place"),
        (|db| _ = db.table::<Item>("new").unwrap(), nothing.1, "table \"new\" is only here"),
        (
            nothing.0,
            |db| db.rename_table("others", "clients").unwrap(),
            "table \"clients\" is only in the place, and \"others\" only here",
        ),
        (
            nothing.0,
            |db| _ = db.table::<Item>("new").unwrap(),
            "table \"new\" is only in the place",
        ),
    ];
    for (change, change_there, words) in changes {
        let (place, disk, second) = (SimPlace::new(1), SimDisk::default(), SimDisk::default());
        let (db, items) = open(&disk, &place, quickly()).unwrap();
        insert(&db, &items, 0).unwrap();
        let others = db.table::<Item>("others").unwrap();
        insert(&db, &others, 1).unwrap();
        drop((db, items, others));
        let (db, items) = open(&disk, &place, quickly().open_alone()).unwrap();
        change(&db);
        drop((db, items));
        let Promoted { database: db2, .. } = follow_on(&place, &second).unwrap().promote().unwrap();
        change_there(&db2);
        let items = db2.table::<Item>("items").unwrap();
        assert_eq!(db2.with(replicated()).run(|tx| items.read(tx, 0, Item::COUNT)), Ok(0));
        drop((db2, items));
        let names = place.names();
        match (open(&disk, &place, quickly().take_over()), words) {
            (Ok((db, items)), "") => insert(&db, &items, 2).unwrap(),
            (Err(OpenError::Diverged { what }), _) => {
                assert!(what.contains(words) && !words.is_empty(), "{what}");
                assert_eq!(place.names(), names);
            }
            other => panic!("{words}: {other:?}"),
        }
    }
}

#[test]
fn a_default_level_that_cannot_be_reached_alone_is_refused() {
    let place = SimPlace::new(1);
    let options = LogOptions::new()
        .acknowledge(Level::Replicated)
        .replicate_with(place, quickly().open_alone());
    let disk = Arc::new(SimDisk::default());
    let refused = Database::<Occ>::builder().open_on(disk, options).unwrap_err();
    let OpenError::Target(refused) = refused else { panic!("{refused}") };
    assert!(matches!(refused.downcast_ref(), Some(Error::NotReplicated)));
}
