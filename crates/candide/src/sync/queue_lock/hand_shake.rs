//! Waits for neighbours.

#![forbid(unsafe_code)]

use crate::sync::Spin;

/// A wait for a step of a neighbour in the queue: a few busy rounds, then the thread yields.
#[derive(Debug, Default)]
pub(super) struct HandShake {
    spin: Spin,
    #[cfg(loom)]
    rounds: u32,
}

impl HandShake {
    /// Waits one round.
    pub(super) fn wait(&mut self) {
        self.spin.wait();
        // If two threads yield to each other, there are infinitely many schedules in which a third
        // thread makes no step. Waits are loads, so a long wait shows no more than a short one: the
        // executions after a long wait are explored once.
        #[cfg(loom)]
        {
            self.rounds += 1;
            if self.rounds > ROUNDS_EXPLORED {
                ::loom::skip_branch();
            }
        }
    }
}

/// The longest wait after which loom explores further steps.
#[cfg(loom)]
const ROUNDS_EXPLORED: u32 = 3;
