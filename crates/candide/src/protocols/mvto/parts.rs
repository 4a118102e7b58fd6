//! The parts of multi-version timestamp ordering: the state of an attempt, and a session's data
//! about versions.

#![forbid(unsafe_code)]

use super::clock::{Clock, Others, Part};
use crate::engine::Parts;
use crate::locks::HeldCells;
use crate::protocols::shared::node_set::NodeSet;
use crate::protocols::shared::parked::Parked;
use crate::protocols::shared::read_set::ReadSet;
use crate::protocols::shared::version_blocks::VersionBlocks;
use crate::protocols::shared::version_reservation::VersionReservation;
use crate::record::CellAt;
use crate::record::version_chain::VersionId;
use std::sync::Arc;

/// Multi-version timestamp ordering, after MSTO and Cicada: a commit links its versions, in the
/// order of timestamps, before it is validated. Databases under this protocol have
/// [snapshots](crate::Snapshot).
#[derive(Debug)]
pub struct Mvto;

impl Parts for Mvto {
    type Policy = ();
    type Clock = Clock;
    type Attempt = Attempt;
    type SessionVersions = SessionVersions;
    type Backlog = Parked;
}

/// The read set of an attempt, its time, and its locks.
#[derive(Debug, Default)]
pub struct Attempt {
    /// The timestamp up to which the attempt sees commits.
    pub(super) time: u64,
    /// Whether `time` has moved on since the attempt began.
    pub(super) has_moved: bool,
    pub(super) reads: ReadSet<VersionId>,
    pub(super) nodes: NodeSet,
    /// The units that no other attempt may write until this attempt ends. LOCK is set in their
    /// cells.
    pub(super) held: HeldCells,
    pub(super) has_staged: bool,
    /// Whether the attempt can commit only without writes: it has read a version that was already
    /// replaced, or its read view is not `Current`.
    pub(super) only_reads: bool,
    /// Whether the attempt reads at a time before which all commits have ended. Such an attempt
    /// keeps no read set, unless `keeps_reads` is set.
    pub(super) reads_settled: bool,
    /// Whether the attempt notes reads nevertheless, because the database counts commits that OCC
    /// would abort. Meaningful only if `reads_settled`.
    pub(super) keeps_reads: bool,
    /// The number of attempts, this one included, that still prefer a newer time to reading old
    /// versions.
    pub(super) refresh_attempts_left: u8,
    /// The blocks reserved for the versions that are not stored in their records.
    pub(super) room: VersionReservation,
    /// Buffer in which a row is built from deltas.
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
    /// The units that wait for an open snapshot to close, each with the snapshot's timestamp. A
    /// commit of this session was the first one to write the unit after that timestamp.
    pub(super) parked: Vec<(u64, CellAt)>,
}

impl AsMut<VersionBlocks> for SessionVersions {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn as_mut(&mut self) -> &mut VersionBlocks {
        &mut self.blocks
    }
}
