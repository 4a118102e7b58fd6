//! The words of a row, as the row writes and reads them.

#![forbid(unsafe_code)]

use super::place::LongColumn;
use std::marker::PhantomData;

/// A writer of columns of any length.
pub(crate) trait PutLong {
    /// Writes a column; `None` is the empty value, or none of an option.
    fn put(&mut self, column: LongColumn, bytes: Option<&[u8]>);

    /// Returns whether [`PutLong::put`] looks at the bytes.
    fn wants_bytes(&self) -> bool;

    /// Notes that a column cannot have a value, for the reason `problem`.
    fn refuse(&mut self, column: LongColumn, problem: String);
}

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
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub const fn new(words: &'a mut [u64]) -> RowWriter<'a> {
        RowWriter { words, long: None }
    }

    /// Returns a writer that passes columns of any length to `long`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn with_long(
        words: &'a mut [u64],
        long: &'a mut (dyn PutLong + 'a),
    ) -> RowWriter<'a> {
        RowWriter { words, long: Some(long) }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn words(&mut self) -> &mut [u64] {
        self.words
    }

    /// Writes a column of any length; `None` is the empty value, or none of an option.
    ///
    /// # Panics
    /// If the row has no such column.
    pub(crate) fn put_long(&mut self, column: LongColumn, bytes: Option<&[u8]>) {
        self.long_writer(column).put(column, bytes);
    }

    /// Returns whether [`RowWriter::put_long`] looks at the bytes of a column.
    ///
    /// # Panics
    /// If the row has no such column.
    pub(crate) fn wants_bytes(&mut self, column: LongColumn) -> bool {
        self.long_writer(column).wants_bytes()
    }

    /// Notes that a column of any length cannot have a value, for the reason `problem`.
    ///
    /// # Panics
    /// If the row has no such column.
    pub(crate) fn refuse_long(&mut self, column: LongColumn, problem: String) {
        self.long_writer(column).refuse(column, problem);
    }

    fn long_writer(&mut self, column: LongColumn) -> &mut (dyn PutLong + 'a) {
        match &mut self.long {
            Some(long) => *long,
            None => not_long(column.name),
        }
    }
}

impl std::fmt::Debug for RowWriter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowWriter").field("words", &self.words.len()).finish_non_exhaustive()
    }
}

/// The pin, or the attempt, in which words have been read: values that they name can be read for as
/// long as it lasts.
#[derive(Debug, Clone, Copy)]
pub struct Pinned<'a>(PhantomData<&'a ()>);

impl<'a> Pinned<'a> {
    /// Returns the pin that lasts for as long as `pin` is borrowed.
    #[cfg_attr(not(debug_assertions), inline(always))]
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
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub const fn new(words: &'a [u64]) -> RowReader<'a> {
        RowReader { words, long: &[] }
    }

    /// Returns a reader of words that have been read in a pin. `long` has the numbers of the words
    /// of columns of any length.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn pinned(
        words: &'a [u64],
        long: &'static [u16],
        _pin: Pinned<'a>,
    ) -> RowReader<'a> {
        RowReader { words, long }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
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

/// Returns the place of a row's word among its columns of any length.
///
/// # Panics
/// If the word belongs to none.
#[inline]
pub(super) fn place_in(columns: &[u16], word: usize, name: &str) -> usize {
    let place = columns.iter().position(|&column| usize::from(column) == word);
    place.unwrap_or_else(|| not_long(name))
}

#[cold]
#[inline(never)]
fn not_long(name: &str) -> ! {
    panic!("column {name} has values of any length, which this row has not at that place")
}
