//! Memory for changes of index entries.

#![forbid(unsafe_code)]

use crate::record::RecordAt;

/// What the entries of rows are worked out with; kept from operation to operation.
#[derive(Debug, Default)]
pub(crate) struct IndexScratch {
    /// The words of a row outside its key, as they are and as they will be. Of the row as it is,
    /// only the groups that matter to an index are filled in.
    pub(super) before: Vec<u64>,
    pub(super) after: Vec<u64>,
    /// Entry keys, one after another.
    pub(super) keys: Vec<u64>,
    pub(super) changes: Vec<Change>,
}

/// What is to become of the entries of one index.
#[derive(Debug)]
pub(crate) struct Change {
    pub(super) number: usize,
    /// Where the key of the entry that goes lies among the keys.
    pub(super) old: Option<(usize, usize)>,
    pub(super) new: Option<RecordAt>,
}
