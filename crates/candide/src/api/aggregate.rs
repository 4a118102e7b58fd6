//! Aggregates over many rows of tables and indexes: numbers of rows, sums, folds. The transaction
//! observes every row that goes into an answer, as a scan does.

#![forbid(unsafe_code)]

use super::index::Index;
use super::table::Table;
use super::way::Way;
use crate::engine::{Protocol, TableCore};
use crate::error::Abort;
use crate::index::Direction;
use crate::record::PlacedUnits;
use crate::schema::{
    AsKey, Column, ColumnKind, InOrder, IndexKind, Key, KeyRange, Projection, Record, Summand,
    WordRange,
};
use crate::txn::Tx;

/// Questions about rows that the transaction sees. The answers stay true in the serial order: the
/// transaction runs again if another one changes them before the commit.
///
/// ```
/// # use candide::{Database, Record};
/// # #[derive(Record, Clone, Copy)]
/// # #[record(ordered)]
/// # struct Account { #[key] id: u64, cents: i32 }
/// # let db = Database::new();
/// # let accounts = db.table::<Account>("accounts")?;
/// db.run(|tx| {
///     assert!(accounts.is_empty(tx)?);
///     accounts.insert_many(tx, (1..=4).map(|id| Account { id, cents: i32::MAX }))?;
///     assert!(accounts.contains(tx, 4)? && !accounts.contains(tx, 5)?);
///     assert_eq!((accounts.len(tx)?, accounts.count(tx, 2..4)?), (4, 2));
///     // The sum of a signed column is an `i64`.
///     assert_eq!(accounts.sum(tx, Account::CENTS)?, 4 * i64::from(i32::MAX));
///     let poorest = accounts.fold(tx, Account::CENTS, i32::MAX, |least, (_, cents)| least.min(cents))?;
///     assert_eq!(poorest, i32::MAX);
///     Ok(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<R: Record, P: Protocol> Table<R, P> {
    /// Returns whether there is a row with this key. Observes the first group of the row, or the
    /// absence of the key.
    ///
    /// # Errors
    /// Those of [every operation](Table#errors-of-every-operation).
    #[inline]
    #[doc(alias = "contains_key")]
    #[doc(alias = "exists")]
    pub fn contains(&self, tx: &Tx<'_, P>, key: impl AsKey<R::Key>) -> Result<bool, Abort> {
        match self.get(tx, key, ()) {
            // A step changes only a row that is there.
            Err(Abort::NotYet) => Ok(true),
            found => found.map(|row| row.is_some()),
        }
    }

    /// Returns the number of rows. The transaction goes through the whole table, and commits only
    /// if no row has been inserted or deleted meanwhile; [`Table::len_estimate`] costs nothing and
    /// observes nothing.
    ///
    /// # Errors
    /// Those of [every operation](Table#errors-of-every-operation).
    #[doc(alias = "count")]
    pub fn len(&self, tx: &Tx<'_, P>) -> Result<usize, Abort> {
        rows_in(tx, self.core(), self.whole_range(), usize::MAX)
    }

    /// Returns whether the table has no rows. The search stops at the first row.
    ///
    /// # Errors
    /// Those of [every operation](Table#errors-of-every-operation).
    pub fn is_empty(&self, tx: &Tx<'_, P>) -> Result<bool, Abort> {
        rows_in(tx, self.core(), self.whole_range(), 1).map(|rows| rows == 0)
    }

    /// Returns the number of rows whose keys lie in `range`.
    ///
    /// # Errors
    /// Those of [every operation](Table#errors-of-every-operation).
    pub fn count(&self, tx: &Tx<'_, P>, range: impl KeyRange<R::Key>) -> Result<usize, Abort>
    where
        R::Index: InOrder,
    {
        rows_in(tx, self.core(), self.kept_range(&range), usize::MAX)
    }

    /// Returns the sum of a column over all rows: an `i64` if the column is signed, otherwise a
    /// `u64`; an `i128` or `u128` of a column of that type. For the rows of a range: `scan(tx,
    /// range, column).sum()`.
    ///
    /// # Errors
    /// [`Abort::Overflow`] if the type of the sum cannot hold it.
    pub fn sum<T: Summand, A: ColumnKind>(
        &self,
        tx: &Tx<'_, P>,
        column: Column<R, T, A>,
    ) -> Result<T::Sum, Abort> {
        self.iter(tx, column).sum()
    }

    /// Calls `each` with the result so far, `init` at first, and each row, as [`Table::iter`]
    /// returns them; returns the last result. For the rows of a range:
    /// `scan(tx, range, projection).fold(..)`.
    ///
    /// # Errors
    /// Those of [every operation](Table#errors-of-every-operation).
    #[doc(alias = "reduce")]
    #[doc(alias = "aggregate")]
    pub fn fold<Pr: Projection<R>, T>(
        &self,
        tx: &Tx<'_, P>,
        projection: Pr,
        init: T,
        each: impl FnMut(T, (R::Key, Pr::Value)) -> T,
    ) -> Result<T, Abort> {
        self.iter(tx, projection).fold(init, each)
    }

    /// Calls `each` with each row, as [`Table::iter`] returns them. A closure that can fail is for
    /// [`Scan::try_for_each`](crate::Scan::try_for_each): `iter(tx, projection).try_for_each(..)`.
    ///
    /// # Errors
    /// Those of [every operation](Table#errors-of-every-operation).
    pub fn for_each<Pr: Projection<R>>(
        &self,
        tx: &Tx<'_, P>,
        projection: Pr,
        each: impl FnMut((R::Key, Pr::Value)),
    ) -> Result<(), Abort> {
        self.iter(tx, projection).for_each(each)
    }

    /// Returns the range of all keys.
    fn whole_range(&self) -> WordRange {
        WordRange::beginning_with(&[], self.core().layout.key_words())
    }
}

