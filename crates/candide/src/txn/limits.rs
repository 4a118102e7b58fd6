//! Limits of sequences in the write set. Limits stay staged when a part of the transaction is
//! undone: the number for which a limit was staged cannot be drawn again, and may be used after the
//! part.

#![forbid(unsafe_code)]

use crate::record::CellAt;

/// The limits that the parts of a transaction have staged.
#[derive(Debug, Default)]
pub(super) struct StagedLimits {
    /// The number of parts around the present operation.
    parts: u32,
    /// The limits, with the units of their rows, since the outermost part began.
    staged: Vec<(CellAt, u64)>,
}

impl StagedLimits {
    /// Enters a part. Returns the number of limits before it.
    pub(super) fn enter_part(&mut self) -> usize {
        if self.parts == 0 {
            self.staged.clear();
        }
        self.parts += 1;
        self.staged.len()
    }

    /// Leaves a part.
    pub(super) fn leave_part(&mut self) {
        self.parts -= 1;
    }

    /// Notes a limit that was staged; within parts only.
    pub(super) fn note(&mut self, at: CellAt, limit: u64) {
        if self.parts > 0 {
            self.staged.push((at, limit));
        }
    }

    /// Returns the number of limits since the outermost part began.
    pub(super) fn len(&self) -> usize {
        self.staged.len()
    }

    /// Returns the limit with this number, and the unit of its row.
    pub(super) fn staged(&self, number: usize) -> (CellAt, u64) {
        self.staged[number]
    }

    /// Returns whether a part has staged a limit in this unit.
    pub(super) fn has(&self, at: CellAt) -> bool {
        self.staged.iter().any(|&(staged, _)| staged.address() == at.address())
    }
}
