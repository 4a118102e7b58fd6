//! A barrier at which the threads of a run wait until the timekeeper lets them continue.

use std::sync::{Condvar, Mutex, MutexGuard};

use quanta::Instant;

/// A barrier that no longer waits for a thread once that thread has ended, by return or by panic.
pub(crate) struct Barrier {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    members: usize,
    waiting: usize,
    /// The number of times that all members have arrived and continued.
    partings: u64,
    /// The time of the last parting.
    parted: Instant,
}

impl Barrier {
    /// Creates a barrier for `members` threads; each thread has to call [`Barrier::member`].
    pub(crate) fn of(members: usize) -> Self {
        let state = State { members, waiting: 0, partings: 0, parted: Instant::now() };
        Barrier { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Returns one of the members, for one thread.
    pub(crate) fn member(&self) -> Member<'_> {
        Member { meeting: self }
    }

    /// Returns the number of members that have not ended yet. A member that panics is no longer
    /// counted once [`Barrier::gather`] continues without it.
    pub(crate) fn members(&self) -> usize {
        self.lock().members
    }

    /// Waits until all members wait, calls `meanwhile`, and lets the members continue. Returns the
    /// time at which all members were waiting, and the time at which they continued.
    pub(crate) fn gather(&self, meanwhile: impl FnOnce()) -> (Instant, Instant) {
        let mut state = self.lock();
        while state.waiting < state.members {
            state = self.changed.wait(state).expect("no thread panics while holding it");
        }
        let together = Instant::now();
        meanwhile();
        state.waiting = 0;
        state.partings += 1;
        state.parted = Instant::now();
        self.changed.notify_all();
        (together, state.parted)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while holding it")
    }
}

/// A thread for which the barrier waits until this value is dropped.
pub(crate) struct Member<'a> {
    meeting: &'a Barrier,
}

impl Member<'_> {
    /// Waits until all members have arrived. Returns the time at which they continued.
    pub(crate) fn wait(&self) -> Instant {
        let mut state = self.meeting.lock();
        let before = state.partings;
        state.waiting += 1;
        self.meeting.changed.notify_all();
        while state.partings == before {
            state = self.meeting.changed.wait(state).expect("no thread panics while holding it");
        }
        state.parted
    }
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        self.meeting.lock().members -= 1;
        self.meeting.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn a_barrier_waits_for_all_threads_that_have_not_ended() {
        let (meeting, met) = (Barrier::of(3), AtomicUsize::new(0));
        thread::scope(|scope| {
            for meetings in [1, 2, 2] {
                let (meeting, met) = (&meeting, &met);
                scope.spawn(move || {
                    let member = meeting.member();
                    for _ in 0..meetings {
                        met.fetch_add(1, Ordering::Relaxed);
                        member.wait();
                    }
                });
            }
            assert_eq!(meeting.members(), 3);
            let (together, parted) = meeting.gather(|| assert_eq!(met.load(Ordering::Relaxed), 3));
            assert!(together <= parted);
            let (later, _) = meeting.gather(|| assert_eq!(met.load(Ordering::Relaxed), 5));
            assert!(parted <= later);
            meeting.gather(|| ());
            assert_eq!(meeting.members(), 0);
        });
    }
}
