//! Handles on the records of keys.

#![forbid(unsafe_code)]

use super::table::Table;
use crate::engine::{Protocol, Versions};
use crate::error::Abort;
use crate::index::Found;
use crate::protocols::DefaultProtocol;
use crate::record::RecordAt;
use crate::schema::RowMeta;
use crate::schema::{
    AsKey, AsKeys, Bytes, Column, ColumnKind, DryRun, Key, KeyPacking, KeyWords, LongColumn,
    Number, NumberRange, Place, Projection, Record, Shown, Unread, Update, Updater, Words,
};
use crate::txn::{FreeColumnsOnly, KeptImage, SoleStager, Stager, State, Tx};
use std::borrow::Borrow;
use std::ops::RangeBounds;

/// Turns the outcome [`Abort::NotFound`] into `None`.
pub(super) fn if_present<T>(result: Result<T, Abort>) -> Result<Option<T>, Abort> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Abort::NotFound) => Ok(None),
        Err(abort) => Err(abort),
    }
}

/// Returns the words of keys. This function and the next one depend neither on the row type nor on
/// the protocol, so that their callees are compiled once for each type of keys.
#[inline]
fn words_of<K: Key, const N: usize>(keys: &[K; N]) -> [K::Words; N] {
    keys.map(|key| key.words())
}

/// Returns the words of keys that a table packs.
fn packed_words_of<K: Key, const N: usize>(keys: &[K; N], packing: KeyPacking) -> [KeyWords; N] {
    keys.map(|key| packing.pack(key.words().as_ref()))
}

/// A handle on a key's record. Operations on the handle need no second lookup. The handle is valid
/// until its transaction ends.
pub struct Row<'t, R: Record, P: Protocol = DefaultProtocol> {
    pub(super) table: &'t Table<R, P>,
    pub(super) tx: &'t Tx<'t, P>,
    pub(super) key: R::Key,
    pub(super) found: Found,
}

/// The table's name, and the parts of the key by name: `Row { table: "accounts", id: 7 }`.
impl<R: Record, P: Protocol> std::fmt::Debug for Row<'_, R, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words = self.key.words();
        let mut shown = f.debug_struct("Row");
        shown.field("table", &self.table.name());
        match self.table.core().named_key(words.as_ref()) {
            None => shown.field("key", &Shown::of::<R::Key>(&words)).finish(),
            Some(parts) => {
                for (name, value) in parts {
                    shown.field(name, &format_args!("{value}"));
                }
                shown.finish()
            }
        }
    }
}

/// The table's name and the key, as [`Key::show`] writes it: `accounts[7]`.
impl<R: Record, P: Protocol> std::fmt::Display for Row<'_, R, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}[{}]", self.table.name(), Shown::of::<R::Key>(&self.key.words()))
    }
}

