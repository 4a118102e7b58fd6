//! Maps: by hash, and in the order of keys.

#![forbid(unsafe_code)]

use super::directory::{Fill, ObjectType, check_type, find_object};
use super::entry::Entry;
use super::maps::MapTable;
use super::owner::{Owned, Owner, run_internal};
use super::stored::Stored;
use super::words::short_name;
use crate::api::{Database, Inputs, Later, Row, Scan, Values};
use crate::catalog::{OBJECT_TABLES, TableOptions};
use crate::engine::{Protocol, Versions};
use crate::error::{Abort, Error};
use crate::protocols::DefaultProtocol;
use crate::schema::{
    AsKey, Column, Field, Hashed, InOrder, IndexKind, Key, KeyRange, Number, Ordered,
};
use crate::txn::Tx;
use std::fmt;
use std::ops::RangeBounds;
use std::sync::Arc;

/// A handle on an entry of a map.
type EntryRow<'t, K, V, I, P> = Row<'t, Entry<K, V, I>, P>;

/// A map that transactions read and write, and that finds keys by their hash. ([`TOrderedMap`]
/// keeps them in order.)
///
/// ```
/// use candide::objects::TMap;
/// use candide::{Database, Text};
///
/// let db = Database::new();
/// let votes = TMap::<Text<16>, u64>::new(&db)?;
/// db.run(|tx| votes.put(tx, "ann".try_into()?, 1))?;
/// db.run(|tx| {
///     votes.add(tx, "ann".try_into()?, 2)?; // observes only that the key is there
///     votes.add(tx, "bob".try_into()?, 1)
/// })?;
/// assert_eq!(db.run(|tx| votes.get(tx, "ann")), Ok(Some(3)));
/// assert_eq!(db.run(|tx| votes.remove(tx, "bob")), Ok(Some(1)));
/// assert_eq!(db.run(|tx| votes.iter(tx).count()), Ok(1));
/// # Ok::<(), candide::Error>(())
/// ```
///
/// # Unit and conflicts
/// Each entry is a unit of conflict of its own. [`put`](TMap::put) observes nothing;
/// [`add`](TMap::add), [`delete`](TMap::delete) and [`insert_if_absent`](TMap::insert_if_absent)
/// observe only whether the key is there. [`get`](TMap::get) and all that return or change a value
/// observe it. A key that is not there is observed as a gap of the index, so an insert of a key
/// near it, in the order of keys or of hashes, may conflict. [`iter`](TMap::iter) observes the
/// whole map. There is no `len`: it would be a number that every insert changes.
/// `iter(tx).count()` counts the entries, [`len_estimate`](TMap::len_estimate) estimates their
/// number without a transaction.
///
/// # Names
/// A map with a name ([`TMap::named`]) exists once in its database, and is durable if the database
/// is. A map without a name is in memory only, and ends with its last handle.
///
/// # Cost
/// A map is a table of its own, which takes some 20 KiB while it is empty. Its entries are rows of
/// that table, with the value as the only column. When a map has ended, transactions that end some
/// milliseconds later delete its entries, some thousands each. The table keeps its memory for a
/// later map of the same type that no snapshot could take for the old one. A handle is of a few
/// words.
/// Under [`Mvto`](crate::Mvto) a `put` links a version of the value.
///
/// # Errors of every operation
/// [Those of every operation](crate::Table#errors-of-every-operation) on a table.
#[doc(alias = "HashMap")]
#[doc(alias = "THashMap")]
pub struct TMap<K: Key, V: Stored, P: Protocol = DefaultProtocol, I: IndexKind = Hashed> {
    pub(super) table: V::Map<K, I, P>,
    /// What gives the table back with the last handle; `None` if the map has a name.
    owner: Option<Arc<Owner<P>>>,
}

