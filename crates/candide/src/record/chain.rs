//! Chains of versions in the order of timestamps, for protocols that link a version before they
//! know whether it will stand.
//!
//! ```text
//! cell     | newest: 52 | flags: 12 | seen until |  | stamp | rts | older |   payload ...
//! version                                           | stamp | rts | older |   payload ...
//! stamp    | ts: 60 | delta: 1 | absent: 1 | state: 2 |
//! ```
//!
//! A cell's first word is like a [`Tid`], with the address of the newest version in place of its
//! number; zero if the chain is empty. Below the last version of a chain the row is absent, which
//! may have been seen until the time in the cell's second word. What follows is room for one
//! version, the first that is ever linked. All others are blocks of their table's version slab. A
//! version in a block may be a *delta*: what is to be done to the row below
//! ([`delta`](super::delta)), in words behind its header.
//!
//! # Invariants
//! * **C1** A cell's word and `older` hold addresses of versions of this very unit, or zero. Only
//!   this file makes them.
//! * **C2** A version that was reachable under a pin is neither freed nor used anew while that pin
//!   lasts, or while it is in its chain; the one in the record never is.
//! * **C3** Timestamps of a chain descend. A version's does not change; its state is PENDING, until
//!   its owner makes it COMMITTED or ABORTED, for good. The payload is written by the owner before
//!   that. A committed delta comes to be no delta, once, by who has latched the cell; nobody else
//!   looks at the words of a delta that is committed, nor anybody but its owner at those of one
//!   that is not.
//! * **C4** Who changes a cell's word or an `older` has latched the cell: INSTALL, by one exchange.
//!   It waits for nobody until it lets go.

use super::delta::{self, VersionReservation};
use super::{CellAt, Tid};
use crate::memory::Block;
use crate::sync::{AtomicU64, MODELLED, Mutant, Ordering, mutant, prefetch};
use std::marker::PhantomData;

/// Words of a version before its payload.
pub(crate) const VERSION_WORDS: usize = 3;
/// Words of a version's block behind its payload, so that one or two operations on a small unit can
/// be put off.
pub(crate) const SPARE_WORDS: usize = 2;
/// Words of a cell: the newest version, until when the absence below all was seen, and the header
/// of the version in the record.
pub(crate) const CHAIN_WORDS: usize = 2 + VERSION_WORDS;

const NEWEST: usize = 0;
const EXISTENCE_RTS: usize = 1;
const IN_RECORD: usize = 2;

const STAMP: usize = 0;
const RTS: usize = 1;
const OLDER: usize = 2;

/// By how much addresses are shifted to leave room for a cell's flags. Every block lies at a
/// multiple of eight bytes.
const ADDRESS_SHIFT: u32 = 9;

/// When a version was written, and what has become of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp(u64);

impl Stamp {
    const PENDING: u64 = 0;
    const COMMITTED: u64 = 1;
    const ABORTED: u64 = 2;
    const STATES: u64 = 3;
    const ABSENT: u64 = 4;
    const DELTA: u64 = 8;
    const TS_SHIFT: u32 = 4;

    /// Of a version that has just been linked.
    pub(crate) fn pending(ts: u64, is_present: bool) -> Stamp {
        Stamp(ts << Stamp::TS_SHIFT | Stamp::PENDING | if is_present { 0 } else { Stamp::ABSENT })
    }

    /// The same of a delta.
    pub(crate) fn of_delta(self) -> Stamp {
        Stamp(self.0 | Stamp::DELTA)
    }

    /// The timestamp of its transaction.
    #[inline(always)]
    pub(crate) fn ts(self) -> u64 {
        self.0 >> Stamp::TS_SHIFT
    }

    /// Whether it says that the row is not there.
    #[inline(always)]
    pub(crate) fn is_absent(self) -> bool {
        self.0 & Stamp::ABSENT != 0
    }

    /// Whether it only says what is to be done to the row below.
    #[inline(always)]
    pub(crate) fn is_delta(self) -> bool {
        self.0 & Stamp::DELTA != 0
    }

    /// Whether it says what the row is, and stands.
    #[inline(always)]
    pub(crate) fn is_readable(self) -> bool {
        self.0 & (Stamp::STATES | Stamp::DELTA) == Stamp::COMMITTED
    }

