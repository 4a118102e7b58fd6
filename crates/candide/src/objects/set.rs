//! Sets.

#![forbid(unsafe_code)]

use super::entry::Member;
use super::map::TMap;
use super::words::short_name;
use crate::api::Database;
use crate::engine::Protocol;
use crate::error::{Abort, Error};
use crate::protocols::DefaultProtocol;
use crate::schema::{AsKey, Hashed, InOrder, IndexKind, Key, KeyRange};
use crate::txn::Tx;
use std::fmt;

/// A set of keys that transactions read and write.
///
/// ```
/// use candide::objects::TSet;
/// use candide::Database;
///
/// let db = Database::new();
/// let seen = TSet::<u64>::new(&db)?;
/// assert_eq!(db.run(|tx| Ok((seen.insert(tx, 7)?, seen.insert(tx, 7)?))), Ok((true, false)));
/// assert_eq!(db.run(|tx| seen.contains(tx, 7)), Ok(true));
/// assert_eq!(db.run(|tx| seen.remove(tx, 7)), Ok(true));
/// # Ok::<(), candide::Error>(())
/// ```
///
/// # Unit and conflicts
/// Each key is a unit of conflict of its own. An insert and a removal observe whether the key was
/// there, as a lookup does; [`put`](TSet::put) observes nothing. All else is as of a [`TMap`], also
/// names and cost. `TSet<K, P, Ordered>` keeps the keys in order.
#[doc(alias = "HashSet")]
#[doc(alias = "BTreeSet")]
pub struct TSet<K: Key, P: Protocol = DefaultProtocol, I: IndexKind = Hashed> {
    map: TMap<K, Member, P, I>,
}

impl<K: Key, P: Protocol, I: IndexKind> Clone for TSet<K, P, I> {
    fn clone(&self) -> Self {
        TSet { map: self.map.clone() }
    }
}

impl<K: Key, P: Protocol, I: IndexKind> fmt::Debug for TSet<K, P, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TSet").field("map", &self.map).finish()
    }
}

impl<K: Key, P: Protocol, I: IndexKind> TSet<K, P, I> {
    /// Makes a set without a name.
    ///
    /// # Errors
    /// As [`TMap::new`].
    pub fn new(db: &Database<P>) -> Result<TSet<K, P, I>, Error> {
        Ok(TSet { map: TMap::new(db)? })
    }

    /// Returns the set with a name. If there is none, makes an empty one.
    ///
    /// # Errors
    /// As [`TBox::named`](super::TBox::named).
    pub fn named(db: &Database<P>, name: &str) -> Result<TSet<K, P, I>, Error> {
        let order = if I::ORDERED { " in order" } else { "" };
        let type_name = format!("TSet<{}>{order}", short_name::<K>());
        Ok(TSet { map: TMap::named_as(db, name, &type_name)? })
    }

    /// Returns the approximate number of keys, without a transaction
    /// ([`Table::len_estimate`](crate::Table::len_estimate)).
    pub fn len_estimate(&self) -> u64 {
        self.map.len_estimate()
    }

    /// Returns whether the set has a key.
    ///
    /// # Errors
    /// [Those of every operation](crate::Table#errors-of-every-operation).
    #[inline]
    pub fn contains(&self, tx: &Tx<'_, P>, key: impl AsKey<K>) -> Result<bool, Abort> {
        self.map.contains_key(tx, key)
    }

    /// Adds a key; returns whether it was not there.
    ///
    /// # Errors
    /// [Those of every operation](crate::Table#errors-of-every-operation).
    pub fn insert(&self, tx: &Tx<'_, P>, key: K) -> Result<bool, Abort> {
        self.map.insert_if_absent(tx, key, Member)
    }

    /// Adds a key, without observing whether it was there.
    ///
    /// # Errors
    /// [Those of every operation](crate::Table#errors-of-every-operation).
    pub fn put(&self, tx: &Tx<'_, P>, key: K) -> Result<(), Abort> {
        self.map.put(tx, key, Member)
    }

    /// Removes a key; returns whether it was there.
    ///
    /// # Errors
    /// [Those of every operation](crate::Table#errors-of-every-operation).
    pub fn remove(&self, tx: &Tx<'_, P>, key: impl AsKey<K>) -> Result<bool, Abort> {
        self.map.delete(tx, key)
    }

    /// Returns all keys: in their order if the set has one, otherwise in no particular order. The
    /// transaction observes the whole set.
    pub fn iter<'t>(&'t self, tx: &'t Tx<'_, P>) -> impl Iterator<Item = Result<K, Abort>> + 't {
        self.map.iter(tx).map(|entry| Ok(entry?.0))
    }
}

/// Sets in the order of keys.
///
/// ```
/// # use candide::objects::TSet;
/// # use candide::{Database, DefaultProtocol, Ordered};
/// # let db = Database::new();
/// let due = TSet::<u64, DefaultProtocol, Ordered>::new(&db)?;
/// db.run(|tx| [5, 2, 9].into_iter().try_for_each(|time| due.put(tx, time)))?;
/// assert_eq!(db.run(|tx| Ok((due.first(tx)?, due.last(tx)?))), Ok((Some(2), Some(9))));
/// assert_eq!(db.run(|tx| Ok((due.pop_first(tx)?, due.pop_last(tx)?))), Ok((Some(2), Some(9))));
/// assert_eq!(db.run(|tx| due.last(tx)), Ok(Some(5)));
/// # Ok::<(), candide::Error>(())
/// ```
impl<K: Key, P: Protocol, I: InOrder> TSet<K, P, I> {
    /// Returns the keys of a range, in their order ([`Table::scan`](crate::Table::scan)).
    pub fn range<'t>(
        &'t self,
        tx: &'t Tx<'_, P>,
        range: impl KeyRange<K>,
    ) -> impl DoubleEndedIterator<Item = Result<K, Abort>> + 't {
        self.map.range(tx, range).map(|entry| Ok(entry?.0))
    }

    /// Returns the smallest key.
    ///
    /// # Errors
    /// [Those of every operation](crate::Table#errors-of-every-operation).
    pub fn first(&self, tx: &Tx<'_, P>) -> Result<Option<K>, Abort> {
        Ok(self.map.first(tx)?.map(|entry| entry.0))
    }

    /// Returns the largest key.
    ///
    /// # Errors
    /// [Those of every operation](crate::Table#errors-of-every-operation).
    pub fn last(&self, tx: &Tx<'_, P>) -> Result<Option<K>, Abort> {
        Ok(self.map.last(tx)?.map(|entry| entry.0))
    }

    /// Removes the smallest key, and returns it.
    ///
    /// # Errors
    /// [Those of every operation](crate::Table#errors-of-every-operation).
    pub fn pop_first(&self, tx: &Tx<'_, P>) -> Result<Option<K>, Abort> {
        Ok(self.map.pop_first(tx)?.map(|entry| entry.0))
    }

    /// Removes the largest key, and returns it.
    ///
    /// # Errors
    /// [Those of every operation](crate::Table#errors-of-every-operation).
    pub fn pop_last(&self, tx: &Tx<'_, P>) -> Result<Option<K>, Abort> {
        Ok(self.map.pop_last(tx)?.map(|entry| entry.0))
    }
}
