//! The other database: what its files have, as objects.

use candide::replica::{NOTE_WORDS, Note, Replica};
use candide::{Database, LogOptions, Mvcc, Occ, Record, Table};
use candide_log::batches::{Batch, Batches};
use candide_log::format::long_row::LongRow;
use candide_log::schema::TableSchema;
use candide_log::sum::{long_row_hash, table_sum};
use candide_log::tools::{Item, inspect};
use candide_log_testing::SimDisk;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

#[derive(Record, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    #[key]
    pub id: u64,
    #[unique]
    pub number: u64,
    #[index]
    pub owner: u32,
    #[group(balance)]
    pub cents: i64,
}

impl Account {
    pub fn new(id: u64, number: u64, owner: u32, cents: i64) -> Account {
        Account { id, number, owner, cents }
    }
}

pub type Accounts<P> = Table<Account, P>;

/// The other database, which is opened for each piece of work.
pub struct Source {
    disk: SimDisk,
    /// The blocks that have been read, and their place in the last generation.
    read: (u64, u64),
    batches: Batches,
    tables: Vec<TableSchema>,
    number: u64,
}

/// An object.
pub struct Object {
    pub tables: Vec<TableSchema>,
    pub batch: Batch,
    pub note: Note,
}

impl Object {
    pub fn apply(&self, replica: &mut Replica<Mvcc>) {
        let records: Vec<_> = self.batch.records().collect();
        replica.apply(&self.tables, &records, &self.note).unwrap();
    }
}

/// Rows by table and key: the words of the columns, and those of the values.
pub type Rows = BTreeMap<(u32, Vec<u64>), (Vec<u64>, Vec<u64>)>;

/// A snapshot: all tables and rows.
pub struct Whole {
    pub tables: Vec<TableSchema>,
    pub rows: Rows,
    pub note: Note,
}

impl Whole {
    pub fn apply(&self, replica: &mut Replica<Mvcc>) {
        replica.begin_snapshot(&self.tables).unwrap();
        self.apply_rows(replica, 0..self.rows.len());
        replica.end_snapshot(&self.note).unwrap();
    }

    pub fn apply_rows(&self, replica: &mut Replica<Mvcc>, range: std::ops::Range<usize>) {
        let rows = self.rows.iter().skip(range.start).take(range.len());
        let rows = rows.map(|((table, key), (words, values))| {
            (*table, LongRow::of(key, words, values).unwrap())
        });
        replica.rows(rows).unwrap();
    }

    /// Returns the sum of all rows.
    pub fn sum(&self) -> u64 {
        let sum_of = |table: &TableSchema| {
            let rows = self.rows.iter().filter(|((of, _), _)| *of == table.number);
            let hash = |key, (words, values): &(Vec<u64>, Vec<u64>)| {
                long_row_hash(LongRow::of(key, words, values).unwrap())
            };
            let sum = rows.fold(0u64, |sum, ((_, key), row)| sum.wrapping_add(hash(key, row)));
            table_sum(&table.name, sum)
        };
        let tables = self.tables.iter().filter(|table| table.is_in_use());
        tables.fold(0, |sum, table| sum.wrapping_add(sum_of(table)))
    }
}

impl Source {
    pub fn new() -> Source {
        Source {
            disk: SimDisk::new(),
            read: (0, 0),
            batches: Batches::default(),
            tables: Vec::new(),
            number: 0,
        }
    }

    /// Calls `work` with the other database, and closes it.
    pub fn with(&self, work: impl FnOnce(&Database<Occ>)) {
        let options = LogOptions::new().acknowledge(candide::Level::Memory);
        let db = Database::<Occ>::builder().open_on(Arc::new(self.disk.clone()), options).unwrap();
        work(&db);
        db.close().unwrap();
    }

