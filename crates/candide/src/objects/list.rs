//! Sorted lists.

#![forbid(unsafe_code)]

use super::ends::{KeysLeft, note_inserted, note_taken};
use super::map::TMap;
use super::words::short_name;
use crate::api::Database;
use crate::engine::Protocol;
use crate::error::{Abort, Error};
use crate::protocols::DefaultProtocol;
use crate::schema::{AsKey, Key, KeyRange, Ordered};
use crate::txn::Tx;
use std::fmt;
use std::iter::repeat_n;

/// A sorted list, in which equal elements may occur several times.
///
/// ```
/// use candide::objects::TList;
/// use candide::Database;
///
/// let db = Database::new();
/// let bids = TList::<u64>::new(&db)?;
/// db.run(|tx| [30, 10, 30].into_iter().try_for_each(|bid| bids.insert(tx, bid)))?;
/// assert_eq!(db.run(|tx| bids.iter(tx).collect::<Result<Vec<_>, _>>()), Ok(vec![10, 30, 30]));
/// assert_eq!(db.run(|tx| bids.pop_last(tx)), Ok(Some(30)));
/// assert_eq!(db.run(|tx| bids.count(tx, 30)), Ok(1));
/// # Ok::<(), candide::Error>(())
/// ```
///
/// # Unit and conflicts
/// All equal elements together are a unit of conflict. An [`insert`](TList::insert) observes only
/// whether there is such an element, so inserts of equal elements do not conflict.
/// [`remove`](TList::remove) and [`count`](TList::count) observe the number of equal elements. An
/// element that is not there is observed as a gap of the index, so an insert of an element near it
/// may conflict. [`first`](TList::first) and [`pop_first`](TList::pop_first) observe the first
/// element, and that there is none before it; likewise at the other end. [`iter`](TList::iter)
/// observes the whole list, [`range`](TList::range) a part of it. There is no `len`: it would be a
/// number that every insert changes.
///
/// # Names and cost
/// As of a [`TOrderedMap`](super::TOrderedMap) whose keys are the elements, with their number as
/// the value. A pop goes over the places of elements that other transactions have popped in the
/// last milliseconds, until their records are gone. A transaction goes over what it has popped
/// itself only after it has inserted an element outside of what is left.
///
/// # Errors of every operation
/// Those of [every operation](crate::Table#errors-of-every-operation) on a table.
#[doc(alias = "BTreeSet")]
#[doc(alias = "multiset")]
pub struct TList<K: Key, P: Protocol = DefaultProtocol> {
    counts: TMap<K, u64, P, Ordered>,
}

impl<K: Key, P: Protocol> Clone for TList<K, P> {
    fn clone(&self) -> Self {
        TList { counts: self.counts.clone() }
    }
}

impl<K: Key, P: Protocol> fmt::Debug for TList<K, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TList").field("counts", &self.counts).finish()
    }
}

impl<K: Key, P: Protocol> TList<K, P> {
    /// Makes a list without a name. Call this outside of transactions.
    ///
    /// # Errors
    /// As [`TMap::new`](super::TMap::new).
    pub fn new(db: &Database<P>) -> Result<TList<K, P>, Error> {
        Ok(TList { counts: TMap::new(db)? })
    }

    /// Returns the list with a name. If there is none, makes an empty one. Call this outside of
    /// transactions.
    ///
    /// # Errors
    /// As [`TBox::named`](super::TBox::named).
    pub fn named(db: &Database<P>, name: &str) -> Result<TList<K, P>, Error> {
        let type_name = format!("TList<{}>", short_name::<K>());
        Ok(TList { counts: TMap::named_as(db, name, &type_name)? })
    }

    /// Inserts an element, behind those that are equal to it.
    ///
    /// # Errors
    /// [Those of every operation](TList#errors-of-every-operation).
    pub fn insert(&self, tx: &Tx<'_, P>, element: K) -> Result<(), Abort> {
        self.counts.add(tx, element, 1)?;
        note_inserted(tx, self.counts.table.shared_core(), element);
        Ok(())
    }

    /// Removes one element that is equal to `element`; returns whether there was one.
    ///
    /// # Errors
    /// [Those of every operation](TList#errors-of-every-operation).
    pub fn remove(&self, tx: &Tx<'_, P>, element: K) -> Result<bool, Abort> {
        let count = self.counts.get(tx, element)?;
        count.map_or(Ok(false), |count| self.remove_one(tx, element, count).map(|()| true))
    }

    /// Removes one of `count` equal elements.
    fn remove_one(&self, tx: &Tx<'_, P>, element: K, count: u64) -> Result<(), Abort> {
        match count {
            1 => self.counts.delete(tx, element).map(drop),
            _ => self.counts.put(tx, element, count - 1),
        }
    }

