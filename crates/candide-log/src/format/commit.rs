//! Commit records: the changes of one commit, as words.
//!
//! ```text
//! word 0      number of words of the record (low 32 bits) | number of entries (high 32 bits)
//! word 1      stamp
//! word 2      version
//! entries     header, key words, words of the row
//!
//! header      table 48..64 | first word 32..48 | count of words 16..32 | key words 8..16 | kind 0..8
//! kind        0 update, 1 put, 2 delete; | SAME_ROW: no key words, the row of the entry before
//! ```
//!
//! The words of a row are counted from its first one, group after group, and do not depend on
//! timestamp splitting.

#![forbid(unsafe_code)]

use super::{Fault, Malformed};
use std::borrow::Cow;
use std::slice;

/// The number of words before the first entry.
pub const HEADER_WORDS: usize = 3;
/// The bit of an entry's kind that is set if the entry has no key: the entry changes the same row
/// as the entry before.
pub const SAME_ROW: u8 = 0x80;

/// The effect of a change on its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ChangeKind {
    /// Stores words of a row that exists.
    Update = 0,
    /// Creates the row, all its words zero, if it does not exist; then stores the words.
    Put = 1,
    /// Removes a row that exists. There are no words.
    Delete = 2,
}

/// The header of an entry, apart from the key's length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The effect of the change.
    pub kind: ChangeKind,
    /// The number of the table.
    pub table: u16,
    /// The place in the row of the first word that is stored.
    pub first: u16,
    /// The number of words that are stored; 0 for a delete. `first` and `count` together are at
    /// most [`ROW_WORDS_MAX`](crate::schema::ROW_WORDS_MAX).
    pub count: u16,
}

impl Head {
    /// Returns the header's word. `low` is the lowest 16 bits without the kind.
    #[inline]
    fn word(self, low: u64) -> u64 {
        debug_assert!(self.first.checked_add(self.count).is_some(), "the words are within a row");
        u64::from(self.table) << 48
            | u64::from(self.first) << 32
            | u64::from(self.count) << 16
            | low
            | self.kind as u64
    }
}

/// Returns the number of words of an entry whose key is not omitted.
pub const fn entry_words(key_words: u8, count: u16) -> usize {
    1 + key_words as usize + count as usize
}

/// Commit records, one behind the other, in a buffer that can be used again.
#[derive(Debug, Default)]
pub struct RecordBuffer {
    /// The records, and unused words behind them, so that each entry is written after one check of
    /// the room.
    words: Vec<u64>,
    /// The number of words of the records.
    used: usize,
}

impl RecordBuffer {
    /// The least number of words by which the buffer grows.
    const GROWTH_WORDS: usize = 1024;

    /// Returns an empty buffer.
    pub fn new() -> RecordBuffer {
        RecordBuffer::default()
    }

    /// Returns the records.
    pub fn words(&self) -> &[u64] {
        &self.words[..self.used]
    }

    /// Returns whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Returns the number of words that the buffer can hold without growing.
    pub fn capacity(&self) -> usize {
        self.words.len()
    }

    /// Removes all records, and keeps the memory.
    pub fn clear(&mut self) {
        self.used = 0;
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, least: usize) {
        let len = (2 * self.words.len()).max(least + Self::GROWTH_WORDS);
        self.words.resize(len, 0);
    }
}

/// A commit record that is being appended to a buffer.
///
/// A writer that is dropped before [`finish`](CommitWriter::finish) leaves nothing.
#[derive(Debug)]
pub struct CommitWriter<'a> {
    buffer: &'a mut RecordBuffer,
    /// The place of the next word.
    at: usize,
    /// The place of the header of the last entry.
    last: usize,
    entries: u32,
    /// The place that the next word will have when the last entry is complete.
    #[cfg(debug_assertions)]
    due: usize,
}

