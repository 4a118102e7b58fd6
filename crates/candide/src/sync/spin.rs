//! Waiting for something short.

use super::{AtomicU64, Ordering, Point, pass};

/// Rounds of busy waiting before the processor is given away. A lock holder that runs needs well under a microsecond;
/// one that does not run needs our core.
const ROUNDS_BUSY: u32 = 64;

/// One wait: busy at first, then yielding, since the thread waited for may need this very core.
#[derive(Debug, Default)]
pub(crate) struct Spin {
    rounds: u32,
}

impl Spin {
    /// Waits one round. A call, so that loops which seldom wait stay small.
    #[cold]
    #[inline(never)]
    pub(crate) fn wait(&mut self) {
        self.rounds = self.rounds.saturating_add(1);
        if super::MODELLED || self.rounds > ROUNDS_BUSY { super::thread::yield_now() } else { std::hint::spin_loop() }
    }

    /// Waits one round and says whether `rounds_max` are not yet used up.
    #[inline]
    pub(crate) fn wait_at_most(&mut self, rounds_max: u32) -> bool {
        self.wait();
        self.rounds < rounds_max
    }
}

/// A lock that is taken in one call and released in another, as a transaction that owns the database needs it. It knows
/// which thread holds it; zero if none does.
#[derive(Debug)]
pub(crate) struct Exclusive(AtomicU64);

impl Default for Exclusive {
    fn default() -> Exclusive {
        Exclusive(AtomicU64::new(0))
    }
}

/// A number that no other living thread has.
fn thread_number() -> u64 {
    #[cfg(not(loom))]
    thread_local! {
        static PLACE: u8 = const { 0 };
    }
    // All threads of a model run on one of the system's.
    #[cfg(loom)]
    loom::thread_local! {
        static PLACE: u8 = 0;
    }
    PLACE.with(|place| std::ptr::from_ref(place).addr() as u64)
}

impl Exclusive {
    /// Waits for the lock; false, at once, if this thread holds it already.
    pub(crate) fn acquire(&self) -> bool {
        let me = thread_number();
        let mut spin = Spin::default();
        loop {
            // Relaxed look first: waiters share the line instead of stealing it.
            let holder = self.0.load(Ordering::Relaxed);
            if holder == me {
                return false;
            }
            // Acquire: what the previous holder released is ours to see (E2).
            let free = holder == 0;
            if free && self.0.compare_exchange_weak(0, me, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return true;
            }
            pass(Point::Excluded);
            spin.wait();
        }
    }

    /// Gives back what this thread holds.
    pub(crate) fn release(&self) {
        debug_assert_eq!(self.0.load(Ordering::Relaxed), thread_number(), "nobody gives back what is another's");
        self.0.store(0, Ordering::Release); // E2
    }
}
