//! Snapshots: the database as it was at one moment, for protocols that keep versions.

#![forbid(unsafe_code)]

use super::database::Database;
use super::index::Index;
use super::session::{Session, run_cached};
use super::table::Table;
use crate::engine::{ReadView, Versioned, Versions};
use crate::epoch::Moment;
use crate::error::Abort;
use crate::handle::Handle;
use crate::index::Direction;
use crate::schema::{Hashed, InOrder, Key, KeyRange, Ordered, Projection, Record, WordRange};
use crate::sync::is_in_step;
use crate::txn::{RunOptions, Tx};
use std::sync::Arc;

/// The number of rows that [`Snapshot::for_each`] and similar functions read in one call of `run`.
const ROWS_AT_ONCE: usize = 256;

/// The database as it was when the snapshot was made: all tables and indexes, at one moment. This
/// state can be read until the snapshot is dropped.
///
/// A read in a snapshot never fails because of other transactions, and is never repeated. Such a
/// read may wait for a commit in progress. A read in a snapshot writes nothing that other
/// transactions read, with one exception: if [`Mvto`](crate::Mvto) has deferred updates of a row, a
/// reader that needs the row applies these updates, and for a moment other transactions cannot read
/// the row. A snapshot shows every transaction that had ended when the snapshot was made, including
/// those of the session that made it. Of each other transaction, it shows all effects or none.
/// [`Table::drop_index`] removes an index from snapshots, too.
///
/// A snapshot keeps its database alive. A snapshot can be sent to another thread, and several
/// threads can use it. While it exists, the versions that it sees are kept: at most one of each
/// group of a row. (Under [`Mvcc`](crate::Mvcc) such a version may take three pieces of memory
/// until the snapshot is dropped: for the first changes, for more changes, and for all columns.)
/// While no thread reads in the snapshot, it holds nothing else back. After the drop of a snapshot
/// these versions can be freed. [`Health::oldest_snapshot`](super::health::Health::oldest_snapshot)
/// shows a snapshot that was forgotten.
///
/// Only protocols with versions have snapshots, so this does not compile:
///
/// ```compile_fail
/// let snapshot = candide::Database::new().snapshot(); // of `Occ`
/// ```
pub struct Snapshot<P: Versioned> {
    inner: Handle<P>,
    ts: u64,
    since: Moment,
}

impl<P: Versioned> Database<P> {
    /// Returns a snapshot of the database as it is now. For a moment this takes a lock, which
    /// otherwise only snapshots and the collection of garbage take.
    ///
    /// ```
    /// use candide::{Database, Mvcc, Record};
    ///
    /// #[derive(Record, Clone, Copy)]
    /// struct Account { #[key] id: u64, cents: i64 }
    ///
    /// let db = Database::<Mvcc>::default();
    /// let accounts = db.table::<Account>("accounts")?;
    /// db.run(|tx| accounts.insert(tx, Account { id: 1, cents: 10 }))?;
    /// let before = db.snapshot();
    /// db.run(|tx| accounts.update(tx, 1, Account::CENTS.add(5)))?;
    /// assert_eq!(before.run(|tx| accounts.read(tx, 1, Account::CENTS))?, 10);
    /// assert_eq!(db.snapshot().run(|tx| accounts.read(tx, 1, Account::CENTS))?, 15);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    /// In a step ([`Table::defer`]), whose transaction is then without effect.
    pub fn snapshot(&self) -> Snapshot<P> {
        Snapshot::new(&self.inner)
    }
}

impl<P: Versioned> Session<P> {
    /// Returns a snapshot of the database as it is now. The snapshot shows every transaction that
    /// this session has committed.
    ///
    /// # Panics
    /// As [`Database::snapshot`].
    pub fn snapshot(&self) -> Snapshot<P> {
        Snapshot::new(self.inner())
    }
}

impl<P: Versioned> Snapshot<P> {
    fn new(inner: &Handle<P>) -> Snapshot<P> {
        assert!(!is_in_step(), "a step opens no snapshot; open it before the transaction");
        let engine = &inner.engine;
        let since = engine.epochs.moment();
        let view = engine.following.get().and_then(|following| {
            following.look(|ts| {
                P::Versions::open_again(&engine.clock, ts, since); // FW3
                ts
            })
        });
        let ts = view.unwrap_or_else(|| P::Versions::open_snapshot(&engine.clock, since));
        Snapshot { inner: inner.clone(), ts, since }
    }

    /// Returns the timestamp of the snapshot. Of two snapshots of one database, the later one has
    /// the same timestamp or a greater one.
    pub fn timestamp(&self) -> u64 {
        self.ts
    }

