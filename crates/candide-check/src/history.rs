//! The events of a run that a history records.
//!
//! A *unit* is the smallest thing with versions of its own: one column group of one row, identified
//! by table, key and group. The existence of the row is part of every unit: inserts and deletes
//! write all groups. Group 0 always exists, so a read of a key without a record is a read of the
//! key's group 0.

use std::ops::Bound;

/// A key, as the words by which a table orders its keys. If one key is a prefix of another, the
/// shorter key comes first.
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
    /// The record of a deleted row was removed.
    Forgotten(Forgotten),
}

impl Event {
    /// Returns the time of the event: the event has to be fed before the checker learns that the
    /// history is complete up to a later time.
    pub fn due(&self) -> u64 {
        match self {
            Event::Transaction(transaction) => transaction.begun,
            Event::Forgotten(forgotten) => forgotten.at,
        }
    }
}

/// One attempt, committed or not.
///
/// All sessions take times from one clock, and no two events have the same time. If one transaction
/// `ended` before another had `begun`, the two also had this order in real time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(
    feature = "formats",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct Transaction {
    /// The session of the attempt. A session runs one transaction at a time.
    pub session: u64,
    /// A time before the first operation of the transaction.
    pub begun: u64,
    /// A time after the last operation of the transaction.
    pub ended: u64,
    /// Whether the attempt committed. An attempt that read a consistent state, and ended because
    /// its own code returned an error, counts as committed without writes.
    pub committed: bool,
    /// The units that the attempt read, in order, except reads of its own writes.
    pub reads: Vec<Access>,
    /// The ranges that the attempt scanned.
    pub scans: Vec<Scan>,
    /// The units that the attempt wrote, each once. Empty if the attempt did not commit.
    pub writes: Vec<Access>,
    /// The time to which the attempt looked back; `None` if it did not look back. Of each unit, the
    /// attempt reads the latest version not above `as_of`. `as_of` is not before `begun`.
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
    /// The version: a number that grows with each write of the unit, and is never zero. `None` for
    /// a read of a key that had no record: the row never existed, or the record of the deleted row
    /// has been [`Forgotten`].
    pub version: Option<u64>,
    /// Whether the row exists in this version. In a write, `false` means a delete.
    pub present: bool,
}

/// A range of keys of a table that a transaction scanned. The transaction observed every key in the
/// range. Keys among the transaction's `reads` were observed in the version stated there. All other
/// keys of the range were observed as keys without a record.
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
    /// The end of the range. If the scan was ended early, this is the last key that the scan
    /// reached.
    #[cfg_attr(feature = "formats", serde(with = "crate::json::bound"))]
    pub to: Bound<Key>,
}

/// The removal of the record of a deleted row. After the removal, reads of the key have no version.
///
/// Every transaction that was running when the row was deleted ended before the removal. So a read
/// without a version read the latest version of the key that was forgotten before the reader ended.
/// A reader that looked back may have been running before the row was inserted. Such a reader read
/// the latest of the forgotten versions not above its [`as_of`](Transaction::as_of). If no such
/// version exists, the reader read the initial version, in which the key has no row.
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
    /// The version that deleted the row.
    pub version: u64,
    /// The time of the removal, on the clock of the transactions.
    pub at: u64,
}
