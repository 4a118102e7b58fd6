//! The progress of the log: the commits that have reached each level, and the threads and tasks
//! that wait.

#![forbid(unsafe_code)]

use super::level::Level;
use crate::error::Abort;
use crate::sync::{AtomicBool, AtomicU64, Duration, Instant, Ordering, Signal, is_in_step};
use candide_log::store::Remote;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Waker;

/// The progress of a log. A number of a commit is its stamp.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// The cuts up to which commits are written, and durable. The cuts are changed under the lock
    /// of `signal`.
    written: AtomicU64,
    durable: AtomicU64,
    /// The cut up to which a copy elsewhere has the commits, and the number of the last append to
    /// it that has succeeded. Both are changed under the lock of `signal`.
    replicated: AtomicU64,
    appended: AtomicU64,
    /// The copy elsewhere; `None` if there is none.
    remote: Option<Arc<dyn Remote>>,
    /// Whether the log has failed; and, in `obstacles`, what else keeps commits from writing: bits
    /// of [`FULL`] and [`BEHIND`], which are changed under the lock of `signal`.
    has_failed: AtomicBool,
    obstacles: AtomicU64,
    /// The place where the logger and the threads that wait for a level sleep.
    signal: Signal<State>,
}

/// The disk has no room for more.
const FULL: u64 = 1;
/// The copy elsewhere lags too much.
const BEHIND: u64 = 2;

/// What an acknowledgement awaits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Awaited {
    /// The stamp up to which commits have to reach the level.
    pub(crate) stamp: u64,
    /// The number of the append to the copy elsewhere that has to succeed, at the level
    /// [`Level::Replicated`] only. 0 for a transaction that has written: its own record is in an
    /// append that began after it.
    pub(crate) append: u64,
}

impl From<u64> for Awaited {
    fn from(stamp: u64) -> Awaited {
        Awaited { stamp, append: 0 }
    }
}

#[derive(Debug, Default)]
struct State {
    /// The largest stamp for which a thread or a task waits.
    wanted: u64,
    /// Whether the logger must end.
    stops: bool,
    /// Whether a session is to be emptied soon, because its buffer is large or the logger had
    /// nothing to do.
    is_called: bool,
    /// The reason for which the log has failed.
    failure: Option<Arc<std::io::Error>>,
    /// Tasks that wait, with the stamp and the level.
    tasks: Vec<(Awaited, Level, Waker)>,
    /// Tasks that need not wait any more, and are still to be woken.
    due: Vec<Waker>,
}

impl State {
    /// Notes that these tasks are to be woken.
    fn make_due(&mut self, is_due: impl Fn(&(Awaited, Level, Waker)) -> bool) {
        let (due, rest) =
            std::mem::take(&mut self.tasks).into_iter().partition::<Vec<_>, _>(is_due);
        self.tasks = rest;
        self.due.extend(due.into_iter().map(|(_, _, waker)| waker));
    }
}

/// The reason why the logger wakes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    Round,
    Stop,
}

impl Progress {
    /// Returns the progress of a log of which there is a copy elsewhere.
    pub(super) fn with_remote(remote: Arc<dyn Remote>) -> Progress {
        Progress { remote: Some(remote), ..Progress::default() }
    }

    /// Returns the copy elsewhere.
    pub(crate) fn remote(&self) -> Option<&Arc<dyn Remote>> {
        self.remote.as_ref()
    }

    /// Returns the copy elsewhere, if it gets what is written.
    pub(crate) fn copy(&self) -> Option<&Arc<dyn Remote>> {
        self.remote.as_ref().filter(|remote| remote.copies())
    }

    /// Returns the number of the append that begins next, or 0 without a copy elsewhere.
    pub(crate) fn next_append(&self) -> u64 {
        self.remote.as_ref().map_or(0, |remote| remote.appends() + 1)
    }

    /// Returns the cut up to which commits have reached a level.
    #[inline]
    pub(crate) fn cut(&self, level: Level) -> u64 {
        match level {
            Level::Memory => u64::MAX,
            // Acquire: a thread that learns that a commit is durable acts on it.
            Level::Written => self.written.load(Ordering::Acquire),
            Level::Durable => self.durable.load(Ordering::Acquire),
            Level::Replicated => self.replicated.load(Ordering::Acquire),
        }
    }

    /// Returns whether what is awaited has reached a level.
    #[inline]
    pub(crate) fn has_reached(&self, awaited: impl Into<Awaited>, level: Level) -> bool {
        let Awaited { stamp, append } = awaited.into();
        self.cut(level) >= stamp && (level < Level::Replicated || self.has_appended(append))
    }

    fn has_appended(&self, append: u64) -> bool {
        // Acquire: as for a cut.
        self.remote.is_some() && self.appended.load(Ordering::Acquire) >= append
    }

