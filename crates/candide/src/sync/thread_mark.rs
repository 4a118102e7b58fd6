//! The number of the running thread, and whether the thread may begin an attempt of a transaction.
//!
//! A session that begins an attempt shows the number of its thread, so it loads a word of the
//! thread anyway. While the thread runs a step, this word is zero, and so it is before the thread's
//! first attempt. So an attempt outside of steps pays nothing for the check.

#![forbid(unsafe_code)]

use super::MODELLED;
use std::cell::Cell;

std::thread_local! {
    /// The thread's number, which is the address of this variable; zero before the first attempt of
    /// the thread, and while it runs a step.
    static MARK: Cell<u64> = const { Cell::new(0) };
    static IS_IN_STEP: Cell<bool> = const { Cell::new(false) };
}

/// Returns a number that no other running thread of the process has; zero in a model, whose threads
/// share thread-local data. Costs no more than an address.
#[inline(always)]
pub(crate) fn thread_address() -> u64 {
    if MODELLED { 0 } else { MARK.with(|mark| std::ptr::from_ref(mark).addr() as u64) }
}

/// Returns [`thread_address`]; zero if [`admit_attempt`] has to be called before an attempt begins.
/// Returns 1 in a model.
#[inline(always)]
pub(crate) fn thread_mark() -> u64 {
    if MODELLED { 1 } else { MARK.get() }
}

/// Returns whether the thread may begin an attempt. From the first such call on, [`thread_mark`]
/// is the thread's number outside of steps.
#[cold]
pub(crate) fn admit_attempt() -> bool {
    let may = !is_in_step();
    if may && !MODELLED {
        MARK.set(thread_address());
    }
    may
}

/// Returns whether the thread runs a step, or a computation on results of steps. Returns `false` in
/// a model.
#[cold]
pub(crate) fn is_in_step() -> bool {
    IS_IN_STEP.get()
}

/// The time during which the thread runs a step, and must not begin an attempt. It ends when this
/// is dropped.
pub(crate) struct InStep {
    mark: u64,
    was_in_step: bool,
}

impl InStep {
    pub(crate) fn begin() -> InStep {
        if MODELLED {
            return InStep { mark: 0, was_in_step: false };
        }
        InStep { mark: MARK.replace(0), was_in_step: IS_IN_STEP.replace(true) }
    }
}

impl Drop for InStep {
    fn drop(&mut self) {
        MARK.set(self.mark);
        IS_IN_STEP.set(self.was_in_step);
    }
}
