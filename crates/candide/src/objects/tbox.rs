//! Boxes: one value each.

#![forbid(unsafe_code)]

use super::boxed::Boxed;
use super::cell::Cell;
use super::cells::Cells;
use super::directory::{ObjectType, named_cells, unnamed_cell_in, unnamed_cells};
use super::stored::Stored;
use crate::api::{Database, Inputs, Later, Values};
use crate::engine::Protocol;
use crate::error::{Abort, Error};
use crate::protocols::DefaultProtocol;
use crate::schema::{Field, Number};
use crate::txn::Tx;
use std::fmt;
use std::ops::RangeBounds;

/// A value that transactions read and write: what libraries of software transactional memory call
/// a `TVar`.
///
/// ```
/// use candide::objects::TBox;
/// use candide::Database;
///
/// let db = Database::new();
/// let (checking, savings) = (TBox::new(&db, 200i64)?, TBox::new(&db, 0)?);
/// db.run(|tx| {
///     let all = checking.replace(tx, 0)?;
///     savings.modify(tx, |cents| *cents += all)
/// })?;
/// assert_eq!(db.run(|tx| Ok((checking.get(tx)?, savings.get(tx)?))), Ok((0, 200)));
/// # Ok::<(), candide::Error>(())
/// ```
///
/// # Unit and conflicts
/// Each box is a unit of conflict of its own. A [`set`](TBox::set) observes nothing; so does an
/// [`add`](TBox::add), under protocols that apply updates at the commit. `get`, `replace` and
/// `modify` observe the value.
///
/// # Names
/// A box with a name ([`TBox::named`]) exists once in its database, and is durable if the database
/// is ([more](super#names)). A box without a name is in memory only. It ends with its last handle:
/// transactions that end some milliseconds later delete it, and its memory is used for later boxes.
///
/// # Cost
/// A handle is of a few words, and its clones are handles of the same box. Boxes of fields share
/// one table for all values of the same number of words, boxes of [`Boxed`] values one for each
/// type: a box of one number takes some 60 bytes. Each operation looks the box up by its number.
/// Under [`Mvto`](crate::Mvto) a `set` links a version of the value.
///
/// # Errors of every operation
/// Those of [every operation](crate::Table#errors-of-every-operation) on a table.
/// [`Abort::NotFound`] if the transaction that was to [create](TBox::create) the box has not
/// committed.
#[doc(alias = "TVar")]
#[doc(alias = "Mutex")]
#[doc(alias = "RwLock")]
pub struct TBox<V: Stored, P: Protocol = DefaultProtocol> {
    cells: Cells<V::Cells<P>, P>,
}

/// The name that libraries of software transactional memory have for a [`TBox`].
pub type TVar<V, P = DefaultProtocol> = TBox<V, P>;

impl<V: Stored, P: Protocol> Clone for TBox<V, P> {
    fn clone(&self) -> Self {
        TBox { cells: self.cells.clone() }
    }
}

impl<V: Stored, P: Protocol> fmt::Debug for TBox<V, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TBox").field("number", &self.cells.first).finish_non_exhaustive()
    }
}

impl<V: Stored, P: Protocol> TBox<V, P> {
    /// Makes a box without a name, as a part of the transaction `tx` of `db`. The box exists when
    /// the transaction has committed. If the closure runs again, it makes another box.
    ///
    /// ```
    /// # use candide::objects::TBox;
    /// # use candide::Database;
    /// let db = Database::new();
    /// let newest = TBox::new(&db, 0u64)?;
    /// let ticket = db.try_run(|tx| {
    ///     let number = newest.get(tx)? + 1;
    ///     newest.set(tx, number)?;
    ///     TBox::create(tx, &db, number)
    /// })?;
    /// assert_eq!(db.run(|tx| ticket.get(tx)), Ok(1));
    /// # Ok::<(), candide::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Transaction`] with [those of every
    /// operation](crate::Table#errors-of-every-operation); [`Error::TooManyTables`] and
    /// [`Error::MemoryLimit`] for the first box of so many words.
    pub fn create(tx: &Tx<'_, P>, db: &Database<P>, value: V) -> Result<TBox<V, P>, Error> {
        Ok(TBox { cells: unnamed_cell_in(db, tx, value)? })
    }
}

impl<V: Stored + Clone, P: Protocol> TBox<V, P> {
    /// Makes a box without a name, in a transaction of its own: not within another one of the same
    /// database, where [`TBox::create`] makes it. The value is cloned within that transaction, in
    /// each of its attempts.
    ///
    /// # Errors
    /// [`Error::TooManyTables`], [`Error::MemoryLimit`]; [`Error::Transaction`] with
    /// [`Abort::Nested`] within a transaction of the same database, and with
    /// [`Abort::SecondSession`] under a protocol that allows one session if the program holds it.
    pub fn new(db: &Database<P>, value: V) -> Result<TBox<V, P>, Error> {
        Ok(TBox { cells: unnamed_cells(db, 1, &|_| value.clone())? })
    }

