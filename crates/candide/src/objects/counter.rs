//! Counters.

#![forbid(unsafe_code)]

use super::cell::Cell;
use super::cells::Cells;
use super::directory::{ObjectType, named_cells, unnamed_cells};
use crate::api::{Database, Later, Table};
use crate::engine::Protocol;
use crate::error::{Abort, Error};
use crate::protocols::DefaultProtocol;
use crate::schema::Column;
use crate::txn::Tx;
use std::fmt;
use std::ops::RangeBounds;

/// The column of a counter's number.
const VALUE: Column<Cell<i64>, i64> = Cell::<i64>::VALUE;

/// A number that many transactions change at once.
///
/// ```
/// use candide::objects::TCounter;
/// use candide::Database;
///
/// let db = Database::new();
/// let stock = TCounter::new(&db)?;
/// db.run(|tx| stock.add(tx, 10))?;
/// let take = |pieces| {
///     db.run(|tx| {
///         if !stock.at_least(tx, pieces)? {
///             return Ok(false);
///         }
///         stock.sub(tx, pieces)?;
///         Ok(true)
///     })
/// };
/// assert_eq!([take(7), take(7), take(3)], [Ok(true), Ok(false), Ok(true)]);
/// # Ok::<(), candide::Error>(())
/// ```
///
/// # Unit and conflicts
/// A counter is one unit of conflict.
/// * [`add`](TCounter::add) and [`sub`](TCounter::sub) are applied when the transaction commits,
///   and observe nothing: transactions that only count do not conflict, under all protocols but
///   [`Mvto`](crate::Mvto), where one that comes too late for its timestamp runs again.
///   [`wrapping_add`](TCounter::wrapping_add) does not conflict under `Mvto` either.
/// * [`at_least`](TCounter::at_least), [`at_most`](TCounter::at_most) and
///   [`is_within`](TCounter::is_within) are *predicates*: under [`Occ`](crate::Occ) they observe
///   the answer, and not the number. A transaction conflicts with those that change its answer, and
///   with no others. Under [`TicToc`](crate::TicToc), [`Mvcc`](crate::Mvcc) and `Mvto`, and under
///   policies that lock rows when they are read, they are reads of the number. A transaction that
///   [waits](crate::Tx::check) for a predicate is woken by every change of the number.
/// * [`get`](TCounter::get) observes the number, so it conflicts with every change.
///
/// A condition that must hold when the transaction commits needs no predicate:
/// [`add_within`](TCounter::add_within) fails the transaction as a whole if the condition does not
/// hold, and never conflicts.
///
/// # Names and cost
/// As of a [`TBox`](super::TBox). Under `Mvto` every change links a version. That of a
/// `wrapping_add` holds the summand alone (in a durable database, the sum), and the next reader
/// adds it up; an `add`, which may overflow, reads the number at the commit.
#[doc(alias = "AtomicI64")]
#[doc(alias = "fetch_add")]
pub struct TCounter<P: Protocol = DefaultProtocol> {
    cells: Cells<Table<Cell<i64>, P>, P>,
}

impl<P: Protocol> Clone for TCounter<P> {
    fn clone(&self) -> Self {
        TCounter { cells: self.cells.clone() }
    }
}

impl<P: Protocol> fmt::Debug for TCounter<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TCounter").field("number", &self.cells.first).finish_non_exhaustive()
    }
}

impl<P: Protocol> TCounter<P> {
    /// Makes a counter without a name. It is zero.
    ///
    /// # Errors
    /// As [`TBox::new`](super::TBox::new).
    pub fn new(db: &Database<P>) -> Result<TCounter<P>, Error> {
        Ok(TCounter { cells: unnamed_cells(db, 1, &|_| 0)? })
    }

    /// Returns the counter with a name. If there is none, makes one that is zero.
    ///
    /// # Errors
    /// As [`TBox::named`](super::TBox::named).
    pub fn named(db: &Database<P>, name: &str) -> Result<TCounter<P>, Error> {
        let wanted = ObjectType::of_cells::<i64>("TCounter", 1);
        let wanted = ObjectType { name: "TCounter".to_owned(), ..wanted };
        Ok(TCounter { cells: named_cells(db, name, &wanted, &|_| 0)? })
    }

    /// Returns the number.
    ///
    /// # Errors
    /// [Those of every operation](crate::Table#errors-of-every-operation).
    pub fn get(&self, tx: &Tx<'_, P>) -> Result<i64, Abort> {
        self.cells.row(tx, 0)?.read(VALUE)
    }

    /// Sets the number, without observing it.
    ///
    /// # Errors
    /// [Those of every operation](crate::Table#errors-of-every-operation).
    pub fn set(&self, tx: &Tx<'_, P>, number: i64) -> Result<(), Abort> {
        self.cells.row(tx, 0)?.update(VALUE.set(number))
    }

