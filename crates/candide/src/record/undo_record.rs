//! Undo records: older versions of a unit, for protocols that write in place.
//!
//! ```text
//! cell     | ts: 52 | flags: 12 |  | older |   payload ...                 the newest version, in the record
//! undo     | ts: 63 | absent: 1 |  | older |  | first: 16 | count: 16 |   words ...
//! ```
//!
//! An *undo* stands for a version that has been replaced: its timestamp, whether it was a row, and
//! the old values of the words that its successor has changed. To rebuild a
//! unit's version at a time, a reader takes the unit's present words and applies its undos, newest
//! first, down to and including that of the version. Undos are blocks of their table, short ones if
//! few words were changed.
//!
//! # Invariants
//! * **UR1** Let a cell or an undo have timestamp t. Its `older` is zero or the address of an undo:
//!   that of the next older version, which was replaced at t; or that of a still older one, if no
//!   reader can see the versions between them any more.
//! * **UR2** A thread follows `older` only if the thread may read versions from before t, or knows
//!   by other means that an attempt or a snapshot may. While one may, the undo is not freed. (An
//!   undo that no reader can see is freed without being taken out of its chain. The `older` of its
//!   newer neighbour then leads to other memory, and is not followed.)
//! * **UR3** An undo is written before it can be reached, and never again, except its `older` and
//!   its flag OUT, under the cell's lock.
//! * **UR4** An undo can be reached before the words that it holds are changed. So a reader that
//!   first loads words, and then goes down the chain, finds the undo of every word that is newer
//!   than the version at which it began.

use super::{CellAt, Tid};
use crate::memory::Block;
use crate::sync::{AtomicU64, Ordering};
use std::marker::PhantomData;
use std::ops::Range;

/// The number of words of an undo record before the replaced words.
pub(crate) const UNDO_WORDS: usize = 3;
/// Words of a block for a short undo: one cache line.
pub(crate) const SHORT_WORDS: usize = 8;
/// Words of a cell.
pub(crate) const CELL_WORDS: usize = 2;

/// The word of a cell that names the newest undo.
const NEWEST: usize = 1;

const STAMP: usize = 0;
const OLDER: usize = 1;
const PLACE: usize = 2;

/// The flag of a stamp: the row is not there.
const ABSENT: u64 = 1;

/// The flag of a place: the undo is out of its chain.
const OUT: u64 = 1 << 32;
/// The flag of a place: the undo has replaced another one.
const LARGER: u64 = 1 << 33;

/// A handle on an undo record: a unit before a commit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Undo<'a> {
    block: Block,
    /// The borrow proves that the holder is pinned (LY2) and may read the undo record (UR2).
    cell: PhantomData<&'a CellAt>,
}

impl CellAt {
    /// Returns the undos of a unit whose cell says, or has said, `word`, down to the version of a
    /// time, which the caller may see (UR2): the last one is that version, or else there was none
    /// yet.
    #[inline]
    pub(crate) fn undos(&self, word: Tid, time: u64) -> impl Iterator<Item = Undo<'_>> {
        // The first may be of a later commit than the word.
        let (mut above, mut older, mut is_first) = (word.ts(), self.cell_word(NEWEST), true);
        std::iter::from_fn(move || {
            if above <= time {
                return None;
            }
            // Acquire: the undo (E3).
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

    /// Returns whether the row existed at `time`, a time that the caller may see. `word` is the
    /// cell's TID word, the present one or an earlier one.
    pub(crate) fn was_there(&self, word: Tid, time: u64) -> bool {
        let oldest = self.undos(word, time).last();
        match oldest {
            None => word.ts() <= time && !word.has(Tid::ABSENT),
            Some(undo) => undo.ts() <= time && !undo.is_absent(),
        }
    }

    /// Links an undo of the words in `changed`, which the caller is about to change: it has locked
    /// the cell, which said `word`. The block is the caller's, and long enough.
    #[inline]
    pub(crate) fn store_undo(&self, block: Block, word: Tid, changed: Range<usize>) {
        debug_assert!(word.has(Tid::LOCK), "UR3: chains change under the cell's lock");
        let stamp = word.ts() << 1 | u64::from(word.has(Tid::ABSENT));
        let undo =
            self.new_undo(block, stamp, self.cell_word(NEWEST).load(Ordering::Relaxed), &changed);
        self.copy_words_to(block, UNDO_WORDS, changed);
        self.name_below(None, Some(undo)); // UR4
    }

    /// Returns the undo record of this unit in a block. The caller may read it (UR2).
    pub(crate) fn undo_in(&self, block: Block) -> Undo<'_> {
        Undo { block, cell: PhantomData }
    }

    /// Writes an undo record with more words of the same version than another undo record. The
    /// block belongs to the caller, and is long enough.
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

    /// Links an undo, or none, below another one, or below the cell itself. The caller has locked
    /// the cell.
    #[inline]
    pub(crate) fn name_below(&self, above: Option<Undo<'_>>, below: Option<Undo<'_>>) {
        let falls = |above: Undo<'_>| below.is_none_or(|below| below.ts() < above.ts());
        debug_assert!(above.is_none_or(falls), "UR1: timestamps of a chain fall");
        let older = above.map_or(self.cell_word(NEWEST), |above| above.word(OLDER));
        // Release: the undo, for its readers (E3).
        older.store(below.map_or(0, |below| below.block.address()), Ordering::Release);
    }

    /// Returns whether the chain goes on with these undo records after an undo record, or after the
    /// cell itself; `None` is the end of the chain. The caller has locked the cell.
    pub(crate) fn is_chain<'a>(
        &'a self,
        above: Option<Undo<'a>>,
        mut follow: impl Iterator<Item = Option<Undo<'a>>>,
    ) -> bool {
        let mut older = above.map_or(self.cell_word(NEWEST), |above| above.word(OLDER));
        follow.all(|undo| {
            // Relaxed: the lock.
            let named = older.load(Ordering::Relaxed);
            older = undo.map_or(older, |undo| undo.word(OLDER));
            named == undo.map_or(0, |undo| undo.block.address())
        })
    }

