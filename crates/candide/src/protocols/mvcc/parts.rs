//! The parts of multi-version concurrency control: the state of an attempt, and a session's data
//! about undo records.

#![forbid(unsafe_code)]

use super::clock::Clock;
use super::undo_queue::{UndoEntry, UndoQueue};
use crate::engine::{BlockSize, Parts, Replaced};
use crate::locks::HeldCells;
use crate::memory::Block;
use crate::protocols::shared::node_set::NodeSet;
use crate::protocols::shared::read_set::ReadSet;
use crate::protocols::shared::version_blocks::VersionBlocks;
use crate::protocols::shared::version_reservation::VersionReservation;
use crate::record::undo_record::{SHORT_WORDS, UNDO_WORDS};
use crate::record::{CellAt, Tid};

/// Multi-version concurrency control, after MSTO and HyPer: commits keep undo records of the words
/// that they change, and a read-only transaction sees the database as it was at one moment.
/// Databases under this protocol have [snapshots](crate::Snapshot).
#[derive(Debug)]
pub struct Mvcc;

impl Parts for Mvcc {
    type Policy = ();
    type Clock = Clock;
    type Attempt = Attempt;
    type SessionVersions = SessionVersions;
    type Backlog = UndoQueue;
}

/// The read set of an attempt, its time, and its locks.
#[derive(Debug, Default)]
pub struct Attempt {
    /// The timestamp up to which the attempt sees commits.
    pub(super) time: u64,
    /// Whether `time` has moved on since the attempt began.
    pub(super) has_moved: bool,
    pub(super) reads: ReadSet<Tid>,
    pub(super) nodes: NodeSet,
    pub(super) held: HeldCells,
    /// The units that the attempt writes on the expectation that their rows exist (`true`) or are
    /// absent (`false`).
    pub(super) expected: Vec<(CellAt, bool)>,
    pub(super) has_staged: bool,
    /// Whether the attempt has read a replaced version, so that it can commit only without writes.
    /// Such an attempt notes no further reads, unless `keeps_reads` is set.
    pub(super) only_reads: bool,
    /// Whether the attempt continues to note reads although it only reads, because the database
    /// counts commits that OCC would abort. Meaningful only if `only_reads`.
    pub(super) keeps_reads: bool,
    /// The number of attempts, this one included, that still prefer a newer time to reading old
    /// versions.
    pub(super) refresh_attempts_left: u8,
    /// The blocks reserved for undo records.
    pub(super) room: VersionReservation,
    /// The units that this attempt is going to write for the first time ever. Writes of these units
    /// need no undo record.
    pub(super) inserted: Vec<CellAt>,
    /// Buffer in which an older version of a unit is rebuilt for a read.
    pub(super) image: Vec<u64>,
}

/// A session's data about undo records, kept from attempt to attempt.
#[derive(Debug, Default)]
pub struct SessionVersions {
    pub(super) blocks: VersionBlocks,
    /// The undo records of the session's commits, in the order of the commits' timestamps.
    pub(super) undo_entries: Vec<UndoEntry>,
    /// The values that the session's commits have replaced.
    pub(super) replaced: Vec<Replaced>,
    /// The timestamps of the snapshots that were open when the session last began to collect, in
    /// falling order.
    pub(super) snapshots: Vec<u64>,
    pub(super) walk: Walk,
}

impl AsMut<VersionBlocks> for SessionVersions {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn as_mut(&mut self) -> &mut VersionBlocks {
        &mut self.blocks
    }
}

/// A session's walk through chains of undo records.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// Whether the session is counted among those that walk version chains.
    pub(super) is_counted: bool,
    /// Whether another session walks version chains, too.
    pub(super) others_walk: bool,
    /// A timestamp that all running attempts have reached, except attempts that see only what an
    /// open snapshot sees.
    pub(super) reached: u64,
    /// The addresses of the units whose chains another session was changing. The current collection
    /// does not try these chains again.
    pub(super) busy_units: Vec<u64>,
    /// The blocks of the chain that is being walked.
    pub(super) chain: Vec<Block>,
    /// Buffer for an older version of a unit.
    pub(super) image: Vec<u64>,
}

/// Returns the size of the block for an undo record that holds `words` words of its unit.
#[inline]
pub(super) fn block_size(words: usize) -> BlockSize {
    if UNDO_WORDS + words <= SHORT_WORDS { BlockSize::Short } else { BlockSize::Whole }
}
