//! Tables and rows: the layer that knows the row type.

#![forbid(unsafe_code)]

use super::quiescent::for_each_row;
use super::session::Session;
use crate::engine::{Missing, Protocol, TableCore, VersionTable, Versions};
use crate::error::{Abort, Error};
use crate::index::{Found, Place};
use crate::protocols::DefaultProtocol;
use crate::record::RecordAt;
use crate::schema::{
    Buffer, Bytes, Column, ColumnKind, DryRun, ImageSink, Key, Projection, Record, Shown, Unit,
    Units, Update, Updater, Words, store_in,
};
use crate::shared::Inner;
use crate::txn::{FreeColumnsOnly, InsertTarget, Stager, State, Tx};
use std::marker::PhantomData;
use std::sync::Arc;

/// A table of rows of type `R`, in a database of protocol `P`.
///
/// A `Table` is a handle: its clones refer to the same table, and threads may share them. Every
/// operation takes `tx`, the transaction to which the operation belongs.
///
/// # Errors of every operation
/// Every operation may return the following errors. Its own section *Errors* lists only further
/// ones.
///
/// * conflicts, which `?` passes on to [`run`](super::session::Session::run);
/// * [`Abort::ForeignTable`] if the transaction and the table belong to different databases;
/// * [`Abort::Guard`] or [`Abort::Overflow`], if the operation reads columns that the transaction
///   has updated and the update fails. The transaction then ends in this error, and every later
///   operation may return it too;
/// * from operations that write or lock: [`Abort::ReadOnly`] if the transaction [only
///   reads](crate::txn::RunOptions::read_only), and [`Abort::MemoryLimit`] if the
///   [limit](super::database::Builder::memory_limit) leaves no room for a record, an index entry,
///   or a version.
pub struct Table<R, P: Protocol = DefaultProtocol> {
    inner: Arc<Inner<P>>,
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
    pub(crate) fn new(inner: Arc<Inner<P>>, core: Arc<TableCore>) -> Table<R, P> {
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
        self.core.linked.sum()
    }

