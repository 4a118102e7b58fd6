//! Tables whose rows are values of any Rust type, found by their keys.
//!
//! The row of such a table is one word, which names the value (`record/value.rs`). The word never
//! leaves this file, so no program writes or follows another one (BV2): the row type is not public,
//! so a program that opens the table by its name gets [`Error::TableType`], or
//! [`Error::ReservedName`] if the name is the engine's own; and the tables are volatile, so that
//! no file has such a word.
//!
//! A reference to a value lives as long as the borrow of the transaction, and so no longer than the
//! attempt. A value that is replaced or deleted is dropped when no attempt and no snapshot sees it
//! any more, by a session that has ended a transaction and holds nothing; so a destructor may run
//! transactions. Its panic is reported by the panic hook alone. The memory limit counts the rows,
//! not the values.

#![forbid(unsafe_code)]

use super::database::{Database, find_table};
use super::scan::Scan;
use super::table::Table;
use crate::catalog::TableOptions;
use crate::engine::{Protocol, TableCore};
use crate::error::{Abort, Error};
use crate::handle::Handle;
use crate::index::Direction;
use crate::protocols::DefaultProtocol;
use crate::record::CellAt;
use crate::record::value::{Value, follow};
use crate::schema::{
    Column, Group, Hashed, InOrder, IndexKind, Key, KeyRange, Meta, Record, RowReader, RowType,
    RowWriter,
};
use crate::txn::Tx;
use std::fmt::{self, Debug, Formatter};
use std::marker::PhantomData;
use std::sync::Arc;

/// A row of a table of values: its key, and the word that names the value of type `T`.
pub(crate) struct ValueRow<K, T, I> {
    key: K,
    word: u64,
    /// A table takes values and returns them, so it is invariant in their type.
    of: PhantomData<fn(T) -> (T, I)>,
}

impl<K: Copy, T, I> Clone for ValueRow<K, T, I> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Copy, T, I> Copy for ValueRow<K, T, I> {}

impl<K: Key, T: Send + Sync + 'static, I: IndexKind> Record for ValueRow<K, T, I> {
    type Key = K;
    type Index = I;
    type Image = [u64; 1];
    const META: Meta = Meta::new("value", &[Group::new("value", 1)]);

    fn key(&self) -> K {
        self.key
    }

    fn store(&self, row: &mut RowWriter<'_>) {
        row.words()[0] = self.word;
    }

    fn load(key: &K, row: &RowReader<'_>) -> Self {
        ValueRow { key: *key, word: row.words()[0], of: PhantomData }
    }
}

impl<K: Key, T: Send + Sync + 'static, I: IndexKind> ValueRow<K, T, I> {
    const WORD: Column<Self, u64> = Column::new(0, 0, "value");
}

/// A table of values of type `T`, found by keys of type `K`, in hashed or in key order.
pub struct ValueTable<
    K: Key,
    T: Send + Sync + 'static,
    I: IndexKind = Hashed,
    P: Protocol = DefaultProtocol,
> {
    rows: Table<ValueRow<K, T, I>, P>,
}

impl<K: Key, T: Send + Sync + 'static, I: IndexKind, P: Protocol> Clone for ValueTable<K, T, I, P> {
    fn clone(&self) -> Self {
        ValueTable { rows: self.rows.clone() }
    }
}

impl<K: Key, T: Send + Sync + 'static, I: IndexKind, P: Protocol> Debug for ValueTable<K, T, I, P> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.rows.fmt(f)
    }
}

