//! Disks that get full, and checkpoints that cannot come into force.

use crate::support::*;
use candide_log::disk::{Disk, DiskFile, LockError};
use candide_log::{StoreError, WriteError};
use candide_log_testing::{Fault, SimDisk};
use std::fmt::Debug;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// There is no room for a segment, and a checkpoint is what makes room.
#[test]
fn a_checkpoint_makes_room_when_there_is_none_for_a_segment() {
    let (disk, mut opened, table) = open_new();
    disk.set_quota(Some(disk.used() + (70 << 10)));
    let mut number = 0;
    for _ in 0..5 {
        let before = number;
        loop {
            number += 1;
            match opened.log.write(&[&put(number, table, number % 9, number)], number) {
                Ok(()) => opened.log.sync().unwrap(),
                Err(WriteError::Full(_)) => break,
                Err(error) => panic!("{error}"),
            }
        }
        number -= 1;
        assert!(number > before, "there was room after the checkpoint");
        assert!(opened.store.checkpoint().unwrap().is_new);
        let copied = open(copy(&disk)).unwrap();
        assert_eq!(copied.recovered.cut, number);
        assert_eq!(copied.rows.values().map(|row| row[0]).max(), Some(number));
    }
}

/// The writer tries repeatedly, and takes no room from the checkpoint.
#[test]
fn a_checkpoint_makes_room_beside_a_writer_that_waits_for_it() {
    let disk = SimDisk::new();
    let Opened { store, mut log, .. } = open(disk.clone()).unwrap();
    let table = store.add_table(schema("accounts")).unwrap();
    disk.set_quota(Some(disk.used() + (70 << 10)));
    let mut number = 0;
    for _ in 0..20 {
        let full = loop {
            number += 1;
            let record = put(number, table, number % 9, number);
            if log.write(&[&record], number).is_err() {
                break record;
            }
        };
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                while log.write(&[&full], number).is_err() {
                    if is_over.load(Ordering::SeqCst) {
                        return log.write(&[&full], number).map_err(|error| error.to_string());
                    }
                    thread::yield_now();
                }
                Ok(())
            });
            let made = store.checkpoint();
            is_over.store(true, Ordering::SeqCst);
            assert!(made.unwrap().is_new);
            waiting.join().unwrap().unwrap();
        });
    }
}

/// The writer makes a file at this moment, and has taken all room for it.
#[test]
fn a_checkpoint_makes_room_beside_a_writer_that_makes_a_file() {
    let (inner, signals) = (SimDisk::new(), Arc::new(Signals::default()));
    let disk = Slow { inner: inner.clone(), signals: Arc::clone(&signals) };
    let Opened { store, mut log, .. } = open(disk).unwrap();
    let table = store.add_table(schema("accounts")).unwrap();
    inner.set_quota(Some(inner.used() + (60 << 10)));
    let mut number = 1;
    while log.write(&[&put(number, table, number % 9, number)], number).is_ok() {
        number += 1;
    }
    signals.is_slow.store(true, Ordering::SeqCst);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let record = put(number, table, number % 9, number);
            while let Err(error) = log.write(&[&record], number) {
                assert!(matches!(error, WriteError::Full(_)), "{error}");
                thread::yield_now();
            }
        });
        while !signals.has_written.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        let made = store.checkpoint();
        signals.is_over.store(true, Ordering::SeqCst);
        if made.is_err() {
            inner.set_quota(None);
        }
        writer.join().unwrap();
        assert!(made.unwrap().is_new);
    });
}

/// What a slow disk and its test tell each other.
#[derive(Debug, Default)]
struct Signals {
    is_slow: AtomicBool,
    has_written: AtomicBool,
    is_over: AtomicBool,
}

/// A disk of which one write to a file for a segment takes until the test has ended, if it can be
/// so in the meantime.
#[derive(Debug)]
struct Slow {
    inner: SimDisk,
    signals: Arc<Signals>,
}

/// Such a file.
#[derive(Debug)]
struct SlowFile {
    inner: Box<dyn DiskFile>,
    signals: Arc<Signals>,
}

impl Disk for Slow {
    fn list(&self) -> io::Result<Vec<String>> {
        self.inner.list()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let inner = self.inner.create(name)?;
        if !name.starts_with("spare-") {
            return Ok(inner);
        }
        Ok(Box::new(SlowFile { inner, signals: Arc::clone(&self.signals) }))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.inner.open(name)
    }

    fn open_to_read(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.inner.open_to_read(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.inner.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.inner.remove(name)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.inner.sync_directory()
    }

    fn lock(&self) -> Result<Box<dyn Send + Sync + Debug>, LockError> {
        self.inner.lock()
    }
}

impl DiskFile for SlowFile {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn read_at(&self, offset: u64, to: &mut [u8]) -> io::Result<()> {
        self.inner.read_at(offset, to)
    }

    fn write_at(&self, offset: u64, parts: &[&[u8]]) -> io::Result<()> {
        let written = self.inner.write_at(offset, parts);
        if self.signals.is_slow.swap(false, Ordering::SeqCst) {
            self.signals.has_written.store(true, Ordering::SeqCst);
            for _ in 0..10_000 {
                if self.signals.is_over.load(Ordering::SeqCst) {
                    break;
                }
                thread::yield_now();
            }
        }
        written
    }

    fn check(&self) -> io::Result<()> {
        self.inner.check()
    }

    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }
}

/// The parts of checkpoints that cannot come into force would fill the disk.
#[test]
fn no_checkpoint_is_written_when_manifest_cannot_be_replaced() {
    let database = || {
        let (disk, mut opened, table) = open_new();
        opened.log.write(&[&put(1, table, 1, 1)], 1).unwrap();
        opened.log.sync().unwrap();
        (disk, opened, table)
    };
    // The last sync of a checkpoint is that of the names of MANIFEST and its copy.
    let (twin, other, _) = database();
    let before = twin.position();
    other.store.checkpoint().unwrap();
    let operations = twin.operations();
    let syncs = operations[before..].iter().filter(|operation| operation.contains("sync")).count();
    let (disk, mut opened, table) = database();
    disk.fail(syncs as u64, Fault::SyncLoses);
    let failed = opened.store.checkpoint().unwrap_err();
    assert!(matches!(failed, StoreError::Failed(_)), "{failed}");
    opened.log.write(&[&put(2, table, 2, 2)], 2).unwrap();
    opened.log.sync().unwrap();
    let parts =
        |disk: &SimDisk| names(disk).iter().filter(|name| name.starts_with("checkpoint-")).count();
    let (position, before) = (disk.position(), parts(&disk));
    for _ in 0..2 {
        assert!(matches!(opened.store.checkpoint(), Err(StoreError::Failed(_))));
        assert_eq!(disk.position(), position, "nothing is written");
    }
    assert_eq!(parts(&disk), before);
    drop(opened);
    assert_eq!(open(disk).unwrap().rows, rows(table, [1, 2]));
}
