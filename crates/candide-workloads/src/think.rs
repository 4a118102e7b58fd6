//! Busy work between the operations of a transaction.

use std::time::{Duration, Instant};

use serde::Serialize;

/// The time for which a transaction works after each of its operations, as a program does that
/// computes something from what it has read. Short transactions then overlap even on few cores.
///
/// The thread keeps its core for that time, and reads the clock in a loop: it does not sleep or
/// yield. It does not execute the instruction for waiting in a loop either, at which a virtual
/// machine may take the core away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Think {
    nanos: u32,
}

impl Think {
    /// No work: the next operation follows at once.
    pub const NONE: Think = Think { nanos: 0 };

    /// The longest time.
    pub const MAX: Duration = Duration::from_millis(1);

    /// Returns work for `time`; `None` if that is longer than [`Think::MAX`].
    pub fn new(time: Duration) -> Option<Think> {
        (time <= Self::MAX).then_some(Think { nanos: time.subsec_nanos() })
    }

    /// Works for the time, or up to two readings of the clock longer.
    #[inline]
    pub(crate) fn work(self) {
        if self.nanos > 0 {
            self.spin();
        }
    }

    #[cold]
    #[inline(never)]
    fn spin(self) {
        let time = Duration::from_nanos(self.nanos.into());
        let begun = Instant::now();
        while begun.elapsed() < time {}
    }

    /// Describes, for the report, the difference that the work makes to a published workload;
    /// `None` if there is no work.
    pub(crate) fn difference(self) -> Option<&'static str> {
        (self != Self::NONE).then_some(
            "after each operation a transaction works for the time of --think, where the published one goes on at once",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn think_times_are_kept_to_the_nanosecond_up_to_the_longest() {
        assert_eq!(Think::new(Duration::ZERO), Some(Think::NONE));
        assert_eq!(Think::new(Duration::from_nanos(501)), Some(Think { nanos: 501 }));
        assert_eq!(Think::new(Think::MAX), Some(Think { nanos: 1_000_000 }));
        for longer in [Think::MAX + Duration::from_nanos(1), Duration::from_secs(1)] {
            assert_eq!(Think::new(longer), None, "{longer:?}");
        }
    }

    #[test]
    fn work_between_operations_takes_at_least_its_time() {
        for time in [Duration::from_nanos(1), Duration::from_micros(20), Think::MAX] {
            let think = Think::new(time).expect("in range");
            let begun = Instant::now();
            think.work();
            let took = begun.elapsed();
            assert!(took >= time, "{took:?} where {time:?} were asked for");
        }
    }
}