    /// Returns the box with a name. If there is none, makes one that contains `value`.
    ///
    /// In a database that is [open](Database::open), the box and its value are durable as rows are,
    /// and a later opening finds them. Call this before transactions: it runs one of its own, which
    /// is not a part of another one.
    ///
    /// # Errors
    /// As [`TBox::new`]; [`Error::ObjectType`] if the name belongs to an object of another type,
    /// [`Error::EmptyTableName`], [`Error::LongName`] for more than 64 bytes; [`Error::Files`], and
    /// [`Error::Transaction`] with [`Abort::LogFailed`] or [`Abort::DiskFull`].
    pub fn named(db: &Database<P>, name: &str, value: V) -> Result<TBox<V, P>, Error> {
        let wanted = ObjectType::of_cells::<V>("TBox", 1);
        Ok(TBox { cells: named_cells(db, name, &wanted, &|_| value.clone())? })
    }
}

/// Boxes of fields.
impl<V: Field, P: Protocol> TBox<V, P> {
    /// Returns the value.
    ///
    /// # Errors
    /// [Those of every operation](TBox#errors-of-every-operation).
    #[inline]
    pub fn get(&self, tx: &Tx<'_, P>) -> Result<V, Abort> {
        self.cells.row(tx, 0)?.read(Cell::<V>::VALUE)
    }

    /// As [`TBox::get`], for a transaction that is going to write the box: no other transaction
    /// writes it before this one has ended
    /// ([`Table::get_for_update`](crate::Table::get_for_update)).
    ///
    /// # Errors
    /// [Those of every operation](TBox#errors-of-every-operation).
    pub fn get_for_update(&self, tx: &Tx<'_, P>) -> Result<V, Abort> {
        self.cells.row(tx, 0)?.read_for_update(Cell::<V>::VALUE)
    }

    /// Sets the value, without observing the present one.
    ///
    /// # Errors
    /// [Those of every operation](TBox#errors-of-every-operation).
    #[inline]
    #[doc(alias = "write")]
    pub fn set(&self, tx: &Tx<'_, P>, value: V) -> Result<(), Abort> {
        self.cells.row(tx, 0)?.update(Cell::<V>::VALUE.set(value))
    }

    /// Sets the value, and returns the one before.
    ///
    /// # Errors
    /// [Those of every operation](TBox#errors-of-every-operation).
    #[doc(alias = "swap")]
    pub fn replace(&self, tx: &Tx<'_, P>, value: V) -> Result<V, Abort> {
        let row = self.cells.row(tx, 0)?;
        let before = row.read(Cell::<V>::VALUE)?;
        row.update(Cell::<V>::VALUE.set(value))?;
        Ok(before)
    }

    /// Reads the value, lets `change` change it, and writes it back; returns what `change` returns.
    ///
    /// # Errors
    /// [Those of every operation](TBox#errors-of-every-operation).
    pub fn modify<T>(&self, tx: &Tx<'_, P>, change: impl FnOnce(&mut V) -> T) -> Result<T, Abort> {
        self.cells.row(tx, 0)?.modify(Cell::<V>::VALUE, change)
    }

    /// Defers a step, which changes the value when the transaction commits, as
    /// [`Table::defer`](crate::Table::defer). Until then, the transaction cannot read the box
    /// ([`Abort::NotYet`]).
    ///
    /// ```
    /// # use candide::objects::TBox;
    /// # use candide::Database;
    /// let db = Database::new();
    /// let (from, to) = (TBox::new(&db, 500i64)?, TBox::new(&db, 0i64)?);
    /// let paid = db.run_deferred(|tx| {
    ///     let half = from.defer(tx, (), |cents, ()| {
    ///         let half = *cents / 2;
    ///         *cents -= half;
    ///         half
    ///     })?;
    ///     to.defer(tx, &half, |cents, half| *cents += half)?;
    ///     Ok(half)
    /// });
    /// assert_eq!((paid, db.run(|tx| to.get(tx))), (Ok(250), Ok(250)));
    /// # Ok::<(), candide::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Table::defer`](crate::Table::defer).
    pub fn defer<I: Inputs, T: 'static>(
        &self,
        tx: &Tx<'_, P>,
        inputs: I,
        step: impl FnMut(&mut V, Values<'_, I>) -> T + 'static,
    ) -> Result<Later<T>, Abort> {
        self.cells.row(tx, 0)?.defer(Cell::<V>::VALUE, inputs, step)
    }

