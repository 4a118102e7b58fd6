//! Opening, writing and opening again, without anything going wrong.

use crate::support::*;
use candide_log::disk::{Disk, DiskFile, LockError, RealDisk};
use candide_log::{OpenError, StoreError, StoreOptions, WriteError};
use candide_log_testing::SimDisk;
use std::fmt::Debug;
use std::io;
use std::sync::Arc;

fn fill(disk: impl Disk + 'static, options: &StoreOptions, commits: u64) {
    let Opened { store, mut log, .. } = open_with(disk, options).unwrap();
    let table = store.add_table(schema("accounts")).unwrap();
    for number in 1..=commits {
        log.write(&[&put(number, table, number, number)], number).unwrap();
        log.sync().unwrap();
        log.prepare().unwrap();
    }
    log.close().unwrap();
}

#[test]
fn an_empty_directory_becomes_a_database() {
    let disk = SimDisk::new();
    let opened = open(disk.clone()).unwrap();
    assert!(opened.recovered.is_new);
    assert!(opened.rows.is_empty() && opened.store.tables().is_empty());
    drop(opened);
    let opened = open(disk.clone()).unwrap();
    assert!(!opened.recovered.is_new);
    assert_eq!((opened.recovered.last_generation, opened.recovered.cut), (0, 0));
}

#[test]
fn written_rows_are_recovered() {
    let disk = SimDisk::new();
    fill(disk.clone(), &options(), 20);
    let opened = open(disk.clone()).unwrap();
    assert_eq!(opened.rows, rows(1, 1..=20));
    assert_eq!((opened.recovered.last_generation, opened.recovered.cut), (1, 20));
    assert_eq!(opened.recovered.records, 20);
    assert_eq!(opened.store.tables()[0].name, "accounts");
}

#[test]
fn generations_are_numbered_in_order_and_empty_ones_leave_no_file() {
    let disk = SimDisk::new();
    fill(disk.clone(), &options(), 3);
    for generation in 2..6 {
        for _ in 0..3 {
            assert_eq!(open(disk.clone()).unwrap().recovered.generation, generation);
        }
        let mut opened = open(disk.clone()).unwrap();
        let key = 100 + generation;
        // Stamps begin anew.
        opened.log.write(&[&put(1, 1, key, key)], 1).unwrap();
        opened.log.sync().unwrap();
    }
    let opened = open(disk.clone()).unwrap();
    assert_eq!(opened.rows, rows(1, (1..=3).chain(102..=105)));
    let segments = disk.list().unwrap().iter().filter(|name| name.starts_with("log-")).count();
    assert_eq!(segments, 2 + 4 + 1);
}

#[test]
fn a_directory_is_opened_once_at_a_time() {
    let disk = SimDisk::new();
    let opened = open(disk.clone()).unwrap();
    let refused = open(disk.clone()).err().map(|error| error.to_string());
    let own = "this process has the database open already; use its handles, or drop all of them";
    assert_eq!(refused.as_deref(), Some(own));
    let Opened { store, log, .. } = opened;
    drop(store);
    assert!(matches!(open(disk.clone()), Err(OpenError::InUse { .. })), "the writer is alive");
    drop(log);
    open(disk).unwrap();
}

