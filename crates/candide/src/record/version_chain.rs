//! Version chains in the order of timestamps, for protocols that link a version before its commit
//! is validated.
//!
//! ```text
//! cell     | newest: 52 | flags: 12 | seen until |  | stamp | rts | older |   payload ...
//! version                                           | stamp | rts | older |   payload ...
//! stamp    | ts: 60 | delta: 1 | absent: 1 | state: 2 |
//! ```
//!
//! A cell's first word is like a [`Tid`], with the address of the newest version in place of the
//! version's number. The address is zero if the chain is empty. Below the oldest version of a chain
//! the row is absent. The cell's second word is the read timestamp of that absence. The cell's
//! remaining words are room for one version: the version that is linked first, and, once that
//! version has left the chain, a later one. All other versions are blocks of their table's version
//! slab. A version in a block may be a *delta*: the words behind its header then hold operations on
//! the version below ([`delta`](super::delta)).
//!
//! # Invariants
//! * **VC1** An address in a cell's first word or in an `older` is the address of a version of the
//!   same unit, or zero. Only this file writes these addresses.
//! * **VC2** The memory of a version that was reachable under a pin is neither freed nor used for
//!   another version while the pin lasts or the version is in its chain. For the version in the
//!   record: after it has left the chain, the word of its rts is a stamp of the epoch, and the flag
//!   VACATED says so. A version is linked there again only when memory with that stamp is free.
//! * **VC3** The timestamps of a chain descend. The state of a version is PENDING until the
//!   version's owner sets the state to COMMITTED or ABORTED, once. The owner writes the payload
//!   before that. A committed delta becomes a row once, or is merged once, under the cell's latch.
//!   Only the holder of the latch reads the words of a committed delta. Only the owner of any other
//!   delta reads the words of that delta. The timestamp and the payload of a committed version do
//!   not change, except by VC5.
//! * **VC4** A cell's first word and each `older` are changed only under the cell's latch. The
//!   latch is the flag INSTALL, set by one exchange. The latch's holder waits for no other thread.
//! * **VC5** If the newest version is a committed delta and the next one a row, the delta may be
//!   *merged*: the row takes over the delta's effect, timestamp and rts in its own memory, the
//!   delta's state becomes ABORTED, and the delta leaves the chain. A thread merges only if no
//!   other thread reads the row's payload or raises its rts, as long as the delta is in the chain;
//!   the protocol's page proves that. A thread that has seen the delta finds it aborted, and the
//!   row below with the delta's timestamp.

use super::delta::{self, DeltaSpace};
use super::{CellAt, Tid};
use crate::epoch::Epoch;
use crate::memory::Block;
use crate::sync::{AtomicU64, MODELLED, Ordering, prefetch};
use std::marker::PhantomData;

/// The number of words of a version before its payload.
pub(crate) const VERSION_WORDS: usize = 3;
/// The number of spare words behind the payload in a version's block. With these words, a delta of
/// a small unit can hold one or two operations.
pub(crate) const SPARE_WORDS: usize = 2;
/// The number of words of a cell: the newest version's address, the read timestamp of the absence
/// below all versions, and the header of the version in the record.
pub(crate) const CHAIN_WORDS: usize = 2 + VERSION_WORDS;

/// The flag of a cell: the room for a version in the record has been used.
pub(crate) const INLINE_USED: u64 = Tid::own_flag(2);
/// The flag of a cell: the version in the record has left the chain, and its rts is the stamp of
/// that moment (VC2).
pub(crate) const VACATED: u64 = Tid::own_flag(4);
/// The flag of a unit: the unit's remaining older version is in one session's garbage until a
/// snapshot closes. The flag is not a state of the row.
pub(crate) const ON_SNAPSHOT_LIST: u64 = Tid::own_flag(3);

const NEWEST: usize = 0;
const EXISTENCE_RTS: usize = 1;
const IN_RECORD: usize = 2;

const STAMP: usize = 0;
const RTS: usize = 1;
const OLDER: usize = 2;

