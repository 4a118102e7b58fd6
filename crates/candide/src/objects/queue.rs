//! Queues.

#![forbid(unsafe_code)]

use super::sequence::Sequence;
use super::stored::Stored;
use crate::api::Database;
use crate::engine::Protocol;
use crate::error::{Abort, Error};
use crate::protocols::DefaultProtocol;
use crate::txn::Tx;
use std::fmt;

/// The end at which values leave the queue.
const HEAD: u64 = 0;
/// The end at which values enter the queue.
const TAIL: u64 = 1;

/// A queue without a bound, first in, first out.
///
/// ```
/// use candide::objects::TQueue;
/// use candide::Database;
///
/// let db = Database::new();
/// let jobs = TQueue::<u64>::new(&db)?;
/// db.run(|tx| {
///     jobs.push(tx, 7)?;
///     jobs.push(tx, 8)
/// })?;
/// // Waits until there is a job.
/// let take = || db.run(|tx| match jobs.pop(tx)? {
///     Some(job) => Ok(job),
///     None => tx.retry(),
/// });
/// assert_eq!([take(), take()], [Ok(7), Ok(8)]);
/// assert_eq!(db.run(|tx| jobs.pop(tx)), Ok(None));
/// # Ok::<(), candide::Error>(())
/// ```
///
/// # Unit and conflicts
/// The ends of the queue and each value in it are units of conflict of their own.
/// * A [`push`](TQueue::push) observes nothing: the commit finds the place of the value, when it
///   has locked the end of the queue. So transactions that push do not conflict with one another.
///   They wait for one another's commits. All values that one transaction pushes are behind those
///   of transactions before it, and before those of transactions after it.
/// * A [`pop`](TQueue::pop) observes the other end, so transactions that pop conflict. With a push
///   a pop conflicts only if it finds the queue empty, or if only values of its own transaction are
///   in it.
/// * [`is_empty`](TQueue::is_empty) observes the end at which values leave, and only whether the
///   other one is there. [`len`](TQueue::len) and [`iter`](TQueue::iter) observe both ends.
///
/// Under [`TicToc`](crate::TicToc) and [`Mvcc`](crate::Mvcc), and under policies that lock rows
/// when they are read, a pop observes both ends. Under [`Mvto`](crate::Mvto), which chooses its
/// timestamps first, a push reads the end of the queue, so pushes conflict.
///
/// # Names and cost
/// As of a [`TMap`](super::TMap): the values are the rows of a table, whose keys are numbers. So
/// `TQueue<V>` has values of the types of columns, which are durable if the queue is, and
/// `TQueue<Boxed<T>>` has values of any type. Beside the values, the ends are two boxes of one
/// number. A push links a row, and a pop deletes one.
///
/// # Errors of every operation
/// Those of [every operation](crate::Table#errors-of-every-operation) on a table;
/// [`Abort::MemoryLimit`] of a push, or of its commit.
#[doc(alias = "VecDeque")]
#[doc(alias = "channel")]
pub struct TQueue<V: Stored, P: Protocol = DefaultProtocol> {
    sequence: Sequence<V, P>,
}

impl<V: Stored, P: Protocol> Clone for TQueue<V, P> {
    fn clone(&self) -> Self {
        TQueue { sequence: self.sequence.clone() }
    }
}

impl<V: Stored, P: Protocol> fmt::Debug for TQueue<V, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TQueue").finish_non_exhaustive()
    }
}

impl<V: Stored, P: Protocol> TQueue<V, P> {
    /// Makes a queue without a name. Call this outside of transactions.
    ///
    /// # Errors
    /// As [`TMap::new`](super::TMap::new).
    pub fn new(db: &Database<P>) -> Result<TQueue<V, P>, Error> {
        Ok(TQueue { sequence: Sequence::new(db, 2)? })
    }

    /// Returns the queue with a name. If there is none, makes an empty one. Call this outside of
    /// transactions.
    ///
    /// # Errors
    /// As [`TBox::named`](super::TBox::named).
    pub fn named(db: &Database<P>, name: &str) -> Result<TQueue<V, P>, Error> {
        Ok(TQueue { sequence: Sequence::named(db, name, "TQueue", 2)? })
    }

