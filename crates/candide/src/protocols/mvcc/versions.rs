//! The older versions of units under multi-version concurrency control: undo records, and the
//! snapshots that see the versions in them.

#![forbid(unsafe_code)]

use super::clock::Clock;
use super::collect;
use super::parts::{Attempt, Mvcc, SessionVersions, block_size};
use super::undo_queue::UndoQueue;
use crate::engine::{Backlog, Context, Due, Replaced, Replicable, TableCore, Versioned, Versions};
use crate::epoch::{Epoch, Epochs, Moment};
use crate::error::Abort;
use crate::record::undo_record::{SHORT_WORDS, UNDO_WORDS};
use crate::record::{CellAt, Tid};
use crate::sync::Ordering;
use std::sync::Arc;

impl Versioned for Mvcc {}

impl Replicable for Mvcc {}

impl Versions<Mvcc> for Mvcc {
    const WORDS: usize = UNDO_WORDS;
    const SHORT_WORDS: usize = SHORT_WORDS;
    const KEEPS_DELETED_INDEX: bool = true;

    #[inline]
    fn is_older(attempt: &Attempt, at: CellAt) -> bool {
        Tid(at.cell_word(0).load(Ordering::Acquire)).ts() > attempt.time // E3
    }

    #[inline]
    fn chain_length(clock: &Clock, _attempt: &Attempt, at: CellAt) -> Option<usize> {
        let is_there = !Tid(at.cell_word(0).load(Ordering::Acquire)).has(Tid::ABSENT); // E3
        is_there.then(|| clock.count_versions(at))
    }

    #[inline]
    fn make_room(
        context: &mut Context<'_, Mvcc>,
        attempt: &Attempt,
        table: &TableCore,
    ) -> Result<(), Abort> {
        attempt.room.offer(context, table, block_size)
    }

    #[inline]
    fn register_snapshot(clock: &Clock, attempt: &Attempt, since: Moment) -> Option<u64> {
        clock.snapshots.keep(attempt.time, since);
        Some(attempt.time)
    }

    #[inline]
    fn unregister_snapshot(clock: &Clock, time: u64, since: Moment) {
        clock.snapshots.close(time, since);
    }

    #[inline]
    fn oldest_snapshot(clock: &Clock) -> Option<(u64, Moment)> {
        clock.snapshots.oldest()
    }

    #[inline]
    fn detach_for_snapshots(
        _context: &mut Context<'_, Mvcc>,
        due: &Due,
        _table: &TableCore,
        units: &[CellAt],
    ) -> bool {
        collect::detach_for_snapshots(due, units)
    }

    #[inline]
    fn open_snapshot(clock: &Clock, since: Moment) -> u64 {
        clock.snapshots.open(since, || clock.now())
    }

    fn open_again(clock: &Clock, ts: u64, since: Moment) {
        clock.snapshots.keep(ts, since);
    }

    #[inline]
    fn close_snapshot(clock: &Clock, ts: u64, since: Moment) {
        clock.snapshots.close(ts, since);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn leaves_some(session: &SessionVersions) -> bool {
        !session.undo_entries.is_empty()
    }

    fn leave_values(session: &mut SessionVersions, replaced: &mut Vec<Replaced>) {
        debug_assert!(
            replaced.is_empty() || !session.undo_entries.is_empty(),
            "MV9: a commit that replaces a value leaves an undo record of its unit"
        );
        session.replaced.append(replaced);
    }

    #[inline]
    fn leave_behind(
        session: &mut SessionVersions,
        epochs: &Epochs,
        backlog: &mut UndoQueue,
        _queued: &mut dyn FnMut() -> (Epoch, u64),
    ) -> usize {
        let count = session.undo_entries.len();
        if count > 0 {
            let epoch = epochs.stamp();
            if !session.replaced.is_empty() {
                backlog.values.extend(epoch, &mut session.replaced);
            }
            backlog.extend(epoch, &mut session.undo_entries);
        }
        count
    }

    #[inline]
    fn has_to_collect(backlog: &UndoQueue, horizon: Epoch) -> bool {
        collect::is_due(backlog, horizon) || !backlog.parked.is_empty()
    }

    #[inline]
    fn collect(
        context: &mut Context<'_, Mvcc>,
        backlog: &mut UndoQueue,
        tables: &[Arc<TableCore>],
        horizon: Epoch,
        budget: usize,
    ) {
        collect::collect_undos(context, backlog, tables, horizon, budget);
        backlog.parked.release(&context.versions.snapshots);
    }

    #[inline]
    fn begin_walk(context: &mut Context<'_, Mvcc>) {
        if !context.versions.snapshots.is_empty() {
            // The snapshots have to be listed after the session was pinned.
            collect::begin_collecting(context, 0);
        }
    }

    #[inline]
    fn end_walk(context: &mut Context<'_, Mvcc>) {
        collect::end_walk(context);
    }
}
