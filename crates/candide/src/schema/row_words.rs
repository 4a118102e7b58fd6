//! The words of a row, as the row writes and reads them.

#![forbid(unsafe_code)]

/// A writer of a row's columns: [`Record::store`](super::Record::store) passes it to
/// [`Column::put`](super::Column::put).
#[derive(Debug)]
pub struct RowWriter<'a> {
    words: &'a mut [u64],
}

impl<'a> RowWriter<'a> {
    /// Returns a writer to `words`, which hold all groups one after another.
    #[inline(always)]
    pub const fn new(words: &'a mut [u64]) -> RowWriter<'a> {
        RowWriter { words }
    }

    #[inline(always)]
    pub(crate) fn words(&mut self) -> &mut [u64] {
        self.words
    }
}

/// A reader of a row's columns: [`Record::load`](super::Record::load) passes it to
/// [`Column::take`](super::Column::take).
#[derive(Debug)]
pub struct RowReader<'a> {
    words: &'a [u64],
}

impl<'a> RowReader<'a> {
    /// Returns a reader of `words`, which hold all groups one after another.
    #[inline(always)]
    pub const fn new(words: &'a [u64]) -> RowReader<'a> {
        RowReader { words }
    }

    #[inline(always)]
    pub(crate) fn words(&self) -> &'a [u64] {
        self.words
    }
}
