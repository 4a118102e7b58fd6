//! Events for the `tracing` crate, under the feature of that name. A subscriber is the user's code,
//! which may panic. So a caller is between two attempts, and holds no lock and no pin. The caller
//! may hold the token, but no wait for the token is endless.

#![forbid(unsafe_code)]

use super::Conflict;
use crate::engine::{Common, ConflictNote};
use tracing::{Level, enabled, event};

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
