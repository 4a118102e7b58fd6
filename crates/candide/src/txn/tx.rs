//! The running transaction, as its closure sees it.

#![forbid(unsafe_code)]

use super::conflict::Conflict;
use super::outcome::Outcome;
use super::savepoint::Savepoint;
use super::state::State;
use super::step_list::{OwnedList, Phase, StepList};
use crate::engine::{Engine, Protocol, SharedQueue, keep_buffer};
use crate::error::Abort;
use crate::protocols::DefaultProtocol;
use crate::record::value::Value;
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

/// A running transaction, the argument of the closure of [`Session::run`](crate::Session::run).
///
/// A `Tx` belongs to one attempt and one thread: it is neither `Send` nor `Sync`, so it cannot be
/// held across an `.await`. Every operation takes the `Tx` by shared reference. No internal of the
/// `Tx` is borrowed while user code runs.
#[doc(alias = "transaction")]
#[doc(alias = "atomically")]
#[doc(alias = "begin")]
#[doc(alias = "commit")]
#[doc(alias = "rollback")]
pub struct Tx<'s, P: Protocol = DefaultProtocol> {
    pub(crate) engine: &'s Engine<P>,
    pub(crate) state: &'s RefCell<State<P>>,
    effects: &'s Effects,
}

/// What is kept beside a transaction: calls to be made after it has committed, the steps of the
/// current attempt, and values to be dropped when the session is free. `None` if there is nothing,
/// as in the usual transaction. Holders take out what is kept, so that the usual transaction has no
/// code to drop it.
#[derive(Default)]
pub(crate) struct Effects(RefCell<Option<ManuallyDrop<Box<Kept>>>>);

#[derive(Default)]
pub(crate) struct Kept {
    calls: Vec<Box<dyn FnOnce()>>,
    steps: Option<OwnedList>,
    /// Values to be dropped, whatever becomes of the transaction.
    pub(crate) values: Vec<Value>,
}

/// The numbers of calls and of entries in the list of steps.
#[derive(Clone, Copy)]
struct Kinds {
    calls: usize,
    steps: usize,
}

impl Effects {
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn is_empty(&mut self) -> bool {
        self.0.get_mut().is_none()
    }

    /// Runs all effects of a committed transaction, and drops what its steps have held.
    #[cold]
    #[inline(never)]
    pub(crate) fn run_all(&mut self) {
        if let Some(kept) = self.0.get_mut() {
            kept.run_all();
        }
    }

    /// Takes out what is kept.
    #[inline]
    pub(crate) fn take(&self) -> Option<Box<Kept>> {
        self.0.take().map(ManuallyDrop::into_inner)
    }

    /// If there are more than `most` values to be dropped, moves them to `queue`, from which
    /// another transaction takes them; returns whether it has.
    #[cold]
    pub(super) fn leave_values(&self, queue: &SharedQueue, most: usize) -> bool {
        let mut kept = self.0.borrow_mut();
        let Some(kept) = kept.as_mut().filter(|kept| kept.values.len() > most) else {
            return false;
        };
        queue.put_unwanted(&mut kept.values);
        true
    }

    /// Drops values when the session is free.
    pub(crate) fn drop_later(&self, mut values: Vec<Value>) {
        let mut kept = self.0.borrow_mut();
        let kept = &mut kept.get_or_insert_default().values;
        if kept.is_empty() {
            *kept = values;
        } else {
            kept.append(&mut values);
            keep_buffer(values);
        }
    }

    /// Notes that the attempt has not committed, before any of the user's values is dropped.
    #[cold]
    pub(crate) fn fail_steps(&self) {
        if let Some(steps) = self.0.borrow().as_ref().and_then(|kept| kept.steps.as_ref()) {
            steps.end(Phase::Failed);
        }
    }

    /// Returns the effects and steps of an attempt that has not committed, and is repeated. The
    /// caller drops them. Values stay, since the session is not free yet.
    #[inline]
    pub(crate) fn discard(&self) -> impl Sized + use<> {
        let mut kept = self.take();
        if let Some(kept) = &mut kept
            && !kept.values.is_empty()
        {
            self.drop_later(std::mem::take(&mut kept.values));
        }
        kept
    }

    /// Returns the effects of the last attempt of a transaction, which has not committed. The
    /// caller drops them. What the attempt's steps hold is dropped with `self`, when the session is
    /// free again.
    #[inline]
    pub(crate) fn discard_last(&self) -> impl Sized + use<> {
        let mut kept = self.0.borrow_mut();
        Some(std::mem::take(&mut kept.as_mut()?.calls))
    }

