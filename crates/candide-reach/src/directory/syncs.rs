//! Syncs of a folder that several calls share.

#![forbid(unsafe_code)]

use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The syncs of a folder. What is there when one begins is durable when it ends. So, of the calls
/// that come while a sync runs, one syncs for all.
#[derive(Debug, Default)]
pub(super) struct Syncs {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The number of syncs that have begun.
    begun: u64,
    /// The number of the last one that has succeeded.
    done: u64,
    is_running: bool,
    /// The number of calls that wait.
    waiting: u64,
}

impl Syncs {
    /// Returns after a sync that has begun after this call. An error is that of this call's own.
    pub(super) fn share(&self, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut state = self.state();
        let due = state.begun + 1;
        state.waiting += 1;
        while state.is_running && state.done < due {
            state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waiting -= 1;
        if state.done >= due {
            return Ok(());
        }
        state.begun += 1;
        state.is_running = true;
        let number = state.begun;
        drop(state);
        let synced = sync();
        let mut state = self.state();
        state.is_running = false;
        if synced.is_ok() {
            state.done = number;
        }
        if state.waiting > 0 {
            self.ended.notify_all();
        }
        synced
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::thread;

    /// While the first sync runs, others come. They share the second, which fails once.
    #[test]
    fn calls_share_a_sync_that_begins_after_them_and_succeeds() {
        let (syncs, begun) = (Syncs::default(), AtomicU64::new(0));
        let is_open = AtomicBool::new(false);
        let sync = || {
            let number = begun.fetch_add(1, Ordering::SeqCst);
            while number == 0 && !is_open.load(Ordering::SeqCst) {
                thread::yield_now();
            }
            if number == 1 { Err(io::Error::other("once")) } else { Ok(()) }
        };
        let failed = thread::scope(|scope| {
            let first = scope.spawn(|| syncs.share(sync));
            while begun.load(Ordering::SeqCst) == 0 {
                thread::yield_now();
            }
            let others: Vec<_> = (0..5).map(|_| scope.spawn(|| syncs.share(sync))).collect();
            while syncs.state().waiting < 5 {
                thread::yield_now();
            }
            assert_eq!(begun.load(Ordering::SeqCst), 1, "one at a time");
            is_open.store(true, Ordering::SeqCst);
            first.join().unwrap().unwrap();
            others.into_iter().filter_map(|other| other.join().unwrap().err()).count()
        });
        assert_eq!((failed, begun.into_inner()), (1, 3));
    }
}
