//! Values outside of records, as the operations of a transaction stage them.

#![forbid(unsafe_code)]

use super::state::{State, WRITES_VALUES};
use crate::engine::{Engine, Protocol, Retired, TableCore, Versions};
use crate::error::Abort;
use crate::gc::LeftValues;
use crate::record::value::Value;
use std::sync::PoisonError;

impl<P: Protocol> State<P> {
    /// Notes that the attempt is about to write rows of a table with values. Called before each of
    /// these operations.
    pub(crate) fn note_value_write(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
    ) -> Result<(), Abort> {
        self.admit(engine, table)?;
        self.held |= WRITES_VALUES;
        self.writes.note_values();
        self.worker.local.values.note_write(table.number);
        Ok(())
    }

    /// Keeps a value until the attempt ends, and returns the word that names it. The caller is
    /// about to store the word in a row of a table whose values are of that type.
    pub(crate) fn stage_value(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        value: Value,
    ) -> Result<u64, Abort> {
        self.held |= WRITES_VALUES;
        // Even if the operation is refused, the value is dropped when the attempt has ended.
        let word = self.worker.local.values.stage(value);
        self.note_value_write(engine, table)?;
        Ok(word)
    }

    /// Returns whether the attempt has noted all writes of rows with values.
    pub(super) fn has_noted_values(&self, engine: &Engine<P>) -> bool {
        let tables = engine.tables.read().unwrap_or_else(PoisonError::into_inner);
        let values = &self.worker.local.values;
        let has_values = |table: u16| tables[usize::from(table)].has_values;
        self.writes.items().iter().map(|item| item.at.table()).all(|table| {
            !has_values(table) || values.is_noted(table) && self.writes.needs_evaluation()
        })
    }

    /// Ends the attempt's ownership of values: what it has replaced belongs to the session's
    /// garbage, of which `left` is a part, and what it has not installed is to be dropped.
    pub(super) fn end_values(&mut self, left: &LeftValues) {
        let local = &mut self.worker.local;
        let replaced = &mut local.values.replaced;
        if !replaced.is_empty() {
            P::Versions::leave_values(&mut self.worker.versions, replaced);
            while let Some(replaced) = replaced.pop() {
                if let Err(value) = left.put(replaced.value) {
                    local.retired.push(Retired::Value(value));
                }
            }
        }
        local.values.end();
    }
}
