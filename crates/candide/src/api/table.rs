//! Tables and rows: the layer with the row type.

#![forbid(unsafe_code)]

use super::quiescent::for_each_row;
use super::session::Session;
use crate::engine::{Missing, Protocol, TableCore, VersionTable};
use crate::error::{Abort, Error};
use crate::handle::Handle;
use crate::index::{Found, Place};
use crate::protocols::DefaultProtocol;
use crate::record::RecordAt;
use crate::schema::{
    AsKey, Buffer, Key, NoLong, Pinned, Projection, Record, RowMeta, RowReader, Units, Words,
    store_in, undecoded_in,
};
use crate::txn::{InsertTarget, Stager, State, Tx};
use std::borrow::Borrow;
use std::marker::PhantomData;
use std::sync::Arc;

/// A table of rows of type `R`, in a database of protocol `P`.
///
/// A `Table` is a handle: its clones refer to the same table, and threads may share them. Every
/// operation takes `tx`, the transaction to which the operation belongs.
///
/// # Errors of every operation
/// Every operation may return the following errors. The section *Errors* of an operation lists only
/// further errors.
///
/// * conflicts, which `?` passes on to [`run`](super::session::Session::run);
/// * [`Abort::ForeignTable`] if the transaction and the table belong to different databases;
/// * [`Abort::Undecodable`], if the operation reads a column whose [codec](crate::Codec) refuses
///   what is stored;
/// * [`Abort::Guard`] or [`Abort::Overflow`], if the operation reads columns that the transaction
///   has updated and the update fails. The transaction then ends in this error, and every later
///   operation may return it too;
/// * [`Abort::KeyTooLong`], if the operation inserts or changes a row, and a value of any length is
///   longer than an index keeps of its column; nothing has changed then;
/// * from operations that write or lock: [`Abort::ReadOnly`] if the transaction [only
///   reads](crate::txn::RunOptions::read_only), and [`Abort::MemoryLimit`] if the
///   [limit](super::database::Builder::memory_limit) leaves no room for a record, an index entry,
///   or a version.
///
/// # Unique keys
/// Whether two rows have the same key in a unique index is checked at the end of the transaction,
/// so rows may exchange their keys within it. If two rows have it then, the transaction ends in
/// [`Abort::NotUnique`]. At the end of a part that is made by [`Tx::attempt`], the keys that the
/// part has written are checked, too. So `tx.attempt(|tx| table.insert(tx, row))` returns
/// `NotUnique` as a value. Until the row that has had the key gives it up, the index finds that
/// row, and not the other one.
#[doc(alias = "open_table")]
#[doc(alias = "TableDefinition")]
#[doc(alias = "HashMap")]
#[doc(alias = "BTreeMap")]
pub struct Table<R, P: Protocol = DefaultProtocol> {
    inner: Handle<P>,
    core: Arc<TableCore>,
    row: PhantomData<fn() -> R>,
}

impl<R, P: Protocol> Clone for Table<R, P> {
    fn clone(&self) -> Self {
        Table { inner: self.inner.clone(), core: self.core.clone(), row: PhantomData }
    }
}

impl<R, P: Protocol> std::fmt::Debug for Table<R, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table")
            .field("name", &self.core.name)
            .field("row", &self.core.row_type)
            .finish_non_exhaustive()
    }
}

impl<R: Record, P: Protocol> Table<R, P> {
    pub(crate) fn new(inner: Handle<P>, core: Arc<TableCore>) -> Table<R, P> {
        Table { inner, core, row: PhantomData }
    }

    /// Returns the table's name.
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// Returns the number of bytes that the table has taken for its records, for versions outside
    /// the records, and for the buckets or nodes of its index.
    pub fn memory_bytes(&self) -> usize {
        let versions = self.core.versions.as_ref().map_or(0, VersionTable::bytes);
        self.core.records.reserved_bytes() + versions + self.core.index.bytes()
    }

    /// Returns the approximate number of rows: the number of keys in the index. Keys of inserts
    /// under way count, and so do keys deleted in the last few milliseconds. The number is exact
    /// once no transaction has run for a while.
    pub fn len_estimate(&self) -> u64 {
        // The count of a dropped table may be that of a later one.
        if self.core.owner.is_none() { 0 } else { self.core.linked.sum() }
    }

