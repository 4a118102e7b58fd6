//! Versions of a unit's words, for protocols that keep more than one.
//!
//! ```text
//! cell     | newest: 52 | flags: 12 |  | stamp | older |   payload ...
//! version                              | stamp | older |   payload ...          stamp: | ts: 63 | absent: 1 |
//! ```
//!
//! A cell's first word is like a [`Tid`], with the address of the newest version in place of its number; zero if nobody has
//! written the unit. What follows it in the record is room for one version, the first. All others are blocks of their table's
//! version slab.
//!
//! # Invariants
//! * **V1** A cell's word and `older` hold addresses of versions of this very unit, or zero. Only this file makes them.
//! * **V2** A version that was reachable under a pin is not freed while that pin lasts; nor is it before somebody has taken it out of
//!   its chain.
//! * **V3** Stamp and payload are written before a version can be reached, and never again. `older` then only comes to name a
//!   still older version, by who collects.

use super::{CellAt, Tid};
use crate::memory::Block;
use crate::sync::{AtomicU64, MODELLED, Ordering, prefetch};
use std::marker::PhantomData;

/// Words of a version before its payload.
pub(crate) const VERSION_WORDS: usize = 2;
/// Words of a cell: which version is the newest, and the header of the one in the record.
pub(crate) const CHAIN_WORDS: usize = 1 + VERSION_WORDS;

const STAMP: usize = 0;
const OLDER: usize = 1;

/// In a stamp: the row is not there.
const ABSENT: u64 = 1;

/// By how much addresses are shifted to leave room for a cell's flags. Every block lies at a multiple of eight bytes.
const ADDRESS_SHIFT: u32 = 9;

/// A version in the chain of a unit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Version<'a> {
    block: Block,
    words: usize,
    /// Whoever holds a cell's handle is pinned, and holds its versions (R2, V2).
    cell: PhantomData<&'a CellAt>,
}

impl CellAt {
    /// The newest version by what the cell's word says, or said under the present pin or to whoever alone takes versions out of this
    /// chain; none if the unit has not been written.
    #[inline(always)]
    pub(crate) fn newest(&self, word: Tid) -> Option<Version<'_>> {
        self.version_at(word.version() >> ADDRESS_SHIFT)
    }

    /// Brings the newest version nearer.
    pub(crate) fn prefetch_newest(&self) {
        self.newest_by_hint().inspect(|version| prefetch(version.block.hint(0)));
    }

    /// Brings words `first..first + count` of the newest version nearer, and its header.
    #[inline(always)]
    pub(crate) fn prefetch_in_newest(&self, first: usize, count: usize) {
        if let Some(Version { block, .. }) = self.newest_by_hint() {
            prefetch(block.hint(0));
            block.prefetch(VERSION_WORDS + first, count);
        }
    }

    /// Brings all of the newest version nearer.
    #[inline]
    pub(crate) fn prefetch_all_of_newest(&self) {
        if let Some(Version { block, words, .. }) = self.newest_by_hint() {
            block.prefetch(0, VERSION_WORDS + words);
        }
    }

    /// Brings the version below the newest nearer.
    pub(crate) fn prefetch_older(&self) {
        self.newest_by_hint().and_then(Version::older).inspect(|version| prefetch(version.block.hint(0)));
    }

    #[inline(always)]
    fn newest_by_hint(&self) -> Option<Version<'_>> {
        if MODELLED {
            // A model would try all that the load may give.
            return None;
        }
        // Relaxed: what lies below may be nonsense as long as it is only a hint.
        self.newest(Tid(self.cell_word(0).load(Ordering::Relaxed)))
    }

    /// Room for a first version, in the record itself. The unit's lock is the caller's, and its word zero but for flags.
    pub(crate) fn room_in_record(&self) -> NewVersion<'_> {
        NewVersion(self.version_in_record())
    }

    /// A block of the table's version slab, which is the caller's, as room for a version of this unit.
    pub(crate) fn room_in(&self, block: Block) -> NewVersion<'_> {
        NewVersion(Version { block, words: self.payload_words(), cell: PhantomData })
    }

    /// The block that a version of this unit occupies; none if it is in the record.
    pub(crate) fn block_of(&self, version: Version<'_>) -> Option<Block> {
        (version.block != self.version_in_record().block).then_some(version.block)
    }

    #[inline(always)]
    fn version_at(&self, address: u64) -> Option<Version<'_>> {
        Block::at(address).map(|block| Version { block, words: self.payload_words(), cell: PhantomData })
    }

    fn version_in_record(&self) -> Version<'_> {
        // Taken from the word itself: under a model, words are larger than eight bytes.
        let first = std::ptr::from_ref(self.cell_word(1)).expose_provenance();
        self.version_at(first as u64).expect("a cell is never at zero")
    }
}

