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

use crate::record::{CellAt, RecordAt};
use std::collections::BTreeMap;

/// The rows of a transaction that wait for entries, and a log of the changes, to undo them.
#[derive(Debug, Default)]
pub(super) struct Deferred {
    waiting: BTreeMap<Wait, Waiting>,
    changes: Vec<Change>,
    /// The number of waits that have begun.
    begun: u64,
}

/// A wait for an entry, by the address of the entry's record, which belongs to another row, and by
/// the number of the wait: of the waits for one entry, the first has the smallest number.
type Wait = (u64, u64);

/// A row that waits.
#[derive(Debug, Clone)]
struct Waiting {
    /// The entry.
    at: CellAt,
    /// The primary key of the row.
    primary: Box<[u64]>,
}

/// A change of the rows that wait.
#[derive(Debug)]
enum Change {
    Began(Wait),
    Ended(Wait, Waiting),
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

    /// Makes a row wait for the entry at `at`.
    pub(super) fn push(&mut self, at: CellAt, primary: &[u64]) {
        let wait = (at.record().block().address(), self.begun);
        self.begun += 1;
        self.waiting.insert(wait, Waiting { at, primary: primary.into() });
        self.changes.push(Change::Began(wait));
    }

    /// Ends the wait of a row for an entry. Returns whether the row has waited for it.
    pub(super) fn give_up(&mut self, entry: RecordAt, primary: &[u64]) -> bool {
        let is_it = |row: &[u64]| *row == *primary;
        let wait = self.of(entry).find(|(_, row)| is_it(&row.primary)).map(|(wait, _)| *wait);
        wait.map(|wait| self.end(wait)).is_some()
    }

    /// Ends the wait of the first row that waits for an entry. Returns the row's primary key.
    pub(super) fn next(&mut self, entry: RecordAt) -> Option<Box<[u64]>> {
        let (wait, _) = self.of(entry).next()?;
        Some(self.end(*wait).primary)
    }

    /// Returns the waits for an entry, with the rows.
    fn of(&self, entry: RecordAt) -> impl Iterator<Item = (&Wait, &Waiting)> {
        self.waiting.range((entry.block().address(), 0)..=(entry.block().address(), u64::MAX))
    }

    fn end(&mut self, wait: Wait) -> Waiting {
        let row = self.waiting.remove(&wait).expect("the row waits");
        self.changes.push(Change::Ended(wait, row.clone()));
        row
    }

    /// Returns the entry for which a row has waited first, of those that wait.
    pub(super) fn first(&self) -> Option<CellAt> {
        let first = self.waiting.iter().min_by_key(|(wait, _)| wait.1);
        first.map(|(_, row)| row.at)
    }

    /// Returns the first entry for which a row waits that did not wait for it at that moment.
    pub(super) fn first_since(&self, earlier: Moment) -> Option<CellAt> {
        let since = &self.changes[earlier.changes..];
        let is_new = |wait: &Wait, row: &Waiting| {
            // The wait that the row had, if it had one, must have ended before this one began.
            !since.iter().any(|change| match change {
                Change::Ended(ended, of) => {
                    ended.0 == wait.0 && ended.1 < earlier.begun && of.primary == row.primary
                }
                Change::Began(_) => false,
            })
        };
        since.iter().find_map(|change| match change {
            Change::Began(wait) => {
                self.waiting.get(wait).filter(|row| is_new(wait, row)).map(|row| row.at)
            }
            Change::Ended(..) => None,
        })
    }

    /// Takes the waits back to a moment.
    pub(super) fn undo(&mut self, earlier: Moment) {
        while self.changes.len() > earlier.changes {
            match self.changes.pop().expect("there are more") {
                Change::Began(wait) => {
                    self.waiting.remove(&wait);
                }
                Change::Ended(wait, row) => {
                    self.waiting.insert(wait, row);
                }
            }
        }
    }
}
