//! The system's clock. All threads read the clock, and no thread of the program writes it.
//!
//! # What is taken for granted
//! A reading falls into the time between the full fences before and after it, and all full fences
//! happen in one order. Let one thread read the clock and pass a fence, and let another thread pass
//! a fence after that and read the clock. Then the second reading is not smaller than the first.
//! The same holds if the first reading happens before the second in any other way. Such a clock is
//! like a growing word that is loaded with Relaxed: the language promises the same for such loads
//! before and after fences. Under a model the clock is such a word. A reading does not order other
//! threads' writes: only the fences do (edges E15 and E19 of `docs/memory-ordering.md`).
//!
//! The machine must keep the guarantee of `Instant`, that the clock never goes back on any core,
//! and must read the clock in program order. Where Linux maps the clock into the program, a reading
//! begins and ends with loads. The fences order these loads, and barriers order the reading between
//! them.

#[cfg(any(loom, shuttle))]
use super::{AtomicU64, Ordering};
#[cfg(not(any(loom, shuttle)))]
use super::{Instant, Spin};

/// The binary logarithm of a tick's length: a tick is 2^6 nanoseconds. A commit hardly ever takes
/// less than a tick, and 2^52 ticks last for nine years.
#[cfg(not(any(loom, shuttle)))]
const TICK_SHIFT: u32 = 6;

/// The number of bits of a tick's number.
pub(crate) const TICK_BITS: u32 = 52;

/// The system's clock. The clock counts ticks from the time when this value was made, beginning
/// with tick one.
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

    /// Returns the number of the current tick, which is not over yet.
    ///
    /// # Panics
    /// If the clock is older than nine years.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        let elapsed = self.begun.elapsed();
        let tick = 1
            + ((elapsed.as_secs() * 1_000_000_000 + u64::from(elapsed.subsec_nanos()))
                >> TICK_SHIFT);
        assert!(tick >> TICK_BITS == 0, "timestamps from the system's clock last for nine years");
        tick
    }

    /// Waits until `tick` has ended. Usually `tick` has ended already.
    #[inline]
    pub(crate) fn await_end(&self, tick: u64) {
        let mut spin = Spin::default();
        while self.now() <= tick {
            spin.wait();
        }
    }
}

/// The number of readings after which a model's clock advances without a waiter. With loom the
/// clock stands still until a thread waits for a tick's end. Other threads may still read the old
/// time after that, until they read the clock after a fence.
#[cfg(any(loom, shuttle))]
const READINGS: u64 = if cfg!(loom) { 1 } else { 6 };

/// A clock that stands still for a number of readings, and advances when a thread waits for the end
/// of a tick.
#[cfg(any(loom, shuttle))]
#[derive(Debug)]
pub(crate) struct SystemClock {
    readings: AtomicU64,
    /// A word that is stored before each reading and never loaded. So loom treats any two readings
    /// as conflicting accesses, and explores both orders.
    noted: AtomicU64,
}

#[cfg(any(loom, shuttle))]
impl SystemClock {
    pub(crate) fn new() -> SystemClock {
        SystemClock { readings: AtomicU64::new(READINGS), noted: AtomicU64::new(0) }
    }

    /// Returns the number of the current tick, which is not over yet.
    pub(crate) fn now(&self) -> u64 {
        self.noted.store(0, Ordering::Relaxed);
        // Relaxed: a reading makes no other write visible.
        let readings = if cfg!(loom) {
            self.readings.load(Ordering::Relaxed)
        } else {
            self.readings.fetch_add(1, Ordering::Relaxed)
        };
        readings / READINGS
    }

    /// Waits until `tick` has ended.
    pub(crate) fn await_end(&self, tick: u64) {
        self.readings.fetch_max((tick + 1) * READINGS, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_tick_that_one_thread_awaited_is_over_for_all_threads() {
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
