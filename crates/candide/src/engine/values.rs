//! The owners of the values that an attempt stages and replaces, boxed ones and blocks of bytes
//! alike; [`record::value`](crate::record::value) has the values themselves.
//!
//! A value that is staged belongs to the attempt until the attempt has ended: not only until it is
//! staged over, or its part of the transaction undone, since the closure may still hold a
//! reference. Under every protocol and policy, other sessions find its word only when the commit
//! can no longer fail. A commit *replaces* the value that a unit names when it stores another word
//! or deletes the row; an image repeats the words that have not changed. It notes what it replaces
//! when nothing can fail any more, and before it stores the first word (`serial`, which stores at
//! once, notes it at the end); the words of an absent row are not looked at, since its deletion has
//! replaced what they name. When the attempt ends, its protocol takes over what was replaced
//! ([`Versions::leave_values`](super::Versions::leave_values)), and what was not installed is
//! freed.
//!
//! Boxed values that are to be dropped are only collected here. User code runs when they are
//! dropped, so a session drops them at the end of `run`, when it holds nothing. A block goes back
//! to its slab at once.

#![forbid(unsafe_code)]

use super::shared_queue::VALUES_AT_ONCE;
use super::table_core::TableCore;
use crate::access::{WriteItem, WriteSet};
use crate::memory::{Cache, LongMemory};
use crate::record::value::{Value, names_value, note_installed};
use crate::record::{Named, long};
use crate::sync::{AtomicU64, Ordering};
use std::cell::Cell;

/// A value that a commit has replaced.
#[derive(Debug)]
pub struct Replaced {
    pub(crate) value: Value,
    /// The timestamp of that commit.
    pub(crate) until: u64,
}

/// The values of a session's running attempt, and those that the session is to drop.
#[derive(Debug, Default)]
pub(crate) struct Values {
    /// The values that the attempt has staged, installed or not.
    staged: Vec<Value>,
    /// The tables with values that the attempt writes, by their numbers, and their words that may
    /// name values.
    named: Vec<(u16, Named)>,
    /// The number of values that the attempt's commit replaces at most.
    most: usize,
    /// The values that the attempt's commit has replaced.
    pub(crate) replaced: Vec<Replaced>,
    /// Values that the session is to drop.
    pub(crate) unwanted: Vec<Value>,
}

impl Values {
    /// Returns whether the attempt writes rows of tables with values.
    #[inline]
    pub(crate) fn is_used(&self) -> bool {
        !self.named.is_empty()
    }

    /// Returns the number of values that the attempt has staged.
    pub(crate) fn count(&self) -> usize {
        self.staged.len()
    }

    /// Makes the values ready for [`Values::has_staged`], at the begin of a commit that is logged.
    /// Returns the number of words in the log's record of the blocks that the attempt has staged.
    pub(crate) fn prepare_to_log(&mut self) -> usize {
        self.staged.sort_unstable_by_key(Value::word);
        let blocks = self.staged.iter().filter(|value| value.is_block());
        let words = |value: &Value| 1 + long::len(value.word(), self).div_ceil(size_of::<u64>());
        blocks.map(words).sum()
    }

    /// Returns whether the attempt, which commits, has staged the value that a word names.
    pub(crate) fn has_staged(&self, word: u64) -> bool {
        self.staged.binary_search_by_key(&word, Value::word).is_ok()
    }

    /// Keeps a value until the attempt ends, and returns the word that names it.
    pub(crate) fn stage(&mut self, value: Value) -> u64 {
        let word = value.word();
        self.staged.push(value);
        word
    }

    /// Notes that the attempt is about to write a row of a table with values, and reserves room for
    /// what the commit replaces (C4).
    pub(crate) fn note_write(&mut self, table: &TableCore) {
        self.note_words(table.number, table.layout.named());
    }

    fn note_words(&mut self, table: u16, named: &[Named]) {
        if !self.is_noted(table) {
            self.named.extend(named.iter().map(|&named| (table, named)));
        }
        self.most += named.len();
        self.replaced.reserve(self.most);
    }

    /// Returns whether the attempt has noted that it writes rows of this table.
    pub(crate) fn is_noted(&self, table: u16) -> bool {
        self.named.iter().any(|&(noted, _)| noted == table)
    }

    /// Returns the words of a unit that may name values, of a table that the attempt has noted.
    pub(crate) fn words_of(&self, table: u16, unit: usize) -> impl Iterator<Item = usize> {
        let is_of =
            move |&&(of, named): &&(u16, Named)| of == table && usize::from(named.unit) == unit;
        self.named.iter().filter(is_of).map(|(_, named)| usize::from(named.word))
    }

    /// Returns whether an item may store another word that names a value.
    #[inline]
    pub(crate) fn may_change(&self, item: &WriteItem) -> bool {
        self.is_used() && {
            let mut words = self.words_of(item.at.table(), item.at.unit());
            words.any(|word| item.changed().contains(&word))
        }
    }

