//! Items of the write set: one unit that a transaction will change.

#![forbid(unsafe_code)]

use crate::record::CellAt;
use std::ops::Range;

/// The effect of a write on the row's existence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intent {
    /// The row exists and stays.
    Update,
    /// The row does not exist and is inserted.
    Insert,
    /// The row exists or not, and exists afterwards.
    Put,
    /// The row exists and is deleted.
    Delete,
}

impl Intent {
    /// Returns whether the row must exist before the write; `None` if it does not matter.
    #[inline]
    pub(crate) fn expects(self) -> Option<bool> {
        match self {
            Intent::Update | Intent::Delete => Some(true),
            Intent::Insert => Some(false),
            Intent::Put => None,
        }
    }
}

/// A moment in the life of a write set. The mark covers the operations staged before that moment,
/// and none staged later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark(pub(crate) u32);

impl Mark {
    /// The mark after everything staged so far.
    pub(crate) const NOW: Mark = Mark(NONE);
}

/// A unit that will change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteItem {
    pub(crate) at: CellAt,
    /// Whether the row must exist before the writes; `None` if it does not matter.
    pub(crate) expects: Option<bool>,
    /// Whether the row exists after the writes.
    pub(crate) present: bool,
    /// Set by a commit that left the unit as it was: the row was inserted and deleted within the
    /// transaction.
    pub(crate) untouched: bool,
    /// Set by a commit that defers the item's operations instead of evaluating them.
    pub(crate) is_delta: bool,
    /// The protocol's note, such as the cell's word when it was locked, or the pending version.
    pub(crate) note: u64,
    pub(crate) first_op: u32,
    pub(crate) last_op: u32,
    /// The beginning and the end of a range that contains all words that the item's operations
    /// change.
    pub(crate) first_word: u16,
    pub(crate) end_word: u16,
    /// Whether the item's operations have to be evaluated before they are installed; and, in
    /// `needs_image`, whether this needs an image of the whole unit.
    pub(crate) needs_evaluation: bool,
    pub(crate) needs_image: bool,
    /// Whether all operations of the item are plain (`Op::is_plain`).
    pub(crate) is_plain: bool,
    /// After the evaluation, the position of the item's image. Before the evaluation, the number of
    /// the item's newest checkpoint.
    pub(crate) image: u32,
}

/// An item as it was before a part of the transaction changed it.
#[derive(Debug, Clone, Copy)]
pub(super) struct SavedItem {
    /// The item's number.
    pub(super) index: usize,
    pub(super) item: WriteItem,
}

impl WriteItem {
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn address(&self) -> u64 {
        self.at.address()
    }

    /// Returns whether the item's expectation holds, given whether the row `is_present`.
    #[inline]
    pub(crate) fn accepts(&self, is_present: bool) -> bool {
        self.expects.is_none_or(|expected| expected == is_present)
    }

    /// Returns whether the item's operations need the old words of the unit, even if the row is
    /// deleted afterwards, because one of them may fail.
    #[inline]
    pub(crate) fn looks_at_unit(&self) -> bool {
        self.needs_evaluation
    }

    /// Returns a range of the unit's words that contains all words that the item's operations
    /// change.
    #[inline]
    pub(crate) fn changed(&self) -> Range<usize> {
        self.first_word.into()..self.end_word.into()
    }
}

/// The number that means "no operation" or "no checkpoint".
pub(crate) const NONE: u32 = u32::MAX;