    /// Removes all elements that are equal to `element`; returns their number.
    ///
    /// # Errors
    /// [Those of every operation](TList#errors-of-every-operation).
    pub fn remove_all(&self, tx: &Tx<'_, P>, element: impl AsKey<K>) -> Result<u64, Abort> {
        Ok(self.counts.remove(tx, element)?.unwrap_or(0))
    }

    /// Returns whether the list has an element.
    ///
    /// # Errors
    /// [Those of every operation](TList#errors-of-every-operation).
    pub fn contains(&self, tx: &Tx<'_, P>, element: impl AsKey<K>) -> Result<bool, Abort> {
        self.counts.contains_key(tx, element)
    }

    /// Returns the number of elements that are equal to `element`.
    ///
    /// # Errors
    /// [Those of every operation](TList#errors-of-every-operation).
    pub fn count(&self, tx: &Tx<'_, P>, element: impl AsKey<K>) -> Result<u64, Abort> {
        Ok(self.counts.get(tx, element)?.unwrap_or(0))
    }

    /// Returns the smallest element; `None` if the list is empty.
    ///
    /// # Errors
    /// [Those of every operation](TList#errors-of-every-operation).
    #[doc(alias = "min")]
    #[doc(alias = "front")]
    pub fn first(&self, tx: &Tx<'_, P>) -> Result<Option<K>, Abort> {
        Ok(self.first_entry(tx)?.map(|(element, _)| element))
    }

    /// Returns the largest element; `None` if the list is empty.
    ///
    /// # Errors
    /// [Those of every operation](TList#errors-of-every-operation).
    #[doc(alias = "max")]
    #[doc(alias = "back")]
    pub fn last(&self, tx: &Tx<'_, P>) -> Result<Option<K>, Abort> {
        Ok(self.last_entry(tx)?.map(|(element, _)| element))
    }

    /// Removes the smallest element, and returns it; `None` if the list is empty.
    ///
    /// # Errors
    /// [Those of every operation](TList#errors-of-every-operation).
    #[doc(alias = "pop_front")]
    pub fn pop_first(&self, tx: &Tx<'_, P>) -> Result<Option<K>, Abort> {
        self.pop(tx, false, self.first_entry(tx)?)
    }

    /// Removes the largest element, and returns it; `None` if the list is empty.
    ///
    /// # Errors
    /// [Those of every operation](TList#errors-of-every-operation).
    #[doc(alias = "pop_back")]
    pub fn pop_last(&self, tx: &Tx<'_, P>) -> Result<Option<K>, Abort> {
        self.pop(tx, true, self.last_entry(tx)?)
    }

    fn pop(
        &self,
        tx: &Tx<'_, P>,
        is_last: bool,
        entry: Option<(K, u64)>,
    ) -> Result<Option<K>, Abort> {
        let Some((element, count)) = entry else { return Ok(None) };
        self.remove_one(tx, element, count)?;
        if count == 1 {
            note_taken(tx, self.counts.table.shared_core(), is_last, element);
        }
        Ok(Some(element))
    }

    fn first_entry(&self, tx: &Tx<'_, P>) -> Result<Option<(K, u64)>, Abort> {
        self.counts.range(tx, KeysLeft::of::<K, P>(tx, self.counts.table.shared_core())).first()
    }

    fn last_entry(&self, tx: &Tx<'_, P>) -> Result<Option<(K, u64)>, Abort> {
        self.counts.range(tx, KeysLeft::of::<K, P>(tx, self.counts.table.shared_core())).last()
    }

    /// Returns all elements in their order. The transaction observes the whole list.
    pub fn iter<'t>(
        &'t self,
        tx: &'t Tx<'_, P>,
    ) -> impl DoubleEndedIterator<Item = Result<K, Abort>> + 't {
        self.counts.iter(tx).flat_map(each)
    }

    /// Returns the elements of a range, in their order ([`Table::scan`](crate::Table::scan)).
    pub fn range<'t>(
        &'t self,
        tx: &'t Tx<'_, P>,
        range: impl KeyRange<K>,
    ) -> impl DoubleEndedIterator<Item = Result<K, Abort>> + 't {
        self.counts.range(tx, range).flat_map(each)
    }
}

/// Returns the elements of an entry.
fn each<K: Key>(
    entry: Result<(K, u64), Abort>,
) -> impl DoubleEndedIterator<Item = Result<K, Abort>> {
    let (element, count) = match entry {
        Ok((element, count)) => (Ok(element), count as usize),
        Err(abort) => (Err(abort), 1),
    };
    repeat_n(element, count)
}
