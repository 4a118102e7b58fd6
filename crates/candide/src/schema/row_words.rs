//! The words of a row, as the row writes and reads them.

#![forbid(unsafe_code)]

use super::long::{LongSink, LongWriter, PutLong, place_in};
use super::record::{Record, RowMeta};
use crate::error::Abort;
use std::marker::PhantomData;

/// A writer of a row's columns: [`Record::store`](super::Record::store) passes it to
/// [`Column::put`](super::Column::put).
pub struct RowWriter<'a> {
    words: &'a mut [u64],
    /// Columns of any length; `None` for a row without them.
    long: Option<&'a mut (dyn PutLong + 'a)>,
}

impl<'a> RowWriter<'a> {
    /// Returns a writer to `words`, which hold all groups one after another, of a row that has no
    /// column of strings or bytes of any length.
    #[inline(always)]
    pub const fn new(words: &'a mut [u64]) -> RowWriter<'a> {
        RowWriter { words, long: None }
    }

    /// Returns a writer of columns of any length alone.
    pub(crate) fn of_column(long: &'a mut (dyn PutLong + 'a)) -> RowWriter<'a> {
        RowWriter { words: &mut [], long: Some(long) }
    }

    #[inline(always)]
    pub(crate) fn words(&mut self) -> &mut [u64] {
        self.words
    }

    /// Writes a column of any length; `None` is the empty value, or none of an option.
    ///
    /// # Panics
    /// If `word`, the number of the column's word among those of the row, is not that of such a
    /// column.
    pub(crate) fn put_long(&mut self, word: usize, name: &'static str, bytes: Option<&[u8]>) {
        match &mut self.long {
            Some(long) => long.put(word, name, bytes),
            None => _ = place_in(&[], word, name),
        }
    }
}

impl std::fmt::Debug for RowWriter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowWriter").field("words", &self.words.len()).finish_non_exhaustive()
    }
}

/// Writes the columns of a row outside the key to words, which are zeros. `sink` keeps the bytes of
/// its columns of any length.
#[inline(always)]
pub(super) fn write_row<R: Record>(
    row: &R,
    words: &mut [u64],
    sink: &mut impl LongSink,
) -> Result<(), Abort> {
    if R::LONG.is_empty() {
        row.store(&mut RowWriter::new(words));
        return Ok(());
    }
    let mut long = LongWriter::new(R::LONG, sink);
    row.store(&mut RowWriter { words, long: Some(&mut long) });
    long.finish(words)
}

/// The pin, or the attempt, in which words have been read: values that they name can be read for as
/// long as it lasts.
#[derive(Debug, Clone, Copy)]
pub struct Pinned<'a>(PhantomData<&'a ()>);

impl<'a> Pinned<'a> {
    /// Returns the pin that lasts for as long as `pin` is borrowed.
    #[inline(always)]
    pub(crate) fn by<A: ?Sized>(_pin: &'a A) -> Pinned<'a> {
        Pinned(PhantomData)
    }
}

/// A reader of a row's columns: [`Record::load`](super::Record::load) passes it to
/// [`Column::take`](super::Column::take).
pub struct RowReader<'a> {
    words: &'a [u64],
    /// The words of the row that name values of any length, which can be read.
    long: &'static [u16],
}

impl<'a> RowReader<'a> {
    /// Returns a reader of `words`, which hold all groups one after another, of a row that has no
    /// column of strings or bytes of any length.
    #[inline(always)]
    pub const fn new(words: &'a [u64]) -> RowReader<'a> {
        RowReader { words, long: &[] }
    }

    /// Returns a reader of words that have been read in a pin.
    #[inline(always)]
    pub(crate) fn pinned<R: Record>(words: &'a [u64], _pin: Pinned<'a>) -> RowReader<'a> {
        RowReader { words, long: R::LONG }
    }

    #[inline(always)]
    pub(crate) fn words(&self) -> &'a [u64] {
        self.words
    }

    /// Returns the word of a column of any length.
    ///
    /// # Panics
    /// If `word`, the number of the column's word among those of the row, is not that of such a
    /// column.
    pub(crate) fn long_word(&self, word: usize, name: &str) -> u64 {
        place_in(self.long, word, name);
        self.words[word]
    }
}

impl std::fmt::Debug for RowReader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowReader").field("words", &self.words.len()).finish_non_exhaustive()
    }
}