    /// Whether it is not known yet what will become of it.
    #[inline(always)]
    pub(crate) fn is_pending(self) -> bool {
        self.0 & Stamp::STATES == Stamp::PENDING
    }

    /// Whether it stands.
    #[inline(always)]
    pub(crate) fn is_committed(self) -> bool {
        self.0 & Stamp::STATES == Stamp::COMMITTED
    }

    /// Whether it never was.
    #[inline(always)]
    pub(crate) fn is_aborted(self) -> bool {
        self.0 & Stamp::STATES == Stamp::ABORTED
    }
}

/// A version in the chain of a unit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Version<'a> {
    block: Block,
    words: usize,
    /// Whoever holds a cell's handle is pinned, and holds its versions (R2, C2).
    cell: PhantomData<&'a CellAt>,
}

/// A version without its place: the same as long as it cannot be freed; zero is the absence below
/// all versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VersionId(u64);

impl VersionId {
    /// The absence below all versions of a chain.
    pub(crate) const NONE: VersionId = VersionId(0);

    /// What [`VersionId::word`] gave.
    pub(crate) fn of_word(word: u64) -> VersionId {
        VersionId(word)
    }

    /// As a word, which is zero for no version.
    pub(crate) fn word(self) -> u64 {
        self.0
    }
}

/// A cell that the caller has latched (C4).
#[derive(Debug)]
pub(crate) struct Latched<'a> {
    at: &'a CellAt,
    /// What the cell will say.
    word: Tid,
}

impl CellAt {
    /// What the cell says: its newest version, and flags.
    #[inline(always)]
    pub(crate) fn chain_word(&self) -> Tid {
        // Acquire: the newest version's header and payload (E3).
        Tid(self.cell_word(NEWEST).load(Ordering::Acquire))
    }

    /// The newest linked version by what the cell's word says, or said under the present pin.
    #[inline(always)]
    pub(crate) fn newest_linked(&self, word: Tid) -> Option<Version<'_>> {
        self.linked_at(word.version() >> ADDRESS_SHIFT)
    }

    /// The version called so, which was reachable under the present pin, or has not been taken out
    /// of its chain.
    pub(crate) fn linked(&self, id: VersionId) -> Option<Version<'_>> {
        self.linked_at(id.0)
    }

    /// Until when the absence below all versions may have been seen; and by deltas, that there is a
    /// row.
    #[inline]
    pub(crate) fn existence_rts(&self) -> &AtomicU64 {
        self.cell_word(EXISTENCE_RTS)
    }

    /// Makes the cell that of a row that never was.
    pub(crate) fn empty_chain(&self) {
        self.cell_word(NEWEST).store(Tid::INITIAL.0, Ordering::Relaxed);
        self.existence_rts().store(0, Ordering::Relaxed);
    }

    /// Latches the cell if nobody has: what it said.
    ///
    /// # Errors
    /// What it says; it is latched, or dead, or somebody was faster.
    #[inline(always)]
    pub(crate) fn try_latch(&self) -> Result<Latched<'_>, Tid> {
        let cell = self.cell_word(NEWEST);
        let word = Tid(cell.load(Ordering::Relaxed));
        if word.has(Tid::INSTALL | Tid::DEAD) {
            return Err(word);
        }
        if mutant(Mutant::KilledByStore) {
            return Ok(Latched { at: self, word });
        }
        // Acquire: what others have linked here is ours to see (E3).
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

    /// Brings the newest version nearer.
    pub(crate) fn prefetch_newest_linked(&self) {
        self.newest_by_hint_linked().inspect(|version| prefetch(version.block.hint(0)));
    }

    /// Brings words `first..first + count` of the newest version nearer, and its header.
    #[inline(always)]
    pub(crate) fn prefetch_in_newest_linked(&self, first: usize, count: usize) {
        if let Some(Version { block, .. }) = self.newest_by_hint_linked() {
            prefetch(block.hint(0));
            block.prefetch(VERSION_WORDS + first, count);
        }
    }

    /// Brings all of the newest version nearer.
    #[inline]
    pub(crate) fn prefetch_all_of_newest_linked(&self) {
        if let Some(Version { block, words, .. }) = self.newest_by_hint_linked() {
            block.prefetch(0, VERSION_WORDS + words);
        }
    }

    #[inline(always)]
    fn newest_by_hint_linked(&self) -> Option<Version<'_>> {
        if MODELLED {
            // A model would try all that the load may give.
            return None;
        }
        // Relaxed: what lies below may be nonsense as long as it is only a hint.
        self.newest_linked(Tid(self.cell_word(NEWEST).load(Ordering::Relaxed)))
    }

    /// The block that a version of this unit occupies; none if it is in the record.
    pub(crate) fn block_of_linked(&self, version: Version<'_>) -> Option<Block> {
        (version.block != self.linked_in_record().block).then_some(version.block)
    }

    #[inline(always)]
    fn linked_at(&self, address: u64) -> Option<Version<'_>> {
        Block::at(address).map(|block| Version {
            block,
            words: self.payload_words(),
            cell: PhantomData,
        })
    }

    fn linked_in_record(&self) -> Version<'_> {
        // Taken from the word itself: under a model, words are larger than eight bytes.
        let first = std::ptr::from_ref(self.cell_word(IN_RECORD)).expose_provenance();
        self.linked_at(first as u64).expect("a cell is never at zero")
    }
}

