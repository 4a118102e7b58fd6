//! Waiting for what other threads do: for the condition itself, and in passes, since nothing can be
//! said of how much time a busy machine gives to whom.

use crate::sync::Duration;
use std::sync::mpsc::{Receiver, RecvTimeoutError};

/// The shortest that a pass takes.
const PASS: Duration = Duration::from_millis(1);

/// Passes without progress after which a test fails: a minute and more, and the longer, the busier
/// the machine is.
const PASSES_MAX: u32 = 60_000;

/// Waits until `is_so`; fails, saying `what`, when that does not come.
pub(crate) fn eventually(what: &str, is_so: impl FnMut() -> bool) {
    eventually_with(what, || (), is_so);
}

/// Waits until `is_so`, for as long as there is `progress`; fails, saying `what` and how far it
/// came, when that ends.
pub(crate) fn eventually_with<T: PartialEq + std::fmt::Debug>(
    what: &str,
    progress: impl Fn() -> T,
    mut is_so: impl FnMut() -> bool,
) {
    let (mut reached, mut passes) = (progress(), 0);
    while !is_so() {
        assert!(passes < PASSES_MAX, "{what}: it does not come, after {reached:?}");
        std::thread::sleep(PASS);
        let now = progress();
        passes = if now == reached { passes + 1 } else { 0 };
        reached = now;
    }
}

/// Waits for what another thread sends; fails, saying `what`, when that does not come.
pub(crate) fn receive<T>(what: &str, receiver: &Receiver<T>) -> T {
    for _ in 0..PASSES_MAX {
        match receiver.recv_timeout(PASS) {
            Ok(sent) => return sent,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => panic!("{what}: its thread has ended"),
        }
    }
    panic!("{what}: it does not come");
}
