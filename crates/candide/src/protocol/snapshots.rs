//! What looks back: the open snapshots of a database, as protocols with versions keep them.

#![forbid(unsafe_code)]

use crate::epoch::Epoch;
use crate::sync::{Mutex, lock};

/// The timestamps of open snapshots, in rising order, with the epochs in which they were opened.
#[derive(Debug, Default)]
pub(super) struct Snapshots(Mutex<Vec<(u64, Epoch)>>);

impl Snapshots {
    /// The timestamps in falling order. One that is opened later is not below any timestamp that this thread knows of.
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

    /// Closes one.
    pub(super) fn close(&self, ts: u64, epoch: Epoch) {
        let mut snapshots = lock(&self.0);
        let place = snapshots.iter().position(|&open| open == (ts, epoch)).expect("a snapshot is closed once");
        snapshots.remove(place);
    }

    /// The epoch in which the oldest was opened.
    pub(super) fn oldest(&self) -> Option<Epoch> {
        lock(&self.0).iter().map(|&(_, epoch)| epoch).min()
    }
}
