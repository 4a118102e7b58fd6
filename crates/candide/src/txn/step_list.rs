//! The list of an attempt's deferred work: steps, and computations on their results.
//!
//! An entry is evaluated once. Entries are evaluated in their order, which is that of the program:
//! so the inputs of an entry are known when its turn comes, however long the chain of entries is.
//! A *step* has a unit, and is evaluated when the engine gives it the unit's words: by a commit,
//! after the validation; earlier, if the transaction asks for its result, or if the protocol
//! applies operations at once. All other entries are *computations*, which are evaluated as soon as
//! everything before them is. So the first entry that is not evaluated is always a step.
//!
//! The list lies in the frame of the function that runs the transaction, beside the effects. When
//! the transaction has ended, the list releases what its entries hold, which is the user's: in a
//! loop, since each entry may hold the one before it, and outside of the transaction.

#![forbid(unsafe_code)]

use crate::access::Steps;
use crate::error::Abort;
use crate::record::CellAt;
use crate::schema::KeyWords;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::thread;

/// The number of entries for which a list has room at first.
const FIRST_ENTRIES: usize = 32;

/// A step or a computation, with its result.
pub(crate) trait Entry {
    /// Returns whether this is a step.
    fn is_step(&self) -> bool;

    /// Returns the unit of a step; `None` for a computation, and for a step whose unit the commit
    /// finds.
    fn unit(&self) -> Option<CellAt>;

    /// Returns whether all inputs are known.
    fn is_ready(&self) -> bool;

    /// Returns whether the entry has been evaluated.
    fn is_evaluated(&self) -> bool;

    /// Returns the words of a key ([`Steps::key`]).
    fn key(&self) -> Result<Option<KeyWords>, Abort> {
        unreachable!("the entry is no key")
    }

    /// Evaluates the entry and keeps the result. A step gets the words of its unit, and a
    /// computation gets none.
    ///
    /// # Errors
    /// The outcome with which the transaction ends. A computation that has no result, and is not
    /// needed by the transaction, is no error.
    fn evaluate(&self, words: &mut [u64]) -> Result<(), Abort>;

    /// Notes that the entry has been undone, with its part of the transaction.
    fn undo(&self);

    /// Drops the user's code, and what that code holds.
    fn release(&self);
}

/// The life of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The attempt runs.
    Open,
    /// The attempt has committed.
    Committed,
    /// The attempt has ended without effect, or its result is not known to be durable.
    Failed,
}

/// The steps and computations of one attempt.
pub(crate) struct StepList {
    entries: RefCell<Vec<Rc<dyn Entry>>>,
    /// The number of entries that have been evaluated. These are the first ones.
    evaluated: Cell<usize>,
    /// The number of entries, the first ones, up to which the transaction has asked for results.
    asked_for: Cell<usize>,
    /// The first entry that has failed, or is not evaluated since the attempt had failed, with the
    /// outcome. No step behind it runs.
    failure: Cell<Option<(usize, Abort)>>,
    /// The entries of parts that were undone, which are kept until the transaction has ended.
    undone: RefCell<Vec<Rc<dyn Entry>>>,
    phase: Cell<Phase>,
    /// Whether steps run as their inputs become known.
    in_any_order: Cell<bool>,
    /// The number of entries, the first ones, among which no computation waits for its inputs.
    computed: Cell<usize>,
}

impl StepList {
    fn new() -> StepList {
        StepList {
            entries: RefCell::default(),
            evaluated: Cell::new(0),
            asked_for: Cell::new(0),
            failure: Cell::new(None),
            undone: RefCell::default(),
            phase: Cell::new(Phase::Open),
            in_any_order: Cell::new(false),
            computed: Cell::new(0),
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase.get()
    }

    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        self.entries.borrow().len()
    }

    /// Adds an entry, and returns its number.
    pub(crate) fn add(&self, entry: Rc<dyn Entry>) -> usize {
        let mut entries = self.entries.borrow_mut();
        if entries.capacity() == 0 {
            entries.reserve(FIRST_ENTRIES);
        }
        entries.push(entry);
        entries.len() - 1
    }

    /// Adds a computation, which is evaluated at once if everything before it is. Returns its
    /// number.
    ///
    /// # Errors
    /// The outcome of the computation, if it is evaluated and has failed.
    ///
    /// # Panics
    /// If the computation is evaluated and panics.
    pub(crate) fn compute(&self, entry: Rc<dyn Entry>) -> Result<usize, Abort> {
        let number = self.add(entry);
        if self.evaluated.get() == number {
            self.evaluate_computations()?;
        }
        Ok(number)
    }

