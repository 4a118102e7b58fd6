//! Arrays of a fixed length.

#![forbid(unsafe_code)]

use super::boxed::Boxed;
use super::cell::Cell;
use super::cells::Cells;
use super::directory::{ObjectType, named_cells, unnamed_cells};
use super::stored::Stored;
use crate::api::{Database, Inputs, Later, Row, Values};
use crate::engine::Protocol;
use crate::error::{Abort, Error};
use crate::protocols::DefaultProtocol;
use crate::schema::{Field, Number};
use crate::txn::Tx;
use std::fmt;
use std::ops::RangeBounds;

/// An array of a fixed length, whose elements transactions read and write.
///
/// ```
/// use candide::objects::TArray;
/// use candide::{Abort, Database};
///
/// let db = Database::new();
/// let cells = TArray::new(&db, 8, |index| index as i64)?;
/// db.run(|tx| {
///     cells.swap(tx, 0, 7)?;
///     cells.add(tx, 3, 100) // observes nothing
/// })?;
/// assert_eq!(db.run(|tx| cells.to_vec(tx)), Ok(vec![7, 1, 2, 103, 4, 5, 6, 0]));
/// assert_eq!(db.run(|tx| cells.get(tx, 8)), Err(Abort::OutOfBounds));
/// # Ok::<(), candide::Error>(())
/// ```
///
/// # Unit and conflicts
/// Each element is a unit of conflict of its own. What is to be read and written together belongs
/// into one element: a `TArray<[i64; 3]>` has one unit for three numbers. [`set`](TArray::set)
/// observes nothing, and neither does [`add`](TArray::add), under protocols that apply updates at
/// the commit. Indexes are not observed: the length never changes.
///
/// # Names and cost
/// As of a [`TBox`](super::TBox): an array is as many cells with consecutive numbers. The array is
/// made in one transaction of its own, so a very long one takes a while, and memory for its write
/// set; only a `TBox` can be made within another transaction.
///
/// # Errors of every operation
/// [`Abort::OutOfBounds`] if an index is not below the length: nothing has happened then, and the
/// closure may go on. Those of [every operation](crate::Table#errors-of-every-operation) on a
/// table.
pub struct TArray<V: Stored, P: Protocol = DefaultProtocol> {
    cells: Cells<V::Cells<P>, P>,
}

impl<V: Stored, P: Protocol> Clone for TArray<V, P> {
    fn clone(&self) -> Self {
        TArray { cells: self.cells.clone() }
    }
}

impl<V: Stored, P: Protocol> fmt::Debug for TArray<V, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TArray").field("len", &self.cells.count).finish_non_exhaustive()
    }
}

impl<V: Stored, P: Protocol> TArray<V, P> {
    /// Makes an array without a name, whose elements `value` returns for their indexes. `value` is
    /// called within a transaction, in each of its attempts, and so cannot run another one.
    ///
    /// # Errors
    /// As [`TBox::new`](super::TBox::new).
    pub fn new(
        db: &Database<P>,
        len: usize,
        value: impl Fn(usize) -> V,
    ) -> Result<TArray<V, P>, Error> {
        Ok(TArray { cells: unnamed_cells(db, len as u64, &|index| value(index as usize))? })
    }

    /// Returns the array with a name. If there is none, makes one as [`TArray::new`] does.
    ///
    /// # Errors
    /// As [`TBox::named`](super::TBox::named); [`Error::ObjectType`], too, if the array has another
    /// length.
    pub fn named(
        db: &Database<P>,
        name: &str,
        len: usize,
        value: impl Fn(usize) -> V,
    ) -> Result<TArray<V, P>, Error> {
        let wanted = ObjectType::of_cells::<V>("TArray", len as u64);
        let wanted = ObjectType { name: format!("{} of length {len}", wanted.name), ..wanted };
        Ok(TArray { cells: named_cells(db, name, &wanted, &|index| value(index as usize))? })
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.cells.count as usize
    }

    /// Returns whether the array has no elements.
    pub fn is_empty(&self) -> bool {
        self.cells.count == 0
    }

    /// Returns the number of an element's cell.
    #[inline]
    fn number(&self, index: usize) -> Result<u64, Abort> {
        match (index as u64) < self.cells.count {
            true => Ok(self.cells.first + index as u64),
            false => Err(Abort::OutOfBounds),
        }
    }
}

