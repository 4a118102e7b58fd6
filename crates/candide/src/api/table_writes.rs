//! Changes of rows that are found by their keys, and reads that lock.

#![forbid(unsafe_code)]

use super::row::if_present;
use super::table::Table;
use crate::engine::Protocol;
use crate::error::Abort;
use crate::schema::{AsKey, Projection, Record, Update, Updater};
use crate::txn::Tx;

impl<R: Record, P: Protocol> Table<R, P> {
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
    /// # use candide::{Abort, Database, Record};
    /// # #[derive(Record, Debug, Clone, Copy)]
    /// # struct Counter { #[key] id: u64, next: u64 }
    /// let db = Database::new();
    /// let counters = db.table::<Counter>("counters")?;
    /// db.run(|tx| counters.insert(tx, Counter { id: 1, next: 7 }))?;
    /// let ticket = db.run(|tx| {
    ///     let next = counters.get_for_update(tx, 1, Counter::NEXT)?.unwrap_or(0);
    ///     // ... much that depends on it ...
    ///     counters.update(tx, 1, Counter::NEXT.set(next + 1))?;
    ///     Ok(next)
    /// })?;
    /// assert_eq!(ticket, 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [every operation](Table#errors-of-every-operation); [`Abort::Locked`], a conflict,
    /// if another transaction has locked one of the groups.
    #[doc(alias = "select_for_update")]
    pub fn get_for_update<Pr: Projection<R>>(
        &self,
        tx: &Tx<'_, P>,
        key: impl AsKey<R::Key>,
        projection: Pr,
    ) -> Result<Option<Pr::Value>, Abort> {
        match if_present(self.find_to_write(tx, key))? {
            Some(row) => row.get_for_update(projection),
            None => Ok(None),
        }
    }

    /// As [`Table::get_for_update`], for a row that must exist.
    ///
    /// # Errors
    /// [`Abort::NotFound`] if there is no row with this key.
    pub fn read_for_update<Pr: Projection<R>>(
        &self,
        tx: &Tx<'_, P>,
        key: impl AsKey<R::Key>,
        projection: Pr,
    ) -> Result<Pr::Value, Abort> {
        self.find_to_write(tx, key)?.read_for_update(projection)
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
    #[doc(alias = "set")]
    pub fn update(
        &self,
        tx: &Tx<'_, P>,
        key: impl AsKey<R::Key>,
        update: impl Update<R>,
    ) -> Result<(), Abort> {
        self.find_to_write(tx, key)?.update(update)
    }

    /// As [`Table::update`], if a row with this key exists; returns whether it exists.
    ///
    /// # Errors
    /// As [`Table::update`], except [`Abort::NotFound`].
    pub fn update_if_present(
        &self,
        tx: &Tx<'_, P>,
        key: impl AsKey<R::Key>,
        update: impl Update<R>,
    ) -> Result<bool, Abort> {
        match if_present(self.find_to_write(tx, key))? {
            Some(row) => row.update_if_present(update),
            None => Ok(false),
        }
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
        key: impl AsKey<R::Key>,
        updater: impl Updater<R>,
    ) -> Result<(), Abort> {
        self.find_to_write(tx, key)?.update_with(updater)
    }

    /// Reads columns of a row, lets `change` change them, and writes them back; returns what
    /// `change` returns. Columns that indexes contain are changed by this function.
    ///
    /// # Errors
    /// [`Abort::NotFound`] if there is no row with this key, [`Abort::MemoryLimit`] if there is no
    /// memory for an index entry or for a version (see [`Table::update`]). [At the
    /// end](Table#unique-keys), [`Abort::NotUnique`] if another row has, in a unique index, the key
    /// of the changed row.
    ///
    /// # Panics
    /// If `change` changes the key, in a [`Whole`](crate::Whole) row or in a
    /// [`KeyColumn`](crate::schema::KeyColumn). The row is unchanged then.
    #[doc(alias = "entry")]
    #[doc(alias = "and_modify")]
    #[doc(alias = "get_mut")]
    pub fn modify<Pr: Projection<R>, T>(
        &self,
        tx: &Tx<'_, P>,
        key: impl AsKey<R::Key>,
        projection: Pr,
        change: impl FnOnce(&mut Pr::Value) -> T,
    ) -> Result<T, Abort> {
        self.find_to_write(tx, key)?.modify(projection, change)
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
        key: impl AsKey<R::Key>,
        projection: Pr,
        change: impl FnOnce(&mut Pr::Value) -> T,
    ) -> Result<Option<T>, Abort> {
        if_present(self.modify(tx, key, projection, change))
    }

    /// Deletes a row.
    ///
    /// # Errors
    /// [`Abort::NotFound`] if there is no row with this key.
    #[doc(alias = "remove")]
    pub fn delete(&self, tx: &Tx<'_, P>, key: impl AsKey<R::Key>) -> Result<(), Abort> {
        self.find_to_write(tx, key)?.delete()
    }

    /// Deletes the row with this key, if it exists; returns whether it existed.
    ///
    /// # Errors
    /// Those of [every operation](Table#errors-of-every-operation).
    #[doc(alias = "remove")]
    pub fn delete_if_present(
        &self,
        tx: &Tx<'_, P>,
        key: impl AsKey<R::Key>,
    ) -> Result<bool, Abort> {
        match if_present(self.find_to_write(tx, key))? {
            Some(row) => row.delete_if_present(),
            None => Ok(false),
        }
    }

    /// Inserts `row` if no row with its key exists, otherwise applies `update` to the existing row;
    /// returns whether `row` was inserted.
    ///
    /// # Errors
    /// As [`Table::insert_if_absent`] and [`Table::update`], except [`Abort::NotFound`].
    #[doc(alias = "entry")]
    #[doc(alias = "on_conflict_do_update")]
    #[doc(alias = "or_insert")]
    pub fn upsert(&self, tx: &Tx<'_, P>, row: R, update: impl Update<R>) -> Result<bool, Abort> {
        let inserted = self.insert_unless::<true>(tx, &row)?;
        if !inserted {
            self.update(tx, row.key(), update)?;
        }
        Ok(inserted)
    }
}
