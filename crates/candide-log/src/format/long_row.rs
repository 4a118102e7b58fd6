//! Rows with values of any length, as checkpoints and exports have them.

#![forbid(unsafe_code)]

use super::value::{self, Values, check_values};
use crate::schema::{FieldSchema, TableSchema, Value};

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

    /// Returns the row with these words, and behind them those of its values, as files have them.
    ///
    /// # Errors
    /// The values are not whole, or not those of columns of the row.
    pub fn of(
        key: &'a [u64],
        words: &'a [u64],
        value_words: &'a [u64],
    ) -> Result<LongRow<'a>, &'static str> {
        let row = LongRow { key, words, value_words };
        check_row_values(row).map(|()| row)
    }

    /// Takes a row from the front of words, as [`LongRow::append_to`] has written it. Returns the
    /// words behind it, too.
    ///
    /// # Errors
    /// The words are no such row.
    pub fn take(
        words: &'a [u64],
        key_words: usize,
        row_words: usize,
    ) -> Result<(LongRow<'a>, &'a [u64]), &'static str> {
        let (row, rest) = take_long_row(words, key_words, row_words)?;
        check_row_values(row).map(|()| (row, rest))
    }

    /// Appends the row to words: the number of the words of its values, its key, its words, and
    /// those of its values.
    pub fn append_to(self, to: &mut Vec<u64>) {
        to.push(self.value_words.len() as u64);
        to.extend_from_slice(self.key);
        to.extend_from_slice(self.words);
        to.extend_from_slice(self.value_words);
    }

    /// Returns the value that the row has of a field of its table.
    ///
    /// # Errors
    /// The words or the bytes are no value of the field; the text names it.
    pub fn value_of(&self, table: &TableSchema, field: &FieldSchema) -> Result<Value, String> {
        if !field.ty.is_value() {
            return table.value_of(field, self.key, self.words);
        }
        let place = table.place_in_row(field);
        let found = self.values().find(|value| Some(value.place.into()) == place);
        field.of_bytes(found.and_then(|value| value.bytes()).as_deref())
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

/// Appends a value of a row, with the place of the word of its column, to `values`: the words of
/// the row's values, of which the last has been appended at `last`. The values of a row come in
/// ascending order of their places. A column without a value is empty, or has the `None` of an
/// option.
///
/// # Panics
/// If there are more than [`VALUE_BYTES_MAX`](value::VALUE_BYTES_MAX) bytes.
pub fn append_value(values: &mut Vec<u64>, last: &mut Option<usize>, place: u16, bytes: &[u8]) {
    if let Some(last) = *last {
        value::set_not_last(&mut values[last]);
    }
    let at = values.len();
    values.resize(at + value::words(Some(bytes)), 0);
    value::write(&mut values[at..], place, Some(bytes), true);
    *last = Some(at);
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
