//! Waits that must end: on a full disk, at the end of a database, and after calls of the program on
//! the log's own threads.

use super::{contents, crashed, insert, new_items, open, open_items, options};
use crate::common::{Item, builder, eventually, ok, receive};
use candide::{Abort, Database, Error, Level, Occ, Pending, RunOptions, Table, Whole};
use candide_log_testing::{Fault, SimDisk};
use std::pin::{Pin, pin};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

/// Fills the disk: the last of the items that are committed then has no room.
fn fill(disk: &SimDisk, db: &Database<Occ>, items: &Table<Item, Occ>) {
    disk.set_quota(Some(disk.used()));
    let mut id = 1_000;
    while db.run_logged(|tx| items.insert(tx, Item::new(id, 5))).peek() != Err(&Abort::DiskFull) {
        id += 1;
    }
}

#[test]
fn a_session_with_a_large_backlog_is_told_that_the_disk_is_full() {
    let disk = SimDisk::new();
    // The logger begins its first round when the session waits for it.
    let options = options().flush_every(Duration::from_secs(3600)).acknowledge(Level::Memory);
    let db = builder::<Occ>().open_on(Arc::new(disk.clone()), options).unwrap();
    let items = db.table::<Item>("items").unwrap();
    disk.set_quota(Some(disk.used() + (1 << 20)));
    let (sender, receiver) = channel();
    let session = thread::spawn({
        let (db, items) = (db.clone(), items.clone());
        move || {
            let rows = (0..300_000).map(|id| Item::new(id, 5));
            ok(db.run(|tx| items.insert_many(tx, rows.clone())));
            sender.send(insert(&db, &items, 300_000, 5)).unwrap();
            sender.send(db.run(|tx| items.get(tx, 0, Whole)).map(drop)).unwrap();
        }
    });
    assert_eq!(receive("the session is told", &receiver), Err(Abort::DiskFull));
    assert_eq!(receive("the session reads", &receiver), Ok(()));
    session.join().unwrap();
    disk.set_quota(None);
    eventually("there is room", || insert(&db, &items, 300_001, 5).is_ok());
    drop((db, items));
    assert_eq!(contents(&open_items::<Occ>(&disk).1).len(), 300_001);
}

#[test]
fn a_full_disk_ends_a_checkpoint_and_a_sync() {
    let (disk, db, items) = new_items::<Occ>();
    insert(&db, &items, 1, 5).unwrap();
    fill(&disk, &db, &items);
    let (sender, receiver) = channel();
    thread::spawn({
        let db = db.clone();
        move || {
            sender.send(db.sync()).unwrap();
            sender.send(db.checkpoint().map(drop)).unwrap();
            sender.send(db.backup_to(Arc::new(SimDisk::new())).map(drop)).unwrap();
        }
    });
    for what in ["a sync", "a checkpoint", "a backup"] {
        let ended = receive(what, &receiver);
        assert_eq!(ended, Err(Error::Transaction(Abort::DiskFull)), "{what}");
    }
    disk.set_quota(None);
    eventually("there is room", || db.sync().is_ok());
    db.checkpoint().unwrap();
}

/// A task that drops all handles of a database when it is woken, as the end of a task may.
struct DropsDatabase(Mutex<Option<Handles>>, Mutex<Sender<Option<String>>>);

/// All handles of a database, with the future of the task.
type Handles = (Database<Occ>, Table<Item, Occ>, Pin<Box<Pending<()>>>);

impl Wake for DropsDatabase {
    fn wake(self: Arc<Self>) {
        drop(self.0.lock().unwrap().take());
        let thread = thread::current().name().map(str::to_owned);
        self.1.lock().unwrap().send(thread).unwrap();
    }
}

#[test]
fn a_task_that_the_logger_wakes_may_drop_the_database() {
    let disk = SimDisk::new();
    let options = options().flush_every(Duration::from_secs(3600));
    let db = builder::<Occ>().open_on(Arc::new(disk.clone()), options).unwrap();
    let items = db.table::<Item>("items").unwrap();
    let pending = Box::pin(db.run_logged(|tx| items.insert(tx, Item::new(1, 5))));
    let memory = RunOptions::new().acknowledge(Level::Memory);
    db.with(memory).run(|tx| items.insert(tx, Item::new(2, 5))).unwrap();
    let (sender, receiver) = channel();
    let task = Arc::new(DropsDatabase(Mutex::new(Some((db, items, pending))), Mutex::new(sender)));
    let waker = Waker::from(task.clone());
    // The logger waits for the end of the poll.
    let mut handles = task.0.lock().unwrap();
    let (.., pending) = handles.as_mut().expect("nothing has woken the task");
    assert!(pending.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    drop(handles);
    let thread = receive("the database is dropped", &receiver);
    assert_eq!(thread.as_deref(), Some("candide-log"));
    for disk in [crashed(&disk), disk] {
        assert_eq!(contents(&open_items::<Occ>(&disk).1).len(), 2);
    }
}

/// A waker that panics.
struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("the waker panics");
    }
}