/// A map that transactions read and write, and that keeps its keys in order. It has all that
/// [`TMap`] has, and what depends on the order.
///
/// ```
/// use candide::objects::TOrderedMap;
/// use candide::Database;
///
/// let db = Database::new();
/// let jobs = TOrderedMap::<(u8, u64), u32>::new(&db)?; // by priority, then by number
/// db.run(|tx| {
///     jobs.put(tx, (2, 1), 70)?;
///     jobs.put(tx, (1, 2), 80)?;
///     jobs.put(tx, (1, 3), 90)
/// })?;
/// assert_eq!(db.run(|tx| jobs.pop_first(tx)), Ok(Some(((1, 2), 80))));
/// let rest = db.run(|tx| jobs.range(tx, (1, 0)..(2, 9)).collect::<Result<Vec<_>, _>>())?;
/// assert_eq!(rest, [((1, 3), 90), ((2, 1), 70)]);
/// # Ok::<(), candide::Error>(())
/// ```
///
/// # Unit and conflicts
/// Beside what is said of [`TMap`]: a [`range`](TMap::range) observes the entries that it returns
/// and the gaps between them, so an insert into a gap conflicts, and other inserts into the same
/// leaf of the tree may. Transactions that [`pop_first`](TMap::pop_first) conflict with one
/// another. In keys of several components, entries that differ in the first one are in different
/// leaves. Names and cost are as of a `TMap`, but that a key is found through a tree. A `pop_first`
/// goes over all that the transaction has popped before, so n of them go over n²/2 entries; a
/// [`range`](TMap::range) whose entries are removed goes over each once. Of other transactions'
/// entries it goes over those that were popped in the last milliseconds. All of this holds at the
/// other end, too.
#[doc(alias = "BTreeMap")]
pub type TOrderedMap<K, V, P = DefaultProtocol> = TMap<K, V, P, Ordered>;

/// The entries of a map, one after another ([`Scan`]).
pub type Entries<'t, K, V, P, I = Hashed> = Scan<'t, Entry<K, V, I>, P, Column<Entry<K, V, I>, V>>;

impl<K: Key, V: Stored, P: Protocol, I: IndexKind> Clone for TMap<K, V, P, I> {
    fn clone(&self) -> Self {
        TMap { table: self.table.clone(), owner: self.owner.clone() }
    }
}

impl<K: Key, V: Stored, P: Protocol, I: IndexKind> fmt::Debug for TMap<K, V, P, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TMap").field("table", &self.table).finish_non_exhaustive()
    }
}

impl<K: Key, V: Stored, P: Protocol, I: IndexKind> TMap<K, V, P, I> {
    /// Makes a map without a name. Call this outside of transactions of the database.
    ///
    /// # Errors
    /// [`Error::TooManyTables`], [`Error::MemoryLimit`]; [`Error::Transaction`], as of
    /// [`TBox::new`](super::TBox::new).
    pub fn new(db: &Database<P>) -> Result<TMap<K, V, P, I>, Error> {
        let (inner, row) = (&db.inner, <V::Map<K, I, P>>::row());
        // The maps that have ended may be emptied now.
        run_internal(inner, |_| Ok(()))?;
        let bound = inner.engine.epochs.bound();
        let oldest = P::Versions::oldest_snapshot(&inner.engine.clock).map(|(_, since)| since);
        let table: V::Map<K, I, P> = match inner.catalog.unnamed.take_table(row, bound, oldest) {
            Some(core) => MapTable::over(db, core),
            None => {
                let number = inner.catalog.unnamed.number_table();
                let name = format!("{OBJECT_TABLES}map.{number}");
                MapTable::open(db, &name, TableOptions::default().volatile())?
            }
        };
        let owned = Owned::Table(row, |db, core, tx, place| {
            <V::Map<K, I, P>>::over(db, core.clone()).delete_some(tx, place)
        });
        let owner = Owner::new(inner, table.shared_core(), owned);
        Ok(TMap { table, owner: Some(Arc::new(owner)) })
    }

    /// Returns the map with a name. If there is none, makes an empty one.
    ///
    /// In a database that is [open](Database::open), the map is durable as tables are, and a later
    /// opening finds it. Call this before transactions: it runs one of its own.
    ///
    /// # Errors
    /// As [`TBox::named`](super::TBox::named); [`Error::ObjectType`], too, if the keys have another
    /// layout.
    pub fn named(db: &Database<P>, name: &str) -> Result<TMap<K, V, P, I>, Error> {
        let kind = if I::ORDERED { "TOrderedMap" } else { "TMap" };
        let values = V::type_name().0;
        Self::named_as(db, name, &format!("{kind}<{}, {values}>", short_name::<K>()))
    }

