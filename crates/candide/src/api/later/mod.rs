//! Values that are known when their transaction commits.

#![forbid(unsafe_code)]

mod inputs;
mod operators;
mod settle;

pub use inputs::{Held, Inputs, Values};
pub use operators::Arithmetic;
pub use settle::Settle;
pub(super) use settle::admitted;

use super::session::InStep;
use crate::engine::Protocol;
use crate::error::Abort;
use crate::record::CellAt;
use crate::txn::{Entry, Phase, StepList, Tx};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

/// A value that is known when its transaction commits: the result of a *step*
/// ([`Table::defer`](crate::Table::defer)), or something that is computed from such results.
///
/// A `Later` is a handle. Its clones stand for the same value. It is an input of other steps
/// ([`Inputs`]), a condition of the commit ([`Tx::require`]), or the result of the transaction:
/// [`Database::run_deferred`](crate::Database::run_deferred) and its like return the values instead
/// of the handles. Functions of a `Later` that return another one ([`map`](Later::map),
/// [`zip`](Later::zip), operators) are computed in the order of the program, after the steps before
/// them. So they are part of the commit: if one panics, the transaction has no effect, and the
/// panic goes on.
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
/// | the `Later` | an input, [`now`](Later::now), [`Tx::require`], the result | [`get`](Later::get) |
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
pub struct Later<T>(Rc<dyn Valued<T>>);

/// The value of a handle, and what it belongs to.
struct Core<T> {
    /// The list of the attempt; `None` if the value belongs to no transaction.
    list: Option<Rc<StepList>>,
    /// The number of the value's entry in the list.
    number: Cell<usize>,
    is_undone: Cell<bool>,
    /// Whether the transaction fails if the value cannot be computed.
    is_needed: Cell<bool>,
    /// The number of the last admission as a part of a result.
    claim: Cell<u64>,
    slot: RefCell<Slot<T>>,
}

enum Slot<T> {
    Pending,
    Value(T),
    /// The computation has ended in this outcome, or has panicked.
    Failed(Abort),
    Taken,
}

/// What a value belongs to.
pub enum Origin<'a> {
    /// No transaction: the value is known.
    Known,
    /// An attempt that runs.
    #[expect(private_interfaces, reason = "only sealed traits name this type")]
    Open(&'a Rc<StepList>),
    /// A transaction that has committed.
    Committed,
}

/// A value of any type, as an input.
pub trait Owned {
    /// Returns what the value belongs to.
    ///
    /// # Errors
    /// Why there is no value, and never will be.
    fn origin(&self) -> Result<Origin<'_>, Abort>;
}

impl<T> Owned for Core<T> {
    fn origin(&self) -> Result<Origin<'_>, Abort> {
        let phase = self.list.as_ref().map(|list| list.phase());
        if self.is_undone.get() || phase == Some(Phase::Failed) {
            return Err(Abort::LaterUndone);
        }
        match (&*self.slot.borrow(), &self.list) {
            (Slot::Failed(abort), _) => Err(*abort),
            (Slot::Taken, _) => Err(Abort::LaterTaken),
            (_, None) => Ok(Origin::Known),
            (_, Some(_)) if phase == Some(Phase::Committed) => Ok(Origin::Committed),
            (_, Some(list)) => Ok(Origin::Open(list)),
        }
    }
}

/// Checks that a value can be used in a transaction: that it belongs to the transaction, or to
/// none. If its computation has failed, so has the transaction.
fn admit<P: Protocol>(value: &dyn Owned, tx: &Tx<'_, P>) -> Result<(), Abort> {
    match value.origin() {
        Ok(Origin::Known) => Ok(()),
        Ok(Origin::Open(list)) if tx.has_steps_in(list) => Ok(()),
        Ok(Origin::Open(_) | Origin::Committed) => Err(Abort::ForeignLater),
        Err(misuse @ (Abort::LaterUndone | Abort::LaterTaken)) => Err(misuse),
        Err(outcome) => Err(tx.fail(outcome)),
    }
}

/// Checks that inputs can be used in a transaction.
pub(super) fn admit_inputs<P: Protocol>(inputs: &impl Held, tx: &Tx<'_, P>) -> Result<(), Abort> {
    let mut admitted = Ok(());
    inputs.each(&mut |input| {
        if admitted.is_ok() {
            admitted = admit(input, tx);
        }
    });
    admitted
}

/// What has, or will have, a value.
trait Valued<T> {
    fn core(&self) -> &Core<T>;
}

/// The work of an entry: the user's closure and its inputs.
pub(super) trait Work<T>: 'static {
    /// Returns the unit of a step; `None` for a computation.
    fn unit(&self) -> Option<CellAt> {
        None
    }

    /// Returns the value. Called at most once.
    ///
    /// # Errors
    /// The outcome with which the transaction ends.
    fn run(&mut self, words: &mut [u64]) -> Result<T, Abort>;
}

/// A value, and the work that makes it.
struct Made<T, W> {
    core: Core<T>,
    /// `None` once it is released.
    work: RefCell<Option<W>>,
}

impl<T, W> Valued<T> for Made<T, W> {
    fn core(&self) -> &Core<T> {
        &self.core
    }
}