/// The number of bits by which an address is shifted in a cell's word, to leave room for the flags.
/// The shift loses no bit of the address, since every block begins at a multiple of eight bytes.
const ADDRESS_SHIFT: u32 = 9;

/// The timestamp and the state of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp(u64);

impl Stamp {
    const PENDING: u64 = 0;
    const COMMITTED: u64 = 1;
    const ABORTED: u64 = 2;
    /// COMMITTED, and the commit has queued the unit. Only deltas have this state.
    const COMMITTED_AND_QUEUED: u64 = 3;
    const STATES: u64 = 3;
    const ABSENT: u64 = 4;
    const DELTA: u64 = 8;
    const TS_SHIFT: u32 = 4;

    /// Returns the stamp of a pending version.
    pub(crate) fn pending(ts: u64, is_present: bool) -> Stamp {
        Stamp(ts << Stamp::TS_SHIFT | Stamp::PENDING | if is_present { 0 } else { Stamp::ABSENT })
    }

    /// Returns this stamp with the flag of a delta.
    pub(crate) fn of_delta(self) -> Stamp {
        Stamp(self.0 | Stamp::DELTA)
    }

    /// Returns the timestamp of the version's transaction.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn ts(self) -> u64 {
        self.0 >> Stamp::TS_SHIFT
    }

    /// Returns whether the row is absent in the version.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn is_absent(self) -> bool {
        self.0 & Stamp::ABSENT != 0
    }

    /// Returns whether the version is a delta.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn is_delta(self) -> bool {
        self.0 & Stamp::DELTA != 0
    }

    /// Returns whether the version is committed and is not a delta.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn is_readable(self) -> bool {
        self.0 & (Stamp::STATES | Stamp::DELTA) == Stamp::COMMITTED
    }

    /// Returns whether the version is pending.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn is_pending(self) -> bool {
        self.0 & Stamp::STATES == Stamp::PENDING
    }

    /// Returns whether the version is committed.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn is_committed(self) -> bool {
        self.0 & Stamp::COMMITTED != 0
    }

    /// Returns whether the version is a committed delta, and its commit has queued the unit.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn is_queued_delta(self) -> bool {
        self.is_delta() && self.0 & Stamp::STATES == Stamp::COMMITTED_AND_QUEUED
    }

    /// Returns whether the version is aborted.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn is_aborted(self) -> bool {
        self.0 & Stamp::STATES == Stamp::ABORTED
    }
}

/// A version in the chain of a unit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Version<'a> {
    block: Block,
    words: usize,
    /// The holder of a cell's handle is pinned, so the cell's versions are not freed (LY2, VC2).
    cell: PhantomData<&'a CellAt>,
}

/// The identity of a version, valid as long as the version cannot be freed. Zero means the absence
/// below all versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VersionId(u64);

impl VersionId {
    /// The absence below all versions of a chain.
    pub(crate) const NONE: VersionId = VersionId(0);

    /// Returns the identity for which [`VersionId::word`] has returned `word`.
    pub(crate) fn of_word(word: u64) -> VersionId {
        VersionId(word)
    }

    /// Returns the identity as a word. Zero means the absence below all versions.
    pub(crate) fn word(self) -> u64 {
        self.0
    }
}

/// A cell that the caller has latched (VC4).
#[derive(Debug)]
pub(crate) struct Latched<'a> {
    at: &'a CellAt,
    /// The first word that the cell will have after its release.
    word: Tid,
}

