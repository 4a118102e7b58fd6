//! Creating and dropping secondary indexes while transactions run, compiled once for all types of
//! rows and keys.

#![forbid(unsafe_code)]

use super::index_entry::primary_key;
use super::index_turn::admit_session;
use super::session::Session;
use crate::catalog::{forget_index, note_index};
use crate::engine::{IndexCore, IndexPlan, Indexes, Protocol, Stage, TableCore};
use crate::epoch::Epochs;
use crate::error::{Abort, Error};
use crate::handle::Handle;
use crate::index::Found;
use crate::record::RecordAt;
use crate::schema::Unit;
use crate::shared::Inner;
use crate::sync::{Instant, Ordering, lock};
use crate::txn::{State, Tx};
use candide_log::Store;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The number of rows entered into a new index in one transaction: enough to make a transaction
/// worth its cost, and few enough not to delay other transactions.
const ROWS_AT_ONCE: usize = 64;

/// An index that is being built. If the build ends early, by an error or by a panic of a row type's
/// code, transactions stop maintaining the index. But first every transaction must end that the
/// index may have refused: a transaction that removes the reason of a refusal has to conflict with
/// the refused transaction.
struct Unfinished<'a> {
    indexes: &'a Indexes,
    index: &'a IndexCore,
    epochs: &'a Epochs,
    finished: bool,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        let may_have_refused = self.indexes.is_at(self.index, Stage::Enforced);
        self.indexes.set(self.index, Stage::Enforced, false);
        if !may_have_refused || self.epochs.wait_for_others().is_ok() {
            self.indexes.set(self.index, Stage::Kept, false);
        }
    }
}

/// The call by which an index is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The row type of a table from the files declares the index. An index like it may be there
    /// already.
    ByRowType,
    /// [`Table::create_index`](super::table::Table::create_index). The files name the index.
    ByProgram,
    /// The same; an index like it may be there already.
    IfMissing,
}

/// Makes an index of a table; returns the index's number.
pub(crate) fn create<P: Protocol>(
    inner: &Handle<P>,
    table: &TableCore,
    plan: IndexPlan,
    asked: Asked,
) -> Result<usize, Error> {
    let begun = Instant::now();
    inner.engine.epochs.refuse_inside()?;
    let work = Work { inner, table };
    let mut session = Session::new(inner)?;
    admit_session(inner, &mut session);
    let _one_at_a_time = lock(&inner.index_changes);
    table.check_in_use()?;
    let is_enough = asked != Asked::ByProgram;
    if let Some(index) = table.indexes.readable_like(&plan).filter(|_| is_enough) {
        return Ok(index.number);
    }
    let kind = (plan.unique, plan.ordered);
    let index = inner.catalog.add_index(&inner.engine.common, table, plan)?;
    let files = files(inner, table).filter(|_| asked != Asked::ByRowType);
    let is_noted = match files {
        Some((store, number)) => note_index(store, number, (&index.name, kind.0, kind.1))?,
        None => false,
    };
    let (indexes, epochs) = (&table.indexes, &*inner.engine.epochs);
    let mut unfinished = Unfinished { indexes, index, epochs, finished: false };
    // The user's code makes the keys, and may panic.
    let built = catch_unwind(AssertUnwindSafe(|| work.build(&mut session, index)));
    let is_built = matches!(built, Ok(Ok(())));
    let may_have_refused = indexes.is_at(index, Stage::Enforced);
    // If transactions must continue maintaining the index, the index stays.
    let stays = |session: &mut Session<P>| {
        indexes.set(index, Stage::Enforced, false);
        epochs.wait_for_others().and_then(|()| work.part_from(session, index)).is_err()
    };
    unfinished.finished = is_built || may_have_refused && stays(&mut session);
    drop(unfinished);
    if !is_built && !indexes.is_at(index, Stage::Kept) {
        work.forget_entries(&mut session, index);
        if let Some((store, number)) = files.filter(|_| is_noted) {
            // What stays there causes a warning.
            let _ = forget_index(store, number, &index.name);
        }
    }
    match built {
        Ok(built) => built.map(|()| index.number).map_err(|error| waited_since(begun, error)),
        Err(panic) => resume_unwind(panic),
    }
}

