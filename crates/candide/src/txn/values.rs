//! Values outside of records, as the operations of a transaction stage them.
//!
//! An operation that stores words of a row which may name values, or that deletes such a row, first
//! calls [`State::note_value_write`].

#![forbid(unsafe_code)]

use super::state::{State, WRITES_VALUES};
use crate::engine::{Engine, Protocol, Retired, TableCore, Versions};
use crate::error::Abort;
use crate::gc::LeftValues;
use crate::memory::{LongMemory, OutOfMemory};
use crate::record::value::Value;
use crate::record::{Named, long};
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
        self.note_admitted_value_write(table);
        Ok(())
    }

    /// Notes what [`State::note_value_write`] notes, for an operation that has been admitted.
    pub(super) fn note_admitted_value_write(&mut self, table: &TableCore) {
        self.held |= WRITES_VALUES;
        self.writes.note_values();
        self.worker.local.values.note_write(table);
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

    /// Keeps bytes outside of records until the attempt ends, unless they have room in a word, and
    /// returns the word, which the caller is about to store in a row of this table. The caller has
    /// called [`State::note_value_write`]. There are at most
    /// [`LONG_BYTES_MAX`](long::LONG_BYTES_MAX) bytes.
    ///
    /// # Errors
    /// [`Abort::MemoryLimit`].
    pub(crate) fn stage_long(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        bytes: &[u8],
    ) -> Result<u64, Abort> {
        debug_assert!(self.worker.local.values.is_noted(table.number));
        if let Some(word) = long::short_word(bytes) {
            return Ok(word);
        }
        let memory = engine.long_memory().expect("made with the table");
        let local = &mut self.worker.local;
        let word = long::allocate(bytes, memory, &mut local.caches);
        let word = word.map_err(|OutOfMemory| Abort::MemoryLimit)?;
        Ok(local.values.stage(Value::claim(word)))
    }

    /// Returns whether the attempt has noted all writes of rows with values.
    pub(super) fn has_noted_values(&self, engine: &Engine<P>) -> bool {
        let tables = engine.tables.read().unwrap_or_else(PoisonError::into_inner);
        let values = &self.worker.local.values;
        self.writes.items().iter().all(|item| {
            let changes = |named: &Named| {
                let is_of = usize::from(named.unit) == item.at.unit();
                is_of && (!item.present || item.changed().contains(&named.word.into()))
            };
            let table = item.at.table();
            !tables[usize::from(table)].layout.named().iter().any(changes)
                || values.is_noted(table) && self.writes.needs_evaluation()
        })
    }

    /// Ends the attempt's ownership of values: what it has replaced belongs to the session's
    /// garbage, of which `left` is a part, and what it has not installed is freed or to be dropped.
    /// `long` is the database's memory for bytes outside of records.
    pub(super) fn end_values(&mut self, left: &LeftValues, long: Option<&LongMemory>) {
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
        local.values.end(long, &mut local.caches);
    }
}