    /// Evaluates the computations before the next step.
    fn evaluate_computations(&self) -> Result<(), Abort> {
        while let Some(entry) = self.next()
            && !entry.is_step()
        {
            self.evaluate(&entry, &mut [])?;
        }
        Ok(())
    }

    /// Evaluates an entry whose inputs are known, which need not be the next one.
    fn evaluate_early(&self, number: usize, words: &mut [u64]) -> Result<(), Abort> {
        let entry = self.entries.borrow()[number].clone();
        assert!(!entry.is_evaluated(), "a step runs once");
        let unwinding = Unwinding { list: self, number };
        let result = entry.evaluate(words);
        std::mem::forget(unwinding);
        result.inspect_err(|&abort| self.note_failure(number, abort))
    }

    /// Evaluates the next entry.
    fn evaluate(&self, entry: &Rc<dyn Entry>, words: &mut [u64]) -> Result<(), Abort> {
        let number = self.evaluated.replace(self.evaluated.get() + 1);
        let unwinding = Unwinding { list: self, number };
        let result = entry.evaluate(words);
        std::mem::forget(unwinding);
        result.inspect_err(|&abort| self.note_failure(number, abort))
    }

    /// Returns the next entry that is to be evaluated.
    fn next(&self) -> Option<Rc<dyn Entry>> {
        self.entries.borrow().get(self.evaluated.get()).cloned()
    }

    /// Asks for the results up to entry `number`. Calls `run` for the unit of each step for which
    /// the transaction has not asked before, in their order; with `None` if only the commit finds
    /// the unit. A step that has not run runs then.
    ///
    /// # Errors
    /// The first error of `run`, also of an earlier call; [`Abort::Panicked`] if an earlier call of
    /// `run` has panicked; the outcome of the first entry that has failed, if the transaction has
    /// asked for it.
    pub(crate) fn ask_for(
        &self,
        number: usize,
        mut run: impl FnMut(Option<CellAt>) -> Result<(), Abort>,
    ) -> Result<(), Abort> {
        if let Some(last) = self.asked_for.get().checked_sub(1) {
            self.refuse_behind_failure(number.min(last))?;
        }
        while self.asked_for.get() <= number {
            let next = self.asked_for.replace(self.asked_for.get() + 1);
            let entry = self.entries.borrow()[next].clone();
            if entry.is_step() {
                let at = entry.unit();
                let unwinding = Unwinding { list: self, number: next };
                let result = run(at);
                std::mem::forget(unwinding);
                result.inspect_err(|&abort| self.note_failure(next, abort))?;
            }
            // The step may have run, and failed, when it was staged.
            self.refuse_behind_failure(next)?;
            assert!(self.evaluated.get() > next, "a step runs when its unit is read");
        }
        Ok(())
    }

    /// Notes that entry `number` has failed.
    fn note_failure(&self, number: usize, abort: Abort) {
        if self.failure.get().is_none_or(|(first, _)| number < first) {
            self.failure.set(Some((number, abort)));
        }
    }

    /// Returns the outcome of the first entry that has failed, if its number is `number` at most.
    fn refuse_behind_failure(&self, number: usize) -> Result<(), Abort> {
        match self.failure.get() {
            Some((failed, abort)) if failed <= number => Err(abort),
            _ => Ok(()),
        }
    }

    /// Keeps a value of the user's until the end of the transaction, as if its step had been
    /// undone.
    #[cold]
    pub(crate) fn keep<T: 'static>(&self, value: T) {
        self.undone.borrow_mut().push(Rc::new(Kept(RefCell::new(Some(value)))));
    }

    /// Takes the list back to its first `count` entries.
    pub(crate) fn undo_to(&self, count: usize) {
        let undone = self.entries.borrow_mut().split_off(count);
        undone.iter().for_each(|entry| entry.undo());
        self.undone.borrow_mut().extend(undone);
        self.evaluated.set(self.evaluated.get().min(count));
        self.computed.set(self.computed.get().min(count));
        self.asked_for.set(self.asked_for.get().min(count));
        self.failure.set(self.failure.get().filter(|&(failed, _)| failed < count));
    }

    /// Returns what the list holds, for the caller to drop.
    fn empty(&self) -> Held {
        let mut entries = self.undone.take();
        entries.append(&mut self.entries.borrow_mut());
        Held(entries)
    }
}