    /// Returns a handle on a key's record: operations on the handle need no second lookup.
    ///
    /// The lookup observes nothing. Operations on the handle find out whether the row exists.
    ///
    /// # Errors
    /// Those of [every operation](Table#errors-of-every-operation).
    #[inline]
    pub fn find<'t>(&'t self, tx: &'t Tx<'_, P>, key: &R::Key) -> Result<Row<'t, R, P>, Abort> {
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
    /// Those of [every operation](Table#errors-of-every-operation).
    #[inline]
    pub fn find_many<'t, const N: usize>(
        &'t self,
        tx: &'t Tx<'_, P>,
        keys: &[R::Key; N],
    ) -> Result<[Row<'t, R, P>; N], Abort> {
        let state = &mut *tx.state.borrow_mut();
        state.admit(tx.engine, &self.core)?;
        let mut found = if let Some(packing) = self.core.layout.packing::<R::Key>() {
            self.core.index.find_many(&keys.map(|key| packing.pack(key.words().as_ref())))
        } else {
            let words = keys.map(|key| key.words());
            words.iter().for_each(|words| self.core.check_key(words.as_ref()));
            self.core.index.find_many(&words)
        };
        if state.needs_deleted_index() {
            for (key, found) in keys.iter().zip(&mut found) {
                *found = self.in_words(key, |words| state.read_view(&self.core, words, *found));
            }
        }
        Ok(std::array::from_fn(|number| Row {
            table: self,
            tx,
            key: keys[number],
            found: found[number],
        }))
    }

    /// Reads columns of a row; `None` if there is no row with this key.
    ///
    /// # Errors
    /// Those of [every operation](Table#errors-of-every-operation).
    #[inline]
    pub fn get<Pr: Projection<R>>(
        &self,
        tx: &Tx<'_, P>,
        key: &R::Key,
        projection: Pr,
    ) -> Result<Option<Pr::Value>, Abort> {
        let state = &mut *tx.state.borrow_mut();
        let found = self.find_found(tx, state, key)?;
        self.get_found(tx, state, key, found, projection)
    }

    /// Reads columns of a row in a transaction of its own; `None` if there is no row with this key.
    ///
    /// This has the same effect as [`Session::run`] with a closure of one [`get`](Table::get).
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
        key: &R::Key,
        projection: Pr,
    ) -> Result<Option<Pr::Value>, Abort> {
        if let Some(unit) = self.core.layout.only_unit_of(projection.groups()) {
            let mut words = Pr::EMPTY;
            let copy = |from: Words<'_>| projection.copy_all(unit.start(), from, &mut words);
            if let Some(is_there) =
                self.in_words(key, |key| session.single_read(&self.core, key, unit, copy))
            {
                return Ok(is_there.then(|| projection.value(key, &words)));
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
        key: &R::Key,
        projection: Pr,
    ) -> Result<Pr::Value, Abort> {
        self.get(tx, key, projection)?.ok_or(Abort::NotFound)
    }

    /// As [`Table::get`], for a transaction that is going to write the columns that it reads. Takes
    /// the write locks of the columns' groups now instead of at commit. So no other transaction can
    /// write these groups before this transaction has ended.
    ///
    /// The gain: suppose that many transactions write a row (a counter, the head of a queue), and
    /// one of them reads the row and then computes for a while. This transaction need not run again
    /// because of a change meanwhile. The cost: as long as this transaction lasts, other writers of
    /// the row wait for a moment and then run again themselves. Other transactions can still read
    /// the row, and commit.
    ///
    /// The locks are released when the attempt ends: by a commit (even if the row was not written),
    /// by an error or a panic of the closure, or by a conflict. A missing row is observed as by
    /// `get`, and not locked. A group of which the transaction itself has set every column is not
    /// locked before the commit. Waiting is bounded, so transactions that lock rows in opposite
    /// orders do not block each other for ever: one of them ends in a conflict, releases its locks,
    /// and runs again.
    ///
    /// A closure must not wait for a writer of a row that it has locked. If the writer runs on
    /// another thread, the closure waits for ever, unless the writer has a limit on attempts or
    /// time. If the writer is a transaction of another session, run inside the closure, it fails
    /// with [`Abort::Nested`].
    ///
    /// Protocols that run transactions one after another have nothing to lock; under them this
    /// equals `get`. Without timestamp splitting the whole row is one group.
    ///
    /// ```
    /// # use candide::{Database, Record};
    /// # #[derive(Record, Debug, Clone, Copy)]
    /// # struct Counter { #[key] id: u64, next: u64 }
    /// let db = Database::new();
    /// let counters = db.table::<Counter>("counters")?;
    /// db.run(|tx| counters.insert(tx, Counter { id: 1, next: 7 }))?;
    /// let ticket = db.run(|tx| {
    ///     let next = counters.get_for_update(tx, &1, Counter::NEXT)?.unwrap_or(0);
    ///     // ... much that depends on it ...
    ///     counters.update(tx, &1, Counter::NEXT.set(next + 1))?;
    ///     Ok(next)
    /// })?;
    /// assert_eq!(ticket, 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [every operation](Table#errors-of-every-operation); [`Abort::Locked`], a conflict,
    /// if another transaction has locked one of the groups.
    pub fn get_for_update<Pr: Projection<R>>(
        &self,
        tx: &Tx<'_, P>,
        key: &R::Key,
        projection: Pr,
    ) -> Result<Option<Pr::Value>, Abort> {
        self.find(tx, key)?.get_for_update(projection)
    }

    /// As [`Table::get_for_update`], for a row that must exist.
    ///
    /// # Errors
    /// [`Abort::NotFound`] if there is no row with this key.
    pub fn read_for_update<Pr: Projection<R>>(
        &self,
        tx: &Tx<'_, P>,
        key: &R::Key,
        projection: Pr,
    ) -> Result<Pr::Value, Abort> {
        self.get_for_update(tx, key, projection)?.ok_or(Abort::NotFound)
    }

    /// Inserts a row.
    ///
    /// # Errors
    /// [`Abort::Duplicate`] if a row with this key exists, [`Abort::NotUnique`] if another row has
    /// the same key in a unique index, [`Abort::MemoryLimit`].
    pub fn insert(&self, tx: &Tx<'_, P>, row: R) -> Result<(), Abort> {
        if self.insert_if_absent(tx, row)? { Ok(()) } else { Err(Abort::Duplicate) }
    }

    /// Inserts `rows`, one after another. In an ordered table, a key next to the one inserted
    /// before it needs no search of its own.
    ///
    /// # Errors
    /// As [`Table::insert`], for the first row that is refused. The rows before the refused row
    /// have been inserted, and stay inserted if the closure goes on after an outcome.
    pub fn insert_many(
        &self,
        tx: &Tx<'_, P>,
        rows: impl IntoIterator<Item = R>,
    ) -> Result<(), Abort> {
        let mut place = Place::default();
        for row in rows {
            if !self.insert_near(tx, &row, &mut place)? {
                return Err(Abort::Duplicate);
            }
        }
        Ok(())
    }

    /// Inserts `row` unless a row with its key exists; returns whether `row` was inserted. If
    /// possible, links the record at `place`, where the last one was linked.
    fn insert_near(&self, tx: &Tx<'_, P>, row: &R, place: &mut Place) -> Result<bool, Abort> {
        let state = &mut *tx.state.borrow_mut();
        state.admit(tx.engine, &self.core)?;
        // This does not call `in_words`, for the same reason as `find_found`.
        let key = row.key();
        let home = match self.core.layout.packing::<R::Key>() {
            None => state.link(tx.engine, &self.core, key.words().as_ref(), place)?,
            Some(packing) => {
                state.link_packed(tx.engine, &self.core, packing, key.words().as_ref(), place)?
            }
        };
        self.insert_at(tx, state, home, row)
    }

    /// Inserts a row unless a row with its key exists; returns whether the row was inserted.
    ///
    /// # Errors
    /// [`Abort::NotUnique`] if another row has the same key in a unique index,
    /// [`Abort::MemoryLimit`].
    pub fn insert_if_absent(&self, tx: &Tx<'_, P>, row: R) -> Result<bool, Abort> {
        let state = &mut *tx.state.borrow_mut();
        let home = self.record_for(tx, state, &row.key())?;
        self.insert_at(tx, state, home, &row)
    }

    /// Inserts `row` in the record `home`, unless that record holds a row; returns whether `row`
    /// was inserted.
    #[inline(always)]
    fn insert_at(
        &self,
        tx: &Tx<'_, P>,
        state: &mut State<P>,
        home: InsertTarget,
        row: &R,
    ) -> Result<bool, Abort> {
        if !home.is_new {
            return self.insert_again(tx, state, home.record, row);
        }
        if !self.core.indexes.is_empty() && !self.enter_unless_there(tx, state, home.record, row)? {
            return Ok(false);
        }
        self.stager(tx, state, home.record).stage_new_row(row)?;
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
        state.insert_again(tx.engine, &self.core, record, store_in(row, &mut { R::Image::ZERO }))
    }

    /// Stages the index entries of `row`, whose new record seems to hold no row. Returns `false` if
    /// the record does hold a row.
    #[inline(never)]
    fn enter_unless_there(
        &self,
        tx: &Tx<'_, P>,
        state: &mut State<P>,
        record: RecordAt,
        row: &R,
    ) -> Result<bool, Abort> {
        state.enter_unless_there(
            tx.engine,
            &self.core,
            record,
            store_in(row, &mut { R::Image::ZERO }),
        )
    }

    /// Inserts a row, or replaces the row with the same key. Observes nothing, unless the table has
    /// secondary indexes: then the transaction observes the indexed columns of the replaced row.
    ///
    /// # Errors
    /// [`Abort::MemoryLimit`], and [`Abort::NotUnique`] if another row has the same key in a unique
    /// index.
    pub fn put(&self, tx: &Tx<'_, P>, row: R) -> Result<(), Abort> {
        let mut image = R::Image::ZERO;
        let words = store_in(&row, &mut image);
        let state = &mut *tx.state.borrow_mut();
        self.in_words(&row.key(), |key| state.put(tx.engine, &self.core, key, words))
    }

    /// Inserts `row` if no row with its key exists, otherwise applies `update` to the existing row;
    /// returns whether `row` was inserted.
    ///
    /// # Errors
    /// As [`Table::insert_if_absent`] and [`Table::update`], except [`Abort::NotFound`].
    pub fn upsert(&self, tx: &Tx<'_, P>, row: R, update: impl Update<R>) -> Result<bool, Abort> {
        let inserted = self.insert_if_absent(tx, row)?;
        if !inserted {
            self.update(tx, &row.key(), update)?;
        }
        Ok(inserted)
    }

    /// Updates columns of a row when the transaction commits, without reading them.
    ///
    /// # Errors
    /// [`Abort::NotFound`] if there is no row with this key, [`Abort::Indexed`] if
    /// [`Table::create_index`] has created an index on one of the columns. A failed guard or an
    /// overflow is reported when the transaction reads the row's group again, or commits. Under
    /// protocols with versions, [`Abort::MemoryLimit`] if there is no memory for a version; the
    /// transaction then ends with this error even if the closure ignores it.
    #[inline]
    pub fn update(
        &self,
        tx: &Tx<'_, P>,
        key: &R::Key,
        update: impl Update<R>,
    ) -> Result<(), Abort> {
        self.find(tx, key)?.update(update)
    }

    /// As [`Table::update`], if a row with this key exists; returns whether it exists.
    ///
    /// # Errors
    /// As [`Table::update`], except [`Abort::NotFound`].
    pub fn update_if_present(
        &self,
        tx: &Tx<'_, P>,
        key: &R::Key,
        update: impl Update<R>,
    ) -> Result<bool, Abort> {
        self.find(tx, key)?.update_if_present(update)
    }

    /// Applies `updater` to the row when the transaction commits.
    ///
    /// # Errors
    /// As [`Table::update`].
    ///
    /// # Panics
    /// If the updater's target spans several groups.
    pub fn update_with(
        &self,
        tx: &Tx<'_, P>,
        key: &R::Key,
        updater: impl Updater<R>,
    ) -> Result<(), Abort> {
        self.find(tx, key)?.update_with(updater)
    }

    /// Reads columns of a row, lets `change` change them, and writes them back; returns what
    /// `change` returns. This is the way to change columns that indexes contain.
    ///
    /// # Errors
    /// [`Abort::NotFound`] if there is no row with this key, [`Abort::NotUnique`] if another row
    /// has, in a unique index, the key that the changed row would have, [`Abort::MemoryLimit`] if
    /// there is no memory for an index entry or for a version (see [`Table::update`]).
    ///
    /// # Panics
    /// If `change` changes the key, in a [`Whole`](crate::Whole) row or in a
    /// [`KeyColumn`](crate::KeyColumn). The row is unchanged then.
    pub fn modify<Pr: Projection<R>, T>(
        &self,
        tx: &Tx<'_, P>,
        key: &R::Key,
        projection: Pr,
        change: impl FnOnce(&mut Pr::Value) -> T,
    ) -> Result<T, Abort> {
        self.find(tx, key)?.modify(projection, change)
    }

    /// As [`Table::modify`], if a row with this key exists; otherwise returns `None`.
    ///
    /// # Errors
    /// As [`Table::modify`], except [`Abort::NotFound`].
    ///
    /// # Panics
    /// As [`Table::modify`].
    pub fn modify_if_present<Pr: Projection<R>, T>(
        &self,
        tx: &Tx<'_, P>,
        key: &R::Key,
        projection: Pr,
        change: impl FnOnce(&mut Pr::Value) -> T,
    ) -> Result<Option<T>, Abort> {
        self.find(tx, key)?.modify_if_present(projection, change)
    }

    /// Deletes a row.
    ///
    /// # Errors
    /// [`Abort::NotFound`] if there is no row with this key.
    pub fn delete(&self, tx: &Tx<'_, P>, key: &R::Key) -> Result<(), Abort> {
        self.find(tx, key)?.delete()
    }

    /// Deletes the row with this key, if it exists; returns whether it existed.
    ///
    /// # Errors
    /// Those of [every operation](Table#errors-of-every-operation).
    pub fn delete_if_present(&self, tx: &Tx<'_, P>, key: &R::Key) -> Result<bool, Abort> {
        self.find(tx, key)?.delete_if_present()
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
    /// the rows may not be durable.
    pub fn for_each_quiescent(&self, mut each: impl FnMut(&R)) -> Result<usize, Error> {
        for_each_row(&self.inner, &self.core, &mut |key, words| {
            each(&R::load(&R::Key::from_words(key), words))
        })
    }

    pub(crate) fn core(&self) -> &TableCore {
        &self.core
    }

    pub(crate) fn inner(&self) -> &Arc<Inner<P>> {
        &self.inner
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

    /// Reads the record that a lookup has found. The caller has already entered the operation
    /// ([`State::enter`]).
    #[inline(always)]
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
    #[inline(always)]
    fn get_record<Pr: Projection<R>>(
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
                return Ok(is_there.then(|| projection.value(key, &words)));
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
            Some(is_there) => Ok(is_there.then(|| projection.value(key, &words))),
            None => self.get_rest(tx, state, (key, record), projection, (units, words)),
        }
    }

    /// Does the work of [`Table::get_record`] for every kind of record, by the slow path.
    #[cold]
    #[inline(never)]
    fn get_slowly<Pr: Projection<R>>(
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
        Ok(is_there.then(|| projection.value(key, &words)))
    }

    /// Returns the record that a lookup has found. If the lookup has found none, observes the
    /// absence of the key and returns `None`.
    #[inline(always)]
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
    fn record_for(
        &self,
        tx: &Tx<'_, P>,
        state: &mut State<P>,
        key: &R::Key,
    ) -> Result<InsertTarget, Abort> {
        self.in_words(key, |key| state.record_for(tx.engine, &self.core, key))
    }

    /// Calls `f` with the words of `key` as the table keeps them, packed or not.
    #[inline(always)]
    pub(crate) fn in_words<T>(&self, key: &R::Key, f: impl FnOnce(&[u64]) -> T) -> T {
        let words = key.words();
        match self.core.layout.packing::<R::Key>() {
            None => f(words.as_ref()),
            Some(packing) => f(packing.pack(words.as_ref()).as_slice()),
        }
    }

    #[inline(always)]
    fn find_found(
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

    #[inline(always)]
    fn stager<'a>(
        &'a self,
        tx: &Tx<'a, P>,
        state: &'a mut State<P>,
        record: RecordAt,
    ) -> Stager<'a, R, P> {
        Stager { state, engine: tx.engine, table: &self.core, record, row: PhantomData }
    }
}

/// Turns the outcome [`Abort::NotFound`] into `None`.
fn if_present<T>(result: Result<T, Abort>) -> Result<Option<T>, Abort> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Abort::NotFound) => Ok(None),
        Err(abort) => Err(abort),
    }
}

