//! Garbage that is for all: units that are written all the time.

#![forbid(unsafe_code)]

use super::garbage::Due;
use crate::epoch::Epoch;
use crate::sync::{AtomicU64, Mutex, Ordering, lock};
use crossbeam_utils::CachePadded;
use std::collections::VecDeque;

/// Entries of units that had more to collect at each look: every session that collects takes some.
/// Otherwise they would never leave the session that happened to be the first to write these units,
/// which would have to collect alone what all others add.
#[derive(Debug, Default)]
pub(crate) struct Hot {
    /// Nearly in the order of their epochs.
    entries: CachePadded<Mutex<VecDeque<Due>>>,
    /// How many there are.
    count: CachePadded<AtomicU64>,
}

impl Hot {
    pub(crate) fn len(&self) -> usize {
        // Relaxed: the mutex brings the entries along, and who misses some comes again.
        self.count.load(Ordering::Relaxed) as usize
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Moves entries that were queued before an epoch, until there are so many.
    pub(crate) fn take(&self, before: Epoch, most: usize, into: &mut Vec<Due>) {
        let mut entries = lock(&self.entries);
        while into.len() < most && entries.front().is_some_and(|due| due.queued < before) {
            into.extend(entries.pop_front());
        }
        self.count.store(entries.len() as u64, Ordering::Relaxed);
    }

    /// Takes entries over that are to be looked at when their epoch is over.
    pub(crate) fn put(&self, more: &mut Vec<Due>) {
        self.change(more, |entries, more| entries.extend(more.drain(..)));
    }

    /// Takes entries over that were due, and have not been done with: they go on before all others.
    /// Behind what has been looked at in the meantime, one long chain among many short ones would
    /// have one turn an epoch, and grow.
    pub(crate) fn put_first(&self, more: &mut Vec<Due>) {
        self.change(more, |entries, more| {
            more.drain(..).rev().for_each(|due| entries.push_front(due))
        });
    }

    fn change(&self, more: &mut Vec<Due>, put: impl FnOnce(&mut VecDeque<Due>, &mut Vec<Due>)) {
        if !more.is_empty() {
            let mut entries = lock(&self.entries);
            put(&mut entries, more);
            self.count.store(entries.len() as u64, Ordering::Relaxed);
        }
    }
}
