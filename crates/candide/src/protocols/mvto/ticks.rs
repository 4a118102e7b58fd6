//! Timestamps from the system's clock: the tick in which one is drawn, and the number of the
//! session that draws it.
//!
//! Threads without a common record write no common word, as a counter would be. Full fences and
//! waiting give the guarantees of a counter:
//! * **TK1** A *time* is the last timestamp of the tick before the one that is read, and a fence
//!   follows; a timestamp is drawn after a fence. So if a thread does not see, after its fence,
//!   what another one did before its own, the other one reads the clock no earlier, and its
//!   timestamp is above the first one's time.
//! * **TK2** The tick of a timestamp is over before the fence of phase 4. So if a committer does
//!   not see, after that fence, what another one did before its own, the other one draws in a later
//!   tick: a later timestamp, whatever the numbers.
//! * **TK3** No commit ends before the tick of its timestamp. So an attempt that begins afterwards
//!   has a time that is not below it, and draws a later one.
//! * **TK4** No two commits have one timestamp. Sessions have numbers of their own, and draw once
//!   in a tick by TK3; those for which there are no numbers left share the last one, and a word
//!   that holds the tick of its last use.

#![forbid(unsafe_code)]

use crate::sync::{
    AtomicU64, MODELLED, Mutant, Ordering, SystemClock, TICK_BITS, full_fence, mutant,
};
use crossbeam_utils::CachePadded;

/// The bits of a timestamp below its tick. Few in models, so that numbers are shared soon.
const NUMBER_BITS: u32 = if MODELLED { 1 } else { 8 };

/// The number that is shared.
const SHARED: u64 = (1 << NUMBER_BITS) - 1;

/// A version has room for sixty bits, and read timestamps count halves.
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

    /// Returns a time that is not below any timestamp whose commit was over at the call (TK1, TK3).
    #[inline(never)]
    pub(super) fn time(&self) -> u64 {
        let tick = self.clock.now() + u64::from(mutant(Mutant::TickNotOver));
        full_fence(); // E15, E19
        (tick << NUMBER_BITS) - 1
    }

    /// Returns a time that is not below a timestamp that has been drawn.
    pub(super) fn time_from(&self, ts: u64) -> u64 {
        self.clock.await_end(tick_of(ts));
        self.time()
    }

    /// Draws the next timestamp of the session with this number, which no other one draws (TK4).
    /// The caller has passed a fence (TK2).
    #[inline]
    pub(super) fn draw(&self, number: u64) -> u64 {
        loop {
            let tick = self.clock.now();
            // Relaxed: the word hands ticks out, and nothing with them.
            if number < SHARED || self.shared.fetch_max(tick, Ordering::Relaxed) < tick {
                return tick << NUMBER_BITS | number.min(SHARED);
            }
            self.clock.await_end(tick);
        }
    }

    /// Waits until a timestamp's tick is over.
    #[inline(never)]
    pub(super) fn pass(&self, ts: u64) {
        if !mutant(Mutant::TickNotAwaited) {
            self.clock.await_end(tick_of(ts));
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_draw_the_same_whether_or_not_they_have_numbers_of_their_own() {
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
