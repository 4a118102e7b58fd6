//! What sessions have done.

#![forbid(unsafe_code)]

use crate::error::Abort;
use crate::sync::{AtomicU64, Ordering};
use crossbeam_utils::CachePadded;

/// Counts of what one session, or all of a database, did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Transactions that committed.
    pub commits: u64,
    /// Transactions that ended in an error of their closure.
    pub user_errors: u64,
    /// Attempts that were made because the one before met a conflict.
    pub retries: u64,
    /// Attempts that ended by each reason, in the order of [`Abort::ALL`].
    pub aborts: [u64; Abort::ALL.len()],
}

impl Stats {
    /// Every reason by name, in a fixed order, with its count.
    pub fn abort_reasons(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Abort::ALL.iter().map(|abort| abort.name()).zip(self.aborts)
    }

    /// Attempts that met a conflict.
    pub fn total_aborts(&self) -> u64 {
        Abort::ALL.iter().zip(self.aborts).filter(|(abort, _)| abort.is_conflict()).map(|(_, count)| count).sum()
    }

    pub(crate) fn add(&mut self, other: &Stats) {
        self.commits += other.commits;
        self.user_errors += other.user_errors;
        self.retries += other.retries;
        for (sum, count) in self.aborts.iter_mut().zip(other.aborts) {
            *sum += count;
        }
    }
}

/// A session's counters, on cache lines of their own: written by its thread alone, read by anyone, a little late.
#[derive(Debug)]
pub(crate) struct Counters(CachePadded<Words>);

#[derive(Debug)]
struct Words {
    commits: AtomicU64,
    user_errors: AtomicU64,
    retries: AtomicU64,
    aborts: [AtomicU64; Abort::ALL.len()],
}

impl Counters {
    pub(crate) fn new() -> Counters {
        Counters(CachePadded::new(Words {
            commits: AtomicU64::new(0),
            user_errors: AtomicU64::new(0),
            retries: AtomicU64::new(0),
            aborts: std::array::from_fn(|_| AtomicU64::new(0)),
        }))
    }

    #[inline]
    pub(crate) fn committed(&self) {
        count(&self.0.commits);
    }

    pub(crate) fn user_error(&self) {
        count(&self.0.user_errors);
    }

    pub(crate) fn retried(&self) {
        count(&self.0.retries);
    }

    pub(crate) fn aborted(&self, abort: Abort) {
        count(&self.0.aborts[abort as usize]);
    }

    pub(crate) fn read(&self) -> Stats {
        let read = |word: &AtomicU64| word.load(Ordering::Relaxed);
        Stats {
            commits: read(&self.0.commits),
            user_errors: read(&self.0.user_errors),
            retries: read(&self.0.retries),
            aborts: std::array::from_fn(|index| read(&self.0.aborts[index])),
        }
    }
}

/// A number that many sessions change: each in one of a few places, so that they seldom share one.
#[derive(Debug)]
pub(crate) struct Tally([CachePadded<AtomicU64>; Tally::PLACES]);

impl Tally {
    const PLACES: usize = 8;

    pub(crate) fn new() -> Tally {
        Tally(std::array::from_fn(|_| CachePadded::new(AtomicU64::new(0))))
    }

    /// Adds one, or takes one away, for session number `session`.
    pub(crate) fn count(&self, session: u64, up: bool) {
        let place = &self.0[session as usize % Tally::PLACES];
        // A place may fall below zero and wrap; only the sum means something.
        place.fetch_add(if up { 1 } else { u64::MAX }, Ordering::Relaxed);
    }

    /// The number, some of the changes under way included.
    pub(crate) fn sum(&self) -> u64 {
        let sum = self.0.iter().fold(0u64, |sum, place| sum.wrapping_add(place.load(Ordering::Relaxed)));
        // Places are read one after another: what came in one and went in another may be seen going only.
        if sum > i64::MAX as u64 { 0 } else { sum }
    }
}

/// One more, by the only writer: no read-modify-write needed.
#[inline(always)]
fn count(word: &AtomicU64) {
    word.store(word.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}
