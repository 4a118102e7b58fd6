//! Writing commit records into a buffer.

use super::head::{ChangeKind, HEADER_WORDS, Head, SAME_ROW, VALUES, entry_words};
use crate::format::value;
use std::collections::TryReserveError;

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

    /// Makes room for records of this many words together.
    ///
    /// # Errors
    /// There is no memory.
    pub fn try_reserve(&mut self, words: usize) -> Result<(), TryReserveError> {
        let least = self.used + words + Self::GROWTH_WORDS;
        if let Some(more) = least.checked_sub(self.words.len()) {
            self.words.try_reserve(more)?;
            self.words.resize(self.words.len().max(least), 0);
        }
        Ok(())
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
    /// The place of the header of that entry's last value, if it has values.
    last_value: usize,
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
            last_value: at,
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

    /// Appends values to the last entry, whose words are complete, and which is not a delete: each
    /// with the place in the row of its word, and its bytes, or `None` for the absence of an
    /// optional value. Places ascend, and no word of the entry at such a place is other than 0.
    ///
    /// # Panics
    /// A value has more than [`VALUE_BYTES_MAX`](value::VALUE_BYTES_MAX) bytes.
    pub fn values(&mut self, values: &[(u16, Option<&[u8]>)]) {
        debug_assert!(values.is_sorted_by(|one, next| one.0 < next.0), "places ascend");
        values.iter().for_each(|&(place, bytes)| self.value(place, bytes));
    }

    /// Appends one value to the last entry, behind those that it has, as
    /// [`values`](CommitWriter::values) does.
    pub fn value(&mut self, place: u16, bytes: Option<&[u8]>) {
        let words = value::words(bytes);
        #[cfg(debug_assertions)]
        {
            self.due += words;
        }
        let head = self.last;
        if self.buffer.words[head] & u64::from(VALUES) != 0 {
            value::set_not_last(&mut self.buffer.words[self.last_value]);
        }
        self.last_value = self.at;
        value::write(self.next(words), place, bytes, true);
        self.buffer.words[head] |= u64::from(VALUES);
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