    /// Adds a value behind all others, without observing any of them.
    ///
    /// # Errors
    /// [Those of every operation](TQueue#errors-of-every-operation).
    #[doc(alias = "push_back")]
    #[doc(alias = "enqueue")]
    #[doc(alias = "send")]
    pub fn push(&self, tx: &Tx<'_, P>, value: V::Value) -> Result<(), Abort> {
        self.sequence.append(tx, TAIL, value)
    }

    /// Removes the first value, and returns it; `None` if the queue is empty.
    ///
    /// # Errors
    /// [Those of every operation](TQueue#errors-of-every-operation).
    #[doc(alias = "pop_front")]
    #[doc(alias = "dequeue")]
    #[doc(alias = "recv")]
    pub fn pop<'t>(&'t self, tx: &'t Tx<'_, P>) -> Result<Option<V::Seen<'t>>, Abort> {
        let Some(first) = self.first(tx)? else { return Ok(None) };
        let value = self.sequence.read(tx, first)?;
        self.sequence.delete(tx, first)?;
        self.sequence.add(tx, HEAD, 1)?;
        Ok(Some(value))
    }

    /// Returns the first value; `None` if the queue is empty.
    ///
    /// # Errors
    /// [Those of every operation](TQueue#errors-of-every-operation).
    #[doc(alias = "front")]
    pub fn peek<'t>(&'t self, tx: &'t Tx<'_, P>) -> Result<Option<V::Seen<'t>>, Abort> {
        let Some(first) = self.first(tx)? else { return Ok(None) };
        self.sequence.read(tx, first).map(Some)
    }

    /// Returns the number of the first value, which the transaction can read; `None` if the queue
    /// is empty.
    fn first(&self, tx: &Tx<'_, P>) -> Result<Option<i64>, Abort> {
        let head = self.sequence.number(tx, HEAD)?;
        let late = self.sequence.late(tx, TAIL)?;
        if late > 0 {
            // The transaction's own values are behind those that are there.
            if self.sequence.is_within(tx, TAIL, head + late + 1..)? {
                return Ok(Some(head));
            }
            self.sequence.settle(tx, TAIL)?;
        }
        Ok(self.sequence.is_within(tx, TAIL, head + 1..)?.then_some(head))
    }

    /// Returns whether the queue is empty.
    ///
    /// # Errors
    /// [Those of every operation](TQueue#errors-of-every-operation).
    pub fn is_empty(&self, tx: &Tx<'_, P>) -> Result<bool, Abort> {
        let head = self.sequence.number(tx, HEAD)?;
        self.sequence.is_within(tx, TAIL, ..=head)
    }

    /// Returns the number of values, and observes it.
    ///
    /// # Errors
    /// [Those of every operation](TQueue#errors-of-every-operation).
    pub fn len(&self, tx: &Tx<'_, P>) -> Result<usize, Abort> {
        let head = self.sequence.number(tx, HEAD)?;
        Ok((self.sequence.number(tx, TAIL)? - head) as usize)
    }

    /// Removes all values.
    ///
    /// # Errors
    /// [Those of every operation](TQueue#errors-of-every-operation).
    pub fn clear(&self, tx: &Tx<'_, P>) -> Result<(), Abort> {
        while self.pop(tx)?.is_some() {}
        Ok(())
    }

    /// Returns the values that are in the queue now, in their order. The transaction observes the
    /// whole queue. A value that the transaction removes before the iterator has come to it is an
    /// [`Abort::NotFound`].
    ///
    /// # Errors
    /// [Those of every operation](TQueue#errors-of-every-operation).
    pub fn iter<'t>(
        &'t self,
        tx: &'t Tx<'_, P>,
    ) -> Result<impl DoubleEndedIterator<Item = Result<V::Seen<'t>, Abort>>, Abort> {
        self.sequence.settle(tx, TAIL)?;
        let (head, tail) = (self.sequence.number(tx, HEAD)?, self.sequence.number(tx, TAIL)?);
        Ok((head..tail).map(move |number| self.sequence.read(tx, number)))
    }
}
