//! Versions of a unit's words, for protocols that keep more than one.
//!
//! ```text
//! cell     | head | wts | rts | state | older | payload ...
//! version         | wts | rts | state | older | payload ...
//! ```
//!
//! A version is a block of its table's version slab. What follows the head in a cell has the same form: it is the *base
//! version*, the oldest of every chain.
//!
//! # Invariants
//! * **V1** `head` and `older` hold addresses of versions of this very unit (`older` of the base version: zero). Only this
//!   file writes them.
//! * **V2** A version that has been linked is freed with its table, not before.
//! * **V3** `wts` and `older` are written before a version can be reached, and never again; only the base version of a
//!   record that is being linked gets its timestamps later, while it is pending.
//! * **V4** Only the head of a chain is ever pending or aborted.

use super::CellAt;
use crate::memory::{Block, Cache, OutOfMemory, Slab};
use crate::sync::{AtomicU64, Ordering};
use std::iter::successors;
use std::marker::PhantomData;
use std::sync::Arc;

/// Words of a version before its payload.
pub(crate) const VERSION_WORDS: usize = 4;
/// Words of a cell: the chain's head, and the header of the base version.
pub(crate) const CHAIN_WORDS: usize = 1 + VERSION_WORDS;

const WTS: usize = 0;
const RTS: usize = 1;
const STATE: usize = 2;
const OLDER: usize = 3;

/// What became of a version, or of its writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VersionState {
    /// Its writer is committing.
    Pending,
    /// Committed: the row with these words.
    Present,
    /// Committed: no row.
    Absent,
    /// It is as if it were not there.
    Aborted,
}

impl VersionState {
    const ALL: [VersionState; 4] =
        [VersionState::Pending, VersionState::Present, VersionState::Absent, VersionState::Aborted];
}

/// A version in the chain of a unit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Version<'a> {
    block: Block,
    words: usize,
    /// Whoever holds a cell's handle holds its versions (R2, V2).
    cell: PhantomData<&'a CellAt>,
}

impl CellAt {
    /// Begins the chain of a record that is not linked yet: the base version alone, pending.
    pub(crate) fn begin_chain(&self) {
        let base = self.base();
        base.write_header(0, 0);
        self.cell_word(0).store(base.block.address(), Ordering::Relaxed);
    }

    /// The oldest version.
    pub(crate) fn base(&self) -> Version<'_> {
        // Taken from the word itself: under a model, words are larger than eight bytes.
        let first = std::ptr::from_ref(self.cell_word(1)).expose_provenance();
        self.version(Block::at(first as u64).expect("a cell is never at zero"))
    }

    /// The newest version.
    pub(crate) fn head(&self) -> Version<'_> {
        // Acquire pairs with the Release of `NewVersion::link`: a version that is reached has its header.
        let head = Block::at(self.cell_word(0).load(Ordering::Acquire));
        self.version(head.expect("a linked record has a chain (V1)"))
    }

    /// The newest version below a timestamp that is not aborted, pending ones included; none if even the base version
    /// is not below it.
    pub(crate) fn newest_below(&self, ts: u64) -> Option<(Version<'_>, VersionState)> {
        // The state comes first: a base version's timestamps are right once it is not pending (V3).
        successors(Some(self.head()), |version| version.older())
            .map(|version| (version, version.state()))
            .find(|(version, state)| *state != VersionState::Aborted && version.wts() < ts)
    }

    fn version(&self, block: Block) -> Version<'_> {
        Version { block, words: self.payload_words(), cell: PhantomData }
    }
}

