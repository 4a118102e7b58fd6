//! Failures of operations, with their places.

#![forbid(unsafe_code)]

use super::outcome_note::OutcomeNote;
use super::write_set::WriteSet;
use crate::error::Abort;
use crate::record::CellAt;

impl WriteSet {
    /// Returns the failure of an operation on a unit, with its place.
    #[cold]
    pub(super) fn failure_of(&self, at: CellAt, number: u32, cause: Abort) -> OutcomeNote {
        let op = self.operations.get(number);
        let is_number = !op.is_user() && !op.is_delete();
        let number = is_number.then(|| (at.unit() as u8, op.word, op.shift));
        OutcomeNote { number, ..OutcomeNote::at(cause, at) }
    }

    /// Notes the failure of an operation on a unit.
    #[cold]
    pub(super) fn note_failed(&mut self, at: CellAt, number: u32, cause: Abort) {
        let failure = self.failure_of(at, number, cause);
        self.outcomes.note(failure);
    }
}
