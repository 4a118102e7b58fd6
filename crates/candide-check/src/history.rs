//! The events of a run that a history records.
//!
//! A *unit* is what is read and written in versions of its own: one column group of the row of one
//! key of one table. The row's existence is part of every unit: inserts and deletes write all
//! groups. Group 0 is always there, so a key without a record is read as its group 0.

use std::ops::Bound;

/// A key, as the words a table orders it by; shorter keys with the same words come first.
pub type Key = Box<[u64]>;

/// A line of a history. Lines come in any order.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(
    feature = "formats",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "lowercase")
)]
pub enum Event {
    /// An attempt has ended.
    Transaction(Transaction),
    /// The record of a deleted row has been removed.
    Forgotten(Forgotten),
}

impl Event {
    /// Returns the time by which it has to be fed: a checker that takes the history to be complete
    /// up to a later time does not expect it.
    pub fn due(&self) -> u64 {
        match self {
            Event::Transaction(transaction) => transaction.begun,
            Event::Forgotten(forgotten) => forgotten.at,
        }
    }
}

/// One attempt, committed or not.
///
/// Times are of one clock of all sessions, on which no two events have the same time: if one
/// transaction `ended` before another had `begun`, it did so in real time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(
    feature = "formats",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct Transaction {
    /// Its session, which runs one transaction at a time.
    pub session: u64,
    /// The time before its first operation.
    pub begun: u64,
    /// The time after its last operation.
    pub ended: u64,
    /// Whether it committed. An attempt that ended in an error of its own, having read a consistent
    /// state, counts as committed without writes.
    pub committed: bool,
    /// The units it read, in order, without its own writes.
    pub reads: Vec<Access>,
    /// The ranges it scanned.
    pub scans: Vec<Scan>,
    /// The units it wrote, each once; empty unless it committed.
    pub writes: Vec<Access>,
    /// The time it looked back to, if it did: no version that it saw can be above this, or below
    /// another one of the unit that is not above this. It has `begun` at that time or before.
    #[cfg_attr(feature = "formats", serde(default, skip_serializing_if = "Option::is_none"))]
    pub as_of: Option<u64>,
}

/// One unit in one version.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "formats",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct Access {
    /// The table's number.
    pub table: u16,
    /// The row's key.
    pub key: Key,
    /// The column group.
    pub group: u8,
    /// The version: a number that grows from each write of the unit to the next, not zero. `None`
    /// for reads of a key that had no record: the row never existed, or the version that deleted it
    /// has been [`Forgotten`].
    pub version: Option<u64>,
    /// Whether the row exists in this version. False in a write is a delete.
    pub present: bool,
}

/// A range of keys of a table that a transaction scanned.
///
/// It observed every key in it: those among its `reads` in the version said there, all others as
/// keys without a record.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(
    feature = "formats",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct Scan {
    /// The table's number.
    pub table: u16,
    /// The beginning of the range.
    #[cfg_attr(feature = "formats", serde(with = "crate::json::bound"))]
    pub from: Bound<Key>,
    /// The end of the range; the last key reached if the scan was given up there.
    #[cfg_attr(feature = "formats", serde(with = "crate::json::bound"))]
    pub to: Bound<Key>,
}

/// A deleted row whose record has been removed: from then on its key is read without a version.
///
/// Every transaction that was running when the row was deleted has ended by then. So a read of a
/// key without a version reads the latest version of it that was forgotten before the reader ended
/// (for a reader that looked back, and may have been running before the row came: the latest not
/// above its [`as_of`](Transaction::as_of)); if there is none, the initial version, without a row.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(
    feature = "formats",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct Forgotten {
    /// The table's number.
    pub table: u16,
    /// The row's key.
    pub key: Key,
    /// The version that deleted it.
    pub version: u64,
    /// The time of the removal, on the clock of the transactions.
    pub at: u64,
}
