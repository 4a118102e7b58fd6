//! Handles on values that come later.

#![forbid(unsafe_code)]

use super::value::{
    Common, Computation, Core, Held, Made, Origin, Owned, Slot, Valued, Work, admit,
};
use crate::engine::Protocol;
use crate::error::Abort;
use crate::txn::{StepList, Tx};
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

/// A value that is known when its transaction commits: the result of a *step*
/// ([`Table::defer`](crate::Table::defer)), or something that is computed from such results.
///
/// A `Later` is a handle. Its clones stand for the same value. It is an input of other steps
/// ([`Inputs`](crate::deferred::Inputs)), a condition of the commit ([`Tx::require`]), or the
/// result of the transaction: [`Database::run_deferred`](crate::Database::run_deferred) and its
/// like return the values instead of the handles. Functions of a `Later` that return another one
/// ([`map`](Later::map), [`zip`](Later::zip), operators) are computed in the order of the program,
/// after the steps before them. So they are part of the commit: if one panics, the transaction has
/// no effect, and the panic goes on.
///
/// ```
/// # use candide::{Abort, Database, Later, Record};
/// # #[derive(Record, Clone, Copy)]
/// # struct Account { #[key] id: u64, cents: i64 }
/// # let db = Database::new();
/// # let accounts = db.table::<Account>("accounts")?;
/// # db.run(|tx| accounts.insert(tx, Account { id: 1, cents: 500 }))?;
/// let left = db.run_deferred(|tx| {
///     let before: Later<i64> = accounts.defer(tx, 1, Account::CENTS, (), |cents, ()| {
///         let before = *cents;
///         *cents = before - 80;
///         before
///     })?;
///     tx.require(&before.map(|cents| *cents >= 80))?;
///     Ok(before - 80)
/// });
/// assert_eq!(left, Ok(420));
/// # Ok::<(), candide::Error>(())
/// ```
///
/// # Life
/// A `Later` belongs to one attempt of one transaction, and to the [part](Tx::attempt) in which it
/// was made. Only [`Later::ready`], and what is computed from it, belongs to none. Any other use is
/// an error, which says what to do:
///
/// | the `Later` | an input, [`now`](Later::now), [`Tx::require`], the result | [`get`](Later::get)
/// |
/// |---|---|---|
/// | of this attempt | used | [`Abort::NotYet`] |
/// | of another transaction, which runs | [`Abort::ForeignLater`] | [`Abort::NotYet`] |
/// | of another transaction, which has committed | [`Abort::ForeignLater`] | the value |
/// | of an attempt or part without effect | [`Abort::LaterUndone`] | [`Abort::LaterUndone`] |
/// | whose value `run_deferred` has returned | [`Abort::LaterTaken`] | [`Abort::LaterTaken`] |
///
/// It makes no difference whether the other transaction is one of another database, an enclosing
/// one, or the previous attempt of the same closure.
///
/// A `Later` is not [`Send`]: it belongs to the thread of its transaction.
///
/// ```compile_fail,E0277
/// let later = candide::Later::ready(7);
/// std::thread::spawn(move || later.get());
/// ```
pub struct Later<T>(pub(super) Rc<dyn Valued<T>>);