    /// Runs `body` once, on the database as it was when the snapshot was opened. `body` can use
    /// every operation of tables and indexes that reads. Memory that other sessions free is not
    /// reused until `body` returns, so a long report is better read in several calls, or by
    /// [`Snapshot::for_each`]. Versions that no snapshot sees are unlinked from their rows
    /// nevertheless.
    ///
    /// # Errors
    /// The error of `body`; [`Abort::ReadOnly`] from each operation that would write or lock,
    /// [`Abort::NoIndex`] from an index that is younger than the snapshot, [`Abort::Nested`] if
    /// this thread is inside `run` of the same database already ([`Snapshot::run_in`] can be used
    /// there).
    pub fn run<T>(&self, body: impl FnMut(&Tx<'_, P>) -> Result<T, Abort>) -> Result<T, Abort> {
        self.try_run(body)
    }

    /// As [`Snapshot::run`], for a closure with an error type of its own.
    ///
    /// # Errors
    /// As [`Snapshot::run`], each [`Abort`] converted by `E::from`, and the error of `body`.
    #[inline]
    pub fn try_run<T, E: From<Abort>>(
        &self,
        body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
    ) -> Result<T, E> {
        run_cached(&self.inner, const { &RunOptions::new() }, ReadView::Snapshot(self.ts), body)
    }

    /// As [`Snapshot::run`], in `session`.
    ///
    /// ```
    /// # use candide::{Database, Mvcc, Record};
    /// # #[derive(Record, Clone, Copy)]
    /// # struct Account { #[key] id: u64, cents: i64 }
    /// # let db = Database::<Mvcc>::default();
    /// # let accounts = db.table::<Account>("accounts")?;
    /// # db.run(|tx| accounts.insert(tx, Account { id: 1, cents: 10 }))?;
    /// let (snapshot, mut session) = (db.snapshot(), db.session()?);
    /// db.run(|tx| accounts.delete(tx, 1))?;
    /// let cents = snapshot.run_in(&mut session, |tx| accounts.read(tx, 1, Account::CENTS))?;
    /// assert_eq!(cents, 10);
    /// # Ok::<(), candide::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Snapshot::run`], and [`Abort::ForeignTable`] if the session is of another database.
    pub fn run_in<T>(
        &self,
        session: &mut Session<P>,
        body: impl FnMut(&Tx<'_, P>) -> Result<T, Abort>,
    ) -> Result<T, Abort> {
        self.try_run_in(session, body)
    }

    /// As [`Snapshot::run_in`], for a closure with an error type of its own.
    ///
    /// # Errors
    /// As [`Snapshot::run_in`], each [`Abort`] converted by `E::from`, and the error of `body`.
    pub fn try_run_in<T, E: From<Abort>>(
        &self,
        session: &mut Session<P>,
        body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
    ) -> Result<T, E> {
        if !Arc::ptr_eq(session.inner(), &self.inner) {
            return Err(Abort::ForeignTable.into());
        }
        session.run_as(const { &RunOptions::new() }, ReadView::Snapshot(self.ts), body)
    }

    /// Runs a closure that takes long in any case. All such closures share the code of this
    /// function.
    #[inline(never)]
    fn run_body(&self, body: &mut dyn FnMut(&Tx<'_, P>) -> Result<(), Abort>) -> Result<(), Abort> {
        self.run(body)
    }

    /// Calls `each` with every row whose key lies in `range`, in the order of the keys; returns the
    /// number of rows. Reads the rows in parts, and calls `each` between two parts, outside of any
    /// transaction. So only the snapshot's versions are held back meanwhile.
    ///
    /// # Errors
    /// As [`Snapshot::run`]. By then `each` has been called with the rows of all earlier parts.
    pub fn for_each<R, Pr>(
        &self,
        table: &Table<R, P>,
        range: impl KeyRange<R::Key>,
        projection: Pr,
        each: impl FnMut(R::Key, Pr::Value),
    ) -> Result<usize, Abort>
    where
        R: Record,
        R::Index: InOrder,
        Pr: Projection<R>,
    {
        let some = |tx: &Tx<'_, P>, rest: &mut Rest| {
            let rows: Vec<_> = table
                .scan(tx, rest.clone(), projection)
                .take(ROWS_AT_ONCE)
                .collect::<Result<_, _>>()?;
            rows.last().inspect(|(last, _)| rest.0.begin_after(last.words().as_ref()));
            Ok(rows)
        };
        self.in_parts(range.word_range(), &some, each)
    }

    /// As [`Snapshot::for_each`], from the last key to the first.
    ///
    /// # Errors
    /// As [`Snapshot::for_each`].
    pub fn for_each_rev<R, Pr>(
        &self,
        table: &Table<R, P>,
        range: impl KeyRange<R::Key>,
        projection: Pr,
        each: impl FnMut(R::Key, Pr::Value),
    ) -> Result<usize, Abort>
    where
        R: Record,
        R::Index: InOrder,
        Pr: Projection<R>,
    {
        let some = |tx: &Tx<'_, P>, rest: &mut Rest| {
            let rows: Vec<_> = table
                .scan_rev(tx, rest.clone(), projection)
                .take(ROWS_AT_ONCE)
                .collect::<Result<_, _>>()?;
            rows.last().inspect(|(last, _)| rest.0.end_before(last.words().as_ref()));
            Ok(rows)
        };
        self.in_parts(range.word_range(), &some, each)
    }

    /// As [`Snapshot::for_each`], for the rows whose keys in the ordered index `index` lie in
    /// `range`, in the order of these keys. Rows with equal keys come in the order of their primary
    /// keys.
    ///
    /// # Errors
    /// As [`Snapshot::for_each`].
    pub fn for_each_by<R, K, Pr>(
        &self,
        index: &Index<R, K, Ordered, P>,
        range: impl KeyRange<K>,
        projection: Pr,
        each: impl FnMut(R::Key, Pr::Value),
    ) -> Result<usize, Abort>
    where
        R: Record,
        K: Key,
        Pr: Projection<R>,
    {
        let some = |tx: &Tx<'_, P>, rest: &mut Rest| {
            let mut scan = index.scan_entries(tx, rest.0.clone(), Direction::Forward, projection);
            let rows = scan.by_ref().take(ROWS_AT_ONCE).collect::<Result<_, _>>()?;
            scan.last_entry().inspect(|last| rest.0.begin_after(last.as_slice()));
            Ok(rows)
        };
        self.in_parts(index.entry_range(&range.word_range()), &some, each)
    }

