//! Maps of values of any type.

#![forbid(unsafe_code)]

use super::boxed::Boxed;
use super::map::TMap;
use crate::engine::Protocol;
use crate::error::Abort;
use crate::schema::{AsKey, InOrder, IndexKind, Key, KeyRange};
use crate::txn::Tx;
use std::borrow::Borrow;

/// Returns a key that a row can have; `None` if it is a text that is too long.
fn owned<K: Key>(key: impl AsKey<K>) -> Option<K> {
    key.into_key().map(|key| *key.borrow())
}

/// Maps of values of any type.
impl<K: Key, T: Send + Sync + 'static, P: Protocol, I: IndexKind> TMap<K, Boxed<T>, P, I> {
    /// Returns the value of a key.
    ///
    /// # Errors
    /// [Those of every operation](TMap#errors-of-every-operation).
    pub fn get<'t>(&self, tx: &'t Tx<'_, P>, key: impl AsKey<K>) -> Result<Option<&'t T>, Abort> {
        owned(key).map_or(Ok(None), |key| self.table.get(tx, key))
    }

    /// As `get`, for a transaction that is going to write the entry
    /// ([`Table::get_for_update`](crate::Table::get_for_update)).
    ///
    /// # Errors
    /// [Those of every operation](TMap#errors-of-every-operation).
    pub fn get_for_update<'t>(
        &self,
        tx: &'t Tx<'_, P>,
        key: impl AsKey<K>,
    ) -> Result<Option<&'t T>, Abort> {
        owned(key).map_or(Ok(None), |key| self.table.get_for_update(tx, key))
    }

    /// Returns whether the map has a key.
    ///
    /// # Errors
    /// [Those of every operation](TMap#errors-of-every-operation).
    pub fn contains_key(&self, tx: &Tx<'_, P>, key: impl AsKey<K>) -> Result<bool, Abort> {
        Ok(self.get(tx, key)?.is_some())
    }

    /// Sets the value of a key, without observing whether there was one.
    ///
    /// # Errors
    /// [Those of every operation](TMap#errors-of-every-operation).
    pub fn put(&self, tx: &Tx<'_, P>, key: K, value: T) -> Result<(), Abort> {
        self.table.put(tx, key, value)
    }

    /// Sets the value of a key, and returns the one before. `put` observes less.
    ///
    /// # Errors
    /// [Those of every operation](TMap#errors-of-every-operation).
    pub fn insert<'t>(&self, tx: &'t Tx<'_, P>, key: K, value: T) -> Result<Option<&'t T>, Abort> {
        self.table.swap(tx, key, value)
    }

    /// Sets the value of a key that has none; returns whether that was so.
    ///
    /// # Errors
    /// [Those of every operation](TMap#errors-of-every-operation).
    pub fn insert_if_absent(&self, tx: &Tx<'_, P>, key: K, value: T) -> Result<bool, Abort> {
        self.table.insert_if_absent(tx, key, value)
    }

    /// Returns the value of a key. If it has none, sets it first to what `value` returns.
    ///
    /// # Errors
    /// [Those of every operation](TMap#errors-of-every-operation).
    pub fn get_or_insert_with<'t>(
        &self,
        tx: &'t Tx<'_, P>,
        key: K,
        value: impl FnOnce() -> T,
    ) -> Result<&'t T, Abort> {
        if let Some(present) = self.table.get(tx, key)? {
            return Ok(present);
        }
        self.table.put(tx, key, value())?;
        self.table.read(tx, key)
    }

    /// Replaces the value of a key by what `change` makes of it; returns whether the key is there.
    ///
    /// # Errors
    /// [Those of every operation](TMap#errors-of-every-operation).
    pub fn replace_with(
        &self,
        tx: &Tx<'_, P>,
        key: impl AsKey<K>,
        change: impl FnOnce(&T) -> T,
    ) -> Result<bool, Abort> {
        let Some(key) = owned(key) else { return Ok(false) };
        let Some(value) = self.table.get(tx, key)? else { return Ok(false) };
        self.table.set(tx, key, change(value))?;
        Ok(true)
    }

    /// Clones the value of a key, lets `change` change the clone, and sets the value to it; returns
    /// what `change` returns. `None` if the key is not there.
    ///
    /// # Errors
    /// [Those of every operation](TMap#errors-of-every-operation).
    pub fn modify<U>(
        &self,
        tx: &Tx<'_, P>,
        key: impl AsKey<K>,
        change: impl FnOnce(&mut T) -> U,
    ) -> Result<Option<U>, Abort>
    where
        T: Clone,
    {
        let Some(key) = owned(key) else { return Ok(None) };
        let Some(value) = self.table.get(tx, key)? else { return Ok(None) };
        let mut value = value.clone();
        let result = change(&mut value);
        self.table.set(tx, key, value)?;
        Ok(Some(result))
    }

    /// Removes a key, and returns its value. `delete` observes less.
    ///
    /// # Errors
    /// [Those of every operation](TMap#errors-of-every-operation).
    pub fn remove<'t>(
        &self,
        tx: &'t Tx<'_, P>,
        key: impl AsKey<K>,
    ) -> Result<Option<&'t T>, Abort> {
        let Some(key) = owned(key) else { return Ok(None) };
        let value = self.table.get(tx, key)?;
        if value.is_some() {
            self.table.delete(tx, key)?;
        }
        Ok(value)
    }

    /// Removes a key; returns whether it was there.
    ///
    /// # Errors
    /// [Those of every operation](TMap#errors-of-every-operation).
    pub fn delete(&self, tx: &Tx<'_, P>, key: impl AsKey<K>) -> Result<bool, Abort> {
        owned(key).map_or(Ok(false), |key| self.table.delete_if_present(tx, key))
    }

    /// Returns all entries: in the order of their keys if the map has one, otherwise in no
    /// particular order. The transaction observes the whole map.
    pub fn iter<'t>(
        &'t self,
        tx: &'t Tx<'_, P>,
    ) -> impl Iterator<Item = Result<(K, &'t T), Abort>> {
        self.table.iter(tx)
    }
}

