//! The end of a database: its last handle writes everything and gives the directory back.

use super::{contents, crashed, insert, new_items, open, open_items, options};
use crate::common::{Item, builder, receive};
use candide::{
    Abort, CloseError, Database, Error, IndexOptions, Level, Mvcc, Occ, OpenError, Table,
};
use candide_log::disk::Disk;
use candide_log_testing::{Fault, SimDisk};
use std::any::Any;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// Opens a database whose logger begins no round unless a thread waits for one. Its transactions
/// wait for nothing.
fn open_lazily<P: candide::Protocol>(disk: &SimDisk) -> (Database<P>, Table<Item, P>) {
    let options = options().flush_every(Duration::from_secs(3600)).acknowledge(Level::Memory);
    let db = builder::<P>().open_on(Arc::new(disk.clone()), options).unwrap();
    let items = db.table::<Item>("items").unwrap();
    (db, items)
}

/// A function that makes a handle.
type Make = fn(&Database<Mvcc>, &Table<Item, Mvcc>) -> Box<dyn Any>;

/// A function for each kind of handle, with the kind's name.
const KINDS: [(&str, Make); 7] = [
    ("a database", |db, _| Box::new(db.clone())),
    ("a table", |_, items| Box::new(items.clone())),
    ("an index", |_, items| {
        Box::new(items.create_index("by_count", Item::COUNT, IndexOptions::hashed()).unwrap())
    }),
    ("a sequence", |db, _| Box::new(db.sequence("items").unwrap())),
    ("a session", |db, _| Box::new(db.session().unwrap())),
    ("a snapshot", |db, _| Box::new(db.snapshot())),
    ("a pending result", |db, items| Box::new(db.run_logged(|tx| items.get(tx, 1, Item::COUNT)))),
];

#[test]
fn the_last_handle_of_any_kind_writes_everything_and_unlocks_the_directory() {
    for (kind, make) in KINDS {
        let disk = SimDisk::new();
        let (db, items) = open_lazily::<Mvcc>(&disk);
        let handle = make(&db, &items);
        insert(&db, &items, 1, 5).unwrap();
        drop((db, items));
        let in_use = open::<Mvcc>(&disk).unwrap_err();
        assert!(matches!(in_use, OpenError::InUse { .. }), "{kind} keeps it open: {in_use}");
        drop(handle);
        let after_power_loss = crashed(&disk);
        for disk in [disk, after_power_loss] {
            assert_eq!(contents(&open_items::<Mvcc>(&disk).1).len(), 1, "after {kind}");
        }
    }
}

#[test]
fn closing_with_other_handles_is_refused_with_their_number() {
    let disk = SimDisk::new();
    let (db, items) = open_lazily::<Mvcc>(&disk);
    let mut handles: Vec<_> = KINDS.iter().map(|(_, make)| make(&db, &items)).collect();
    let mut db = db;
    while let Some(handle) = handles.pop() {
        let others = handles.len() + 2;
        let Err(CloseError::InUse { handles, database }) = db.close() else { panic!("{others}") };
        assert_eq!(handles, others);
        db = database;
        insert(&db, &items, others as u64, 5).unwrap();
        drop(handle);
    }
    let error = db.clone().close().unwrap_err();
    assert!(error.to_string().starts_with("the database has 2 other handles"), "{error}");
    assert_eq!(Error::from(error), Error::HandlesLeft { handles: 2 });
    drop(items);
    db.close().unwrap();
    assert_eq!(contents(&open_items::<Mvcc>(&crashed(&disk)).1).len(), KINDS.len());
}

#[test]
fn a_database_in_memory_is_closed_without_a_write() {
    let db = Database::new();
    let items = db.table::<Item>("items").unwrap();
    let Err(CloseError::InUse { handles: 1, database }) = db.close() else { panic!("the table") };
    drop(items);
    database.close().unwrap();
}

#[test]
fn closing_reports_a_sync_that_fails_and_gives_the_directory_back() {
    let disk = SimDisk::new();
    let (db, items) = open_lazily::<Occ>(&disk);
    insert(&db, &items, 1, 5).unwrap();
    db.sync().unwrap();
    insert(&db, &items, 2, 5).unwrap();
    drop(items);
    disk.fail(1, Fault::SyncLoses);
    let error = db.close().unwrap_err();
    assert!(matches!(error, CloseError::Failed(_)), "{error}");
    assert!(matches!(Error::from(error), Error::Files { .. }));
    assert!(contents(&open_items::<Occ>(&disk).1).contains_key(&1));
}

#[test]
fn closing_reports_that_the_log_has_failed_before() {
    let (disk, db, items) = new_items::<Occ>();
    disk.fail(1, Fault::SyncLoses);
    assert_eq!(insert(&db, &items, 1, 5), Err(Abort::LogFailed));
    let failure = db.log_failure().unwrap();
    drop(items);
    let Err(CloseError::Failed(error)) = db.close() else { panic!("the log has failed") };
    assert!(Arc::ptr_eq(&error, &failure), "{error}");
}

#[test]
fn closing_reports_that_the_disk_has_no_room() {
    let disk = SimDisk::new();
    let (db, items) = open_lazily::<Occ>(&disk);
    disk.set_quota(Some(disk.used()));
    let mut id = 0;
    while db.durability().unwrap().recorded_bytes < 4 << 20 {
        insert(&db, &items, id, 5).unwrap();
        id += 1;
    }
    drop(items);
    let Err(CloseError::Failed(error)) = db.close() else { panic!("there is no room") };
    assert_eq!(error.kind(), ErrorKind::StorageFull, "{error}");
    disk.set_quota(None);
    assert_eq!(contents(&open_items::<Occ>(&disk).1).len(), 0);
}

#[test]
fn closing_ends_the_pauses_of_a_checkpoint() {
    let disk = SimDisk::new();
    // At this rate, the pauses would take hours.
    let options = options().checkpoint_bytes(256 << 10).checkpoint_rate(1);
    let db = builder::<Occ>().open_on(Arc::new(disk.clone()), options).unwrap();
    let items = db.table::<Item>("items").unwrap();
    let mut count = 0;
    while db.durability().unwrap().log_bytes < 256 << 10 {
        count += 1;
        insert(&db, &items, count, 5).unwrap();
    }
    // The logger begins the checkpoint before it takes the next record.
    insert(&db, &items, 0, 5).unwrap();
    let (closed, is_closed) = channel();
    thread::spawn(move || {
        drop((db, items));
        closed.send(()).unwrap();
    });
    receive("the database is closed", &is_closed);
    assert!(disk.list().unwrap().iter().any(|name| name.starts_with("checkpoint-")));
    assert_eq!(contents(&open_items::<Occ>(&disk).1).len() as u64, count + 1);
}

#[test]
fn a_session_that_a_thread_keeps_does_not_keep_the_database_open() {
    let disk = SimDisk::new();
    let (db, items) = open_lazily::<Occ>(&disk);
    let ((sender, receiver), (end, ends)) = (channel(), channel::<()>());
    let keeper = thread::spawn({
        let (db, items) = (db.clone(), items.clone());
        move || {
            insert(&db, &items, 1, 5).unwrap();
            drop((db, items));
            sender.send(()).unwrap();
            // The session of this thread is there until the thread ends.
            ends.recv().unwrap();
        }
    });
    receive("the thread has a session", &receiver);
    drop((db, items));
    let again = open_items::<Occ>(&disk);
    end.send(()).unwrap();
    keeper.join().unwrap();
    assert_eq!(contents(&again.1).len(), 1);
}
