//! The words by which the advancer and the threads that wake it communicate.

#![forbid(unsafe_code)]

use crate::sync::{Duration, Signal};

/// The longest wait for running transactions to end. The limit is higher in tests, which have long
/// transactions.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(if cfg!(test) { 600 } else { 10 });

/// The alarm at which the advancer sleeps while no session is active. Other threads wait here for
/// the advancer's next pass. The alarm is separate from [`Epochs`](super::Epochs), so that a
/// sleeping advancer does not keep the epochs alive.
pub(super) type Alarm = Signal<Calls>;

/// The state of the alarm.
#[derive(Debug, Default)]
pub(super) struct Calls {
    pub(super) woken: bool,
    pub(super) stopping: bool,
    /// `passes` is the number of the advancer's passes. `waiting` is the number of threads that
    /// wait for the advancer's next pass.
    pub(super) passes: u64,
    pub(super) waiting: usize,
}