#[test]
fn a_table_is_added_once() {
    let disk = SimDisk::new();
    let opened = open(disk.clone()).unwrap();
    assert_eq!(opened.store.add_table(schema("a")).unwrap(), 1);
    assert_eq!(opened.store.add_table(schema("b")).unwrap(), 2);
    let again = opened.store.add_table(schema("a"));
    assert!(matches!(again, Err(StoreError::TableExists { .. })));
    let mut bad = schema("c");
    (bad.key_words, bad.groups) = (0, Vec::new());
    assert!(matches!(opened.store.add_table(bad), Err(StoreError::Schema { .. })));
    drop(opened);
    let tables = open(disk).unwrap().store.tables();
    assert_eq!(tables.iter().map(|table| &table.name[..]).collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn a_round_that_is_larger_than_a_segment_gets_one_of_its_own() {
    let disk = SimDisk::new();
    let mut opened = open(disk.clone()).unwrap();
    opened.store.add_table(schema("accounts")).unwrap();
    let records: Vec<_> = (1..=2000).map(|key| put(5, 1, key, key)).collect();
    let slices: Vec<&[u64]> = records.iter().map(|record| &record[..]).collect();
    opened.log.write(&slices, 5).unwrap();
    opened.log.sync().unwrap();
    opened.log.write(&[&put(6, 1, 7000, 7000)], 6).unwrap();
    drop(opened);
    assert_eq!(open(disk).unwrap().rows, rows(1, (1..=2000).chain([7000])));
}

#[test]
fn a_checkpoint_replaces_the_log() {
    let disk = SimDisk::new();
    fill(disk.clone(), &options(), 30);
    let mut opened = open(disk.clone()).unwrap();
    let done = opened.store.checkpoint().unwrap();
    assert_eq!((done.number, done.rows, done.records, done.left_behind), (1, 30, 30, 0));
    assert_eq!(opened.store.log_bytes(), 0);
    opened.log.write(&[&put(3, 1, 100, 100)], 4).unwrap();
    opened.log.sync().unwrap();
    drop(opened);
    let opened = open(disk.clone()).unwrap();
    assert_eq!(opened.rows, rows(1, (1..=30).chain([100])));
    assert_eq!((opened.recovered.rows, opened.recovered.records), (30, 1));
    assert!(opened.store.checkpoint().unwrap().is_new);
    assert!(!opened.store.checkpoint().unwrap().is_new, "nothing new has been written");
    drop(opened);
    let opened = open(disk.clone()).unwrap();
    assert_eq!(opened.rows, rows(1, (1..=30).chain([100])));
    assert_eq!(opened.recovered.records, 0);
    assert_eq!(opened.recovered.generation, 3);
}

#[test]
fn a_backup_opens_as_a_database() {
    let (disk, copy) = (SimDisk::new(), SimDisk::new());
    fill(disk.clone(), &options(), 30);
    let mut opened = open(disk.clone()).unwrap();
    opened.store.checkpoint().unwrap();
    opened.log.write(&[&put(3, 1, 100, 100)], 4).unwrap();
    opened.log.sync().unwrap();
    opened.log.write(&[&put(5, 1, 101, 101)], 5).unwrap();
    let done = opened.store.backup(std::sync::Arc::new(copy.clone())).unwrap();
    assert_eq!((done.generation, done.cut), (2, 4));
    let refused = opened.store.backup(std::sync::Arc::new(copy.clone()));
    assert!(matches!(refused, Err(StoreError::NotEmpty { .. })));
    assert_eq!(open(copy.clone()).unwrap().rows, rows(1, (1..=30).chain([100])));
    assert_eq!(open(copy).unwrap().recovered.generation, 3);
}

#[test]
fn a_real_directory_is_a_database_too() {
    let path = std::env::temp_dir().join(format!("candide-log-store-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    let options = StoreOptions::default();
    fill(RealDisk::create(&path).unwrap(), &options, 50);
    let mut opened = open_with(RealDisk::open(&path).unwrap(), &options).unwrap();
    assert_eq!(opened.rows, rows(1, 1..=50));
    opened.store.checkpoint().unwrap();
    opened.log.write(&[&put(3, 1, 100, 100)], 4).unwrap();
    drop(opened);
    let opened = open_with(RealDisk::open(&path).unwrap(), &options).unwrap();
    assert_eq!(opened.rows, rows(1, (1..=50).chain([100])));
    drop(opened);
    std::fs::remove_dir_all(&path).unwrap();
}

#[test]
fn records_above_the_cut_are_durable_with_a_later_block() {
    let (disk, mut opened, table) = open_new();
    assert!(!opened.log.has_pending());
    opened.log.write(&[&put(1, table, 1, 1), &put(2, table, 2, 2)], 1).unwrap();
    assert!(opened.log.has_pending());
    opened.log.sync().unwrap();
    assert_eq!(open(copy(&disk)).unwrap().rows, rows(table, [1]));
    assert_eq!(open(copy(&disk)).unwrap().recovered.dropped, 1);
    opened.log.write(&[], 2).unwrap();
    assert!(!opened.log.has_pending());
    assert_eq!(open(copy(&disk)).unwrap().rows, rows(table, [1, 2]));
}

#[test]
fn changes_that_recovery_would_refuse_are_not_written() {
    let record = put(5, 1, 1, 1);
    let cases: [(&[&[u64]], u64, &str); 4] = [
        (&[], 3, "cut 3 comes after the larger cut 4"),
        (&[&put(4, 1, 1, 1)], 6, "a record below the cut: stamp 4, after cut 4"),
        (&[&record[..5]], 6, "a record says that it has 9 words, and has 5"),
        (&[&record, &[1, 2]], 6, "a record has more than 3 words, and 2 are left"),
    ];
    for (records, cut, expected) in cases {
        let (disk, mut opened, table) = open_new();
        opened.log.write(&[&put(4, table, 4, 4)], 4).unwrap();
        let Err(WriteError::Failed(error)) = opened.log.write(records, cut) else {
            panic!("written")
        };
        assert_eq!(error.to_string(), expected);
        assert!(opened.log.sync().is_err(), "the log has failed");
        drop(opened);
        assert_eq!(open(disk).unwrap().rows, rows(table, [4]));
    }
}

/// A disk that counts the files that are open.
#[derive(Debug, Clone)]
struct Counting {
    disk: SimDisk,
    open: Arc<()>,
}

#[derive(Debug)]
struct Counted {
    file: Box<dyn DiskFile>,
    _open: Arc<()>,
}

impl Counting {
    fn counted(&self, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        let open = self.open.clone();
        assert!(Arc::strong_count(&open) < 12, "too many files are open");
        Box::new(Counted { file, _open: open })
    }
}

impl DiskFile for Counted {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read_at(&self, offset: u64, to: &mut [u8]) -> io::Result<()> {
        self.file.read_at(offset, to)
    }

    fn write_at(&self, offset: u64, parts: &[&[u8]]) -> io::Result<()> {
        self.file.write_at(offset, parts)
    }

    fn check(&self) -> io::Result<()> {
        self.file.check()
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }
}

impl Disk for Counting {
    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.counted(self.disk.create(name)?))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.counted(self.disk.open(name)?))
    }

    fn open_to_read(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.counted(self.disk.open_to_read(name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.disk.sync_directory()
    }

    fn lock(&self) -> Result<Box<dyn Send + Sync + Debug>, LockError> {
        self.disk.lock()
    }
}

#[test]
fn segments_of_hundreds_of_openings_are_replaced_by_a_checkpoint() {
    let disk = Counting { disk: SimDisk::new(), open: Arc::new(()) };
    let options = StoreOptions::default();
    fill(disk.clone(), &options, 1);
    let mut openings = 0;
    loop {
        let mut opened = open_with(disk.clone(), &options).unwrap();
        openings += 1;
        let key = 100 + openings;
        opened.log.write(&[&put(1, 1, key, key)], 1).unwrap();
        if opened.store.wants_checkpoint() {
            opened.store.checkpoint().unwrap();
            break;
        }
    }
    assert!(openings > 200, "{openings}");
    let opened = open_with(disk, &options).unwrap();
    assert_eq!(opened.rows, rows(1, [1].into_iter().chain(101..=100 + openings)));
    assert!(!opened.store.wants_checkpoint());
}

#[test]
fn a_large_checkpoint_waits_for_as_much_log_up_to_four_times_the_option() {
    let options = StoreOptions { checkpoint_log_bytes: 20 << 10, ..options() };
    for (rows, expected) in [(10, 20 << 10), (900, 0), (9_000, 80 << 10)] {
        let mut opened = open_with(SimDisk::new(), &options).unwrap();
        opened.store.add_table(schema("accounts")).unwrap();
        for key in 1..=rows {
            opened.log.write(&[&put(key, 1, key, key)], key).unwrap();
        }
        let made = opened.store.checkpoint().unwrap();
        let expected = if expected == 0 { made.bytes } else { expected };
        assert!((20 << 10..=80 << 10).contains(&expected), "{expected}");
        for number in rows + 1.. {
            let before = opened.store.log_bytes();
            assert_eq!(opened.store.wants_checkpoint(), before >= expected, "{rows}: {before}");
            if before >= expected {
                break;
            }
            opened.log.write(&[&put(number, 1, 1, number)], number).unwrap();
        }
    }
}
