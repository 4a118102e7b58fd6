//! The number of transactions that threads may still run before the checker has caught up.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};

/// An allowance that threads share. If no allowance is left, threads sleep until there is more.
pub(super) struct Allowance {
    /// The number of transactions that threads may still begin. Only a thread that has locked the
    /// state raises it.
    left: AtomicUsize,
    /// The number of transactions that have ended.
    ended: AtomicUsize,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// The number of transactions that have begun, and of those that are left.
    allowed: usize,
    waiting: usize,
    is_over: bool,
}

impl Allowance {
    /// Creates an allowance of no transactions.
    pub(super) fn new() -> Allowance {
        Allowance {
            left: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
            state: Mutex::new(State { allowed: 0, waiting: 0, is_over: false }),
            changed: Condvar::new(),
        }
    }

    /// Calls `transaction` repeatedly, each time as soon as one is left, until the run has ended or
    /// `transaction` returns an error.
    pub(super) fn spend<E>(&self, mut transaction: impl FnMut() -> Result<(), E>) -> Result<(), E> {
        while self.take() {
            transaction()?;
            self.ended.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Takes one transaction, as soon as one is left. Returns `false` when the run has ended.
    fn take(&self) -> bool {
        let less = |left: usize| left.checked_sub(1);
        let take_now =
            || self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok();
        if take_now() {
            return true;
        }
        let mut state = self.lock();
        while !state.is_over {
            if take_now() {
                return true;
            }
            state.waiting += 1;
            state = self.changed.wait(state).expect("no thread panics while holding it");
            state.waiting -= 1;
        }
        false
    }

    /// Lets `count` transactions run until the next call, those that are running now among them.
    pub(super) fn renew(&self, count: usize) {
        let mut state = self.lock();
        let begun = state.allowed - self.left.swap(0, Ordering::Relaxed);
        let running = begun - self.ended.load(Ordering::Relaxed).min(begun);
        let left = count.saturating_sub(running);
        state.allowed = begun + left;
        self.left.store(left, Ordering::Relaxed);
        (0..left.min(state.waiting)).for_each(|_| self.changed.notify_one());
    }

    /// Lets threads take no further transaction, and wakes those that wait.
    pub(super) fn end(&self) {
        self.renew(0);
        self.lock().is_over = true;
        self.changed.notify_all();
    }

    /// Returns how many transactions have ended so far.
    pub(super) fn ended(&self) -> usize {
        self.ended.load(Ordering::Relaxed)
    }

    /// Returns whether a transaction is left.
    pub(super) fn is_any_left(&self) -> bool {
        self.left.load(Ordering::Relaxed) > 0
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

    /// Forty threads; each transaction ends when the test ends it.
    #[test]
    fn transactions_of_a_check_stay_below_their_number() {
        let allowance = Allowance::new();
        let (begins, begun) = mpsc::channel();
        let (end, ends) = mpsc::channel::<()>();
        let ends = Mutex::new(ends);
        thread::scope(|scope| {
            for _ in 0..40 {
                let (allowance, ends, begins) = (&allowance, &ends, begins.clone());
                scope.spawn(move || {
                    allowance.spend(|| {
                        begins.send(()).expect("the receiver lives");
                        ends.lock().expect("no thread panics").recv()
                    })
                });
            }
            let await_begun = |count: usize| {
                (0..count).for_each(|_| begun.recv().expect("the senders live"));
                assert!(!allowance.is_any_left() && begun.try_recv().is_err());
            };
            allowance.renew(3);
            await_begun(3);
            // Three of the five are running.
            allowance.renew(5);
            await_begun(2);
            allowance.renew(4);
            await_begun(0);
            (0..5).for_each(|_| end.send(()).expect("the receiver lives"));
            while allowance.ended() < 5 {
                thread::yield_now();
            }
            allowance.renew(7);
            await_begun(7);
            allowance.end();
            (0..7).for_each(|_| end.send(()).expect("the receiver lives"));
        });
        assert_eq!(allowance.ended(), 12);
        assert!(begun.try_recv().is_err());
    }
}
