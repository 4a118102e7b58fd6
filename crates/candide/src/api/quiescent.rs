//! Raw iteration: the rows of a table as records, while no transaction runs.

#![forbid(unsafe_code)]

use crate::engine::{InPlace, Protocol, TableCore};
use crate::error::{Abort, Error};
use crate::log::{Awaited, Level};
use crate::record::RecordAt;
use crate::schema::{Unit, Words};
use crate::shared::{CollectorGuard, Inner};
use crate::sync::{is_in_step, thread};
use crate::txn::TxnRunner;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The number of records that are prefetched before the first of them is read: the number of cache
/// misses that a core can overlap.
const PREFETCHED: usize = 16;
/// The largest number of words of a record that are prefetched.
const PREFETCHED_WORDS_MAX: usize = 32;

/// Calls `each` with every row of a table, in no particular order: first the words of its key, as
/// the key's type encodes them, then the words of its columns. Returns the number of rows.
///
/// In a database with a log, everything that has been committed first reaches the level for which
/// transactions wait.
///
/// # Errors
/// [`Error::NotQuiescent`] if a transaction is running, [`Error::Transaction`] with
/// [`Abort::LogFailed`], with [`Abort::TableDropped`], and with [`Abort::Nested`] inside a step.
pub(crate) fn for_each_row<P: Protocol>(
    inner: &Inner<P>,
    table: &TableCore,
    each: &mut dyn FnMut(&[u64], &[u64]),
) -> Result<usize, Error> {
    let mut visitor = Visitor::new(inner)?;
    // The visitor is pinned, so the rows of a table in use stay until it ends.
    table.check_in_use()?;
    acknowledge(inner)?;
    let core = visitor.core.as_mut().expect("taken only on drop");
    let (engine, state) = (&inner.engine, core.state.get_mut());
    let units = table.layout.units();
    let mut image = vec![0; Unit::ROW.image_range(table.groups).1];
    let (mut count, mut failed) = (0, false);
    let mut visit = |record: RecordAt| {
        // Each record is read in an attempt of its own, which ends before `each` is called with the
        // record. So the read set stays small, and nothing stays locked.
        let is_there = P::InPlace::enter(&engine.clock, None).and_then(|()| {
            state.begin(engine);
            let copy = &mut |unit: Unit, from: Words<'_>| copy_unit(table, unit, from, &mut image);
            // Deferred updaters may run in this read. If one panics, the attempt has to end
            // nevertheless.
            let read = || state.read_units(engine, table, (record, units), copy);
            let is_there = catch_unwind(AssertUnwindSafe(read));
            state.abort(engine);
            P::InPlace::leave(&engine.clock);
            is_there.unwrap_or_else(|panic| resume_unwind(panic))
        });
        match is_there {
            Ok(true) => {
                count += 1;
                each(table.layout.unpacked_key(record).as_slice(), &image);
            }
            Ok(false) => {}
            Err(_) => failed = true,
        }
    };
    let prefetched_words = table.layout.total_words().min(PREFETCHED_WORDS_MAX);
    let mut next = Vec::with_capacity(PREFETCHED);
    table.index.for_each(&mut |record| {
        record.block().prefetch(0, prefetched_words);
        next.push(record);
        if next.len() == PREFETCHED {
            next.drain(..).for_each(&mut visit);
        }
    });
    next.into_iter().for_each(visit);
    if failed { Err(Error::NotQuiescent) } else { Ok(count) }
}

/// Waits until all that has been committed has reached the level for which transactions wait.
fn acknowledge<P: Protocol>(inner: &Inner<P>) -> Result<(), Error> {
    let engine = &inner.engine;
    match engine.log.get().map(|log| (log, log.acknowledge)) {
        None | Some((_, Level::Memory)) => Ok(()),
        Some((log, level)) => {
            let stamp = P::last_stamp(&engine.clock, &engine.epochs);
            // What has been read is not in a commit of its own.
            let awaited = Awaited { stamp, append: log.progress.next_append() };
            log.progress.wait(awaited, level, None).map_err(Error::Transaction)
        }
    }
}

/// Copies the words of a unit to their places among all words of the row.
pub(super) fn copy_unit(table: &TableCore, unit: Unit, from: Words<'_>, row: &mut [u64]) {
    let (start, count) = unit.image_range(table.groups);
    from.copy(0, count, |word, value| row[start + word] = value);
}

/// A pinned session for raw iteration, during which the advancer collects no garbage of the
/// database.
struct Visitor<'a, P: Protocol> {
    inner: &'a Inner<P>,
    core: Option<TxnRunner<P>>,
    _collector: CollectorGuard<'a, P>,
}

impl<'a, P: Protocol> Visitor<'a, P> {
    fn new(inner: &'a Inner<P>) -> Result<Visitor<'a, P>, Error> {
        // The pin would hide the step from transactions that `each` begins.
        if is_in_step() {
            return Err(Error::Transaction(Abort::Nested));
        }
        if inner.engine.following().is_some() {
            return Err(Error::Follows { call: "a raw iteration" });
        }
        // Takes the lock only if it is free: an iteration further up the same stack may hold it. An
        // iteration further up is pinned, so the check below fails.
        let collector = loop {
            let collector = inner.try_stop_collector();
            if !inner.is_quiescent() {
                return Err(Error::NotQuiescent);
            }
            match collector {
                Some(collector) => break collector,
                None => thread::yield_now(),
            }
        };
        let mut core = inner.join();
        core.state.get_mut().worker.local.is_raw = true;
        inner.engine.epochs.pin(&core.public.slot);
        Ok(Visitor { inner, core: Some(core), _collector: collector })
    }
}

impl<P: Protocol> Drop for Visitor<'_, P> {
    fn drop(&mut self) {
        if let Some(mut core) = self.core.take() {
            self.inner.engine.epochs.unpin(&core.public.slot);
            self.inner.leave(&mut core);
        }
    }
}
