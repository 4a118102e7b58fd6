//! Tests of whether a number lies in a range, which observe no more than the answer.

#![forbid(unsafe_code)]

use super::table::Table;
use crate::engine::Protocol;
use crate::error::Abort;
use crate::schema::{AsKey, Column, ColumnKind, Number, Record};
use crate::txn::Tx;
use std::ops::RangeBounds;

impl<R: Record, P: Protocol> Table<R, P> {
    /// Returns whether a number lies in `range`: `seats.is_within(tx, &flight, Flight::FREE, 1..)`.
    ///
    /// The transaction observes the answer, and not the number. Under [`Occ`](crate::Occ) it
    /// therefore does not conflict with other transactions that change the number but not the
    /// answer, which is looked at again when the transaction commits: many can sell seats at once,
    /// while there are enough, and none reads a number that others change. Pending
    /// [`add`](Column::add)s and [`sub`](Column::sub)s of the transaction itself count. (If such
    /// an update of another column of the group is going to fail, only the commit tells.)
    ///
    /// The unit of conflict is still the column's group: if other columns of the group change all
    /// the time, the answer has to be looked at again all the time, and after seven times in one
    /// commit the attempt ends in a conflict. Under all other protocols, and under a policy that
    /// locks rows when they are read, this is a read of the column.
    ///
    /// [`Tx::retry`] and [`Tx::check`] wait for a change of the row, and not of the answer: each
    /// change of the column's group wakes the transaction, which runs its closure again. That
    /// counts as an attempt ([`attempts_max`](crate::RunOptions::attempts_max)).
    ///
    /// ```
    /// # use candide::{Abort, Database, Record};
    /// # #[derive(Record, Clone, Copy)]
    /// # struct Flight { #[key] number: u32, free: i64 }
    /// # let db = Database::new();
    /// # let flights = db.table::<Flight>("flights")?;
    /// # db.run(|tx| flights.insert(tx, Flight { number: 7, free: 2 }))?;
    /// let book = || {
    ///     db.run(|tx| {
    ///         if !flights.is_within(tx, &7, Flight::FREE, 1..)? {
    ///             return Ok(false);
    ///         }
    ///         flights.update(tx, &7, Flight::FREE.sub(1))?;
    ///         Ok(true)
    ///     })
    /// };
    /// assert_eq!([book(), book(), book()], [Ok(true), Ok(true), Ok(false)]);
    /// # Ok::<(), candide::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [every operation](Table#errors-of-every-operation); [`Abort::NotFound`] if there is
    /// no row with this key.
    #[doc(alias = "predicate")]
    pub fn is_within<T: Number, A: ColumnKind>(
        &self,
        tx: &Tx<'_, P>,
        key: impl AsKey<R::Key>,
        column: Column<R, T, A>,
        range: impl RangeBounds<T>,
    ) -> Result<bool, Abort> {
        self.find(tx, key)?.is_within(column, range)
    }
}
