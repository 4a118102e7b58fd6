//! Standbys that are promoted, whose databases write to the place from then on.

use crate::rows::{counts, read};
use crate::snapshots::{briefly, follow};
use crate::{Item, eventually, insert, open, quickly, replicated, uuid};
use candide::{Abort, Database, Level, LogOptions, Mvcc, OpenError, Table};
use candide_log_testing::SimDisk;
use candide_reach::object::{Kind, Object};
use candide_reach::sim::SimPlace;
use candide_reach::{Place, Promoted, Replicate, Standby, StandbyError, StandbyOptions};
use std::sync::Arc;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(120);

pub fn follow_on(place: &SimPlace, disk: &SimDisk) -> Result<Standby, StandbyError> {
    let options = StandbyOptions::new().replicate(briefly());
    Standby::follow_on(Arc::new(place.handle(2)), Arc::new(disk.clone()), options)
}

pub fn reopen(
    place: &SimPlace,
    disk: &SimDisk,
) -> Result<(Database<Mvcc>, Table<Item, Mvcc>), OpenError> {
    let log = LogOptions::new().replicate_with(place.handle(2), briefly());
    let db = Database::<Mvcc>::builder().open_on(Arc::new(disk.clone()), log)?;
    let items = db.table::<Item>("items").unwrap();
    Ok((db, items))
}

pub fn add(db: &Database<Mvcc>, items: &Table<Item, Mvcc>, id: u64) -> Result<(), Abort> {
    db.with(replicated()).run(|tx| items.insert(tx, Item { id, count: id as i64 }))
}

#[test]
fn a_promoted_standby_goes_on_in_the_place_and_so_does_its_directory() {
    let (place, first) = (SimPlace::new(1), SimDisk::default());
    let (db, items) = open(&first, &place, quickly()).unwrap();
    let database = uuid(&db);
    for id in 0..5 {
        insert(&db, &items, id).unwrap();
    }
    let second = SimDisk::default();
    let standby = follow_on(&place, &second).unwrap();
    let other = follow(&place);
    // The first object may have been made before the table.
    eventually(|| standby.database().table::<Item>("items").is_ok());
    let there = standby.database().table::<Item>("items").unwrap();
    let early = standby.database().with(replicated()).run(|tx| there.read(tx, 1, Item::COUNT));
    assert_eq!(early, Err(Abort::NotReplicated));
    let Promoted { database: db2, leader } = standby.promote().unwrap();
    assert_eq!(leader.generation(), 2);
    // A transaction that only reads is acknowledged, too.
    assert_eq!(db2.with(replicated()).run(|tx| there.read(tx, 1, Item::COUNT)), Ok(1));
    for id in 10..15 {
        add(&db2, &there, id).unwrap();
        assert_eq!(counts(&place, database)[&id], id as i64);
    }
    db2.with(replicated()).run(|tx| there.update(tx, 0, Item::COUNT.add(7))).unwrap();
    assert_eq!(insert(&db, &items, 99), Err(Abort::LogFailed));
    drop((db, items));
    let (rows, _) = read(&place, database);
    assert_eq!((rows.rows.len(), rows.snapshots), (10, 0), "the numbers of tables are the same");
    let pending = db2.run_logged(|tx| there.insert(tx, Item { id: 20, count: 0 }));
    let position = pending.position().unwrap();
    assert_eq!((position.generation, position.database), (2, database));
    other.wait_for(position, LONG).unwrap();
    let seen = other.database().table::<Item>("items").unwrap();
    assert_eq!(other.database().read_view(|tx| seen.read(tx, 0, Item::COUNT)), Ok(7));
    // Its checkpoints are snapshots, with which others begin, and which others compare.
    db2.checkpoint().unwrap();
    add(&db2, &there, 21).unwrap();
    let (rows, _) = read(&place, database);
    assert_eq!((rows.rows.len(), rows.snapshots), (12, 1));
    let late = follow(&place);
    let position = db2.run_logged(|tx| there.insert(tx, Item { id: 22, count: 0 })).position();
    for standby in [&other, &late] {
        standby.wait_for(position.unwrap(), LONG).unwrap();
        assert_eq!((standby.failure(), standby.trouble()), (None, None));
    }
    // The former one is told, and the directory leads again.
    match open(&first, &place, quickly()) {
        // Its heartbeat had noticed before the insert that was refused.
        Err(OpenError::Led { generation: 2, .. }) => {}
        Err(OpenError::Diverged { what }) => {
            assert!(what.starts_with("1 transactions cannot be compared"), "{what}");
        }
        other => panic!("{other:?}"),
    }
    drop((db2, there, pending));
    for round in 3..6 {
        let (db, items) = reopen(&place, &second).unwrap();
        add(&db, &items, 100 * round).unwrap();
        assert_eq!(db.run_logged(|_| Ok(())).position().unwrap().generation, round);
        assert_eq!(counts(&place, database).len() as u64, 11 + round);
        if round == 4 {
            db.checkpoint().unwrap();
        }
    }
    let refused = follow_on(&place, &second).unwrap_err().to_string();
    assert!(refused.contains("has led"), "{refused}");
    // It can be followed and superseded, too.
    let third = SimDisk::default();
    let Promoted { database: db3, .. } = follow_on(&place, &third).unwrap().promote().unwrap();
    let items = db3.table::<Item>("items").unwrap();
    add(&db3, &items, 1000).unwrap();
    assert_eq!(counts(&place, database).len(), 17);
    assert!(matches!(reopen(&place, &second), Err(OpenError::Led { generation: 6, .. })));
}

