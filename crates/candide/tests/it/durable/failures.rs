//! Disks that fail, and disks without room.

use super::{contents, insert, new_items, open_items};
use crate::common::Item;
use candide::{Abort, Level, Occ, Protocol, Whole};
use candide_log_testing::Fault;

protocol_tests!(all: after_a_failed_sync_writes_fail_and_reads_succeed);

fn after_a_failed_sync_writes_fail_and_reads_succeed<P: Protocol>() {
    let (disk, db, items) = new_items::<P>();
    insert(&db, &items, 1, 5).unwrap();
    disk.fail(1, Fault::SyncLoses);
    assert_eq!(insert(&db, &items, 2, 5), Err(Abort::LogFailed));
    assert_eq!(disk.pending_faults(), 0);
    assert!(db.log_failure().is_some());
    for _ in 0..3 {
        assert_eq!(insert(&db, &items, 3, 5), Err(Abort::LogFailed));
        let pending = db.run_logged(|tx| items.update(tx, 1, Item::COUNT.add(1)));
        assert_eq!(pending.wait(), Err(Abort::LogFailed));
    }
    // What rests on durable commits only is still shown; the row that may be lost is not.
    let memory = candide::RunOptions::new().acknowledge(Level::Memory);
    let row = db.with(memory).run(|tx| items.get(tx, 1, Whole));
    assert_eq!(row, Ok(Some(Item::new(1, 5))));
    assert!(db.sync().is_err());
    drop((db, items));
    let (_db, items) = open_items::<P>(&disk);
    let rows = contents(&items);
    assert_eq!(rows.get(&1), Some(&Item::new(1, 5)));
    assert!(rows.keys().all(|id| [1, 2].contains(id)), "{rows:?}");
}

#[test]
fn a_full_disk_refuses_writes_until_there_is_room() {
    let (disk, db, items) = new_items::<Occ>();
    insert(&db, &items, 0, 5).unwrap();
    disk.set_quota(Some(disk.used()));
    let mut id = 1;
    let refused = loop {
        match db.run_logged(|tx| items.insert(tx, Item::new(id, 5))).peek() {
            Ok(_) => id += 1,
            Err(abort) => break *abort,
        }
    };
    assert_eq!(refused, Abort::DiskFull);
    assert_eq!(db.run_logged(|tx| items.get(tx, 0, Whole)).peek(), Ok(&Some(Item::new(0, 5))));
    assert!(db.durability().unwrap().is_full);
    disk.set_quota(None);
    crate::common::eventually("there is room", || insert(&db, &items, id, 5).is_ok());
    assert!(!db.durability().unwrap().is_full && db.log_failure().is_none());
    drop((db, items));
    let (_db, items) = open_items::<Occ>(&disk);
    assert_eq!(contents(&items).len() as u64, id + 1);
}
