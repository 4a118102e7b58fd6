//! The clock of transactions in timestamp order: where timestamps come from, who may still commit
//! at one that has been drawn, and the snapshots that look back.

#![forbid(unsafe_code)]

use super::ticks::Ticks;
use crate::epoch::Moment;
use crate::protocol::snapshots::Snapshots;
use crate::sync::{
    AtomicBool, AtomicU64, Mutant, Mutex, Ordering, Point, Spin, full_fence, lock, mutant, pass,
    store_then_full_fence,
};
use crate::timestamps::Timestamps;
use crossbeam_utils::CachePadded;
use std::sync::Arc;

/// What a part says while its session is not committing.
const IDLE: u64 = u64::MAX;

/// Where timestamps come from.
#[derive(Debug)]
enum Source {
    /// The last one drawn.
    Counter(CachePadded<AtomicU64>),
    /// What everybody reads and nobody writes.
    Clock(Ticks),
}

impl Default for Source {
    fn default() -> Source {
        Source::Counter(CachePadded::default())
    }
}

/// Where timestamps come from, whose commits are going on, and what looks back.
#[derive(Debug, Default)]
pub struct Clock {
    source: Source,
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
    /// Which of them it is.
    number: u64,
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
    /// One that takes timestamps from there.
    pub(super) fn new(timestamps: Timestamps) -> Clock {
        let source = match timestamps {
            Timestamps::Counter => Source::default(),
            Timestamps::Clock => Source::Clock(Ticks::new()),
        };
        Clock { source, ..Clock::default() }
    }

    /// The time: whoever draws a timestamp later draws a later one, and no commit that is over has
    /// one.
    #[inline(always)]
    pub(super) fn now(&self) -> u64 {
        match &self.source {
            Source::Counter(last) => last.load(Ordering::Acquire), // E15
            Source::Clock(ticks) => ticks.time(),
        }
    }

    /// The time, when it is not below a timestamp that has been seen.
    pub(super) fn now_from(&self, ts: u64) -> u64 {
        match &self.source {
            Source::Counter(_) => self.now(),
            Source::Clock(ticks) => ticks.time_from(ts),
        }
    }

    /// The next timestamp, for a commit of the session whose part this is, and whose attempt has
    /// had the time from the clock.
    #[inline(always)]
    pub(super) fn next_for(&self, part: &Part, time: u64) -> u64 {
        match &self.source {
            Source::Counter(last) => {
                if !mutant(Mutant::CommitUnannounced) {
                    // Whoever takes a time of our timestamp or later has it from the counter, which
                    // brings this along (E15). Release: what has become of the versions of commits
                    // before, as in `rest` (E19).
                    part.above.store(last.load(Ordering::Relaxed), Ordering::Release);
                }
                // Both ways: what whoever drew before us had linked in indexes is ours to see; what
                // we have, theirs who draw later (E15).
                last.fetch_add(1, Ordering::AcqRel) + 1
            }
            Source::Clock(ticks) => draw_from(ticks, part, time),
        }
    }

    /// Waits until whoever takes a time comes at or after a timestamp, and whoever draws one after
    /// it.
    #[inline(always)]
    pub(super) fn pass(&self, ts: u64) {
        match &self.source {
            Source::Counter(_) => {}
            Source::Clock(ticks) => ticks.pass(ts),
        }
    }

    /// The time. Whoever pins after an epoch that is read after this begins no earlier.
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
        let part = Arc::new(Part {
            above: CachePadded::new(AtomicU64::new(IDLE)),
            number: parts.len() as u64,
            is_taken: AtomicBool::new(true),
        });
        parts.push(part.clone());
        // Relaxed: whoever has a timestamp that the new session has drawn sees this by the counter,
        // or the fences (E15).
        self.parts_made.store(parts.len() as u64, Ordering::Relaxed);
        part
    }

    /// Waits until no commit is going on at `time`, which is the clock's, or before.
    pub(super) fn await_settled(&self, others: &mut Others, time: u64) {
        let mut spin = Spin::default();
        while !self.is_settled(others, time) {
            pass(Point::Awaiting);
            spin.wait();
        }
    }

    /// Whether no commit is going on at `time`, which is the clock's, or before: what has come of
    /// all of them is there to see.
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

    /// Opens a snapshot of now, which the caller has taken for this moment; gives its timestamp.
    pub(super) fn open_snapshot(&self, since: Moment) -> u64 {
        let now = self.snapshots.open(since, || self.now());
        self.await_settled(&mut Others::default(), now);
        now
    }
}

/// `Clock::next_for` from the system's clock.
#[inline(never)]
fn draw_from(ticks: &Ticks, part: &Part, time: u64) -> u64 {
    if mutant(Mutant::CommitUnannounced) {
        return ticks.draw(part.number);
    }
    // Whoever takes a time that is not below our timestamp has passed its fence after this one, and
    // sees this (E15, E19).
    if mutant(Mutant::DrawnUnfenced) {
        part.above.store(time, Ordering::Release);
    } else {
        store_then_full_fence(&part.above, time);
    }
    let ts = ticks.draw(part.number);
    // Who has taken its time meanwhile need not wait for us. Release: as in `rest` (E19).
    part.above.store(ts - 1, Ordering::Release);
    ts
}

/// A session's copy of the list of parts.
#[derive(Debug, Default)]
pub(super) struct Others(Vec<Arc<Part>>);
