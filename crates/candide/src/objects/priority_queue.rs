//! Priority queues.

#![forbid(unsafe_code)]

use super::elements::ElementTable;
use super::ends::{KeysLeft, note_inserted, note_taken};
use super::map::TMap;
use super::maps::MapTable;
use super::stored::Stored;
use super::value_types::ValueTypes;
use super::words::short_name;
use crate::api::Database;
use crate::engine::Protocol;
use crate::error::{Abort, Error};
use crate::protocols::DefaultProtocol;
use crate::schema::{Before, Key, Ordered};
use crate::sync::Random;
use crate::txn::Tx;
use std::fmt;

/// A key that can be a priority of a [`TPriorityQueue`]: any number, text, enum or tuple, and a
/// struct of at most four words of 64 bits.
pub trait Priority: Key<Words: Before<[u64; 1]>> {}

impl<K: Key<Words: Before<[u64; 1]>>> Priority for K {}

/// A queue whose values leave it in the order of their priorities, the smallest first.
///
/// ```
/// use candide::objects::TPriorityQueue;
/// use candide::Database;
///
/// let db = Database::new();
/// let deadlines = TPriorityQueue::<u32, u64>::new(&db)?;
/// db.run(|tx| {
///     deadlines.push(tx, 30, 1)?;
///     deadlines.push(tx, 10, 2)?;
///     deadlines.push(tx, 20, 3)
/// })?;
/// assert_eq!(db.run(|tx| deadlines.pop(tx)), Ok(Some((10, 2))));
/// assert_eq!(db.run(|tx| deadlines.peek(tx)), Ok(Some((20, 3))));
/// # Ok::<(), candide::Error>(())
/// ```
///
/// Values of the same priority leave in no particular order. Where the first one is to leave first,
/// the priority has a second component: a number that the program counts up, or a time.
///
/// # Unit and conflicts
/// Each value is a unit of conflict of its own. A [`push`](TPriorityQueue::push) observes nothing.
/// A [`pop`](TPriorityQueue::pop) and a [`peek`](TPriorityQueue::peek) observe the first value, and
/// that there is none before it. So two pops conflict, and a pop conflicts with a push of a smaller
/// priority, and perhaps with one of a priority near it, in the same leaf of the index. With a
/// priority of several components, as of all [ordered maps](super::TOrderedMap), priorities that
/// differ in the first one are in different leaves.
///
/// # Names and cost
/// As of a [`TOrderedMap`](super::TOrderedMap) whose keys are the priority and a number. A pop and
/// a peek go over the places of values that other transactions have popped in the last
/// milliseconds, until their records are gone. A transaction goes over what it has popped itself
/// only after it has pushed a smaller priority. `TPriorityQueue<K, V>` has values of the types of
/// columns, which are durable if the queue is; `TPriorityQueue<K, Boxed<T>>` has values of any
/// type.
///
/// # Errors of every operation
/// Those of [every operation](crate::Table#errors-of-every-operation) on a table;
/// [`Abort::MemoryLimit`] of a push.
#[doc(alias = "BinaryHeap")]
#[doc(alias = "heap")]
pub struct TPriorityQueue<K: Priority, V: Stored, P: Protocol = DefaultProtocol> {
    values: TMap<(K, u64), V, P, Ordered>,
    /// A number that differs between handles, so that they draw other numbers in a database that is
    /// opened again.
    seed: u64,
}

/// A value, with its key in the map: its priority, and a number.
type Element<'t, K, V> = ((K, u64), <V as ValueTypes>::Seen<'t>);

impl<K: Priority, V: Stored, P: Protocol> Clone for TPriorityQueue<K, V, P> {
    fn clone(&self) -> Self {
        TPriorityQueue { values: self.values.clone(), seed: self.seed }
    }
}

impl<K: Priority, V: Stored, P: Protocol> fmt::Debug for TPriorityQueue<K, V, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TPriorityQueue").field("values", &self.values).finish_non_exhaustive()
    }
}

