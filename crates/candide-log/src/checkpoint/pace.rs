//! The rate at which a checkpoint reads and writes while the log continues.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The shortest pause; a checkpoint that is ahead by less goes on.
const PAUSE_MIN: Duration = Duration::from_millis(2);
/// The longest pause after which the length of the log is looked at again.
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// The number of reasons why checkpoints that pause are to go on at once.
#[derive(Debug, Default)]
pub(crate) struct Hurry {
    reasons: Mutex<u64>,
    changed: Condvar,
}

impl Hurry {
    /// Lets checkpoints go on without pauses until [`end`](Hurry::end) is called.
    pub(crate) fn begin(&self) {
        *self.reasons() += 1;
        self.changed.notify_all();
    }

    /// Ends one call of [`begin`](Hurry::begin).
    pub(crate) fn end(&self) {
        *self.reasons() -= 1;
    }

    /// Waits for this time, or until there is a reason to hurry. Returns whether there is one.
    fn pause(&self, time: Duration) -> bool {
        let paused = self.changed.wait_timeout_while(self.reasons(), time, |reasons| *reasons == 0);
        *paused.unwrap_or_else(PoisonError::into_inner).0 > 0
    }

    fn reasons(&self) -> MutexGuard<'_, u64> {
        self.reasons.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bounds of a checkpoint's rate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// The bytes that may be read and written in a second, while the log does not grow.
    pub(crate) rate: u64,
    /// The bytes that the checkpoint is going to read and write, or more.
    pub(crate) work: u64,
    /// The bytes by which the log may grow before the checkpoint is finished.
    pub(crate) growth: u64,
}

impl Bounds {
    /// Returns the time for which a checkpoint pauses that has read and written `done` bytes since
    /// it began, `elapsed` ago, while the log has `grown`: until the rate allows `done`, unless the
    /// log has grown by the same share of its bound.
    fn pause(&self, done: u64, elapsed: Duration, grown: impl FnOnce() -> u64) -> Option<Duration> {
        let due = Duration::from_nanos(share(done, 1_000_000_000, self.rate));
        let pause = due.checked_sub(elapsed).filter(|pause| *pause >= PAUSE_MIN)?;
        let by_growth = share(self.work, grown(), self.growth);
        (done > by_growth).then_some(pause.min(PAUSE_MAX))
    }
}

/// Returns `whole` times `part` by `of`; the largest number if that is larger, or if `of` is 0.
fn share(whole: u64, part: u64, of: u64) -> u64 {
    let share = (u128::from(whole) * u128::from(part)).checked_div(of.into());
    share.and_then(|share| u64::try_from(share).ok()).unwrap_or(u64::MAX)
}

/// The pace of a checkpoint that is being made.
pub(crate) struct Pace<'a> {
    /// `None` if the checkpoint does not pause.
    bounds: Option<Bounds>,
    hurry: &'a Hurry,
    /// Returns the length of the log that the checkpoint in force does not contain.
    log_bytes: &'a dyn Fn() -> u64,
    log_bytes_before: u64,
    begun: Instant,
    done: u64,
}

impl<'a> Pace<'a> {
    /// Begins a checkpoint with these bounds, or one without pauses.
    pub(crate) fn new(
        bounds: Option<Bounds>,
        hurry: &'a Hurry,
        log_bytes: &'a dyn Fn() -> u64,
    ) -> Pace<'a> {
        let log_bytes_before = log_bytes();
        Pace { bounds, hurry, log_bytes, log_bytes_before, begun: Instant::now(), done: 0 }
    }

    /// Notes that the checkpoint has read or written `bytes`, and pauses as long as its bounds want
    /// it and there is no reason to hurry. After a reason, it does not pause any more.
    pub(crate) fn spend(&mut self, bytes: u64) {
        self.done += bytes;
        let grown = || (self.log_bytes)().saturating_sub(self.log_bytes_before);
        while let Some(bounds) = self.bounds
            && let Some(pause) = bounds.pause(self.done, self.begun.elapsed(), grown)
        {
            if self.hurry.pause(pause) {
                self.bounds = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const MIB: u64 = 1 << 20;
    const BOUNDS: Bounds = Bounds { rate: 10 * MIB, work: 100 * MIB, growth: 50 * MIB };

    /// Returns how long a checkpoint pauses that has done this many MiB in this many milliseconds,
    /// while the log has grown by so many MiB.
    fn pause(done: u64, millis: u64, grown: u64) -> Option<Duration> {
        BOUNDS.pause(done * MIB, Duration::from_millis(millis), || grown * MIB)
    }

    #[test]
    fn a_checkpoint_pauses_until_its_rate_allows_what_it_has_done() {
        assert_eq!(pause(1, 90, 0), Some(Duration::from_millis(10)));
        assert_eq!(pause(1, 99, 0), None, "less than the shortest pause");
        assert_eq!(pause(1, 100, 0), None);
        assert_eq!(pause(20, 0, 0), Some(PAUSE_MAX));
        let none = Bounds { rate: u64::MAX, ..BOUNDS };
        assert_eq!(none.pause(1 << 40, Duration::ZERO, || 0), None);
        let least = Bounds { rate: 1, ..BOUNDS };
        assert_eq!(least.pause(u64::MAX, Duration::from_secs(1 << 30), || 0), Some(PAUSE_MAX));
    }

    #[test]
    fn a_checkpoint_is_as_far_as_the_log_has_grown() {
        // Two fifths of the bound: 40 MiB of the work.
        assert_eq!(pause(40, 0, 20), None);
        assert_eq!(pause(41, 0, 20), Some(PAUSE_MAX));
        // The work was underestimated.
        assert_eq!(pause(120, 0, 49), Some(PAUSE_MAX));
        assert_eq!(pause(120, 0, 60), None);
        let any = Bounds { growth: 0, ..BOUNDS };
        assert_eq!(any.pause(u64::MAX, Duration::ZERO, || 0), None);
    }

    #[test]
    fn the_length_of_the_log_is_looked_at_only_before_a_pause() {
        let looks = Cell::new(0);
        let grown = || {
            looks.set(looks.get() + 1);
            0
        };
        assert_eq!(BOUNDS.pause(MIB, Duration::from_secs(1), grown), None);
        assert_eq!(looks.get(), 0);
    }

    #[test]
    fn the_growth_of_the_log_ends_a_pause() {
        let bounds = Bounds { rate: 1, work: 100, growth: 100 };
        let (hurry, bytes) = (Hurry::default(), Cell::new(1000));
        let grows = || bytes.replace(bytes.get() + 10);
        let mut pace = Pace::new(Some(bounds), &hurry, &grows);
        pace.spend(35);
        assert!(bytes.get() >= 1040, "{}", bytes.get());
        assert!(pace.bounds.is_some());
    }

    #[test]
    fn a_reason_to_hurry_ends_pauses() {
        let bounds = Bounds { rate: 1, work: u64::MAX, growth: u64::MAX };
        let hurry = Hurry::default();
        let mut pace = Pace::new(Some(bounds), &hurry, &|| 0);
        std::thread::scope(|scope| {
            scope.spawn(|| hurry.begin());
            // At this rate, the pauses would take years.
            pace.spend(1 << 32);
        });
        hurry.end();
        pace.spend(1 << 32);
        assert!(!hurry.pause(Duration::ZERO), "there is no reason any more");
    }
}