    /// Returns the list of steps of this attempt, and makes it if there is none.
    pub(super) fn steps(&self) -> Rc<StepList> {
        let mut kept = self.0.borrow_mut();
        let steps = &mut kept.get_or_insert_default().steps;
        steps.get_or_insert_with(OwnedList::new).list().clone()
    }

    /// Returns the list of steps of this attempt, if there is one.
    pub(super) fn known_steps(&self) -> Option<Rc<StepList>> {
        let kept = self.0.borrow();
        Some(kept.as_ref()?.steps.as_ref()?.list().clone())
    }

    fn sizes(&self) -> Kinds {
        let kept = self.0.borrow();
        let Some(kept) = &*kept else { return Kinds { calls: 0, steps: 0 } };
        let steps = kept.steps.as_ref().map_or(0, |steps| steps.list().len());
        Kinds { calls: kept.calls.len(), steps }
    }

    /// Undoes what a part of the transaction has left since there were so many calls and steps.
    /// Returns its calls, which the caller drops. What its steps hold stays until the end of the
    /// transaction.
    fn undo(&self, to: Kinds) -> impl Sized + use<> {
        let mut kept = self.0.borrow_mut();
        let kept = kept.as_mut()?;
        if let Some(steps) = &kept.steps {
            steps.list().undo_to(to.steps);
        }
        Some(kept.calls.split_off(to.calls))
    }
}

impl Kept {
    fn run_all(&mut self) {
        if let Some(steps) = &self.steps {
            steps.end(Phase::Committed);
        }
        // Values, and what the steps hold, are dropped last, so that no panic of a drop keeps a
        // call from being made.
        std::mem::take(&mut self.calls).into_iter().for_each(|call| call());
    }
}

