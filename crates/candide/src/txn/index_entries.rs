//! The effects of a row's change on the entries of secondary indexes.

#![forbid(unsafe_code)]

use super::index_scratch::{Change, IndexScratch, Occupancy};
use super::{InsertTarget, State};
use crate::access::Intent;
use crate::engine::{Engine, IndexCore, Missing, Protocol, Stage, TableCore, TooLong};
use crate::error::Abort;
use crate::index::Found;
use crate::record::{CellAt, RecordAt};
use crate::schema::{Op, Pinned, Unit, Words};
use crate::sync::Ordering;
use std::cell::Cell;

/// A row's words before or after a change; `None` if the row does not exist.
type Image<'a> = Option<&'a [u64]>;

impl<P: Protocol> State<P> {
    /// Stages the entries of an inserted row. `image` are the row's words outside its key.
    #[inline(never)]
    pub(crate) fn add_entries(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        record: RecordAt,
        image: &[u64],
    ) -> Result<(), Abort> {
        let primary = record.key_words(table.layout.key_words());
        self.with_scratch(|state, scratch| {
            let IndexScratch { keys, changes, .. } = scratch;
            state.change_entries(
                engine,
                table,
                primary.as_slice(),
                (None, Some(image)),
                keys,
                changes,
            )
        })
    }

    /// Stages the removal of a row's entries, if the row exists.
    #[inline(never)]
    pub(crate) fn remove_entries(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        record: RecordAt,
    ) -> Result<(), Abort> {
        let primary = record.key_words(table.layout.key_words());
        self.with_scratch(|state, scratch| {
            if !state.read_indexed(engine, table, record, &mut scratch.before)? {
                return Ok(());
            }
            let IndexScratch { before, keys, changes, .. } = scratch;
            state.change_entries(
                engine,
                table,
                primary.as_slice(),
                (Some(before), None),
                keys,
                changes,
            )
        })
    }

    /// Stages the changes of a row's entries. `change` receives the words of the row that matter to
    /// an index (zeros if the row does not exist), and changes them as the row will be changed.
    ///
    /// # Errors
    /// [`Abort::NotFound`] if `must_exist` is set and the row does not exist. Nothing has been
    /// staged then. [`Abort::KeyTooLong`], likewise.
    #[inline(never)]
    pub(crate) fn change_row(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        (record, must_exist): (RecordAt, bool),
        change: &mut dyn FnMut(&mut Vec<u64>) -> Result<(), Abort>,
    ) -> Result<(), Abort> {
        let primary = record.key_words(table.layout.key_words());
        self.with_scratch(|state, scratch| {
            let IndexScratch { before, after, keys, changes } = scratch;
            let was_there = state.read_indexed(engine, table, record, before)?;
            if must_exist && !was_there {
                return Err(state.outcome_at(Abort::NotFound, table.layout.first_of(record)));
            }
            after.clone_from(before);
            change(after)?;
            let images = (was_there.then_some(&before[..]), Some(&after[..]));
            state.change_entries(engine, table, primary.as_slice(), images, keys, changes)
        })
    }

    fn with_scratch(
        &mut self,
        work: impl FnOnce(&mut Self, &mut IndexScratch) -> Result<(), Abort>,
    ) -> Result<(), Abort> {
        let mut scratch = std::mem::take(&mut self.index_scratch);
        let result = work(self, &mut scratch);
        self.index_scratch = scratch;
        result
    }

