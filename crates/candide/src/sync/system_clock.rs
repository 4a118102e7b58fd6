//! The system's clock, which all threads read and none in the program writes.
//!
//! # What is taken for granted
//! A reading falls into the time between the full fences before and after it, and those happen in
//! one order. So if one thread reads the clock and passes a fence, and another thread passes one
//! after that and reads the clock, the second reading is not the earlier one; nor is it if the
//! first happens before the second in any other way. A word would be such a clock that grows by
//! itself and is loaded without any order (the language promises as much of such loads on both
//! sides of fences), and under a model it is one. A reading does not order other threads' writes:
//! that takes the fences (edges E15 and E19 of `docs/memory-ordering.md`).
//!
//! The machine must keep what `Instant` promises, a clock that never goes back on any core, and
//! must read it in program order. Where Linux maps the clock into the program, a reading begins and
//! ends with loads, which the fences order, and barriers order the reading between them.

#[cfg(any(loom, shuttle))]
use super::{AtomicU64, Ordering};
#[cfg(not(any(loom, shuttle)))]
use super::{Instant, Spin};

/// The length of a tick: 2^6 nanoseconds. A commit is hardly ever shorter, and 2^52 ticks last for
/// nine years.
#[cfg(not(any(loom, shuttle)))]
const TICK_SHIFT: u32 = 6;

/// The bits of a number of ticks.
pub(crate) const TICK_BITS: u32 = 52;

/// The system's clock in ticks since its construction, beginning with one.
#[cfg(not(any(loom, shuttle)))]
#[derive(Debug)]
pub(crate) struct SystemClock {
    begun: Instant,
}

#[cfg(not(any(loom, shuttle)))]
impl SystemClock {
    pub(crate) fn new() -> SystemClock {
        SystemClock { begun: Instant::now() }
    }

    /// Returns the tick that has begun.
    ///
    /// # Panics
    /// After nine years.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        let elapsed = self.begun.elapsed();
        let tick = 1
            + ((elapsed.as_secs() * 1_000_000_000 + u64::from(elapsed.subsec_nanos()))
                >> TICK_SHIFT);
        assert!(tick >> TICK_BITS == 0, "timestamps from the system's clock last for nine years");
        tick
    }

    /// Waits until a tick is over; usually it is.
    #[inline]
    pub(crate) fn await_end(&self, tick: u64) {
        let mut spin = Spin::default();
        while self.now() <= tick {
            spin.wait();
        }
    }
}

/// The number of readings after which a model's clock advances without a waiter. With loom the
/// clock stands still until a thread waits for it; another thread may read the old time until it
/// reads again after a fence.
#[cfg(any(loom, shuttle))]
const READINGS: u64 = if cfg!(loom) { 1 } else { 6 };

/// A clock that stands still for a number of readings, and advances when a thread waits for it.
#[cfg(any(loom, shuttle))]
#[derive(Debug)]
pub(crate) struct SystemClock {
    readings: AtomicU64,
    /// Stored before each reading and never loaded, so that loom takes two readings for a conflict
    /// and explores both orders.
    noted: AtomicU64,
}

#[cfg(any(loom, shuttle))]
impl SystemClock {
    pub(crate) fn new() -> SystemClock {
        SystemClock { readings: AtomicU64::new(READINGS), noted: AtomicU64::new(0) }
    }

    /// Returns the tick that has begun.
    pub(crate) fn now(&self) -> u64 {
        self.noted.store(0, Ordering::Relaxed);
        // Relaxed: a reading carries nothing.
        let readings = if cfg!(loom) {
            self.readings.load(Ordering::Relaxed)
        } else {
            self.readings.fetch_add(1, Ordering::Relaxed)
        };
        readings / READINGS
    }

    /// Waits until a tick is over.
    pub(crate) fn await_end(&self, tick: u64) {
        self.readings.fetch_max((tick + 1) * READINGS, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_tick_that_has_been_awaited_is_over_for_all_threads() {
        let clock = SystemClock::new();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let first = clock.now();
                    for _ in 0..1_000 {
                        let tick = clock.now();
                        clock.await_end(tick);
                        assert!(clock.now() > tick);
                    }
                    assert!(clock.now() >= first + 1_000);
                });
            }
        });
    }
}
