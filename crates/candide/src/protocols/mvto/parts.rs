//! The parts of multi-version timestamp ordering: the state of an attempt, and a session's data
//! about versions.

#![forbid(unsafe_code)]

use super::clock::{Clock, Others, Part};
use crate::engine::Parts;
use crate::protocols::shared::node_set::NodeSet;
use crate::protocols::shared::version_blocks::VersionBlocks;
use crate::protocols::shared::version_reservation::VersionReservation;
use crate::record::CellAt;
use crate::record::version_chain::VersionId;
use std::sync::Arc;

/// Multi-version timestamp ordering, after MSTO and Cicada: versions are linked in the order of
/// timestamps before their commit is validated. Its databases have [snapshots](crate::Snapshot).
#[derive(Debug)]
pub struct Mvto;

impl Parts for Mvto {
    type Policy = ();
    type Clock = Clock;
    type Attempt = Attempt;
    type SessionVersions = SessionVersions;
    type Backlog = ();
}

/// The read set of an attempt, its time, and its locks.
#[derive(Debug, Default)]
pub struct Attempt {
    /// The timestamp up to which it sees commits.
    pub(super) time: u64,
    /// Whether `time` is later than at the beginning.
    pub(super) has_moved: bool,
    pub(super) reads: Vec<(CellAt, VersionId)>,
    pub(super) nodes: NodeSet,
    /// Units that no other attempt may write until this one ends; their cells say LOCK.
    pub(super) held: Vec<CellAt>,
    pub(super) has_staged: bool,
    /// Whether the attempt has read a replaced version, so that it can commit only without writes.
    pub(super) only_reads: bool,
    /// Whether the attempt reads at a time before which all commits have ended, so that it notes no
    /// reads, unless `keeps_reads`.
    pub(super) reads_settled: bool,
    /// Whether the attempt notes reads nevertheless: the database counts commits that OCC would
    /// abort. Meaningful only if `reads_settled`.
    pub(super) keeps_reads: bool,
    /// The number of attempts left that do not go on as readers of old versions.
    pub(super) refresh_attempts_left: u8,
    /// Blocks for the versions that do not go into their records.
    pub(super) room: VersionReservation,
    /// Space for a row.
    pub(super) image: Vec<u64>,
    pub(super) part: Option<Arc<Part>>,
    pub(super) others: Others,
}

/// A session's data about versions, kept from attempt to attempt.
#[derive(Debug, Default)]
pub struct SessionVersions {
    pub(super) blocks: VersionBlocks,
    /// The timestamps of the snapshots that were open when the session last began to collect, in
    /// falling order.
    pub(super) snapshots: Vec<u64>,
    /// Units that have been written for the first time since an open snapshot, after that
    /// snapshot's timestamp.
    pub(super) parked: Vec<(u64, CellAt)>,
}

impl AsMut<VersionBlocks> for SessionVersions {
    #[inline(always)]
    fn as_mut(&mut self) -> &mut VersionBlocks {
        &mut self.blocks
    }
}
