//! The number of pins of the running thread, and whether the thread may begin an attempt of a
//! transaction.
//!
//! While the thread runs a step, the number has such a value that the next pin makes it zero. So a
//! pin of an attempt, which compares the number with another word anyway, pays nothing for the
//! check. In a model, whose threads share thread-local data, nothing is counted.

#![forbid(unsafe_code)]

use super::MODELLED;
use std::cell::Cell;

/// The number of pins of a thread that runs a step.
const IN_STEP: u64 = u64::MAX;

std::thread_local! {
    static PINS: Cell<u64> = const { Cell::new(0) };
}

/// Counts a pin that this thread takes. Returns the number of its pins; zero if the thread runs a
/// step, and so must not begin an attempt. Returns 1 in a model.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn count_pin() -> u64 {
    if MODELLED {
        return 1;
    }
    let pins = PINS.get().wrapping_add(1);
    PINS.set(pins);
    pins
}

/// Counts the end of a pin.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn count_unpin() {
    if !MODELLED {
        PINS.set(PINS.get().wrapping_sub(1));
    }
}

/// Returns whether this thread is inside a transaction, of any database, or inside a step. Returns
/// `false` in a model.
#[cold]
pub(crate) fn is_inside_transaction() -> bool {
    PINS.get() > 0
}

/// Returns whether the thread runs a step, or a computation on results of steps. Returns `false` in
/// a model.
#[cold]
pub(crate) fn is_in_step() -> bool {
    PINS.get() == IN_STEP
}

/// The time during which the thread runs a step, and must not begin an attempt. It ends when this
/// is dropped.
pub(crate) struct InStep {
    pins: u64,
}

impl InStep {
    pub(crate) fn begin() -> InStep {
        InStep { pins: if MODELLED { 0 } else { PINS.replace(IN_STEP) } }
    }
}

impl Drop for InStep {
    fn drop(&mut self) {
        PINS.set(self.pins);
    }
}