impl CellAt {
    /// Returns the cell's first word: the address of the newest version, and flags.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn chain_word(&self) -> Tid {
        // Acquire: makes the newest version's header and payload visible (E3).
        Tid(self.cell_word(NEWEST).load(Ordering::Acquire))
    }

    /// Returns the newest linked version according to `word`, which the caller has loaded from the
    /// cell under the present pin.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn newest_linked(&self, word: Tid) -> Option<Version<'_>> {
        self.linked_at(word.version() >> ADDRESS_SHIFT)
    }

    /// Returns the version with identity `id`; `None` for [`VersionId::NONE`]. The caller knows
    /// that the version was reachable under the present pin, or that it has not been taken out of
    /// its chain.
    pub(crate) fn linked(&self, id: VersionId) -> Option<Version<'_>> {
        self.linked_at(id.0)
    }

    /// Returns the read timestamp of the absence below all versions. Where deltas are used, it is
    /// also the read timestamp of the row's existence.
    #[inline]
    pub(crate) fn existence_rts(&self) -> &AtomicU64 {
        self.cell_word(EXISTENCE_RTS)
    }

    /// Writes the initial state of the cell: the row has never been inserted.
    pub(crate) fn empty_chain(&self) {
        self.cell_word(NEWEST).store(Tid::INITIAL.0, Ordering::Relaxed);
        self.existence_rts().store(0, Ordering::Relaxed);
    }

    /// Latches the cell if the latch is free.
    ///
    /// # Errors
    /// The cell's first word, if the cell is latched or dead, or if the word has changed during the
    /// call.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn try_latch(&self) -> Result<Latched<'_>, Tid> {
        let cell = self.cell_word(NEWEST);
        let word = Tid(cell.load(Ordering::Relaxed));
        if word.has(Tid::INSTALL | Tid::DEAD) {
            return Err(word);
        }
        // Acquire: makes the changes of earlier holders to the chain visible (E3).
        match cell.compare_exchange(
            word.0,
            word.0 | Tid::INSTALL,
            Ordering::Acquire,
            Ordering::Relaxed,
        ) {
            Ok(_) => Ok(Latched { at: self, word }),
            Err(now) => Err(Tid(now)),
        }
    }

    /// Prefetches the newest version.
    pub(crate) fn prefetch_newest_linked(&self) {
        self.newest_by_hint_linked().inspect(|version| prefetch(version.block.hint(0)));
    }

    /// Prefetches words `first..first + count` of the newest version, and its header.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn prefetch_in_newest_linked(&self, first: usize, count: usize) {
        if let Some(Version { block, .. }) = self.newest_by_hint_linked() {
            prefetch(block.hint(0));
            block.prefetch(VERSION_WORDS + first, count);
        }
    }

    /// Prefetches the header of the version below the newest one.
    pub(crate) fn prefetch_second_linked(&self) {
        if !MODELLED && let Some(newest) = self.newest_linked(self.chain_word()) {
            newest.older().inspect(|version| prefetch(version.block.hint(0)));
        }
    }

    /// Prefetches all of the newest version.
    #[inline]
    pub(crate) fn prefetch_all_of_newest_linked(&self) {
        if let Some(Version { block, words, .. }) = self.newest_by_hint_linked() {
            block.prefetch(0, VERSION_WORDS + words);
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn newest_by_hint_linked(&self) -> Option<Version<'_>> {
        if MODELLED {
            // A model would try every value that the load may return.
            return None;
        }
        // Relaxed: the address is only a hint for prefetching, so the words at the address may be
        // stale.
        self.newest_linked(Tid(self.cell_word(NEWEST).load(Ordering::Relaxed)))
    }

    /// Prefetches words `first..first + count` of the version in the record.
    #[inline]
    pub(crate) fn prefetch_in_record(&self, first: usize, count: usize) {
        self.linked_in_record().block.prefetch(VERSION_WORDS + first, count);
    }

    /// Returns whether the newest version is in the record, by `word`, the cell's word.
    #[inline]
    pub(crate) fn is_newest_in_record(&self, word: Tid) -> bool {
        word.version() >> ADDRESS_SHIFT == self.linked_in_record().block.address()
    }

    /// Returns the block of a version of this unit; `None` if the version is in the record.
    pub(crate) fn block_of_linked(&self, version: Version<'_>) -> Option<Block> {
        (version.block != self.linked_in_record().block).then_some(version.block)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn linked_at(&self, address: u64) -> Option<Version<'_>> {
        Block::at(address).map(|block| Version {
            block,
            words: self.payload_words(),
            cell: PhantomData,
        })
    }

    fn linked_in_record(&self) -> Version<'_> {
        // The address is taken from a reference, not computed: under a model, words are larger than
        // eight bytes.
        let first = std::ptr::from_ref(self.cell_word(IN_RECORD)).expose_provenance();
        self.linked_at(first as u64).expect("a cell is never at zero")
    }
}