impl<'a> Version<'a> {
    #[inline(always)]
    fn word(self, index: usize) -> &'a AtomicU64 {
        debug_assert!(index < VERSION_WORDS);
        // SAFETY: every version begins with a header (V1), and stays for as long as its cell's handle does (V2, R2).
        unsafe { self.block.word(index) }
    }

    /// When it was written: the timestamp of its commit.
    #[inline(always)]
    pub(crate) fn ts(self) -> u64 {
        // Relaxed here and below: published with the version's address (V3).
        self.word(STAMP).load(Ordering::Relaxed) >> 1
    }

    /// Whether it says that the row is not there.
    #[inline(always)]
    pub(crate) fn is_absent(self) -> bool {
        self.word(STAMP).load(Ordering::Relaxed) & ABSENT != 0
    }

    /// The version below.
    pub(crate) fn older(self) -> Option<Version<'a>> {
        let block = Block::at(self.word(OLDER).load(Ordering::Relaxed))?;
        Some(Version { block, ..self })
    }

    /// Passes over what lies between this version and an older one of the same unit, or all older ones. Only one session at a
    /// time does so in a chain.
    pub(crate) fn set_older(self, older: Option<Version<'_>>) {
        // Relaxed: whoever reaches this version has the header of every older one, which was published before.
        self.word(OLDER).store(older.map_or(0, |older| older.block.address()), Ordering::Relaxed);
    }

    /// The words of the unit in this version; they mean nothing if the row is not there.
    #[inline(always)]
    pub(crate) fn payload(self) -> &'a [AtomicU64] {
        // SAFETY: as in `word`; the versions of one unit are of one size (V1).
        unsafe { self.block.words(VERSION_WORDS, self.words) }
    }
}

/// A version that nobody else can reach yet.
#[derive(Debug)]
pub(crate) struct NewVersion<'a>(Version<'a>);

impl<'a> NewVersion<'a> {
    /// The words of the unit.
    pub(crate) fn payload(&self) -> &'a [AtomicU64] {
        self.0.payload()
    }

    /// Takes over the words of another version of the unit.
    pub(crate) fn copy_from(&self, other: Version<'_>) {
        let Version { block, words, .. } = self.0;
        debug_assert_eq!(words, other.words);
        // SAFETY: as in `payload`. Nobody reaches this version yet, and the other one is not written any more (V3).
        unsafe { block.copy_words(other.block, VERSION_WORDS, words) };
    }

    /// Writes the header. Gives what the cell's word is to say from now on, without the flags that are not about the version.
    pub(crate) fn stamp(self, ts: u64, is_present: bool, older: Option<Version<'_>>) -> Tid {
        let Version { block, .. } = self.0;
        debug_assert!(older.is_none_or(|older| older.ts() < ts), "versions of a chain descend");
        let stamp = ts << 1 | if is_present { 0 } else { ABSENT };
        self.0.word(STAMP).store(stamp, Ordering::Relaxed);
        self.0.set_older(older);
        debug_assert!(block.address() % 8 == 0);
        Tid(block.address() << ADDRESS_SHIFT | if is_present { 0 } else { Tid::ABSENT })
    }
}
