//! The number of transactions that threads may still run before the checker has caught up.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};

/// An allowance that threads share. Threads that find nothing left of it sleep until there is more.
pub(super) struct Allowance {
    left: AtomicUsize,
    /// Only a thread that has locked the state raises `left`.
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// The number of transactions that were left after the last change by the checker.
    allowed: usize,
    /// The number of transactions that threads had taken before that.
    taken: u64,
    waiting: usize,
    is_over: bool,
}

impl Allowance {
    /// Creates an allowance of no transactions.
    pub(super) fn new() -> Allowance {
        let state = State { allowed: 0, taken: 0, waiting: 0, is_over: false };
        Allowance { left: AtomicUsize::new(0), state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Takes one transaction, as soon as one is left. Returns `false` when the run is over.
    pub(super) fn take(&self) -> bool {
        if self.take_now() {
            return true;
        }
        let mut state = self.lock();
        loop {
            if state.is_over {
                return false;
            }
            if self.take_now() {
                return true;
            }
            state.waiting += 1;
            state = self.changed.wait(state).expect("no thread panics while holding it");
            state.waiting -= 1;
        }
    }

    fn take_now(&self) -> bool {
        let less = |left: usize| left.checked_sub(1);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    /// Lets threads take `count` transactions, in place of those that are left.
    pub(super) fn renew(&self, count: usize) {
        let mut state = self.lock();
        let left = self.left.swap(count, Ordering::Relaxed);
        state.taken += (state.allowed - left) as u64;
        state.allowed = count;
        (0..count.min(state.waiting)).for_each(|_| self.changed.notify_one());
    }

    /// Lets threads take no further transaction, and wakes those that wait.
    pub(super) fn end(&self) {
        self.renew(0);
        self.lock().is_over = true;
        self.changed.notify_all();
    }

    /// Returns how many transactions have been taken so far, and whether one is left.
    pub(super) fn taken(&self) -> (u64, bool) {
        let state = self.lock();
        let left = self.left.load(Ordering::Relaxed);
        (state.taken + (state.allowed - left) as u64, left > 0)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while holding it")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn no_more_is_taken_than_is_allowed_and_who_waits_ends_with_the_run() {
        let allowance = Allowance::new();
        let (sender, taken) = mpsc::channel();
        thread::scope(|scope| {
            for _ in 0..40 {
                let (allowance, sender) = (&allowance, sender.clone());
                scope.spawn(move || {
                    while allowance.take() {
                        sender.send(()).expect("the receiver lives");
                    }
                });
            }
            for count in [1, 7, 100] {
                allowance.renew(count);
                (0..count).for_each(|_| taken.recv().expect("the senders live"));
                assert_eq!(allowance.taken().1, false, "none is left of {count}");
            }
            allowance.end();
        });
        drop(sender);
        assert_eq!(taken.iter().count(), 0);
        assert_eq!(allowance.taken(), (108, false));
    }
}
