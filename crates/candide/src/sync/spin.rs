//! Waiting for something short.

use super::{AtomicBool, Ordering};

/// Rounds of busy waiting before the processor is given away. A lock holder that runs needs well under a microsecond;
/// one that does not run needs our core.
const ROUNDS_BUSY: u32 = 64;

/// One wait: busy at first, then yielding, since the thread waited for may need this very core.
#[derive(Debug, Default)]
pub(crate) struct Spin {
    rounds: u32,
}

impl Spin {
    /// Waits one round.
    #[inline]
    pub(crate) fn wait(&mut self) {
        self.rounds += 1;
        if super::MODELLED || self.rounds > ROUNDS_BUSY { super::thread::yield_now() } else { std::hint::spin_loop() }
    }

    /// Waits one round and says whether `rounds_max` are not yet used up.
    #[inline]
    pub(crate) fn wait_at_most(&mut self, rounds_max: u32) -> bool {
        self.wait();
        self.rounds < rounds_max
    }
}

/// A lock that is taken in one call and released in another, as a transaction that owns the database needs it.
#[derive(Debug)]
pub(crate) struct Exclusive(AtomicBool);

impl Default for Exclusive {
    fn default() -> Exclusive {
        Exclusive(AtomicBool::new(false))
    }
}

impl Exclusive {
    pub(crate) fn acquire(&self) {
        let mut spin = Spin::default();
        while !self.try_acquire() {
            spin.wait();
        }
    }

    pub(crate) fn try_acquire(&self) -> bool {
        // Relaxed look first: waiters share the line instead of stealing it. The exchange acquires what the previous
        // holder released (E2).
        !self.0.load(Ordering::Relaxed) && !self.0.swap(true, Ordering::Acquire)
    }

    pub(crate) fn release(&self) {
        self.0.store(false, Ordering::Release); // E2
    }
}
