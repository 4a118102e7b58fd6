//! Standbys of databases whose logs are in places.

use crate::primary::{LONG, follow};
use candide::{Abort, Database, Level, LogOptions, Mvcc, Occ, Record, RunOptions, Table};
use candide_log_testing::SimDisk;
use candide_reach::sim::SimPlace;
use candide_reach::{Place, Replicate, Standby};
use std::sync::Arc;

#[derive(Record, Clone, Copy, Debug, PartialEq)]
struct Item {
    #[key]
    id: u64,
    count: i64,
}

fn open(disk: &SimDisk, place: &SimPlace) -> (Database, Table<Item>) {
    let log = LogOptions::new().replicate(place.handle(1));
    let db = Database::<Occ>::builder().open_on(Arc::new(disk.clone()), log).unwrap();
    let items = db.table::<Item>("items").unwrap();
    (db, items)
}

fn insert(db: &Database, items: &Table<Item>, id: u64) -> Result<(), Abort> {
    let replicated = RunOptions::new().acknowledge(Level::Replicated);
    db.with(replicated).run(|tx| items.insert(tx, Item { id, count: id as i64 }))
}

/// Inserts a row, and waits until the standby has it. Returns the number of its rows.
fn insert_and_follow(
    (db, items): (&Database, &Table<Item>),
    id: u64,
    (standby, there): (&Standby, &Table<Item, Mvcc>),
) -> usize {
    let pending = db.run_logged(|tx| items.insert(tx, Item { id, count: id as i64 }));
    let position = pending.position().unwrap();
    pending.wait_for(Level::Replicated).unwrap();
    standby.wait_for(position, LONG).unwrap();
    standby.database().read_view(|tx| there.iter(tx, ()).count()).unwrap()
}

#[test]
fn a_standby_follows_a_database_that_is_opened_again_and_takes_over() {
    let (place, disk) = (SimPlace::new(1), SimDisk::default());
    let of_standby: Arc<dyn Place> = Arc::new(place.handle(2));
    let (mut db, mut items) = open(&disk, &place);
    let pending = db.run_logged(|tx| items.insert(tx, Item { id: 0, count: 0 }));
    let first = pending.position().unwrap();
    pending.wait_for(Level::Replicated).unwrap();
    let standby = follow(&of_standby, &SimDisk::default()).unwrap();
    // It may have begun with an object without the table.
    standby.wait_for(first, LONG).unwrap();
    let there = standby.database().table::<Item>("items").unwrap();
    for round in 1..5 {
        (0..9).for_each(|id| insert(&db, &items, 10 * round + id).unwrap());
        let rows = insert_and_follow((&db, &items), 10 * round + 9, (&standby, &there));
        assert_eq!(rows as u64, 1 + 10 * round);
        drop((db, items));
        (db, items) = open(&disk, &place);
    }
    insert(&db, &items, 100).unwrap();
    let taken = standby.promote().unwrap();
    let sum = taken.database.run(|tx| there.sum(tx, Item::COUNT)).unwrap();
    assert_eq!(sum, (10..50).sum::<i64>() + 100);
    taken.database.run(|tx| there.insert(tx, Item { id: 200, count: 0 })).unwrap();
    assert_eq!(insert(&db, &items, 101), Err(Abort::LogFailed));
}
