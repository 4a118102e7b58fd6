//! Values behind handles, with the work that makes them.

#![forbid(unsafe_code)]

use crate::engine::Protocol;
use crate::error::Abort;
use crate::record::CellAt;
use crate::sync::InStep;
use crate::txn::{Entry, Phase, StepList, Tx};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The value of a handle, and what it belongs to.
pub(super) struct Core<T> {
    /// The list of the attempt; `None` if the value belongs to no transaction.
    pub(super) list: Option<Rc<StepList>>,
    /// The number of the value's entry in the list.
    pub(super) number: Cell<usize>,
    pub(super) is_undone: Cell<bool>,
    /// Whether the transaction fails if the value cannot be computed.
    pub(super) is_needed: Cell<bool>,
    /// The number of the last admission as a part of a result.
    pub(super) claim: Cell<u64>,
    pub(super) slot: RefCell<Slot<T>>,
}

pub(super) enum Slot<T> {
    Pending,
    Value(T),
    /// The computation has ended in this outcome, or has panicked.
    Failed(Abort),
    /// The inputs cannot be used together, because of this error.
    Misused(Abort),
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
    /// Why the value cannot be used.
    fn origin(&self) -> Result<Origin<'_>, Abort>;
}

impl<T> Owned for Core<T> {
    fn origin(&self) -> Result<Origin<'_>, Abort> {
        let phase = self.list.as_ref().map(|list| list.phase());
        if self.is_undone.get() || phase == Some(Phase::Failed) {
            return Err(Abort::LaterUndone);
        }
        match (&*self.slot.borrow(), &self.list) {
            (Slot::Misused(error), _) => Err(*error),
            (Slot::Taken, _) => Err(Abort::LaterTaken),
            (_, None) => Ok(Origin::Known),
            (_, Some(_)) if phase == Some(Phase::Committed) => Ok(Origin::Committed),
            (_, Some(list)) => Ok(Origin::Open(list)),
        }
    }
}

/// Inputs that a step keeps.
#[doc(hidden)]
pub trait Held: 'static {
    type Values<'a>;
    type Guards<'a>;

    /// Calls `each` for every input.
    fn each(&self, each: &mut dyn FnMut(&dyn Owned));

    /// Borrows the values.
    fn guards(&self) -> Result<Self::Guards<'_>, Abort>;

    fn values<'v>(guards: &'v Self::Guards<'_>) -> Self::Values<'v>;

    /// Returns whether no value is still to come.
    fn are_known(&self) -> bool {
        !matches!(self.guards(), Err(Abort::NotYet))
    }
}

/// Checks that a value can be used in a transaction: that it belongs to the transaction, or to
/// none.
pub(super) fn admit<P: Protocol>(value: &dyn Owned, tx: &Tx<'_, P>) -> Result<(), Abort> {
    match value.origin()? {
        Origin::Known => Ok(()),
        Origin::Open(list) if tx.has_steps_in(list) => Ok(()),
        Origin::Open(_) | Origin::Committed => Err(Abort::ForeignLater),
    }
}

/// Checks that inputs can be used in a transaction.
pub(in crate::api) fn admit_inputs<P: Protocol>(
    inputs: &impl Held,
    tx: &Tx<'_, P>,
) -> Result<(), Abort> {
    let mut admitted = Ok(());
    inputs.each(&mut |input| {
        if admitted.is_ok() {
            admitted = admit(input, tx);
        }
    });
    admitted
}

/// What has, or will have, a value.
pub(super) trait Valued<T> {
    fn core(&self) -> &Core<T>;
}

/// The work of an entry: the user's closure and its inputs.
pub(in crate::api) trait Work<T>: 'static {
    /// Returns the unit of a step; `None` for a computation.
    fn unit(&self) -> Option<CellAt> {
        None
    }

    /// Returns whether this is a step.
    fn is_step(&self) -> bool {
        self.unit().is_some()
    }

    /// Returns whether all inputs are known.
    fn is_ready(&self) -> bool {
        true
    }

    /// Returns the value. Called at most once.
    ///
    /// # Errors
    /// The outcome with which the transaction ends.
    fn run(&mut self, words: &mut [u64]) -> Result<T, Abort>;
}

/// A value, and the work that makes it.
pub(super) struct Made<T, W> {
    pub(super) core: Core<T>,
    /// `None` once it is released.
    pub(super) work: RefCell<Option<W>>,
}

