//! The undo records that cannot be freed yet, because attempts or snapshots may still see the
//! versions in them.

#![forbid(unsafe_code)]

use super::value_queue::ValueQueue;
use crate::engine::{Backlog, BlockSize, Due};
use crate::epoch::Epoch;
use crate::memory::Block;
use crate::protocols::shared::parked::{Parked, release};
use crate::record::CellAt;
use std::collections::{BTreeMap, VecDeque};

/// The undo record of a unit that a commit has changed.
#[derive(Debug, Clone, Copy)]
pub struct UndoEntry {
    pub(super) at: CellAt,
    pub(super) block: Block,
    pub(super) size: BlockSize,
    /// The timestamp of the version that the undo record holds.
    pub(super) ts: u64,
    /// The timestamp of the commit that replaced the version in the undo record. The timestamp may
    /// belong to a later commit if no transaction can see a version in between.
    pub(super) until: u64,
}

/// The undo records that a session's commits have left, and the records of deleted rows that only
/// snapshots see.
#[derive(Debug, Default)]
pub struct UndoQueue {
    /// Entries in the order of their epochs.
    entries: VecDeque<UndoEntry>,
    /// The epochs of `entries`, in the same order.
    batches: VecDeque<EpochBatch>,
    /// The entries whose versions open snapshots see. The key is the timestamp of the newest such
    /// snapshot.
    kept: BTreeMap<u64, Vec<UndoEntry>>,
    /// The entries that were kept for a snapshot that has closed. Such entries are due, whatever
    /// their epochs.
    released: VecDeque<Vec<UndoEntry>>,
    /// The records of deleted rows that wait for snapshots to close.
    pub(super) parked: Parked,
    /// The values outside of records that were replaced.
    pub(super) values: ValueQueue,
}

/// Entries of one epoch.
#[derive(Debug)]
struct EpochBatch {
    epoch: Epoch,
    count: usize,
    /// The latest timestamp (`until`) of the entries.
    until: u64,
}

impl Backlog for UndoQueue {
    #[inline]
    fn is_empty(&self) -> bool {
        self.entries.is_empty()
            && !self.has_kept()
            && self.parked.is_empty()
            && self.values.is_empty()
    }

    #[inline]
    fn len(&self) -> usize {
        self.entries.len()
            + self.kept.values().map(Vec::len).sum::<usize>()
            + self.released.iter().map(Vec::len).sum::<usize>()
            + self.parked.len()
            + self.values.len()
    }

    #[inline]
    fn is_due(&self, horizon: Epoch) -> bool {
        !self.released.is_empty() || self.batches.front().is_some_and(|batch| batch.epoch < horizon)
    }

    fn take_over(&mut self, left: UndoQueue) -> usize {
        let UndoQueue { entries, batches, kept, released, parked, values } = left;
        let count = entries.len();
        self.entries.extend(entries);
        self.batches.extend(batches);
        for (snapshot, mut kept) in kept {
            self.kept.entry(snapshot).or_default().append(&mut kept);
        }
        self.released.extend(released);
        self.parked.take_over(parked);
        self.values.take_over(values);
        count
    }

    fn park(&mut self, snapshot: Option<u64>, at: CellAt, queued: (Epoch, u64)) {
        self.parked.park(snapshot, at, queued);
    }

    fn has_released(&self) -> bool {
        self.parked.has_released()
    }

    fn take_released(&mut self, before: Epoch, most: usize, into: &mut Vec<Due>) {
        self.parked.take_released(before, most, into);
    }
}

impl UndoQueue {
    /// Returns whether the queue has entries that wait, or have waited, for a snapshot to close.
    #[inline]
    pub(super) fn has_kept(&self) -> bool {
        !self.kept.is_empty() || !self.released.is_empty()
    }

    /// Adds entries to the queue. The commits of the entries ended before `epoch`.
    pub(super) fn extend(&mut self, epoch: Epoch, more: &mut Vec<UndoEntry>) {
        let Some(until) = more.iter().map(|entry| entry.until).max() else { return };
        let count = more.len();
        debug_assert!(
            more.iter().all(|entry| entry.ts < entry.until),
            "MV2: a later commit replaced the version"
        );
        match self.batches.back_mut() {
            Some(batch) if batch.epoch == epoch => {
                (batch.count, batch.until) = (batch.count + count, batch.until.max(until));
            }
            _ => self.batches.push_back(EpochBatch { epoch, count, until }),
        }
        self.entries.extend(more.drain(..));
    }

    /// Keeps an entry until the snapshot with the timestamp `snapshot` has closed.
    #[inline]
    pub(super) fn keep(&mut self, snapshot: u64, entry: UndoEntry) {
        self.kept.entry(snapshot).or_default().push(entry);
    }

    /// Returns the number of entries added in epochs before `before`, and the latest timestamp of
    /// their commits.
    #[inline]
    pub(super) fn due(&self, before: Epoch) -> (usize, u64) {
        let due = self.batches.iter().take_while(|batch| batch.epoch < before);
        due.fold((0, 0), |(count, until), batch| (count + batch.count, until.max(batch.until)))
    }

    /// Takes the first entry out.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<UndoEntry> {
        let batch = self.batches.front_mut()?;
        batch.count -= 1;
        if batch.count == 0 {
            self.batches.pop_front();
        }
        self.entries.pop_front()
    }

    /// Takes out an entry that was kept for a snapshot that has closed; `None` if there is no such
    /// entry.
    #[cold]
    pub(super) fn pop_released(&mut self) -> Option<UndoEntry> {
        let first = self.released.front_mut()?;
        let entry = first.pop();
        if first.is_empty() {
            self.released.pop_front();
        }
        entry
    }

    /// Releases the entries that were kept for snapshots that have closed. `open` holds the
    /// timestamps of the open snapshots, in descending order.
    #[inline]
    pub(super) fn release(&mut self, open: &[u64]) {
        release(&mut self.kept, &mut self.released, open);
    }
}