    /// Checks that a commit may write.
    ///
    /// # Errors
    /// [`Abort::LogFailed`], [`Abort::DiskFull`]; [`Abort::Yielded`] if the commit has to wait
    /// ([`Progress::wait_while_behind`]).
    #[inline]
    pub(crate) fn admit(&self) -> Result<(), Abort> {
        if self.has_failed.load(Ordering::Relaxed) || self.obstacles.load(Ordering::Relaxed) != 0 {
            return Err(self.refusal());
        }
        Ok(())
    }

    #[cold]
    fn refusal(&self) -> Abort {
        if self.has_failed.load(Ordering::Relaxed) {
            Abort::LogFailed
        } else if self.is_full() {
            Abort::DiskFull
        } else {
            Abort::Yielded
        }
    }

    /// Waits until what is awaited has reached a level, but no longer than until `deadline`. Has
    /// the logger begin a round for the commit.
    ///
    /// # Errors
    /// [`Abort::LogFailed`] if the log has failed before that, and [`Abort::OutcomeUnknown`] if
    /// `deadline` has come before that; [`Abort::Nested`] if the thread runs a step, and
    /// [`Abort::NotReplicated`] if there is no copy elsewhere and the level needs one.
    pub(crate) fn wait(
        &self,
        awaited: impl Into<Awaited>,
        level: Level,
        deadline: Option<Instant>,
    ) -> Result<(), Abort> {
        self.wait_unless(awaited.into(), level, deadline, || false)
    }

    /// Waits as [`Progress::wait`] does without a deadline, but only while the disk has room for
    /// the log.
    ///
    /// # Errors
    /// [`Abort::LogFailed`], [`Abort::DiskFull`]; [`Abort::Nested`] if the thread runs a step.
    pub(crate) fn wait_while_room(&self, stamp: u64, level: Level) -> Result<(), Abort> {
        self.wait_unless(stamp.into(), level, None, || self.is_full())
    }

    fn wait_unless(
        &self,
        awaited: Awaited,
        level: Level,
        deadline: Option<Instant>,
        lacks_room: impl Fn() -> bool,
    ) -> Result<(), Abort> {
        if self.has_reached(awaited, level) {
            return Ok(());
        }
        // The logger may wait for the turn of the step's transaction.
        if is_in_step() {
            return Err(Abort::Nested);
        }
        self.want(awaited, level)?;
        let mut state = self.signal.lock();
        self.call_for(&mut state, awaited.stamp);
        let outcome = |state: &mut State| {
            if self.has_reached(awaited, level) {
                Some(Ok(()))
            } else if state.failure.is_some() {
                Some(Err(Abort::LogFailed))
            } else if lacks_room() {
                Some(Err(Abort::DiskFull))
            } else {
                None
            }
        };
        self.signal.await_work(state, deadline, outcome).1.unwrap_or(Err(Abort::OutcomeUnknown))
    }

    /// Tells the copy elsewhere that a thread or a task waits for it, if the level needs that.
    fn want(&self, awaited: Awaited, level: Level) -> Result<(), Abort> {
        if level == Level::Replicated {
            let remote = self.copy().ok_or(Abort::NotReplicated)?;
            remote.want(awaited.stamp, awaited.append);
        }
        Ok(())
    }

    /// Returns whether the copy elsewhere lags too much: commits that write wait.
    pub(crate) fn is_behind(&self) -> bool {
        self.obstacles.load(Ordering::Relaxed) & BEHIND != 0
    }

    /// Waits while the copy elsewhere lags too much, but no longer than until `deadline`.
    ///
    /// # Errors
    /// [`Abort::LogFailed`], [`Abort::DeadlinePassed`]; [`Abort::Nested`] if the thread runs a
    /// step.
    #[cold]
    pub(crate) fn wait_while_behind(&self, deadline: Option<Instant>) -> Result<(), Abort> {
        if is_in_step() {
            return Err(Abort::Nested);
        }
        let outcome = |state: &mut State| match state.failure {
            Some(_) => Some(Err(Abort::LogFailed)),
            None => (!self.is_behind()).then_some(Ok(())),
        };
        let waited = self.signal.await_work(self.signal.lock(), deadline, outcome).1;
        waited.unwrap_or(Err(Abort::DeadlinePassed))
    }

    /// Waits at most until `is_over` returns true. The logger's rounds wake the caller, and so does
    /// a full disk.
    pub(crate) fn wait_until(&self, is_over: impl Fn() -> bool) {
        let (_state, _) = self.signal.await_work(self.signal.lock(), None, |state| {
            if is_over() || state.failure.is_some() {
                return Some(());
            }
            state.is_called = true;
            self.signal.wake_worker();
            None
        });
    }