    /// Reads columns of a row; `None` if there is no row with this key.
    ///
    /// # Errors
    /// Those of [every operation](Table#errors-of-every-operation).
    #[inline]
    #[doc(alias = "select")]
    #[doc(alias = "where")]
    pub fn get<Pr: Projection<R>>(
        &self,
        tx: &Tx<'_, P>,
        key: impl AsKey<R::Key>,
        projection: Pr,
    ) -> Result<Option<Pr::Value>, Abort> {
        let Some(key) = key.into_key() else { return self.look_for_impossible(tx) };
        let key: &R::Key = key.borrow();
        let state = &mut *tx.state.borrow_mut();
        let found = self.find_found(tx, state, key)?;
        self.get_found(tx, state, key, found, projection)
    }

    /// Reads columns of a row in a transaction of its own; `None` if there is no row with this key.
    ///
    /// The call has the same effect as [`Session::run`] with a closure of one [`get`](Table::get).
    /// Under [`Occ`](crate::Occ), [`TicToc`](crate::TicToc) and [`Mvcc`](crate::Mvcc) it is less
    /// work, if the row exists and the columns are of one group: then nothing has to begin or to
    /// commit. The columns that one call returns belong together, whatever other transactions do
    /// meanwhile. The results of two calls need not belong together.
    ///
    /// ```
    /// # use candide::{Database, Record, Whole};
    /// # #[derive(Record, Debug, Clone, Copy, PartialEq)]
    /// # struct Counter { #[key] id: u32, hits: u64 }
    /// let db = Database::new();
    /// let counters = db.table::<Counter>("counters")?;
    /// let mut session = db.session()?;
    /// session.run(|tx| counters.insert(tx, Counter { id: 7, hits: 1 }))?;
    /// assert_eq!(counters.get_now(&mut session, &7, Counter::HITS)?, Some(1));
    /// assert_eq!(counters.get_now(&mut session, &8, Whole)?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Abort::ForeignTable`] if the session and the table belong to different databases, and
    /// [`Abort::Nested`] if the session would wait for this very thread. Conflicts are retried.
    #[inline]
    pub fn get_now<Pr: Projection<R>>(
        &self,
        session: &mut Session<P>,
        key: impl AsKey<R::Key>,
        projection: Pr,
    ) -> Result<Option<Pr::Value>, Abort> {
        let Some(key) = key.into_key() else {
            return session.run_body(&mut |tx| self.admit(tx)).map(|()| None);
        };
        let key: &R::Key = key.borrow();
        // The pin of a single read ends before the value is made.
        if !Pr::CODED
            && !Pr::LONG
            && let Some(unit) = self.core.layout.only_unit_of(projection.groups())
        {
            let mut words = Pr::EMPTY;
            let copy = |from: Words<'_>| projection.copy_all(unit.start(), from, &mut words);
            if let Some(is_there) =
                self.in_words(key, |key| session.single_read(&self.core, key, unit, copy))
            {
                return Ok(is_there.then(|| projection.value(key, &words, Pinned::by(session))));
            }
        }
        self.get_in_transaction(session, key, projection)
    }

    #[cold]
    #[inline(never)]
    fn get_in_transaction<Pr: Projection<R>>(
        &self,
        session: &mut Session<P>,
        key: &R::Key,
        projection: Pr,
    ) -> Result<Option<Pr::Value>, Abort> {
        if !P::SINGLE_READ_COMMITS {
            return session.run(|tx| self.get(tx, key, projection));
        }
        let mut value = None;
        session.run_body(&mut |tx| {
            value = self.get(tx, key, projection)?;
            Ok(())
        })?;
        Ok(value)
    }

    /// Reads columns of a row.
    ///
    /// # Errors
    /// [`Abort::NotFound`] if there is no row with this key.
    #[inline]
    pub fn read<Pr: Projection<R>>(
        &self,
        tx: &Tx<'_, P>,
        key: impl AsKey<R::Key>,
        projection: Pr,
    ) -> Result<Pr::Value, Abort> {
        let Some(key) = key.into_key() else { return Err(self.find_impossible(tx)) };
        let key: &R::Key = key.borrow();
        self.get(tx, key, projection)?.ok_or_else(|| self.refuse(tx, Abort::NotFound, key))
    }