impl<K: Key, T: Send + Sync + 'static, I: IndexKind, P: Protocol> ValueTable<K, T, I, P> {
    /// Returns the table of this name, which is made if there is none. It is volatile, also in a
    /// database with files.
    ///
    /// # Errors
    /// As [`Database::table_with`]: a table of this name has rows of another type, or other
    /// options.
    pub(crate) fn open(
        db: &Database<P>,
        name: &str,
        options: TableOptions,
    ) -> Result<ValueTable<K, T, I, P>, Error> {
        // Before any value can be installed.
        db.inner.note_values();
        let row = RowType::of::<ValueRow<K, T, I>>();
        let core = find_table(&db.inner, name, options.values(), &row)?;
        Ok(ValueTable { rows: Table::new(db.inner.clone(), core) })
    }

    /// Returns a handle on a table that exists, and that was opened with the same types.
    pub(crate) fn over(inner: &Handle<P>, core: Arc<TableCore>) -> ValueTable<K, T, I, P> {
        ValueTable { rows: Table::new(inner.clone(), core) }
    }

    pub(crate) fn shared_core(&self) -> &Arc<TableCore> {
        self.rows.shared_core()
    }

    /// Returns the value of a key; `None` if the key has none.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub(crate) fn get<'t>(&self, tx: &'t Tx<'_, P>, key: K) -> Result<Option<&'t T>, Abort> {
        let word = self.rows.get(tx, key, ValueRow::WORD)?;
        Ok(word.map(|word| follow(word, tx)))
    }

    /// Returns the value of a key.
    ///
    /// # Errors
    /// As [`Table::read`]: [`Abort::NotFound`] if the key has none.
    pub(crate) fn read<'t>(&self, tx: &'t Tx<'_, P>, key: K) -> Result<&'t T, Abort> {
        self.get(tx, key)?.ok_or_else(|| self.rows.refuse(tx, Abort::NotFound, &key))
    }

    /// Returns the value of a key, which other transactions cannot write until this one ends.
    ///
    /// # Errors
    /// As [`Table::get_for_update`].
    pub(crate) fn get_for_update<'t>(
        &self,
        tx: &'t Tx<'_, P>,
        key: K,
    ) -> Result<Option<&'t T>, Abort> {
        let word = self.rows.get_for_update(tx, key, ValueRow::WORD)?;
        Ok(word.map(|word| follow(word, tx)))
    }

    /// Inserts a value.
    ///
    /// # Errors
    /// As [`Table::insert`]: [`Abort::Duplicate`] if the key has one.
    pub(crate) fn insert(&self, tx: &Tx<'_, P>, key: K, value: T) -> Result<(), Abort> {
        self.rows.insert(tx, self.stage(tx, key, value)?)
    }

    /// Inserts a value if the key has none. Returns whether it was inserted.
    ///
    /// # Errors
    /// As [`Table::insert_if_absent`].
    pub(crate) fn insert_if_absent(&self, tx: &Tx<'_, P>, key: K, value: T) -> Result<bool, Abort> {
        self.rows.insert_if_absent(tx, self.stage(tx, key, value)?)
    }

    /// Gives a key a value, whether or not it has one.
    ///
    /// # Errors
    /// As [`Table::put`].
    pub(crate) fn put(&self, tx: &Tx<'_, P>, key: K, value: T) -> Result<(), Abort> {
        self.rows.put(tx, self.stage(tx, key, value)?)
    }

    /// Replaces the value of a key, which is not read.
    ///
    /// # Errors
    /// As [`Table::update`]: [`Abort::NotFound`] if the key has none.
    pub(crate) fn set(&self, tx: &Tx<'_, P>, key: K, value: T) -> Result<(), Abort> {
        let row = self.stage(tx, key, value)?;
        self.rows.update(tx, key, ValueRow::WORD.set(row.word))
    }

    /// Gives a key a value, and returns the value that it had.
    ///
    /// # Errors
    /// As [`ValueTable::get`] and [`ValueTable::put`].
    pub(crate) fn swap<'t>(
        &self,
        tx: &'t Tx<'_, P>,
        key: K,
        value: T,
    ) -> Result<Option<&'t T>, Abort> {
        let row = self.stage(tx, key, value)?;
        let old = self.get(tx, key)?;
        self.rows.put(tx, row)?;
        Ok(old)
    }

    /// Replaces the value of a key, and returns the value that it had.
    ///
    /// # Errors
    /// As [`ValueTable::read`] and [`ValueTable::set`].
    pub(crate) fn replace<'t>(&self, tx: &'t Tx<'_, P>, key: K, value: T) -> Result<&'t T, Abort> {
        let row = self.stage(tx, key, value)?;
        let old = self.read(tx, key)?;
        self.rows.update(tx, key, ValueRow::WORD.set(row.word))?;
        Ok(old)
    }

    /// Keeps a value that no operation is to write until the attempt has ended, so that it is not
    /// dropped within the transaction.
    ///
    /// # Errors
    /// Those of every operation that writes.
    pub(crate) fn refuse(&self, tx: &Tx<'_, P>, value: T) -> Result<(), Abort> {
        tx.state.borrow_mut().stage_value(tx.engine, self.rows.core(), Value::new(value))?;
        Ok(())
    }

    /// Replaces the value of a key by what `change` makes of it.
    ///
    /// # Errors
    /// As [`ValueTable::read`] and [`ValueTable::set`].
    pub(crate) fn replace_with(
        &self,
        tx: &Tx<'_, P>,
        key: K,
        change: impl FnOnce(&T) -> T,
    ) -> Result<(), Abort> {
        let new = change(self.read(tx, key)?);
        self.set(tx, key, new)
    }

    /// Deletes the value of a key.
    ///
    /// # Errors
    /// As [`Table::delete`]: [`Abort::NotFound`] if the key has none.
    pub(crate) fn delete(&self, tx: &Tx<'_, P>, key: K) -> Result<(), Abort> {
        self.note_write(tx)?;
        self.rows.delete(tx, key)
    }

    /// Deletes the value of a key, if the key has one. Returns whether it had.
    ///
    /// # Errors
    /// As [`Table::delete_if_present`].
    pub(crate) fn delete_if_present(&self, tx: &Tx<'_, P>, key: K) -> Result<bool, Abort> {
        self.note_write(tx)?;
        self.rows.delete_if_present(tx, key)
    }

    /// Returns all keys that have a value, in no particular order, as the transaction sees them
    /// now.
    pub(crate) fn keys<'t>(&'t self, tx: &'t Tx<'_, P>) -> Scan<'t, impl Record<Key = K>, P, ()> {
        self.rows.iter(tx, ())
    }

    /// Returns all values with their keys, in no particular order, as the transaction sees them
    /// now.
    pub(crate) fn iter<'t>(
        &'t self,
        tx: &'t Tx<'_, P>,
    ) -> impl Iterator<Item = Result<(K, &'t T), Abort>> {
        let rows = self.rows.iter(tx, ValueRow::WORD);
        rows.map(move |row| row.map(|(key, word)| (key, follow(word, tx))))
    }

    /// Returns the values of the keys in a range of a table with an order.
    pub(crate) fn among<'t>(
        &'t self,
        tx: &'t Tx<'_, P>,
        keys: impl KeyRange<K>,
    ) -> impl Iterator<Item = Result<(K, &'t T), Abort>> {
        let range = self.rows.kept_range(&keys);
        let rows = self.rows.scan_words(tx, range, Direction::Forward, ValueRow::WORD);
        rows.map(move |row| row.map(|(key, word)| (key, follow(word, tx))))
    }

    /// Returns the values of a range of keys, in the order of the keys, as the transaction sees
    /// them now.
    pub(crate) fn scan<'t>(
        &'t self,
        tx: &'t Tx<'_, P>,
        range: impl KeyRange<K>,
    ) -> impl DoubleEndedIterator<Item = Result<(K, &'t T), Abort>>
    where
        I: InOrder,
    {
        let rows = self.rows.scan(tx, range, ValueRow::WORD);
        rows.map(move |row| row.map(|(key, word)| (key, follow(word, tx))))
    }

    /// Inserts a value under the first of `keys` that has none.
    ///
    /// # Errors
    /// As [`Table::insert_if_absent`].
    pub(crate) fn insert_under(
        &self,
        tx: &Tx<'_, P>,
        mut keys: impl FnMut() -> K,
        value: T,
    ) -> Result<(), Abort> {
        let mut row = self.stage(tx, keys(), value)?;
        while !self.rows.insert_if_absent(tx, row)? {
            row.key = keys();
        }
        Ok(())
    }

    /// Appends a value: gives it the key that is the number in `base` (`State::append`).
    ///
    /// # Errors
    /// As `State::append`.
    pub(crate) fn append(&self, tx: &Tx<'_, P>, base: CellAt, value: T) -> Result<(), Abort> {
        let word = self.stage_word(tx, value)?;
        tx.state.borrow_mut().append(tx.engine, self.rows.core(), base, &[word])
    }

    /// Moves a value to memory of its own, which the attempt owns, and returns the row that names
    /// it. Operations call this first: if they fail later, the value is dropped when the attempt
    /// has ended, and not within it.
    fn stage(&self, tx: &Tx<'_, P>, key: K, value: T) -> Result<ValueRow<K, T, I>, Abort> {
        let word = self.stage_word(tx, value)?;
        Ok(ValueRow { key, word, of: PhantomData })
    }

    /// Moves a value to memory of its own, which the attempt owns, and returns the word that names
    /// it.
    fn stage_word(&self, tx: &Tx<'_, P>, value: T) -> Result<u64, Abort> {
        let value = Value::new(value);
        tx.state.borrow_mut().stage_value(tx.engine, self.rows.core(), value)
    }

    fn note_write(&self, tx: &Tx<'_, P>) -> Result<(), Abort> {
        tx.state.borrow_mut().note_value_write(tx.engine, self.rows.core())
    }
}
