//! Values of columns of any length: behind the words of an entry of a commit record, and of a row
//! of a checkpoint.
//!
//! ```text
//! header      number of bytes 0..32 | place of its word in the row 32..48 | NONE 48 | LAST 63
//! bytes       as words, with zeros behind them
//! ```

#![forbid(unsafe_code)]

pub use crate::schema::VALUE_BYTES_MAX;

use super::bytes::word_bytes;
use std::borrow::Cow;

/// The bit of a value's header that is set if the value is the `None` of an option.
const NONE: u64 = 1 << 48;
/// The bit of the header of an entry's last value.
const LAST: u64 = 1 << 63;

/// Returns the number of words of a value with these bytes.
pub(crate) fn words(bytes: Option<&[u8]>) -> usize {
    1 + bytes.unwrap_or_default().len().div_ceil(size_of::<u64>())
}

/// Writes a value to `to`, which has as many words as it needs.
pub(crate) fn write(to: &mut [u64], place: u16, bytes: Option<&[u8]>, is_last: bool) {
    let none = if bytes.is_none() { NONE } else { 0 };
    let last = if is_last { LAST } else { 0 };
    let bytes = bytes.unwrap_or_default();
    assert!(bytes.len() <= VALUE_BYTES_MAX, "a value of {} bytes", bytes.len());
    to[0] = bytes.len() as u64 | u64::from(place) << 32 | none | last;
    for (word, bytes) in to[1..].iter_mut().zip(bytes.chunks(size_of::<u64>())) {
        let mut padded = [0; size_of::<u64>()];
        padded[..bytes.len()].copy_from_slice(bytes);
        *word = u64::from_le_bytes(padded);
    }
}

/// Notes in the header of a value that another one follows.
pub(super) fn set_not_last(header: &mut u64) {
    *header &= !LAST;
}

/// A value that a change stores, or that a row has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongValue<'a> {
    /// The place in the row of the word of its column.
    pub place: u16,
    /// The number of bytes. `None` if this is the absence of an optional value.
    pub length: Option<usize>,
    words: &'a [u64],
}

impl<'a> LongValue<'a> {
    /// Returns the bytes. `None` if this is the absence of an optional value.
    pub fn bytes(&self) -> Option<Cow<'a, [u8]>> {
        let length = self.length?;
        Some(match word_bytes(self.words) {
            Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[..length]),
            Cow::Owned(mut bytes) => {
                bytes.truncate(length);
                Cow::Owned(bytes)
            }
        })
    }
}

/// The values of a change or of a row.
#[derive(Debug, Clone)]
pub struct Values<'a> {
    words: &'a [u64],
}

impl<'a> Values<'a> {
    /// Returns the values in words that have been checked.
    pub(super) fn of(words: &'a [u64]) -> Values<'a> {
        Values { words }
    }
}

impl<'a> Iterator for Values<'a> {
    type Item = LongValue<'a>;

    fn next(&mut self) -> Option<LongValue<'a>> {
        let (value, _, rest) = take_value(self.words).ok()?;
        self.words = rest;
        Some(value)
    }
}

/// Takes a value from the front of words. Returns whether it is the last one, too, and the words
/// behind it.
fn take_value(words: &[u64]) -> Result<(LongValue<'_>, bool, &[u64]), &'static str> {
    let (&header, rest) = words.split_first().ok_or("a value is cut off")?;
    let (length, place) = (header as u32 as usize, (header >> 32) as u16);
    if (header & !(NONE | LAST)) >> 48 != 0 {
        return Err("a value has unknown bits");
    }
    if length > VALUE_BYTES_MAX {
        return Err("a value is too long");
    }
    if header & NONE != 0 && length > 0 {
        return Err("a value that is none has bytes");
    }
    if place == u16::MAX {
        return Err("a value is beyond any row");
    }
    let count = length.div_ceil(size_of::<u64>());
    let (words, rest) = rest.split_at_checked(count).ok_or("a value is cut off")?;
    let unused = (count * size_of::<u64>() - length) as u32 * u8::BITS;
    if words.last().is_some_and(|last| unused > 0 && last >> (u64::BITS - unused) != 0) {
        return Err("there are bytes behind a value");
    }
    let length = (header & NONE == 0).then_some(length);
    Ok((LongValue { place, length, words }, header & LAST != 0, rest))
}

/// Returns the number of words of the values with which `words` begin. The words of the row from
/// `first` on, `row`, are 0 where values are.
pub(super) fn check_values(words: &[u64], first: u16, row: &[u64]) -> Result<usize, &'static str> {
    let (mut rest, mut before) = (words, None);
    loop {
        let (value, is_last, behind) = take_value(rest)?;
        if before.is_some_and(|before| before >= value.place) {
            return Err("values are not in the order of their places");
        }
        let word = value.place.checked_sub(first).and_then(|place| row.get(usize::from(place)));
        if word.is_some_and(|word| *word != 0) {
            return Err("the word of a value is not 0");
        }
        (rest, before) = (behind, Some(value.place));
        if is_last {
            return Ok(words.len() - rest.len());
        }
    }
}