    /// Reads the groups of a row that matter to an index, as the transaction sees them. Returns
    /// whether the row exists.
    fn read_indexed(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        record: RecordAt,
        image: &mut Vec<u64>,
    ) -> Result<bool, Abort> {
        image.clear();
        image.resize(Unit::ROW.image_range(table.groups).1, 0);
        for unit in table.layout.units_of(table.indexes.groups()) {
            let (start, count) = unit.image_range(table.groups);
            let copy =
                |words: Words<'_>| words.copy(0, count, |word, value| image[start + word] = value);
            if !self.read(engine, table.layout.at(record, unit), copy)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Stages the changes of entries for a row whose words change from `before` to `after`.
    fn change_entries(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        primary: &[u64],
        (before, after): (Image<'_>, Image<'_>),
        keys: &mut Vec<u64>,
        changes: &mut Vec<Change>,
    ) -> Result<(), Abort> {
        keys.clear();
        changes.clear();
        // Everything that may be refused comes first: a link may reach the memory limit.
        for index in table.indexes.kept() {
            let mut key = |image: &[u64]| {
                let begin = keys.len();
                index.entry_key(primary, image, Pinned::by(self), keys)?;
                Ok((begin, keys.len()))
            };
            // A row from before the index may be too long for it, and has no entry then. The build
            // of the index ends in an error when it meets the row.
            let old = before.and_then(|image| key(image).ok());
            let new = after.map(key).transpose();
            if new.is_err()
                && before.zip(after).is_some_and(|(old, new)| index.key.repeats(old, new))
            {
                continue;
            }
            let new = new.map_err(|too_long| self.refuse_key(table, index, primary, too_long))?;
            if let (Some(old), Some(new)) = (old, new)
                && keys[old.0..old.1] == keys[new.0..new.1]
            {
                continue;
            }
            let new = match new {
                Some((begin, end)) => {
                    Some(self.place_entry(engine, table, index, &keys[begin..end])?)
                }
                None => None,
            };
            changes.push(Change { number: index.number, old, new });
        }
        for change in changes.iter() {
            let index = table.indexes.get(change.number).expect("the entry was found before");
            if let Some((begin, end)) = change.old {
                self.delete_entry(engine, table, index, &keys[begin..end], primary)?;
            }
            match change.new {
                Some((record, Occupancy::Free)) => {
                    let is_enforced = index.unique && table.indexes.is_at(index, Stage::Enforced);
                    let intent = if is_enforced { Intent::Insert } else { Intent::Put };
                    self.stage_entry(engine, index, record, primary, intent)?;
                }
                Some((record, Occupancy::Taken)) => {
                    self.deferred.push(index.entries.layout.at(record, Unit::ROW), primary);
                    self.note_deferred();
                }
                None => {}
            }
        }
        Ok(())
    }

    /// Returns the record for a new entry, and whether the entry can be written there.
    fn place_entry(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        index: &IndexCore,
        key: &[u64],
    ) -> Result<(RecordAt, Occupancy), Abort> {
        let InsertTarget { record, is_new } = self.record_for(engine, &index.entries, key)?;
        let first = index.entries.layout.at(record, Unit::ROW);
        if index.unique && table.indexes.is_at(index, Stage::Enforced) {
            // Before `right_since`, an entry may be wrong. Relaxed: `right_since` was stored before
            // the index was enforced (E18).
            self.reach(engine, table, index.right_since.load(Ordering::Relaxed))?;
            if !is_new && !self.can_insert(engine, first)? {
                return Ok((record, Occupancy::Taken));
            }
        }
        if !is_new {
            self.make_room(engine, &index.entries)?;
        }
        Ok((record, Occupancy::Free))
    }

    /// Stages the removal of the entry with this key, if it exists and belongs to the row with key
    /// `primary`. (In an index that can be read, the entry always exists and belongs to that row,
    /// unless that row waits for the entry.) If another row waits for the entry, stages its entry.
    fn delete_entry(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        index: &IndexCore,
        key: &[u64],
        primary: &[u64],
    ) -> Result<(), Abort> {
        let record = match self.find(engine, &index.entries, key)? {
            Found::Record(record) => record,
            Found::Nothing { node, version } => {
                // The absence is observed, because the builder of the index may be about to add an
                // entry for the row as it was before this change.
                return self.absent(
                    engine,
                    Missing { table: index.entries.number, key: Some(key), node, version },
                );
            }
        };
        let some_wait = !self.deferred.is_empty();
        if some_wait && self.deferred.give_up(record, primary) {
            self.note_deferred();
            return Ok(());
        }
        let at = index.entries.layout.at(record, Unit::ROW);
        if !self.can_delete(engine, at)? {
            return Ok(());
        }
        if index.unique && !table.indexes.is_at(index, Stage::Readable) {
            let mut is_own = false;
            let compare = |words: Words<'_>| {
                is_own = primary.iter().enumerate().all(|(word, &value)| words.get(word) == value);
            };
            if !self.read(engine, at, compare)? || !is_own {
                return Ok(());
            }
        }
        self.stage(engine, at, Intent::Delete, Op::DELETE)?;
        if some_wait && let Some(waiting) = self.deferred.next(record) {
            self.note_deferred();
            self.stage_entry(engine, index, record, &waiting, Intent::Put)?;
        }
        Ok(())
    }

    /// Stages the deletion of a unit, if its row exists.
    pub(crate) fn delete_unit(&mut self, engine: &Engine<P>, at: CellAt) -> Result<(), Abort> {
        if self.can_delete(engine, at)? {
            self.stage(engine, at, Intent::Delete, Op::DELETE)
        } else {
            Ok(())
        }
    }

    /// Observes the groups of a row that matter to an index.
    pub(crate) fn observe_indexed(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        record: RecordAt,
    ) -> Result<(), Abort> {
        self.read_indexed(engine, table, record, &mut Vec::new()).map(drop)
    }

    /// Returns whether the row of `record` exists and has the key of `entry` in the index.
    pub(crate) fn has_entry(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        index: &IndexCore,
        record: RecordAt,
        entry: RecordAt,
    ) -> Result<bool, Abort> {
        let mut row = Vec::new();
        if !self.read_indexed(engine, table, record, &mut row)? {
            return Ok(false);
        }
        let mut key = Vec::new();
        let primary = record.key_words(table.layout.key_words());
        let made = index.entry_key(primary.as_slice(), &row, Pinned::by(self), &mut key);
        Ok(made.is_ok() && entry.has_key(&key))
    }

    /// Stages the entry of the row of `record`, if the row exists and has no entry yet.
    ///
    /// # Errors
    /// [`Abort::NotUnique`] if another row has an entry with this key; [`Abort::KeyTooLong`].
    pub(crate) fn enter_record(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        index: &IndexCore,
        record: RecordAt,
        too_long: &Cell<Option<TooLong>>,
    ) -> Result<(), Abort> {
        let (mut row, mut key) = (Vec::new(), Vec::new());
        if !self.read_indexed(engine, table, record, &mut row)? {
            return Ok(());
        }
        let primary = record.key_words(table.layout.key_words());
        let primary = primary.as_slice();
        if let Err(refused) = index.entry_key(primary, &row, Pinned::by(self), &mut key) {
            too_long.set(Some(refused));
            return Err(Abort::KeyTooLong);
        }
        let InsertTarget { record: entry, is_new } =
            self.record_for(engine, &index.entries, &key)?;
        let at = index.entries.layout.at(entry, Unit::ROW);
        let mut is_own = !index.unique;
        let compare = |words: Words<'_>| {
            is_own |= index.unique
                && primary.iter().enumerate().all(|(word, &value)| words.get(word) == value);
        };
        match self.read(engine, at, compare)? {
            false => {
                if !is_new {
                    self.make_room(engine, &index.entries)?;
                }
                self.stage_entry(engine, index, entry, primary, Intent::Insert)
            }
            true if is_own => Ok(()),
            true => Err(Abort::NotUnique),
        }
    }

    /// Stages an entry for the row with key `primary`.
    fn stage_entry(
        &mut self,
        engine: &Engine<P>,
        index: &IndexCore,
        record: RecordAt,
        primary: &[u64],
        intent: Intent,
    ) -> Result<(), Abort> {
        let at = index.entries.layout.at(record, Unit::ROW);
        let payload = if index.unique { primary } else { &[0] };
        let operand = self.writes.push_operands(payload.iter().copied());
        self.stage(engine, at, intent, Op { operand, ..Op::set_words(0, payload.len() as u16) })
    }
}