    /// As [`Snapshot::for_each_by`], from the last row to the first.
    ///
    /// # Errors
    /// As [`Snapshot::for_each`].
    pub fn for_each_by_rev<R, K, Pr>(
        &self,
        index: &Index<R, K, Ordered, P>,
        range: impl KeyRange<K>,
        projection: Pr,
        each: impl FnMut(R::Key, Pr::Value),
    ) -> Result<usize, Abort>
    where
        R: Record,
        K: Key,
        Pr: Projection<R>,
    {
        let some = |tx: &Tx<'_, P>, rest: &mut Rest| {
            let mut scan = index.scan_entries(tx, rest.0.clone(), Direction::Reverse, projection);
            let rows = scan.by_ref().rev().take(ROWS_AT_ONCE).collect::<Result<_, _>>()?;
            scan.last_entry().inspect(|last| rest.0.end_before(last.as_slice()));
            Ok(rows)
        };
        self.in_parts(index.entry_range(&range.word_range()), &some, each)
    }

    /// As [`Snapshot::for_each`], for all rows of a hashed table, in no particular order. The call
    /// first lists the keys of the table; the memory limit does not count this list.
    ///
    /// # Errors
    /// As [`Snapshot::for_each`].
    pub fn for_each_unordered<R, Pr>(
        &self,
        table: &Table<R, P>,
        projection: Pr,
        mut each: impl FnMut(R::Key, Pr::Value),
    ) -> Result<usize, Abort>
    where
        R: Record<Index = Hashed>,
        Pr: Projection<R>,
    {
        // Records that the snapshot sees stay in the index as long as the snapshot is open.
        let mut keys = Vec::new();
        self.run_body(&mut |tx| {
            keys = table.linked_keys(tx)?;
            Ok(())
        })?;
        let mut count = 0;
        for keys in keys.chunks(ROWS_AT_ONCE) {
            let mut rows = Vec::new();
            self.run_body(&mut |tx| {
                let read = |&key: &R::Key| {
                    table.get(tx, key, projection).map(|row| row.map(|row| (key, row)))
                };
                rows = keys
                    .iter()
                    .filter_map(|key| read(key).transpose())
                    .collect::<Result<_, Abort>>()?;
                Ok(())
            })?;
            count += rows.len();
            rows.into_iter().for_each(|(key, value)| each(key, value));
        }
        Ok(count)
    }

    /// Goes through a range in parts. In each transaction, `some` reads some rows and removes them
    /// from the rest of the range.
    fn in_parts<K, V>(
        &self,
        range: WordRange,
        some: &Part<'_, P, K, V>,
        mut each: impl FnMut(K, V),
    ) -> Result<usize, Abort> {
        let mut rest = Rest(range);
        let mut count = 0;
        loop {
            let mut rows = Vec::new();
            self.run_body(&mut |tx| {
                rows = some(tx, &mut rest)?;
                Ok(())
            })?;
            if rows.is_empty() {
                return Ok(count);
            }
            count += rows.len();
            rows.into_iter().for_each(|(key, value)| each(key, value));
        }
    }
}

/// A function that reads some rows of the rest of a range, and removes them from that rest.
type Part<'a, P, K, V> = dyn Fn(&Tx<'_, P>, &mut Rest) -> Result<Vec<(K, V)>, Abort> + 'a;

/// The rest of a range.
#[derive(Clone)]
struct Rest(WordRange);

impl<K: Key> KeyRange<K> for Rest {
    fn word_range(&self) -> WordRange {
        self.0.clone()
    }
}

impl<P: Versioned> Drop for Snapshot<P> {
    fn drop(&mut self) {
        P::Versions::close_snapshot(&self.inner.engine.clock, self.ts, self.since);
    }
}

impl<P: Versioned> std::fmt::Debug for Snapshot<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot")
            .field("protocol", &self.inner.engine.properties.name)
            .field("ts", &self.ts)
            .finish_non_exhaustive()
    }
}
