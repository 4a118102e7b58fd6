//! What there is to say about the transactions of a run.
//!
//! A *unit* is what is read and written in versions of its own: one column group of the row of one
//! key of one table. Whether the row exists is part of every unit: inserts and deletes write all
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
    /// A deleted row has left no trace.
    Forgotten(Forgotten),
}

impl Event {
    /// By when it has to be fed: whoever has been told that the history is complete up to a later
    /// moment does not expect it.
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
    /// Its session, which runs one at a time.
    pub session: u64,
    /// Before it did anything.
    pub begun: u64,
    /// After it had done everything.
    pub ended: u64,
    /// Whether it committed. Who ended in an error of its own, on grounds that were true, counts as
    /// committed without writes.
    pub committed: bool,
    /// What it observed, in order; its own writes are not among it.
    pub reads: Vec<Access>,
    /// The ranges it went through.
    pub scans: Vec<Scan>,
    /// What it wrote, each unit once; empty unless it committed.
    pub writes: Vec<Access>,
    /// If it looked back: no version that it saw can be above this, or below another one of the
    /// same unit that is not above this. It has `begun` at the moment that it saw, or before.
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

/// A range of keys of a table that a transaction went through.
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
    /// Where the range begins.
    #[cfg_attr(feature = "formats", serde(with = "crate::json::bound"))]
    pub from: Bound<Key>,
    /// Where the range ends, at the last key it came to if it was given up there.
    #[cfg_attr(feature = "formats", serde(with = "crate::json::bound"))]
    pub to: Bound<Key>,
}

/// A deleted row has been taken out of the index: from then on its key is read without a version.
///
/// Every transaction that was running when the row was deleted has ended by then. So who reads a
/// key without a version reads the latest version of it that was forgotten before the reader ended
/// (of a reader that looked back, and may have been running before the row came: that is not above
/// its [`as_of`](Transaction::as_of)); if there is none, the key as it was in the beginning,
/// without a row.
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
    /// When, on the clock of the transactions.
    pub at: u64,
}
