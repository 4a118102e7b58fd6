//! The time that an attempt waits for a lock.

#![forbid(unsafe_code)]

use crate::sync::{self, Duration, Instant, MODELLED, Patience};

/// The number of rounds of a short wait before the attempt gives up. The first rounds spin, which
/// is enough for a commit in progress. The later rounds yield, for a committer that lost its
/// processor in the middle of its commit.
pub(crate) const LOCK_ROUNDS_MAX: u32 = if MODELLED { 2 } else { 80 };

/// The number of rounds of waiting for a lock for which an attempt may not sleep. The lock's owner
/// may in turn be waiting for the attempt, so more rounds do not help: with four times as many, two
/// threads that locked two rows in opposite orders were five times slower.
pub(crate) const ROUNDS_HELD: u32 = if MODELLED { 2 } else { 16 };

/// The longest time that an attempt sleeps for one lock.
const SLEEP_MAX: Duration = Duration::from_millis(10);

/// The longest time that an attempt sleeps for one lock if it has nothing to lose meanwhile.
const LONG_SLEEP_MAX: Duration = Duration::from_secs(1);

/// The same for an attempt that does not know the deadline of its transaction.
const LONG_SLEEP_UNTOLD: Duration = Duration::from_millis(100);

/// Returns how long an attempt waits for a lock if it has nothing to lose meanwhile. The wait must
/// not be part of a circle. `deadline` is that of the transaction, if the attempt knows it.
pub(crate) fn long_patience(deadline: Option<Option<Instant>>) -> Patience {
    let longest = match deadline {
        None => LONG_SLEEP_UNTOLD,
        Some(None) => LONG_SLEEP_MAX,
        Some(Some(deadline)) => {
            deadline.saturating_duration_since(Instant::now()).min(LONG_SLEEP_MAX)
        }
    };
    match cfg!(loom) {
        true => patience(false),
        false => Patience::Lasting(sync::patience(longest)),
    }
}

/// Returns how long an attempt waits for a lock. If `sleeps`, it sleeps, for [`SLEEP_MAX`] at most;
/// the wait must not be part of a circle. Otherwise it waits a few rounds, about as long as a
/// commit in progress.
pub(crate) fn patience(sleeps: bool) -> Patience {
    match sleeps && !cfg!(loom) {
        true => Patience::Lasting(sync::patience(SLEEP_MAX)),
        false => Patience::Rounds(ROUNDS_HELD),
    }
}
