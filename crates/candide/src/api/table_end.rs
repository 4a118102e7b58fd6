//! The end of tables: what is left of their rows is deleted.

#![forbid(unsafe_code)]

use super::session::Session;
use crate::catalog::FormerTable;
use crate::engine::{Protocol, Stage, TableCore};
use crate::error::{Abort, Error};
use crate::handle::Handle;
use crate::index::Found;
use crate::log::Level;
use crate::sync::lock;
use std::sync::Arc;

/// The number of rows that are deleted in one transaction.
const ROWS_AT_ONCE: usize = 256;

/// Calls `work` with the table called `name`, which no other thread adopts, replaces, renames or
/// drops meanwhile.
///
/// # Errors
/// [`Error::NoTable`], and those of `work`.
pub(super) fn with_table<T, P: Protocol>(
    inner: &Handle<P>,
    name: &str,
    work: impl FnOnce(&Arc<TableCore>) -> Result<T, Error>,
) -> Result<T, Error> {
    let named = || inner.catalog.named(&inner.engine.common, name);
    loop {
        let core = named()?;
        let _only_this = lock(&core.adoption);
        if named().is_ok_and(|now| Arc::ptr_eq(&now, &core)) {
            return work(&core);
        }
    }
}

/// Waits until all transactions that have ended are durable, in a database with a log.
pub(super) fn await_durable<P: Protocol>(inner: &Handle<P>) -> Result<(), Error> {
    let Some(log) = inner.engine.log.get() else { return Ok(()) };
    let stamp = inner.last_stamp();
    log.progress.wait_while_room(stamp, Level::Durable).map_err(Error::Transaction)
}

/// Leaves the number and the memory of a table that has no owner any more to later tables. No other
/// transaction uses the table. If rows cannot be deleted, they stay in memory.
pub(super) fn retire<P: Protocol>(
    session: &mut Session<P>,
    core: &TableCore,
    former: Vec<FormerTable>,
) {
    if empty(session, core) {
        // The rows would wait for the advancer, and many tables can be dropped until it comes.
        session.collect_garbage();
        let inner = session.inner();
        inner.catalog.retire(former);
        inner.free_former_tables();
    }
}

/// Deletes the rows of a table that has no owner any more, and the entries of its indexes, by
/// transactions that are not logged. No other transaction uses the table. Returns whether all has
/// been deleted; what has not stays in memory.
fn empty<P: Protocol>(session: &mut Session<P>, core: &TableCore) -> bool {
    core.log_number.clear();
    core.lift_restrictions();
    session.acknowledge_at(Level::Memory);
    for index in core.indexes.all() {
        // The index stays readable, so that its handles are refused because of the table.
        [Stage::Enforced, Stage::Kept]
            .into_iter()
            .for_each(|stage| core.indexes.set(index, stage, false));
    }
    let mut entries = core.indexes.all().map(|index| &*index.entries).chain([core]);
    entries.all(|table| delete_all(session, table).is_ok())
}

fn delete_all<P: Protocol>(session: &mut Session<P>, table: &TableCore) -> Result<(), Abort> {
    let key_words = table.layout.key_words();
    let keys = session.linked_keys(table);
    keys.chunks(ROWS_AT_ONCE * key_words).try_for_each(|keys| {
        session.run_body(&mut |tx| {
            keys.chunks(key_words).try_for_each(|key| {
                let state = &mut *tx.state.borrow_mut();
                // The table has no owner, so a lookup would be refused.
                state.enter(tx.engine)?;
                let Found::Record(record) = table.index.find(key) else { return Ok(()) };
                match state.delete_row(tx.engine, table, record) {
                    Err(Abort::NotFound) => Ok(()),
                    deleted => deleted,
                }
            })
        })
    })
}