impl<R: Record, K: Key, I: IndexKind, P: Protocol> Index<R, K, I, P> {
    /// Returns whether there is a row with this key in the index.
    ///
    /// # Errors
    /// [`Abort::NoIndex`] if the index has been dropped.
    #[doc(alias = "contains_key")]
    #[doc(alias = "exists")]
    pub fn contains(&self, tx: &Tx<'_, P>, key: impl AsKey<K>) -> Result<bool, Abort> {
        match self.get(tx, key, ()) {
            // A step changes only a row that is there.
            Err(Abort::NotYet) => Ok(true),
            found => found.map(|row| row.is_some()),
        }
    }

    /// Returns the number of rows whose keys in this index lie in `range`. For one key:
    /// `rows(tx, key, ()).count()`.
    ///
    /// # Errors
    /// [`Abort::NoIndex`] if the index has been dropped.
    pub fn count(&self, tx: &Tx<'_, P>, range: impl KeyRange<K>) -> Result<usize, Abort>
    where
        I: InOrder,
    {
        self.scan(tx, range, ()).count()
    }
}

/// Returns the number of rows in a range, but not more than `most`.
#[inline(never)]
fn rows_in<P: Protocol>(
    tx: &Tx<'_, P>,
    table: &TableCore,
    range: WordRange,
    most: usize,
) -> Result<usize, Abort> {
    let units = table.layout.placed_units_of(1);
    count_rest(tx, table, &mut Way::new(tx, table, range, Direction::Forward), &units, most)
}

/// Returns the number of rows that a scan would still return, but not more than `most`.
#[inline(never)]
pub(super) fn count_rest<P: Protocol>(
    tx: &Tx<'_, P>,
    table: &TableCore,
    way: &mut Way,
    units: &PlacedUnits,
    most: usize,
) -> Result<usize, Abort> {
    let mut count = 0;
    while count < most && way.next_row::<true, P>(tx, table, units, &mut |_, _| {})?.is_some() {
        count += 1;
    }
    Ok(count)
}

/// Returns the sum of the second parts of rows; `None` if its type cannot hold it.
pub(super) fn sum<K, T: Summand>(
    mut rows: impl Iterator<Item = Result<(K, T), Abort>>,
) -> Result<Option<T::Sum>, Abort> {
    let total = rows.try_fold(T::Total::default(), |total, row| {
        row.map(|(_, number)| number.added_to(total))
    })?;
    Ok(T::sum_of(total))
}
