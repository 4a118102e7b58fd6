//! Reading commit records, and checking them.

use super::head::{ChangeKind, HEADER_WORDS, SAME_ROW, VALUES};
use crate::format::value::{Values, check_values};
use crate::format::{Fault, Malformed};
use std::borrow::Cow;
use std::{iter, slice};

/// A commit record whose entries have been checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitRecord<'a> {
    /// The stamp. A cut that is not below the stamp contains the commit.
    pub stamp: u64,
    /// The version, by which changes of one row are ordered.
    pub version: u64,
    words: &'a [u64],
}

/// One change of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change<'a> {
    /// The number of the table.
    pub table: u16,
    /// The effect of the change.
    pub kind: ChangeKind,
    /// The place in the row of the first of `words`.
    pub first: u16,
    /// The key of the row.
    pub key: &'a [u64],
    /// The words that the change stores.
    pub words: &'a [u64],
    /// The values that the change stores, as words.
    pub value_words: &'a [u64],
}

impl<'a> Change<'a> {
    /// Returns the values that the change stores, by the places of their words.
    pub fn values(&self) -> Values<'a> {
        Values::of(self.value_words)
    }
}

impl<'a> CommitRecord<'a> {
    /// Reads the record with which `words` begin. Returns it, and the words behind it.
    ///
    /// # Errors
    /// Returns an error if the record is damaged or could not come from the writer. The offset
    /// counts bytes.
    pub fn parse(words: &'a [u64]) -> Result<(CommitRecord<'a>, &'a [u64]), Malformed> {
        let &[counts, stamp, version, ..] = words else {
            let error = format!("a commit record ends after {} words", words.len());
            return Err(wrong(words.len(), error).with(Fault::Short));
        };
        let (count, entries) = (counts as u32 as usize, (counts >> 32) as u32);
        if count < HEADER_WORDS {
            return Err(wrong(0, format!("a commit record has {count} words")));
        }
        let Some((record, rest)) = words.split_at_checked(count) else {
            let error = format!("a commit record has {count} words, and {} are left", words.len());
            return Err(wrong(0, error).with(Fault::Short));
        };
        if entries == 0 {
            return Err(wrong(0, "a commit record has no entries"));
        }
        let mut cursor = Cursor { record, at: HEADER_WORDS, row: None };
        for _ in 0..entries {
            cursor.next()?;
        }
        if cursor.at < count {
            let error = format!("a commit record has {entries} entries, and words behind them");
            return Err(wrong(cursor.at, error));
        }
        Ok((CommitRecord { stamp, version, words: record }, rest))
    }

    /// Returns the record with which `words` begin, which [`parse`](CommitRecord::parse) has
    /// accepted before.
    pub(crate) fn parsed(words: &'a [u64]) -> CommitRecord<'a> {
        let words = &words[..words[0] as u32 as usize];
        CommitRecord { stamp: words[1], version: words[2], words }
    }

    /// Returns all words of the record, as they were parsed.
    pub fn words(&self) -> &'a [u64] {
        self.words
    }

    /// Returns the changes in the order in which they were written.
    pub fn entries(&self) -> Changes<'a> {
        let left = (self.words[0] >> 32) as usize;
        Changes { cursor: Cursor { record: self.words, at: HEADER_WORDS, row: None }, left }
    }
}

/// The changes of a commit record.
#[derive(Debug, Clone)]
pub struct Changes<'a> {
    cursor: Cursor<'a>,
    left: usize,
}

impl<'a> Changes<'a> {
    /// Returns the tables of the changes, their places in the words of the record, and the numbers
    /// of words by which the entries that have their keys come before.
    pub(crate) fn places(mut self) -> impl Iterator<Item = (u16, usize, u32)> + use<'a> {
        let mut with_key = 0;
        iter::from_fn(move || {
            let at = self.cursor.at;
            let change = self.next()?;
            if self.cursor.record[at] & u64::from(SAME_ROW) == 0 {
                with_key = at;
            }
            Some((change.table, at, (at - with_key) as u32))
        })
    }
}

/// Returns the key of the entry at a place, which has one and has been checked before.
#[inline]
pub(crate) fn key_at(words: &[u64], at: usize) -> &[u64] {
    let count = usize::from((words[at] >> 8) as u8);
    &words[at + 1..][..count]
}

/// Returns the change of the entry at a place, which has been checked before; the key is empty if
/// an entry before has it.
#[inline]
pub(crate) fn change_at(words: &[u64], at: usize) -> Change<'_> {
    let mut cursor = Cursor { record: words, at, row: Some(((words[at] >> 48) as u16, &[])) };
    cursor.next().expect("the entry has been checked before")
}

