//! The lengths of waits. Which lengths are best depends on the machine and on the workload.

#![forbid(unsafe_code)]

use crate::sync::{Duration, SPIN_ROUNDS};

/// The lengths of waits. They change no guarantee. A transaction that meets no other transaction
/// does not wait.
///
/// After a conflict a session pauses for a random time below a bound. The first conflict of a
/// transaction has the bound `backoff_first`, and each further conflict doubles the bound, up to
/// `backoff_max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// The first bound: from 1 ns to 1 s, by default 2 µs.
    pub backoff_first: Duration,
    /// The largest bound: from `backoff_first` to 1 s, by default 200 µs.
    pub backoff_max: Duration,
    /// The number of times that a thread checks the lock for which it waits, before the thread
    /// sleeps: from 1 to 1,000,000, by default 64. This number does not apply to waits in which
    /// threads do not sleep, nor to waits for the lock of a whole database.
    pub spin_rounds: u32,
}

impl Default for Waiting {
    fn default() -> Waiting {
        Waiting {
            backoff_first: Duration::from_micros(2),
            backoff_max: Duration::from_micros(200),
            spin_rounds: SPIN_ROUNDS,
        }
    }
}

impl Waiting {
    /// Returns the bound of the pause after conflict number `conflicts` of a transaction, counted
    /// from 1.
    pub(crate) fn backoff(&self, conflicts: u32) -> Duration {
        let doublings = (conflicts - 1).min(u32::BITS - 1);
        self.backoff_first.saturating_mul(1 << doublings).min(self.backoff_max)
    }

    /// Checks the ranges. The error names a field that is out of range, and the values allowed.
    #[cfg(any(test, feature = "experiments"))]
    pub(crate) fn check(&self) -> Result<(), String> {
        let Waiting { backoff_first, backoff_max, spin_rounds } = *self;
        let (least, most) = (Duration::from_nanos(1), Duration::from_secs(1));
        if !(least..=most).contains(&backoff_first) {
            return Err(format!(
                "backoff_first must be from {least:?} to {most:?}, not {backoff_first:?}"
            ));
        }
        if !(backoff_first..=most).contains(&backoff_max) {
            return Err(format!(
                "backoff_max must be from backoff_first, {backoff_first:?}, to {most:?}, \
                 not {backoff_max:?}"
            ));
        }
        if !(1..=1_000_000).contains(&spin_rounds) {
            return Err(format!("spin_rounds must be from 1 to 1000000, not {spin_rounds}"));
        }
        Ok(())
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn bounds_double_from_the_first_to_the_largest() {
        let micros = |waiting: Waiting| {
            [1, 2, 3, 7, 8, 9, 33, u32::MAX].map(|conflicts| waiting.backoff(conflicts).as_micros())
        };
        assert_eq!(micros(Waiting::default()), [2, 4, 8, 128, 200, 200, 200, 200]);
        let [backoff_first, backoff_max] = [5, 5].map(Duration::from_micros);
        let constant = Waiting { backoff_first, backoff_max, ..Waiting::default() };
        assert_eq!(micros(constant), [5; 8]);
        let widest = Waiting {
            backoff_first: Duration::from_nanos(1),
            backoff_max: Duration::from_secs(1),
            ..Waiting::default()
        };
        assert_eq!(micros(widest), [0, 0, 0, 0, 0, 0, 1_000_000, 1_000_000]);
    }

    #[test]
    fn values_out_of_range_are_answered_with_the_range() {
        let first = |backoff_first| Waiting { backoff_first, ..Waiting::default() }.check();
        let max = |backoff_max| Waiting { backoff_max, ..Waiting::default() }.check();
        let rounds = |spin_rounds| Waiting { spin_rounds, ..Waiting::default() }.check();
        let refused = |text: &str| Err(text.to_string());
        assert_eq!(first(Duration::ZERO), refused("backoff_first must be from 1ns to 1s, not 0ns"));
        assert_eq!(
            first(Duration::from_secs(2)),
            refused("backoff_first must be from 1ns to 1s, not 2s")
        );
        assert_eq!(first(Duration::from_nanos(1)), Ok(()));
        assert_eq!(
            max(Duration::from_micros(1)),
            refused("backoff_max must be from backoff_first, 2µs, to 1s, not 1µs")
        );
        assert_eq!(
            max(Duration::from_millis(1_001)),
            refused("backoff_max must be from backoff_first, 2µs, to 1s, not 1.001s")
        );
        assert_eq!([Duration::from_micros(2), Duration::from_secs(1)].map(max), [Ok(()), Ok(())]);
        assert_eq!(rounds(0), refused("spin_rounds must be from 1 to 1000000, not 0"));
        assert_eq!(
            rounds(1_000_001),
            refused("spin_rounds must be from 1 to 1000000, not 1000001")
        );
        assert_eq!([1, 1_000_000].map(rounds), [Ok(()), Ok(())]);
    }
}
