//! Staging of operations on rows whose keys the commit computes (`access/keyed.rs`).

#![forbid(unsafe_code)]

use super::state::{HAS_STEPS, State};
use crate::access::Intent;
use crate::engine::{Context, Engine, Protocol, TableCore};
use crate::error::Abort;

impl<P: Protocol> State<P> {
    /// Enters an operation on a row whose key is not known yet. Returns whether the commit can
    /// compute the key.
    ///
    /// # Errors
    /// [`Abort::ForeignTable`], [`Abort::ReadOnly`], a conflict.
    #[cold]
    pub(crate) fn admit_keyed(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
    ) -> Result<bool, Abort> {
        self.admit(engine, table)?;
        self.admit_write()?;
        let context = &mut Context::new(engine, &mut self.worker);
        Ok(!context.local.wanted.finds_keys_at_once()
            && table.indexes.is_empty()
            && P::finds_keys_late(context, &self.attempt, table.number))
    }

    /// Stages an operation on the units `units` of a row, one bit each. `key` and `step` are the
    /// numbers of the key and of the first step in the list of steps; each unit has a step, but for
    /// a delete.
    #[cold]
    pub(crate) fn stage_keyed(
        &mut self,
        table: &TableCore,
        intent: Intent,
        (key, step): (u32, u32),
        units: u64,
    ) {
        let placed = table.layout.placed_units();
        let words = placed.iter().enumerate().filter(|(number, _)| units >> number & 1 != 0);
        let words = words.map(|(_, unit)| unit.words());
        self.writes.push_keyed((table.number, intent), (key, step), units, words);
        self.held |= HAS_STEPS;
        self.note_deferred();
    }

    /// Ends the attempt in a conflict, since the commit cannot compute a key. In the next attempt
    /// the closure's operations compute the keys.
    #[cold]
    pub(crate) fn find_keys_at_once(&mut self, engine: &Engine<P>) -> Abort {
        let context = &mut Context::new(engine, &mut self.worker);
        context.local.wanted.find_keys_at_once();
        let abort = match self.writes.items().first() {
            Some(item) => context.conflict(Abort::ReadChanged, item.at),
            None => Abort::ReadChanged,
        };
        self.doom(abort)
    }

    /// Returns whether the closure may have missed rows that it has written itself: the commit
    /// computes their keys, and the closure has read since.
    pub(super) fn has_missed_own(&self) -> bool {
        self.held & HAS_STEPS != 0
            && P::read_set_size(&self.attempt) > 0
            && self.writes.keyed().next().is_some()
    }
}
