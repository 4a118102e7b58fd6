//! Changes of rows, in a model and in commit records.

use candide_log::format::commit::{ChangeKind, CommitWriter, RecordBuffer};
use std::collections::BTreeMap;

/// Rows by table and key.
pub type Contents = BTreeMap<(u32, Vec<u64>), Vec<u64>>;

/// A change of a row, whose key has one word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Write {
    pub(super) kind: ChangeKind,
    pub(super) table: u32,
    pub(super) key: u64,
    pub(super) first: u16,
    pub(super) words: Vec<u64>,
}

impl Write {
    /// Makes the change. A row has `row_words` words.
    pub(super) fn apply(&self, rows: &mut Contents, row_words: usize) {
        let place = (self.table, vec![self.key]);
        if self.kind == ChangeKind::Delete {
            rows.remove(&place);
            return;
        }
        let row = rows.entry(place).or_insert_with(|| vec![0; row_words]);
        let first = usize::from(self.first);
        row[first..first + self.words.len()].copy_from_slice(&self.words);
    }
}

/// Appends a commit record with these changes.
pub(super) fn append(to: &mut Vec<u64>, stamp: u64, version: u64, writes: &[Write]) {
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