/// Returns the files of a table that is logged, and its number there.
fn files<'a, P: Protocol>(inner: &'a Handle<P>, table: &TableCore) -> Option<(&'a Store, u16)> {
    Some((&**inner.store()?, table.log_number.get()?))
}

/// Drops an index of a table, for [`Table::drop_index`](super::table::Table::drop_index). An index
/// in a slot for which `stays` returns true cannot be dropped.
pub(crate) fn drop_made<P: Protocol>(
    inner: &Handle<P>,
    table: &TableCore,
    name: &str,
    stays: &dyn Fn(usize) -> bool,
) -> Result<(), Error> {
    let begun = Instant::now();
    inner.engine.epochs.refuse_inside()?;
    let work = Work { inner, table };
    let mut session = Session::new(inner)?;
    admit_session(inner, &mut session);
    let _one_at_a_time = lock(&inner.index_changes);
    table.check_in_use()?;
    let indexes = &table.indexes;
    let wait_for_others =
        || inner.engine.epochs.wait_for_others().map_err(|error| waited_since(begun, error));
    let made = |index: &&IndexCore| !stays(index.number);
    let named = indexes.kept().find(|index| *index.name == *name);
    let forget = || match files(inner, table) {
        Some((store, number)) => forget_index(store, number, name),
        None => Ok(false),
    };
    let Some(index) = named.filter(made) else {
        // The files may name one that the program does not make any more.
        if named.is_none() && forget()? {
            return Ok(());
        }
        return Err(Error::NoIndex { table: table.name.to_string(), index: name.into() });
    };
    indexes.set(index, Stage::Readable, false);
    // A transaction that has read entries of the index must still conflict with writers that change
    // these entries.
    wait_for_others()?;
    indexes.set(index, Stage::Enforced, false);
    // A transaction that the index has refused must likewise conflict with a transaction that
    // removes the reason.
    wait_for_others()?;
    work.part_from(&mut session, index)?;
    indexes.set(index, Stage::Kept, false);
    work.forget_entries(&mut session, index);
    forget().map(drop)
}

/// Sets, in the error of a wait, the time for which the call has waited in all.
fn waited_since(begun: Instant, error: Error) -> Error {
    match error {
        Error::Busy { .. } => Error::Busy { waited: begun.elapsed() },
        other => other,
    }
}

/// The work on one record.
type Each<'a, P> = dyn Fn(&Tx<'_, P>, &mut State<P>, RecordAt) -> Result<(), Abort> + 'a;

/// The work on the indexes of one table.
struct Work<'a, P: Protocol> {
    inner: &'a Inner<P>,
    table: &'a TableCore,
}

