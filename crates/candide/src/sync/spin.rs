//! Short waits.

/// The number of busy rounds before the thread yields. A running lock holder needs much less than a
/// microsecond; a lock holder that does not run may need this core.
const ROUNDS_BUSY: u32 = 64;

/// The state of one wait. The first rounds are busy. Later rounds yield, since the thread that is
/// waited for may need this core.
#[derive(Debug, Default)]
pub(crate) struct Spin {
    rounds: u32,
}

impl Spin {
    /// Waits one round. The function is never inlined, so that loops that seldom wait stay small.
    #[cold]
    #[inline(never)]
    pub(crate) fn wait(&mut self) {
        self.rounds = self.rounds.saturating_add(1);
        if super::MODELLED || self.rounds > ROUNDS_BUSY {
            super::thread::yield_now()
        } else {
            std::hint::spin_loop()
        }
    }

    /// Waits one round. Returns whether this wait has had fewer than `rounds_max` rounds so far.
    #[inline]
    pub(crate) fn wait_at_most(&mut self, rounds_max: u32) -> bool {
        self.wait();
        self.rounds < rounds_max
    }
}
