//! The system's clock, which all threads read and none in the program writes.
//!
//! # What is taken for granted
//! A reading falls into the time between the full fences before and after it, and those happen in
//! one order. So if one thread reads the clock and passes a fence, and another thread passes one
//! after that and reads the clock, the second reading is not the earlier one; nor is it if the
//! first happens before the second in any other way. A word would be such a clock that grows by
//! itself and is loaded without any order (the language promises as much of such loads on both
//! sides of fences), and under a model it is one. No reading brings along what another thread has
//! done: that takes the fences (edges E15 and E19 of `docs/memory-ordering.md`).
//!
//! Of the machine this asks for what `Instant` promises, a clock that never goes back wherever it
//! is read, and that it is not read earlier or later than the program says. Where Linux maps the
//! clock into the program, a reading begins and ends with loads of what goes with it, which the
//! fences order, and the processor is told to keep to that order in between.

#[cfg(any(loom, shuttle))]
use super::{AtomicU64, Ordering};
#[cfg(not(any(loom, shuttle)))]
use super::{Instant, Spin};

/// A tick is 2^6 nanoseconds: a commit hardly ever lasts for less, and 2^52 of them for nine years.
#[cfg(not(any(loom, shuttle)))]
const TICK_SHIFT: u32 = 6;

/// What of a number of ticks can be told.
pub(crate) const TICK_BITS: u32 = 52;

/// Ticks of the system's clock since this was made, beginning with one.
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

    /// The tick that has begun.
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

    /// Waits until a tick is over, which it mostly is.
    #[inline]
    pub(crate) fn await_end(&self, tick: u64) {
        let mut spin = Spin::default();
        while self.now() <= tick {
            spin.wait();
        }
    }
}

/// Readings after which a model's clock goes on by itself. With loom it does not: it stands still
/// until a thread waits for it, and one that does not read it again, or is not made to by fences,
/// may go on seeing the time before that.
#[cfg(any(loom, shuttle))]
const READINGS: u64 = if cfg!(loom) { 1 } else { 6 };

/// A clock that stands still for some time, and goes on when a thread waits for it.
#[cfg(any(loom, shuttle))]
#[derive(Debug)]
pub(crate) struct SystemClock {
    readings: AtomicU64,
    /// Stored before each reading and never loaded: two readings are a conflict to loom then, of
    /// which it lets either come first.
    noted: AtomicU64,
}

#[cfg(any(loom, shuttle))]
impl SystemClock {
    pub(crate) fn new() -> SystemClock {
        SystemClock { readings: AtomicU64::new(READINGS), noted: AtomicU64::new(0) }
    }

    /// The tick that has begun.
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
    fn a_tick_that_has_been_awaited_is_over_for_everybody() {
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