impl<'a> Version<'a> {
    #[inline(always)]
    fn word(self, index: usize) -> &'a AtomicU64 {
        debug_assert!(index < VERSION_WORDS);
        // SAFETY: every version begins with a header (C1), and stays for as long as its cell's
        // handle does (C2, R2).
        unsafe { self.block.word(index) }
    }

    /// What it is called.
    #[inline(always)]
    pub(crate) fn id(self) -> VersionId {
        VersionId(self.block.address())
    }

    /// When it was written, and what has become of it by now.
    #[inline(always)]
    pub(crate) fn stamp(self) -> Stamp {
        // Acquire: the payload, once it is committed (E3).
        Stamp(self.word(STAMP).load(Ordering::Acquire))
    }

    /// Until when it has been read.
    #[inline(always)]
    pub(crate) fn rts(self) -> &'a AtomicU64 {
        self.word(RTS)
    }

    /// The version below.
    #[inline(always)]
    pub(crate) fn older(self) -> Option<Version<'a>> {
        // Acquire: a version may have been linked here later than this one (E3).
        let block = Block::at(self.word(OLDER).load(Ordering::Acquire))?;
        Some(Version { block, ..self })
    }

    /// This version and all below it.
    pub(crate) fn and_older(self) -> impl Iterator<Item = Version<'a>> {
        std::iter::successors(Some(self), |version| version.older())
    }

    /// The words of the unit in this version; they mean nothing if the row is not there.
    #[inline(always)]
    pub(crate) fn payload(self) -> &'a [AtomicU64] {
        // SAFETY: as in `word`; the versions of one unit are of one size (C1).
        unsafe { self.block.words(VERSION_WORDS, self.words) }
    }

    /// VersionReservation for what a delta says: the caller's own, which is pending.
    pub(crate) fn delta_room(self) -> VersionReservation<'a> {
        assert!(self.stamp().is_pending());
        // SAFETY: a pending delta's words are its owner's (C3), who has asked for this.
        unsafe { VersionReservation::new(self.delta_words()) }
    }

    /// The words of a delta. Not of a version in the record, which has no more room than the unit.
    fn delta_words(self) -> &'a [AtomicU64] {
        assert!(self.stamp().is_delta());
        // SAFETY: as in `payload`; a delta is in a block (`link`), and blocks have so much room
        // behind (C1).
        unsafe { self.block.words(VERSION_WORDS, self.words + SPARE_WORDS) }
    }

    /// Makes a delta, which the caller has under its latch, the version of a row.
    pub(crate) fn become_row(self, image: &[u64]) {
        for (word, &value) in self.payload().iter().zip(image) {
            word.store(value, Ordering::Relaxed);
        }
        let stamp = self.word(STAMP);
        // Release: the payload (E3).
        stamp.store(stamp.load(Ordering::Relaxed) & !Stamp::DELTA, Ordering::Release);
    }

    /// Takes over the words of another version of the unit, a row that stands. The caller owns this
    /// one, which is pending.
    pub(crate) fn copy_from(self, other: Version<'_>) {
        assert!(self.stamp().is_pending() && other.stamp().is_readable());
        debug_assert_eq!(self.words, other.words);
        // SAFETY: as in `payload`. Nobody else looks at the words of this version before it is
        // settled, and those of the other one are not written any more (C3).
        unsafe { self.block.copy_words(other.block, VERSION_WORDS, self.words) };
    }

    /// Says that it stands: the caller's own, which was pending.
    #[inline(always)]
    pub(crate) fn commit(self) {
        self.settle(Stamp::COMMITTED);
    }

    /// Says that it never was: the caller's own, which was pending.
    pub(crate) fn abort(self) {
        self.settle(Stamp::ABORTED);
    }

    fn settle(self, state: u64) {
        let stamp = self.word(STAMP);
        // Release: the payload (E3).
        stamp.store(stamp.load(Ordering::Relaxed) | state, Ordering::Release);
    }
}