    /// Inserts a row.
    ///
    /// # Errors
    /// [`Abort::Duplicate`] if a row with this key exists, [`Abort::MemoryLimit`]. [At the
    /// end](Table#unique-keys), [`Abort::NotUnique`] if another row has the same key in a unique
    /// index.
    #[doc(alias = "add")]
    pub fn insert(&self, tx: &Tx<'_, P>, row: R) -> Result<(), Abort> {
        match self.insert_unless::<false>(tx, &row)? {
            true => Ok(()),
            false => Err(self.refuse(tx, Abort::Duplicate, &row.key())),
        }
    }

    /// Inserts `rows`, one after another. In an ordered table, a key next to the one inserted
    /// before it needs no search of its own.
    ///
    /// # Errors
    /// As [`Table::insert`], for the first row that is refused. The rows before the refused row
    /// have been inserted, and stay inserted if the closure continues after an outcome. So have the
    /// rows before one at which `rows` or a row's own code panics.
    pub fn insert_many(
        &self,
        tx: &Tx<'_, P>,
        rows: impl IntoIterator<Item = R>,
    ) -> Result<(), Abort> {
        self.insert_each(tx, rows)
    }

    /// As [`Table::insert_many`], of rows that the caller may keep.
    pub(super) fn insert_each(
        &self,
        tx: &Tx<'_, P>,
        rows: impl IntoIterator<Item = impl Borrow<R>>,
    ) -> Result<(), Abort> {
        let mut place = Place::default();
        for row in rows {
            let row = row.borrow();
            if !self.insert_near(tx, row, &mut place)? {
                return Err(self.refuse(tx, Abort::Duplicate, &row.key()));
            }
        }
        Ok(())
    }

    /// Inserts `row` unless a row with its key exists; returns whether `row` was inserted. If
    /// possible, links the record at `place`, where the last one was linked.
    fn insert_near(&self, tx: &Tx<'_, P>, row: &R, place: &mut Place) -> Result<bool, Abort> {
        if let Some(insert) = const { Self::insert_of_long::<false>() } {
            return insert(self, tx, row, place);
        }
        let state = &mut *tx.state.borrow_mut();
        state.admit(tx.engine, &self.core)?;
        // This does not call `in_words`, for the same reason as `find_found`.
        let key = row.key();
        let target = match self.core.layout.packing::<R::Key>() {
            None => state.link(tx.engine, &self.core, key.words().as_ref(), place)?,
            Some(packing) => {
                state.link_packed(tx.engine, &self.core, packing, key.words().as_ref(), place)?
            }
        };
        self.insert_at(tx, state, target, row)
    }

    /// Inserts a row unless a row with its key exists; returns whether the row was inserted.
    ///
    /// # Errors
    /// [`Abort::MemoryLimit`]. [At the end](Table#unique-keys), [`Abort::NotUnique`] if another row
    /// has the same key in a unique index.
    #[doc(alias = "entry")]
    #[doc(alias = "or_insert")]
    #[doc(alias = "on_conflict_do_nothing")]
    pub fn insert_if_absent(&self, tx: &Tx<'_, P>, row: R) -> Result<bool, Abort> {
        self.insert_unless::<true>(tx, &row)
    }