    /// Wakes `waker` when a commit with this stamp has reached a level, or when the log fails.
    /// Returns the result if that has happened already. `known` is the waker of the caller's last
    /// call with this stamp and level, if there was one. In a step, where the task may wait for the
    /// step's own transaction, the result is [`Abort::Nested`] instead of a wait.
    pub(crate) fn poll(
        &self,
        awaited: impl Into<Awaited>,
        level: Level,
        waker: &Waker,
        known: &mut Option<Waker>,
    ) -> Option<Result<(), Abort>> {
        let awaited = awaited.into();
        let mut state = self.signal.lock();
        if self.has_reached(awaited, level) {
            return Some(Ok(()));
        }
        if state.failure.is_some() {
            return Some(Err(Abort::LogFailed));
        }
        if is_in_step() {
            return Some(Err(Abort::Nested));
        }
        // A waker stays in the list until one of the conditions above holds.
        if !known.as_ref().is_some_and(|known| known.will_wake(waker)) {
            state.tasks.push((awaited, level, waker.clone()));
            *known = Some(waker.clone());
        }
        self.call_for(&mut state, awaited.stamp);
        None
    }

    fn call_for(&self, state: &mut State, stamp: u64) {
        if state.wanted < stamp {
            state.wanted = stamp;
            self.signal.wake_worker();
        }
    }

    /// Lets the logger begin a round soon.
    #[cold]
    pub(crate) fn call(&self) {
        self.signal.call(|state| state.is_called = true);
    }

    /// Lets the logger end.
    pub(crate) fn stop(&self) {
        self.signal.call(|state| state.stops = true);
    }

    /// Waits, for the logger, until a round is wanted, the logger is to stop, or `patience` has
    /// ended; `None` waits without end.
    pub(super) fn await_call(&self, patience: Option<Duration>) -> Call {
        let until = patience.and_then(|patience| Instant::now().checked_add(patience));
        let call = |state: &mut State| {
            if state.stops {
                return Some(Call::Stop);
            }
            let is_called = std::mem::take(&mut state.is_called);
            let is_wanted = state.wanted > self.durable.load(Ordering::Relaxed);
            ((is_called || is_wanted) && state.failure.is_none()).then_some(Call::Round)
        };
        self.signal.await_call(until, call).unwrap_or(Call::Round)
    }

    /// Publishes the cut up to which commits have reached a level, and wakes the threads that wait
    /// for it. [`Progress::wake_due`] wakes the tasks.
    pub(super) fn reach(&self, level: Level, cut: u64) {
        let mut state = self.signal.lock();
        if level >= Level::Durable {
            self.durable.fetch_max(cut, Ordering::Release);
        }
        self.written.fetch_max(cut, Ordering::Release);
        state.make_due(|&(awaited, level, _)| self.has_reached(awaited, level));
        drop(state);
        self.signal.wake_waiters();
    }

    /// Publishes that the copy elsewhere has all commits up to a cut, by an append, as
    /// [`Progress::reach`] does. Tasks wait only for lower levels.
    pub(crate) fn reach_remote(&self, cut: u64, append: u64) {
        let state = self.signal.lock();
        self.replicated.fetch_max(cut, Ordering::Release);
        self.appended.fetch_max(append, Ordering::Release);
        drop(state);
        self.signal.wake_waiters();
    }

    /// Publishes whether the disk has no room for more.
    pub(crate) fn set_full(&self, is_full: bool) {
        self.set_obstacle(FULL, is_full);
    }

    /// Publishes whether the copy elsewhere lags too much.
    pub(crate) fn set_behind(&self, is_behind: bool) {
        self.set_obstacle(BEHIND, is_behind);
    }

    fn set_obstacle(&self, bit: u64, is_set: bool) {
        if (self.obstacles.load(Ordering::Relaxed) & bit != 0) == is_set {
            return;
        }
        let state = self.signal.lock();
        let others = self.obstacles.load(Ordering::Relaxed) & !bit;
        self.obstacles.store(if is_set { others | bit } else { others }, Ordering::Relaxed);
        drop(state);
        // Some threads wait only while there is room.
        self.signal.wake_waiters();
    }

    /// Publishes that the log has failed, from which it does not recover. [`Progress::wake_due`]
    /// wakes the tasks.
    pub(crate) fn fail(&self, failure: std::io::Error) {
        let mut state = self.signal.lock();
        state.failure.get_or_insert_with(|| Arc::new(failure));
        self.has_failed.store(true, Ordering::Relaxed);
        state.make_due(|_| true);
        drop(state);
        self.signal.wake_waiters();
    }

    /// Wakes the tasks that need not wait any more. A waker is the program's code, which may panic,
    /// or drop the last handle of the database and so close the log. The caller holds no lock.
    pub(crate) fn wake_due(&self) {
        let due = std::mem::take(&mut self.signal.lock().due);
        for waker in due {
            // The panic hook has reported the panic.
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
    }

    /// Publishes that the log is closed. Commits that are not durable never become durable.
    pub(super) fn close(&self) {
        self.fail(std::io::Error::other("the database has been closed"));
    }

    /// Returns the reason for which the log has failed.
    pub(crate) fn failure(&self) -> Option<Arc<std::io::Error>> {
        self.signal.lock().failure.clone()
    }

    /// Returns whether the disk has no room for more.
    pub(crate) fn is_full(&self) -> bool {
        self.obstacles.load(Ordering::Relaxed) & FULL != 0
    }

    /// Returns whether the log has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }
}
