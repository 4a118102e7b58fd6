//! The rows of objects whose operations are the same for fields and boxed values.

#![forbid(unsafe_code)]

use super::boxed::Boxed;
use super::entry::Entry;
use super::value_types::ValueTypes;
use super::words::Image;
use crate::api::{Table, ValueTable};
use crate::engine::Protocol;
use crate::error::Abort;
use crate::index::Direction;
use crate::record::CellAt;
use crate::schema::{Buffer, Field, IndexKind, Key, KeyRange};
use crate::txn::Tx;

/// A table of values of type `V`, found by keys of type `K`.
pub trait ElementTable<K: Key, V: ValueTypes, P: Protocol> {
    /// Returns the value of a key, which has one.
    ///
    /// # Errors
    /// [`Abort::NotFound`] if the key has none, in an attempt that is going to fail.
    fn read<'t>(&'t self, tx: &'t Tx<'_, P>, key: K) -> Result<V::Seen<'t>, Abort>;

    /// Replaces the value of a key, which has one, without observing it.
    fn set(&self, tx: &Tx<'_, P>, key: K, value: V::Value) -> Result<(), Abort>;

    /// Deletes a key, which has a value.
    fn delete(&self, tx: &Tx<'_, P>, key: K) -> Result<(), Abort>;

    /// Inserts a value under the first of `keys` that has none.
    fn insert_under(
        &self,
        tx: &Tx<'_, P>,
        keys: impl FnMut() -> K,
        value: V::Value,
    ) -> Result<(), Abort>;

    /// Gives a value the key that is the number in `base`, and adds one to that number. The keys
    /// have one word.
    #[doc(hidden)]
    fn append(&self, tx: &Tx<'_, P>, base: CellAt, value: V::Value) -> Result<(), Abort>;

    /// Takes a value that an operation has refused, which is dropped after the transaction.
    fn refuse(&self, tx: &Tx<'_, P>, value: V::Value) -> Result<(), Abort>;

    /// Returns the values of the keys in a range, in their order. The table has an order.
    #[doc(hidden)]
    fn entries_among<'t>(
        &'t self,
        tx: &'t Tx<'_, P>,
        keys: impl KeyRange<K>,
    ) -> impl Iterator<Item = Result<(K, V::Seen<'t>), Abort>>;

    /// Returns all values with their keys: in the order of the keys if the table has one.
    fn entries<'t>(
        &'t self,
        tx: &'t Tx<'_, P>,
    ) -> impl Iterator<Item = Result<(K, V::Seen<'t>), Abort>>;
}

impl<K: Key, V: Field, I: IndexKind, P: Protocol> ElementTable<K, V, P>
    for Table<Entry<K, V, I>, P>
{
    fn read<'t>(&'t self, tx: &'t Tx<'_, P>, key: K) -> Result<V, Abort> {
        self.find_key(tx, &key)?.read(Entry::<K, V, I>::VALUE)
    }

    fn set(&self, tx: &Tx<'_, P>, key: K, value: V) -> Result<(), Abort> {
        self.find_key(tx, &key)?.update(Entry::<K, V, I>::VALUE.set(value))
    }

    fn delete(&self, tx: &Tx<'_, P>, key: K) -> Result<(), Abort> {
        self.find_key(tx, &key)?.delete()
    }

    fn insert_under(
        &self,
        tx: &Tx<'_, P>,
        mut keys: impl FnMut() -> K,
        value: V,
    ) -> Result<(), Abort> {
        while !self.insert_if_absent(tx, Entry::new(keys(), value))? {}
        Ok(())
    }

    fn append(&self, tx: &Tx<'_, P>, base: CellAt, value: V) -> Result<(), Abort> {
        let mut image = Image::<V>::ZERO;
        (0..V::WORDS).for_each(|index| image.set(index, value.word(index)));
        tx.state.borrow_mut().append(tx.engine, self.core(), base, image.words())
    }

    fn refuse(&self, _tx: &Tx<'_, P>, _value: V) -> Result<(), Abort> {
        Ok(())
    }

    fn entries_among<'t>(
        &'t self,
        tx: &'t Tx<'_, P>,
        keys: impl KeyRange<K>,
    ) -> impl Iterator<Item = Result<(K, V), Abort>> {
        self.scan_words(tx, self.kept_range(&keys), Direction::Forward, Entry::<K, V, I>::VALUE)
    }

    fn entries<'t>(&'t self, tx: &'t Tx<'_, P>) -> impl Iterator<Item = Result<(K, V), Abort>> {
        self.iter(tx, Entry::<K, V, I>::VALUE)
    }
}

impl<K: Key, T: Send + Sync + 'static, I: IndexKind, P: Protocol> ElementTable<K, Boxed<T>, P>
    for ValueTable<K, T, I, P>
{
    fn read<'t>(&'t self, tx: &'t Tx<'_, P>, key: K) -> Result<&'t T, Abort> {
        self.read(tx, key)
    }

    fn set(&self, tx: &Tx<'_, P>, key: K, value: T) -> Result<(), Abort> {
        self.set(tx, key, value)
    }

    fn delete(&self, tx: &Tx<'_, P>, key: K) -> Result<(), Abort> {
        self.delete(tx, key)
    }

    fn insert_under(&self, tx: &Tx<'_, P>, keys: impl FnMut() -> K, value: T) -> Result<(), Abort> {
        self.insert_under(tx, keys, value)
    }

    fn append(&self, tx: &Tx<'_, P>, base: CellAt, value: T) -> Result<(), Abort> {
        self.append(tx, base, value)
    }

    fn refuse(&self, tx: &Tx<'_, P>, value: T) -> Result<(), Abort> {
        self.refuse(tx, value)
    }

    fn entries_among<'t>(
        &'t self,
        tx: &'t Tx<'_, P>,
        keys: impl KeyRange<K>,
    ) -> impl Iterator<Item = Result<(K, &'t T), Abort>> {
        self.among(tx, keys)
    }

    fn entries<'t>(&'t self, tx: &'t Tx<'_, P>) -> impl Iterator<Item = Result<(K, &'t T), Abort>> {
        self.iter(tx)
    }
}
