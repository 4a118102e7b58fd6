//! Whether values may be dropped by the running thread. The drop of a value may run transactions.

#![forbid(unsafe_code)]

use super::MODELLED;
use std::cell::Cell;

std::thread_local! {
    /// Whether the thread is dropping values, or must not drop any.
    static DROPS: Cell<bool> = const { Cell::new(false) };
}

/// The time during which the thread drops values, or must not drop any: other ends of transactions
/// of the thread leave values to later transactions.
pub(crate) struct Dropping;

impl Dropping {
    /// Returns `None` if such a time has begun already. In a model, whose threads share
    /// thread-local data, that is not known.
    pub(crate) fn begin() -> Option<Dropping> {
        let is_inner = !MODELLED && DROPS.try_with(|drops| drops.replace(true)).unwrap_or(false);
        // Not by `then_some`, which would make one in any case, whose drop ends the outer one.
        if is_inner { None } else { Some(Dropping) }
    }
}

impl Drop for Dropping {
    fn drop(&mut self) {
        let _ = DROPS.try_with(|drops| drops.set(false));
    }
}