impl<R: Record, P: Protocol> Row<'_, R, P> {
    /// Returns the key.
    pub fn key(&self) -> &R::Key {
        &self.key
    }

    /// Prefetches columns that are about to be read or updated.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn prefetch<Pr: Projection<R>>(&self, projection: Pr) {
        let Found::Record(record) = self.found else { return };
        let layout = &self.table.core().layout;
        for unit in layout.units_of(projection.groups()) {
            let at = layout.at(record, unit);
            // Three or more columns may share a cache line. Versions, however, lie outside the
            // record.
            if Pr::COLUMNS > 2 && P::Versions::WORDS == 0 && at.prefetch_small() {
                continue;
            }
            at.prefetch_cell();
            projection.runs(unit, &mut |first, count| {
                P::prefetch(&self.tx.engine.clock, at, first, count)
            });
        }
    }

    /// Returns the record of the key. If the lookup found no record, this transaction may have
    /// inserted one since. `None` if there is still no record; the transaction has then observed
    /// the absence of the key.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn record_now(&self, state: &mut State<P>) -> Result<Option<RecordAt>, Abort> {
        match self.found {
            Found::Record(record) => Ok(Some(record)),
            Found::Nothing { .. } => self.look_again(state),
        }
    }

    #[cold]
    #[inline(never)]
    fn look_again(&self, state: &mut State<P>) -> Result<Option<RecordAt>, Abort> {
        self.table
            .in_words(&self.key, |key| state.find_again(self.tx.engine, self.table.core(), key))
    }

    /// Notes that there is no row, and returns the outcome.
    #[cold]
    #[inline(never)]
    fn missed(&self, state: &mut State<P>) -> Abort {
        let core = self.table.core();
        self.table.in_words(&self.key, |key| state.outcome_of(Abort::NotFound, core, key))
    }

    /// As [`Row::missed`], between two operations.
    #[cold]
    pub(super) fn not_found(&self) -> Abort {
        self.missed(&mut self.tx.state.borrow_mut())
    }

    /// Notes that a text does not fit a column, and returns the outcome.
    #[cold]
    #[inline(never)]
    fn refuse_text(&self, column: Place) -> Abort {
        let (core, state) = (self.table.core(), &mut *self.tx.state.borrow_mut());
        self.table.in_words(&self.key, |key| {
            state.outcome_of_column(Abort::TextTooLong, core, (key, column))
        })
    }

    /// Reads columns; `None` if there is no row.
    ///
    /// # Errors
    /// Those of [every operation](Table#errors-of-every-operation).
    #[inline]
    pub fn get<Pr: Projection<R>>(&self, projection: Pr) -> Result<Option<Pr::Value>, Abort> {
        let state = &mut *self.tx.state.borrow_mut();
        state.enter(self.tx.engine)?;
        match self.found {
            Found::Record(record) => {
                self.table.get_record(self.tx, state, (&self.key, record), projection)
            }
            Found::Nothing { .. } => self.get_again(state, projection),
        }
    }

    /// Does the work of [`Row::get`] if the handle's lookup has found no record.
    #[cold]
    #[inline(never)]
    fn get_again<Pr: Projection<R>>(
        &self,
        state: &mut State<P>,
        projection: Pr,
    ) -> Result<Option<Pr::Value>, Abort> {
        match self.look_again(state)? {
            Some(record) => self.table.get_slowly(self.tx, state, (&self.key, record), projection),
            None => Ok(None),
        }
    }

    /// Reads columns.
    ///
    /// # Errors
    /// [`Abort::NotFound`] if there is no row.
    #[inline]
    pub fn read<Pr: Projection<R>>(&self, projection: Pr) -> Result<Pr::Value, Abort> {
        self.get(projection)?.ok_or_else(|| self.not_found())
    }

    /// Appends the bytes of a column to `to`. The bytes are copied once; [`Row::read`] copies them
    /// several times, since it returns them by value. A closure that runs again appends again, so
    /// it should begin with an empty buffer.
    ///
    /// ```
    /// # use candide::{Bytes, Database, Record};
    /// # #[derive(Record, Debug, Clone, Copy)]
    /// # struct Part { #[key] number: u64, bytes: Bytes<1024> }
    /// let db = Database::new();
    /// let parts = db.table::<Part>("parts")?;
    /// let part = |number| Part { number, bytes: Bytes::new([number as u8; 1024]) };
    /// db.run(|tx| parts.insert_many(tx, (0..3).map(part)))?;
    /// let mut content = Vec::new();
    /// db.run(|tx| {
    ///     content.clear();
    ///     let found = parts.find_many(tx, &[0, 1, 2])?;
    ///     found.iter().try_for_each(|part| part.append_bytes(Part::BYTES, &mut content))
    /// })?;
    /// assert_eq!(content[2047..2049], [1, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Abort::NotFound`] if there is no row, and those of
    /// [every operation](Table#errors-of-every-operation). `to` then stays the same.
    pub fn append_bytes<const N: usize, A: ColumnKind>(
        &self,
        column: Column<R, Bytes<N>, A>,
        to: &mut Vec<u8>,
    ) -> Result<(), Abort> {
        let state = &mut *self.tx.state.borrow_mut();
        state.enter(self.tx.engine)?;
        let Some(record) = self.record_now(state)? else { return Err(self.missed(state)) };
        let unit = self.table.core().layout.only_unit_of(column.column_groups());
        let unit = unit.expect("a column is in one group");
        let place = (column.word_in_row() - unit.start(), N);
        let is_there = state.append_bytes(self.tx.engine, unit.of(record), place, to)?;
        if is_there { Ok(()) } else { Err(self.missed(state)) }
    }

    /// As [`Table::is_within`].
    ///
    /// # Errors
    /// As [`Table::is_within`].
    pub fn is_within<T: Number, A: ColumnKind>(
        &self,
        column: Column<R, T, A>,
        range: impl RangeBounds<T>,
    ) -> Result<bool, Abort> {
        let state = &mut *self.tx.state.borrow_mut();
        state.enter(self.tx.engine)?;
        let Some(record) = self.record_now(state)? else { return Err(self.missed(state)) };
        let (layout, place) = (&self.table.core().layout, column.place());
        let unit = layout.unit_of(place.group);
        let word = place.word + unit.offset_of(R::GROUPS, place.group) as u16;
        let range = NumberRange::new((word, place.shift, place.mask), &range);
        let is_within = state.is_within(self.tx.engine, layout.at(record, unit), range)?;
        is_within.ok_or_else(|| self.missed(state))
    }

    /// As [`Table::get_for_update`].
    ///
    /// # Errors
    /// As [`Table::get_for_update`].
    pub fn get_for_update<Pr: Projection<R>>(
        &self,
        projection: Pr,
    ) -> Result<Option<Pr::Value>, Abort> {
        let state = &mut *self.tx.state.borrow_mut();
        // These checks come before the lookup, since a refusal must not reveal whether the row
        // exists.
        state.enter(self.tx.engine)?;
        state.admit_write()?;
        let Some(record) = self.record_now(state)? else { return Ok(None) };
        let core = self.table.core();
        let mut words = Pr::EMPTY;
        let units = core.layout.units_of(projection.groups());
        let copy = &mut |unit, from: Words<'_>| projection.copy(unit, from, &mut words);
        let is_there = state.read_units_for_update(self.tx.engine, core, (record, units), copy)?;
        self.table.value_if(is_there, state, &self.key, &projection, &words)
    }

    /// As [`Table::read_for_update`].
    ///
    /// # Errors
    /// As [`Table::read_for_update`].
    pub fn read_for_update<Pr: Projection<R>>(&self, projection: Pr) -> Result<Pr::Value, Abort> {
        self.get_for_update(projection)?.ok_or_else(|| self.not_found())
    }

    /// As [`Table::update`].
    ///
    /// # Errors
    /// As [`Table::update`].
    #[inline]
    pub fn update(&self, update: impl Update<R>) -> Result<(), Abort> {
        if let Some(column) = update.misfit() {
            return Err(self.refuse_text(column));
        }
        let core = self.table.core();
        if !core.indexes.writes_are_plain() && core.may_refuse_changes() {
            update.stage(&mut FreeColumnsOnly(core))?;
        }
        self.staging(|stager| stage_update(&update, stager))
    }

    /// As [`Table::update_if_present`].
    ///
    /// # Errors
    /// As [`Table::update_if_present`].
    #[inline]
    pub fn update_if_present(&self, update: impl Update<R>) -> Result<bool, Abort> {
        if !self.may_be_there()? {
            return Ok(false);
        }
        if_present(self.update(update)).map(|done| done.is_some())
    }

    /// As [`Table::update_with`].
    ///
    /// # Errors
    /// As [`Table::update_with`].
    ///
    /// # Panics
    /// As [`Table::update_with`].
    pub fn update_with(&self, updater: impl Updater<R>) -> Result<(), Abort> {
        self.staging(|stager| stager.stage_user(updater))
    }

    /// As [`Table::modify`].
    ///
    /// # Errors
    /// As [`Table::modify`].
    ///
    /// # Panics
    /// As [`Table::modify`].
    pub fn modify<Pr: Projection<R>, T>(
        &self,
        projection: Pr,
        change: impl FnOnce(&mut Pr::Value) -> T,
    ) -> Result<T, Abort> {
        let mut seen = Vec::new();
        let mut value = match Pr::LONG {
            true => self.read_long(projection, &mut seen)?,
            false => self.read(projection)?,
        };
        let result = change(&mut value);
        // If the value cannot be stored, that is noted when its bytes are kept.
        _ = projection.assign(&self.key, &value, &mut DryRun);
        let core = self.table.core();
        let mut indexed = false;
        if !core.indexes.writes_are_plain() {
            core.restrictions.check_change(projection.groups())?;
            projection.places(&mut |place| indexed |= core.indexes.covers(place));
        }
        self.staging(|stager| {
            if Pr::LONG {
                stager.keep_all(&seen, |keeping| projection.assign(&self.key, &value, keeping))?;
            }
            if indexed {
                let kept = if Pr::LONG { stager.kept_words() } else { Vec::new() };
                let assign = &mut |words: &mut Vec<u64>| {
                    projection.assign(&self.key, &value, &mut KeptImage::<R>::new(words, &kept))
                };
                let Stager { state, engine, record, .. } = stager;
                // The closure `change` may have deleted the row.
                state.change_row(engine, core, (*record, true), assign)?;
            }
            projection.assign(&self.key, &value, stager)
        })?;
        Ok(result)
    }

    /// Reads columns, and adds those of any length to `seen`, each with its word, so that a value
    /// which a change leaves as it was is not staged.
    fn read_long<Pr: Projection<R>>(
        &self,
        projection: Pr,
        seen: &mut Vec<(LongColumn, u64)>,
    ) -> Result<Pr::Value, Abort> {
        let words = self.read(Unread(projection))?;
        projection.long_words(&words, &mut |column, word| seen.push((column, word)));
        let state = &mut *self.tx.state.borrow_mut();
        state.value_of::<R, Pr>(self.table.core(), &self.key, &projection, &words)
    }

    /// As [`Table::modify_if_present`].
    ///
    /// # Errors
    /// As [`Table::modify_if_present`].
    ///
    /// # Panics
    /// As [`Table::modify`].
    pub fn modify_if_present<Pr: Projection<R>, T>(
        &self,
        projection: Pr,
        change: impl FnOnce(&mut Pr::Value) -> T,
    ) -> Result<Option<T>, Abort> {
        if_present(self.modify(projection, change))
    }

    /// Deletes the row.
    ///
    /// # Errors
    /// [`Abort::NotFound`] if there is no row.
    pub fn delete(&self) -> Result<(), Abort> {
        self.staging(|Stager { state, engine, table, record, .. }| {
            state.delete_row(engine, table, *record)
        })
    }

    /// As [`Table::delete_if_present`].
    ///
    /// # Errors
    /// Those of [every operation](Table#errors-of-every-operation).
    pub fn delete_if_present(&self) -> Result<bool, Abort> {
        if !self.may_be_there()? {
            return Ok(false);
        }
        if_present(self.delete()).map(|done| done.is_some())
    }

    /// Observes the row, if the next operation would answer blindly whether it exists. Returns
    /// false if the row has been found absent.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn may_be_there(&self) -> Result<bool, Abort> {
        let Found::Record(record) = self.found else { return Ok(true) };
        let state = &mut *self.tx.state.borrow_mut();
        if !P::ASSUMES_BLINDLY || state.admit_write().is_err() {
            return Ok(true);
        }
        let core = self.table.core();
        state.learn_existence(self.tx.engine, core.layout.first_of(record), true)
    }

    /// Calls `stage`, which stages changes of the key's record. If the key has no record, observes
    /// that and returns [`Abort::NotFound`].
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn staging(
        &self,
        stage: impl FnOnce(&mut Stager<'_, R, P>) -> Result<(), Abort>,
    ) -> Result<(), Abort> {
        let state = &mut *self.tx.state.borrow_mut();
        // This check comes before the lookup, since a refusal must not reveal whether the row
        // exists.
        state.admit_write()?;
        if !R::LONG.is_empty() {
            // The unit that is written may name bytes, which its image repeats.
            state.note_value_write(self.tx.engine, self.table.core())?;
        }
        match self.record_now(state)? {
            Some(record) => {
                state.whole_or_failed(|state| stage(&mut self.table.stager(self.tx, state, record)))
            }
            None => Err(self.missed(state)),
        }
    }
}

