//! Deferred entries of unique indexes: a row may be given a key that another row still has, if that
//! row gives it up before the end.
//!
//! An operation that would enter a key for a second row leaves the entry unchanged, and makes the
//! row wait for the entry. Until the transaction deletes the entry, the index finds the row that
//! had the key. Then the first row that waits for the entry takes its place. If a row still waits
//! at the end of the closure, or at the end of the part of the transaction in which it began to
//! wait, that is the outcome [`Abort::NotUnique`](crate::Abort::NotUnique). The attempt has
//! observed that the entry was there, so the outcome is validated like any other.

#![forbid(unsafe_code)]

use crate::record::RecordAt;
use std::collections::BTreeMap;

/// The rows of a transaction that wait for entries, and a log of the changes, to undo them.
#[derive(Debug, Default)]
pub(super) struct Deferred {
    /// The primary keys of the rows that wait.
    waiting: BTreeMap<Wait, Box<[u64]>>,
    changes: Vec<Change>,
    /// The number of waits that have begun.
    begun: u64,
}

/// A wait for an entry, by the address of the entry's record, which belongs to another row, and by
/// the number of the wait: of the waits for one entry, the first has the smallest number.
type Wait = (u64, u64);

/// A change of the rows that wait.
#[derive(Debug)]
enum Change {
    Began(Wait),
    /// The wait has ended, of the row with this primary key.
    Ended(Wait, Box<[u64]>),
}

/// A moment to which the waits can be taken back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    changes: usize,
    begun: u64,
}

impl Deferred {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn clear(&mut self) {
        if self.begun > 0 {
            *self = Deferred::default();
        }
    }

    /// Returns the current moment.
    pub(super) fn now(&self) -> Moment {
        Moment { changes: self.changes.len(), begun: self.begun }
    }

    /// Makes a row wait for an entry.
    pub(super) fn push(&mut self, entry: RecordAt, primary: &[u64]) {
        let wait = (entry.block().address(), self.begun);
        self.begun += 1;
        self.waiting.insert(wait, primary.into());
        self.changes.push(Change::Began(wait));
    }

    /// Ends the wait of a row for an entry. Returns whether the row has waited for it.
    pub(super) fn give_up(&mut self, entry: RecordAt, primary: &[u64]) -> bool {
        let is_it = |row: &[u64]| *row == *primary;
        let wait = self.of(entry).find(|(_, row)| is_it(row)).map(|(wait, _)| *wait);
        wait.map(|wait| self.end(wait)).is_some()
    }

    /// Ends the wait of the first row that waits for an entry. Returns the row's primary key.
    pub(super) fn next(&mut self, entry: RecordAt) -> Option<Box<[u64]>> {
        let (wait, _) = self.of(entry).next()?;
        Some(self.end(*wait))
    }

    /// Returns the waits for an entry, with the primary keys of the rows.
    fn of(&self, entry: RecordAt) -> impl Iterator<Item = (&Wait, &Box<[u64]>)> {
        self.waiting.range((entry.block().address(), 0)..=(entry.block().address(), u64::MAX))
    }

    fn end(&mut self, wait: Wait) -> Box<[u64]> {
        let primary = self.waiting.remove(&wait).expect("the row waits");
        self.changes.push(Change::Ended(wait, primary.clone()));
        primary
    }

    /// Returns whether a row waits for an entry for which it did not wait at that moment.
    pub(super) fn has_more_than(&self, earlier: Moment) -> bool {
        let since = &self.changes[earlier.changes..];
        since.iter().any(|change| match change {
            Change::Began(wait) => self.waiting.get(wait).is_some_and(|row| {
                // The wait that the row had, if it had one, must have ended before this one began.
                !since.iter().any(|change| match change {
                    Change::Ended(ended, of) => {
                        ended.0 == wait.0 && ended.1 < earlier.begun && of == row
                    }
                    Change::Began(_) => false,
                })
            }),
            Change::Ended(..) => false,
        })
    }

    /// Takes the waits back to a moment.
    pub(super) fn undo(&mut self, earlier: Moment) {
        while self.changes.len() > earlier.changes {
            match self.changes.pop().expect("there are more") {
                Change::Began(wait) => {
                    self.waiting.remove(&wait);
                }
                Change::Ended(wait, primary) => {
                    self.waiting.insert(wait, primary);
                }
            }
        }
    }
}