impl<'s, P: Protocol> Tx<'s, P> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn new(
        engine: &'s Engine<P>,
        state: &'s RefCell<State<P>>,
        effects: &'s Effects,
    ) -> Tx<'s, P> {
        Tx { engine, state, effects }
    }

    /// Returns the list of this attempt's steps.
    pub(crate) fn steps(&self) -> Rc<StepList> {
        self.effects.steps()
    }

    /// Returns whether `list` is that of this attempt.
    pub(crate) fn has_steps_in(&self, list: &Rc<StepList>) -> bool {
        self.effects.known_steps().is_some_and(|steps| Rc::ptr_eq(&steps, list))
    }

    /// Evaluates the entries of this attempt's list up to `number`. Runs their steps for this, so
    /// that the attempt observes the units.
    ///
    /// # Errors
    /// The outcome or conflict in which the attempt ends then.
    pub(crate) fn evaluate(&self, list: &Rc<StepList>, number: usize) -> Result<(), Abort> {
        list.ask_for(number, |at| {
            let state = &mut *self.state.borrow_mut();
            state.enter(self.engine)?;
            let Some(at) = at else { return Err(state.find_keys_at_once(self.engine)) };
            state.whole_or_failed(|state| state.run_step(self.engine, at, list.clone()))
        })
    }

    /// Notes that the transaction can only end in this outcome, and returns it.
    #[cold]
    pub(crate) fn fail(&self, outcome: Abort) -> Abort {
        self.state.borrow_mut().fail(outcome);
        outcome
    }

    /// Returns the number of this attempt, counted from one.
    #[inline]
    pub fn attempt_number(&self) -> u32 {
        self.state.borrow().attempt_number
    }

    /// Runs a part of the transaction that is undone if it fails: if `part` returns an error, its
    /// writes are undone, with entries of indexes and calls of [`on_commit`](Tx::on_commit), and
    /// the transaction continues. If `part` returns a value, its writes belong to the transaction
    /// like any others. Parts can be nested.
    ///
    /// Some outcomes that otherwise come only at the end of the transaction are the part's error if
    /// writes of the part cause them: [`Abort::Guard`] and [`Abort::Overflow`] of updates (for
    /// which the rows that they change are observed, as by a read), and [`Abort::NotUnique`]. So
    /// the closure can handle these outcomes as values. The caller's other writes are not examined.
    ///
    /// ```
    /// # use candide::{Abort, Database, Record};
    /// # #[derive(Record, Clone, Copy)]
    /// # struct Account { #[key] id: u32, cents: i64 }
    /// let db = Database::new();
    /// let accounts = db.table::<Account>("accounts")?;
    /// let account = |id, cents| Account { id, cents };
    /// db.run(|tx| accounts.insert_many(tx, [account(1, 50), account(2, 80), account(3, 0)]))?;
    /// // Account 3 gets 70 from the first account that has as much.
    /// let payer = db.run(|tx| {
    ///     for id in [1, 2] {
    ///         let paid = tx.attempt(|tx| {
    ///             accounts.update(tx, 3, Account::CENTS.add(70))?;
    ///             accounts.update(tx, id, Account::CENTS.sub(70).at_least(0))
    ///         });
    ///         match paid {
    ///             Ok(()) => return Ok(Some(id)),
    ///             Err(Abort::Guard) => {} // account 3 is as it was
    ///             Err(other) => return Err(other),
    ///         }
    ///     }
    ///     Ok(None)
    /// })?;
    /// assert_eq!(payer, Some(2));
    /// assert_eq!(db.run(|tx| accounts.read(tx, 3, Account::CENTS)), Ok(70));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// The reads of a part stay observed after the part is undone, and so do the assumptions of its
    /// writes, such as that a row exists. So the error of a part is true in the serial order, and
    /// another transaction that makes it untrue makes the attempt repeat. Locks stay until the
    /// transaction ends ([`Table::get_for_update`](crate::Table::get_for_update)), and memory that
    /// was reserved for the undone writes until then, too.
    ///
    /// To know at its end whether its updates fail, a part observes the groups in which they
    /// [`add`](crate::Column::add), [`sub`](crate::Column::sub) or have a guard, as a read would.
    /// So transactions that update a hot counter within a part conflict, where outside of parts
    /// they do not.
    ///
    /// Steps of a part ([`Table::defer`](crate::Table::defer)) are left to the commit, and so are
    /// the other updates of their groups: if they fail, the transaction does.
    ///
    /// A conflict dooms the whole attempt, whatever the part returns: the operations after the part
    /// return the conflict. If `part` or an updater panics, the part is undone, and the panic
    /// continues. A scan that an undone part has made, and left to its caller, shows the rows as
    /// they were before the part.
    ///
    /// A part that calls [`retry`](Tx::retry) fails like any other: the transaction continues, and
    /// does not wait, unless the closure calls `retry` itself. [`or_else`](Tx::or_else) is shorter
    /// for this.
    ///
    /// # Errors
    /// The error of `part`, which has been undone. Also [`Abort::Guard`], [`Abort::Overflow`],
    /// [`Abort::NotUnique`] or [`Abort::MemoryLimit`], if a write of the part has failed in this
    /// way; [`Abort::Panicked`] if `part` has caught the panic of a row type in an operation;
    /// conflicts.
    pub fn attempt<T, E: From<Abort>>(
        &self,
        part: impl FnOnce(&Tx<'s, P>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.run_part(part).0
    }

    /// Runs a part of the transaction. Returns its result, and whether the part was undone and has
    /// called [`retry`](Tx::retry).
    fn run_part<T, E: From<Abort>>(
        &self,
        part: impl FnOnce(&Tx<'s, P>) -> Result<T, E>,
    ) -> (Result<T, E>, bool) {
        let (savepoint, effects) = self.begin_part();
        // The code of rows and of the part may panic, but the state of the transaction is
        // consistent between two operations.
        let result = catch_unwind(AssertUnwindSafe(|| {
            let value = part(self)?;
            self.end_part(&savepoint)?;
            Ok(value)
        }));
        let retries = match result {
            Ok(Ok(_)) => {
                self.state.borrow_mut().leave_part(&savepoint);
                false
            }
            _ => self.undo_part(&savepoint, effects),
        };
        (result.unwrap_or_else(|panic| resume_unwind(panic)), retries)
    }

    /// Begins a part. Returns its savepoint, and the numbers of effects and steps before it.
    fn begin_part(&self) -> (Savepoint, Kinds) {
        (self.state.borrow_mut().savepoint(), self.effects.sizes())
    }

    fn end_part(&self, savepoint: &Savepoint) -> Result<(), Abort> {
        self.state.borrow_mut().complete(self.engine, savepoint)
    }

    /// Undoes a part. Returns whether the part has called [`retry`](Tx::retry).
    fn undo_part(&self, savepoint: &Savepoint, effects: Kinds) -> bool {
        let retries = self.state.borrow_mut().undo(self.engine, savepoint);
        // Dropped last, when nothing is borrowed: it is the user's.
        drop(self.effects.undo(effects));
        retries
    }

    /// Ends the attempt without effect, and sleeps until something has changed that the attempt has
    /// observed. Then the closure runs again. Returns an error in any case, which the closure
    /// passes on: `return tx.retry()`, or `tx.retry::<()>()?`.
    ///
    /// ```
    /// # use candide::{Abort, Database, Record, Whole};
    /// # #[derive(Record, Clone, Copy, Debug, PartialEq)]
    /// # struct Order { #[key] id: u64, dishes: u64 }
    /// # let db = Database::new();
    /// # let orders = db.table::<Order>("orders")?;
    /// let cook = || {
    ///     db.run(|tx| match orders.get(tx, 1, Whole)? {
    ///         None => tx.retry(), // until there is such an order
    ///         Some(order) => orders.delete(tx, 1).map(|()| order),
    ///     })
    /// };
    /// let cooked = std::thread::scope(|scope| {
    ///     let cook = scope.spawn(cook);
    ///     db.run(|tx| orders.insert(tx, Order { id: 1, dishes: 3 }))?;
    ///     cook.join().unwrap()
    /// });
    /// assert_eq!(cooked, Ok(Order { id: 1, dishes: 3 }));
    /// # Ok::<(), candide::Error>(())
    /// ```
    ///
    /// *Observed* is what the closure has read or scanned, in parts that were undone, too, and what
    /// its writes assume (that a row exists, for [`update`](crate::Table::update)). A commit that
    /// changes one of these rows wakes the session; if a key was absent, so does any insert into
    /// its table; under `global-lock`, any commit that writes. If another transaction has locked
    /// such a row, for its commit or [for update](crate::Table::get_for_update), the session sleeps
    /// until the lock is released, for 10 ms at most, and the closure runs again. While the session
    /// sleeps, it holds no lock, and delays no collection of garbage.
    /// [`RunOptions::deadline`](crate::RunOptions::deadline) limits the sleep. Each attempt that
    /// ends here counts for [`attempts_max`](crate::RunOptions::attempts_max), unless a row was
    /// locked.
    ///
    /// If the closure continues nevertheless, and returns a value or an error of its own, the
    /// attempt still has no effect and sleeps. Only a part ([`Tx::attempt`], [`Tx::or_else`]) takes
    /// back the `retry` of its own closure. If an update before the `retry` fails, that outcome
    /// ends the transaction. A panic continues.
    ///
    /// # Errors
    /// [`Abort::Retry`]; the conflict, if the attempt is doomed. The transaction itself ends in
    /// [`Abort::DeadlinePassed`] at its deadline, in [`Abort::NothingToAwait`] if it has observed
    /// nothing that can change, in [`Abort::LogFailed`] once the log has failed, and in
    /// [`Abort::Nested`] in the closure of another transaction of the same thread that holds a
    /// lock. (Whether such a transaction is only going to write what this one waits for cannot be
    /// seen: this one then sleeps until its deadline.)
    #[doc(alias = "wait")]
    #[doc(alias = "block")]
    #[cold]
    pub fn retry<T>(&self) -> Result<T, Abort> {
        Err(self.state.borrow_mut().note_retry(self.engine))
    }

    /// Calls [`retry`](Tx::retry) unless `condition` is true: the transaction waits until what it
    /// has read makes the condition true.
    ///
    /// ```
    /// # use candide::{Database, Record};
    /// # #[derive(Record, Clone, Copy)]
    /// # struct Account { #[key] id: u64, cents: i64 }
    /// # let db = Database::new();
    /// # let accounts = db.table::<Account>("accounts")?;
    /// # db.run(|tx| accounts.insert(tx, Account { id: 1, cents: 50 }))?;
    /// db.run(|tx| {
    ///     tx.check(accounts.read(tx, 1, Account::CENTS)? >= 20)?;
    ///     accounts.update(tx, 1, Account::CENTS.sub(20))
    /// })?;
    /// # Ok::<(), candide::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`retry`](Tx::retry), if `condition` is false.
    #[inline]
    pub fn check(&self, condition: bool) -> Result<(), Abort> {
        if condition { Ok(()) } else { self.retry() }
    }

    /// Runs `first`, or `second` if `first` calls [`retry`](Tx::retry). Both closures are parts of
    /// the transaction, as of [`attempt`](Tx::attempt): a part that returns an error is undone.
    ///
    /// If `first` calls `retry`, its writes are undone, and `second` runs. The reads of `first`
    /// stay observed, since `second` runs because of them. So if both call `retry`, the transaction
    /// waits until something changes that either of them has observed.
    ///
    /// ```
    /// # use candide::{Abort, Database, Record, Table, Tx};
    /// # #[derive(Record, Clone, Copy)]
    /// # struct Account { #[key] id: u64, cents: i64 }
    /// # let db = Database::new();
    /// # let accounts = db.table::<Account>("accounts")?;
    /// # let account = |id, cents| Account { id, cents };
    /// # db.run(|tx| accounts.insert_many(tx, [account(1, 50), account(2, 80)]))?;
    /// fn take(tx: &Tx<'_>, accounts: &Table<Account>, id: u64, cents: i64) -> Result<u64, Abort> {
    ///     tx.check(accounts.read(tx, id, Account::CENTS)? >= cents)?;
    ///     accounts.update(tx, id, Account::CENTS.sub(cents))?;
    ///     Ok(id)
    /// }
    /// // Waits until one of two accounts has 70.
    /// let payer = db.run(|tx| {
    ///     tx.or_else(|tx| take(tx, &accounts, 1, 70), |tx| take(tx, &accounts, 2, 70))
    /// })?;
    /// assert_eq!(payer, 2);
    /// // Does not wait.
    /// let payer = db.run(|tx| {
    ///     tx.or_else(|tx| take(tx, &accounts, 1, 70).map(Some), |_| Ok(None))
    /// })?;
    /// assert_eq!(payer, None);
    /// # Ok::<(), candide::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`attempt`](Tx::attempt), of the part that has run last.
    pub fn or_else<T, E: From<Abort>>(
        &self,
        first: impl FnOnce(&Tx<'s, P>) -> Result<T, E>,
        second: impl FnOnce(&Tx<'s, P>) -> Result<T, E>,
    ) -> Result<T, E> {
        let (result, retries) = self.run_part(first);
        if !retries {
            return result;
        }
        drop(result);
        let (result, retries) = self.run_part(second);
        if retries {
            self.state.borrow_mut().note_retry(self.engine);
        }
        result
    }

    /// Returns the conflict of the previous attempt, so that a closure can adapt. For example, it
    /// can read a contended row [for update](crate::Table::get_for_update), or do its work in
    /// another order. `None` in the first attempt of each [`run`](crate::Session::run), and after
    /// [`Tx::retry`].
    #[inline]
    pub fn last_conflict(&self) -> Option<Conflict> {
        let state = self.state.borrow();
        // A later attempt is made only after a conflict, which was noted, or after a wait.
        let is_its_own = state.attempt_number > 1 && !state.has_waited;
        let note = state.last_conflict.filter(|_| is_its_own)?;
        drop(state);
        Some(Conflict::named(self.engine, note))
    }

    /// Returns where the last outcome of an operation was: [`Abort::NotFound`],
    /// [`Abort::Duplicate`], [`Abort::Guard`], [`Abort::Overflow`], [`Abort::TextTooLong`],
    /// [`Abort::KeyTooLong`] or [`Abort::Undecodable`], with the names of table, key and column. A closure that has just got one of them asks for it.
    /// Otherwise it may be one of an earlier transaction of the session, or one that an operation
    /// has passed over, as [`update_if_present`](crate::Table::update_if_present) does.
    pub fn last_outcome(&self) -> Option<Outcome> {
        Outcome::last(self.engine, &self.state.borrow().writes.outcomes)
    }

    /// Validates that everything the attempt has read so far is consistent and still current. A
    /// closure calls this before a step that must not depend on inconsistent reads. Under an
    /// [opaque](crate::Protocol::OPAQUE) protocol reads are always consistent, so the call only
    /// checks that they are still current.
    ///
    /// ```
    /// # use candide::{Database, Record, TicToc};
    /// # #[derive(Record, Clone, Copy)]
    /// # struct Counter { #[key] id: u32, hits: u64 }
    /// let db = Database::<TicToc>::default();
    /// let counters = db.table::<Counter>("counters")?;
    /// db.run(|tx| (0..2).try_for_each(|id| counters.insert(tx, Counter { id, hits: 0 })))?;
    /// db.run(|tx| {
    ///     let hits = (counters.read(tx, 0, Counter::HITS)?, counters.read(tx, 1, Counter::HITS)?);
    ///     tx.validate()?;
    ///     assert_eq!(hits.0, hits.1, "transactions count both");
    ///     Ok(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A conflict, if a row that was read has changed, or a row that is to be written has been
    /// inserted or deleted. Return the error from the closure: the attempt is repeated.
    #[inline]
    pub fn validate(&self) -> Result<(), Abort> {
        self.state.borrow_mut().validate(self.engine)
    }

    /// Runs `effect` after this attempt has committed, outside the transaction, in the order of the
    /// calls. If the attempt does not commit, or an earlier effect panics, `effect` is dropped
    /// without running.
    #[inline]
    pub fn on_commit(&self, effect: impl FnOnce() + 'static) {
        self.effects.0.borrow_mut().get_or_insert_default().calls.push(Box::new(effect));
    }
}

impl<P: Protocol> std::fmt::Debug for Tx<'_, P> {
    #[inline]
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tx").field("protocol", &self.engine.properties.name).finish_non_exhaustive()
    }
}
