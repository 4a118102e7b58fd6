//! Functions that wait for other threads. These functions wait for the condition itself, and their
//! time limits count passes, since a busy machine schedules threads unpredictably.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// The shortest duration of a pass.
const PASS: Duration = Duration::from_millis(1);

/// The number of passes without progress after which a test fails: a minute or more, depending on
/// the load of the machine.
const PASSES_MAX: u32 = 60_000;

/// Waits until `is_so` returns `true`. Fails with `what` if it never does.
pub(crate) fn eventually(what: &str, is_so: impl FnMut() -> bool) {
    eventually_with(what, || (), is_so);
}

/// Waits until `is_so` returns `true`, as long as the value of `progress` changes. Fails with
/// `what` and the last progress if it stops changing.
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

/// Receives a message of another thread. Fails with `what` if no message arrives.
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