impl<'a> Version<'a> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn word(self, index: usize) -> &'a AtomicU64 {
        debug_assert!(index < VERSION_WORDS);
        // SAFETY: every version begins with a header (VC1), and no version is freed as long as the
        // handle on its cell lives (VC2, LY2).
        unsafe { self.block.word(index) }
    }

    /// Returns the version's identity.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn id(self) -> VersionId {
        VersionId(self.block.address())
    }

    /// Returns the version's timestamp and present state.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn stamp(self) -> Stamp {
        // Acquire: makes the payload of a committed version visible (E3).
        Stamp(self.word(STAMP).load(Ordering::Acquire))
    }

    /// Returns the version's read timestamp.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn rts(self) -> &'a AtomicU64 {
        self.word(RTS)
    }

    /// Returns the next older version in the chain; `None` if this is the oldest.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn older(self) -> Option<Version<'a>> {
        // Acquire: the version below may have been linked later than this version (E3).
        let block = Block::at(self.word(OLDER).load(Ordering::Acquire))?;
        Some(Version { block, ..self })
    }

    /// Returns this version and all below it.
    pub(crate) fn and_older(self) -> impl Iterator<Item = Version<'a>> {
        std::iter::successors(Some(self), |version| version.older())
    }

    /// Returns the words of the unit in this version. The words have no meaning if the row is
    /// absent.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn payload(self) -> &'a [AtomicU64] {
        // SAFETY: as in `word`. All versions of a unit have the same size (VC1).
        unsafe { self.block.words(VERSION_WORDS, self.words) }
    }

    /// Makes this version a delta. The caller owns the version, which is pending and in a block.
    pub(crate) fn become_delta(self) {
        let stamp = self.word(STAMP);
        let was = Stamp(stamp.load(Ordering::Relaxed));
        assert!(was.is_pending());
        // Relaxed: other threads wait for the outcome of the version.
        stamp.store(was.of_delta().0, Ordering::Relaxed);
        delta::clear(self.delta_words());
    }

    /// Returns the room for the operations of this delta. The caller owns the delta, which is
    /// pending.
    pub(crate) fn delta_room(self) -> DeltaSpace<'a> {
        assert!(self.stamp().is_pending());
        // SAFETY: a pending delta's words belong to its owner (VC3), and the caller is the owner.
        unsafe { DeltaSpace::new(self.delta_words()) }
    }

    /// Returns the words of this delta, including the spare words. A delta is never the version in
    /// the record, which has no spare words.
    fn delta_words(self) -> &'a [AtomicU64] {
        assert!(self.stamp().is_delta());
        // SAFETY: as in `payload`. A delta is in a block (`link`, `become_delta`), and blocks have
        // these spare words behind the payload (VC1).
        unsafe { self.block.words(VERSION_WORDS, self.words + SPARE_WORDS) }
    }

    /// Turns this committed delta into a version whose payload is `image`. The caller has latched
    /// the cell.
    pub(crate) fn become_row(self, image: &[u64]) {
        for (word, &value) in self.payload().iter().zip(image) {
            word.store(value, Ordering::Relaxed);
        }
        let stamp = self.word(STAMP);
        let was = Stamp(stamp.load(Ordering::Relaxed));
        debug_assert!(was.is_committed() && was.is_delta(), "VC3: a delta becomes a row once");
        let state = was.0 & !(Stamp::DELTA | Stamp::STATES) | Stamp::COMMITTED;
        // Release: publishes the payload (E3).
        stamp.store(state, Ordering::Release);
    }

    /// Copies the words of `other`, a committed version of the same unit that is not a delta. The
    /// caller owns this version, which is pending.
    pub(crate) fn copy_from(self, other: Version<'_>) {
        assert!(self.stamp().is_pending() && other.stamp().is_readable());
        debug_assert_eq!(self.words, other.words, "VC1: versions of one unit");
        // SAFETY: as in `payload`. Before this version is committed or aborted, only its owner uses
        // the words of this version. The words of `other` are not written any more (VC3).
        unsafe { self.block.copy_words(other.block, VERSION_WORDS, self.words) };
    }

    /// Commits the version, which the caller owns and which is pending.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn commit(self) {
        self.settle(Stamp::COMMITTED);
    }

    /// Commits a delta whose commit has queued the unit, as [`Version::commit`] does.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn commit_queued(self) {
        debug_assert!(self.stamp().is_delta());
        self.settle(Stamp::COMMITTED_AND_QUEUED);
    }

    /// Aborts the version, which the caller owns and which is pending.
    pub(crate) fn abort(self) {
        self.settle(Stamp::ABORTED);
    }

    fn settle(self, state: u64) {
        let stamp = self.word(STAMP);
        let was = Stamp(stamp.load(Ordering::Relaxed));
        debug_assert!(was.is_pending(), "VC3: a version is settled once");
        // Release: publishes the payload (E3).
        stamp.store(was.0 | state, Ordering::Release);
    }
}