impl<'a> Iterator for Changes<'a> {
    type Item = Change<'a>;

    fn next(&mut self) -> Option<Change<'a>> {
        self.left = self.left.checked_sub(1)?;
        // The record has been checked, so there is no error.
        self.cursor.next().ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Changes<'_> {}

/// The commit records in a payload, one behind the other.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    words: &'a [u64],
    rest: &'a [u64],
}

/// Returns the commit records in `words`. The first error is the last item.
pub fn records(words: &[u64]) -> Records<'_> {
    Records { words, rest: words }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<CommitRecord<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let base = size_of_val(self.words) - size_of_val(self.rest);
        let (record, rest) = match CommitRecord::parse(self.rest) {
            Ok((record, rest)) => (Ok(record), rest),
            Err(error) => (Err(error.after(base as u64)), <&[u64]>::default()),
        };
        self.rest = rest;
        Some(record)
    }
}

/// A position before an entry of a record.
#[derive(Debug, Clone)]
struct Cursor<'a> {
    record: &'a [u64],
    at: usize,
    /// The table and the key of the entry before.
    row: Option<(u16, &'a [u64])>,
}

impl<'a> Cursor<'a> {
    /// Reads an entry.
    #[inline]
    fn next(&mut self) -> Result<Change<'a>, Malformed> {
        let start = self.at;
        let mut rest = self.record[start..].iter();
        let Some(&header) = rest.next() else {
            return Err(wrong(start, "a commit record has fewer entries than it states"));
        };
        let (table, first) = ((header >> 48) as u16, (header >> 32) as u16);
        let (count, key_words, kind) = ((header >> 16) as u16, (header >> 8) as u8, header as u8);
        let key = if kind & SAME_ROW == 0 {
            words(&mut rest, key_words.into())
                .ok_or_else(|| wrong(start, format!("a key of {key_words} words is cut off")))?
        } else {
            match self.row {
                None => return Err(wrong(start, "the first entry has no key")),
                Some((before, _)) if before != table => {
                    let error =
                        format!("an entry of table {table} continues a row of table {before}");
                    return Err(wrong(start, error));
                }
                Some(_) if key_words != 0 => {
                    return Err(wrong(
                        start,
                        "an entry has a key, although it is of the same row as the entry before",
                    ));
                }
                Some((_, key)) => key,
            }
        };
        let has_values = kind & VALUES != 0;
        let kind = match kind & !(SAME_ROW | VALUES) {
            0 => ChangeKind::Update,
            1 => ChangeKind::Put,
            2 if count == 0 && first == 0 && !has_values => ChangeKind::Delete,
            2 => return Err(wrong(start, "a delete has words")),
            kind => return Err(wrong(start, format!("an entry has the unknown kind {kind}"))),
        };
        if first.checked_add(count).is_none() {
            let error = format!("{count} words from word {first} on are beyond any row");
            return Err(wrong(start, error));
        }
        let words = words(&mut rest, count.into())
            .ok_or_else(|| wrong(start, format!("an entry of {count} words is cut off")))?;
        let value_words = match has_values {
            true => self.values(&mut rest, first, words)?,
            false => &[],
        };
        self.at = self.record.len() - rest.len();
        self.row = Some((table, key));
        Ok(Change { table, kind, first, key, words, value_words })
    }
}

impl<'a> Cursor<'a> {
    /// Takes the values of an entry that stores `row` from the front.
    #[inline(never)]
    fn values(
        &self,
        rest: &mut slice::Iter<'a, u64>,
        first: u16,
        row: &[u64],
    ) -> Result<&'a [u64], Malformed> {
        let at = self.record.len() - rest.len();
        let count = check_values(rest.as_slice(), first, row).map_err(|what| wrong(at, what))?;
        words(rest, count).ok_or_else(|| wrong(at, "a value is cut off"))
    }
}

/// Takes `count` words from the front, if there are enough.
#[inline]
fn words<'a>(rest: &mut slice::Iter<'a, u64>, count: usize) -> Option<&'a [u64]> {
    let (words, behind) = rest.as_slice().split_at_checked(count)?;
    *rest = behind.iter();
    Some(words)
}

/// Returns an error at a word, with the text `what`.
#[cold]
fn wrong(word: usize, what: impl Into<Cow<'static, str>>) -> Malformed {
    Malformed::new((word * size_of::<u64>()) as u64, what)
}
