//! How far a standby has come, for threads that wait for it.

#![forbid(unsafe_code)]

use super::error::WaitError;
use super::generations::Generations;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How far a standby has come.
#[derive(Debug, Default)]
pub(super) struct Reached {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    generations: Generations,
    applied: (u64, u64),
    failure: Option<String>,
    trouble: Option<String>,
    is_to_stop: bool,
}

impl Reached {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.changed.notify_all();
    }

    /// Notes that an object has been applied: its generation, the stamp generation of transactions
    /// of that one's leader, and the stamp generation and the cut up to which all have been
    /// applied.
    pub(super) fn reach(&self, generation: u64, own: u64, state_of: (u64, u64)) {
        self.change(|state| state.generations.reach(generation, own, state_of));
    }

    /// Begins with what was noted of generations.
    pub(super) fn begin(&self, generations: Generations) {
        self.change(|state| state.generations = generations);
    }

    /// Notes that stamps begin anew: no transactions of earlier generations come any more.
    pub(super) fn end(&self) {
        self.change(|state| state.generations.end());
    }

    /// Notes that a snapshot has taken the place of objects: what they had is not known.
    pub(super) fn leap(&self) {
        self.change(|state| state.generations.leap());
    }

    /// Notes the last object that has been applied: its generation and its place.
    pub(super) fn apply(&self, generation: u64, place: u64) {
        self.change(|state| state.applied = (generation, place));
    }

    pub(super) fn applied(&self) -> (u64, u64) {
        self.state().applied
    }

    pub(super) fn stop(&self) {
        self.change(|state| state.is_to_stop = true);
    }

    pub(super) fn is_to_stop(&self) -> bool {
        self.state().is_to_stop
    }

    pub(super) fn fail(&self, what: String) {
        self.change(|state| state.failure = Some(what));
    }

    pub(super) fn failure(&self) -> Option<String> {
        self.state().failure.clone()
    }

    pub(super) fn set_trouble(&self, trouble: Option<String>) {
        self.state().trouble = trouble;
    }

    pub(super) fn trouble(&self) -> Option<String> {
        self.state().trouble.clone()
    }

    /// Waits until a stamp of a generation has been reached.
    pub(super) fn wait_for(
        &self,
        generation: u64,
        stamp: u64,
        timeout: Duration,
    ) -> Result<(), WaitError> {
        let until = Instant::now().checked_add(timeout);
        let mut state = self.state();
        loop {
            match state.generations.has(generation, stamp) {
                Some(true) => return Ok(()),
                Some(false) => return Err(WaitError::Lost),
                None => {}
            }
            if let Some(failure) = &state.failure {
                return Err(WaitError::Stopped(failure.clone()));
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            state = match left {
                Some(Duration::ZERO) => return Err(WaitError::Timeout),
                Some(left) => {
                    let waited = self.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}