/// Arrays of fields.
impl<V: Field, P: Protocol> TArray<V, P> {
    /// Returns a handle on the record of an element.
    #[inline]
    fn row<'t>(&'t self, tx: &'t Tx<'_, P>, index: usize) -> Result<Row<'t, Cell<V>, P>, Abort> {
        self.cells.table.find(tx, self.number(index)?)
    }

    /// Returns an element.
    ///
    /// # Errors
    /// [Those of every operation](TArray#errors-of-every-operation).
    #[inline]
    pub fn get(&self, tx: &Tx<'_, P>, index: usize) -> Result<V, Abort> {
        self.row(tx, index)?.read(Cell::<V>::VALUE)
    }

    /// As [`TArray::get`], for a transaction that is going to write the element
    /// ([`Table::get_for_update`](crate::Table::get_for_update)).
    ///
    /// # Errors
    /// [Those of every operation](TArray#errors-of-every-operation).
    pub fn get_for_update(&self, tx: &Tx<'_, P>, index: usize) -> Result<V, Abort> {
        self.row(tx, index)?.read_for_update(Cell::<V>::VALUE)
    }

    /// Sets an element, without observing the present one.
    ///
    /// # Errors
    /// [Those of every operation](TArray#errors-of-every-operation).
    #[inline]
    pub fn set(&self, tx: &Tx<'_, P>, index: usize, value: V) -> Result<(), Abort> {
        self.row(tx, index)?.update(Cell::<V>::VALUE.set(value))
    }

    /// Sets an element, and returns the one before.
    ///
    /// # Errors
    /// [Those of every operation](TArray#errors-of-every-operation).
    pub fn replace(&self, tx: &Tx<'_, P>, index: usize, value: V) -> Result<V, Abort> {
        let row = self.row(tx, index)?;
        let before = row.read(Cell::<V>::VALUE)?;
        row.update(Cell::<V>::VALUE.set(value))?;
        Ok(before)
    }

    /// Reads an element, lets `change` change it, and writes it back; returns what `change`
    /// returns.
    ///
    /// # Errors
    /// [Those of every operation](TArray#errors-of-every-operation).
    pub fn modify<T>(
        &self,
        tx: &Tx<'_, P>,
        index: usize,
        change: impl FnOnce(&mut V) -> T,
    ) -> Result<T, Abort> {
        self.row(tx, index)?.modify(Cell::<V>::VALUE, change)
    }

    /// Defers a step, which changes an element when the transaction commits, as
    /// [`Table::defer`](crate::Table::defer).
    ///
    /// # Errors
    /// As [`Table::defer`](crate::Table::defer); [`Abort::OutOfBounds`].
    pub fn defer<I: Inputs, T: 'static>(
        &self,
        tx: &Tx<'_, P>,
        index: usize,
        inputs: I,
        step: impl FnMut(&mut V, Values<'_, I>) -> T + 'static,
    ) -> Result<Later<T>, Abort> {
        self.row(tx, index)?.defer(Cell::<V>::VALUE, inputs, step)
    }

    /// Exchanges two elements.
    ///
    /// # Errors
    /// [Those of every operation](TArray#errors-of-every-operation).
    pub fn swap(&self, tx: &Tx<'_, P>, first: usize, second: usize) -> Result<(), Abort> {
        let (first, second) = (self.row(tx, first)?, self.row(tx, second)?);
        let values = (first.read(Cell::<V>::VALUE)?, second.read(Cell::<V>::VALUE)?);
        first.update(Cell::<V>::VALUE.set(values.1))?;
        second.update(Cell::<V>::VALUE.set(values.0))
    }

    /// Returns all elements, and observes each of them.
    ///
    /// # Errors
    /// [Those of every operation](TArray#errors-of-every-operation).
    pub fn to_vec(&self, tx: &Tx<'_, P>) -> Result<Vec<V>, Abort> {
        (0..self.len()).map(|index| self.get(tx, index)).collect()
    }
}

/// Arrays of numbers.
impl<V: Number, P: Protocol> TArray<V, P> {
    /// Adds `summand` to an element when the transaction commits, without observing the element. If
    /// the sum is out of the type's range, the transaction ends in [`Abort::Overflow`].
    ///
    /// # Errors
    /// [Those of every operation](TArray#errors-of-every-operation).
    pub fn add(&self, tx: &Tx<'_, P>, index: usize, summand: V) -> Result<(), Abort> {
        self.row(tx, index)?.update(Cell::<V>::VALUE.add(summand))
    }

    /// Returns whether an element is in `range`, and observes only that, as
    /// [`Table::is_within`](crate::Table::is_within).
    ///
    /// # Errors
    /// [Those of every operation](TArray#errors-of-every-operation).
    pub fn is_within(
        &self,
        tx: &Tx<'_, P>,
        index: usize,
        range: impl RangeBounds<V>,
    ) -> Result<bool, Abort> {
        self.row(tx, index)?.is_within(Cell::<V>::VALUE, range)
    }
}

/// Arrays of values of any type.
impl<T: Send + Sync + 'static, P: Protocol> TArray<Boxed<T>, P> {
    /// Returns an element.
    ///
    /// # Errors
    /// [Those of every operation](TArray#errors-of-every-operation).
    pub fn get<'t>(&self, tx: &'t Tx<'_, P>, index: usize) -> Result<&'t T, Abort> {
        self.cells.table.read(tx, self.number(index)?)
    }

    /// Sets an element, without observing the present one.
    ///
    /// # Errors
    /// [Those of every operation](TArray#errors-of-every-operation).
    pub fn set(&self, tx: &Tx<'_, P>, index: usize, value: T) -> Result<(), Abort> {
        match self.number(index) {
            Ok(number) => self.cells.table.set(tx, number, value),
            Err(refusal) => self.cells.table.refuse(tx, value).and(Err(refusal)),
        }
    }

    /// Sets an element, and returns the one before.
    ///
    /// # Errors
    /// [Those of every operation](TArray#errors-of-every-operation).
    pub fn replace<'t>(&self, tx: &'t Tx<'_, P>, index: usize, value: T) -> Result<&'t T, Abort> {
        match self.number(index) {
            Ok(number) => self.cells.table.replace(tx, number, value),
            Err(refusal) => self.cells.table.refuse(tx, value).and(Err(refusal)),
        }
    }

    /// Replaces an element by what `change` makes of it.
    ///
    /// # Errors
    /// [Those of every operation](TArray#errors-of-every-operation).
    pub fn replace_with(
        &self,
        tx: &Tx<'_, P>,
        index: usize,
        change: impl FnOnce(&T) -> T,
    ) -> Result<(), Abort> {
        self.cells.table.replace_with(tx, self.number(index)?, change)
    }
}
