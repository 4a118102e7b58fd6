//! Tests of databases in files, on a simulated disk.

mod acknowledgements;
mod adopted;
mod attack_changes;
mod attack_results;
mod attack_threads;
mod attack_waits;
mod closing;
mod codecs;
mod comings;
mod crashes;
mod described;
mod dropped;
mod failures;
mod keys;
mod laboratory;
mod migrated;
mod objects;
mod rates;
mod renamed;
mod reopening;
mod sequences;
mod tables;

use crate::common::{Item, builder};
use candide::{Abort, Database, LogOptions, OpenError, Protocol, Table};
use candide_log_testing::{CrashOptions, SimDisk};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Options with small files.
fn options() -> LogOptions {
    LogOptions::new().segment_bytes(64 << 10)
}

/// Opens the database on a disk, under the protocol of the test.
fn open<P: Protocol>(disk: &SimDisk) -> Result<Database<P>, OpenError> {
    builder::<P>().open_on(Arc::new(disk.clone()), options())
}

/// Opens the database on a disk, with its table of items.
fn open_items<P: Protocol>(disk: &SimDisk) -> (Database<P>, Table<Item, P>) {
    let db = open::<P>(disk).unwrap();
    let items = db.table::<Item>("items").unwrap();
    (db, items)
}

/// Opens a new database, with its table of items.
fn new_items<P: Protocol>() -> (SimDisk, Database<P>, Table<Item, P>) {
    let disk = SimDisk::new();
    let (db, items) = open_items::<P>(&disk);
    (disk, db, items)
}

/// Returns all items by id. No transaction is running.
fn contents<P: Protocol>(items: &Table<Item, P>) -> BTreeMap<u64, Item> {
    let mut rows = BTreeMap::new();
    items.for_each_quiescent(|row| assert!(rows.insert(row.id, *row).is_none())).unwrap();
    rows
}

/// Returns a disk as a crash at this moment leaves it, if it loses all that is not durable.
fn crashed(disk: &SimDisk) -> SimDisk {
    let now = disk.position();
    let options =
        CrashOptions { first: now, last: now, exhaustive: 0, pieces: 0, samples: 0, seed: 0 };
    disk.crash_states(&options).next().expect("one state is that which loses all").disk()
}

/// Inserts an item.
fn insert<P: Protocol>(
    db: &Database<P>,
    items: &Table<Item, P>,
    id: u64,
    value: i64,
) -> Result<(), Abort> {
    db.run(|tx| items.insert(tx, Item::new(id, value)))
}
