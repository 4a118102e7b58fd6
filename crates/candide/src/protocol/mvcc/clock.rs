//! The clock of versions: one counter, and the snapshots that look back from it.

#![forbid(unsafe_code)]

use crate::protocol::snapshots::Snapshots;
use crate::sync::{AtomicU64, Ordering, full_fence};
use crossbeam_utils::CachePadded;

/// The last timestamp drawn, and what looks back.
#[derive(Debug, Default)]
pub struct Clock {
    last: CachePadded<AtomicU64>,
    pub(super) snapshots: Snapshots,
}

impl Clock {
    /// The last timestamp drawn: whoever has drawn it, or an earlier one, had locked all it writes
    /// before.
    #[inline(always)]
    pub(super) fn now(&self) -> u64 {
        self.last.load(Ordering::Acquire) // E15
    }

    /// The next timestamp, for a commit that has locked all it writes.
    #[inline(always)]
    pub(super) fn draw(&self) -> u64 {
        // Both ways: what whoever drew before us had locked is ours to see; what we have locked,
        // theirs who draw later (E15).
        self.last.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// The last timestamp drawn. Whoever pins after an epoch that is read after this begins no
    /// earlier.
    pub(super) fn before_stamp(&self) -> u64 {
        let now = self.now();
        full_fence(); // E10
        now
    }
}
