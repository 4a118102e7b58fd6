//! Undo records: older versions of a unit, for protocols that write in place.
//!
//! ```text
//! cell     | ts: 52 | flags: 12 |  | older |   payload ...                 the newest version, in the record
//! undo     | ts: 63 | absent: 1 |  | older |  | first: 16 | count: 16 |   words ...
//! ```
//!
//! An *undo* describes a version that has been replaced: the version's timestamp, whether the row
//! was absent, and the old values of the words that the next version has changed. To rebuild the
//! version that a unit had at a given time, a reader takes the unit's present words and applies the
//! unit's undos, newest first. The last undo that the reader applies belongs to the wanted version.
//! Undos are blocks of their table's slabs. An undo of few words takes a short block.
//!
//! # Invariants
//! * **UR1** Let a cell or an undo have timestamp t. Its `older` is zero or the address of an undo.
//!   That undo describes the next older version, which was replaced at t; or an even older version,
//!   if no reader can see the versions between any more.
//! * **UR2** A thread follows the `older` of a cell or undo with timestamp t only if the thread may
//!   read versions from before t, or knows an attempt or a snapshot that may read them. As long as
//!   an attempt or a snapshot may read them, the undo is not freed. (An undo that no reader can see
//!   is freed without being taken out of its chain. The `older` of its newer neighbour then leads
//!   to other memory, and is not followed.)
//! * **UR3** An undo is written before it can be reached. Afterwards only its `older` and its flag
//!   OUT are changed, under the cell's lock.
//! * **UR4** An undo can be reached before the words that it holds are changed. So a reader first
//!   loads words, and then goes down the chain. There the reader finds the undo of every loaded
//!   word that is newer than the version with which the reader began.

use super::{CellAt, Tid};
use crate::memory::Block;
use crate::sync::{AtomicU64, Ordering};
use std::marker::PhantomData;
use std::ops::Range;

/// The number of words of an undo's header, which the replaced words follow.
pub(crate) const UNDO_WORDS: usize = 3;
/// The number of words of a block for a short undo: one cache line.
pub(crate) const SHORT_WORDS: usize = 8;
/// The number of words of a cell.
pub(crate) const CELL_WORDS: usize = 2;

/// The word of a cell that holds the address of the newest undo.
const NEWEST: usize = 1;

const STAMP: usize = 0;
const OLDER: usize = 1;
const PLACE: usize = 2;

/// The flag of a stamp: the row is absent.
const ABSENT: u64 = 1;

/// The flag of a place: the undo has been taken out of its chain.
const OUT: u64 = 1 << 32;
/// The flag of a place: the undo has replaced an undo of the same version with fewer words.
const LARGER: u64 = 1 << 33;

/// A handle on an undo record, which describes a unit before a commit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Undo<'a> {
    block: Block,
    /// The holder of a cell's handle is pinned (LY2), and may read the undo (UR2).
    cell: PhantomData<&'a CellAt>,
}

