//! Deferred entries of unique indexes: a row may be given a key that another row still has, if that
//! row gives it up before the end.
//!
//! An operation that would enter a key for a second row leaves the entry as it is, and makes the
//! row wait for it. Until the transaction deletes the entry, the index finds the row that had the
//! key. Then the first row that waits for the entry takes its place. If a row still waits at the
//! end of the closure, or at the end of the part of the transaction in which it began to wait, that
//! is the outcome [`Abort::NotUnique`](crate::Abort::NotUnique). The attempt has observed that the
//! entry was there, so the outcome is validated like any other.

#![forbid(unsafe_code)]

use crate::record::RecordAt;
use crate::sync::{Mutant, mutant};

/// The rows of a transaction that wait for entries, in the order in which they began to wait.
#[derive(Debug, Default, Clone)]
pub(super) struct Deferred(Vec<Waiting>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Waiting {
    /// The record of the entry, which belongs to another row.
    entry: RecordAt,
    /// The primary key of the row that waits.
    primary: Box<[u64]>,
}

impl Deferred {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Makes a row wait for an entry.
    pub(super) fn push(&mut self, entry: RecordAt, primary: &[u64]) {
        self.0.push(Waiting { entry, primary: primary.into() });
    }

    /// Ends the wait of a row for an entry. Returns whether the row has waited for it.
    pub(super) fn give_up(&mut self, entry: RecordAt, primary: &[u64]) -> bool {
        let is_it = |it: &Waiting| {
            it.entry == entry && *it.primary == *primary && !mutant(Mutant::WaitingForEver)
        };
        let place = self.0.iter().position(is_it);
        place.map(|place| self.0.remove(place)).is_some()
    }

    /// Ends the wait of the first row that waits for an entry. Returns the row's primary key.
    pub(super) fn next(&mut self, entry: RecordAt) -> Option<Box<[u64]>> {
        let is_it = |it: &Waiting| it.entry == entry && !mutant(Mutant::WaitingForgotten);
        let place = self.0.iter().position(is_it)?;
        Some(self.0.remove(place).primary)
    }

    /// Returns whether a row waits for an entry for which it did not wait `earlier`.
    pub(super) fn has_more_than(&self, earlier: &Deferred) -> bool {
        self.0.iter().any(|it| !earlier.0.contains(it))
    }
}
