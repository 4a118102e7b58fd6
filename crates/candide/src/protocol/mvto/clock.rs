//! The clock of transactions in timestamp order: one counter, who may still commit at a timestamp that has been drawn, and the
//! snapshots that look back.

#![forbid(unsafe_code)]

use crate::epoch::Epoch;
use crate::protocol::snapshots::Snapshots;
use crate::sync::{AtomicBool, AtomicU64, Mutant, Mutex, Ordering, Spin, full_fence, lock, mutant};
use crossbeam_utils::CachePadded;
use std::sync::Arc;

/// What a part says while its session is not committing.
const IDLE: u64 = u64::MAX;

/// The last timestamp drawn, whose commits are going on, and what looks back.
#[derive(Debug, Default)]
pub struct Clock {
    last: CachePadded<AtomicU64>,
    /// One for each session there is; those of sessions that are gone go to new ones.
    parts: Mutex<Vec<Arc<Part>>>,
    /// How many there are.
    parts_made: CachePadded<AtomicU64>,
    pub(super) snapshots: Snapshots,
}

/// What a session tells the others: above what it draws its timestamp, while it commits.
#[derive(Debug)]
pub(super) struct Part {
    above: CachePadded<AtomicU64>,
    is_taken: AtomicBool,
}

impl Part {
    /// Its commit is over.
    #[inline(always)]
    pub(super) fn rest(&self) {
        // Release: what has become of its versions, for who looks at them next (E19).
        self.above.store(IDLE, Ordering::Release);
    }

    /// Its session is gone.
    pub(super) fn leave(&self) {
        self.is_taken.store(false, Ordering::Release); // E19, for the session that takes it over
    }

    /// Whether nothing can come of it any more at `time` or before.
    #[inline(always)]
    fn is_beyond(&self, time: u64) -> bool {
        self.above.load(Ordering::Acquire) >= time // E19
    }
}

impl Clock {
    /// The last timestamp drawn.
    #[inline(always)]
    pub(super) fn now(&self) -> u64 {
        self.last.load(Ordering::Acquire) // E15
    }

    /// The next timestamp, for a commit of the session whose part this is.
    #[inline(always)]
    pub(super) fn next_for(&self, part: &Part) -> u64 {
        if !mutant(Mutant::CommitUnannounced) {
            // Whoever takes a time of our timestamp or later has it from the counter, which brings this along (E15). Release: what has
            // become of the versions of commits before, as in `rest` (E19).
            part.above.store(self.last.load(Ordering::Relaxed), Ordering::Release);
        }
        // Both ways: what whoever drew before us had linked in indexes is ours to see; what we have, theirs who draw later (E15).
        self.last.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// The last timestamp drawn. Whoever pins after an epoch that is read after this begins no earlier.
    pub(super) fn before_stamp(&self) -> u64 {
        let now = self.now();
        full_fence(); // E10
        now
    }

    /// A part for a session.
    #[cold]
    pub(super) fn join(&self) -> Arc<Part> {
        let mut parts = lock(&self.parts);
        let free = |part: &&Arc<Part>| {
            // Acquire: it is IDLE (E19). Nobody else takes one meanwhile.
            !part.is_taken.load(Ordering::Acquire)
        };
        if let Some(part) = parts.iter().find(free) {
            part.is_taken.store(true, Ordering::Relaxed);
            return part.clone();
        }
        let part = Arc::new(Part { above: CachePadded::new(AtomicU64::new(IDLE)), is_taken: AtomicBool::new(true) });
        parts.push(part.clone());
        // Relaxed: whoever has a timestamp that the new session has drawn sees this by the counter (E15).
        self.parts_made.store(parts.len() as u64, Ordering::Relaxed);
        part
    }

    /// Waits until no commit is going on at `time`, which is the clock's, or before.
    pub(super) fn await_settled(&self, others: &mut Others, time: u64) {
        let mut spin = Spin::default();
        while !self.is_settled(others, time) {
            spin.wait();
        }
    }

    /// Whether no commit is going on at `time`, which is the clock's, or before: what has come of all of them is there to see.
    pub(super) fn is_settled(&self, others: &mut Others, time: u64) -> bool {
        if others.0.len() as u64 != self.parts_made.load(Ordering::Relaxed) {
            others.0.clone_from(&lock(&self.parts));
        }
        others.0.iter().all(|part| part.is_beyond(time))
    }

    #[cfg(test)]
    pub(crate) fn parts(&self) -> u64 {
        self.parts_made.load(Ordering::Relaxed)
    }

    /// Opens a snapshot of now, in an epoch that the caller has read; gives its timestamp.
    pub(super) fn open_snapshot(&self, epoch: Epoch) -> u64 {
        let now = self.snapshots.open(epoch, || self.now());
        self.await_settled(&mut Others::default(), now);
        now
    }
}

/// A session's copy of the list of parts.
#[derive(Debug, Default)]
pub(super) struct Others(Vec<Arc<Part>>);