    /// As [`TMap::named`], for an object of this type.
    pub(super) fn named_as(
        db: &Database<P>,
        name: &str,
        type_name: &str,
    ) -> Result<TMap<K, V, P, I>, Error> {
        Ok(Self::named_with_cells(db, name, (type_name, 0), &mut |_, _| Ok(()))?.0)
    }

    /// As [`TMap::named_as`], for an object that has `cells` cells, too. `fill` makes these cells,
    /// from the given number on. Also returns the number of the first of them.
    pub(super) fn named_with_cells(
        db: &Database<P>,
        name: &str,
        (type_name, cells): (&str, u64),
        fill: &mut Fill<'_, P>,
    ) -> Result<(Self, u64), Error> {
        // Keys have the layout of the table, which is compared as that of every table.
        let wanted = ObjectType { name: type_name.to_owned(), layout: V::type_name().1, cells };
        let named = (name, <V::Map<K, I, P>>::VOLATILE);
        check_type(&db.inner, named, &wanted)?;
        // The table is made before the row of the table of objects, which would keep the name from
        // a map of another type if the table could not be made.
        let table = format!("{OBJECT_TABLES}named.{name}");
        let table =
            MapTable::open(db, &table, TableOptions::default()).map_err(|error| match error {
                Error::Schema { .. } | Error::TableType { .. } | Error::TableOption { .. } => {
                    wanted.refusal(name, "a map with rows of another layout".to_owned())
                }
                other => other,
            })?;
        let first = find_object(&db.inner, named, &wanted, fill)?;
        Ok((TMap { table, owner: None }, first))
    }

    /// Returns the approximate number of entries, without a transaction
    /// ([`Table::len_estimate`](crate::Table::len_estimate)).
    pub fn len_estimate(&self) -> u64 {
        self.table.shared_core().linked.sum()
    }
}

/// Maps of fields.
impl<K: Key, V: Field, P: Protocol, I: IndexKind> TMap<K, V, P, I> {
    /// Returns the value of a key.
    ///
    /// # Errors
    /// [Those of every operation](TMap#errors-of-every-operation).
    #[inline]
    pub fn get(&self, tx: &Tx<'_, P>, key: impl AsKey<K>) -> Result<Option<V>, Abort> {
        self.table.get(tx, key, Entry::<K, V, I>::VALUE)
    }

    /// As [`TMap::get`], for a transaction that is going to write the entry
    /// ([`Table::get_for_update`](crate::Table::get_for_update)).
    ///
    /// # Errors
    /// [Those of every operation](TMap#errors-of-every-operation).
    pub fn get_for_update(&self, tx: &Tx<'_, P>, key: impl AsKey<K>) -> Result<Option<V>, Abort> {
        self.table.get_for_update(tx, key, Entry::<K, V, I>::VALUE)
    }

    /// Returns whether the map has a key.
    ///
    /// # Errors
    /// [Those of every operation](TMap#errors-of-every-operation).
    pub fn contains_key(&self, tx: &Tx<'_, P>, key: impl AsKey<K>) -> Result<bool, Abort> {
        Ok(self.table.get(tx, key, ())?.is_some())
    }

    /// Sets the value of a key, without observing whether there was one.
    ///
    /// # Errors
    /// [Those of every operation](TMap#errors-of-every-operation).
    #[inline]
    pub fn put(&self, tx: &Tx<'_, P>, key: K, value: V) -> Result<(), Abort> {
        self.table.put(tx, Entry::new(key, value))
    }

    /// Sets the value of a key, and returns the one before. [`TMap::put`] observes less.
    ///
    /// # Errors
    /// [Those of every operation](TMap#errors-of-every-operation).
    pub fn insert(&self, tx: &Tx<'_, P>, key: K, value: V) -> Result<Option<V>, Abort> {
        let row = self.table.find_key(tx, &key)?;
        let before = row.get(Entry::<K, V, I>::VALUE)?;
        match before {
            Some(_) => row.update(Entry::<K, V, I>::VALUE.set(value))?,
            None => self.table.put(tx, Entry::new(key, value))?,
        }
        Ok(before)
    }

