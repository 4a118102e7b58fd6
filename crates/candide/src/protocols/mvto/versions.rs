//! The older versions of rows under multi-version timestamp ordering, and the snapshots that see
//! these versions.

#![forbid(unsafe_code)]

use super::clock::Clock;
use super::parts::{Attempt, Mvto, SessionVersions};
use crate::engine::{Backlog, BlockSize, Context, TableCore, Versioned, Versions};
use crate::epoch::{Epoch, Epochs, Moment};
use crate::error::Abort;
use crate::protocols::shared::parked::Parked;
use crate::record::CellAt;
use crate::record::version_chain::{self, Version};
use std::sync::Arc;

impl Versioned for Mvto {}

impl Versions<Mvto> for Mvto {
    const WORDS: usize = version_chain::VERSION_WORDS;
    const SPARE_WORDS: usize = version_chain::SPARE_WORDS;

    #[inline]
    fn chain_length(_clock: &Clock, _attempt: &Attempt, at: CellAt) -> Option<usize> {
        let newest = at.newest_linked(at.chain_word())?;
        let standing = newest.and_older().map(Version::stamp).find(|stamp| stamp.is_committed())?;
        (!standing.is_absent()).then(|| newest.and_older().count())
    }

    #[inline]
    fn make_room(
        context: &mut Context<'_, Mvto>,
        attempt: &Attempt,
        table: &TableCore,
    ) -> Result<(), Abort> {
        attempt.room.offer(context, table, |_| BlockSize::Whole)
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
    fn approach(_clock: &Clock, due: impl Iterator<Item = CellAt> + Clone) {
        due.clone().for_each(|at| at.prefetch_cell());
        due.clone().for_each(|at| at.prefetch_newest_linked());
        due.for_each(|at| at.prefetch_second_linked());
    }

    #[inline]
    fn open_snapshot(clock: &Clock, since: Moment) -> u64 {
        clock.open_snapshot(since)
    }

    #[inline]
    fn close_snapshot(clock: &Clock, ts: u64, since: Moment) {
        clock.snapshots.close(ts, since);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn leaves_some(session: &SessionVersions) -> bool {
        !session.parked.is_empty()
    }

    #[inline]
    fn leave_behind(
        session: &mut SessionVersions,
        _epochs: &Epochs,
        backlog: &mut Parked,
        queued: &mut dyn FnMut() -> (Epoch, u64),
    ) -> usize {
        let count = session.parked.len();
        let mut park = |(snapshot, at)| backlog.park(Some(snapshot), at, queued());
        session.parked.drain(..).for_each(&mut park);
        count
    }

    #[inline]
    fn has_to_collect(backlog: &Parked, _horizon: Epoch) -> bool {
        !backlog.is_empty()
    }

    #[inline]
    fn collect(
        context: &mut Context<'_, Mvto>,
        backlog: &mut Parked,
        _tables: &[Arc<TableCore>],
        _horizon: Epoch,
        _budget: usize,
    ) {
        context.clock.snapshots.copy(&mut context.versions.snapshots);
        backlog.release(&context.versions.snapshots);
    }
}
