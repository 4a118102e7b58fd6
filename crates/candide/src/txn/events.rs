//! Events for the `tracing` crate, under the feature of that name. A subscriber is the user's code,
//! which may panic. So a caller is between two attempts, and holds no lock and no pin. The caller
//! may hold the token, but no wait for the token is endless.

#![forbid(unsafe_code)]

use super::Conflict;
use crate::engine::{Common, ConflictNote};
use crate::error::Abort;
use tracing::span::EnteredSpan;
use tracing::{Level, enabled, event, field, span};

/// Reports that an attempt, the `attempt`th of its transaction, has ended in a conflict.
#[cold]
pub(super) fn conflict(engine: &Common, note: ConflictNote, attempt: u32) {
    const TARGET: &str = "candide::conflict";
    // Names are looked up only if a subscriber wants the event.
    if !enabled!(target: TARGET, Level::DEBUG) {
        return;
    }
    let conflict = Conflict::named(engine, note);
    event!(
        target: TARGET,
        Level::DEBUG,
        cause = conflict.cause.name(),
        transaction = conflict.transaction,
        table = conflict.table.as_deref(),
        group = conflict.group,
        key = conflict.key_text.as_deref(),
        attempt,
        "{conflict}"
    );
}

/// Reports that a session has taken the token after `conflicts` conflicts in one transaction.
#[cold]
pub(super) fn token_taken(session: u64, conflicts: u32, transaction: Option<&'static str>) {
    event!(
        target: "candide::token",
        Level::WARN,
        session,
        conflicts,
        transaction,
        "others give way to a transaction that has met {conflicts} conflicts"
    );
}

/// Opens and enters the span of a transaction with a name.
pub(super) fn transaction(name: &'static str, session: u64) -> EnteredSpan {
    let span = span!(
        target: "candide::transaction",
        Level::DEBUG,
        "transaction",
        transaction = name,
        session,
        attempts = field::Empty,
        outcome = field::Empty,
    );
    span.entered()
}

/// Closes the span of a transaction with a name. A transaction that the engine has given up or
/// refused, or that has ended in an outcome, is also an event within the span.
pub(super) fn transaction_ended(name: &'static str, span: EnteredSpan, attempts: u32, end: End) {
    let outcome = end.name();
    if let End::Abort(reason) = end {
        event!(
            target: "candide::abort",
            Level::DEBUG,
            reason = outcome,
            transaction = name,
            attempts,
            "{name}: {reason}"
        );
    }
    span.record("attempts", attempts);
    span.record("outcome", outcome);
}

/// The end of a transaction with a name.
#[derive(Debug, Clone, Copy)]
pub(super) enum End {
    Commit,
    /// An error of the closure.
    Error,
    /// A panic of the closure, or of an updater.
    Panic,
    Abort(Abort),
}

impl End {
    fn name(self) -> &'static str {
        match self {
            End::Commit => "commit",
            End::Error => "error",
            End::Panic => "panic",
            End::Abort(reason) => reason.name(),
        }
    }
}