    /// As [`Source::with`], for work on accounts.
    pub fn with_accounts(&self, work: impl FnOnce(&Database<Occ>, &Accounts<Occ>)) {
        self.with(|db| work(db, &db.table::<Account>("accounts").unwrap()));
    }

    fn next_note(&mut self) -> Note {
        self.number += 1;
        [self.number; NOTE_WORDS]
    }

    /// Returns the blocks since the last call, an object for each, with what has changed among the
    /// tables in the first.
    pub fn objects(&mut self) -> Vec<Object> {
        let mut tables = Vec::new();
        let mut blocks: Vec<(u64, u64, u64, Vec<u64>)> = Vec::new();
        inspect(&self.disk, &mut |item| {
            match item {
                Item::Manifest(manifest) => tables.clone_from(&manifest.tables),
                Item::Block { header, .. } => {
                    blocks.push((header.generation, header.sequence, header.cut, Vec::new()));
                }
                Item::Record { record, .. } => {
                    if let Some((.., words)) = blocks.last_mut() {
                        words.extend_from_slice(record.words());
                    }
                }
                _ => {}
            }
            ControlFlow::Continue(())
        })
        .unwrap();
        let is_new = |table: &&TableSchema| !self.tables.contains(table);
        let mut changed: Vec<_> = tables.iter().filter(is_new).cloned().collect();
        let gone = self.tables.iter().filter(|of| tables.iter().all(|now| now.number != of.number));
        changed.extend(gone.map(TableSchema::dropped));
        self.tables = tables;
        let mut objects = Vec::new();
        for (generation, sequence, cut, words) in blocks {
            if (generation, sequence) <= self.read {
                continue;
            }
            if generation > self.read.0 {
                self.batches.end_generation();
            }
            self.read = (generation, sequence);
            let batch = self.batches.add(cut, words).unwrap();
            let (tables, note) = (std::mem::take(&mut changed), self.next_note());
            objects.push(Object { tables, batch, note });
        }
        objects
    }

    /// Returns all that the other database has.
    pub fn whole(&mut self) -> Whole {
        self.with(|db| _ = db.checkpoint().unwrap());
        let mut whole = Whole { tables: Vec::new(), rows: Rows::new(), note: self.next_note() };
        inspect(&self.disk, &mut |item| {
            match item {
                Item::Manifest(manifest) => whole.tables.clone_from(&manifest.tables),
                Item::Row { table, row, .. } => {
                    let words = (row.words.to_vec(), row.value_words().to_vec());
                    whole.rows.insert((table, row.key.to_vec()), words);
                }
                _ => {}
            }
            ControlFlow::Continue(())
        })
        .unwrap();
        whole
    }
}

/// Opens the database on a disk as one that follows another.
pub fn follow(disk: &SimDisk) -> Replica<Mvcc> {
    let options = LogOptions::new().segment_bytes(64 << 10);
    Database::<Mvcc>::builder().follow_on(Arc::new(disk.clone()), options).unwrap()
}

/// Returns all accounts in the view of the program, by their keys, by both indexes, and by a
/// snapshot; all of these must agree.
pub fn accounts_of(db: &Database<Mvcc>) -> BTreeMap<u64, Account> {
    use candide::Whole as All;
    let accounts = db.table::<Account>("accounts").unwrap();
    let by_id = db
        .read_view(|tx| {
            let mut rows = BTreeMap::new();
            for id in 0..300 {
                if let Some(row) = accounts.get(tx, id, All)? {
                    rows.insert(id, row);
                    let number = accounts.index(Account::BY_NUMBER).get(tx, row.number, All)?;
                    assert_eq!(number, Some(row));
                }
            }
            Ok(rows)
        })
        .unwrap();
    let mut by_snapshot = BTreeMap::new();
    let snapshot = db.snapshot();
    let each = |id, row: Account| _ = by_snapshot.insert(id, row);
    snapshot.for_each_unordered(&accounts, All, each).unwrap();
    assert_eq!(by_id, by_snapshot);
    by_id
}