/// Maps of values of any type, in the order of keys.
impl<K: Key, T: Send + Sync + 'static, P: Protocol, I: InOrder> TMap<K, Boxed<T>, P, I> {
    /// Returns the entries of a range of keys, in their order
    /// ([`Table::scan`](crate::Table::scan)).
    pub fn range<'t>(
        &'t self,
        tx: &'t Tx<'_, P>,
        range: impl KeyRange<K>,
    ) -> impl DoubleEndedIterator<Item = Result<(K, &'t T), Abort>> {
        self.table.scan(tx, range)
    }

    /// Returns the entry with the smallest key.
    ///
    /// # Errors
    /// [Those of every operation](TMap#errors-of-every-operation).
    pub fn first<'t>(&'t self, tx: &'t Tx<'_, P>) -> Result<Option<(K, &'t T)>, Abort> {
        self.iter(tx).next().transpose()
    }

    /// Returns the entry with the largest key.
    ///
    /// # Errors
    /// [Those of every operation](TMap#errors-of-every-operation).
    pub fn last<'t>(&'t self, tx: &'t Tx<'_, P>) -> Result<Option<(K, &'t T)>, Abort> {
        self.range(tx, ..).next_back().transpose()
    }

    /// Removes the entry with the smallest key, and returns it.
    ///
    /// # Errors
    /// [Those of every operation](TMap#errors-of-every-operation).
    pub fn pop_first<'t>(&'t self, tx: &'t Tx<'_, P>) -> Result<Option<(K, &'t T)>, Abort> {
        self.pop(tx, self.first(tx)?)
    }

    /// Removes the entry with the largest key, and returns it.
    ///
    /// # Errors
    /// [Those of every operation](TMap#errors-of-every-operation).
    pub fn pop_last<'t>(&'t self, tx: &'t Tx<'_, P>) -> Result<Option<(K, &'t T)>, Abort> {
        self.pop(tx, self.last(tx)?)
    }

    fn pop<'t>(
        &self,
        tx: &Tx<'_, P>,
        entry: Option<(K, &'t T)>,
    ) -> Result<Option<(K, &'t T)>, Abort> {
        if let Some((key, _)) = entry {
            self.table.delete(tx, key)?;
        }
        Ok(entry)
    }
}
