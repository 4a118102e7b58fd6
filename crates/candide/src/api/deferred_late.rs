//! Deferred operations under a condition, and on rows whose keys come later.

#![forbid(unsafe_code)]

use super::later::{Inputs, Later, Values};
use super::table::Table;
use crate::engine::Protocol;
use crate::error::Abort;
use crate::schema::{AsKey, Projection, Record};
use crate::txn::Tx;

impl<R: Record, P: Protocol> Table<R, P> {
    /// As [`Table::defer`], under a condition: if it is false when the transaction commits, the step
    /// does not run, the row stays as it is, and the result is `None`. The row is locked and must
    /// exist in either case.
    ///
    /// ```
    /// # use candide::{Database, Record};
    /// # #[derive(Record, Clone, Copy)]
    /// # struct Account { #[key] id: u64, cents: i64 }
    /// # let db = Database::new();
    /// # let accounts = db.table::<Account>("accounts")?;
    /// # db.run(|tx| accounts.insert_many(tx, (1..=2).map(|id| Account { id, cents: 50 })))?;
    /// // Account 2 gets a bonus if account 1 is rich.
    /// let bonus = db.run_deferred(|tx| {
    ///     let rich = accounts.defer(tx, 1, Account::CENTS, (), |cents, ()| *cents > 100)?;
    ///     accounts.defer_if(tx, 2, &rich, Account::CENTS, (), |cents, ()| *cents += 5)
    /// })?;
    /// assert_eq!(bonus, None);
    /// # Ok::<(), candide::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Table::defer`].
    pub fn defer_if<Pr: Projection<R> + 'static, I: Inputs, T: 'static>(
        &self,
        tx: &Tx<'_, P>,
        key: impl AsKey<R::Key>,
        condition: &Later<bool>,
        projection: Pr,
        inputs: I,
        mut step: impl FnMut(&mut Pr::Value, Values<'_, I>) -> T + 'static,
    ) -> Result<Later<Option<T>>, Abort> {
        self.defer(tx, key, projection, (condition, inputs), move |value, (holds, inputs)| {
            holds.then(|| step(value, inputs))
        })
    }
}
