//! Memory for changes of index entries.

#![forbid(unsafe_code)]

use crate::record::RecordAt;

/// Buffers for computing the entries of rows, kept from operation to operation.
#[derive(Debug, Default)]
pub(crate) struct IndexScratch {
    /// The words of a row outside its key, before the change and, in `after`, after the change. In
    /// `before`, only the groups that matter to an index are filled in.
    pub(super) before: Vec<u64>,
    pub(super) after: Vec<u64>,
    /// Entry keys, one after another.
    pub(super) keys: Vec<u64>,
    pub(super) changes: Vec<Change>,
}

/// A change of the entries of one index.
#[derive(Debug)]
pub(crate) struct Change {
    pub(super) number: usize,
    /// The range, in `keys`, of the key of the entry to be removed.
    pub(super) old: Option<(usize, usize)>,
    /// The record of the new entry, and whether the entry waits for another row.
    pub(super) new: Option<(RecordAt, Occupancy)>,
}

/// The state of a record that is to hold an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Occupancy {
    /// The entry can be written.
    Free,
    /// The record holds the entry of another row, in a unique index.
    Taken,
}
