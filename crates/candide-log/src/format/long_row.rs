//! Rows of a checkpoint with values of any length.

#![forbid(unsafe_code)]

use super::value::{self, Values, check_values};

/// A row, which may have values of any length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongRow<'a> {
    /// The words of the key.
    pub key: &'a [u64],
    /// The words of the row; those of values are 0.
    pub words: &'a [u64],
    value_words: &'a [u64],
}

impl<'a> LongRow<'a> {
    /// Returns a row without values.
    pub fn fixed(key: &'a [u64], words: &'a [u64]) -> LongRow<'a> {
        LongRow { key, words, value_words: &[] }
    }

    /// Returns the row whose first `row_words` words are those of the row, and whose other words
    /// are those of its values, as files have them.
    pub(crate) fn with_values(key: &'a [u64], all: &'a [u64], row_words: usize) -> LongRow<'a> {
        let (words, value_words) = all.split_at(row_words);
        LongRow { key, words, value_words }
    }

    /// Returns the words of the values, as files have them.
    pub fn value_words(&self) -> &'a [u64] {
        self.value_words
    }

    /// Returns the values, by the places of their words.
    pub fn values(&self) -> Values<'a> {
        Values::of(self.value_words)
    }
}

/// Takes a row with values from the front of words. Returns the words behind it, too.
pub(super) fn take_long_row(
    words: &[u64],
    key_words: usize,
    row_words: usize,
) -> Result<(LongRow<'_>, &[u64]), &'static str> {
    let cut_off = "a row with values is cut off";
    let (&count, rest) = words.split_first().ok_or(cut_off)?;
    let (key, rest) = rest.split_at_checked(key_words).ok_or(cut_off)?;
    let (words, rest) = rest.split_at_checked(row_words).ok_or(cut_off)?;
    let count = usize::try_from(count).map_err(|_| cut_off)?;
    let (value_words, rest) = rest.split_at_checked(count).ok_or(cut_off)?;
    Ok((LongRow { key, words, value_words }, rest))
}

/// Checks that the values of a row are whole, and those of columns of the row.
pub(super) fn check_row_values(row: LongRow<'_>) -> Result<(), &'static str> {
    if row.value_words.is_empty() {
        return Ok(());
    }
    if check_values(row.value_words, 0, row.words)? != row.value_words.len() {
        return Err("there are words behind the values of a row");
    }
    match row.values().last().is_some_and(|last| usize::from(last.place) >= row.words.len()) {
        true => Err("a value is beyond the row"),
        false => Ok(()),
    }
}

/// Appends a row to the words of a block of rows with values.
pub(crate) fn append_long_row(to: &mut Vec<u64>, row: LongRow<'_>) {
    to.push(row.value_words.len() as u64);
    to.extend_from_slice(row.key);
    to.extend_from_slice(row.words);
    to.extend_from_slice(row.value_words);
}

/// Appends a row with values, each with the place of its word in the row, to the words of a block.
/// The values are as for [`CommitWriter::values`](super::commit::CommitWriter::values).
pub fn put_long_row(
    to: &mut Vec<u64>,
    key: &[u64],
    words: &[u64],
    values: &[(u16, Option<&[u8]>)],
) {
    let count = to.len();
    to.push(0);
    to.extend_from_slice(key);
    to.extend_from_slice(words);
    let begin = to.len();
    for (number, (place, bytes)) in values.iter().enumerate() {
        let at = to.len();
        to.resize(at + value::words(*bytes), 0);
        value::write(&mut to[at..], *place, *bytes, number + 1 == values.len());
    }
    to[count] = (to.len() - begin) as u64;
}
