//! Vectors.

#![forbid(unsafe_code)]

use super::sequence::Sequence;
use super::stored::Stored;
use crate::api::Database;
use crate::engine::Protocol;
use crate::error::{Abort, Error};
use crate::protocols::DefaultProtocol;
use crate::schema::Field;
use crate::txn::Tx;
use std::fmt;
use std::ops::RangeBounds;

/// The end of the vector.
const END: u64 = 0;

/// A vector: values by index, which grows and shrinks at its end. ([`TArray`](super::TArray) has a
/// fixed length, and costs less.)
///
/// ```
/// use candide::objects::TVec;
/// use candide::{Abort, Database};
///
/// let db = Database::new();
/// let lines = TVec::<u64>::new(&db)?;
/// db.run(|tx| (1..=3).try_for_each(|line| lines.push(tx, line)))?;
/// assert_eq!(db.run(|tx| lines.pop(tx)), Ok(Some(3)));
/// db.run(|tx| lines.set(tx, 0, 7))?;
/// assert_eq!(db.run(|tx| lines.iter(tx)?.collect::<Result<Vec<_>, _>>()), Ok(vec![7, 2]));
/// assert_eq!(db.run(|tx| lines.set(tx, 2, 8)), Err(Abort::OutOfBounds));
/// # Ok::<(), candide::Error>(())
/// ```
///
/// # Unit and conflicts
/// The length and each element are units of conflict of their own.
/// * A [`push`](TVec::push) observes nothing: the commit finds the index of the value, when it has
///   locked the length. So transactions that push do not conflict with one another. They wait for
///   one another's commits. The values that one transaction pushes have consecutive indexes.
/// * [`get`](TVec::get), [`set`](TVec::set) and all that takes an index observe only whether the
///   length is above that index ([`Table::is_within`](crate::Table::is_within)), and `get` the
///   element. In a transaction that has pushed, they observe the length.
/// * [`pop`](TVec::pop), [`len`](TVec::len) and [`iter`](TVec::iter) observe the length, so they
///   conflict with every push.
///
/// Under [`TicToc`](crate::TicToc) and [`Mvcc`](crate::Mvcc), and under policies that lock rows
/// when they are read, operations with an index observe the length. Under [`Mvto`](crate::Mvto),
/// which chooses its timestamps first, a push reads the length, so pushes conflict.
///
/// # Names and cost
/// As of a [`TQueue`](super::TQueue), with one end.
///
/// # Errors of every operation
/// Those of [every operation](crate::Table#errors-of-every-operation) on a table;
/// [`Abort::MemoryLimit`] of a push, or of its commit.
#[doc(alias = "Vec")]
#[doc(alias = "stack")]
pub struct TVec<V: Stored, P: Protocol = DefaultProtocol> {
    sequence: Sequence<V, P>,
}

impl<V: Stored, P: Protocol> Clone for TVec<V, P> {
    fn clone(&self) -> Self {
        TVec { sequence: self.sequence.clone() }
    }
}

impl<V: Stored, P: Protocol> fmt::Debug for TVec<V, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TVec").finish_non_exhaustive()
    }
}

impl<V: Stored, P: Protocol> TVec<V, P> {
    /// Makes a vector without a name. Call this outside of transactions.
    ///
    /// # Errors
    /// As [`TMap::new`](super::TMap::new).
    pub fn new(db: &Database<P>) -> Result<TVec<V, P>, Error> {
        Ok(TVec { sequence: Sequence::new(db, 1)? })
    }

    /// Returns the vector with a name. If there is none, makes an empty one. Call this outside of
    /// transactions.
    ///
    /// # Errors
    /// As [`TBox::named`](super::TBox::named).
    pub fn named(db: &Database<P>, name: &str) -> Result<TVec<V, P>, Error> {
        Ok(TVec { sequence: Sequence::named(db, name, "TVec", 1)? })
    }

    /// Adds a value at the end, without observing the length.
    ///
    /// # Errors
    /// [Those of every operation](TVec#errors-of-every-operation).
    pub fn push(&self, tx: &Tx<'_, P>, value: V::Value) -> Result<(), Abort> {
        self.sequence.append(tx, END, value)
    }

