//! The clock of multi-version concurrency control: a counter of timestamps, and the list of open
//! snapshots.

#![forbid(unsafe_code)]

use crate::protocols::shared::snapshot_list::Snapshots;
use crate::record::{CellAt, Tid};
use crate::sync::{AtomicU64, Ordering, full_fence};
use crossbeam_utils::CachePadded;

/// The last timestamp drawn, and the open snapshots.
#[derive(Debug, Default)]
pub struct Clock {
    last: CachePadded<AtomicU64>,
    pub(super) snapshots: Snapshots,
}

impl Clock {
    /// Returns the last timestamp drawn. The commit with this timestamp, and all commits with
    /// earlier ones, locked their write sets before they drew.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn now(&self) -> u64 {
        self.last.load(Ordering::Acquire) // E15
    }

    /// Draws the next timestamp, for a commit that has locked its write set.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn draw(&self) -> u64 {
        // Acquire: sees the locks of commits that drew before. Release: publishes this commit's
        // locks to later draws (E15).
        self.last.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Returns the last timestamp drawn. If the epoch is read after this call, an attempt that pins
    /// after that epoch begins no earlier than at the returned timestamp.
    pub(super) fn before_stamp(&self) -> u64 {
        let now = self.now();
        full_fence(); // E10
        now
    }

    /// Returns the number of versions of a unit. Versions that may already have been freed are not
    /// counted. The caller is pinned.
    pub(crate) fn count_versions(&self, at: CellAt) -> usize {
        self.snapshots.look(|gone| {
            let word = Tid(at.cell_word(0).load(Ordering::Acquire)); // E3
            1 + at.undos(word, gone).count()
        })
    }
}