impl<'a> CommitWriter<'a> {
    /// Begins a record behind the records that are there.
    #[inline]
    pub fn begin(buffer: &'a mut RecordBuffer) -> CommitWriter<'a> {
        let at = buffer.used + HEADER_WORDS;
        CommitWriter {
            buffer,
            at,
            last: at,
            entries: 0,
            #[cfg(debug_assertions)]
            due: at,
        }
    }

    /// Returns the next `count` words, to be written.
    #[inline(always)]
    fn next(&mut self, count: usize) -> &mut [u64] {
        let (start, end) = (self.at, self.at + count);
        if self.buffer.words.len() < end {
            self.buffer.grow(end);
        }
        self.at = end;
        &mut self.buffer.words[start..end]
    }

    /// Appends an entry, with `key_words` words of the key and `head.count` words of the row, which
    /// the two functions return by their place from 0.
    #[inline]
    pub fn change(
        &mut self,
        head: Head,
        key_words: u8,
        key: impl FnMut(usize) -> u64,
        words: impl FnMut(usize) -> u64,
    ) {
        let count = entry_words(key_words, head.count);
        self.count(count);
        let (begin, rest) = self.next(count).split_at_mut(1 + usize::from(key_words));
        begin[0] = head.word(u64::from(key_words) << 8);
        fill(&mut begin[1..], key);
        fill(rest, words);
    }

    /// Appends an entry as [`change`](CommitWriter::change) does, with `head.count` words that lie
    /// in memory.
    ///
    /// # Panics
    /// If `words` are not `head.count` words.
    #[inline(always)]
    pub fn change_slice(
        &mut self,
        head: Head,
        key_words: u8,
        key: impl FnMut(usize) -> u64,
        words: &[u64],
    ) {
        let count = entry_words(key_words, head.count);
        self.count(count);
        let (begin, rest) = self.next(count).split_at_mut(1 + usize::from(key_words));
        begin[0] = head.word(u64::from(key_words) << 8);
        fill(&mut begin[1..], key);
        rest.copy_from_slice(words);
    }

    /// Appends an entry for the row of the entry before, with `head.count` words. The table must be
    /// the table of the entry before.
    #[inline]
    pub fn change_same_row(&mut self, head: Head, words: impl FnMut(usize) -> u64) {
        debug_assert!(self.entries > 0, "there is an entry before");
        let count = entry_words(0, head.count);
        self.count(count);
        let next = self.next(count);
        next[0] = head.word(SAME_ROW.into());
        fill(&mut next[1..], words);
    }

    /// Appends an entry as [`change_same_row`](CommitWriter::change_same_row) does, with words that
    /// lie in memory.
    ///
    /// # Panics
    /// If `words` are not `head.count` words.
    #[inline(always)]
    pub fn change_same_row_slice(&mut self, head: Head, words: &[u64]) {
        debug_assert!(self.entries > 0, "there is an entry before");
        let count = entry_words(0, head.count);
        self.count(count);
        let next = self.next(count);
        next[0] = head.word(SAME_ROW.into());
        next[1..].copy_from_slice(words);
    }

    /// Appends words to those of the last entry, as if `head.count` had been larger.
    ///
    /// # Panics
    /// If there is no entry.
    #[inline(always)]
    pub fn extend_last(&mut self, words: &[u64]) {
        assert!(self.entries > 0, "there is an entry before");
        #[cfg(debug_assertions)]
        {
            self.due += words.len();
        }
        self.next(words.len()).copy_from_slice(words);
        self.buffer.words[self.last] += (words.len() as u64) << 16;
    }

    /// Appends the header and the key of an entry. `count` words have to be pushed after it.
    /// Without a key, the entry changes the row of the entry before, which must be of the same
    /// table.
    ///
    /// # Panics
    /// The key has more than 255 words.
    pub fn entry(
        &mut self,
        kind: ChangeKind,
        table: u16,
        first: u16,
        count: u16,
        key: Option<&[u64]>,
    ) {
        let head = Head { kind, table, first, count };
        match key {
            Some(key) => {
                let key_words = u8::try_from(key.len()).expect("a key has at most 255 words");
                self.count(entry_words(key_words, count));
                let next = self.next(entry_words(key_words, 0));
                next[0] = head.word(u64::from(key_words) << 8);
                next[1..].copy_from_slice(key);
            }
            None => {
                debug_assert!(self.entries > 0, "there is an entry before");
                self.count(entry_words(0, count));
                self.next(1)[0] = head.word(SAME_ROW.into());
            }
        }
    }

    /// Appends one word of the row to the last entry.
    pub fn push(&mut self, word: u64) {
        self.push_all(&[word]);
    }

    /// Appends words of the row to the last entry.
    pub fn push_all(&mut self, words: &[u64]) {
        self.next(words.len()).copy_from_slice(words);
    }

    /// Counts an entry of this many words.
    #[inline(always)]
    fn count(&mut self, words: usize) {
        self.entries += 1;
        self.last = self.at;
        #[cfg(debug_assertions)]
        {
            assert_eq!(self.at, self.due, "the entry before is complete");
            self.due += words;
        }
        let _ = words;
    }

    /// Completes the record and returns its number of words. A record without entries is left out,
    /// and the number is 0.
    ///
    /// # Panics
    /// The record has 2^32 words or more.
    #[inline]
    pub fn finish(self, stamp: u64, version: u64) -> usize {
        #[cfg(debug_assertions)]
        assert_eq!(self.at, self.due, "the last entry is complete");
        if self.entries == 0 {
            return 0;
        }
        let start = self.buffer.used;
        let count = self.at - start;
        assert!(u32::try_from(count).is_ok(), "a commit record of 32 GiB");
        let counts = u64::from(self.entries) << 32 | count as u64;
        self.buffer.words[start..][..HEADER_WORDS].copy_from_slice(&[counts, stamp, version]);
        self.buffer.used = self.at;
        count
    }
}

/// Sets each of `words` to the result of `word` for its place from 0.
#[inline(always)]
fn fill(words: &mut [u64], mut word: impl FnMut(usize) -> u64) {
    for (index, to) in words.iter_mut().enumerate() {
        *to = word(index);
    }
}

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
        let kind = match kind & !SAME_ROW {
            0 => ChangeKind::Update,
            1 => ChangeKind::Put,
            2 if count == 0 && first == 0 => ChangeKind::Delete,
            2 => return Err(wrong(start, "a delete has words")),
            kind => return Err(wrong(start, format!("an entry has the unknown kind {kind}"))),
        };
        if first.checked_add(count).is_none() {
            let error = format!("{count} words from word {first} on are beyond any row");
            return Err(wrong(start, error));
        }
        let words = words(&mut rest, count.into())
            .ok_or_else(|| wrong(start, format!("an entry of {count} words is cut off")))?;
        self.at = self.record.len() - rest.len();
        self.row = Some((table, key));
        Ok(Change { table, kind, first, key, words })
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