#[test]
fn a_promoted_standby_whose_tables_have_other_numbers_sends_a_checkpoint_first() {
    let (place, first) = (SimPlace::new(1), SimDisk::default());
    let log = LogOptions::new().replicate_with(place.handle(1), quickly());
    let db = Database::<candide::Occ>::builder().open_on(Arc::new(first), log).unwrap();
    let former = db.table::<Item>("former").unwrap();
    insert(&db, &former, 1).unwrap();
    let second = SimDisk::default();
    let standby = follow_on(&place, &second).unwrap();
    drop(former);
    db.drop_table("former").unwrap();
    // The number is free again, but not in the directory of the standby.
    db.checkpoint().unwrap();
    let items = db.table::<Item>("items").unwrap();
    for id in 0..5 {
        insert(&db, &items, id).unwrap();
    }
    let position = db.run_logged(|tx| items.insert(tx, Item { id: 5, count: 0 })).position();
    standby.wait_for(position.unwrap(), LONG).unwrap();
    let other = follow(&place);
    let database = uuid(&db);
    let there = standby.database().table::<Item>("items").unwrap();
    let Promoted { database: db2, .. } = standby.promote().unwrap();
    add(&db2, &there, 10).unwrap();
    let restart = place.read("log/000000000002/000000000001").unwrap().unwrap();
    assert_eq!(Object::decode(restart).unwrap().header.kind, Kind::Restart);
    assert_eq!(counts(&place, database).len(), 7);
    let pending = db2.run_logged(|tx| there.insert(tx, Item { id: 11, count: 0 }));
    other.wait_for(pending.position().unwrap(), LONG).unwrap();
    let seen = other.database().table::<Item>("items").unwrap();
    assert_eq!(other.database().read_view(|tx| seen.iter(tx, ()).count()), Ok(8));
    pending.wait_for(Level::Replicated).unwrap();
    drop((db2, there));
    let (db, items) = reopen(&place, &second).unwrap();
    add(&db, &items, 20).unwrap();
    assert_eq!(counts(&place, database).len(), 9);
}

#[test]
fn a_promotion_that_has_not_ended_leaves_a_directory_that_follows() {
    let (place, first) = (SimPlace::new(1), SimDisk::default());
    let (db, items) = open(&first, &place, quickly()).unwrap();
    let database = uuid(&db);
    insert(&db, &items, 1).unwrap();
    let second = SimDisk::default();
    let standby = follow_on(&place, &second).unwrap();
    place.handle(2).cut(candide_reach::sim::Direction::Requests, true);
    assert!(standby.promote().is_err());
    place.handle(2).cut(candide_reach::sim::Direction::Requests, false);
    let refused = reopen(&place, &second).unwrap_err().to_string();
    assert!(refused.contains("follow again"), "{refused}");
    insert(&db, &items, 2).unwrap();
    let former = items;
    let Promoted { database: db2, .. } = follow_on(&place, &second).unwrap().promote().unwrap();
    let items = db2.table::<Item>("items").unwrap();
    add(&db2, &items, 3).unwrap();
    assert_eq!(counts(&place, database).len(), 3);
    assert_eq!(insert(&db, &former, 4), Err(Abort::LogFailed));
}
