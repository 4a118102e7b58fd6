//! Updates that raise limits of sequences.

#![forbid(unsafe_code)]

use super::state::State;
use crate::access::Intent;
use crate::engine::{Engine, Protocol, TableCore};
use crate::error::Abort;
use crate::index::Found;
use crate::record::CellAt;
use crate::schema::{Code, NUMBER_OPERANDS, Op};

impl<P: Protocol> State<P> {
    /// Stages a new limit in the row with this key, which exists. Like other updates, observes
    /// nothing.
    #[inline(never)]
    pub(crate) fn stage_limit(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        key: &[u64],
        limit: u64,
    ) -> Result<(), Abort> {
        let Found::Record(record) = self.find(engine, table, key)? else {
            return Err(self.outcome_of(Abort::NotFound, table, key));
        };
        let at = table.layout.first_of(record);
        self.admit_update(engine, at)?;
        self.stage_max(engine, at, limit)?;
        self.limits.note(at, limit);
        Ok(())
    }

    /// Stages the limits again that were staged since there were `first` of them, and that have
    /// just been undone.
    pub(super) fn stage_limits_again(&mut self, engine: &Engine<P>, first: usize) {
        for number in first..self.limits.len() {
            let (at, limit) = self.limits.staged(number);
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
