//! The limits of columns of any length in the keys of secondary indexes.

#![forbid(unsafe_code)]

use super::place::Place;

/// The most bytes that an index keeps of a column of any length. A longer value is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyLimit {
    /// The place of the column's word.
    pub(crate) place: Place,
    /// The column's name.
    pub(crate) column: &'static str,
    pub(crate) bytes: usize,
}

impl KeyLimit {
    /// Returns the limit of the column with this name at `place`.
    pub const fn new(place: Place, column: &'static str, bytes: usize) -> KeyLimit {
        KeyLimit { place, column, bytes }
    }
}
