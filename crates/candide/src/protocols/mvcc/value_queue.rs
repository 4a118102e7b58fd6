//! The values that commits have replaced, and that attempts or snapshots may still see.
//!
//! A value is named by exactly the versions that were written from its commit on, up to the commit
//! that replaced it. So its entry has these two timestamps, and is examined like that of an undo
//! record: it is due when its epoch is behind the horizon, and all attempts that run then read at
//! the later timestamp or after it, or in an open snapshot. Undo records own no value: their words
//! may name values that are gone, but a reader follows only the word of the version that it sees.

#![forbid(unsafe_code)]

use crate::engine::Replaced;
use crate::epoch::Epoch;
use crate::protocols::shared::parked::release;
use crate::protocols::shared::snapshot_list::seen_by;
use crate::record::value::Value;
use std::collections::{BTreeMap, VecDeque};

/// A session's queue of replaced values.
#[derive(Debug, Default)]
pub(super) struct ValueQueue {
    /// The entries in the order of their epochs.
    entries: VecDeque<(Epoch, Replaced)>,
    /// The entries whose values open snapshots see. The key is the timestamp of the newest such
    /// snapshot.
    kept: BTreeMap<u64, Vec<Replaced>>,
    /// The entries that were kept for a snapshot that has closed.
    released: VecDeque<Vec<Replaced>>,
}

impl ValueQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.kept.is_empty() && self.released.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        let kept = self.kept.values().chain(&self.released).map(Vec::len);
        self.entries.len() + kept.sum::<usize>()
    }

    /// Adds entries, whose commits have ended before `epoch`.
    pub(super) fn extend(&mut self, epoch: Epoch, more: &mut Vec<Replaced>) {
        self.entries.extend(more.drain(..).map(|replaced| (epoch, replaced)));
    }

    pub(super) fn take_over(&mut self, left: ValueQueue) {
        self.entries.extend(left.entries);
        for (snapshot, mut kept) in left.kept {
            self.kept.entry(snapshot).or_default().append(&mut kept);
        }
        self.released.extend(left.released);
    }

    /// Passes to `free` the values that are due and that no open snapshot sees. The timestamps of
    /// the `snapshots` descend; the list was made after the `horizon` was read.
    pub(super) fn collect(
        &mut self,
        horizon: Epoch,
        snapshots: &[u64],
        mut free: impl FnMut(Value),
    ) {
        release(&mut self.kept, &mut self.released, snapshots);
        let mut due: Vec<Replaced> = self.released.drain(..).flatten().collect();
        while self.entries.front().is_some_and(|&(epoch, _)| epoch < horizon) {
            due.extend(self.entries.pop_front().map(|(_, replaced)| replaced));
        }
        for replaced in due {
            match seen_by(snapshots, replaced.value.born()..replaced.until) {
                Some(snapshot) => self.kept.entry(snapshot).or_default().push(replaced),
                None => free(replaced.value),
            }
        }
    }
}
