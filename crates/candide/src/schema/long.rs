//! Columns whose values have any length: strings and bytes.
//!
//! Such a column is one word of the row, which has the bytes or names a block that does
//! (`record/long.rs`). A program holds values and never words: a row is stored and loaded through a
//! [`RowWriter`](super::RowWriter) and a [`RowReader`](super::RowReader), which make words of bytes
//! and bytes of words, and only in the columns that the row type describes as such.

#![forbid(unsafe_code)]

use super::field_type::FieldInfo;
use super::group::{Group, start_of};
use super::place::LongColumn;
use super::row_words::{PutLong, place_in};
use crate::error::Abort;

/// The largest length of a value, in bytes.
pub(crate) const LONG_BYTES_MAX: usize = 16 << 20;

/// The largest number of such columns of a row.
const COLUMNS_MAX: usize = 64;

/// The columns of a row type whose values have any length.
#[derive(Debug, Clone, Copy)]
pub struct LongColumns {
    /// The numbers of their words among all words of the row outside of the key, in ascending
    /// order.
    words: [u16; COLUMNS_MAX],
    count: usize,
}

impl LongColumns {
    /// Returns those of the fields that have any length.
    pub(super) const fn of(fields: &[FieldInfo], groups: &[Group]) -> LongColumns {
        let (mut words, mut count, mut index) = ([0; COLUMNS_MAX], 0, 0);
        while index < fields.len() {
            if let Some(place) = fields[index].place
                && fields[index].ty.is_long()
            {
                assert!(count < COLUMNS_MAX, "a row has at most 64 columns of any length");
                let word = (start_of(groups, place.group as usize) + place.word as usize) as u16;
                let mut at = count;
                while at > 0 && words[at - 1] > word {
                    words[at] = words[at - 1];
                    at -= 1;
                }
                assert!(at == 0 || words[at - 1] != word, "two columns of any length share a word");
                words[at] = word;
                count += 1;
            }
            index += 1;
        }
        LongColumns { words, count }
    }

    /// Returns the numbers of their words among all words of the row, in ascending order.
    pub(super) const fn words(&self) -> &[u16] {
        self.words.split_at(self.count).0
    }

    /// Panics if a word of the row belongs to no such column. The columns are constants, so that
    /// nothing is left of the check where it is inlined.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) const fn assert_has(&self, word: usize) {
        let mut index = 0;
        while index < self.count {
            if self.words[index] as usize == word {
                return;
            }
            index += 1;
        }
        panic!("the row type has no column of strings or bytes of any length there");
    }

    /// Panics if one of `count` words of the row, from word `first` on, belongs to such a column.
    /// Inlined as [`LongColumns::assert_has`].
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) const fn assert_apart(&self, first: usize, count: usize) {
        let mut index = 0;
        while index < self.count {
            let word = self.words[index] as usize;
            assert!(
                word < first || word >= first + count,
                "the word belongs to a column of strings or bytes of any length"
            );
            index += 1;
        }
    }
}

/// The word of a value, as it has been read: its bytes from the lowest on, which may be those of
/// the value.
#[derive(Debug, Clone, Copy)]
pub struct LongWord([u8; 8]);

impl LongWord {
    pub(crate) const fn new(word: u64) -> LongWord {
        LongWord(word.to_le_bytes())
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) const fn get(&self) -> u64 {
        u64::from_le_bytes(self.0)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) const fn bytes(&self) -> &[u8; 8] {
        &self.0
    }
}

/// The keeper of the bytes of a row that is stored.
pub trait LongSink {
    /// Keeps the bytes of a column's value, and returns the word that has them or names them.
    #[doc(hidden)]
    fn keep(&mut self, column: LongColumn, bytes: &[u8]) -> Result<u64, Abort>;

    /// Returns whether [`LongSink::keep`] looks at the bytes.
    #[doc(hidden)]
    fn wants_bytes(&self) -> bool {
        true
    }

    /// Notes that a column cannot have a value, for the reason `problem`, and returns the outcome.
    #[doc(hidden)]
    fn refuse(&mut self, _column: LongColumn, _problem: String) -> Abort {
        Abort::Unencodable
    }
}

/// A keeper for rows without such columns.
pub(crate) struct NoLong;

impl LongSink for NoLong {
    fn keep(&mut self, column: LongColumn, _: &[u8]) -> Result<u64, Abort> {
        unreachable!("no bytes of column {} can be kept here", column.name)
    }
}

/// The part of a [`RowWriter`](super::RowWriter) that writes columns of any length.
pub(super) struct LongWriter<'a> {
    /// The columns of the row type: the numbers of their words.
    columns: &'static [u16],
    /// The words written, by the columns' places in `columns`.
    words: [u64; COLUMNS_MAX],
    refused: Option<Abort>,
    sink: &'a mut dyn LongSink,
}

impl<'a> LongWriter<'a> {
    pub(super) fn new(columns: &'static [u16], sink: &'a mut dyn LongSink) -> LongWriter<'a> {
        LongWriter { columns, words: [0; COLUMNS_MAX], refused: None, sink }
    }

    /// Stores the words that have been written, whatever fixed columns have written there.
    pub(super) fn finish(self, words: &mut [u64]) -> Result<(), Abort> {
        for (&column, word) in self.columns.iter().zip(self.words) {
            words[usize::from(column)] = word;
        }
        self.refused.map_or(Ok(()), Err)
    }
}

impl PutLong for LongWriter<'_> {
    fn put(&mut self, column: LongColumn, bytes: Option<&[u8]>) {
        let place = place_in(self.columns, column.word, column.name);
        if self.refused.is_some() {
            return;
        }
        match bytes.map(|bytes| self.sink.keep(column, bytes)) {
            None => self.words[place] = 0,
            Some(Ok(word)) => self.words[place] = word,
            Some(Err(abort)) => self.refused = Some(abort),
        }
    }

    fn wants_bytes(&self) -> bool {
        self.sink.wants_bytes()
    }

    fn refuse(&mut self, column: LongColumn, problem: String) {
        place_in(self.columns, column.word, column.name);
        if self.refused.is_none() {
            self.refused = Some(self.sink.refuse(column, problem));
        }
    }
}
