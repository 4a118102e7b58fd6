//! Steps: the user's code that a commit runs on the words of a unit.
//!
//! A step is an operation like an updater, but it may use what earlier steps have returned, of
//! other units, too. So a write set with steps is evaluated in the order of the program. The write
//! set has the numbers of steps only; the steps themselves, with what they have captured, lie in
//! the frame of the function that runs the transaction, since they need not be `Send`. While an
//! operation or a commit may run steps, the thread knows their list.

#![forbid(unsafe_code)]

use crate::error::Abort;
use crate::record::{CellAt, Tid};
use crate::schema::KeyWords;
use crate::sync::thread_local;
use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::rc::Rc;

/// The steps of an attempt.
pub(crate) trait Steps {
    /// Runs the step with this number on the words of its unit, to which all earlier operations of
    /// the attempt have been applied, and keeps its result. For a row that is to be inserted, the
    /// words are those of all units, one after another, and are zero. A step is run at most once,
    /// and after all steps with smaller numbers. No step runs after one that has failed.
    ///
    /// # Errors
    /// The outcome with which the transaction ends.
    ///
    /// # Panics
    /// With the panic of the step.
    fn run(&self, step: u32, words: &mut [u64]) -> Result<(), Abort>;

    /// Keeps this step, and those behind it, from running, since the attempt has failed.
    fn refuse(&self, step: u32, abort: Abort);

    /// Returns the outcome of the first step or computation that is known to have failed.
    fn failure(&self) -> Option<Abort>;

    /// Returns whether the inputs of a step are known. From the first such question on, steps may
    /// run in any order in which this is so.
    fn is_ready(&self, step: u32) -> bool;

    /// Makes the computations whose inputs are known.
    fn compute_ready(&self) -> Result<(), Abort>;

    /// Returns the words of the key with this number; `None` if the transaction needs no row.
    ///
    /// # Errors
    /// [`Abort::NotYet`] if the key is not known; the outcome of its computation.
    fn key(&self, number: u32) -> Result<Option<KeyWords>, Abort>;
}

thread_local! {
    /// The list of the attempt that may run steps now. It has no destructor, so that transactions
    /// can have steps while the thread ends.
    static LIST: RefCell<ManuallyDrop<Option<Rc<dyn Steps>>>> = RefCell::default();
    /// Whether a commit of the thread is in a chain.
    static IN_CHAIN: Cell<bool> = Cell::default();
}

#[cfg(any(test, feature = "history"))]
thread_local! {
    /// The units on whose words steps have run, with the versions of these words; `None` if they
    /// are not recorded.
    static OBSERVED: RefCell<Option<Vec<(CellAt, u64)>>> = RefCell::default();
}

/// Calls `act`. Also returns the units on whose words `act` has run steps, with the versions of
/// these words. Calls can be nested: an updater may run a transaction.
#[cfg(any(test, feature = "history"))]
pub(crate) fn observed_by<T>(act: impl FnOnce() -> T) -> (T, Vec<(CellAt, u64)>) {
    let outer = replace_observed(Some(Vec::new()));
    let result = act();
    (result, replace_observed(outer).unwrap_or_default())
}

/// Makes `list` the list of observed units, and returns the one before. Records nothing while the
/// thread ends.
#[cfg(any(test, feature = "history"))]
fn replace_observed(list: Option<Vec<(CellAt, u64)>>) -> Option<Vec<(CellAt, u64)>> {
    OBSERVED.try_with(|observed| observed.replace(list)).ok().flatten()
}

/// Notes, if a history is recorded, that a step runs on the words of a unit, of this version.
pub(crate) fn note_observed(at: CellAt, version: impl FnOnce() -> u64) {
    #[cfg(any(test, feature = "history"))]
    let _ = OBSERVED.try_with(|observed| {
        if let Some(observed) = &mut *observed.borrow_mut() {
            observed.push((at, version()));
        }
    });
    #[cfg(not(any(test, feature = "history")))]
    let _ = (at, version);
}

/// Corrects the versions of the units on whose words steps have run: `version` returns the TID word
/// with the version of these words.
pub(crate) fn correct_observed(version: impl Fn(CellAt) -> Option<Tid>) {
    #[cfg(any(test, feature = "history"))]
    OBSERVED.with(|observed| {
        for (at, noted) in observed.borrow_mut().iter_mut().flatten() {
            if let Some(tid) = version(*at) {
                *noted = tid.version();
            }
        }
    });
    #[cfg(not(any(test, feature = "history")))]
    let _ = version;
}

/// Calls `act`, which may run steps of `list`.
pub(crate) fn with_list<T>(list: Rc<dyn Steps>, act: impl FnOnce() -> T) -> T {
    let _outer = Outer(replace_list(Some(list)));
    act()
}

/// Makes `list` the current list, and returns the one before.
fn replace_list(list: Option<Rc<dyn Steps>>) -> Option<Rc<dyn Steps>> {
    ManuallyDrop::into_inner(LIST.with(|current| current.replace(ManuallyDrop::new(list))))
}

/// The list of an enclosing attempt, which is put back when the inner call has ended.
struct Outer(Option<Rc<dyn Steps>>);

impl Drop for Outer {
    fn drop(&mut self) {
        drop(replace_list(self.0.take()));
    }
}

/// Runs a step of the current list.
pub(crate) fn run(step: u32, words: &mut [u64]) -> Result<(), Abort> {
    current().run(step, words)
}

/// As [`Steps::is_ready`], of the current list.
pub(super) fn is_ready(step: u32) -> bool {
    current().is_ready(step)
}

/// As [`Steps::compute_ready`], of the current list.
pub(super) fn compute_ready() -> Result<(), Abort> {
    current().compute_ready()
}

/// As [`Steps::key`], of the current list.
pub(crate) fn key(number: u32) -> Result<Option<KeyWords>, Abort> {
    current().key(number)
}

fn current() -> Rc<dyn Steps> {
    let list = LIST.with(|current| Option::clone(&current.borrow()));
    list.expect("a commit knows its steps")
}

/// The note that a commit of this thread is in a chain, until it is dropped. Others wait for it
/// without a bound, and user code may run in it.
pub(crate) struct InChain(());

/// Notes that a commit of this thread begins to lock in chains. Returns `None` if one has begun
/// already: the caller runs inside it, and would wait for it.
pub(crate) fn enter_chains() -> Option<InChain> {
    (!IN_CHAIN.with(|is_in| is_in.replace(true))).then_some(InChain(()))
}

impl Drop for InChain {
    fn drop(&mut self) {
        IN_CHAIN.with(|is_in| is_in.set(false));
    }
}
