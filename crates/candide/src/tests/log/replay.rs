//! The replay of blocks, written a second time for the tests: from blocks to rows.

use super::disk::{Block, Logged};
use crate::engine::{Protocol, TableCore};
use crate::schema::image_words;
use candide_log::format::commit::{Change, ChangeKind, records};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

/// A row, by the number of its table and the words of its key.
pub(crate) type RowKey = (u16, Box<[u64]>);

/// The last write of a unit: the version of its commit, and whether the row exists after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Last {
    pub(crate) version: u64,
    pub(crate) present: bool,
}

/// A commit record.
#[derive(Debug, Clone)]
struct Kept {
    stamp: u64,
    version: u64,
    words: Vec<u64>,
}

/// A recovery that takes one block after another.
pub(crate) struct Replay {
    tables: BTreeMap<u16, Arc<TableCore>>,
    /// The records with stamps above the cut of the last block.
    pending: Vec<Kept>,
    pub(crate) cut: u64,
    pub(crate) rows: BTreeMap<RowKey, Vec<u64>>,
    /// The last write of each unit, also of deleted rows.
    pub(crate) units: BTreeMap<(RowKey, u8), Last>,
    /// The number of changes replayed.
    pub(crate) changes: usize,
}

/// Returns the tables of a database that are logged, by their numbers in the log.
pub(crate) fn logged_tables<P: Protocol>(logged: &Logged<P>) -> BTreeMap<u16, Arc<TableCore>> {
    let tables = &logged.db.inner.engine.tables;
    let tables = tables.read().unwrap_or_else(PoisonError::into_inner);
    tables.iter().filter_map(|core| Some((core.log_number.get()?, core.clone()))).collect()
}

impl Replay {
    /// Returns a recovery of the database that has no block yet.
    pub(crate) fn new<P: Protocol>(logged: &Logged<P>) -> Replay {
        Replay {
            tables: logged_tables(logged),
            pending: Vec::new(),
            cut: 0,
            rows: BTreeMap::new(),
            units: BTreeMap::new(),
            changes: 0,
        }
    }

    /// Returns the recovery of all durable blocks.
    pub(crate) fn of<P: Protocol>(logged: &Logged<P>) -> Replay {
        let mut replay = Replay::new(logged);
        let written = logged.disk.written();
        written.blocks[..written.synced].iter().for_each(|block| replay.take(block));
        replay
    }

    /// Takes the next block: its records, and then all records up to its cut, in the order of their
    /// versions.
    pub(crate) fn take(&mut self, block: &Block) {
        assert!(self.cut <= block.cut, "cut {} follows cut {}", block.cut, self.cut);
        for record in records(&block.records) {
            let record = record.expect("the record is well-formed");
            let (stamp, version) = (record.stamp, record.version);
            assert!(stamp > self.cut, "a record of stamp {stamp} comes after cut {}", self.cut);
            self.pending.push(Kept { stamp, version, words: record.words().to_vec() });
        }
        self.cut = block.cut;
        let (mut batch, pending) =
            std::mem::take(&mut self.pending).into_iter().partition(|kept| kept.stamp <= self.cut);
        self.pending = pending;
        let in_order: &mut Vec<Kept> = &mut batch;
        in_order.sort_by_key(|kept| kept.version);
        for Kept { version, words, .. } in batch {
            for record in records(&words) {
                record.unwrap().entries().for_each(|change| self.apply(version, &change));
            }
        }
    }

    fn apply(&mut self, version: u64, change: &Change<'_>) {
        let &Change { table, kind, first, key, words, .. } = change;
        self.changes += 1;
        let core = &self.tables.get(&table).unwrap_or_else(|| panic!("no table {table}"));
        assert_eq!(key.len(), core.layout.unpacked_key_words(), "{change:?}");
        let row: RowKey = (table, key.into());
        let count = image_words(core.groups);
        let starts = core.layout.placed_units().iter().map(|unit| unit.start());
        let ends = starts.clone().skip(1).chain([count]);
        let mut note = |is_changed: &dyn Fn(usize, usize) -> bool, present| {
            for (unit, (start, end)) in (0..).zip(starts.clone().zip(ends.clone())) {
                if is_changed(start, end) {
                    self.units.insert((row.clone(), unit), Last { version, present });
                }
            }
        };
        if kind == ChangeKind::Delete {
            note(&|_, _| true, false);
            assert!(self.rows.remove(&row).is_some(), "a delete of no row: {change:?}");
            return;
        }
        let first = usize::from(first);
        let behind = first + words.len();
        note(&|start, end| first < end && start < behind, true);
        let image = match kind {
            ChangeKind::Put => self.rows.entry(row).or_insert_with(|| vec![0; count]),
            _ => {
                self.rows.get_mut(&row).unwrap_or_else(|| panic!("an update of no row: {change:?}"))
            }
        };
        image[first..behind].copy_from_slice(words);
    }

    /// Asserts that the rows are those of the database, in which no transaction is running.
    #[cfg(not(shuttle))]
    pub(crate) fn assert_is<P: Protocol>(&self, logged: &Logged<P>) {
        let mut rows = BTreeMap::new();
        for (number, core) in &self.tables {
            let each = &mut |key: &[u64], words: &[u64]| {
                rows.insert((*number, key.into()), words.to_vec());
            };
            crate::api::for_each_row(&logged.db.inner, core, each).expect("nothing runs");
        }
        assert_eq!(self.rows, rows, "{}", P::NAME);
    }

    /// Returns whether a record up to `stamp` would be lost with the blocks taken so far.
    pub(crate) fn loses_up_to(&self, stamp: u64) -> bool {
        self.pending.iter().any(|kept| kept.stamp <= stamp)
    }
}
