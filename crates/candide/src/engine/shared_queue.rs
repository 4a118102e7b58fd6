//! The shared garbage queue: units that are written all the time, which every session collects, and
//! values that no session's own collection has found, which the next session drops.

#![forbid(unsafe_code)]

use super::garbage::Due;
use crate::epoch::Epoch;
use crate::record::value::Value;
use crate::sync::{AtomicU64, Mutex, Ordering, lock};
use crossbeam_utils::CachePadded;
use std::collections::VecDeque;

/// The largest number of values that are dropped at the end of one transaction.
pub(crate) const VALUES_AT_ONCE: usize = 4096;

/// The entries of units that had new old versions each time they were examined. Every session that
/// collects takes some of them. Without this queue, the first session to write such a unit would
/// have to collect alone the old versions that all sessions add.
#[derive(Debug, Default)]
pub(crate) struct SharedQueue {
    /// The entries, nearly in the order of their epochs, and the values.
    entries: CachePadded<Mutex<Entries>>,
    /// The number of entries and values.
    count: CachePadded<AtomicU64>,
}

#[derive(Debug, Default)]
struct Entries {
    due: VecDeque<Due>,
    unwanted: VecDeque<Value>,
}

impl Entries {
    fn count(&self) -> u64 {
        (self.due.len() + self.unwanted.len()) as u64
    }
}

impl SharedQueue {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        // Relaxed: the mutex orders the entries. A session that misses some entries examines the
        // queue again later.
        self.count.load(Ordering::Relaxed) as usize
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether an entry may name the table with this number.
    pub(crate) fn may_name(&self, table: u16) -> bool {
        lock(&self.entries).due.iter().any(|due| due.at.table() == table)
    }

    /// Returns whether there are entries to examine.
    pub(crate) fn has_due(&self) -> bool {
        !self.is_empty() && !lock(&self.entries).due.is_empty()
    }

    /// Moves entries queued before the epoch `before` to `into`, until `into` has `most` entries.
    pub(crate) fn take(&self, before: Epoch, most: usize, into: &mut Vec<Due>) {
        let mut entries = lock(&self.entries);
        while into.len() < most && entries.due.front().is_some_and(|due| due.queued < before) {
            into.extend(entries.due.pop_front());
        }
        self.count.store(entries.count(), Ordering::Relaxed);
    }

    /// Adds values that another session is to drop.
    pub(crate) fn put_unwanted(&self, more: &mut Vec<Value>) {
        if !more.is_empty() {
            let mut entries = lock(&self.entries);
            entries.unwanted.extend(more.drain(..));
            self.count.store(entries.count(), Ordering::Relaxed);
        }
    }

    /// Moves up to `most` values to `into`. The caller drops them when it holds nothing. Returns
    /// whether values are left.
    pub(crate) fn take_unwanted(&self, into: &mut Vec<Value>, most: usize) -> bool {
        if self.is_empty() {
            return false;
        }
        let mut entries = lock(&self.entries);
        let taken = entries.unwanted.len().min(most);
        into.extend(entries.unwanted.drain(..taken));
        self.count.store(entries.count(), Ordering::Relaxed);
        !entries.unwanted.is_empty()
    }

    /// Adds entries at the end. Each is examined after the epoch in which it was queued.
    pub(crate) fn put(&self, more: &mut Vec<Due>) {
        self.change(more, |entries, more| entries.extend(more.drain(..)));
    }

    /// Adds unfinished entries at the front. At the end of the queue, a long chain among many short
    /// ones would be examined only once per epoch, and would grow.
    pub(crate) fn put_first(&self, more: &mut Vec<Due>) {
        self.change(more, |entries, more| {
            more.drain(..).rev().for_each(|due| entries.push_front(due))
        });
    }

    fn change(&self, more: &mut Vec<Due>, put: impl FnOnce(&mut VecDeque<Due>, &mut Vec<Due>)) {
        if !more.is_empty() {
            let mut entries = lock(&self.entries);
            put(&mut entries.due, more);
            self.count.store(entries.count(), Ordering::Relaxed);
        }
    }
}