    /// Returns whether the chain has no undo, or all have been taken out.
    pub(crate) fn has_no_undo(&self) -> bool {
        // Relaxed: the caller has loaded the cell's word, and is going to exchange it.
        self.cell_word(NEWEST).load(Ordering::Relaxed) == 0
    }

    /// Initializes the cell for a row that has never been inserted.
    pub(crate) fn empty(&self) {
        self.cell_word(0).store(Tid::INITIAL.0, Ordering::Relaxed);
        self.cell_word(NEWEST).store(0, Ordering::Relaxed);
    }
}

impl<'a> Undo<'a> {
    #[inline(always)]
    fn word(self, index: usize) -> &'a AtomicU64 {
        debug_assert!(index < UNDO_WORDS);
        // SAFETY: every undo record begins with a header (UR1), and is not freed while its holder
        // may read it (UR2).
        unsafe { self.block.word(index) }
    }

    /// Returns the timestamp of the version's commit.
    #[inline(always)]
    pub(crate) fn ts(self) -> u64 {
        // Relaxed here and below: published with the undo's address (UR3).
        self.word(STAMP).load(Ordering::Relaxed) >> 1
    }

    /// Returns whether the row is absent in this version.
    #[inline(always)]
    pub(crate) fn is_absent(self) -> bool {
        self.word(STAMP).load(Ordering::Relaxed) & ABSENT != 0
    }

    /// Copies the link to the next older undo from another undo. This one is the caller's, and
    /// cannot be reached yet.
    pub(crate) fn name_same(self, other: Undo<'_>) {
        self.word(OLDER).store(other.word(OLDER).load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Returns the undo's block.
    pub(crate) fn block(self) -> Block {
        self.block
    }

    /// Returns whether it is out of its chain.
    pub(crate) fn is_out(self) -> bool {
        // Acquire: the chain without it (E3).
        self.word(PLACE).load(Ordering::Acquire) & OUT != 0
    }

    /// Returns whether it has replaced an undo with fewer words.
    pub(crate) fn is_larger(self) -> bool {
        self.word(PLACE).load(Ordering::Relaxed) & LARGER != 0
    }

    /// Marks it as out of its chain. The caller has taken it out, and has locked the cell.
    pub(crate) fn set_out(self) {
        let place = self.word(PLACE);
        let was = place.load(Ordering::Relaxed);
        debug_assert!(was & OUT == 0, "UR3: an undo leaves its chain once");
        place.store(was | OUT, Ordering::Release); // E3
    }

    /// Returns which words of the unit it holds.
    pub(crate) fn place(self) -> Range<usize> {
        let place = self.word(PLACE).load(Ordering::Relaxed);
        let (first, count) = (usize::from(place as u16), usize::from((place >> 16) as u16));
        first..first + count
    }

    fn words(self) -> &'a [AtomicU64] {
        // SAFETY: as in `word`; this number of words follows the header (`new_undo`).
        unsafe { self.block.words(UNDO_WORDS, self.place().len()) }
    }

    /// Turns an image of the next newer version into one of this version.
    pub(crate) fn put_back(self, image: &mut [u64]) {
        for (word, old) in image[self.place()].iter_mut().zip(self.words()) {
            *word = old.load(Ordering::Relaxed);
        }
    }
}
