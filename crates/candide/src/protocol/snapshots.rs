//! What looks back: the open snapshots of a database, as protocols with versions keep them.

#![forbid(unsafe_code)]

use super::{Context, Protocol};
use crate::access::WriteSet;
use crate::epoch::Epoch;
use crate::record::{CellAt, Tid};
use crate::sync::{Mutant, Mutex, lock, mutant};

/// The timestamps of open snapshots, in rising order, with the epochs in which they were opened.
#[derive(Debug, Default)]
pub(super) struct Snapshots(Mutex<Vec<(u64, Epoch)>>);

impl Snapshots {
    /// The timestamps in falling order. One that is opened later is not below any timestamp that this thread knows of, or it is of an attempt
    /// that has been running since.
    pub(super) fn copy(&self, into: &mut Vec<u64>) {
        into.clear();
        into.extend(lock(&self.0).iter().rev().map(|&(ts, _)| ts));
    }

    /// Opens one of now, which is what the clock says, in an epoch that the caller has read; gives its timestamp.
    pub(super) fn open(&self, epoch: Epoch, now: impl FnOnce() -> u64) -> u64 {
        let mut snapshots = lock(&self.0);
        let now = now();
        // It is not below any of them: each was the clock's under the same lock.
        snapshots.push((now, epoch));
        now
    }

    /// Adds what a running attempt sees, which began at that time and in that epoch, and is pinned since: nothing of it has been taken
    /// away. It may be older than others that are open.
    pub(super) fn keep(&self, time: u64, epoch: Epoch) {
        let mut snapshots = lock(&self.0);
        let place = snapshots.partition_point(|&(open, _)| open <= time);
        if !mutant(Mutant::KeptUnlisted) {
            snapshots.insert(place, (time, epoch));
        }
    }

    /// Closes one.
    pub(super) fn close(&self, ts: u64, epoch: Epoch) {
        let mut snapshots = lock(&self.0);
        let place = snapshots.iter().position(|&open| open == (ts, epoch));
        if !mutant(Mutant::KeptUnlisted) || place.is_some() {
            snapshots.remove(place.expect("a snapshot is closed once"));
        }
    }

    /// The epoch in which the oldest was opened.
    pub(super) fn oldest(&self) -> Option<Epoch> {
        lock(&self.0).iter().map(|&(_, epoch)| epoch).min()
    }
}

impl<P: Protocol> Context<'_, P> {
    /// As [`Context::reserve_for`], for [`Context::queue_or_park`].
    #[inline(always)]
    pub(super) fn reserve_to_park(&mut self, writes: &WriteSet) {
        if !self.local.snapshots.is_empty() {
            self.local.parked.reserve(writes.items().len());
        }
    }

    /// Queues a unit that has got another version, whose cell says `word`; or parks it at once, if what it replaces is the only one,
    /// of a timestamp that `only` gives, and an open snapshot sees that. Gives the flag that the cell is to have.
    #[inline(always)]
    pub(super) fn queue_or_park(&mut self, at: CellAt, word: Tid, only: impl FnOnce() -> Option<u64>) -> u64 {
        // That it was open when this session collected last is enough: what is parked for one that has closed is looked at.
        if let Some(&snapshot) = self.local.snapshots.first()
            && !word.has(Tid::PARKED)
            && only().is_some_and(|only| only <= snapshot)
            && !mutant(Mutant::NeverParked)
        {
            self.local.parked.push((snapshot, at));
            return Tid::PARKED;
        }
        self.local.burials.push(at);
        Tid::QUEUED
    }
}