impl<'a> Latched<'a> {
    /// What the cell said, and will say when it is let go.
    pub(crate) fn word(&self) -> Tid {
        self.word
    }

    /// The newest version.
    pub(crate) fn newest(&self) -> Option<Version<'a>> {
        self.at.newest_linked(self.word)
    }

    /// Whether there is room in the record: no version has ever been linked.
    pub(crate) fn has_room_in_record(&self) -> bool {
        !self.word.has(Tid::INLINE_USED) || mutant(Mutant::RoomUsedAgain) && !self.is_in_record()
    }

    /// Whether the version in the record is in the chain.
    fn is_in_record(&self) -> bool {
        let first = self.at.linked_in_record().id();
        self.newest().is_some_and(|newest| newest.and_older().any(|version| version.id() == first))
    }

    /// Links a version below `above`, or as the newest, whose timestamp is above that of what was
    /// there. It is in the block, which is the caller's, or in the record.
    pub(crate) fn link(
        &mut self,
        above: Option<Version<'a>>,
        block: Option<Block>,
        stamp: Stamp,
    ) -> Version<'a> {
        let new = match block {
            Some(block) => Version { block, words: self.at.payload_words(), cell: PhantomData },
            None => {
                assert!(self.has_room_in_record() && !stamp.is_delta());
                self.word.0 |= Tid::INLINE_USED;
                self.at.linked_in_record()
            }
        };
        let below = above.map_or_else(|| self.newest(), Version::older);
        debug_assert!(
            below.is_none_or(|below| below.stamp().ts() < stamp.ts()),
            "timestamps of a chain descend"
        );
        debug_assert!(
            above.is_none_or(|above| above.stamp().ts() > stamp.ts()),
            "timestamps of a chain descend"
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

    /// Applies a delta of this chain that is committed to an image of the unit.
    pub(crate) fn apply_delta(&self, version: Version<'_>, image: &mut Vec<u64>) {
        assert!(version.stamp().is_committed());
        // SAFETY: `link` has cleared these words, and nobody has written them since but its owner,
        // by `delta_room`, before it was committed (C3), which we have seen. Nobody will before we
        // let go of the cell.
        unsafe { delta::apply(version.delta_words(), self.at, image) }
    }

    /// Takes versions out of the chain: whatever is between `above` (or the cell) and `below`.
    pub(crate) fn replace(&mut self, above: Option<Version<'a>>, below: Option<Version<'a>>) {
        let address = below.map_or(0, |below| below.block.address());
        match above {
            // Release: the header of what is linked (E3).
            Some(above) => above.word(OLDER).store(address, Ordering::Release),
            None => self.word.0 = address << ADDRESS_SHIFT | (self.word.0 - self.word.version()),
        }
    }

    /// Raises flags.
    pub(crate) fn raise(&mut self, flags: u64) {
        self.word.0 |= flags;
    }

    /// Clears flags.
    pub(crate) fn clear(&mut self, flags: u64) {
        self.word.0 &= !flags;
    }

    /// Lets go of the cell.
    #[inline(always)]
    pub(crate) fn release(self) {
        // Release: the header of the newest version (E3), and the latch for whoever takes it next.
        self.at.cell_word(NEWEST).store(self.word.0, Ordering::Release);
    }
}