    /// Adds `summand` when the transaction commits. If the sum is no `i64`, the transaction ends in
    /// [`Abort::Overflow`], and has no effect.
    ///
    /// # Errors
    /// [Those of every operation](crate::Table#errors-of-every-operation).
    #[inline]
    pub fn add(&self, tx: &Tx<'_, P>, summand: i64) -> Result<(), Abort> {
        self.cells.row(tx, 0)?.update(VALUE.add(summand))
    }

    /// Adds `summand` when the transaction commits, and returns the number before, which is known
    /// then ([`Database::run_deferred`](crate::Database::run_deferred)). Observes nothing, so
    /// transactions that draw numbers so do not conflict, while under `Occ` each of them waits for
    /// the lock of the one before. Until the commit, the transaction cannot read the counter
    /// ([`Abort::NotYet`]).
    ///
    /// ```
    /// # use candide::objects::TCounter;
    /// # use candide::Database;
    /// let db = Database::new();
    /// let tickets = TCounter::new(&db)?;
    /// let draw = || db.run_deferred(|tx| tickets.fetch_add(tx, 1));
    /// assert_eq!([draw(), draw()], [Ok(0), Ok(1)]);
    /// # Ok::<(), candide::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Table::defer`]. If the sum is no `i64`, the transaction ends in [`Abort::Overflow`].
    pub fn fetch_add(&self, tx: &Tx<'_, P>, summand: i64) -> Result<Later<i64>, Abort> {
        let row = self.cells.row(tx, 0)?;
        let before = row.defer(VALUE, (), |number, ()| *number)?;
        row.update(VALUE.add(summand))?;
        Ok(before)
    }

    /// Subtracts `subtrahend`; see [`TCounter::add`].
    ///
    /// # Errors
    /// [Those of every operation](crate::Table#errors-of-every-operation).
    #[inline]
    pub fn sub(&self, tx: &Tx<'_, P>, subtrahend: i64) -> Result<(), Abort> {
        self.cells.row(tx, 0)?.update(VALUE.sub(subtrahend))
    }

    /// Adds `summand` when the transaction commits, and wraps around at the ends of the range of
    /// `i64`, so that this cannot fail ([`Column::wrapping_add`](crate::Column::wrapping_add)).
    ///
    /// # Errors
    /// [Those of every operation](crate::Table#errors-of-every-operation).
    pub fn wrapping_add(&self, tx: &Tx<'_, P>, summand: i64) -> Result<(), Abort> {
        self.cells.row(tx, 0)?.update(VALUE.wrapping_add(summand))
    }

    /// Adds `summand` when the transaction commits. If the sum is then below `least` or above
    /// `most`, the transaction ends in [`Abort::Guard`], and has no effect. Observes nothing.
    ///
    /// ```
    /// # use candide::objects::TCounter;
    /// # use candide::{Abort, Database};
    /// # let db = Database::new();
    /// let free = TCounter::new(&db)?;
    /// db.run(|tx| free.set(tx, 1))?;
    /// let take = || db.run(|tx| free.add_within(tx, -1, 0, i64::MAX));
    /// assert_eq!([take(), take()], [Ok(()), Err(Abort::Guard)]);
    /// # Ok::<(), candide::Error>(())
    /// ```
    ///
    /// # Errors
    /// [Those of every operation](crate::Table#errors-of-every-operation).
    pub fn add_within(
        &self,
        tx: &Tx<'_, P>,
        summand: i64,
        least: i64,
        most: i64,
    ) -> Result<(), Abort> {
        self.cells.row(tx, 0)?.update(VALUE.add(summand).at_least(least).at_most(most))
    }

    /// Returns whether the number is `bound` or larger, and observes only that. The transaction's
    /// own additions count.
    ///
    /// # Errors
    /// [Those of every operation](crate::Table#errors-of-every-operation).
    pub fn at_least(&self, tx: &Tx<'_, P>, bound: i64) -> Result<bool, Abort> {
        self.is_within(tx, bound..)
    }

    /// Returns whether the number is `bound` or smaller, and observes only that. The transaction's
    /// own additions count.
    ///
    /// # Errors
    /// [Those of every operation](crate::Table#errors-of-every-operation).
    pub fn at_most(&self, tx: &Tx<'_, P>, bound: i64) -> Result<bool, Abort> {
        self.is_within(tx, ..=bound)
    }

    /// Returns whether the number is in `range`, and observes only that. The transaction's own
    /// additions count. ([`Table::is_within`](crate::Table::is_within) is the same for columns.)
    ///
    /// # Errors
    /// [Those of every operation](crate::Table#errors-of-every-operation).
    pub fn is_within(&self, tx: &Tx<'_, P>, range: impl RangeBounds<i64>) -> Result<bool, Abort> {
        self.cells.row(tx, 0)?.is_within(VALUE, range)
    }
}
