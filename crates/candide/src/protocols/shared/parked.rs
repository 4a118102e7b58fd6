//! Records and units that cannot be collected while a snapshot is open. Parked garbage costs
//! nothing until the snapshot closes.

#![forbid(unsafe_code)]

use crate::engine::{Backlog, Due};
use crate::epoch::Epoch;
use crate::record::CellAt;
use std::collections::{BTreeMap, VecDeque};

/// Absent records, by their first unit, and units with old versions that wait for snapshots to
/// close.
#[derive(Debug, Default)]
pub struct Parked {
    /// The key is the timestamp of the snapshot.
    waiting: BTreeMap<u64, Batch>,
    /// The batches whose snapshots have closed.
    released: VecDeque<Batch>,
}

/// Records and units that wait for the same snapshot to close.
#[derive(Debug, Default)]
struct Batch {
    /// `queued` and `time` of the unit added last, as in [`Due`].
    queued: Epoch,
    time: u64,
    units: Vec<CellAt>,
}

/// The timestamp of a snapshot that is never open.
const CLOSED: u64 = u64::MAX;

impl Backlog for Parked {
    fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.released.is_empty()
    }

    fn len(&self) -> usize {
        self.waiting.values().chain(&self.released).map(|batch| batch.units.len()).sum()
    }

    fn is_due(&self, _horizon: Epoch) -> bool {
        false
    }

    fn take_over(&mut self, left: Parked) -> usize {
        for (snapshot, mut more) in left.waiting {
            let batch = self.waiting.entry(snapshot).or_default();
            batch.queued = batch.queued.max(more.queued);
            batch.time = batch.time.max(more.time);
            batch.units.append(&mut more.units);
        }
        self.released.extend(left.released);
        0
    }

    fn park(&mut self, snapshot: Option<u64>, at: CellAt, (queued, time): (Epoch, u64)) {
        let batch = self.waiting.entry(snapshot.unwrap_or(CLOSED)).or_default();
        (batch.queued, batch.time) = (queued, time);
        batch.units.push(at);
    }

    fn has_released(&self) -> bool {
        !self.released.is_empty()
    }

    #[cold]
    fn take_released(&mut self, before: Epoch, most: usize, into: &mut Vec<Due>) {
        while into.len() < most
            && let Some(batch) = self.released.front_mut()
            && batch.queued < before
        {
            let Batch { queued, time, ref mut units } = *batch;
            let due = |at| Due { at, queued, time, note: 0, is_parked: true };
            into.extend(units.pop().map(due));
            if units.is_empty() {
                self.released.pop_front();
            }
        }
    }
}

impl Parked {
    /// Releases the units whose snapshot is not in `open`, which is in descending order.
    pub(crate) fn release(&mut self, open: &[u64]) {
        release(&mut self.waiting, &mut self.released, open);
    }
}

/// Moves from `waiting` to `released` the entries that wait for snapshots that are not in `open`,
/// which is in descending order. The keys of `waiting` are the timestamps of the snapshots.
pub(crate) fn release<T: Default>(
    waiting: &mut BTreeMap<u64, T>,
    released: &mut VecDeque<T>,
    open: &[u64],
) {
    waiting.retain(|snapshot, batch| {
        let is_open = open.binary_search_by(|open| snapshot.cmp(open)).is_ok();
        if !is_open {
            released.push_back(std::mem::take(batch));
        }
        is_open
    });
}