impl<K: Priority, V: Stored, P: Protocol> TPriorityQueue<K, V, P> {
    /// Makes a priority queue without a name. Call this outside of transactions.
    ///
    /// # Errors
    /// As [`TMap::new`](super::TMap::new).
    pub fn new(db: &Database<P>) -> Result<TPriorityQueue<K, V, P>, Error> {
        Ok(TPriorityQueue { values: TMap::new(db)?, seed: Random::process_seed() })
    }

    /// Returns the priority queue with a name. If there is none, makes an empty one. Call this
    /// outside of transactions.
    ///
    /// # Errors
    /// As [`TBox::named`](super::TBox::named).
    pub fn named(db: &Database<P>, name: &str) -> Result<TPriorityQueue<K, V, P>, Error> {
        let type_name = format!("TPriorityQueue<{}, {}>", short_name::<K>(), V::type_name().0);
        let values = TMap::named_as(db, name, &type_name)?;
        Ok(TPriorityQueue { values, seed: Random::process_seed() })
    }

    /// Adds a value, without observing any other one.
    ///
    /// # Errors
    /// [Those of every operation](TPriorityQueue#errors-of-every-operation).
    pub fn push(&self, tx: &Tx<'_, P>, priority: K, value: V::Value) -> Result<(), Abort> {
        let mut key = (priority, 0);
        let next = || {
            key.1 = self.seed ^ tx.state.borrow_mut().worker.local.random.next();
            key
        };
        self.values.table.insert_under(tx, next, value)?;
        note_inserted(tx, self.values.table.shared_core(), key);
        Ok(())
    }

    /// Removes a value of the smallest priority, and returns it with its priority; `None` if the
    /// queue is empty.
    ///
    /// # Errors
    /// [Those of every operation](TPriorityQueue#errors-of-every-operation).
    #[doc(alias = "pop_min")]
    pub fn pop<'t>(&'t self, tx: &'t Tx<'_, P>) -> Result<Option<(K, V::Seen<'t>)>, Abort> {
        let Some((key, value)) = self.first(tx)? else { return Ok(None) };
        self.values.table.delete(tx, key)?;
        note_taken(tx, self.values.table.shared_core(), false, key);
        Ok(Some((key.0, value)))
    }

    /// Returns a value of the smallest priority with its priority; `None` if the queue is empty. It
    /// is the one that [`TPriorityQueue::pop`] returns.
    ///
    /// # Errors
    /// [Those of every operation](TPriorityQueue#errors-of-every-operation).
    pub fn peek<'t>(&'t self, tx: &'t Tx<'_, P>) -> Result<Option<(K, V::Seen<'t>)>, Abort> {
        Ok(self.first(tx)?.map(|((priority, _), value)| (priority, value)))
    }

    /// Returns the first value, with its key in the map.
    fn first<'t>(&'t self, tx: &'t Tx<'_, P>) -> Result<Option<Element<'t, K, V>>, Abort> {
        let keys = KeysLeft::of::<(K, u64), P>(tx, self.values.table.shared_core());
        self.values.table.entries_among(tx, keys).next().transpose()
    }

    /// Returns whether the queue is empty.
    ///
    /// # Errors
    /// [Those of every operation](TPriorityQueue#errors-of-every-operation).
    pub fn is_empty(&self, tx: &Tx<'_, P>) -> Result<bool, Abort> {
        Ok(self.first(tx)?.is_none())
    }

    /// Returns the approximate number of values, without a transaction
    /// ([`Table::len_estimate`](crate::Table::len_estimate)).
    pub fn len_estimate(&self) -> u64 {
        self.values.len_estimate()
    }

    /// Returns all values with their priorities, in the order in which [`TPriorityQueue::pop`]
    /// returns them. The transaction observes the whole queue.
    pub fn iter<'t>(
        &'t self,
        tx: &'t Tx<'_, P>,
    ) -> impl Iterator<Item = Result<(K, V::Seen<'t>), Abort>> {
        self.values.table.entries(tx).map(|entry| {
            let ((priority, _), value) = entry?;
            Ok((priority, value))
        })
    }
}
