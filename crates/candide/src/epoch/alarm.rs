//! The alarm of the advancer.

#![forbid(unsafe_code)]

use crate::sync::Duration;
use std::sync::{Condvar, Mutex as StdMutex, PoisonError};

/// The longest wait for running transactions to end. The limit is higher in tests, which have long
/// transactions.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(if cfg!(test) { 600 } else { 10 });

/// The alarm at which the advancer sleeps while no session is active. Other threads wait here for
/// the advancer's next pass. The alarm is separate from [`Epochs`], so that a sleeping advancer
/// does not keep the epochs alive.
#[derive(Debug, Default)]
pub(super) struct Alarm {
    pub(super) sleep: StdMutex<Sleep>,
    pub(super) wake: Condvar,
    pub(super) passed: Condvar,
}

impl Alarm {
    pub(super) fn ring(&self, set: impl FnOnce(&mut Sleep)) {
        set(&mut std_lock(&self.sleep));
        self.wake.notify_one();
    }

    /// Sleeps until the alarm is rung or a thread waits for a pass. Returns at once if the alarm
    /// has been rung already, or a thread waits already.
    pub(super) fn sleep(&self) {
        let sleep = std_lock(&self.sleep);
        let rung = self
            .wake
            .wait_while(sleep, |sleep| !sleep.woken && !sleep.stopping && sleep.waiting == 0);
        rung.unwrap_or_else(PoisonError::into_inner).woken = false;
    }

    /// Wakes the threads that wait for a pass.
    pub(super) fn tell_of_pass(&self) {
        let sleep = &mut *std_lock(&self.sleep);
        sleep.passes += 1;
        if sleep.waiting > 0 {
            self.passed.notify_all();
        }
    }

    /// Sleeps until the advancer has made a pass, but no longer than [`WAIT_MAX`]. The advancer
    /// does not park meanwhile.
    pub(super) fn await_pass(&self) {
        let mut sleep = std_lock(&self.sleep);
        let passes = sleep.passes;
        sleep.waiting += 1;
        self.wake.notify_one();
        let woken = self.passed.wait_timeout_while(sleep, WAIT_MAX, |sleep| sleep.passes == passes);
        woken.unwrap_or_else(PoisonError::into_inner).0.waiting -= 1;
    }
}

#[derive(Debug, Default)]
pub(super) struct Sleep {
    pub(super) woken: bool,
    pub(super) stopping: bool,
    /// `passes` is the number of the advancer's passes. `waiting` is the number of threads that
    /// wait for the advancer's next pass.
    pub(super) passes: u64,
    pub(super) waiting: usize,
}

pub(super) fn std_lock<T: ?Sized>(mutex: &StdMutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