    /// Sets the value of a key that has none; returns whether that was so.
    ///
    /// # Errors
    /// [Those of every operation](TMap#errors-of-every-operation).
    pub fn insert_if_absent(&self, tx: &Tx<'_, P>, key: K, value: V) -> Result<bool, Abort> {
        self.table.insert_if_absent(tx, Entry::new(key, value))
    }

    /// Returns the value of a key. If it has none, sets it to `value` first.
    ///
    /// # Errors
    /// [Those of every operation](TMap#errors-of-every-operation).
    #[doc(alias = "entry")]
    #[doc(alias = "or_insert")]
    pub fn get_or_insert(&self, tx: &Tx<'_, P>, key: K, value: V) -> Result<V, Abort> {
        let row = self.table.find_key(tx, &key)?;
        if let Some(present) = row.get(Entry::<K, V, I>::VALUE)? {
            return Ok(present);
        }
        self.table.put(tx, Entry::new(key, value))?;
        Ok(value)
    }

    /// Removes a key, and returns its value. [`TMap::delete`] observes less.
    ///
    /// # Errors
    /// [Those of every operation](TMap#errors-of-every-operation).
    pub fn remove(&self, tx: &Tx<'_, P>, key: impl AsKey<K>) -> Result<Option<V>, Abort> {
        let Some(row) = self.find(tx, key)? else { return Ok(None) };
        let value = row.get(Entry::<K, V, I>::VALUE)?;
        if value.is_some() {
            row.delete()?;
        }
        Ok(value)
    }

    /// Removes a key; returns whether it was there.
    ///
    /// # Errors
    /// [Those of every operation](TMap#errors-of-every-operation).
    pub fn delete(&self, tx: &Tx<'_, P>, key: impl AsKey<K>) -> Result<bool, Abort> {
        self.table.delete_if_present(tx, key)
    }

    /// Reads the value of a key, lets `change` change it, and writes it back; returns what `change`
    /// returns. `None` if the key is not there.
    ///
    /// # Errors
    /// [Those of every operation](TMap#errors-of-every-operation).
    #[doc(alias = "get_mut")]
    #[doc(alias = "and_modify")]
    pub fn modify<T>(
        &self,
        tx: &Tx<'_, P>,
        key: impl AsKey<K>,
        change: impl FnOnce(&mut V) -> T,
    ) -> Result<Option<T>, Abort> {
        self.table.modify_if_present(tx, key, Entry::<K, V, I>::VALUE, change)
    }

    /// Reads the value of a key, or takes `value` if it has none; lets `change` change it, and
    /// writes it; returns what `change` returns.
    ///
    /// # Errors
    /// [Those of every operation](TMap#errors-of-every-operation).
    #[doc(alias = "entry")]
    #[doc(alias = "or_insert_with")]
    pub fn modify_or_insert<T>(
        &self,
        tx: &Tx<'_, P>,
        key: K,
        value: V,
        change: impl FnOnce(&mut V) -> T,
    ) -> Result<T, Abort> {
        let present = self.table.find_key(tx, &key)?.get(Entry::<K, V, I>::VALUE)?;
        let mut value = present.unwrap_or(value);
        let result = change(&mut value);
        self.table.put(tx, Entry::new(key, value))?;
        Ok(result)
    }

    /// Defers a step, which changes the value of a key when the transaction commits, as
    /// [`Table::defer`](crate::Table::defer).
    ///
    /// # Errors
    /// As [`Table::defer`](crate::Table::defer): [`Abort::NotFound`] if the key is not there.
    pub fn defer<J: Inputs, T: 'static>(
        &self,
        tx: &Tx<'_, P>,
        key: impl AsKey<K>,
        inputs: J,
        step: impl FnMut(&mut V, Values<'_, J>) -> T + 'static,
    ) -> Result<Later<T>, Abort> {
        self.table.defer(tx, key, Entry::<K, V, I>::VALUE, inputs, step)
    }