    /// Removes the last value, and returns it; `None` if the vector is empty.
    ///
    /// # Errors
    /// [Those of every operation](TVec#errors-of-every-operation).
    pub fn pop<'t>(&'t self, tx: &'t Tx<'_, P>) -> Result<Option<V::Seen<'t>>, Abort> {
        self.sequence.settle(tx, END)?;
        let last = self.sequence.number(tx, END)? - 1;
        if last < 0 {
            return Ok(None);
        }
        let value = self.sequence.read(tx, last)?;
        self.delete_last(tx, last)?;
        Ok(Some(value))
    }

    fn delete_last(&self, tx: &Tx<'_, P>, last: i64) -> Result<(), Abort> {
        self.sequence.delete(tx, last)?;
        self.sequence.add(tx, END, -1)
    }

    /// Returns the number of elements, and observes it.
    ///
    /// # Errors
    /// [Those of every operation](TVec#errors-of-every-operation).
    pub fn len(&self, tx: &Tx<'_, P>) -> Result<usize, Abort> {
        self.sequence.number(tx, END).map(|len| len as usize)
    }

    /// Returns whether the vector has no elements, and observes only that.
    ///
    /// # Errors
    /// [Those of every operation](TVec#errors-of-every-operation).
    pub fn is_empty(&self, tx: &Tx<'_, P>) -> Result<bool, Abort> {
        self.sequence.is_within(tx, END, ..=0)
    }

    /// Returns whether the number of elements is in `range`, and observes only that.
    ///
    /// # Errors
    /// [Those of every operation](TVec#errors-of-every-operation).
    pub fn has_len_within(
        &self,
        tx: &Tx<'_, P>,
        range: impl RangeBounds<usize>,
    ) -> Result<bool, Abort> {
        let number = |&len: &usize| i64::try_from(len).unwrap_or(i64::MAX);
        let bounds = (range.start_bound().map(number), range.end_bound().map(number));
        self.sequence.is_within(tx, END, bounds)
    }

    /// Returns the element at an index; `None` if the index is not below the length.
    ///
    /// # Errors
    /// [Those of every operation](TVec#errors-of-every-operation).
    pub fn get<'t>(
        &'t self,
        tx: &'t Tx<'_, P>,
        index: usize,
    ) -> Result<Option<V::Seen<'t>>, Abort> {
        match self.place(tx, index) {
            Ok(place) => self.sequence.read(tx, place).map(Some),
            Err(Abort::OutOfBounds) => Ok(None),
            Err(abort) => Err(abort),
        }
    }

    /// Replaces the element at an index, without observing it.
    ///
    /// # Errors
    /// [`Abort::OutOfBounds`] if the index is not below the length: nothing has happened then, and
    /// the closure may go on. [Those of every operation](TVec#errors-of-every-operation).
    pub fn set(&self, tx: &Tx<'_, P>, index: usize, value: V::Value) -> Result<(), Abort> {
        match self.place(tx, index) {
            Ok(place) => self.sequence.set(tx, place, value),
            Err(refusal) => self.sequence.refuse(tx, value).and(Err(refusal)),
        }
    }

    /// Replaces the element at an index, and returns the one before.
    ///
    /// # Errors
    /// As [`TVec::set`].
    pub fn replace<'t>(
        &'t self,
        tx: &'t Tx<'_, P>,
        index: usize,
        value: V::Value,
    ) -> Result<V::Seen<'t>, Abort> {
        let read = |place| Ok((place, self.sequence.read(tx, place)?));
        match self.place(tx, index).and_then(read) {
            Ok((place, before)) => self.sequence.set(tx, place, value).map(|()| before),
            Err(refusal) => {
                self.sequence.refuse(tx, value)?;
                Err(refusal)
            }
        }
    }

    /// Removes all elements from index `len` on, if there are any.
    ///
    /// # Errors
    /// [Those of every operation](TVec#errors-of-every-operation).
    pub fn truncate(&self, tx: &Tx<'_, P>, len: usize) -> Result<(), Abort> {
        self.sequence.settle(tx, END)?;
        let len = i64::try_from(len).unwrap_or(i64::MAX);
        (len..self.sequence.number(tx, END)?).rev().try_for_each(|last| self.delete_last(tx, last))
    }

    /// Removes all elements.
    ///
    /// # Errors
    /// [Those of every operation](TVec#errors-of-every-operation).
    pub fn clear(&self, tx: &Tx<'_, P>) -> Result<(), Abort> {
        self.truncate(tx, 0)
    }

    /// Returns the elements that the vector has now, in their order. The transaction observes the
    /// whole vector. An element that the transaction removes before the iterator has come to it is
    /// an [`Abort::NotFound`].
    ///
    /// # Errors
    /// [Those of every operation](TVec#errors-of-every-operation).
    pub fn iter<'t>(
        &'t self,
        tx: &'t Tx<'_, P>,
    ) -> Result<impl DoubleEndedIterator<Item = Result<V::Seen<'t>, Abort>>, Abort> {
        self.sequence.settle(tx, END)?;
        let len = self.sequence.number(tx, END)?;
        Ok((0..len).map(move |number| self.sequence.read(tx, number)))
    }

    /// Returns the number of the element at an index, which the transaction can read.
    ///
    /// # Errors
    /// [`Abort::OutOfBounds`] if the index is not below the length.
    fn place(&self, tx: &Tx<'_, P>, index: usize) -> Result<i64, Abort> {
        let place = i64::try_from(index).map_err(|_| Abort::OutOfBounds)?;
        self.sequence.settle(tx, END)?;
        let is_there = place < i64::MAX && self.sequence.is_within(tx, END, place + 1..)?;
        if is_there { Ok(place) } else { Err(Abort::OutOfBounds) }
    }
}

/// Vectors of fields.
impl<V: Field, P: Protocol> TVec<V, P> {
    /// Reads the element at an index, lets `change` change it, and writes it back; returns what
    /// `change` returns.
    ///
    /// # Errors
    /// As [`TVec::set`].
    pub fn modify<T>(
        &self,
        tx: &Tx<'_, P>,
        index: usize,
        change: impl FnOnce(&mut V) -> T,
    ) -> Result<T, Abort> {
        let place = self.place(tx, index)?;
        let mut value = self.sequence.read(tx, place)?;
        let result = change(&mut value);
        self.sequence.set(tx, place, value)?;
        Ok(result)
    }

    /// Exchanges two elements.
    ///
    /// # Errors
    /// As [`TVec::set`].
    pub fn swap(&self, tx: &Tx<'_, P>, first: usize, second: usize) -> Result<(), Abort> {
        let places = (self.place(tx, first)?, self.place(tx, second)?);
        let values = (self.sequence.read(tx, places.0)?, self.sequence.read(tx, places.1)?);
        self.sequence.set(tx, places.0, values.1)?;
        self.sequence.set(tx, places.1, values.0)
    }

    /// Returns all elements, and observes each of them.
    ///
    /// # Errors
    /// [Those of every operation](TVec#errors-of-every-operation).
    pub fn to_vec(&self, tx: &Tx<'_, P>) -> Result<Vec<V>, Abort> {
        self.iter(tx)?.collect()
    }
}
