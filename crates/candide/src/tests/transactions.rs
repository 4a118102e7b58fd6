//! Transactions of one attempt.

use crate::{Abort, Protocol, RunOptions, Session, Tx};

/// Options for one attempt, so that a conflict is returned as an error.
pub(crate) const ONCE: fn() -> RunOptions<'static> = || RunOptions::new().attempts_max(1);
pub(crate) const CONFLICT: Result<(), Abort> = Err(Abort::AttemptsExhausted);

/// Runs a transaction that must not meet a conflict.
pub(crate) fn run<T, P: Protocol>(
    session: &mut Session<P>,
    body: impl FnMut(&Tx<'_, P>) -> Result<T, Abort>,
) -> T {
    session.with(ONCE()).run(body).unwrap_or_else(|e| panic!("{}: {e}", P::NAME))
}
