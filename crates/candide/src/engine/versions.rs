//! The additional functions of a protocol that keeps several versions of each unit.

#![forbid(unsafe_code)]

use super::absence::Absence;
use super::context::Context;
use super::garbage::{Due, Retired};
use super::parts::{Backlog, Parts};
use super::snapshot_outcome::SnapshotOutcome;
use super::table_core::TableCore;
use super::values::Replaced;
use crate::epoch::{Epoch, Epochs, Moment};
use crate::error::Abort;
use crate::record::{CellAt, RecordAt};
use crate::sync::{Point, pass};
use std::sync::Arc;

/// Old versions of units: the attempts and snapshots that see them, and their collection.
///
/// A protocol with one version of each unit uses [`NoVersions`].
pub trait Versions<P: Parts> {
    /// The number of words of a version before its payload; zero if each unit has only one version.
    #[doc(hidden)]
    const WORDS: usize = 0;
    /// The number of words of the block of a short version, which holds only a few words of a unit;
    /// zero if all versions have blocks of the same size.
    #[doc(hidden)]
    const SHORT_WORDS: usize = 0;
    /// The number of words in a version's block after its payload.
    #[doc(hidden)]
    const SPARE_WORDS: usize = 0;
    /// Whether records that only snapshots see are moved to an index of deleted records
    /// ([`SnapshotOutcome::MoveToDeletedIndex`]).
    #[doc(hidden)]
    const KEEPS_DELETED_INDEX: bool = false;

    /// Returns whether the newest version of a unit is later than the time at which the attempt
    /// reads. Only called if there is an index of deleted records.
    #[doc(hidden)]
    fn is_older(_attempt: &P::Attempt, _at: CellAt) -> bool {
        unreachable!("there is no index of deleted records")
    }

    /// Returns the number of versions in the chain of a unit, including versions of running
    /// commits; `None` if the row does not exist. Observes nothing and does not wait. The attempt
    /// is not running. Only called if the protocol has versions.
    #[doc(hidden)]
    fn chain_length(_clock: &P::Clock, _attempt: &P::Attempt, _at: CellAt) -> Option<usize> {
        unreachable!("there are no versions")
    }

    /// Reserves room for a record of a table that is about to be written as a whole. Staging these
    /// writes then cannot be refused.
    ///
    /// # Errors
    /// [`Abort::MemoryLimit`].
    #[doc(hidden)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn make_room(
        _context: &mut Context<'_, P>,
        _attempt: &P::Attempt,
        _table: &TableCore,
    ) -> Result<(), Abort> {
        Ok(())
    }

    /// Opens a snapshot of the current state. `since` is the current moment, which the caller has
    /// read. Returns the timestamp of the snapshot.
    #[doc(hidden)]
    fn open_snapshot(_clock: &P::Clock, _since: Moment) -> u64 {
        unreachable!("there are no versions")
    }

    /// Opens another snapshot at the timestamp `ts` of an open one, which stays open meanwhile.
    #[doc(hidden)]
    fn open_again(_clock: &P::Clock, _ts: u64, _since: Moment) {
        unreachable!("no database under the protocol follows another one")
    }

    /// Closes the snapshot with the timestamp `ts`, which was opened at the moment `since`.
    #[doc(hidden)]
    fn close_snapshot(_clock: &P::Clock, _ts: u64, _since: Moment) {
        unreachable!("there are no versions")
    }

    /// Registers the view of a running read-only attempt like a snapshot opened at the moment
    /// `since`. Returns the timestamp of the view; `None` if the protocol has no versions.
    #[doc(hidden)]
    fn register_snapshot(_clock: &P::Clock, _attempt: &P::Attempt, _since: Moment) -> Option<u64> {
        None
    }

    /// Unregisters a view registered by [`Versions::register_snapshot`].
    #[doc(hidden)]
    fn unregister_snapshot(_clock: &P::Clock, _ts: u64, _since: Moment) {}

    /// Returns the timestamp of the oldest open snapshot and the moment at which it was opened;
    /// `None` if none is open.
    #[doc(hidden)]
    fn oldest_snapshot(_clock: &P::Clock) -> Option<(u64, Moment)> {
        None
    }

    /// Returns whether commits have left old versions that the session's garbage must take over.
    #[doc(hidden)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn leaves_some(_session: &P::SessionVersions) -> bool {
        false
    }

    /// Takes over the values outside of records that the attempt, which has ended, has replaced.
    /// The caller retires what is left of them, by default all, like memory that is unlinked.
    #[doc(hidden)]
    fn leave_values(_session: &mut P::SessionVersions, _replaced: &mut Vec<Replaced>) {}

    /// Moves the old versions left by commits to the backlog, and parks the units that wait for a
    /// snapshot to close, with the epoch and the time that `queued` returns. Returns the number of
    /// old versions moved or parked.
    #[doc(hidden)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn leave_behind(
        _session: &mut P::SessionVersions,
        _epochs: &Epochs,
        _backlog: &mut P::Backlog,
        _queued: &mut dyn FnMut() -> (Epoch, u64),
    ) -> usize {
        0
    }

    /// Returns whether a collection has to examine the backlog.
    #[doc(hidden)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn has_to_collect(_backlog: &P::Backlog, _horizon: Epoch) -> bool {
        false
    }

    /// Notes the open snapshots, releases the queue entries that were kept for snapshots that have
    /// closed, and collects the old versions in the backlog that no attempt and no snapshot sees
    /// any more. The session is pinned. `horizon` was read after the session was pinned and before
    /// the snapshots are listed. `budget` is the largest number of entries to examine.
    #[doc(hidden)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn collect(
        _context: &mut Context<'_, P>,
        _backlog: &mut P::Backlog,
        _tables: &[Arc<TableCore>],
        _horizon: Epoch,
        _budget: usize,
    ) {
    }

    /// Begins a walk through version chains by a session that has just been pinned anew.
    #[doc(hidden)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn begin_walk(_context: &mut Context<'_, P>) {}

    /// Ends a walk that [`Versions::begin_walk`] began.
    #[doc(hidden)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn end_walk(_context: &mut Context<'_, P>) {}

    /// Prefetches the words that [`Absence::reap`](super::Absence::reap) will read. The session is
    /// pinned, and the entries belong to the session.
    #[doc(hidden)]
    fn approach(_clock: &P::Clock, due: impl Iterator<Item = CellAt> + Clone) {
        due.for_each(|at| at.prefetch_cell());
    }

    /// Marks a record as dead, unless an insert has locked the record. Returns whether the record
    /// is dead now. Only snapshots see the record, and the record is already in the index of
    /// deleted records.
    #[doc(hidden)]
    fn detach_for_snapshots(
        _context: &mut Context<'_, P>,
        _due: &Due,
        _table: &TableCore,
        _units: &[CellAt],
    ) -> bool {
        unreachable!("there is no index of deleted records")
    }
}

