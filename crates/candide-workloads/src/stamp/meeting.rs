//! Where threads meet at the end of a part of a program, and the account of the current part.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use candide::Abort;

use crate::workload::lock;

/// A barrier at which threads meet at the end of a part of a program, such as an iteration, of
/// which an account of type `A` is kept. A thread may join or leave at any time: one that leaves
/// has done all the work that it has claimed, and the others go on with the rest. So a part that
/// one run has begun is ended by the next run.
pub(super) struct Meeting<A> {
    state: Mutex<State<A>>,
    changed: Condvar,
}

struct State<A> {
    members: u64,
    waiting: u64,
    /// The number of threads that have gone on since the last part ended.
    gone_on: u64,
    /// Whether one of the waiting threads is ending the part.
    is_ending: bool,
    /// The number of parts that have ended.
    ended: u64,
    account: A,
}

impl<A: Clone> Meeting<A> {
    /// Creates a meeting of no threads, with the account of the first part.
    pub(super) fn new(account: A) -> Meeting<A> {
        let state =
            State { members: 0, waiting: 0, gone_on: 0, is_ending: false, ended: 0, account };
        Meeting { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Adds a thread. Returns the account, too.
    pub(super) fn join(self: &Arc<Self>) -> (Member<A>, A) {
        let mut state = lock(&self.state);
        while state.is_ending {
            state = self.wait(state);
        }
        state.members += 1;
        (Member(self.clone()), state.account.clone())
    }

    /// Returns the account of the current part, and the number of parts that have ended.
    pub(super) fn account(&self) -> (A, u64) {
        let state = lock(&self.state);
        (state.account.clone(), state.ended)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State<A>>) -> MutexGuard<'a, State<A>> {
        self.changed.wait(state).expect("no thread panics while counting")
    }
}

/// A thread that the others wait for, until this value is dropped.
pub(super) struct Member<A>(Arc<Meeting<A>>);

impl<A: Clone> Member<A> {
    /// Enters what the thread has done into the account of the part.
    pub(super) fn enter(&self, add: impl FnOnce(&mut A)) {
        add(&mut lock(&self.0.state).account);
    }

    /// Waits until all threads are at the end of the part. One of them calls `end` with the account
    /// and with the number of threads that begin the next part, whose account `end` returns.
    /// Returns the thread's place among the threads, and the new account.
    pub(super) fn arrive(
        &self,
        mut end: impl FnMut(&A, u64) -> Result<A, Abort>,
    ) -> Result<(u64, A), Abort> {
        let meeting = &*self.0;
        let mut state = lock(&meeting.state);
        let ended = state.ended;
        state.waiting += 1;
        while state.ended == ended {
            if state.waiting < state.members || state.is_ending {
                state = meeting.wait(state);
                continue;
            }
            state.is_ending = true;
            let (account, members) = (state.account.clone(), state.members);
            drop(state);
            let ending = Ending { meeting, next: None };
            ending.finish(end(&account, members)?);
            state = lock(&meeting.state);
        }
        state.gone_on += 1;
        Ok((state.gone_on - 1, state.account.clone()))
    }
}

impl<A> Drop for Member<A> {
    fn drop(&mut self) {
        lock(&self.0.state).members -= 1;
        self.0.changed.notify_all();
    }
}

/// The end of a part, by one thread. If the thread fails meanwhile, it no longer waits.
struct Ending<'a, A> {
    meeting: &'a Meeting<A>,
    next: Option<A>,
}

impl<A> Ending<'_, A> {
    fn finish(mut self, next: A) {
        self.next = Some(next);
    }
}

impl<A> Drop for Ending<'_, A> {
    fn drop(&mut self) {
        let mut state = lock(&self.meeting.state);
        state.is_ending = false;
        match self.next.take() {
            Some(next) => {
                state.account = next;
                state.ended += 1;
                (state.waiting, state.gone_on) = (0, 0);
            }
            None => state.waiting -= 1,
        }
        drop(state);
        self.meeting.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_part_counts_the_work_of_threads_that_left_without_waiting() {
        let meeting = Arc::new(Meeting::new((0, 0)));
        let members: Vec<Member<(u64, u64)>> = (0..4).map(|_| meeting.join().0).collect();
        let places = thread::scope(|scope| {
            let arrive = |(number, member): (u64, Member<(u64, u64)>)| {
                scope.spawn(move || {
                    member.enter(|(_, done)| *done += number);
                    if number == 3 {
                        return None;
                    }
                    let end = |&(part, done): &(u64, u64), members| {
                        assert_eq!((members, done), (3, 6));
                        Ok((part + 1, 0))
                    };
                    let (place, account) = member.arrive(end).expect("nothing fails");
                    assert_eq!(account, (1, 0));
                    Some(place)
                })
            };
            let threads: Vec<_> = (0..).zip(members).map(arrive).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
        });
        let mut places: Vec<u64> = places.into_iter().flatten().collect();
        places.sort_unstable();
        assert_eq!(places, [0, 1, 2]);
        assert_eq!(meeting.account(), ((1, 0), 1));
    }

    #[test]
    fn a_part_whose_end_fails_is_ended_by_another_thread() {
        let meeting = Arc::new(Meeting::new(7));
        let (one, other) = (meeting.join().0, meeting.join().0);
        drop(other);
        let refused = one.arrive(|_, _| Err(Abort::MemoryLimit)).map(|_| ());
        assert_eq!(refused, Err(Abort::MemoryLimit));
        assert_eq!(one.arrive(|part, _| Ok(part + 1)), Ok((0, 8)));
        assert_eq!(meeting.account(), (8, 1));
    }
}
