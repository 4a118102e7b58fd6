//! Pauses after conflicts, which fit the length of a session's attempts.
//!
//! After a conflict the transaction that it was with is probably about to end. So the first pause
//! is at most as long as the session's own attempts take. Each further conflict of a transaction
//! doubles the bound.

#![forbid(unsafe_code)]

use crate::sync::{Duration, Instant, MODELLED, Random, sleep, thread};

/// The largest bound of the pause after a transaction's first conflict. Which lengths are best
/// depends on the machine and on the workload.
pub(super) const BACKOFF_FIRST: Duration = Duration::from_micros(2);
/// The smallest bound of that pause.
const BACKOFF_LEAST: Duration = Duration::from_nanos(100);
/// The largest bound of a pause after a conflict.
const BACKOFF_MAX: Duration = Duration::from_micros(200);
/// The longest pause that is spun. For a shorter pause, a system call would take longer than the
/// pause.
const SPUN_MAX: Duration = Duration::from_micros(20);

/// What a session knows of the length of its attempts.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    /// The end of the last pause, and the number of the session's attempts until then; `None` if
    /// there was none.
    since: Option<(Instant, u64)>,
    /// The mean length of attempts, of which the last ones count most; `None` if it is not known.
    length: Option<Duration>,
}

impl Pauses {
    /// Pauses for a random time, after conflict number `conflicts` of a transaction, counted from
    /// 1. The session has made `attempts` attempts, of which the last one had the conflict. Nothing
    /// is locked or pinned meanwhile.
    pub(super) fn pause(&mut self, random: &mut Random, conflicts: u32, attempts: u64) {
        if MODELLED {
            return thread::yield_now();
        }
        let now = Instant::now();
        if let Some((begun, before)) = self.since {
            self.note(now.duration_since(begun), attempts - before);
        }
        let first = self.length.unwrap_or(BACKOFF_FIRST);
        let end = pause_from(now, random, backoff(first, conflicts));
        self.since = Some((end, attempts));
    }

    /// Notes the time that a number of attempts has taken, with what the program has done between
    /// them.
    fn note(&mut self, time: Duration, attempts: u64) {
        let attempts = attempts.clamp(1, u32::MAX.into()) as u32;
        let length = time / attempts;
        self.length = Some(self.length.map_or(length, |before| before / 4 * 3 + length / 4));
    }
}

/// Returns the bound of the pause after conflict number `conflicts` of a transaction, counted from
/// 1, if attempts take this long.
fn backoff(length: Duration, conflicts: u32) -> Duration {
    let doublings = (conflicts - 1).min(u32::BITS - 1);
    let first = length.clamp(BACKOFF_LEAST, BACKOFF_FIRST);
    first.saturating_mul(1 << doublings).min(BACKOFF_MAX)
}

/// Pauses for a random time below `bound`. Nothing is locked or pinned meanwhile.
pub(super) fn pause(random: &mut Random, bound: Duration) {
    if MODELLED {
        return thread::yield_now();
    }
    pause_from(Instant::now(), random, bound);
}

/// Pauses from the moment `begun` on, and returns the moment of the end.
fn pause_from(begun: Instant, random: &mut Random, bound: Duration) -> Instant {
    let end = begun + Duration::from_nanos(random.below(bound.as_nanos() as u64));
    if end - begun > SPUN_MAX {
        sleep(end - begun);
        return Instant::now();
    }
    loop {
        let now = Instant::now();
        if now >= end {
            return now;
        }
        std::hint::spin_loop();
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_pauses_double_from_the_first_to_the_largest() {
        let bounds = |length: Duration| [1, 2, 3, 7, 8, 9, 33, u32::MAX].map(|n| backoff(length, n));
        let long = bounds(Duration::from_secs(1)).map(|bound| bound.as_micros());
        assert_eq!(long, [2, 4, 8, 128, 200, 200, 200, 200]);
        let short = bounds(Duration::from_nanos(500)).map(|bound| bound.as_nanos());
        assert_eq!(short, [500, 1000, 2000, 32_000, 64_000, 128_000, 200_000, 200_000]);
        assert_eq!(backoff(Duration::ZERO, 1), BACKOFF_LEAST);
    }

    #[test]
    fn the_length_of_attempts_follows_the_last_ones() {
        let mut pauses = Pauses::default();
        pauses.note(Duration::from_micros(800), 100);
        assert_eq!(pauses.length, Some(Duration::from_micros(8)));
        (0..50).for_each(|_| pauses.note(Duration::from_micros(2), 4));
        let length = pauses.length.unwrap();
        assert!(length < Duration::from_nanos(501), "{length:?}");
        pauses.note(Duration::from_micros(1), 0);
    }
}