impl<T: 'static, W: Work<T>> Entry for Made<T, W> {
    fn unit(&self) -> Option<CellAt> {
        self.work.borrow().as_ref()?.unit()
    }

    fn evaluate(&self, words: &mut [u64]) -> Result<(), Abort> {
        let mut work = self.work.borrow_mut();
        let work = work.as_mut().expect("an entry is evaluated before it is released");
        // This stays if the work panics.
        self.core.slot.replace(Slot::Failed(Abort::Panicked));
        let in_step = InStep::begin();
        let result = work.run(words);
        drop(in_step);
        let failure = result.as_ref().err().copied();
        self.core.slot.replace(result.map_or_else(Slot::Failed, Slot::Value));
        match failure {
            Some(abort) if self.core.is_needed.get() => Err(abort),
            _ => Ok(()),
        }
    }

    fn undo(&self) {
        self.core.is_undone.set(true);
    }

    fn release(&self) {
        drop(self.work.take());
    }
}

/// A function of inputs.
struct Computation<H, F> {
    inputs: H,
    function: F,
}

impl<H, F, T> Work<T> for Computation<H, F>
where
    H: Held,
    F: FnMut(H::Values<'_>) -> Result<T, Abort> + 'static,
{
    fn run(&mut self, _: &mut [u64]) -> Result<T, Abort> {
        let guards = self.inputs.guards()?;
        (self.function)(H::values(&guards))
    }
}

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
    pub(super) fn step<W: Work<T>>(
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
    fn of<H: Held>(
        inputs: H,
        function: impl FnMut(H::Values<'_>) -> Result<T, Abort> + 'static,
    ) -> Later<T> {
        let list = common_list(&|each| inputs.each(each));
        let mut work = Computation { inputs, function };
        match list {
            Err(abort) => Later::known(Slot::Failed(abort)),
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
    /// With the panic of `function`, if it is called at once. If it is called at the commit, the
    /// transaction has no effect, and the panic goes on in the caller of `run`.
    #[must_use]
    pub fn map<U: 'static>(&self, mut function: impl FnMut(&T) -> U + 'static) -> Later<U> {
        Later::of(self.clone(), move |value| Ok(function(value)))
    }

    /// Returns a `Later` of both values, which are cloned. Of more values, or of such that cannot
    /// be cloned, a step takes a tuple as its [`Inputs`].
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

    /// Checks that the value can be used in a transaction.
    pub(super) fn admit<P: Protocol>(&self, tx: &Tx<'_, P>) -> Result<(), Abort> {
        admit(self.0.core(), tx)
    }

    /// Returns a clone of the value, even if its transaction still runs.
    ///
    /// # Errors
    /// Why there is no value.
    pub(super) fn value(&self) -> Result<T, Abort>
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
    /// [`Abort::Guard`] if the value is known, and false.
    pub(super) fn require(&self) -> Result<(), Abort> {
        struct Condition(Later<bool>);
        impl Work<()> for Condition {
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

/// Returns the list to which the inputs belong that `each` passes to its argument; `None` if they
/// belong to no transaction that runs.
fn common_list(each: &dyn Fn(&mut dyn FnMut(&dyn Owned))) -> Result<Option<Rc<StepList>>, Abort> {
    let (mut open, mut committed, mut failure) = (None::<Rc<StepList>>, false, None);
    each(&mut |input| match input.origin() {
        Err(abort) => failure = failure.or(Some(abort)),
        Ok(Origin::Known) => {}
        Ok(Origin::Committed) => committed = true,
        Ok(Origin::Open(list)) => match &open {
            Some(other) if !Rc::ptr_eq(list, other) => {
                failure = failure.or(Some(Abort::ForeignLater))
            }
            _ => open = Some(list.clone()),
        },
    });
    match failure {
        Some(abort) => Err(abort),
        None if committed && open.is_some() => Err(Abort::ForeignLater),
        None => Ok(open),
    }
}

impl<T> Core<T> {
    fn new(list: Option<Rc<StepList>>, slot: Slot<T>) -> Core<T> {
        Core {
            list,
            number: Cell::new(0),
            is_undone: Cell::new(false),
            is_needed: Cell::new(false),
            claim: Cell::new(0),
            slot: RefCell::new(slot),
        }
    }

    /// Returns a clone of the value.
    fn value(&self) -> Result<T, Abort>
    where
        T: Clone,
    {
        match &*self.slot.borrow() {
            Slot::Value(value) => Ok(value.clone()),
            Slot::Pending => Err(Abort::NotYet),
            Slot::Failed(abort) => Err(*abort),
            Slot::Taken => Err(Abort::LaterTaken),
        }
    }
}

impl<T, W> Made<T, W> {
    fn new(list: Rc<StepList>, work: W) -> Made<T, W> {
        Made { core: Core::new(Some(list), Slot::Pending), work: RefCell::new(Some(work)) }
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
            Ok(Origin::Known | Origin::Committed) => "known",
            Err(Abort::LaterUndone) => "undone",
            Err(Abort::LaterTaken) => "taken",
            Err(_) => "failed",
        };
        f.debug_tuple("Later").field(&format_args!("{state}")).finish()
    }
}
