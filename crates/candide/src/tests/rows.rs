//! The rows that the tests use.

use candide_derive::Record;

/// A row with two groups and with sub-word columns that share a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Record)]
#[record(crate = crate)]
pub(crate) struct Item {
    #[key]
    pub(crate) id: u64,
    #[group(hot)]
    pub(crate) count: i64,
    #[group(hot)]
    pub(crate) small: u8,
    #[group(hot)]
    pub(crate) flag: bool,
    #[group(cold)]
    pub(crate) other: u64,
}

impl Item {
    pub(crate) fn new(id: u64, count: i64) -> Item {
        Item { id, count, small: 7, flag: false, other: 100 }
    }
}

/// A row of many words in one group. A change of one column takes less memory for the version
/// before it than a change from the first column to the last.
#[cfg(not(any(loom, shuttle, sanitized)))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Record)]
#[record(crate = crate)]
pub(crate) struct Wide {
    #[key]
    pub(crate) id: u64,
    pub(crate) first: u64,
    pub(crate) middle: [u64; 20],
    pub(crate) last: u64,
}
