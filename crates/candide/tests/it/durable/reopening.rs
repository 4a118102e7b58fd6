//! What is in a database that is opened again.

use super::{contents, insert, new_items, open, open_items};
use crate::common::Item;
use candide::any::{Chosen, Erased};
use candide::protocols::Exclusion;
use candide::{Abort, Database, Mvcc, Mvto, Occ, Protocol, Serial, TicToc, Whole};
use candide_log_testing::SimDisk;
use std::sync::Arc;

protocol_tests!(all: committed_rows_are_recovered);

fn committed_rows_are_recovered<P: Protocol>() {
    let (disk, db, items) = new_items::<P>();
    for id in 0..50 {
        insert(&db, &items, id, id as i64).unwrap();
    }
    // One transaction with all kinds of changes, some of them of the same row.
    db.run(|tx| {
        items.update(tx, 1, Item::COUNT.add(100))?;
        items.update(tx, 1, Item::OTHER.set(7))?;
        items.delete(tx, 2)?;
        items.delete(tx, 3)?;
        items.insert(tx, Item::new(3, -3))?;
        items.insert(tx, Item::new(60, 60))?;
        items.delete(tx, 60)?;
        items.put(tx, Item::new(4, -4))?;
        items.put(tx, Item::new(61, 61))?;
        items.update(tx, 61, Item::COUNT.add(1))
    })
    .unwrap();
    // A transaction without effect leaves nothing.
    let ended = db.run(|tx| {
        items.insert(tx, Item::new(70, 70))?;
        Err::<(), _>(Abort::Guard)
    });
    assert_eq!(ended, Err(Abort::Guard));
    let before = contents(&items);
    assert_eq!(before.len(), 50);
    drop((db, items));
    for _ in 0..3 {
        let (db, items) = open_items::<P>(&disk);
        assert_eq!(contents(&items), before);
        drop((db, items));
    }
    let (db, items) = open_items::<P>(&disk);
    insert(&db, &items, 100, 1).unwrap();
    db.checkpoint().unwrap();
    insert(&db, &items, 101, 2).unwrap();
    db.run(|tx| items.update(tx, 1, Item::COUNT.add(1))).unwrap();
    let before = contents(&items);
    drop((db, items));
    let (_db, items) = open_items::<P>(&disk);
    assert_eq!(contents(&items), before);
}

/// Returns all protocols, with timestamp splitting or not.
fn choices() -> Vec<(Chosen, bool)> {
    let protocols = [
        Chosen::of::<Occ>(Default::default()),
        Chosen::of::<TicToc>(()),
        Chosen::of::<Mvcc>(()),
        Chosen::of::<Mvto>(()),
        Chosen::of::<Serial>(Exclusion::OneSession),
        Chosen::of::<Serial>(Exclusion::GlobalLock),
    ];
    protocols.into_iter().flat_map(|chosen| [(chosen.clone(), true), (chosen, false)]).collect()
}

fn open_chosen(disk: &SimDisk, (chosen, splitting): &(Chosen, bool)) -> Database<Erased> {
    let builder = Database::<Erased>::builder().policy(chosen.clone());
    let builder = builder.timestamp_splitting(*splitting);
    builder.open_on(Arc::new(disk.clone()), super::options()).unwrap()
}

#[test]
fn files_do_not_depend_on_the_protocol_nor_on_splitting() {
    for first in &choices() {
        let disk = SimDisk::new();
        let db = open_chosen(&disk, first);
        let items = db.table::<Item>("items").unwrap();
        db.run(|tx| (0..4).try_for_each(|id| items.insert(tx, Item::new(id, 0)))).unwrap();
        drop((db, items));
        for (next, second) in (0..).zip(&choices()) {
            let db = open_chosen(&disk, second);
            let items = db.table::<Item>("items").unwrap();
            let rows = contents(&items);
            assert!(
                rows.values().all(|row| row.count == next && row.other == 100 + 2 * next as u64),
                "{rows:?}"
            );
            assert_eq!(rows.len(), 4);
            for id in 0..4 {
                db.run(|tx| {
                    items.update(tx, &id, Item::COUNT.add(1))?;
                    items.update(tx, &id, Item::OTHER.add(2))
                })
                .unwrap();
            }
        }
    }
}

#[test]
fn a_database_is_in_the_directory_of_its_name() {
    let directory = std::env::temp_dir().join(format!("candide-reopening-{}", std::process::id()));
    let path = directory.join("shop.candide");
    let db = Database::open(&path).unwrap();
    let items = db.table::<Item>("items").unwrap();
    db.run(|tx| items.insert(tx, Item::new(1, 1))).unwrap();
    let second = Database::open(&path).unwrap_err();
    assert!(matches!(second, candide::OpenError::InUse { pid } if pid == Some(std::process::id())));
    drop((db, items));
    let db = Database::open(&path).unwrap();
    let items = db.table::<Item>("items").unwrap();
    assert_eq!(db.run(|tx| items.get(tx, 1, Whole)), Ok(Some(Item::new(1, 1))));
    let backup = directory.join("copy.candide");
    db.backup(&backup).unwrap();
    drop((db, items));
    let db = Database::open(&backup).unwrap();
    let items = db.table::<Item>("items").unwrap();
    assert_eq!(contents(&items).len(), 1);
    drop((db, items));
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_session_that_has_ended_leaves_its_last_commit_to_the_logger() {
    let (disk, db, items) = new_items::<Occ>();
    let mut session = db.session().unwrap();
    let pending = session.run_logged(|tx| items.insert(tx, Item::new(1, 1)));
    drop(session);
    pending.wait().unwrap();
    let copy = disk.at(disk.position());
    drop((db, items));
    let (_db, items) = open_items::<Occ>(&copy);
    assert_eq!(contents(&items).len(), 1);
}

#[test]
fn transactions_without_changes_write_no_log() {
    let (disk, db, items) = new_items::<Occ>();
    insert(&db, &items, 1, 1).unwrap();
    db.sync().unwrap();
    let log_bytes = db.durability().unwrap().log_bytes;
    for _ in 0..100 {
        db.run(|tx| items.get(tx, 1, Whole)).unwrap();
        assert_eq!(db.run(|tx| items.get(tx, 2, Whole)), Ok(None));
        assert_eq!(insert(&db, &items, 1, 5), Err(Abort::Duplicate));
    }
    assert_eq!(db.durability().unwrap().log_bytes, log_bytes);
    assert!(open::<Occ>(&disk).is_err(), "the disk is in use");
}
