//! The amount of memory to touch ahead, from the growth of a database.

#![forbid(unsafe_code)]

use super::provider::TICK;

/// The number of chunks that a database takes before its growth is watched. A smaller database
/// never makes the process start a thread.
const WATCHED_CHUNKS: usize = 4;
/// The number of ticks of growth that are touched ahead: a tenth of a second.
const AHEAD_TICKS: usize = 20;
/// The largest number of chunks that are touched ahead: 256 MiB.
const AHEAD_CHUNKS_MAX: usize = 128;
/// The number of ticks without growth after which the stretch ahead is given back: one second.
const QUIET_TICKS: u32 = (1_000 / TICK.as_millis()) as u32;
/// The unit of a rate: a chunk in this number of ticks.
const RATE_UNITS: usize = 64;

/// The growth of one database, in chunks.
#[derive(Debug, Default)]
pub(super) struct Growth {
    /// The number of chunks that the database has taken.
    taken: usize,
    /// The number of chunks taken since the last tick.
    taken_in_tick: usize,
    /// The rate of growth, in chunks per [`RATE_UNITS`] ticks. The rate rises at once and falls
    /// slowly.
    rate: usize,
    quiet_ticks: u32,
    is_watched: bool,
}

/// The demand on the provider after a chunk was taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Demand {
    /// The provider need not be woken.
    None,
    /// The provider has to watch this database from now on.
    Watch,
    /// The provider watches this database, which has used up the stretch ahead.
    Hurry,
}

impl Growth {
    /// Marks the database as watched, for tests that call the provider's function themselves.
    #[cfg(test)]
    pub(super) fn watch_by_hand(&mut self) {
        self.is_watched = true;
    }

    /// Notes that the database has taken a chunk. `is_dry` is whether no touched chunk is left.
    pub(super) fn take(&mut self, is_dry: bool) -> Demand {
        self.taken += 1;
        self.taken_in_tick += 1;
        if self.is_watched {
            return if is_dry { Demand::Hurry } else { Demand::None };
        }
        self.is_watched = self.taken >= WATCHED_CHUNKS;
        if self.is_watched { Demand::Watch } else { Demand::None }
    }

    /// Notes that the database is not watched any longer, or could not be watched.
    pub(super) fn end_watch(&mut self) {
        (self.rate, self.quiet_ticks, self.is_watched) = (0, 0, false);
    }

    /// Ends a tick. Returns the number of touched chunks that there should be; `None` if the
    /// database has not grown for a second, so that it need not be watched any longer.
    pub(super) fn tick(&mut self) -> Option<usize> {
        let taken = std::mem::take(&mut self.taken_in_tick);
        self.quiet_ticks = if taken == 0 { self.quiet_ticks + 1 } else { 0 };
        if self.quiet_ticks >= QUIET_TICKS {
            self.end_watch();
            return None;
        }
        // The average of about the last sixteen ticks, but never below that of this tick by more
        // than a fourth: the first burst counts at once.
        self.rate =
            (self.rate - self.rate / 16 + taken * RATE_UNITS / 16).max(taken * RATE_UNITS / 4);
        let ahead = (self.rate * AHEAD_TICKS).div_ceil(RATE_UNITS);
        Some(ahead.min(self.taken / 4).min(AHEAD_CHUNKS_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns growth after `ticks` ticks with `chunks` taken chunks each, and the last target.
    fn after(ticks: usize, chunks: usize) -> (Growth, usize) {
        let mut growth = Growth::default();
        let mut target = 0;
        for _ in 0..ticks {
            for _ in 0..chunks {
                growth.take(false);
            }
            target = growth.tick().expect("it grows");
        }
        (growth, target)
    }

    #[test]
    fn growth_of_a_small_database_is_not_watched() {
        let mut growth = Growth::default();
        let demands: Vec<_> = (0..6).map(|chunk| growth.take(chunk == 5)).collect();
        use Demand::{Hurry, None, Watch};
        assert_eq!(demands, [None, None, None, Watch, None, Hurry]);
    }

    #[test]
    fn the_stretch_ahead_follows_the_rate() {
        assert!((18..=25).contains(&after(100, 1).1), "{:?}", after(100, 1));
        assert!((54..=75).contains(&after(100, 3).1), "{:?}", after(100, 3));
        assert_eq!(after(100, 50).1, AHEAD_CHUNKS_MAX);
        assert!(after(1, 8).1 <= 2, "growth of a young database is not extrapolated");
    }

    #[test]
    fn a_second_without_growth_ends_the_watch() {
        let mut growth = after(100, 3).0;
        let ticks = (0..).find(|_| growth.tick().is_none()).expect("it ends");
        assert_eq!(ticks, QUIET_TICKS - 1);
        assert_eq!(growth.take(true), Demand::Watch, "growth begins again");
    }
}
