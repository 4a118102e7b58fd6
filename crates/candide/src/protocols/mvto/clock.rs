//! The clock of transactions in timestamp order: the source of timestamps, the commits in progress,
//! and the open snapshots.

#![forbid(unsafe_code)]

use super::ticks::Ticks;
use crate::epoch::Moment;
use crate::protocols::shared::snapshot_list::Snapshots;
use crate::sync::{
    AtomicBool, AtomicU64, Mutex, Ordering, Point, Spin, full_fence, lock, pass,
    store_then_full_fence,
};
use crate::timestamps::Timestamps;
use crossbeam_utils::CachePadded;
use std::sync::Arc;

/// The value of a part whose session is not committing.
const IDLE: u64 = u64::MAX;

/// The source of timestamps, the commits in progress, and the open snapshots.
#[derive(Debug, Default)]
pub struct Clock {
    /// The last timestamp drawn. Unused if timestamps come from the system's clock.
    last: CachePadded<AtomicU64>,
    /// The system's clock, which no session writes; `None` if timestamps come from the counter
    /// `last`.
    ticks: Option<Ticks>,
    /// The parts, one for each open session; a new session takes over the part of a closed session.
    parts: Mutex<Vec<Arc<Part>>>,
    /// The number of parts.
    parts_made: CachePadded<AtomicU64>,
    pub(super) snapshots: Snapshots,
}

/// A session's announcement to the other sessions. While the session commits, `above` is below its
/// timestamp.
#[derive(Debug)]
pub(super) struct Part {
    above: CachePadded<AtomicU64>,
    /// The index in the list of parts.
    number: u64,
    is_taken: AtomicBool,
}

impl Part {
    /// Notes that the session's commit has ended.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn rest(&self) {
        // Release: a thread that acquires this value sees the outcome of the commit's versions
        // (E19).
        self.above.store(IDLE, Ordering::Release);
    }

    /// Notes that the session is closed.
    pub(super) fn leave(&self) {
        self.is_taken.store(false, Ordering::Release); // E19, for the session that takes it over
    }

    /// Returns true if the session is not committing, or if its commit has a timestamp later than
    /// `time`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn is_beyond(&self, time: u64) -> bool {
        self.above.load(Ordering::Acquire) >= time // E19
    }
}

impl Clock {
    /// Returns a clock with this source of timestamps.
    pub(super) fn new(timestamps: Timestamps) -> Clock {
        let ticks = (timestamps == Timestamps::Clock).then(Ticks::new);
        Clock { ticks, ..Clock::default() }
    }

    /// Returns the system's clock if timestamps come from it. Only builds for tests and experiments
    /// can choose that.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn ticks(&self) -> Option<&Ticks> {
        if cfg!(any(test, feature = "experiments")) { self.ticks.as_ref() } else { None }
    }

    /// Returns the time. Timestamps drawn after this call are later than the time. Timestamps of
    /// commits that have ended are not.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn now(&self) -> u64 {
        match self.ticks() {
            None => self.last.load(Ordering::Acquire), // E15
            Some(ticks) => ticks.time(),
        }
    }

    /// Waits until the time is not below `ts`, a timestamp that has been seen, and returns the
    /// time.
    pub(super) fn now_from(&self, ts: u64) -> u64 {
        match self.ticks() {
            None => self.now(),
            Some(ticks) => ticks.time_from(ts),
        }
    }

    /// Draws the next timestamp, for a commit of the session to which `part` belongs. `time` is the
    /// time that the attempt took from the clock.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn next_for(&self, part: &Part, time: u64) -> u64 {
        match self.ticks() {
            None => {
                // A thread that takes a time not below this commit's timestamp loads that time from
                // the counter, and so sees this store (E15). Release: publishes the outcome of
                // earlier versions, as in `rest` (E19).
                part.above.store(self.last.load(Ordering::Relaxed), Ordering::Release);
                // Acquire: sees the links in indexes that others made before earlier draws.
                // Release: publishes this session's links to later draws (E15).
                self.last.fetch_add(1, Ordering::AcqRel) + 1
            }
            Some(ticks) => draw_from(ticks, part, time),
        }
    }

    /// Waits until all times taken from now on are not below `ts`, and all timestamps drawn are
    /// above `ts`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn pass(&self, ts: u64) {
        if let Some(ticks) = self.ticks() {
            ticks.pass(ts);
        }
    }

    /// Returns the time. If the epoch is read after this call, an attempt that pins after that
    /// epoch begins no earlier than the returned time.
    pub(super) fn before_stamp(&self) -> u64 {
        let now = self.now();
        full_fence(); // E10
        now
    }

    /// Returns a part for a new session.
    #[cold]
    pub(super) fn join(&self) -> Arc<Part> {
        let mut parts = lock(&self.parts);
        let free = |part: &&Arc<Part>| {
            // Acquire: the part's `above` is seen to be IDLE (E19). The mutex keeps other sessions
            // from taking the part.
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
        // Relaxed: a thread that has met a timestamp of the new session sees this store by the
        // counter, or by the fences (E15).
        self.parts_made.store(parts.len() as u64, Ordering::Relaxed);
        part
    }

    /// Waits until no commit at or before `time` is in progress. `time` was taken from the clock.
    pub(super) fn await_settled(&self, others: &mut Others, time: u64) {
        let mut spin = Spin::default();
        while !self.is_settled(others, time) {
            pass(Point::Awaiting);
            spin.wait();
        }
    }

    /// Returns whether no commit at or before `time` is in progress. If so, the outcome of all such
    /// commits is visible. `time` was taken from the clock.
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

    /// Opens a snapshot of the present state, and returns the snapshot's timestamp. `since` is the
    /// current moment, as the caller has read it.
    pub(super) fn open_snapshot(&self, since: Moment) -> u64 {
        let now = self.snapshots.open(since, || self.now());
        self.await_settled(&mut Others::default(), now);
        now
    }
}

/// Draws the next timestamp from the system's clock, for `Clock::next_for`.
#[inline(never)]
fn draw_from(ticks: &Ticks, part: &Part, time: u64) -> u64 {
    // A thread that takes a time not below this commit's timestamp passes its fence after the one
    // here, and so sees this store (E15, E19).
    store_then_full_fence(&part.above, time);
    let ts = ticks.draw(part.number);
    // Attempts with times below `ts` need not wait for this commit. Release: as in `rest` (E19).
    part.above.store(ts - 1, Ordering::Release);
    ts
}

/// A session's copy of the list of parts.
#[derive(Debug, Default)]
pub(super) struct Others(Vec<Arc<Part>>);