/// Acts on `outcome`, the outcome of examining a queue entry. `due` has the time of this
/// examination. Returns `false` if the entry must be examined again.
pub(crate) fn settle<P: Absence, V: Versions<P> + ?Sized>(
    context: &mut Context<'_, P>,
    backlog: &mut P::Backlog,
    due: &Due,
    (table, units): (&TableCore, &[CellAt]),
    outcome: SnapshotOutcome,
) -> bool {
    match outcome {
        SnapshotOutcome::Expired => {
            leave_deleted_index(context, due.at.record(), table);
            context
                .local
                .retired
                .push(Retired::Record { table: table.number, record: due.at.record() });
        }
        SnapshotOutcome::MoveToDeletedIndex(_)
            if V::KEEPS_DELETED_INDEX
                && !move_to_deleted_index::<P, V>(context, due, table, units) =>
        {
            return false;
        }
        SnapshotOutcome::Kept(snapshot) | SnapshotOutcome::MoveToDeletedIndex(snapshot) => {
            let queued = (context.engine.epochs.now(), due.time);
            backlog.park(Some(snapshot), due.at, queued);
        }
    }
    true
}

/// Moves a record from the table's index to the table's index of deleted records, if that index
/// exists and has room and the record can be marked as dead. Returns `false` only if the record
/// cannot be marked now, so that a later call may succeed.
fn move_to_deleted_index<P: Absence, V: Versions<P> + ?Sized>(
    context: &mut Context<'_, P>,
    due: &Due,
    table: &TableCore,
    units: &[CellAt],
) -> bool {
    let Some(deleted_index) = table.deleted_index() else { return true };
    let record = due.at.record();
    let key = record.key_words(table.layout.key_words());
    if !deleted_index.enter(record, key.as_slice(), &mut context.local.caches) {
        return true;
    }
    pass(Point::MovingToDeletedIndex);
    if !V::detach_for_snapshots(context, due, table, units) {
        leave_deleted_index(context, record, table);
        return false;
    }
    let clock = context.clock;
    context.remove_from_index(record, table, |node| {
        units.iter().for_each(|&unit| P::merge_into_node(clock, node, unit))
    });
    true
}

/// Removes a record from the index of deleted records.
fn leave_deleted_index<P: Parts>(
    context: &mut Context<'_, P>,
    record: RecordAt,
    table: &TableCore,
) {
    let deleted_index = table.deleted_index().expect("the record has been put there");
    let key = record.key_words(table.layout.key_words());
    deleted_index.leave(record, key.as_slice(), &mut context.local.retired_parts);
    context.local.retire_parts(table.number);
}

/// The choice of a protocol that keeps one version of each unit.
#[derive(Debug)]
pub struct NoVersions;

impl<P: Parts> Versions<P> for NoVersions {}