impl<'a> Latched<'a> {
    /// Returns the first word that the cell will have after its release.
    pub(crate) fn word(&self) -> Tid {
        self.word
    }

    /// Returns the newest version.
    pub(crate) fn newest(&self) -> Option<Version<'a>> {
        self.at.newest_linked(self.word)
    }

    /// Returns whether the record's room for a version is free (VC2). `is_free` returns whether
    /// memory with a stamp is free.
    pub(crate) fn has_room_in_record(&self, is_free: impl FnOnce(Epoch) -> bool) -> bool {
        // A reader of the version that has left may still raise this word. Then the room is not
        // used again.
        let stamp = || self.at.linked_in_record().rts().load(Ordering::Relaxed);
        !self.word.has(INLINE_USED) || self.word.has(VACATED) && is_free(stamp())
    }

    /// Notes that the version in the record has left the chain. `stamp` is the epoch that the
    /// caller read after that, and after a fence (EP2).
    pub(crate) fn vacate(&mut self, stamp: Epoch) {
        debug_assert!(self.word.has(INLINE_USED) && !self.word.has(VACATED));
        // Relaxed: only holders of the latch use the stamp.
        self.at.linked_in_record().rts().store(stamp, Ordering::Relaxed);
        self.word.0 |= VACATED;
    }

    /// Links a version with `stamp` below `above`. If `above` is `None`, links it as the newest
    /// version; then its timestamp must be above that of the newest version so far. The version is
    /// put into `block`, which the caller owns, or into the record if `block` is `None`.
    pub(crate) fn link(
        &mut self,
        above: Option<Version<'a>>,
        block: Option<Block>,
        stamp: Stamp,
    ) -> Version<'a> {
        let new = match block {
            Some(block) => Version { block, words: self.at.payload_words(), cell: PhantomData },
            None => {
                assert!(
                    (!self.word.has(INLINE_USED) || self.word.has(VACATED)) && !stamp.is_delta()
                );
                self.word.0 = (self.word.0 | INLINE_USED) & !VACATED;
                self.at.linked_in_record()
            }
        };
        let below = above.map_or_else(|| self.newest(), Version::older);
        debug_assert!(
            below.is_none_or(|below| below.stamp().ts() < stamp.ts()),
            "VC3: timestamps of a chain descend"
        );
        debug_assert!(
            above.is_none_or(|above| above.stamp().ts() > stamp.ts()),
            "VC3: timestamps of a chain descend"
        );
        new.word(STAMP).store(stamp.0, Ordering::Relaxed);
        new.rts().store(stamp.ts(), Ordering::Relaxed);
        new.word(OLDER).store(below.map_or(0, |below| below.block.address()), Ordering::Relaxed);
        if stamp.is_delta() {
            delta::clear(new.delta_words());
        }
        self.replace(above, Some(new));
        new
    }

    /// Applies a committed delta of this chain to an image of the unit.
    pub(crate) fn apply_delta(&self, version: Version<'_>, image: &mut Vec<u64>) {
        assert!(version.stamp().is_committed());
        // SAFETY: `link` has cleared these words. Since then only the version's owner has written
        // them, through `delta_room`, before the version was committed (VC3). The stamp shows that
        // the version is committed. No thread writes these words before the cell is released.
        unsafe { delta::apply(version.delta_words(), self.at, image) }
    }

    /// Copies `row`, the version below the newest one, into the record, and puts the copy in its
    /// place. The room is free (VC2), and the same holds as for a merge (VC5).
    pub(crate) fn move_into_record(&mut self, row: Version<'a>) -> Version<'a> {
        let (newest, new) = (self.newest().expect("it lies above"), self.at.linked_in_record());
        assert!(self.word.has(VACATED) && row.stamp().is_readable());
        debug_assert!(newest.older().is_some_and(|older| older.id() == row.id()), "VC5");
        // SAFETY: as in `payload`. No other thread uses the words of the free room (VC2), and those
        // of `row` are not written now (VC3).
        unsafe { new.block.copy_words(row.block, VERSION_WORDS, self.at.payload_words()) };
        for word in [STAMP, RTS, OLDER] {
            // Relaxed: `replace` publishes these words.
            new.word(word).store(row.word(word).load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.word.0 &= !VACATED;
        // Release: publishes the copy (E3).
        newest.word(OLDER).store(new.block.address(), Ordering::Release);
        new
    }

    /// Merges the newest version, a committed delta, into `row`, the version below it (VC5). The
    /// delta has left the chain then. `image` is a buffer.
    pub(crate) fn merge(&mut self, delta: Version<'a>, row: Version<'a>, image: &mut Vec<u64>) {
        let (stamp, was) = (delta.stamp(), row.stamp());
        assert!(stamp.is_committed() && was.is_readable());
        debug_assert!(self.newest().is_some_and(|newest| newest.id() == delta.id()), "VC5");
        debug_assert!(delta.older().is_some_and(|older| older.id() == row.id()), "VC5");
        // SAFETY: as in `apply_delta`. No other thread uses the words of the row now (VC5).
        unsafe { delta::apply_in_place(delta.delta_words(), self.at, row.payload(), image) };
        // Relaxed: no other thread raises these words now (VC5).
        let rts = delta.rts().load(Ordering::Relaxed);
        if row.rts().load(Ordering::Relaxed) < rts {
            row.rts().store(rts, Ordering::Relaxed);
        }
        let ts = stamp.0 & !(Stamp::STATES | Stamp::DELTA);
        // Release: publishes the payload and the rts (E3).
        row.word(STAMP).store(ts | Stamp::COMMITTED, Ordering::Release);
        // Release: a thread that finds the delta aborted sees the row's new stamp (E3).
        delta.word(STAMP).store(ts | Stamp::ABORTED, Ordering::Release);
        self.replace(None, Some(row));
    }

    /// Makes `below` the next version below `above`, or the newest version if `above` is `None`.
    /// The versions between the two leave the chain. If `below` is `None`, the chain ends there.
    pub(crate) fn replace(&mut self, above: Option<Version<'a>>, below: Option<Version<'a>>) {
        let falls =
            |above: Version<'_>| below.is_none_or(|below| below.stamp().ts() < above.stamp().ts());
        debug_assert!(above.is_none_or(falls), "VC3: timestamps of a chain descend");
        let address = below.map_or(0, |below| below.block.address());
        match above {
            // Release: publishes the header of the version `below` (E3).
            Some(above) => above.word(OLDER).store(address, Ordering::Release),
            None => self.word.0 = address << ADDRESS_SHIFT | (self.word.0 - self.word.version()),
        }
    }

    /// Sets flags of the cell.
    pub(crate) fn raise(&mut self, flags: u64) {
        self.word.0 |= flags;
    }

    /// Clears flags of the cell.
    pub(crate) fn clear(&mut self, flags: u64) {
        self.word.0 &= !flags;
    }

    /// Releases the cell.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn release(self) {
        debug_assert!(!self.word.has(Tid::INSTALL), "VC4: the holder gives the latch back");
        // Release: publishes the header of the newest version to readers (E3), and this holder's
        // changes to the next holder of the latch.
        self.at.cell_word(NEWEST).store(self.word.0, Ordering::Release);
    }
}
