//! How long nothing has come.

use std::time::{Duration, Instant};

/// The most time between two looks that counts. A process that was stopped has not looked, and
/// knows nothing of that time.
const LOOK_MAX: Duration = Duration::from_millis(100);

/// How long nothing has come, in the time in which this process has looked.
#[derive(Debug)]
pub(super) struct Silence<T> {
    last: T,
    looked: Instant,
    silent: Duration,
}

impl<T: PartialEq> Silence<T> {
    /// Begins after `last`.
    pub(super) fn after(last: T) -> Silence<T> {
        Silence { last, looked: Instant::now(), silent: Duration::ZERO }
    }

    /// Notes what is the last now. Returns how long it has been.
    pub(super) fn look(&mut self, last: T) -> Duration {
        let now = Instant::now();
        let passed = (now - self.looked).min(LOOK_MAX);
        self.looked = now;
        self.silent = if last == self.last { self.silent + passed } else { Duration::ZERO };
        self.last = last;
        self.silent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_in_which_nothing_looks_does_not_count() {
        let mut silence = Silence::after(1);
        // As if the process were stopped.
        std::thread::sleep(LOOK_MAX + Duration::from_millis(20));
        assert_eq!(silence.look(1), LOOK_MAX);
        assert!(silence.look(1) >= LOOK_MAX);
        assert_eq!(silence.look(2), Duration::ZERO);
    }
}
