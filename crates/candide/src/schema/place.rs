//! Places of columns.

#![forbid(unsafe_code)]

/// The place of a column's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub(crate) group: u8,
    pub(crate) word: u16,
    pub(crate) words: u16,
    /// The first bit of a column of less than a word.
    pub(crate) shift: u8,
    /// The bits of the column, unshifted.
    pub(crate) mask: u64,
}

/// A column of any length: the number of its word among those of the row, and its name.
#[derive(Debug, Clone, Copy)]
pub struct LongColumn {
    pub(crate) word: usize,
    pub(crate) name: &'static str,
}

impl Place {
    /// Returns whether two places have a bit in common.
    #[inline]
    pub(crate) fn overlaps(self, other: Place) -> bool {
        let apart = self.group != other.group
            || self.word + self.words <= other.word
            || other.word + other.words <= self.word
            || (self.mask << self.shift) & (other.mask << other.shift) == 0;
        !apart
    }
}
