//! Timestamps from the system's clock. A timestamp consists of the tick in which it is drawn and
//! the number of the session that draws it. A *tick* is the clock's unit of time.
//!
//! Unlike a counter, the clock is written by no thread. Full fences and waiting give the guarantees
//! of a counter:
//! * **TK1** A thread takes a *time* by reading the clock, and then passes a fence. The time is the
//!   last timestamp of the tick before the one read. A committer passes a fence before it draws its
//!   timestamp. So if a thread does not see, after its fence, what a committer did before the
//!   committer's fence, the committer reads the clock no earlier than the thread. The committer's
//!   timestamp is then later than the thread's time.
//! * **TK2** The tick of a commit's timestamp has ended before the fence of phase 4. So if
//!   committer A does not see, after that fence, what committer B did before the fence of B's draw,
//!   B draws in a later tick than A. B's timestamp is then later, whatever the sessions' numbers.
//! * **TK3** No commit ends before the tick of its timestamp. So an attempt that begins after the
//!   commit's end has a time that is not below the commit's timestamp, and draws a later timestamp.
//! * **TK4** No two commits have one timestamp. A session has a number of its own, and draws at
//!   most once in a tick by TK3. When no numbers are left, further sessions share the last number.
//!   A common word holds the tick in which the shared number was last used.

#![forbid(unsafe_code)]

use crate::sync::{AtomicU64, MODELLED, Ordering, SystemClock, TICK_BITS, full_fence};
use crossbeam_utils::CachePadded;

/// The number of bits of a timestamp below its tick. These bits hold the session's number. Small in
/// models, so that few sessions suffice to share a number.
const NUMBER_BITS: u32 = if MODELLED { 1 } else { 8 };

/// The number shared by all sessions without a separate number.
const SHARED: u64 = (1 << NUMBER_BITS) - 1;

/// A version has room for a timestamp of 60 bits. A read timestamp needs one bit more, since it
/// counts halves.
const _: () = assert!(TICK_BITS + NUMBER_BITS <= 60);

/// Draws timestamps from the system's clock.
#[derive(Debug)]
pub(super) struct Ticks {
    clock: SystemClock,
    /// The last tick in which the shared number was used.
    shared: CachePadded<AtomicU64>,
}

fn tick_of(ts: u64) -> u64 {
    ts >> NUMBER_BITS
}

impl Ticks {
    pub(super) fn new() -> Ticks {
        Ticks { clock: SystemClock::new(), shared: CachePadded::new(AtomicU64::new(0)) }
    }

    /// Returns a time that is not below the timestamp of any commit that had ended at the call
    /// (TK1, TK3).
    #[inline(never)]
    pub(super) fn time(&self) -> u64 {
        let tick = self.clock.now();
        full_fence(); // E15, E19
        (tick << NUMBER_BITS) - 1
    }

    /// Returns a time that is not below `ts`, a timestamp that has been drawn.
    pub(super) fn time_from(&self, ts: u64) -> u64 {
        self.clock.await_end(tick_of(ts));
        self.time()
    }

    /// Draws the next timestamp of the session with this number. No other session draws the same
    /// timestamp (TK4). The caller has passed a fence (TK2).
    #[inline]
    pub(super) fn draw(&self, number: u64) -> u64 {
        loop {
            let tick = self.clock.now();
            // Relaxed: the word only hands out ticks. No other data is published with it.
            if number < SHARED || self.shared.fetch_max(tick, Ordering::Relaxed) < tick {
                return tick << NUMBER_BITS | number.min(SHARED);
            }
            self.clock.await_end(tick);
        }
    }

    /// Waits until the tick of the timestamp `ts` has ended.
    #[inline(never)]
    pub(super) fn pass(&self, ts: u64) {
        self.clock.await_end(tick_of(ts));
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_sessions_draw_the_same_timestamp() {
        let ticks = Ticks::new();
        let draw = |number: u64| {
            let ticks = &ticks;
            move || {
                let draw = |_| {
                    let (before, ts) = (ticks.time(), ticks.draw(number));
                    ticks.pass(ts);
                    assert!(before < ts && ts <= ticks.time(), "{before} {ts}");
                    ts
                };
                (0..1_000).map(draw).collect::<Vec<_>>()
            }
        };
        let drawn: Vec<u64> = std::thread::scope(|scope| {
            let numbers = [0, SHARED - 1, SHARED, SHARED + 1, SHARED + 2];
            let threads = numbers.map(|number| scope.spawn(draw(number)));
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(drawn.iter().collect::<BTreeSet<_>>().len(), drawn.len());
    }
}
