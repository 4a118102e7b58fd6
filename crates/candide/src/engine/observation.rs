//! Observations of transactions.

#![forbid(unsafe_code)]

use crate::index::NodeAt;
use std::fmt::Debug;

/// The result of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Whether the row exists. If not, the copied words are meaningless.
    pub(crate) present: bool,
    /// The number of the version, which grows with every write of the unit; zero if the unit has
    /// not been written since its record was linked.
    pub(crate) version: u64,
}

/// The result of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed {
    /// The version of everything that the commit wrote; meaningless if the commit wrote nothing.
    pub(crate) version: u64,
    /// The stamp of the commit, for the log: no smaller than the stamp of any commit whose writes
    /// this commit has read or replaced. Meaningless if the commit wrote nothing.
    pub(crate) stamp: u64,
}

impl Committed {
    /// The result of a commit that wrote nothing.
    pub(crate) const NOTHING: Committed = Committed { version: 0, stamp: 0 };
}

/// A key, or several, without a record, and the index node that shows the absence. The node's
/// version is observed, so that the absence can be validated.
#[derive(Debug, Clone, Copy)]
pub struct Missing<'a> {
    pub(crate) table: u16,
    /// The key that a lookup did not find; `None` if a scan went through the node.
    #[cfg_attr(not(any(test, feature = "history")), expect(dead_code, reason = "for histories"))]
    pub(crate) key: Option<&'a [u64]>,
    pub(crate) node: NodeAt,
    pub(crate) version: u64,
}

/// The state of the database that a transaction sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ReadView {
    /// The current state. The transaction may write.
    #[default]
    Current,
    /// The state when the transaction began, or the current state if the protocol has no versions.
    /// The transaction only reads.
    AtBegin,
    /// The state that the open snapshot with this timestamp sees.
    Snapshot(u64),
    /// The state at this time, which all commits up to it have reached. The transaction only reads,
    /// and its pin keeps what it sees.
    Past(u64),
}