/// Stages an update, whose bytes are kept before anything is staged.
#[cfg_attr(not(debug_assertions), inline(always))]
fn stage_update<R: Record, P: Protocol, U: Update<R>>(
    update: &U,
    stager: &mut Stager<'_, R, P>,
) -> Result<(), Abort> {
    if U::SOLE_LONG {
        return update.stage(&mut SoleStager(stager));
    }
    if U::LONG {
        stager.keep_all(&[], |keeping| update.stage(keeping))?;
    }
    update.stage(stager)
}

impl<R: Record, P: Protocol> Table<R, P> {
    /// Returns a handle on a key's record: operations on the handle need no second lookup.
    ///
    /// The lookup observes nothing. Operations on the handle find out whether the row exists.
    ///
    /// # Errors
    /// [`Abort::NotFound`] if no row can have this key: a text that is longer than the key's type
    /// allows ([`AsKey`]).
    #[inline]
    #[doc(alias = "entry")]
    pub fn find<'t>(
        &'t self,
        tx: &'t Tx<'_, P>,
        key: impl AsKey<R::Key>,
    ) -> Result<Row<'t, R, P>, Abort> {
        let Some(key) = key.into_key() else { return Err(self.find_impossible(tx)) };
        self.find_key(tx, key.borrow())
    }

    /// Does the work of [`Table::find`] for a key that a row can have.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn find_key<'t>(
        &'t self,
        tx: &'t Tx<'_, P>,
        key: &R::Key,
    ) -> Result<Row<'t, R, P>, Abort> {
        let found = self.find_found(tx, &mut tx.state.borrow_mut(), key)?;
        Ok(Row { table: self, tx, key: *key, found })
    }

    /// Returns handles on the records of many keys. The cache misses of the lookups overlap. In a
    /// hash index, all buckets are prefetched first, and then all records. In an ordered index, the
    /// lookups take turns, and each goes down one node per turn.
    ///
    /// To overlap the reads as well, call [`Row::prefetch`] on every handle before reading from the
    /// first.
    ///
    /// # Errors
    /// [`Abort::NotFound`] if no row can have one of these keys ([`AsKeys`]).
    #[inline]
    pub fn find_many<'t, const N: usize>(
        &'t self,
        tx: &'t Tx<'_, P>,
        keys: impl AsKeys<R::Key, N>,
    ) -> Result<[Row<'t, R, P>; N], Abort> {
        let Some(keys) = keys.into_keys() else { return Err(self.find_impossible(tx)) };
        let keys: &[R::Key; N] = keys.borrow();
        let state = &mut *tx.state.borrow_mut();
        state.admit(tx.engine, self.core())?;
        let (index, layout) = (&self.core().index, &self.core().layout);
        let width = layout.key_words();
        let mut found = match layout.packing::<R::Key>() {
            None => index.find_many(&words_of(keys), width),
            Some(packing) => index.find_many(&packed_words_of(keys, packing), width),
        };
        if state.needs_deleted_index() {
            for (key, found) in keys.iter().zip(&mut found) {
                *found = self.in_words(key, |words| state.read_view(self.core(), words, *found));
            }
        }
        Ok(std::array::from_fn(|number| Row {
            table: self,
            tx,
            key: keys[number],
            found: found[number],
        }))
    }

    /// Does the work of [`Table::find`] for an operation that writes or locks.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn find_to_write<'t>(
        &'t self,
        tx: &'t Tx<'_, P>,
        key: impl AsKey<R::Key>,
    ) -> Result<Row<'t, R, P>, Abort> {
        let Some(key) = key.into_key() else { return Err(self.find_impossible_to_write(tx)) };
        self.find_key(tx, key.borrow())
    }

    /// Returns the error of [`Table::find_to_write`] for a key that no row can have.
    #[cold]
    pub(super) fn find_impossible_to_write(&self, tx: &Tx<'_, P>) -> Abort {
        let refusal = tx.state.borrow().admit_write().err();
        refusal.unwrap_or_else(|| self.find_impossible(tx))
    }

    /// Returns a handle on a record that has been found.
    pub(crate) fn row_of<'t>(
        &'t self,
        tx: &'t Tx<'_, P>,
        key: R::Key,
        record: RecordAt,
    ) -> Row<'t, R, P> {
        Row { table: self, tx, key, found: Found::Record(record) }
    }
}
