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
    /// As [`Table::defer`], of a row whose key is known when the transaction commits; `None` if it is
    /// `None` then, and nothing is done.
    ///
    /// Under [`Policy::Pipelined`](crate::policy::Policy::Pipelined) the key can stay unknown until
    /// the commit, so that the transaction stays tame: the page of the policy says when. Otherwise
    /// the key is computed now, by [`Later::now`].
    ///
    /// ```
    /// # use candide::{Database, Record};
    /// # #[derive(Record, Clone, Copy)]
    /// # struct Queue { #[key] id: u64, oldest: u64, newest: u64 }
    /// # #[derive(Record, Clone, Copy)]
    /// # struct Job { #[key] number: u64, done: u64 }
    /// # let db = Database::new();
    /// # let (queues, jobs) = (db.table::<Queue>("queues")?, db.table::<Job>("jobs")?);
    /// # db.run(|tx| queues.insert(tx, Queue { id: 0, oldest: 7, newest: 7 }))?;
    /// # db.run(|tx| jobs.insert(tx, Job { number: 7, done: 0 }))?;
    /// let done = || db.run_deferred(|tx| {
    ///     let columns = (Queue::OLDEST, Queue::NEWEST);
    ///     let number = queues.defer(tx, 0, columns, (), |(oldest, newest), ()| {
    ///         (oldest <= newest).then(|| std::mem::replace(oldest, *oldest + 1))
    ///     })?;
    ///     jobs.defer_at(tx, &number, Job::DONE, (), |done, ()| *done = 1)
    /// });
    /// assert_eq!(done()?, Some(()));
    /// assert_eq!(done()?, None);
    /// # Ok::<(), candide::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Table::defer`], and those of [misuse](Later#life) of the key. If the key stays unknown
    /// until the commit, that there is no such row is an error of the commit.
    pub fn defer_at<Pr: Projection<R> + 'static, I: Inputs, T: 'static>(
        &self,
        tx: &Tx<'_, P>,
        key: &Later<Option<R::Key>>,
        projection: Pr,
        inputs: I,
        mut step: impl FnMut(&mut Pr::Value, Values<'_, I>) -> T + 'static,
    ) -> Result<Later<Option<T>>, Abort> {
        let found = key.now(tx).and_then(|key| match key {
            Some(key) => self.find_key(tx, &key).map(Some),
            None => Ok(None),
        });
        match found {
            Ok(Some(row)) => {
                row.defer(projection, inputs, move |value, inputs| Some(step(value, inputs)))
            }
            Ok(None) => {
                tx.steps().keep((inputs.hold(), step));
                Ok(Later::ready(None))
            }
            Err(abort) => {
                tx.steps().keep((inputs.hold(), step));
                Err(abort)
            }
        }
    }

    /// As [`Table::defer_insert`], of a row whose key, too, is known when the transaction commits.
    /// If the key is `None` then, nothing is inserted, and the row is not asked for.
    /// [`Table::defer_at`] says when the key can stay unknown until the commit.
    ///
    /// ```
    /// # use candide::{Database, Record};
    /// # #[derive(Record, Clone, Copy)]
    /// # struct Counter { #[key] id: u64, next: u64 }
    /// # #[derive(Record, Clone, Copy)]
    /// # struct Order { #[key] id: u64, dishes: u64 }
    /// # let db = Database::new();
    /// # let counters = db.table::<Counter>("counters")?;
    /// # let orders = db.table::<Order>("orders")?;
    /// # db.run(|tx| counters.insert(tx, Counter { id: 0, next: 7 }))?;
    /// db.run(|tx| {
    ///     let id = counters.defer(tx, 0, Counter::NEXT, (), |next, ()| {
    ///         *next += 1;
    ///         *next - 1
    ///     })?;
    ///     orders.defer_insert_at(tx, &id.map(|id| Some(*id)), id.map(|id| Order { id: *id, dishes: 3 }))
    /// })?;
    /// assert_eq!(db.run(|tx| orders.read(tx, 7, Order::DISHES)), Ok(3));
    /// # Ok::<(), candide::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Table::defer_insert`], and those of [misuse](Later#life) of the key. If the key stays
    /// unknown until the commit, [`Abort::Duplicate`] comes from there.
    pub fn defer_insert_at(
        &self,
        tx: &Tx<'_, P>,
        key: &Later<Option<R::Key>>,
        row: impl Into<Later<R>>,
    ) -> Result<(), Abort> {
        let row = row.into();
        row.admit(tx)?;
        match key.now(tx)? {
            Some(key) => self.defer_insert_of(tx, key, row),
            None => {
                tx.steps().keep(row);
                Ok(())
            }
        }
    }

    /// Deletes a row whose key is known when the transaction commits; does nothing if it is `None`
    /// then. [`Table::defer_at`] says when the key can stay unknown until the commit.
    ///
    /// # Errors
    /// As [`Table::delete`], and those of [misuse](Later#life) of the key. If the key stays unknown
    /// until the commit, [`Abort::NotFound`] comes from there.
    pub fn defer_delete_at(
        &self,
        tx: &Tx<'_, P>,
        key: &Later<Option<R::Key>>,
    ) -> Result<(), Abort> {
        match key.now(tx)? {
            Some(key) => self.find_key(tx, &key)?.delete(),
            None => Ok(()),
        }
    }
}