    /// Sets the value when the transaction commits, and returns the one before, which is known
    /// then. Observes nothing, unlike [`TBox::replace`].
    ///
    /// # Errors
    /// As [`TBox::defer`].
    pub fn replace_later(&self, tx: &Tx<'_, P>, value: V) -> Result<Later<V>, Abort> {
        self.defer(tx, (), move |present, ()| std::mem::replace(present, value))
    }
}

/// Boxes of numbers.
impl<V: Number, P: Protocol> TBox<V, P> {
    /// Adds `summand` when the transaction commits, without observing the value. If the sum is out
    /// of the type's range, the transaction ends in [`Abort::Overflow`].
    ///
    /// # Errors
    /// [Those of every operation](TBox#errors-of-every-operation).
    pub fn add(&self, tx: &Tx<'_, P>, summand: V) -> Result<(), Abort> {
        self.cells.row(tx, 0)?.update(Cell::<V>::VALUE.add(summand))
    }

    /// Returns whether the value is in `range`, and observes only that, as
    /// [`Table::is_within`](crate::Table::is_within).
    ///
    /// # Errors
    /// [Those of every operation](TBox#errors-of-every-operation).
    pub fn is_within(&self, tx: &Tx<'_, P>, range: impl RangeBounds<V>) -> Result<bool, Abort> {
        self.cells.row(tx, 0)?.is_within(Cell::<V>::VALUE, range)
    }
}

/// Boxes of values of any type.
///
/// ```
/// # use candide::objects::{Boxed, TBox};
/// # use candide::Database;
/// let db = Database::new();
/// let path = TBox::new(&db, Boxed(vec!["home"]))?;
/// db.run(|tx| path.modify(tx, |path| path.push("ann")))?;
/// let shown = db.run(|tx| Ok(path.get(tx)?.join("/")))?;
/// assert_eq!(shown, "home/ann");
/// # Ok::<(), candide::Error>(())
/// ```
impl<T: Send + Sync + 'static, P: Protocol> TBox<Boxed<T>, P> {
    /// Returns the value.
    ///
    /// # Errors
    /// [Those of every operation](TBox#errors-of-every-operation).
    pub fn get<'t>(&self, tx: &'t Tx<'_, P>) -> Result<&'t T, Abort> {
        self.cells.table.read(tx, self.cells.first)
    }

    /// As `get`, for a transaction that is going to write the box: no other transaction writes it
    /// before this one has ended ([`Table::get_for_update`](crate::Table::get_for_update)).
    ///
    /// # Errors
    /// [Those of every operation](TBox#errors-of-every-operation).
    pub fn get_for_update<'t>(&self, tx: &'t Tx<'_, P>) -> Result<&'t T, Abort> {
        let table = &self.cells.table;
        let missed = || tx.state.borrow_mut().outcome_in(Abort::NotFound, table.shared_core());
        table.get_for_update(tx, self.cells.first)?.ok_or_else(missed)
    }

    /// Sets the value, without observing the present one.
    ///
    /// # Errors
    /// [Those of every operation](TBox#errors-of-every-operation).
    pub fn set(&self, tx: &Tx<'_, P>, value: T) -> Result<(), Abort> {
        self.cells.table.set(tx, self.cells.first, value)
    }

    /// Sets the value, and returns the one before.
    ///
    /// # Errors
    /// [Those of every operation](TBox#errors-of-every-operation).
    pub fn replace<'t>(&self, tx: &'t Tx<'_, P>, value: T) -> Result<&'t T, Abort> {
        self.cells.table.replace(tx, self.cells.first, value)
    }

    /// Replaces the value by what `change` makes of it.
    ///
    /// # Errors
    /// [Those of every operation](TBox#errors-of-every-operation).
    pub fn replace_with(&self, tx: &Tx<'_, P>, change: impl FnOnce(&T) -> T) -> Result<(), Abort> {
        self.cells.table.replace_with(tx, self.cells.first, change)
    }

    /// Clones the value, lets `change` change the clone, and sets the value to it; returns what
    /// `change` returns.
    ///
    /// # Errors
    /// [Those of every operation](TBox#errors-of-every-operation).
    pub fn modify<U>(&self, tx: &Tx<'_, P>, change: impl FnOnce(&mut T) -> U) -> Result<U, Abort>
    where
        T: Clone,
    {
        let mut value = self.get(tx)?.clone();
        let result = change(&mut value);
        self.set(tx, value)?;
        Ok(result)
    }
}