impl<'a> Version<'a> {
    fn word(self, index: usize) -> &'a AtomicU64 {
        debug_assert!(index < VERSION_WORDS);
        // SAFETY: every version begins with a header (V1), and stays for as long as its cell's handle does (V2, R2).
        unsafe { self.block.word(index) }
    }

    /// The timestamp of its writer.
    pub(crate) fn wts(self) -> u64 {
        self.word(WTS).load(Ordering::Relaxed)
    }

    /// No transaction with a timestamp below this one may put a version on top.
    pub(crate) fn rts(self) -> &'a AtomicU64 {
        self.word(RTS)
    }

    pub(crate) fn state(self) -> VersionState {
        // Acquire pairs with the Release of `settle`: a settled version has its words, and the base its timestamps.
        VersionState::ALL[self.word(STATE).load(Ordering::Acquire) as usize]
    }

    /// Ends the time in which the version was pending and its words its writer's business.
    pub(crate) fn settle(self, state: VersionState) {
        self.word(STATE).store(state as u64, Ordering::Release); // see `state`
    }

    /// The version below.
    pub(crate) fn older(self) -> Option<Version<'a>> {
        // Relaxed: published with the version (V3), or by whoever published that one.
        let block = Block::at(self.word(OLDER).load(Ordering::Relaxed))?;
        Some(Version { block, ..self })
    }

    /// Of a head that is not pending: the newest version that counts.
    pub(crate) fn settled(self) -> Version<'a> {
        let is_aborted = self.state() == VersionState::Aborted;
        if is_aborted { self.older().expect("the base version is never aborted (V4)") } else { self }
    }

    /// The words of the unit in this version.
    pub(crate) fn payload(self) -> &'a [AtomicU64] {
        // SAFETY: as in `word`; the versions of one unit are of one size (V1).
        unsafe { self.block.words(VERSION_WORDS, self.words) }
    }

    /// Takes over the words of another version of the unit, which is committed.
    pub(crate) fn copy_from(self, other: Version<'_>) {
        for (new, old) in self.payload().iter().zip(other.payload()) {
            new.store(old.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Gives the base version of a record that is being linked its timestamps: absent, and not pending any more.
    pub(crate) fn begin(self, wts: u64, rts: u64) {
        self.word(WTS).store(wts, Ordering::Relaxed);
        self.word(RTS).store(rts, Ordering::Relaxed);
        self.settle(VersionState::Absent);
    }

    /// Writes the header of a version nobody can reach yet (V3).
    fn write_header(self, wts: u64, older: u64) {
        let header = [(WTS, wts), (RTS, wts), (STATE, VersionState::Pending as u64), (OLDER, older)];
        header.iter().for_each(|&(index, value)| self.word(index).store(value, Ordering::Relaxed));
    }
}

/// A version of a unit that is not in its chain: the holder's alone.
#[derive(Debug)]
pub(crate) struct NewVersion {
    block: Block,
    at: CellAt,
}

impl NewVersion {
    /// Room for a version of a unit, from the slab that its table keeps for them.
    pub(crate) fn allocate(
        at: CellAt,
        slab: &Arc<Slab>,
        caches: &mut Vec<Option<Cache>>,
    ) -> Result<NewVersion, OutOfMemory> {
        assert!(slab.block_words() >= VERSION_WORDS + at.payload_words());
        // The block is the caller's, is large enough, and lives as long as the table (V2).
        Ok(NewVersion { block: Cache::of(caches, slab).allocate(slab)?, at })
    }

    /// The unit.
    pub(crate) fn at(&self) -> CellAt {
        self.at
    }

    /// The room, for other use.
    pub(crate) fn into_block(self) -> Block {
        self.block
    }

    /// Makes the version, pending, the head of its chain, above the newest version that counts. Gives it back if `head`,
    /// which is not pending, is not the head any more.
    pub(crate) fn link(self, head: Version<'_>, wts: u64) -> Result<(), NewVersion> {
        self.at.version(self.block).write_header(wts, head.settled().block.address());
        let link = self.at.cell_word(0);
        // Release: see `head`. No version leaves a chain, so an unchanged head means an unchanged chain.
        match link.compare_exchange(head.block.address(), self.block.address(), Ordering::Release, Ordering::Relaxed) {
            Ok(_) => Ok(()),
            Err(_) => Err(self),
        }
    }
}
