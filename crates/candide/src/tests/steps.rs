//! Transactions without conflicts, and actions of others at exact points of them.

use crate::engine::Protocol;
use crate::sync::{Duration, Point, with_hook};
use crate::{Abort, RunOptions, Session, Tx};
use std::cell::Cell;
use std::rc::Rc;

/// Options for one attempt, so that a conflict shows.
pub(crate) const ONCE: fn() -> RunOptions<'static> = || RunOptions::new().attempts_max(1);
pub(crate) const CONFLICT: Result<(), Abort> = Err(Abort::AttemptsExhausted);

/// Runs a transaction that must not meet a conflict.
pub(crate) fn run<T, P: Protocol>(
    session: &mut Session<P>,
    body: impl FnMut(&Tx<'_, P>) -> Result<T, Abort>,
) -> T {
    session.run_with(ONCE(), body).unwrap_or_else(|e| panic!("{}: {e}", P::NAME))
}

/// Runs `body`, and `act` the first time that this thread passes `at`.
pub(crate) fn acting<T>(at: Point, act: impl FnOnce() + 'static, body: impl FnOnce() -> T) -> T {
    let (mut act, acted) = (Some(act), Rc::new(Cell::new(false)));
    let done = acted.clone();
    let hook = move |point| {
        if point == at
            && let Some(act) = act.take()
        {
            // With timestamps from the clock: later ones are of a later tick.
            std::thread::sleep(Duration::from_nanos(1));
            act();
            done.set(true);
        }
    };
    let result = with_hook(hook, body);
    assert!(acted.get(), "{at:?} is not on the way");
    result
}
