//! The clock of versions: one counter, and the snapshots that look back from it.

#![forbid(unsafe_code)]

use crate::epoch::Epoch;
use crate::sync::{AtomicU64, Mutex, Ordering, full_fence, lock};
use crossbeam_utils::CachePadded;

/// The last timestamp drawn, and what looks back.
#[derive(Debug, Default)]
pub struct Clock {
    last: CachePadded<AtomicU64>,
    /// The timestamps of open snapshots, in rising order, with the epochs in which they were opened.
    snapshots: Mutex<Vec<(u64, Epoch)>>,
}

impl Clock {
    /// The last timestamp drawn: whoever has drawn it, or an earlier one, had locked all it writes before.
    #[inline(always)]
    pub(super) fn now(&self) -> u64 {
        self.last.load(Ordering::Acquire) // E15
    }

    /// The next timestamp, for a commit that has locked all it writes.
    #[inline(always)]
    pub(super) fn draw(&self) -> u64 {
        // Both ways: what whoever drew before us had locked is ours to see; what we have locked, theirs who draw later (E15).
        self.last.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// The last timestamp drawn. Whoever pins after an epoch that is read after this begins no earlier.
    pub(super) fn before_stamp(&self) -> u64 {
        let now = self.now();
        full_fence(); // E10
        now
    }

    /// The timestamps of open snapshots, in falling order. One that is opened later is not below any timestamp that this thread
    /// knows of.
    pub(super) fn copy_snapshots(&self, into: &mut Vec<u64>) {
        into.clear();
        into.extend(lock(&self.snapshots).iter().rev().map(|&(ts, _)| ts));
    }

    /// Opens a snapshot of now, in an epoch that the caller has read; gives its timestamp.
    pub(super) fn open_snapshot(&self, epoch: Epoch) -> u64 {
        let mut snapshots = lock(&self.snapshots);
        let now = self.now();
        // It is not below any of them: each was the clock's under the same lock.
        snapshots.push((now, epoch));
        now
    }

    /// Closes a snapshot.
    pub(super) fn close_snapshot(&self, ts: u64, epoch: Epoch) {
        let mut snapshots = lock(&self.snapshots);
        let place = snapshots.iter().position(|&open| open == (ts, epoch)).expect("a snapshot is closed once");
        snapshots.remove(place);
    }

    /// The epoch in which the oldest snapshot was opened.
    pub(super) fn oldest_snapshot(&self) -> Option<Epoch> {
        lock(&self.snapshots).iter().map(|&(_, epoch)| epoch).min()
    }
}