#[test]
fn a_waker_that_panics_does_not_end_the_logger() {
    let (_, db, items) = new_items::<Occ>();
    for id in 0..10 {
        let mut pending = pin!(db.run_logged(|tx| items.insert(tx, Item::new(id, 5))));
        let waker = Waker::from(Arc::new(Panics));
        let _ = pending.as_mut().poll(&mut Context::from_waker(&waker));
        let (sender, receiver) = channel();
        let (db, items) = (db.clone(), items.clone());
        thread::spawn(move || sender.send(insert(&db, &items, 100 + id, 5)).unwrap());
        assert_eq!(receive("the log goes on", &receiver), Ok(()));
    }
}

#[test]
fn a_callback_registered_after_the_failure_of_the_log_is_called() {
    let (disk, db, items) = new_items::<Occ>();
    insert(&db, &items, 1, 5).unwrap();
    disk.fail(1, Fault::SyncLoses);
    let lost = db.run_logged(|tx| items.insert(tx, Item::new(2, 5)));
    assert_eq!(db.sync(), Err(Error::Transaction(Abort::LogFailed)));
    drop((db, items));
    let (sender, receiver) = channel();
    // The last handle closes the database, and then the call is made.
    let again = disk.clone();
    lost.on_durable(move |result| sender.send((result, open::<Occ>(&again).is_ok())).unwrap());
    assert_eq!(receiver.try_recv(), Ok((Err(Abort::LogFailed), true)));
}

#[test]
fn a_callback_may_run_transactions_and_drop_the_database() {
    let (disk, db, items) = new_items::<Occ>();
    let (sender, receiver) = channel();
    let first = db.run_logged(|tx| items.insert(tx, Item::new(1, 5)));
    let second = db.run_logged(|tx| items.insert(tx, Item::new(2, 5)));
    let then = sender.clone();
    second.on_durable(move |result| sender.send(result).unwrap());
    first.on_durable({
        let disk = disk.clone();
        move |result| {
            insert(&db, &items, 3, 5).unwrap();
            let memory = RunOptions::new().acknowledge(Level::Memory);
            db.with(memory).run(|tx| items.insert(tx, Item::new(4, 5))).unwrap();
            drop((db, items));
            // The directory is free at once, also on this thread.
            assert_eq!(contents(&open_items::<Occ>(&disk).1).len(), 4);
            then.send(result).unwrap();
        }
    });
    for _ in 0..2 {
        assert_eq!(receive("the call is made", &receiver), Ok(()));
    }
    assert_eq!(contents(&open_items::<Occ>(&crashed(&disk)).1).len(), 4);
}

#[test]
fn two_databases_wait_for_each_other_inside_closures_and_effects() {
    let disks = [SimDisk::new(), SimDisk::new()];
    let [(one, of_one), (two, of_two)] = [&disks[0], &disks[1]].map(open_items::<Occ>);
    let mut other = one.session().unwrap();
    let (sender, receiver) = channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            let ended: Result<(), Abort> = one.run(|tx| {
                of_one.insert(tx, Item::new(1, 5))?;
                // Another session of the same database, and another database.
                ok(other.run(|tx| of_one.put(tx, Item::new(2, 5))));
                ok(two.run(|tx| of_two.put(tx, Item::new(1, 5))));
                one.sync().and(two.sync()).unwrap();
                Ok(())
            });
            one.run(|tx| {
                of_one.update(tx, 1, Item::COUNT.add(1))?;
                let (one, of_one, two, of_two) =
                    (one.clone(), of_one.clone(), two.clone(), of_two.clone());
                tx.on_commit(move || {
                    insert(&two, &of_two, 3, 5).unwrap();
                    insert(&one, &of_one, 3, 5).unwrap();
                });
                Ok(())
            })
            .unwrap();
            sender.send(ended).unwrap();
        });
        assert_eq!(receive("all have ended", &receiver), Ok(()));
    });
    drop((other, one, of_one, two, of_two));
    let rows = disks.each_ref().map(|disk| contents(&open_items::<Occ>(disk).1).len());
    assert_eq!(rows, [3, 2]);
}
