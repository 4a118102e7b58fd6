//! Limits of sequences in the write set. They stay staged when a part of the transaction is undone:
//! the number for which a limit was staged cannot be drawn again, and may be used after the part.

#![forbid(unsafe_code)]

use super::state::State;
use crate::access::Intent;
use crate::engine::{Engine, Protocol, TableCore};
use crate::error::Abort;
use crate::index::Found;
use crate::record::CellAt;
use crate::schema::{Code, NUMBER_OPERANDS, Op};
use crate::sync::{Mutant, mutant};

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

    /// Returns whether a part has staged a limit in this unit.
    pub(super) fn has(&self, at: CellAt) -> bool {
        self.staged.iter().any(|&(staged, _)| staged.address() == at.address())
    }
}

impl<P: Protocol> State<P> {
    /// Stages a new limit in the row with this key, which exists. Observes nothing, as other
    /// updates.
    #[inline(never)]
    pub(crate) fn stage_limit(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        key: &[u64],
        limit: u64,
    ) -> Result<(), Abort> {
        let Found::Record(record) = self.find(engine, table, key)? else {
            return Err(Abort::NotFound);
        };
        let at = table.layout.first_of(record);
        self.admit_update(engine, at)?;
        self.stage_max(engine, at, limit)?;
        if self.limits.parts > 0 {
            self.limits.staged.push((at, limit));
        }
        Ok(())
    }

    /// Stages the limits again that were staged since there were `first` of them, and that have
    /// just been undone.
    pub(super) fn stage_limits_again(&mut self, engine: &Engine<P>, first: usize) {
        if mutant(Mutant::LimitUndone) {
            return;
        }
        for index in first..self.limits.staged.len() {
            let (at, limit) = self.limits.staged[index];
            if self.stage_max(engine, at, limit).is_err() {
                // The transaction has noted that it cannot commit.
                return;
            }
        }
    }

    fn stage_max(&mut self, engine: &Engine<P>, at: CellAt, limit: u64) -> Result<(), Abort> {
        let operands: [u64; NUMBER_OPERANDS] = [limit, 0, 0];
        let operand = self.writes.push_operands(operands.into_iter());
        let op = Op { code: Code::Max, operand, ..Op::set_words(0, 1) };
        self.stage(engine, at, Intent::Update, op)
    }
}