impl<T: 'static> Later<T> {
    /// Returns a `Later` whose value is known, and which belongs to no transaction.
    ///
    /// ```
    /// # use candide::Later;
    /// assert_eq!(Later::ready(3).map(|number| number + 1).get(), Ok(4));
    /// let answer: Later<_> = 42.into();
    /// assert_eq!(answer.get(), Ok(42));
    /// ```
    pub fn ready(value: T) -> Later<T> {
        Later::known(Slot::Value(value))
    }

    fn known(slot: Slot<T>) -> Later<T> {
        struct Nothing;
        impl<T: 'static> Work<T> for Nothing {
            fn run(&mut self, _: &mut [u64]) -> Result<T, Abort> {
                unreachable!("the value is known")
            }
        }
        let made: Made<T, Nothing> = Made { core: Core::new(None, slot), work: RefCell::new(None) };
        Later(Rc::new(made))
    }

    /// Adds a step to the list, and stages it by `stage`, with the step's number in the list.
    /// Returns the step's result.
    pub(in crate::api) fn step<W: Work<T>>(
        list: Rc<StepList>,
        work: W,
        stage: impl FnOnce(Rc<StepList>, u32) -> Result<(), Abort>,
    ) -> Result<Later<T>, Abort> {
        let made = Rc::new(Made::new(list.clone(), work));
        made.core.is_needed.set(true);
        let number = list.add(made.clone());
        made.core.number.set(number);
        if let Err(abort) = stage(list.clone(), number as u32) {
            list.undo_to(number);
            return Err(abort);
        }
        Ok(Later(made))
    }

    /// Returns what `function` makes of the inputs: now, if they belong to no transaction that
    /// runs.
    pub(super) fn of<H: Held>(
        inputs: H,
        function: impl FnMut(H::Values<'_>) -> Result<T, Abort> + 'static,
    ) -> Later<T> {
        let mut common = Common::default();
        inputs.each(&mut |input| common.add(input));
        let mut work = Computation { inputs, function };
        match common.list() {
            Err(error) => Later::known(Slot::Misused(error)),
            Ok(Some(list)) => {
                let made = Rc::new(Made::new(list.clone(), work));
                let number = list.compute(made.clone());
                made.core.number.set(number.expect("a value that is not needed fails nothing"));
                Later(made)
            }
            Ok(None) => Later::known(match work.run(&mut []) {
                Ok(value) => Slot::Value(value),
                Err(abort) => Slot::Failed(abort),
            }),
        }
    }

    /// Returns a `Later` whose value is that of `function`, called with the value of this one.
    ///
    /// If the value belongs to no transaction, or to one that has committed, `function` is called
    /// at once. Otherwise it is called when the steps before this call have run: at the commit,
    /// with rows locked. So it should be short, and must not begin a transaction
    /// ([`Abort::Nested`]). It is called at most once per attempt, and not if the attempt ends
    /// without effect before. It is an `FnMut`, so that what it captures is dropped after the
    /// transaction, and not while rows are locked.
    ///
    /// ```
    /// # use candide::{Database, Record};
    /// # #[derive(Record, Clone, Copy)]
    /// # struct Counter { #[key] id: u64, next: u64 }
    /// # let db = Database::new();
    /// # let counters = db.table::<Counter>("counters")?;
    /// # db.run(|tx| counters.insert(tx, Counter { id: 1, next: 7 }))?;
    /// let ticket = db.run_deferred(|tx| {
    ///     let number = counters.defer(tx, 1, Counter::NEXT, (), |next, ()| {
    ///         *next += 1;
    ///         *next - 1
    ///     })?;
    ///     Ok(number.map(|number| format!("ticket {number}")))
    /// })?;
    /// assert_eq!(ticket, "ticket 7");
    /// # Ok::<(), candide::Error>(())
    /// ```
    ///
    /// # Panics
    /// With the panic of `function`, if it is called at once. If the transaction still runs then,
    /// and the closure catches the panic, the transaction can only end in [`Abort::Panicked`]. If
    /// it is called at the commit, the transaction has no effect, and the panic goes on in the
    /// caller of `run`.
    #[must_use]
    pub fn map<U: 'static>(&self, mut function: impl FnMut(&T) -> U + 'static) -> Later<U> {
        Later::of(self.clone(), move |value| Ok(function(value)))
    }

    /// Returns a `Later` of both values, which are cloned. Of more values, or of such that cannot
    /// be cloned, a step takes a tuple as its [`Inputs`](crate::deferred::Inputs).
    ///
    /// ```
    /// # use candide::Later;
    /// let both = Later::ready(3).zip(&Later::ready("three"));
    /// assert_eq!(both.get(), Ok((3, "three")));
    /// ```
    #[must_use]
    pub fn zip<U: Clone + 'static>(&self, other: &Later<U>) -> Later<(T, U)>
    where
        T: Clone,
    {
        Later::of((self.clone(), other.clone()), |(one, other): (&T, &U)| {
            Ok((one.clone(), other.clone()))
        })
    }

    /// Returns the value: of a transaction that has committed, or one that belongs to no
    /// transaction.
    ///
    /// ```
    /// # use candide::{Abort, Database, Record};
    /// # #[derive(Record, Clone, Copy)]
    /// # struct Counter { #[key] id: u64, hits: u64 }
    /// # let db = Database::new();
    /// # let counters = db.table::<Counter>("counters")?;
    /// # db.run(|tx| counters.insert(tx, Counter { id: 1, hits: 7 }))?;
    /// let hits = db.run(|tx| {
    ///     let hits = counters.defer(tx, 1, Counter::HITS, (), |hits, ()| *hits)?;
    ///     assert_eq!(hits.get(), Err(Abort::NotYet));
    ///     Ok(hits)
    /// })?;
    /// assert_eq!(hits.get(), Ok(7));
    /// # Ok::<(), candide::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Abort::NotYet`] while the transaction runs, [`Abort::LaterUndone`] if it has ended without
    /// effect, or its part has been undone, [`Abort::LaterTaken`] if
    /// [`run_deferred`](crate::Database::run_deferred) has returned the value, and
    /// [`Abort::Overflow`] of an operator.
    pub fn get(&self) -> Result<T, Abort>
    where
        T: Clone,
    {
        match self.0.core().origin()? {
            Origin::Open(_) => Err(Abort::NotYet),
            Origin::Known | Origin::Committed => self.0.core().value(),
        }
    }

    /// Returns the value now, within its transaction. For this the transaction reads: all steps up
    /// to this value's, in the order of the program, read the units of their columns, as
    /// [`Table::read`](crate::Table::read) does, run, and become updates that set what they have
    /// computed. Computations of their results are made, too. Later steps stay steps.
    ///
    /// So from then on the transaction has observed these units, and conflicts with every other
    /// one that changes them. A value that is needed in the closure is therefore better deferred
    /// before the others. Nothing is read for a value that is known already: of [`Later::ready`],
    /// of a step before another `now`, and of any step under a protocol that runs one transaction
    /// at a time.
    ///
    /// ```
    /// # use candide::{Database, Record};
    /// # #[derive(Record, Clone, Copy)]
    /// # struct Counter { #[key] id: u64, next: u64 }
    /// # let db = Database::new();
    /// # let counters = db.table::<Counter>("counters")?;
    /// db.run(|tx| counters.insert(tx, Counter { id: 0, next: 7 }))?;
    /// db.run(|tx| {
    ///     let next = counters.defer(tx, 0, Counter::NEXT, (), |next, ()| {
    ///         *next += 1;
    ///         *next - 1
    ///     })?;
    ///     // A key must be known.
    ///     counters.insert(tx, Counter { id: next.now(tx)?, next: 0 })
    /// })?;
    /// assert_eq!(db.run(|tx| counters.read(tx, 7, Counter::NEXT)), Ok(0));
    /// # Ok::<(), candide::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [misuse](Later#life); conflicts; [`Abort::Guard`], [`Abort::Overflow`] and other
    /// outcomes of earlier updates of the same rows, of [`Tx::require`] and of operators. The
    /// transaction then ends in this outcome.
    ///
    /// # Panics
    /// With the panic of a step or a computation. If the closure catches it, the transaction can
    /// only end in [`Abort::Panicked`].
    pub fn now<P: Protocol>(&self, tx: &Tx<'_, P>) -> Result<T, Abort>
    where
        T: Clone,
    {
        let core = self.0.core();
        self.admit(tx)?;
        if let Some(list) = &core.list {
            tx.evaluate(list, core.number.get())?;
        }
        core.value().map_err(|abort| tx.fail(abort))
    }

    /// Returns whether the value is still to come.
    pub(in crate::api) fn is_pending(&self) -> bool {
        self.0.core().is_pending()
    }

    /// Checks that the value can be used in a transaction.
    pub(in crate::api) fn admit<P: Protocol>(&self, tx: &Tx<'_, P>) -> Result<(), Abort> {
        admit(self.0.core(), tx)
    }

    /// Returns a clone of the value, even if its transaction still runs.
    ///
    /// # Errors
    /// Why there is no value.
    pub(in crate::api) fn value(&self) -> Result<T, Abort>
    where
        T: Clone,
    {
        self.0.core().value()
    }
}

