//! Deferred operations under a condition, and on rows whose keys come later.

#![forbid(unsafe_code)]

use super::deferred::{check_key, store_unit};
use super::later::{Held, Inputs, LateKey, Later, Values, Work, admit_inputs};
use super::table::Table;
use crate::access::Intent;
use crate::engine::Protocol;
use crate::error::Abort;
use crate::record::PlacedUnit;
use crate::schema::{AsKey, ImageSink, Pinned, Projection, Record, RowMeta, Unit, Words, decoded};
use crate::txn::Tx;
use std::rc::Rc;

/// A step on a row whose key the commit computes.
struct KeyedStep<R: Record, Pr, H, F, T> {
    unit: Unit,
    key: Later<Option<R::Key>>,
    projection: Pr,
    inputs: H,
    function: F,
    /// The result, while the function has returned it and it is not yet kept.
    result: Option<T>,
}

impl<R, Pr, H, F, T> Work<Option<T>> for KeyedStep<R, Pr, H, F, T>
where
    R: Record,
    Pr: Projection<R> + 'static,
    H: Held,
    T: 'static,
    F: FnMut(&mut Pr::Value, H::Values<'_>) -> T + 'static,
{
    fn is_step(&self) -> bool {
        true
    }

    fn is_ready(&self) -> bool {
        !self.key.is_pending() && self.inputs.are_known()
    }

    fn run(&mut self, image: &mut [u64]) -> Result<Option<T>, Abort> {
        const { assert!(R::LONG.is_empty(), "no step finds rows with strings or bytes of any length") }
        let Some(key) = self.key.value()? else { return Ok(None) };
        let guards = self.inputs.guards()?;
        let mut words = Pr::EMPTY;
        self.projection.copy(self.unit, Words::Own(image), &mut words);
        let mut value = decoded::<R, Pr>(&self.projection, &key, &words, Pinned::by(image))?;
        self.result = Some((self.function)(&mut value, H::values(&guards)));
        let sink = &mut ImageSink::<R>::new(self.unit, image);
        self.projection.assign(&key, &value, sink)?;
        Ok(self.result.take())
    }
}

/// The step that makes a unit of a row whose key the commit computes.
struct KeyedRow<R: Record> {
    unit: PlacedUnit,
    key: Later<Option<R::Key>>,
    row: Later<R>,
}

impl<R: Record> Work<()> for KeyedRow<R> {
    fn is_step(&self) -> bool {
        true
    }

    fn is_ready(&self) -> bool {
        !self.key.is_pending() && !self.row.is_pending()
    }

    fn run(&mut self, image: &mut [u64]) -> Result<(), Abort> {
        if let Some(key) = self.key.value()? {
            let row = self.row.value()?;
            check_key(&row, &key);
            store_unit(&row, self.unit, image)?;
        }
        Ok(())
    }
}

impl<R: Record, P: Protocol> Table<R, P> {
    /// As [`Table::defer`], under a condition: if it is false when the transaction commits, the
    /// step does not run, the row stays as it is, and the result is `None`. The row is locked and
    /// must exist in either case.
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

    /// As [`Table::defer`], of a row whose key is known when the transaction commits; `None` if it
    /// is `None` then, and nothing is done.
    ///
    /// Under [`Policy::Pipelined`](crate::policy::Policy::Pipelined) the key can stay unknown until
    /// the commit, so that the transaction counts as one that has read nothing: the page of the
    /// policy says when. Otherwise the key is computed now, by [`Later::now`]. A transaction whose
    /// closure reads after such an operation is repeated with known keys, so that it cannot miss
    /// the row.
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
        step: impl FnMut(&mut Pr::Value, Values<'_, I>) -> T + 'static,
    ) -> Result<Later<Option<T>>, Abort> {
        let mut parts = Some((inputs.hold(), step));
        let later = self.try_defer_at(tx, key, projection, &mut parts);
        if let Some(parts) = parts {
            tx.steps().keep(parts);
        }
        later
    }

    fn try_defer_at<Pr: Projection<R> + 'static, H: Held, T: 'static>(
        &self,
        tx: &Tx<'_, P>,
        key: &Later<Option<R::Key>>,
        projection: Pr,
        parts: &mut Option<(H, impl FnMut(&mut Pr::Value, H::Values<'_>) -> T + 'static)>,
    ) -> Result<Later<Option<T>>, Abort> {
        let unit = self.unit_of_step(&projection)?;
        let (inputs, _) = parts.as_ref().expect("the caller has the parts");
        admit_inputs(inputs, tx)?;
        let late = self.late_key(tx, key)?;
        let Some(number) = late else {
            let Some(key) = key.now(tx)? else { return Ok(Later::ready(None)) };
            let row = self.find_key(tx, &key)?;
            let (inputs, mut function) = parts.take().expect("there are the parts of one step");
            let step =
                move |value: &mut Pr::Value, inputs: H::Values<'_>| Some(function(value, inputs));
            return row.defer_held(projection, inputs, step);
        };
        let (inputs, function) = parts.take().expect("there are the parts of one step");
        let (key, core) = (key.clone(), self.core());
        let work =
            KeyedStep::<R, Pr, _, _, T> { unit, key, projection, inputs, function, result: None };
        let units = 1 << unit.index();
        Later::step(tx.steps(), work, |_, step| {
            let state = &mut *tx.state.borrow_mut();
            state.stage_keyed(core, Intent::Update, (number, step), units);
            Ok(())
        })
    }

    /// Adds a key to the list of steps, if it is not known and the commit can compute it. Returns
    /// its number there.
    fn late_key(&self, tx: &Tx<'_, P>, key: &Later<Option<R::Key>>) -> Result<Option<u32>, Abort> {
        key.admit(tx)?;
        if !key.is_pending() || !tx.state.borrow_mut().admit_keyed(tx.engine, self.core())? {
            return Ok(None);
        }
        let number = tx.steps().compute(Rc::new(LateKey::new(key.clone())))?;
        Ok(Some(number as u32))
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
    ///     let order = id.map(|id| Order { id: *id, dishes: 3 });
    ///     orders.defer_insert_at(tx, &id.map(|id| Some(*id)), order)
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
        let core = self.core();
        let Some(number) = self.late_key(tx, key)? else {
            return match key.now(tx)? {
                Some(key) => self.defer_insert_of(tx, key, row),
                None => {
                    tx.steps().keep(row);
                    Ok(())
                }
            };
        };
        let (mut first, mut units) = (None, 0);
        for (unit, &placed) in core.layout.placed_units().iter().enumerate() {
            let work = KeyedRow { unit: placed, key: key.clone(), row: row.clone() };
            Later::step(tx.steps(), work, |_, step| {
                first.get_or_insert(step);
                Ok(())
            })?;
            units |= 1 << unit;
        }
        let step = first.expect("a row has a unit");
        tx.state.borrow_mut().stage_keyed(core, Intent::Insert, (number, step), units);
        Ok(())
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
        let core = self.core();
        if core.restrictions.is_permanent() {
            return Err(Abort::Permanent);
        }
        let Some(number) = self.late_key(tx, key)? else {
            return match key.now(tx)? {
                Some(key) => self.find_key(tx, &key)?.delete(),
                None => Ok(()),
            };
        };
        let units = core.layout.placed_units().iter().enumerate();
        let units = units.fold(0, |units, (unit, _)| units | 1 << unit);
        tx.state.borrow_mut().stage_keyed(core, Intent::Delete, (number, 0), units);
        Ok(())
    }
}