    /// As [`Table::insert_if_absent`]. `TELLS` is whether the closure learns more than that there
    /// was no row as far as is known.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn insert_unless<const TELLS: bool>(
        &self,
        tx: &Tx<'_, P>,
        row: &R,
    ) -> Result<bool, Abort> {
        if let Some(insert) = const { Self::insert_of_long::<TELLS>() } {
            return insert(self, tx, row, &mut Place::default());
        }
        let state = &mut *tx.state.borrow_mut();
        let target = self.record_for(tx, state, &row.key())?;
        if TELLS && P::ASSUMES_BLINDLY && !target.is_new {
            let first = self.core.layout.first_of(target.record);
            if state.learn_existence(tx.engine, first, false)? {
                return Ok(false);
            }
        }
        self.insert_at(tx, state, target, row)
    }

    /// Inserts `row` in the record `target`, unless that record holds a row; returns whether `row`
    /// was inserted.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn insert_at(
        &self,
        tx: &Tx<'_, P>,
        state: &mut State<P>,
        target: InsertTarget,
        row: &R,
    ) -> Result<bool, Abort> {
        if !target.is_new {
            return self.insert_again(tx, state, target.record, row);
        }
        if self.core.indexes.writes_are_plain() {
            self.stager(tx, state, target.record).stage_new_row(row)?;
        } else {
            self.insert_indexed(tx, state, target.record, row)?;
        }
        Ok(true)
    }

    /// As [`Table::insert_at`], for a record that this operation has not linked.
    #[inline(never)]
    fn insert_again(
        &self,
        tx: &Tx<'_, P>,
        state: &mut State<P>,
        record: RecordAt,
        row: &R,
    ) -> Result<bool, Abort> {
        let words = &mut { R::Image::ZERO };
        let words = store_in(row, words, &mut NoLong)?;
        state.insert_again(tx.engine, &self.core, record, words)
    }

    /// Stages the insertion of a row and of its index entries. The row is asked for its words once,
    /// before anything is staged, since its code may panic.
    #[inline(never)]
    fn insert_indexed(
        &self,
        tx: &Tx<'_, P>,
        state: &mut State<P>,
        record: RecordAt,
        row: &R,
    ) -> Result<(), Abort> {
        let words = &mut { R::Image::ZERO };
        let words = store_in(row, words, &mut NoLong)?;
        state.add_entries(tx.engine, &self.core, record, words)?;
        state.stage_new_words(tx.engine, &self.core, record, words)
    }

    /// Inserts a row, or replaces the row with the same key. Observes nothing, unless the table has
    /// secondary indexes: then the transaction observes the indexed columns of the replaced row.
    ///
    /// # Errors
    /// [`Abort::MemoryLimit`]. [At the end](Table#unique-keys), [`Abort::NotUnique`] if another row
    /// has the same key in a unique index.
    #[doc(alias = "replace")]
    #[doc(alias = "overwrite")]
    #[doc(alias = "upsert")]
    pub fn put(&self, tx: &Tx<'_, P>, row: R) -> Result<(), Abort> {
        let mut image = R::Image::ZERO;
        let words = match Self::KEEP_ROW {
            None => store_in(&row, &mut image, &mut NoLong)?,
            Some(keep_row) => keep_row(self, tx, &row, &mut image)?,
        };
        let state = &mut *tx.state.borrow_mut();
        self.in_words(&row.key(), |key| state.put(tx.engine, &self.core, key, words))
    }

    /// Returns the keys of all records that are linked now, whether or not they hold rows.
    pub(crate) fn linked_keys(&self, tx: &Tx<'_, P>) -> Result<Vec<R::Key>, Abort> {
        tx.state.borrow_mut().admit(tx.engine, &self.core)?;
        let mut keys = Vec::new();
        self.core.index.for_each(&mut |record| keys.push(self.core.layout.key_of(record)));
        Ok(keys)
    }

    /// Calls `each` with every row, in no particular order; returns the number of rows. Reads the
    /// records directly, without lookups by key. Meant for checks: the rows agree with those that
    /// transactions see only while no transaction runs.
    ///
    /// # Errors
    /// [`Error::NotQuiescent`] if a transaction is running; [`Error::Transaction`] with
    /// [`Abort::LogFailed`] if the log of an [open](crate::Database::open) database has failed, and
    /// the rows may not be durable, with [`Abort::Undecodable`] if a row's [codec](crate::Codec)
    /// refuses its words, and with [`Abort::Nested`] inside a step.
    pub fn for_each_quiescent(&self, mut each: impl FnMut(&R)) -> Result<usize, Error> {
        let mut is_refused = false;
        let rows = for_each_row(&self.inner, &self.core, &mut |key, words| {
            is_refused |= R::CODED && undecoded_in::<R>(words, Pinned::by(words)).is_some();
            if !is_refused {
                let row = RowReader::pinned(words, R::LONG, Pinned::by(words));
                each(&R::load(&R::Key::from_words(key), &row));
            }
        })?;
        if is_refused { Err(Error::Transaction(Abort::Undecodable)) } else { Ok(rows) }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn core(&self) -> &TableCore {
        &self.core
    }

    pub(crate) fn shared_core(&self) -> &Arc<TableCore> {
        &self.core
    }

    pub(crate) fn inner(&self) -> &Handle<P> {
        &self.inner
    }

    /// Admits an operation on the table that looks for no key.
    #[cold]
    #[inline(never)]
    fn admit(&self, tx: &Tx<'_, P>) -> Result<(), Abort> {
        tx.state.borrow_mut().admit(tx.engine, &self.core)
    }

    /// Returns the result of looking for a key that no row can have. Nothing is observed: the
    /// result is the same at any place in the serial order.
    #[cold]
    pub(super) fn look_for_impossible<T>(&self, tx: &Tx<'_, P>) -> Result<Option<T>, Abort> {
        self.admit(tx).map(|()| None)
    }

    /// Returns the error of [`Table::find`] for a key that no row can have.
    #[cold]
    pub(super) fn find_impossible(&self, tx: &Tx<'_, P>) -> Abort {
        let refusal = self.admit(tx).err();
        let not_found = || tx.state.borrow_mut().outcome_in(Abort::NotFound, &self.core);
        refusal.unwrap_or_else(not_found)
    }

    /// Notes an outcome of the row with this key, and returns it.
    #[cold]
    #[inline(never)]
    pub(super) fn refuse(&self, tx: &Tx<'_, P>, cause: Abort, key: &R::Key) -> Abort {
        let mut state = tx.state.borrow_mut();
        self.in_words(key, |key| state.outcome_of(cause, &self.core, key))
    }

    /// Reads the record that a lookup has found. The caller has already entered the operation
    /// ([`State::enter`]).
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn get_found<Pr: Projection<R>>(
        &self,
        tx: &Tx<'_, P>,
        state: &mut State<P>,
        key: &R::Key,
        found: Found,
        projection: Pr,
    ) -> Result<Option<Pr::Value>, Abort> {
        match self.present(tx, state, key, found)? {
            Some(record) => self.get_record(tx, state, (key, record), projection),
            None => Ok(None),
        }
    }

    /// As [`Table::get_found`], for a key that has a record.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn get_record<Pr: Projection<R>>(
        &self,
        tx: &Tx<'_, P>,
        state: &mut State<P>,
        (key, record): (&R::Key, RecordAt),
        projection: Pr,
    ) -> Result<Option<Pr::Value>, Abort> {
        if let Some(unit) = self.core.layout.only_unit_of(projection.groups()) {
            let mut words = Pr::EMPTY;
            let copy = |from: Words<'_>| projection.copy_all(unit.start(), from, &mut words);
            if let Some(is_there) = state.read_at_once(unit.of(record), copy) {
                return self.value_if(is_there, state, key, &projection, &words);
            }
        }
        match Pr::ONE_GROUP {
            true => self.get_slowly(tx, state, (key, record), projection),
            false => self.get_units(tx, state, (key, record), projection),
        }
    }

    /// As [`Table::get_record`], for several units. Out of line, so that reads of one unit are
    /// short.
    #[inline(never)]
    fn get_units<Pr: Projection<R>>(
        &self,
        tx: &Tx<'_, P>,
        state: &mut State<P>,
        (key, record): (&R::Key, RecordAt),
        projection: Pr,
    ) -> Result<Option<Pr::Value>, Abort> {
        let (mut units, mut words) = (self.core.layout.units_of(projection.groups()), Pr::EMPTY);
        let copy = |unit, from: Words<'_>| projection.copy(unit, from, &mut words);
        match state.read_units_at_once(&self.core, record, &mut units, copy) {
            Some(is_there) => self.value_if(is_there, state, key, &projection, &words),
            None => self.get_rest(tx, state, (key, record), projection, (units, words)),
        }
    }

    /// Does the work of [`Table::get_record`] for every kind of record, by the slow path.
    #[cold]
    #[inline(never)]
    pub(super) fn get_slowly<Pr: Projection<R>>(
        &self,
        tx: &Tx<'_, P>,
        state: &mut State<P>,
        (key, record): (&R::Key, RecordAt),
        projection: Pr,
    ) -> Result<Option<Pr::Value>, Abort> {
        let units = self.core.layout.units_of(projection.groups());
        self.get_rest(tx, state, (key, record), projection, (units, Pr::EMPTY))
    }

    /// Does the work of [`Table::get_slowly`] for a record of which only these units are still to
    /// be read. The words of the other units have been copied.
    #[cold]
    fn get_rest<Pr: Projection<R>>(
        &self,
        tx: &Tx<'_, P>,
        state: &mut State<P>,
        (key, record): (&R::Key, RecordAt),
        projection: Pr,
        (units, mut words): (Units, Pr::Words),
    ) -> Result<Option<Pr::Value>, Abort> {
        let copy = &mut |unit, from: Words<'_>| projection.copy(unit, from, &mut words);
        let is_there = state.read_units(tx.engine, &self.core, (record, units), copy)?;
        self.value_if(is_there, state, key, &projection, &words)
    }

    /// Returns the value of columns that have been read, if the row is there.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn value_if<Pr: Projection<R>>(
        &self,
        is_there: bool,
        state: &mut State<P>,
        key: &R::Key,
        projection: &Pr,
        words: &Pr::Words,
    ) -> Result<Option<Pr::Value>, Abort> {
        match is_there {
            true => state.value_of::<R, Pr>(&self.core, key, projection, words).map(Some),
            false => Ok(None),
        }
    }

    /// Inserts rows whose words, those of the key first, come from outside. Rows with columns of
    /// any length are as [`LongRow::append_to`](candide_log::format::long_row::LongRow::append_to)
    /// writes them, and have been checked.
    ///
    /// # Errors
    /// As [`Table::insert_many`]; [`Abort::Undecodable`], and nothing has been inserted.
    pub(super) fn insert_words(
        &self,
        tx: &Tx<'_, P>,
        rows: &[u64],
        row_words: usize,
    ) -> Result<(), Abort> {
        if let Some(insert) = const { Self::INSERT_WORDS_OF_LONG } {
            return insert(self, tx, rows);
        }
        let rows = rows.chunks_exact(row_words).map(|row| {
            let (key, words) = row.split_at(R::Key::WORDS);
            (R::Key::from_words(key), words)
        });
        if R::CODED {
            for (key, words) in rows.clone() {
                if let Some(undecoded) = undecoded_in::<R>(words, Pinned::by(words)) {
                    let mut state = tx.state.borrow_mut();
                    return Err(state.refuse_undecoded(&self.core, &key, undecoded));
                }
            }
        }
        self.insert_many(tx, rows.map(|(key, words)| R::load(&key, &RowReader::new(words))))
    }

    /// Returns the record that a lookup has found. If the lookup has found none, observes the
    /// absence of the key and returns `None`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn present(
        &self,
        tx: &Tx<'_, P>,
        state: &mut State<P>,
        key: &R::Key,
        found: Found,
    ) -> Result<Option<RecordAt>, Abort> {
        match found {
            Found::Record(record) => Ok(Some(record)),
            Found::Nothing { node, version } => {
                let table = self.core.number;
                self.in_words(key, |key| {
                    state.absent(tx.engine, Missing { table, key: Some(key), node, version })
                })?;
                Ok(None)
            }
        }
    }

    /// Returns the record of a key. If the key has no record, links an absent one.
    pub(super) fn record_for(
        &self,
        tx: &Tx<'_, P>,
        state: &mut State<P>,
        key: &R::Key,
    ) -> Result<InsertTarget, Abort> {
        self.in_words(key, |key| state.record_for(tx.engine, &self.core, key))
    }

    /// Calls `f` with the words of `key` as the table keeps them, packed or not.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn in_words<T>(&self, key: &R::Key, f: impl FnOnce(&[u64]) -> T) -> T {
        let words = key.words();
        match self.core.layout.packing::<R::Key>() {
            None => f(words.as_ref()),
            Some(packing) => f(packing.pack(words.as_ref()).as_slice()),
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn find_found(
        &self,
        tx: &Tx<'_, P>,
        state: &mut State<P>,
        key: &R::Key,
    ) -> Result<Found, Abort> {
        // This does not call `in_words`, so that lookups of unpacked keys have code of their own at
        // each call.
        match self.core.layout.packing::<R::Key>() {
            None => state.find(tx.engine, &self.core, key.words().as_ref()),
            Some(packing) => {
                state.find_packed(tx.engine, &self.core, packing, key.words().as_ref())
            }
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn stager<'a>(
        &'a self,
        tx: &Tx<'a, P>,
        state: &'a mut State<P>,
        record: RecordAt,
    ) -> Stager<'a, R, P> {
        let (engine, table, row) = (tx.engine, &*self.core, PhantomData);
        Stager { state, engine, table, record, next_word: 0, row }
    }
}