impl<P: Protocol> Work<'_, P> {
    /// Fills a new index and takes it from stage to stage.
    fn build(&self, session: &mut Session<P>, index: &IndexCore) -> Result<(), Error> {
        let core = self.table;
        core.indexes.set(index, Stage::Kept, true);
        self.inner.engine.epochs.wait_for_others()?;
        // Transactions that knew of the index and others that did not may have changed the same
        // rows, so some entries may be wrong.
        self.each_batch(session, index, &index.entries, &|tx, state, entry| {
            let at = index.entries.layout.at(entry, Unit::ROW);
            let mark = state.mark();
            let Some(primary) = primary_key(tx, state, core, index, entry, mark)? else {
                return Ok(());
            };
            let found = state.find(tx.engine, core, primary.as_slice())?;
            let is_right = match found {
                Found::Record(record) => state.has_entry(tx.engine, core, index, record, entry)?,
                Found::Nothing { .. } => false,
            };
            if is_right { Ok(()) } else { state.delete_unit(tx.engine, at) }
        })?;
        if index.unique {
            // Entries are right from now on, and so are refusals because of them.
            index.right_since.store(self.time_of(session, index), Ordering::Relaxed);
            core.indexes.set(index, Stage::Enforced, true);
            self.inner.engine.epochs.wait_for_others()?;
        }
        let too_long = Cell::new(None);
        let entered = self.each_batch(session, index, core, &|tx, state, record| {
            state.enter_record(tx.engine, core, index, record, &too_long)
        });
        entered.map_err(|error| match (error, too_long.take()) {
            (Error::Transaction(Abort::KeyTooLong), Some(too_long)) => Error::KeyTooLong {
                table: core.name.to_string(),
                index: index.name.to_string(),
                length: too_long.length,
                length_max: too_long.length_max,
            },
            (error, _) => error,
        })?;
        index.since.store(self.time_of(session, index), Ordering::Relaxed);
        core.indexes.set(index, Stage::Readable, true);
        Ok(())
    }

    /// Returns the timestamp by which all changes made to an index so far have happened. The
    /// timestamp matters under protocols that keep timestamps in the data. There, a transaction
    /// that changed a row without an entry has observed the missing entry, in a node or in a unit
    /// of the index, and all later transactions find the entry. A transaction that deleted a row,
    /// without knowing of the index, has left its timestamp in the table.
    fn time_of(&self, session: &mut Session<P>, index: &IndexCore) -> u64 {
        let seen = session.seen_until(&index.entries).max(session.seen_until(self.table));
        seen.max(P::begin_ts_bound(&self.inner.engine.clock))
    }

    /// Ensures that transactions that no longer maintain an index serialize after all transactions
    /// that have read the index. The function is for protocols that keep timestamps in the data.
    /// Raises the rts of all rows, and of all nodes (for absent keys), to the highest timestamp at
    /// which the index has been read.
    fn part_from(&self, session: &mut Session<P>, index: &IndexCore) -> Result<(), Error> {
        let (core, time) = (self.table, session.seen_until(&index.entries));
        if time == 0 {
            return Ok(());
        }
        // Nodes first, because a record linked afterwards inherits the rts of its node. If a node
        // was divided meanwhile, the next pass finds its parts.
        while session.see_nodes_until(core, time) {}
        self.each_batch(session, index, core, &|tx, state, record| {
            state.reach(tx.engine, core, time)?;
            state.observe_indexed(tx.engine, core, record)
        })
    }

    /// Tries to remove all entries of an index that transactions no longer maintain.
    fn forget_entries(&self, session: &mut Session<P>, index: &IndexCore) {
        if self.inner.engine.epochs.wait_for_others().is_ok() {
            // Entries that remain are removed when an index of this name is created again.
            let _ = self.each_batch(session, index, &index.entries, &|tx, state, entry| {
                state.delete_unit(tx.engine, index.entries.layout.at(entry, Unit::ROW))
            });
        }
    }

    /// Calls `each` with every record of `table` that was linked when the call began. `table` may
    /// also be the index's table of entries. Each transaction handles a few records.
    fn each_batch(
        &self,
        session: &mut Session<P>,
        index: &IndexCore,
        table: &TableCore,
        each: &Each<'_, P>,
    ) -> Result<(), Error> {
        let key_words = table.layout.key_words();
        let keys = session.linked_keys(table);
        for keys in keys.chunks(ROWS_AT_ONCE * key_words) {
            let batch = session.run_body(&mut |tx| {
                keys.chunks(key_words).try_for_each(|key| {
                    let state = &mut *tx.state.borrow_mut();
                    match state.find(tx.engine, table, key)? {
                        Found::Record(record) => each(tx, state, record),
                        Found::Nothing { .. } => Ok(()),
                    }
                })
            });
            batch.map_err(|abort| match abort {
                Abort::NotUnique => Error::NotUnique {
                    table: self.table.name.to_string(),
                    index: index.name.to_string(),
                },
                Abort::MemoryLimit => self.inner.engine.memory_limit_error(),
                other => Error::Transaction(other),
            })?;
        }
        Ok(())
    }
}