impl Steps for StepList {
    /// Evaluates a step, and the computations behind it.
    fn run(&self, step: u32, words: &mut [u64]) -> Result<(), Abort> {
        if self.in_any_order.get() {
            self.failure().map_or(Ok(()), Err)?;
            return self.evaluate_early(step as usize, words);
        }
        self.refuse_behind_failure(step as usize)?;
        let entry = self.next().expect("a step runs once");
        assert_eq!(self.evaluated.get(), step as usize, "steps run in their order");
        self.evaluate(&entry, words)?;
        self.evaluate_computations()
    }

    fn refuse(&self, step: u32, abort: Abort) {
        self.note_failure(step as usize, abort);
    }

    fn failure(&self) -> Option<Abort> {
        self.failure.get().map(|(_, abort)| abort)
    }

    fn is_ready(&self, step: u32) -> bool {
        self.in_any_order.set(true);
        self.entries.borrow()[step as usize].is_ready()
    }

    fn compute_ready(&self) -> Result<(), Abort> {
        self.in_any_order.set(true);
        let is_waiting = |number: usize| {
            let entry = &self.entries.borrow()[number];
            !entry.is_step() && !entry.is_evaluated()
        };
        let is_ready = |number: usize| self.entries.borrow()[number].is_ready();
        let mut none_waits = true;
        // An input of a computation lies before it.
        for number in self.computed.get().max(self.evaluated.get())..self.len() {
            if is_waiting(number) {
                if is_ready(number) {
                    self.evaluate_early(number, &mut [])?;
                } else {
                    none_waits = false;
                }
            }
            if none_waits {
                self.computed.set(number + 1);
            }
        }
        Ok(())
    }

    fn key(&self, number: u32) -> Result<Option<KeyWords>, Abort> {
        let entry = self.entries.borrow()[number as usize].clone();
        entry.key()
    }
}

/// A guard that notes the panic of an entry that is evaluated. If the entry has not panicked, the
/// guard is forgotten.
struct Unwinding<'l> {
    list: &'l StepList,
    number: usize,
}

impl Drop for Unwinding<'_> {
    fn drop(&mut self) {
        self.list.note_failure(self.number, Abort::Panicked);
    }
}

/// A value that is dropped with the list.
struct Kept<T>(RefCell<Option<T>>);

impl<T> Entry for Kept<T> {
    fn is_step(&self) -> bool {
        false
    }

    fn unit(&self) -> Option<CellAt> {
        None
    }

    fn is_ready(&self) -> bool {
        true
    }

    fn is_evaluated(&self) -> bool {
        true
    }

    fn evaluate(&self, _: &mut [u64]) -> Result<(), Abort> {
        Ok(())
    }

    fn undo(&self) {}

    fn release(&self) {
        drop(self.0.take());
    }
}

/// The list of a running transaction. Its drop ends the list, and drops what it holds.
pub(crate) struct OwnedList(Rc<StepList>);

impl OwnedList {
    pub(crate) fn new() -> OwnedList {
        OwnedList(Rc::new(StepList::new()))
    }

    pub(crate) fn list(&self) -> &Rc<StepList> {
        &self.0
    }

    /// Notes how the attempt has ended. What the list holds is dropped with `self`.
    pub(crate) fn end(&self, phase: Phase) {
        self.0.phase.set(phase);
    }
}

impl Drop for OwnedList {
    fn drop(&mut self) {
        if self.0.phase.get() == Phase::Open {
            self.0.phase.set(Phase::Failed);
        }
        drop(self.0.empty());
    }
}

/// What a list has held: the user's closures, what they have captured, and results.
struct Held(Vec<Rc<dyn Entry>>);

impl Drop for Held {
    /// Drops everything, one entry after another, although drops may panic. No drop goes from one
    /// entry to another, since the list holds all of them until their closures are gone.
    fn drop(&mut self) {
        let mut first_panic = None;
        let mut guarded = |release: &mut dyn FnMut()| {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(release)) {
                first_panic.get_or_insert(panic);
            }
        };
        for entry in &self.0 {
            guarded(&mut || entry.release());
        }
        // A result may hold a handle on an earlier one.
        while let Some(entry) = self.0.pop() {
            let mut entry = Some(entry);
            guarded(&mut || drop(entry.take()));
        }
        if let Some(panic) = first_panic
            && !thread::panicking()
        {
            resume_unwind(panic);
        }
    }
}
