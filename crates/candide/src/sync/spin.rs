//! Short waits.

/// The number of busy rounds before the thread yields. A lock holder that runs needs well under a
/// microsecond; one that does not run needs this core.
const ROUNDS_BUSY: u32 = 64;

/// One wait: busy at first, then yielding, since the thread waited for may need this very core.
#[derive(Debug, Default)]
pub(crate) struct Spin {
    rounds: u32,
}

impl Spin {
    /// Waits one round. Out of line, so that loops which seldom wait stay small.
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

    /// Waits one round and returns whether `rounds_max` are not yet used up.
    #[inline]
    pub(crate) fn wait_at_most(&mut self, rounds_max: u32) -> bool {
        self.wait();
        self.rounds < rounds_max
    }
}
