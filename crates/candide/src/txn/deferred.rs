//! Deferred entries of unique indexes: a row may be given a key that another row still has, if that
//! row gives it up before the end.
//!
//! An operation that would enter a key for a second row leaves the entry as it is, and keeps a
//! [`Deferred`] entry in the transaction. Until the transaction deletes the entry, the index finds
//! the row that had the key. Then the first row that waits for the entry takes its place. What is
//! still deferred at the end of the closure, or at the end of the part of the transaction that has
//! deferred it, is the outcome [`Abort::NotUnique`]. That the entry was there, the attempt has
//! observed, so the outcome is validated like any other.

#![forbid(unsafe_code)]

use super::state::{AT_COMMIT, State};
use crate::engine::Protocol;
use crate::error::Abort;
use crate::record::RecordAt;
use crate::sync::{Mutant, mutant};

/// An entry that waits for another row to give up its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Deferred {
    /// The record of the entry, which belongs to the other row.
    entry: RecordAt,
    /// The primary key of the row that waits.
    primary: Box<[u64]>,
}

impl<P: Protocol> State<P> {
    /// Makes a row wait for an entry of a unique index.
    pub(super) fn defer(&mut self, entry: RecordAt, primary: &[u64]) {
        self.deferred.push(Deferred { entry, primary: primary.into() });
        self.note_deferred();
    }

    /// Ends the wait of a row for an entry. Returns whether the row has waited for it.
    pub(super) fn give_up(&mut self, entry: RecordAt, primary: &[u64]) -> bool {
        let is_it = |it: &Deferred| {
            it.entry == entry && *it.primary == *primary && !mutant(Mutant::WaitingForEver)
        };
        let place = self.deferred.iter().position(is_it);
        place.map(|place| self.remove_deferred(place)).is_some()
    }

    /// Returns the primary key of the first row that waits for an entry, and ends its wait.
    pub(super) fn next_waiting(&mut self, entry: RecordAt) -> Option<Box<[u64]>> {
        let is_it = |it: &Deferred| it.entry == entry && !mutant(Mutant::WaitingForgotten);
        let place = self.deferred.iter().position(is_it)?;
        Some(self.remove_deferred(place).primary)
    }

    fn remove_deferred(&mut self, place: usize) -> Deferred {
        let removed = self.deferred.remove(place);
        self.note_deferred();
        removed
    }

    /// Makes sure that a commit ends in an outcome exactly if an operation has failed or there are
    /// deferred entries.
    pub(super) fn note_deferred(&mut self) {
        if self.failed.is_none() || self.failed_at == AT_COMMIT {
            self.failed = (!self.deferred.is_empty()).then_some(Abort::NotUnique);
            self.failed_at = AT_COMMIT;
        }
    }
}
