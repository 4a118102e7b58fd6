//! The owners of the values that an attempt stages and replaces;
//! [`record::value`](crate::record::value) has the values themselves.
//!
//! A value that is staged belongs to the attempt until the attempt has ended: not only until it is
//! staged over, or its part of the transaction undone, since the closure may still hold a
//! reference. A commit *replaces* the value that a unit names when it stores another word or
//! deletes the row. It notes what it replaces when nothing can fail any more, and before it stores
//! the first word; the words of an absent row are not looked at, since its deletion has replaced
//! what they name. When the attempt ends, its protocol takes over what was replaced
//! ([`Versions::leave_values`](super::Versions::leave_values)), and what was not installed is to be
//! dropped.
//!
//! Values that are to be dropped are only collected here. User code runs when they are dropped, so
//! a session drops them at the end of `run`, when it holds nothing.

#![forbid(unsafe_code)]

use super::shared_queue::VALUES_AT_ONCE;
use crate::access::{WriteItem, WriteSet};
use crate::record::value::{Value, note_installed};
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
    /// The numbers of the tables with values that the attempt writes.
    tables: Vec<u16>,
    /// The number of the attempt's writes of units with values.
    writes: usize,
    /// The values that the attempt's commit has replaced.
    pub(crate) replaced: Vec<Replaced>,
    /// Values that the session is to drop.
    pub(crate) unwanted: Vec<Value>,
}

impl Values {
    /// Returns whether the attempt writes units with values.
    #[inline]
    pub(crate) fn is_used(&self) -> bool {
        !self.tables.is_empty()
    }

    /// Keeps a value until the attempt ends, and returns the word that names it.
    pub(crate) fn stage(&mut self, value: Value) -> u64 {
        let word = value.word();
        self.staged.push(value);
        word
    }

    /// Notes that the attempt is about to write a unit of a table with values, and reserves room
    /// for what the commit replaces (C4).
    pub(crate) fn note_write(&mut self, table: u16) {
        if !self.is_noted(table) {
            self.tables.push(table);
        }
        self.writes += 1;
        self.replaced.reserve(self.writes);
    }

    /// Returns whether the attempt has noted that it writes units of this table.
    pub(crate) fn is_noted(&self, table: u16) -> bool {
        // Usually there is one.
        self.tables.first() == Some(&table) || self.tables.contains(&table)
    }

    /// Notes that the commit replaces the value named by `old` by the one named by `new`; zero
    /// stands for the value of an absent row.
    pub(crate) fn replace(&mut self, old: u64, new: u64, timestamp: u64) {
        if old == new {
            return;
        }
        if new != 0 {
            note_installed(new, timestamp);
        }
        if old != 0 {
            debug_assert!(self.replaced.len() < self.replaced.capacity(), "C4: it has room");
            self.replaced.push(Replaced { value: Value::claim(old), until: timestamp });
        }
    }

    /// Notes what an evaluated commit at `timestamp` replaces. `old` returns the word of an item's
    /// unit that the commit is about to replace; zero if its row is absent.
    #[cold]
    #[inline(never)]
    pub(crate) fn replace_all(
        &mut self,
        writes: &WriteSet,
        timestamp: u64,
        old: &dyn Fn(&WriteItem) -> u64,
    ) {
        for (index, item) in writes.items().iter().enumerate() {
            if self.is_noted(item.at.table()) {
                let new = if item.present { writes.last_word(index) } else { 0 };
                self.replace(old(item), new, timestamp);
            }
        }
    }

    /// Ends the attempt: what it has staged and not installed is to be dropped.
    pub(crate) fn end(&mut self) {
        debug_assert!(self.replaced.is_empty(), "the protocol has taken over what was replaced");
        while let Some(value) = self.staged.pop() {
            match value.is_installed() {
                // The unit that names it owns it (BV1).
                true => std::mem::forget(value),
                false => self.unwanted.push(value),
            }
        }
        self.tables.clear();
        self.writes = 0;
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

/// Returns the word of a unit with values, of which the row is present.
pub(crate) fn word_in(payload: &[AtomicU64]) -> u64 {
    // Acquire, as all loads of a row's words (E3): the value was written before.
    payload[0].load(Ordering::Acquire)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn staged(values: &mut Values) -> u64 {
        values.note_write(7);
        values.stage(Value::new("a value".to_owned()))
    }

    #[test]
    fn a_value_that_a_commit_keeps_is_not_replaced() {
        let mut values = Values::default();
        let word = staged(&mut values);
        values.replace(0, word, 3);
        values.note_write(7);
        values.replace(word, word, 4);
        let replaced = values.replaced.len();
        // Owned by the unit, as the install says.
        std::mem::take(&mut values.replaced).into_iter().for_each(std::mem::forget);
        values.end();
        assert_eq!((replaced, values.unwanted.len()), (0, 0));
        drop(Value::claim(word));
    }

    #[test]
    fn a_replaced_value_has_the_times_of_both_commits() {
        let mut values = Values::default();
        let word = staged(&mut values);
        values.replace(0, word, 3);
        values.end();
        let next = staged(&mut values);
        values.replace(word, next, 5);
        let replaced = values.replaced.pop().unwrap();
        assert_eq!((replaced.value.word(), replaced.value.born(), replaced.until), (word, 3, 5));
        values.end();
        assert!(!values.is_used() && values.unwanted.is_empty());
        drop(Value::claim(next));
    }

    #[test]
    fn values_that_are_not_installed_are_dropped() {
        let mut values = Values::default();
        let installed = staged(&mut values);
        staged(&mut values);
        values.replace(0, installed, 1);
        values.end();
        assert_eq!(values.unwanted.len(), 1);
        drop(Value::claim(installed));
    }
}