impl CellAt {
    /// Returns the undos of a unit, newest first, down to the version at `time`. The caller has
    /// loaded `word` from the cell, and may see that version (UR2). Returns no undo if `word` is
    /// not newer than `time`. Otherwise the last undo describes the version at `time`, unless the
    /// unit had no version at `time` yet.
    #[inline]
    pub(crate) fn undos(&self, word: Tid, time: u64) -> impl Iterator<Item = Undo<'_>> {
        // The first undo may be from a later commit than `word`.
        let (mut above, mut older, mut is_first) = (word.ts(), self.cell_word(NEWEST), true);
        std::iter::from_fn(move || {
            if above <= time {
                return None;
            }
            // Acquire: makes the undo's words visible (E3).
            let block = Block::at(older.load(Ordering::Acquire))?;
            let undo = Undo { block, cell: PhantomData };
            debug_assert!(
                std::mem::take(&mut is_first) || undo.ts() < above,
                "UR1: timestamps of a chain fall"
            );
            (above, older) = (undo.ts(), undo.word(OLDER));
            Some(undo)
        })
    }

    /// Returns whether the row was present at `time`. The caller has loaded `word` from the cell,
    /// and may see the version at `time` (UR2).
    pub(crate) fn was_there(&self, word: Tid, time: u64) -> bool {
        let oldest = self.undos(word, time).last();
        match oldest {
            None => word.ts() <= time && !word.has(Tid::ABSENT),
            Some(undo) => undo.ts() <= time && !undo.is_absent(),
        }
    }

    /// Links an undo of the words in the range `changed`, which the caller is about to change. The
    /// caller has locked the cell, whose first word is `word`. The caller owns `block`, which is
    /// long enough for the undo.
    #[inline]
    pub(crate) fn store_undo(&self, block: Block, word: Tid, changed: Range<usize>) {
        debug_assert!(word.has(Tid::LOCK), "UR3: chains change under the cell's lock");
        let stamp = word.ts() << 1 | u64::from(word.has(Tid::ABSENT));
        let undo =
            self.new_undo(block, stamp, self.cell_word(NEWEST).load(Ordering::Relaxed), &changed);
        self.copy_words_to(block, UNDO_WORDS, changed);
        self.name_below(None, Some(undo)); // UR4
    }

    /// Returns the undo of this unit that is in `block`. The caller may read the undo (UR2).
    pub(crate) fn undo_in(&self, block: Block) -> Undo<'_> {
        Undo { block, cell: PhantomData }
    }

    /// Writes into `block` an undo of the same version as `of`, but with more words: the words in
    /// the range `place`, with the values in `image`. The caller owns `block`, which is long enough
    /// for the undo.
    pub(crate) fn larger_undo<'a>(
        &'a self,
        block: Block,
        of: Undo<'a>,
        place: Range<usize>,
        image: &[u64],
    ) -> Undo<'a> {
        let [stamp, older] = [STAMP, OLDER].map(|word| of.word(word).load(Ordering::Relaxed));
        let undo = self.new_undo(block, stamp, older, &place);
        let place = undo.word(PLACE);
        place.store(place.load(Ordering::Relaxed) | LARGER, Ordering::Relaxed);
        for (word, &value) in undo.words().iter().zip(image) {
            word.store(value, Ordering::Relaxed);
        }
        undo
    }

    fn new_undo(&self, block: Block, stamp: u64, older: u64, words: &Range<usize>) -> Undo<'_> {
        let undo = self.undo_in(block);
        undo.word(STAMP).store(stamp, Ordering::Relaxed);
        undo.word(OLDER).store(older, Ordering::Relaxed);
        undo.word(PLACE).store((words.start | words.len() << 16) as u64, Ordering::Relaxed);
        undo
    }

    /// Links undo `below` as the next older undo after undo `above`. If `above` is `None`, links
    /// `below` as the cell's newest undo. If `below` is `None`, the chain ends there. The caller
    /// has locked the cell.
    #[inline]
    pub(crate) fn name_below(&self, above: Option<Undo<'_>>, below: Option<Undo<'_>>) {
        let falls = |above: Undo<'_>| below.is_none_or(|below| below.ts() < above.ts());
        debug_assert!(above.is_none_or(falls), "UR1: timestamps of a chain fall");
        let older = above.map_or(self.cell_word(NEWEST), |above| above.word(OLDER));
        // Release: publishes the undo's words (E3).
        older.store(below.map_or(0, |below| below.block.address()), Ordering::Release);
    }

    /// Returns whether the undos of `follow` are the next ones in the chain after `above`, or the
    /// first ones of the chain if `above` is `None`. In `follow`, `None` means the end of the
    /// chain. The caller has locked the cell.
    pub(crate) fn is_chain<'a>(
        &'a self,
        above: Option<Undo<'a>>,
        mut follow: impl Iterator<Item = Option<Undo<'a>>>,
    ) -> bool {
        let mut older = above.map_or(self.cell_word(NEWEST), |above| above.word(OLDER));
        follow.all(|undo| {
            // Relaxed: the caller holds the lock under which chains change.
            let named = older.load(Ordering::Relaxed);
            older = undo.map_or(older, |undo| undo.word(OLDER));
            named == undo.map_or(0, |undo| undo.block.address())
        })
    }

    /// Returns whether no undo is in the chain.
    pub(crate) fn has_no_undo(&self) -> bool {
        // Relaxed: the caller has loaded the cell's first word, and is going to exchange that word.
        self.cell_word(NEWEST).load(Ordering::Relaxed) == 0
    }

    /// Writes the initial state of the cell: the row has never been inserted.
    pub(crate) fn empty(&self) {
        self.cell_word(0).store(Tid::INITIAL.0, Ordering::Relaxed);
        self.cell_word(NEWEST).store(0, Ordering::Relaxed);
    }
}

impl<'a> Undo<'a> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn word(self, index: usize) -> &'a AtomicU64 {
        debug_assert!(index < UNDO_WORDS);
        // SAFETY: every undo begins with a header (UR1), and no undo is freed while the holder of a
        // handle on it may read it (UR2).
        unsafe { self.block.word(index) }
    }

    /// Returns the timestamp of the commit that made the version.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn ts(self) -> u64 {
        // Relaxed here and below: the undo's address published the header (UR3).
        self.word(STAMP).load(Ordering::Relaxed) >> 1
    }

    /// Returns whether the row is absent in this version.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn is_absent(self) -> bool {
        self.word(STAMP).load(Ordering::Relaxed) & ABSENT != 0
    }

    /// Makes the next older undo of `other` also the next older undo of this one. The caller owns
    /// this undo, which cannot be reached yet.
    pub(crate) fn name_same(self, other: Undo<'_>) {
        self.word(OLDER).store(other.word(OLDER).load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Returns the undo's block.
    pub(crate) fn block(self) -> Block {
        self.block
    }

    /// Returns whether the undo has been taken out of its chain.
    pub(crate) fn is_out(self) -> bool {
        // Acquire: makes the chain without this undo visible (E3).
        self.word(PLACE).load(Ordering::Acquire) & OUT != 0
    }

    /// Returns whether the undo has replaced an undo of the same version with fewer words.
    pub(crate) fn is_larger(self) -> bool {
        self.word(PLACE).load(Ordering::Relaxed) & LARGER != 0
    }

    /// Marks the undo as taken out of its chain. The caller has taken the undo out, and has locked
    /// the cell.
    pub(crate) fn set_out(self) {
        let place = self.word(PLACE);
        let was = place.load(Ordering::Relaxed);
        debug_assert!(was & OUT == 0, "UR3: an undo leaves its chain once");
        place.store(was | OUT, Ordering::Release); // E3
    }

    /// Returns the range of the unit's words whose old values the undo holds.
    pub(crate) fn place(self) -> Range<usize> {
        let place = self.word(PLACE).load(Ordering::Relaxed);
        let (first, count) = (usize::from(place as u16), usize::from((place >> 16) as u16));
        first..first + count
    }

    fn words(self) -> &'a [AtomicU64] {
        // SAFETY: as in `word`. The header contains the number of the words that follow it
        // (`new_undo`).
        unsafe { self.block.words(UNDO_WORDS, self.place().len()) }
    }

    /// Turns `image`, the words of the unit in the next newer version, into the words of the undo's
    /// version.
    pub(crate) fn put_back(self, image: &mut [u64]) {
        for (word, old) in image[self.place()].iter_mut().zip(self.words()) {
            *word = old.load(Ordering::Relaxed);
        }
    }
}
