//! The parts of multi-version concurrency control: the state of an attempt, and a session's data
//! about undo records.

#![forbid(unsafe_code)]

use super::clock::Clock;
use super::undo_queue::{UndoEntry, UndoQueue};
use crate::engine::{BlockSize, Parts};
use crate::memory::Block;
use crate::protocols::shared::cell_lock::Held;
use crate::protocols::shared::node_set::NodeSet;
use crate::protocols::shared::version_blocks::VersionBlocks;
use crate::protocols::shared::version_reservation::VersionReservation;
use crate::record::undo_record::{SHORT_WORDS, UNDO_WORDS};
use crate::record::{CellAt, Tid};

/// Multi-version concurrency control, after MSTO and HyPer: commits keep undo records of what they
/// change, and read-only transactions see one moment. Its databases have
/// [snapshots](crate::Snapshot).
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
    /// The timestamp up to which it sees commits.
    pub(super) time: u64,
    /// Whether `time` is later than at the beginning.
    pub(super) has_moved: bool,
    pub(super) reads: Vec<(CellAt, Tid)>,
    pub(super) nodes: NodeSet,
    pub(super) held: Held,
    /// The expectations of its writes of their rows' existence.
    pub(super) expected: Vec<(CellAt, bool)>,
    pub(super) has_staged: bool,
    /// A timestamp that was drawn before anything is locked: a deliberate defect of tests.
    pub(super) drawn_early: Option<u64>,
    /// Whether the attempt has read a replaced version, so that it can commit only without writes.
    /// It notes no further reads then, unless `keeps_reads`.
    pub(super) only_reads: bool,
    /// Whether the attempt goes on to note reads although it only reads, because the database
    /// counts commits that OCC would abort. Meaningful only if `only_reads`.
    pub(super) keeps_reads: bool,
    /// The number of attempts left that do not go on as readers of old versions.
    pub(super) refresh_attempts_left: u8,
    /// Blocks for undo records.
    pub(super) room: VersionReservation,
    /// Units to be written that have never been written, so that they need no undo record.
    pub(super) inserted: Vec<CellAt>,
    /// Space for an older version of a unit that is read.
    pub(super) image: Vec<u64>,
}

/// A session's data about undo records, kept from attempt to attempt.
#[derive(Debug, Default)]
pub struct SessionVersions {
    pub(super) blocks: VersionBlocks,
    /// The undo records of commits, in the order of their timestamps.
    pub(super) undo_entries: Vec<UndoEntry>,
    /// The timestamps of the snapshots that were open when the session last began to collect, in
    /// falling order.
    pub(super) snapshots: Vec<u64>,
    pub(super) walk: Walk,
}

impl AsMut<VersionBlocks> for SessionVersions {
    #[inline(always)]
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
    /// The units, by their addresses, whose chains another session was changing: this collection
    /// does not walk through them again.
    pub(super) busy_units: Vec<u64>,
    /// The chain at hand.
    pub(super) chain: Vec<Block>,
    /// An older version of a unit.
    pub(super) image: Vec<u64>,
}

/// Returns the size of the block for an undo record with this number of the unit's words.
#[inline]
pub(super) fn block_size(words: usize) -> BlockSize {
    if UNDO_WORDS + words <= SHORT_WORDS { BlockSize::Short } else { BlockSize::Whole }
}
