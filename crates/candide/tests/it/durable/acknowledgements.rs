//! What is durable when a transaction has been acknowledged.

use super::{contents, crashed, insert, new_items, open_items, options};
use crate::common::{Item, builder, database_with};
use candide::{Abort, Level, LogOptions, Occ, Protocol, RunOptions, Whole};
use candide_log_testing::SimDisk;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

protocol_tests!(all: run_returns_after_the_transaction_is_durable);

fn run_returns_after_the_transaction_is_durable<P: Protocol>() {
    let (disk, db, items) = new_items::<P>();
    for id in 0..20 {
        insert(&db, &items, id, 5).unwrap();
        let (_again, items) = open_items::<P>(&crashed(&disk));
        assert_eq!(contents(&items).len() as u64, id + 1);
    }
}

protocol_tests!(all: a_result_stays_pending_until_its_commit_is_durable);

fn a_result_stays_pending_until_its_commit_is_durable<P: Protocol>() {
    let disk = SimDisk::new();
    // The logger begins no round unless it is asked to.
    let options = options().flush_every(Duration::from_secs(3600));
    let db = builder::<P>().open_on(Arc::new(disk.clone()), options).unwrap();
    let items = db.table::<Item>("items").unwrap();
    let written = db.run_logged(|tx| {
        items.insert(tx, Item::new(1, 5))?;
        Ok(17)
    });
    assert_eq!(written.peek(), Ok(&17));
    assert!(!written.is_at(Level::Written));
    // A transaction that has read what is not durable is pending, and so are errors.
    let read = db.run_logged(|tx| items.get(tx, 1, Whole));
    assert_eq!(read.peek().unwrap().map(|row| row.count), Some(5));
    let refused = db.run_logged(|tx| items.insert(tx, Item::new(1, 6)));
    assert_eq!(refused.peek(), Err(&Abort::Duplicate));
    assert!(!read.is_at(Level::Durable) && !refused.is_at(Level::Durable));
    assert_eq!(read.wait().unwrap().map(|row| row.count), Some(5));
    assert_eq!(refused.wait(), Err(Abort::Duplicate));
    assert!(written.is_at(Level::Durable));
    assert_eq!(written.wait(), Ok(17));
    let (_again, items) = open_items::<P>(&crashed(&disk));
    assert_eq!(contents(&items).len(), 1);
}

/// A waker that unparks a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on this thread.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn a_pending_result_is_a_future_and_takes_a_callback() {
    let (disk, db, items) = new_items::<Occ>();
    let pending = db.run_logged(|tx| items.insert(tx, Item::new(1, 5)));
    assert_eq!(block_on(pending), Ok(()));
    let (sender, receiver) = channel();
    for id in 2..12 {
        let (sender, disk) = (sender.clone(), disk.clone());
        let pending = db.run_logged(|tx| items.insert(tx, Item::new(id, 5)));
        pending.on_durable(move |result| {
            sender
                .send((id, result, contents(&open_items::<Occ>(&crashed(&disk)).1).len()))
                .unwrap();
        });
    }
    for _ in 2..12 {
        let (id, result, rows) = receiver.recv().unwrap();
        assert_eq!(result, Ok(()));
        assert!(rows as u64 >= id, "rows {rows}, id {id}");
    }
    let many: Vec<_> =
        (20..60).map(|id| db.run_logged(move |tx| Ok((tx.attempt_number(), id)))).collect();
    for (pending, id) in many.into_iter().zip(20..) {
        assert_eq!(block_on(pending), Ok((1, id)));
    }
}

#[test]
fn waits_for_durability_return_at_once_without_a_log() {
    let (db, items) = database_with::<Item, Occ>("items");
    let pending = db.run_logged(|tx| items.insert(tx, Item::new(1, 5)));
    assert!(pending.is_at(Level::Durable));
    assert_eq!(pending.wait(), Ok(()));
    assert_eq!(block_on(db.run_logged(|tx| items.get(tx, 2, Whole))), Ok(None));
    assert!(db.durability().is_none() && db.log_failure().is_none());
    assert_eq!(db.sync(), Ok(()));
    assert_eq!(db.checkpoint().unwrap_err(), candide::Error::NotDurable);
}

#[test]
fn the_durability_level_of_a_call_overrides_that_of_the_database() {
    let disk = SimDisk::new();
    let options = LogOptions::new()
        .segment_bytes(64 << 10)
        .acknowledge(Level::Memory)
        .flush_every(Duration::from_secs(3600));
    let db = builder::<Occ>().open_on(Arc::new(disk.clone()), options).unwrap();
    let items = db.table::<Item>("items").unwrap();
    insert(&db, &items, 1, 5).unwrap();
    assert_eq!(contents(&open_items::<Occ>(&crashed(&disk)).1).len(), 0);
    let durable = RunOptions::new().acknowledge(Level::Durable);
    db.with(durable).run(|tx| items.insert(tx, Item::new(2, 5))).unwrap();
    assert_eq!(contents(&open_items::<Occ>(&crashed(&disk)).1).len(), 2);
    insert(&db, &items, 3, 5).unwrap();
    db.sync().unwrap();
    assert_eq!(contents(&open_items::<Occ>(&crashed(&disk)).1).len(), 3);
}

#[test]
fn commits_without_a_waiter_become_durable() {
    let disk = SimDisk::new();
    let options = options().acknowledge(Level::Memory).flush_every(Duration::from_millis(1));
    let db = builder::<Occ>().open_on(Arc::new(disk.clone()), options).unwrap();
    let items = db.table::<Item>("items").unwrap();
    for id in 0..5 {
        // Long enough for the logger to have fallen asleep.
        thread::sleep(Duration::from_millis(40));
        insert(&db, &items, id, 5).unwrap();
        crate::common::eventually("the row is durable", || {
            contents(&open_items::<Occ>(&crashed(&disk)).1).len() as u64 == id + 1
        });
    }
}
