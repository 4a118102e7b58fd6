//! The additional functions of a protocol that keeps several versions of a unit.

#![forbid(unsafe_code)]

use super::context::Context;
use super::garbage::Due;
use super::parts::Parts;
use super::table_core::TableCore;
use crate::epoch::{Epoch, Epochs, Moment};
use crate::error::Abort;
use crate::record::CellAt;
use std::sync::Arc;

/// Old versions of units: the attempts and snapshots that see them, and their collection.
///
/// A protocol with one version of each unit has [`NoVersions`].
pub trait Versions<P: Parts> {
    /// The number of words of a version before its payload; zero if each unit has only one version.
    #[doc(hidden)]
    const WORDS: usize = 0;
    /// Words of a block for a version that is said by a few words; zero if all versions have as
    /// many.
    #[doc(hidden)]
    const SHORT_WORDS: usize = 0;
    /// Words of a version's block behind its payload.
    #[doc(hidden)]
    const SPARE_WORDS: usize = 0;
    /// Whether records that only snapshots see move to an index of deleted records
    /// ([`GcOutcome::MoveToDeletedIndex`](super::GcOutcome::MoveToDeletedIndex)).
    #[doc(hidden)]
    const KEEPS_DELETED_INDEX: bool = false;

    /// Returns whether a unit's newest version is later than the version that the attempt sees.
    /// Called only if the table has an index of deleted records.
    #[doc(hidden)]
    fn is_older(_attempt: &P::Attempt, _at: CellAt) -> bool {
        unreachable!("there is no index of deleted records")
    }

    /// Returns the number of versions in the chain of a unit, including those of commits in
    /// progress; `None` if there is no row. Observes nothing and does not wait. Called outside
    /// attempts, and only under protocols with versions.
    #[doc(hidden)]
    fn chain_length(_clock: &P::Clock, _attempt: &P::Attempt, _at: CellAt) -> Option<usize> {
        unreachable!("there are no versions")
    }

    /// Makes room for the versions of a record that is about to be written as a whole, so that
    /// staging the write cannot fail.
    ///
    /// # Errors
    /// [`Abort::MemoryLimit`].
    #[doc(hidden)]
    #[inline(always)]
    fn make_room(
        _context: &mut Context<'_, P>,
        _attempt: &P::Attempt,
        _table: &TableCore,
    ) -> Result<(), Abort> {
        Ok(())
    }

    /// Opens a snapshot of now, which the caller has taken for this moment. Returns its timestamp.
    #[doc(hidden)]
    fn open_snapshot(_clock: &P::Clock, _since: Moment) -> u64 {
        unreachable!("there are no versions")
    }

    /// Closes a snapshot.
    #[doc(hidden)]
    fn close_snapshot(_clock: &P::Clock, _ts: u64, _since: Moment) {
        unreachable!("there are no versions")
    }

    /// Registers the time of a running read-only attempt, as if a snapshot had been opened at that
    /// time. Returns its timestamp; `None` under protocols without versions.
    #[doc(hidden)]
    fn register_snapshot(_clock: &P::Clock, _attempt: &P::Attempt, _since: Moment) -> Option<u64> {
        None
    }

    /// Unregisters what [`Versions::register_snapshot`] has registered.
    #[doc(hidden)]
    fn unregister_snapshot(_clock: &P::Clock, _ts: u64, _since: Moment) {}

    /// Returns the timestamp of the oldest open snapshot, and the moment at which it was made.
    #[doc(hidden)]
    fn oldest_snapshot(_clock: &P::Clock) -> Option<(u64, Moment)> {
        None
    }

    /// Returns whether commits have left versions behind that the session's garbage takes over.
    #[doc(hidden)]
    #[inline(always)]
    fn leaves_some(_session: &P::SessionVersions) -> bool {
        false
    }

    /// Moves what commits have left behind to the backlog, and calls `park` with each unit that
    /// waits for a snapshot to close, after that snapshot's timestamp. Returns how many there were.
    #[doc(hidden)]
    #[inline(always)]
    fn leave_behind(
        _session: &mut P::SessionVersions,
        _epochs: &Epochs,
        _backlog: &mut P::Backlog,
        _park: &mut dyn FnMut(u64, CellAt),
    ) -> usize {
        0
    }

    /// Returns whether a collection has to examine the backlog.
    #[doc(hidden)]
    #[inline(always)]
    fn has_to_collect(_backlog: &P::Backlog, _horizon: Epoch) -> bool {
        false
    }

    /// Notes the open snapshots, and collects from the backlog what no attempt and no snapshot sees
    /// any more. The session is pinned; `horizon` was read after the pin and before the snapshots
    /// are listed; at most `budget` entries are examined.
    #[doc(hidden)]
    #[inline(always)]
    fn collect(
        _context: &mut Context<'_, P>,
        _backlog: &mut P::Backlog,
        _tables: &[Arc<TableCore>],
        _horizon: Epoch,
        _budget: usize,
    ) {
    }

    /// Returns the timestamps of the snapshots that were open when the session last began to
    /// collect, in falling order.
    #[doc(hidden)]
    #[inline(always)]
    fn open_snapshots(_session: &P::SessionVersions) -> &[u64] {
        &[]
    }

    /// Begins a walk through chains, of a session that has just been pinned anew.
    #[doc(hidden)]
    #[inline(always)]
    fn begin_walk(_context: &mut Context<'_, P>) {}

    /// Ends the walk.
    #[doc(hidden)]
    #[inline(always)]
    fn end_walk(_context: &mut Context<'_, P>) {}

    /// Prefetches the memory that [`Absence::reap`](super::Absence::reap) will read. The session is
    /// pinned, and the entries are in its own queue.
    #[doc(hidden)]
    fn approach(_clock: &P::Clock, due: impl Iterator<Item = CellAt> + Clone) {
        due.for_each(|at| at.prefetch_cell());
    }

    /// Makes a record dead that only snapshots see, and that is in the index of deleted records by
    /// now, unless an insert has locked it since. Returns whether it did.
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

/// One version of each unit.
#[derive(Debug)]
pub struct NoVersions;

impl<P: Parts> Versions<P> for NoVersions {}

/// Returns whether a snapshot is among the open ones, which are in falling order.
pub(crate) fn is_open(snapshot: u64, open: &[u64]) -> bool {
    open.binary_search_by(|open| snapshot.cmp(open)).is_ok()
}
