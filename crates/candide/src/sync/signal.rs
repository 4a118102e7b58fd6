//! The state that a worker thread shares with other threads, and sleeping until it changes.
//!
//! Threads that wait for a lock sleep in a [`Parking`](super::Parking), where the word of the lock
//! determines which thread continues. All other threads of the engine that sleep are workers
//! without work, or wait for a worker: for the logger or for the advancer.

#![forbid(unsafe_code)]

use super::{Condvar, Duration, Instant, MODELLED, Mutex, MutexGuard, lock};

/// The state that a worker and other threads share. A thread that changes the state under its lock
/// then wakes the threads for which the change matters.
#[derive(Debug, Default)]
pub(crate) struct Signal<T> {
    state: Mutex<T>,
    /// The condition variable at which the worker sleeps.
    called: Condvar,
    /// The condition variable at which threads that wait for the worker sleep.
    worked: Condvar,
}

impl<T> Signal<T> {
    /// Locks the state.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        lock(&self.state)
    }

    /// Changes the state, and wakes the worker.
    pub(crate) fn call(&self, change: impl FnOnce(&mut T)) {
        change(&mut self.lock());
        self.wake_worker();
    }

    /// Wakes the worker.
    pub(crate) fn wake_worker(&self) {
        self.called.notify_one();
    }

    /// Wakes the threads that wait for the worker.
    pub(crate) fn wake_waiters(&self) {
        self.worked.notify_all();
    }

    /// Sleeps, as the worker, until `result` returns a result. Returns `None` if there is no result
    /// at the time `until`.
    pub(crate) fn await_call<R>(
        &self,
        until: Option<Instant>,
        result: impl FnMut(&mut T) -> Option<R>,
    ) -> Option<R> {
        sleep(&self.called, self.lock(), until, result).1
    }

    /// Sleeps, as a thread that waits for the worker, until `result` returns a result. Returns
    /// `None` if there is no result at the time `until`. The caller has locked the state, which is
    /// unlocked only while the thread sleeps.
    pub(crate) fn await_work<'a, R>(
        &self,
        state: MutexGuard<'a, T>,
        until: Option<Instant>,
        result: impl FnMut(&mut T) -> Option<R>,
    ) -> (MutexGuard<'a, T>, Option<R>) {
        sleep(&self.worked, state, until, result)
    }
}

/// Sleeps until `result` returns a result or the time is `until`. Under models no time passes, so
/// `until` is never reached.
fn sleep<'a, T, R>(
    condvar: &Condvar,
    mut state: MutexGuard<'a, T>,
    until: Option<Instant>,
    mut result: impl FnMut(&mut T) -> Option<R>,
) -> (MutexGuard<'a, T>, Option<R>) {
    loop {
        if let Some(result) = result(&mut state) {
            return (state, Some(result));
        }
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        state = match left.filter(|_| !MODELLED) {
            None => condvar.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner()),
            Some(Duration::ZERO) => return (state, None),
            Some(left) => {
                let woken = condvar.wait_timeout(state, left);
                woken.unwrap_or_else(|poisoned| poisoned.into_inner()).0
            }
        };
    }
}
