//! What another program has changed in a database that follows one, while it did not follow.

#![forbid(unsafe_code)]

use super::notes::{Found, NOTES, State, generation_of, name_hash};
use super::rows::sum_of;
use super::tables::SKIPPED;
use crate::api::session::Session;
use crate::engine::Protocol;
use crate::error::Error;
use crate::handle::Handle;

/// Returns what differs between a database that has just been opened and what its notes say; `None`
/// if nothing does.
///
/// Rows are compared only if something has been written to the log behind the last state that was
/// noted, in another opening. Tables that a snapshot or an object was about to change, and had
/// perhaps changed, are not compared by their names.
pub(super) fn difference<P: Protocol>(
    inner: &Handle<P>,
    session: &mut Session<P>,
    found: &Found,
) -> Result<Option<String>, Error> {
    let are_set = matches!(found.state, State::Whole(_));
    let was_written = found.generation + 1 < generation_of(inner);
    let tables = inner.catalog.logged_tables(&inner.engine.common);
    for core in tables.iter().filter(|core| *core.name != *NOTES) {
        let log_number = core.log_number.get();
        let note = found.tables.values().find(|note| Some(note.log_number) == log_number);
        let Some(note) = note else {
            // A table that was made for an object of which nothing was recovered has no rows.
            if core.linked.sum() > 0 {
                return Ok(Some(format!("table {:?} was made", core.name)));
            }
            continue;
        };
        if are_set && note.name != name_hash(&core.name) {
            return Ok(Some(format!("a table was renamed to {:?}", core.name)));
        }
        if was_written && sum_of(session, core)? != note.sum {
            return Ok(Some(format!("rows of table {:?} were changed", core.name)));
        }
    }
    let is_here = |number| tables.iter().any(|core| core.log_number.get() == Some(number));
    let mut noted = found.tables.values().filter(|note| note.log_number != SKIPPED);
    let is_dropped = are_set && noted.any(|note| !is_here(note.log_number));
    Ok(is_dropped.then(|| "a table was dropped".to_owned()))
}
