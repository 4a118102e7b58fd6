//! Observations of transactions.

#![forbid(unsafe_code)]

use crate::index::NodeAt;
use std::fmt::Debug;

/// What a read saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Whether the row exists. If not, no words were copied that mean anything.
    pub(crate) present: bool,
    /// The version, as a number that grows with every write of the unit; zero if it has not been
    /// written since its record was linked.
    pub(crate) version: u64,
}

/// What a commit made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed {
    /// The version of everything it wrote; meaningless if it wrote nothing.
    pub(crate) version: u64,
}

/// Keys without a record, and the node whose version vouches for their absence.
#[derive(Debug, Clone, Copy)]
pub struct Missing<'a> {
    pub(crate) table: u16,
    /// The key that a lookup did not find; `None` if a scan went through the node.
    #[cfg_attr(not(any(test, feature = "history")), expect(dead_code, reason = "for histories"))]
    pub(crate) key: Option<&'a [u64]>,
    pub(crate) node: NodeAt,
    pub(crate) version: u64,
}

/// What a transaction sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ReadView {
    /// What there is; it may write.
    #[default]
    Current,
    /// What there was when it began; without versions, what there is. It only reads.
    AtBegin,
    /// What an open snapshot sees.
    Snapshot(u64),
}