/// A handle on a key's record. Operations on the handle need no second lookup. The handle is valid
/// until its transaction ends.
pub struct Row<'t, R: Record, P: Protocol = DefaultProtocol> {
    table: &'t Table<R, P>,
    tx: &'t Tx<'t, P>,
    key: R::Key,
    found: Found,
}

impl<R: Record, P: Protocol> std::fmt::Debug for Row<'_, R, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words = self.key.words();
        let key = Shown::of::<R::Key>(&words);
        f.debug_struct("Row").field("table", &self.table.name()).field("key", &key).finish()
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
    #[inline(always)]
    pub fn prefetch<Pr: Projection<R>>(&self, projection: Pr) {
        let Found::Record(record) = self.found else { return };
        let layout = &self.table.core.layout;
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
    #[inline(always)]
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
            .in_words(&self.key, |key| state.look_again(self.tx.engine, &self.table.core, key))
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
        self.get(projection)?.ok_or(Abort::NotFound)
    }

    /// Appends the bytes of a column to `to`. They are copied once; [`Row::read`] copies them
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
        let record = self.record_now(state)?.ok_or(Abort::NotFound)?;
        let unit = self.table.core.layout.only_unit_of(column.column_groups());
        let unit = unit.expect("a column is in one group");
        let place = (column.word_in_row() - unit.start(), N);
        let is_there = state.append_bytes(self.tx.engine, unit.of(record), place, to)?;
        if is_there { Ok(()) } else { Err(Abort::NotFound) }
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
        let core = &self.table.core;
        let mut words = Pr::EMPTY;
        let units = core.layout.units_of(projection.groups());
        let copy = &mut |unit, from: Words<'_>| projection.copy(unit, from, &mut words);
        let is_there = state.read_units_for_update(self.tx.engine, core, (record, units), copy)?;
        Ok(is_there.then(|| projection.value(&self.key, &words)))
    }

    /// As [`Table::read_for_update`].
    ///
    /// # Errors
    /// As [`Table::read_for_update`].
    pub fn read_for_update<Pr: Projection<R>>(&self, projection: Pr) -> Result<Pr::Value, Abort> {
        self.get_for_update(projection)?.ok_or(Abort::NotFound)
    }

    /// As [`Table::update`].
    ///
    /// # Errors
    /// As [`Table::update`].
    #[inline]
    pub fn update(&self, update: impl Update<R>) -> Result<(), Abort> {
        let indexes = &self.table.core.indexes;
        if !indexes.is_empty() {
            update.stage(&mut FreeColumnsOnly(indexes))?;
        }
        self.staging(|stager| update.stage(stager))
    }

    /// As [`Table::update_if_present`].
    ///
    /// # Errors
    /// As [`Table::update_if_present`].
    #[inline]
    pub fn update_if_present(&self, update: impl Update<R>) -> Result<bool, Abort> {
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
        let mut value = self.read(projection)?;
        let result = change(&mut value);
        projection.assign(&self.key, &value, &mut DryRun)?;
        let core = &self.table.core;
        let mut indexed = false;
        if !core.indexes.is_empty() {
            projection.places(&mut |place| indexed |= core.indexes.covers(place));
        }
        self.staging(|stager| {
            if indexed {
                let assign = &mut |words: &mut Vec<u64>| {
                    projection.assign(&self.key, &value, &mut ImageSink::<R>::new(Unit::ROW, words))
                };
                let Stager { state, engine, record, .. } = stager;
                // The closure `change` may have deleted the row.
                state.change_row(engine, core, (*record, true), assign)?;
            }
            projection.assign(&self.key, &value, stager)
        })?;
        Ok(result)
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
        if_present(self.delete()).map(|done| done.is_some())
    }

    /// Calls `stage`, which stages changes of the key's record. If the key has no record, observes
    /// that and returns [`Abort::NotFound`].
    #[inline(always)]
    fn staging(
        &self,
        stage: impl FnOnce(&mut Stager<'_, R, P>) -> Result<(), Abort>,
    ) -> Result<(), Abort> {
        let state = &mut *self.tx.state.borrow_mut();
        // This check comes before the lookup, since a refusal must not reveal whether the row
        // exists.
        state.admit_write()?;
        match self.record_now(state)? {
            Some(record) => stage(&mut self.table.stager(self.tx, state, record)),
            None => Err(Abort::NotFound),
        }
    }
}