    /// Notes that the commit stores the word `new` in the place of `old`: what `new` names is
    /// installed, and what `old` names is replaced. Zero stands for each word of an absent row.
    pub(crate) fn replace(&mut self, old: u64, new: u64, timestamp: u64) {
        if old == new {
            return;
        }
        if names_value(new) {
            note_installed(new, timestamp);
        }
        if names_value(old) {
            debug_assert!(self.replaced.len() < self.replaced.capacity(), "C4: it has room");
            self.replaced.push(Replaced { value: Value::claim(old), until: timestamp });
        }
    }

    /// Notes what an evaluated commit at `timestamp` installs and replaces. `old` returns a word of
    /// an item's unit that the commit is about to replace; zero if its row is absent.
    #[cold]
    #[inline(never)]
    pub(crate) fn replace_all(
        &mut self,
        writes: &WriteSet,
        timestamp: u64,
        old: &dyn Fn(&WriteItem, usize) -> u64,
    ) {
        for (index, item) in writes.items().iter().enumerate() {
            if item.is_delta {
                // It is not evaluated, and stores no such word (TO12).
                continue;
            }
            for place in 0..self.named.len() {
                let (table, Named { unit, word }) = self.named[place];
                if table != item.at.table() || usize::from(unit) != item.at.unit() {
                    continue;
                }
                let word = usize::from(word);
                // Of an image, which repeats words, all are looked at.
                if item.present && !item.needs_image && !item.changed().contains(&word) {
                    continue;
                }
                let new = if item.present { writes.new_word(index, word) } else { Some(0) };
                if let Some(new) = new {
                    self.replace(old(item, word), new, timestamp);
                }
            }
        }
    }

    /// Ends the attempt: what it has staged and not installed is freed, or is to be dropped.
    pub(crate) fn end(&mut self, memory: Option<&LongMemory>, caches: &mut Vec<Option<Cache>>) {
        debug_assert!(self.replaced.is_empty(), "the protocol has taken over what was replaced");
        while let Some(value) = self.staged.pop() {
            match value.is_installed() {
                // The unit that names it owns it (BV1).
                true => std::mem::forget(value),
                false => self.discard(value, memory, caches),
            }
        }
        self.named.clear();
        self.most = 0;
    }

    /// Frees a value that nothing can reach, if it is a block. Otherwise the session is to drop it.
    #[inline]
    pub(crate) fn discard(
        &mut self,
        value: Value,
        memory: Option<&LongMemory>,
        caches: &mut Vec<Option<Cache>>,
    ) {
        if let Err(boxed) = value.free_block(memory, caches) {
            self.unwanted.push(boxed);
        }
    }
}

thread_local! {
    static BUFFER: Cell<Vec<Value>> = const { Cell::new(Vec::new()) };
}

/// Returns an empty list of values, with the memory of one that this thread has kept.
pub(crate) fn take_buffer() -> Vec<Value> {
    BUFFER.try_with(Cell::take).unwrap_or_default()
}

/// Keeps the memory of a list, unless it is large. So a session that drops values again and again
/// takes no such memory from the allocator, which would merge the memory of dropped values first.
pub(crate) fn keep_buffer(mut buffer: Vec<Value>) {
    buffer.clear();
    if buffer.capacity() <= VALUES_AT_ONCE / 4 {
        // If the thread is ending, the list is dropped.
        let _ = BUFFER.try_with(|kept| kept.set(buffer));
    }
}

/// Returns a word of a unit with values, of which the row is present.
pub(crate) fn word_in(payload: &[AtomicU64], word: usize) -> u64 {
    // Acquire, as all loads of a row's words (E3): the value was written before.
    payload[word].load(Ordering::Acquire)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    const WORD: Named = Named { unit: 0, word: 0 };

    fn staged(values: &mut Values) -> u64 {
        values.note_words(7, &[WORD]);
        values.stage(Value::new("a value".to_owned()))
    }

    fn end(values: &mut Values) {
        values.end(None, &mut Vec::new());
    }

    #[test]
    fn a_value_that_a_commit_keeps_is_not_replaced() {
        let mut values = Values::default();
        let word = staged(&mut values);
        values.replace(0, word, 3);
        values.note_words(7, &[WORD]);
        values.replace(word, word, 4);
        let replaced = values.replaced.len();
        // Owned by the unit, as the install says.
        std::mem::take(&mut values.replaced).into_iter().for_each(std::mem::forget);
        end(&mut values);
        assert_eq!((replaced, values.unwanted.len()), (0, 0));
        drop(Value::claim(word));
    }

    #[test]
    fn a_replaced_value_has_the_times_of_both_commits() {
        let mut values = Values::default();
        let word = staged(&mut values);
        values.replace(0, word, 3);
        end(&mut values);
        let next = staged(&mut values);
        values.replace(word, next, 5);
        let replaced = values.replaced.pop().unwrap();
        assert_eq!((replaced.value.word(), replaced.value.born(), replaced.until), (word, 3, 5));
        end(&mut values);
        assert!(!values.is_used() && values.unwanted.is_empty());
        drop(Value::claim(next));
    }

    #[test]
    fn values_that_are_not_installed_are_dropped() {
        let mut values = Values::default();
        let installed = staged(&mut values);
        staged(&mut values);
        values.replace(0, installed, 1);
        end(&mut values);
        assert_eq!(values.unwanted.len(), 1);
        drop(Value::claim(installed));
    }
}