impl Later<bool> {
    /// Makes this a condition of the commit.
    ///
    /// # Errors
    /// [`Abort::Guard`] if the value is known, and false; the outcome of its computation.
    pub(in crate::api) fn require(&self) -> Result<(), Abort> {
        struct Condition(Later<bool>);
        impl Work<()> for Condition {
            fn is_ready(&self) -> bool {
                !self.0.is_pending()
            }

            fn run(&mut self, _: &mut [u64]) -> Result<(), Abort> {
                if self.0.value()? { Ok(()) } else { Err(Abort::Guard) }
            }
        }
        let mut condition = Condition(self.clone());
        let Some(list) = &self.0.core().list else { return condition.run(&mut []) };
        let made = Rc::new(Made::new(list.clone(), condition));
        made.core.is_needed.set(true);
        list.compute(made).map(drop)
    }
}

impl<T> Clone for Later<T> {
    fn clone(&self) -> Later<T> {
        Later(self.0.clone())
    }
}

impl<T: 'static> From<T> for Later<T> {
    fn from(value: T) -> Later<T> {
        Later::ready(value)
    }
}

impl<T> fmt::Debug for Later<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.0.core().origin() {
            Ok(Origin::Open(_)) => "not yet",
            Ok(_) if self.0.core().failure().is_some() => "failed",
            Ok(Origin::Known | Origin::Committed) => "known",
            Err(Abort::LaterUndone) => "undone",
            Err(Abort::LaterTaken) => "taken",
            Err(_) => "misused",
        };
        f.debug_tuple("Later").field(&format_args!("{state}")).finish()
    }
}
