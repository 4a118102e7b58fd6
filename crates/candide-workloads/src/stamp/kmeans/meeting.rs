//! Where threads meet at the end of an iteration, and the account of the current iteration.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use candide::Abort;

use crate::workload::lock;

/// What a thread has done in the current iteration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Part {
    /// The number of chunks that it has claimed.
    pub(super) claims: u64,
    /// The number of points that have changed their clusters.
    pub(super) changed: u64,
}

/// The account of the current iteration.
#[derive(Debug, Clone)]
pub(super) struct Iteration {
    /// The iteration's number within its clustering, from 0.
    pub(super) number: usize,
    /// The coordinates of the centres, which do not change within the iteration.
    pub(super) centres: Arc<Vec<f32>>,
    /// The number of chunks that threads have without claiming them.
    pub(super) given: u64,
    /// What threads have done that are at its end or have left.
    pub(super) done: Part,
}

/// A barrier at which threads meet at the end of an iteration. A thread may join or leave at any
/// time: one that leaves has worked on all points that it has claimed, and the others go on with
/// the rest. So an iteration that one run has begun is ended by the next run.
pub(super) struct Meeting {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    members: u64,
    waiting: u64,
    /// The number of threads that have gone on since the last iteration ended.
    gone_on: u64,
    /// Whether one of the waiting threads is ending the iteration.
    is_ending: bool,
    /// The number of iterations that have ended.
    ended: u64,
    iteration: Iteration,
}

impl Meeting {
    /// Creates a meeting of no threads, before the first iteration.
    pub(super) fn new(centres: Arc<Vec<f32>>) -> Meeting {
        let iteration = Iteration { number: 0, centres, given: 0, done: Part::default() };
        let state =
            State { members: 0, waiting: 0, gone_on: 0, is_ending: false, ended: 0, iteration };
        Meeting { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Adds a thread. It has no points that it need not claim.
    pub(super) fn join(self: &Arc<Self>) -> (Member, Arc<Vec<f32>>) {
        let mut state = lock(&self.state);
        while state.is_ending {
            state = self.wait(state);
        }
        state.members += 1;
        (Member(self.clone()), state.iteration.centres.clone())
    }

    /// Returns the account of the current iteration, and the number of iterations that have ended.
    pub(super) fn account(&self) -> (Iteration, u64) {
        let state = lock(&self.state);
        (state.iteration.clone(), state.ended)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).expect("no thread panics while counting")
    }
}

/// A thread that the others wait for, until this value is dropped.
pub(super) struct Member(Arc<Meeting>);

impl Member {
    /// Enters what the thread has done into the account of the iteration.
    pub(super) fn enter(&self, part: Part) {
        let mut state = lock(&self.0.state);
        state.iteration.done.claims += part.claims;
        state.iteration.done.changed += part.changed;
    }

    /// Waits until all threads are at the end of the iteration. One of them calls `end` with the
    /// account and with the number of threads that begin the next iteration, whose number and
    /// centres `end` returns. Returns the thread's place among the threads and the centres.
    pub(super) fn arrive(
        &self,
        mut end: impl FnMut(&Iteration, u64) -> Result<(usize, Arc<Vec<f32>>), Abort>,
    ) -> Result<(u64, Arc<Vec<f32>>), Abort> {
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
            let (iteration, members) = (state.iteration.clone(), state.members);
            drop(state);
            let ending = Ending { meeting, next: None };
            ending.finish(end(&iteration, members)?);
            state = lock(&meeting.state);
        }
        state.gone_on += 1;
        Ok((state.gone_on - 1, state.iteration.centres.clone()))
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        lock(&self.0.state).members -= 1;
        self.0.changed.notify_all();
    }
}

/// The end of an iteration, by one thread. If the thread fails meanwhile, it no longer waits.
struct Ending<'a> {
    meeting: &'a Meeting,
    next: Option<(usize, Arc<Vec<f32>>)>,
}

impl Ending<'_> {
    fn finish(mut self, next: (usize, Arc<Vec<f32>>)) {
        self.next = Some(next);
    }
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.meeting.state);
        state.is_ending = false;
        match self.next.take() {
            Some((number, centres)) => {
                let given = state.members;
                state.iteration = Iteration { number, centres, given, done: Part::default() };
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
    fn an_iteration_counts_the_points_of_threads_that_left_without_waiting() {
        let meeting = Arc::new(Meeting::new(Arc::new(vec![0.0])));
        let members: Vec<Member> = (0..4).map(|_| meeting.join().0).collect();
        let places = thread::scope(|scope| {
            let arrive = |(number, member): (u64, Member)| {
                scope.spawn(move || {
                    member.enter(Part { claims: 1, changed: number });
                    if number == 3 {
                        return None;
                    }
                    let end = |iteration: &Iteration, members| {
                        assert_eq!(members, 3);
                        assert_eq!(iteration.done, Part { claims: 4, changed: 6 });
                        Ok((iteration.number + 1, Arc::new(vec![1.0])))
                    };
                    let (place, centres) = member.arrive(end).expect("nothing fails");
                    assert_eq!(*centres, [1.0]);
                    Some(place)
                })
            };
            let threads: Vec<_> = (0..).zip(members).map(arrive).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
        });
        let mut places: Vec<u64> = places.into_iter().flatten().collect();
        places.sort_unstable();
        assert_eq!(places, [0, 1, 2]);
        let (iteration, ended) = meeting.account();
        assert_eq!((iteration.number, iteration.given, ended), (1, 3, 1));
        assert_eq!(iteration.done, Part::default());
    }

    #[test]
    fn an_iteration_whose_end_fails_is_ended_by_another_thread() {
        let meeting = Arc::new(Meeting::new(Arc::new(Vec::new())));
        let (one, other) = (meeting.join().0, meeting.join().0);
        drop(other);
        let refused = one.arrive(|_, _| Err(Abort::MemoryLimit)).map(|_| ());
        assert_eq!(refused, Err(Abort::MemoryLimit));
        let next = |iteration: &Iteration, _| Ok((iteration.number + 1, Arc::default()));
        assert_eq!(one.arrive(next).map(|(place, _)| place), Ok(0));
        assert_eq!(meeting.account().1, 1);
    }
}