impl<T, W> Valued<T> for Made<T, W> {
    fn core(&self) -> &Core<T> {
        &self.core
    }
}

impl<T: 'static, W: Work<T>> Entry for Made<T, W> {
    fn is_step(&self) -> bool {
        self.work.borrow().as_ref().is_some_and(Work::is_step)
    }

    fn is_ready(&self) -> bool {
        self.work.borrow().as_ref().is_some_and(Work::is_ready)
    }

    fn is_evaluated(&self) -> bool {
        !self.core.is_pending()
    }

    fn unit(&self) -> Option<CellAt> {
        self.work.borrow().as_ref()?.unit()
    }

    fn evaluate(&self, words: &mut [u64]) -> Result<(), Abort> {
        // This stays if the work panics.
        self.core.slot.replace(Slot::Failed(Abort::Panicked));
        let result = {
            let mut work = self.work.borrow_mut();
            let work = work.as_mut().expect("an entry is evaluated before it is released");
            let _in_step = InStep::begin();
            work.run(words)
        };
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
pub(super) struct Computation<H, F> {
    pub(super) inputs: H,
    pub(super) function: F,
}

impl<H, F, T> Work<T> for Computation<H, F>
where
    H: Held,
    F: FnMut(H::Values<'_>) -> Result<T, Abort> + 'static,
{
    fn is_ready(&self) -> bool {
        self.inputs.are_known()
    }

    fn run(&mut self, _: &mut [u64]) -> Result<T, Abort> {
        let guards = self.inputs.guards()?;
        (self.function)(H::values(&guards))
    }
}

/// What inputs that are used together belong to.
#[derive(Default)]
pub(super) struct Common {
    open: Option<Rc<StepList>>,
    has_committed: bool,
    error: Option<Abort>,
}

impl Common {
    /// Adds an input.
    pub(super) fn add(&mut self, input: &dyn Owned) {
        let error = match input.origin() {
            Err(error) => Some(error),
            Ok(Origin::Known) => None,
            Ok(Origin::Committed) => {
                self.has_committed = true;
                None
            }
            Ok(Origin::Open(list)) => {
                let is_another = |open: &mut Rc<StepList>| !Rc::ptr_eq(open, list);
                let other = self.open.replace(list.clone()).as_mut().is_some_and(is_another);
                other.then_some(Abort::ForeignLater)
            }
        };
        self.error = self.error.or(error);
    }

    /// Returns the list to which the inputs belong; `None` if they belong to no transaction that
    /// runs.
    ///
    /// # Errors
    /// Why the inputs cannot be used, or not together.
    pub(super) fn list(self) -> Result<Option<Rc<StepList>>, Abort> {
        match self.error {
            Some(error) => Err(error),
            None if self.has_committed && self.open.is_some() => Err(Abort::ForeignLater),
            None => Ok(self.open),
        }
    }
}

impl<T> Core<T> {
    pub(super) fn new(list: Option<Rc<StepList>>, slot: Slot<T>) -> Core<T> {
        Core {
            list,
            number: Cell::new(0),
            is_undone: Cell::new(false),
            is_needed: Cell::new(false),
            claim: Cell::new(0),
            slot: RefCell::new(slot),
        }
    }

    /// Returns whether the value is still to come.
    pub(super) fn is_pending(&self) -> bool {
        matches!(*self.slot.borrow(), Slot::Pending)
    }

    /// Returns the outcome in which the computation has ended.
    pub(super) fn failure(&self) -> Option<Abort> {
        match &*self.slot.borrow() {
            Slot::Failed(abort) => Some(*abort),
            _ => None,
        }
    }

    /// Returns a clone of the value.
    pub(super) fn value(&self) -> Result<T, Abort>
    where
        T: Clone,
    {
        match &*self.slot.borrow() {
            Slot::Value(value) => Ok(value.clone()),
            Slot::Pending => Err(Abort::NotYet),
            Slot::Failed(abort) | Slot::Misused(abort) => Err(*abort),
            Slot::Taken => Err(Abort::LaterTaken),
        }
    }
}

impl<T, W> Made<T, W> {
    pub(super) fn new(list: Rc<StepList>, work: W) -> Made<T, W> {
        Made { core: Core::new(Some(list), Slot::Pending), work: RefCell::new(Some(work)) }
    }
}
