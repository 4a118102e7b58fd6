//! What several tests need: tables, commits, opening into maps.

use candide_log::disk::Disk;
use candide_log::format::commit::{ChangeKind, CommitWriter, RecordBuffer};
use candide_log::schema::TableState;
use candide_log::{
    IndexSchema, LogWriter, OpenError, Recovered, Rows, Store, StoreOptions, TableSchema,
};
use candide_log_testing::SimDisk;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows by table and key.
pub type Map = BTreeMap<(u32, Vec<u64>), Vec<u64>>;

/// The words of a row of the tests' tables.
pub const ROW_WORDS: u16 = 4;

/// A database that is open, and what was in it.
pub struct Opened {
    pub store: Store,
    pub log: LogWriter,
    pub recovered: Recovered,
    pub rows: Map,
}

/// Returns options with small segments, so that there are many.
pub fn options() -> StoreOptions {
    StoreOptions { segment_bytes: 16 << 10, checkpoint_log_bytes: 64 << 10, ..Default::default() }
}

pub fn open_shared(disk: Arc<dyn Disk>, options: &StoreOptions) -> Result<Opened, OpenError> {
    let target = Rows::new();
    let (store, log, recovered) = Store::open(disk, options, &target, &|_| {})?;
    Ok(Opened { store, log, recovered, rows: target.to_map() })
}

pub fn open_with(disk: impl Disk + 'static, options: &StoreOptions) -> Result<Opened, OpenError> {
    open_shared(Arc::new(disk), options)
}

pub fn open(disk: impl Disk + 'static) -> Result<Opened, OpenError> {
    open_with(disk, &options())
}

/// Opens a new database, and adds the table `accounts`. Returns the table's number, too.
pub fn open_new() -> (SimDisk, Opened, u32) {
    let disk = SimDisk::new();
    let opened = open(disk.clone()).unwrap();
    let table = opened.store.add_table(schema("accounts")).unwrap();
    (disk, opened, table)
}

/// Returns the schema of a table with keys of one word and rows of four, in two groups.
pub fn schema(name: &str) -> TableSchema {
    TableSchema {
        number: 0,
        name: name.to_string(),
        row_type: "tests::Row".to_string(),
        schema: 7,
        key_words: 1,
        key_widths: vec![64],
        groups: vec![("cold".to_string(), 1), ("hot".to_string(), u32::from(ROW_WORDS) - 1)],
        ordered: true,
        splitting: None,
        policy: Some("wait".to_string()),
        indexes: vec![IndexSchema {
            name: "by_hot".to_string(),
            unique: false,
            ordered: false,
            columns: Vec::new(),
        }],
        fields: Vec::new(),
        state: TableState::InUse,
    }
}

/// A change of a row of one of the tests' tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    pub kind: ChangeKind,
    pub table: u32,
    pub key: u64,
    pub first: u16,
    pub words: Vec<u64>,
}

impl Write {
    pub fn new(kind: ChangeKind, table: u32, key: u64, first: u16, words: &[u64]) -> Write {
        Write { kind, table, key, first, words: words.to_vec() }
    }

    /// Makes the change. The row is there, unless this is a put.
    pub fn apply(&self, rows: &mut Map) {
        let row = (self.table, vec![self.key]);
        if self.kind == ChangeKind::Delete {
            rows.remove(&row).expect("the row is there");
            return;
        }
        let is_put = self.kind == ChangeKind::Put;
        assert!(is_put || rows.contains_key(&row), "{self:?} of a row that is not there");
        let words = rows.entry(row).or_insert_with(|| vec![0; ROW_WORDS.into()]);
        let first = usize::from(self.first);
        words[first..first + self.words.len()].copy_from_slice(&self.words);
    }
}

/// Appends a commit record.
pub fn commit(to: &mut Vec<u64>, stamp: u64, version: u64, writes: &[Write]) {
    let mut buffer = RecordBuffer::new();
    let mut record = CommitWriter::begin(&mut buffer);
    let mut before = None;
    for write in writes {
        let row = (write.table, write.key);
        let key = [write.key];
        let key = (before != Some(row)).then_some(&key[..]);
        record.entry(write.kind, write.table as u16, write.first, write.words.len() as u16, key);
        record.push_all(&write.words);
        before = Some(row);
    }
    record.finish(stamp, version);
    to.extend_from_slice(buffer.words());
}

/// Returns a commit record that puts a row whose words are all `value`.
pub fn put(stamp: u64, table: u32, key: u64, value: u64) -> Vec<u64> {
    let mut record = Vec::new();
    let words = [value; ROW_WORDS as usize];
    commit(&mut record, stamp, stamp, &[Write::new(ChangeKind::Put, table, key, 0, &words)]);
    record
}

/// Returns the map in which `keys` of `table` have rows of their own number.
pub fn rows(table: u32, keys: impl IntoIterator<Item = u64>) -> Map {
    keys.into_iter().map(|key| ((table, vec![key]), vec![key; ROW_WORDS.into()])).collect()
}

/// Returns the contents of a file.
pub fn read_file(disk: &SimDisk, name: &str) -> Vec<u8> {
    let file = disk.open(name).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(0, &mut bytes).unwrap();
    bytes
}

/// Makes a file with these contents.
pub fn write_file(disk: &SimDisk, name: &str, bytes: &[u8]) {
    disk.create(name).unwrap().write_at(0, &[bytes]).unwrap();
}

pub fn copy(disk: &SimDisk) -> SimDisk {
    disk.at(disk.position())
}

pub fn names(disk: &SimDisk) -> Vec<String> {
    disk.list().unwrap()
}

/// Returns a database that was closed: two generations, a checkpoint of several parts with pending
/// records, several segments after it.
pub fn closed_database() -> (SimDisk, Map) {
    let (disk, mut opened, table) = open_new();
    let many: Vec<u64> = (1..=900).flat_map(|key| put(5, table, key, key)).collect();
    opened.log.write(&[&many, &put(6, table, 1000, 1000)], 5).unwrap();
    opened.store.checkpoint().unwrap();
    opened.log.write(&[&put(7, table, 1001, 1001)], 7).unwrap();
    opened.log.close().unwrap();
    drop(opened.store);
    let mut opened = open(disk.clone()).unwrap();
    for number in 1..=4 {
        let key = 2000 + number;
        opened.log.write(&[&put(number, table, key, key)], number).unwrap();
    }
    opened.log.close().unwrap();
    drop(opened.store);
    let expected = rows(table, (1..=900).chain([1000, 1001]).chain(2001..=2004));
    assert_eq!(open(copy(&disk)).unwrap().rows, expected);
    let parts = names(&disk).iter().filter(|name| name.starts_with("checkpoint-")).count();
    assert!(parts > 1, "{parts} parts");
    (disk, expected)
}