    /// Returns all entries: in the order of their keys if the map has one, otherwise in no
    /// particular order. The transaction observes the whole map.
    pub fn iter<'t>(&'t self, tx: &'t Tx<'_, P>) -> Entries<'t, K, V, P, I> {
        self.table.iter(tx, Entry::<K, V, I>::VALUE)
    }

    /// Returns a handle on the entry of a key; `None` if no entry can have it.
    fn find<'t>(
        &'t self,
        tx: &'t Tx<'_, P>,
        key: impl AsKey<K>,
    ) -> Result<Option<EntryRow<'t, K, V, I, P>>, Abort> {
        match self.table.find(tx, key) {
            Ok(row) => Ok(Some(row)),
            Err(Abort::NotFound) => Ok(None),
            Err(abort) => Err(abort),
        }
    }
}

/// Maps of numbers.
impl<K: Key, V: Number, P: Protocol, I: IndexKind> TMap<K, V, P, I> {
    /// Adds `summand` to the value of a key when the transaction commits; a key that is not there
    /// gets it as its value. Observes only whether the key is there. If the sum is out of the
    /// type's range, the transaction ends in [`Abort::Overflow`].
    ///
    /// # Errors
    /// [Those of every operation](TMap#errors-of-every-operation).
    pub fn add(&self, tx: &Tx<'_, P>, key: K, summand: V) -> Result<(), Abort> {
        // The update comes first, since it does not observe the value of a key that is there.
        match self.table.find_key(tx, &key)?.update(Entry::<K, V, I>::VALUE.add(summand)) {
            Err(Abort::NotFound) => self.table.put(tx, Entry::new(key, summand)),
            updated => updated,
        }
    }

    /// Returns whether the value of a key is in `range`, and observes only that, as
    /// [`Table::is_within`](crate::Table::is_within); `None` if the key is not there.
    ///
    /// # Errors
    /// [Those of every operation](TMap#errors-of-every-operation).
    pub fn is_within(
        &self,
        tx: &Tx<'_, P>,
        key: impl AsKey<K>,
        range: impl RangeBounds<V>,
    ) -> Result<Option<bool>, Abort> {
        let Some(row) = self.find(tx, key)? else { return Ok(None) };
        match row.is_within(Entry::<K, V, I>::VALUE, range) {
            Ok(is_within) => Ok(Some(is_within)),
            Err(Abort::NotFound) => Ok(None),
            Err(abort) => Err(abort),
        }
    }
}

/// Maps of fields in the order of keys.
impl<K: Key, V: Field, P: Protocol, I: InOrder> TMap<K, V, P, I> {
    /// Returns the entries of a range of keys, in their order
    /// ([`Table::scan`](crate::Table::scan)).
    pub fn range<'t>(
        &'t self,
        tx: &'t Tx<'_, P>,
        range: impl KeyRange<K>,
    ) -> Entries<'t, K, V, P, I> {
        self.table.scan(tx, range, Entry::<K, V, I>::VALUE)
    }

    /// Returns the entry with the smallest key.
    ///
    /// # Errors
    /// [Those of every operation](TMap#errors-of-every-operation).
    #[doc(alias = "min")]
    pub fn first(&self, tx: &Tx<'_, P>) -> Result<Option<(K, V)>, Abort> {
        self.iter(tx).first()
    }

    /// Returns the entry with the largest key.
    ///
    /// # Errors
    /// [Those of every operation](TMap#errors-of-every-operation).
    #[doc(alias = "max")]
    pub fn last(&self, tx: &Tx<'_, P>) -> Result<Option<(K, V)>, Abort> {
        self.iter(tx).last()
    }

    /// Removes the entry with the smallest key, and returns it.
    ///
    /// # Errors
    /// [Those of every operation](TMap#errors-of-every-operation).
    pub fn pop_first(&self, tx: &Tx<'_, P>) -> Result<Option<(K, V)>, Abort> {
        self.pop(tx, self.first(tx)?)
    }

    /// Removes the entry with the largest key, and returns it.
    ///
    /// # Errors
    /// [Those of every operation](TMap#errors-of-every-operation).
    pub fn pop_last(&self, tx: &Tx<'_, P>) -> Result<Option<(K, V)>, Abort> {
        self.pop(tx, self.last(tx)?)
    }

    fn pop(&self, tx: &Tx<'_, P>, entry: Option<(K, V)>) -> Result<Option<(K, V)>, Abort> {
        if let Some((key, _)) = &entry {
            self.table.find_key(tx, key)?.delete()?;
        }
        Ok(entry)
    }
}
