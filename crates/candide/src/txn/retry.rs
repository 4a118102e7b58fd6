//! The life of a transaction: attempts, pauses, and what the caller gets in the end.

use super::garbage::Garbage;
use super::{Effect, State, Tx};
use crate::epoch::Slot;
use crate::error::Abort;
use crate::protocol::{Engine, Local, Protocol};
use crate::stats::Counters;
use crate::sync::{Duration, Instant, MODELLED, Mutex, Random, lock, thread};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// Failed attempts in a row after which a session asks for the token. By then backoff has had its chance.
const TOKEN_ATTEMPTS: u32 = 32;
/// The longest a transaction waits for the holder of the token, who may be stuck in its closure, or waiting for this very
/// transaction.
const TOKEN_WAIT_MAX: Duration = Duration::from_millis(100);
/// Backoff: the first pause is below this, each following bound is twice the one before, up to the largest.
const BACKOFF_FIRST: Duration = Duration::from_micros(1);
const BACKOFF_MAX: Duration = Duration::from_micros(200);
/// Pauses up to this long are spun; a system call would take longer.
const SPUN_MAX: Duration = Duration::from_micros(20);
/// A session with garbage looks at it once in so many transactions, or when it has grown by so many pieces.
const COLLECT_PERIOD: u32 = 64;
const COLLECT_BUDGET: usize = 256;

/// Limits on retrying.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunOptions {
    attempts_max: Option<u32>,
    deadline: Option<Instant>,
}

impl RunOptions {
    /// No limits: conflicts are retried until the transaction commits.
    pub fn new() -> RunOptions {
        RunOptions::default()
    }

    /// Gives up with [`Abort::AttemptsExhausted`] after `attempts` attempts (at least one is made) have met conflicts.
    #[must_use]
    pub fn attempts_max(self, attempts: u32) -> RunOptions {
        RunOptions { attempts_max: Some(attempts), ..self }
    }

    /// Gives up with [`Abort::DeadlinePassed`] when an attempt meets a conflict after `deadline`. A running attempt is
    /// not interrupted.
    #[must_use]
    pub fn deadline(self, deadline: Instant) -> RunOptions {
        RunOptions { deadline: Some(deadline), ..self }
    }

    /// The refusal due after `failed` attempts have met conflicts.
    fn refusal(&self, failed: u32) -> Option<Abort> {
        if self.attempts_max.is_some_and(|attempts_max| failed >= attempts_max) {
            return Some(Abort::AttemptsExhausted);
        }
        let passed = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        passed.then_some(Abort::DeadlinePassed)
    }
}

/// What others may look at of a session.
#[derive(Debug)]
pub(crate) struct Public {
    pub(crate) slot: Arc<Slot>,
    /// Taken by the session, and by the advancer while the session is idle.
    pub(crate) garbage: Mutex<Garbage>,
    pub(crate) counters: Counters,
}

/// A session's working parts: everything but its hold on the database.
pub(crate) struct Core<P: Protocol> {
    pub(crate) state: RefCell<State<P>>,
    pub(crate) public: Arc<Public>,
    until_collection: u32,
    has_garbage: bool,
}

/// How an attempt ended.
enum Ending<T, E> {
    Committed(T, Vec<Effect>),
    Failed(E),
    Conflict(Abort),
    Panic(Box<dyn std::any::Any + Send>),
}

impl<P: Protocol> Core<P> {
    pub(crate) fn new(engine: &Engine<P>, id: u64, public: Arc<Public>) -> Core<P> {
        let state = State::new(Local::new(engine.id, id));
        Core { state: RefCell::new(state), public, until_collection: COLLECT_PERIOD, has_garbage: false }
    }

    /// Runs `body` until an attempt commits, or ends in an error or panic that is true.
    pub(crate) fn run<T, E: From<Abort>>(
        &mut self,
        engine: &Engine<P>,
        options: &RunOptions,
        mut body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut failed = 0;
        let mut starving = 0;
        let result = loop {
            let ending = self.attempt(engine, failed + 1, &mut body);
            let cause = match ending {
                Ending::Committed(value, effects) => break Ok(Ok((value, effects))),
                Ending::Failed(error) => break Ok(Err(error)),
                Ending::Panic(panic) => break Err(panic),
                Ending::Conflict(cause) => cause,
            };
            failed += 1;
            self.public.counters.aborted(cause);
            if let Some(refusal) = options.refusal(failed) {
                self.public.counters.aborted(refusal);
                break Ok(Err(refusal.into()));
            }
            self.public.counters.retried();
            if cause == Abort::Yielded {
                self.wait_for_token(engine, options);
                continue;
            }
            starving += 1;
            if starving >= TOKEN_ATTEMPTS {
                engine.token.try_take(self.state.get_mut().local.id);
            }
            if engine.options.backoff {
                pause(&mut self.state.get_mut().local.random, starving);
            }
        };
        let local = &mut self.state.get_mut().local;
        local.has_yielded = false;
        if starving >= TOKEN_ATTEMPTS {
            engine.token.release(local.id);
        }
        match result {
            Ok(Ok((value, effects))) => {
                effects.into_iter().for_each(|effect| effect());
                Ok(value)
            }
            Ok(Err(error)) => Err(error),
            Err(panic) => resume_unwind(panic),
        }
    }

    /// One attempt, from pin to unpin.
    #[inline]
    fn attempt<T, E: From<Abort>>(
        &mut self,
        engine: &Engine<P>,
        number: u32,
        body: &mut impl FnMut(&Tx<'_, P>) -> Result<T, E>,
    ) -> Ending<T, E> {
        engine.epochs.pin(&self.public.slot);
        let state = self.state.get_mut();
        state.attempt_number = number;
        state.begin(engine);
        let tx = Tx { engine, state: &self.state, effects: RefCell::new(Vec::new()) };
        let outcome = catch_unwind(AssertUnwindSafe(|| body(&tx)));
        let effects = tx.effects.into_inner();
        let state = self.state.get_mut();
        let ending = match outcome {
            Ok(Ok(value)) => match commit(state, engine) {
                Ok(Ok(())) => {
                    self.public.counters.committed();
                    Ending::Committed(value, effects)
                }
                Ok(Err(abort)) if abort.is_conflict() => Ending::Conflict(abort),
                Ok(Err(abort)) => {
                    self.public.counters.aborted(abort);
                    Ending::Failed(abort.into())
                }
                Err(panic) => Ending::Panic(panic),
            },
            Ok(Err(error)) => match commit_error(state, engine) {
                Ok(Ok(None)) => {
                    self.public.counters.user_error();
                    Ending::Failed(error)
                }
                Ok(Ok(Some(earlier))) => {
                    self.public.counters.aborted(earlier);
                    Ending::Failed(earlier.into())
                }
                Ok(Err(abort)) => Ending::Conflict(abort),
                Err(panic) => Ending::Panic(panic),
            },
            // A panic may come of values that do not belong together; then it never happened.
            Err(panic) => match commit_error(state, engine) {
                Ok(Err(abort)) if abort.is_conflict() => Ending::Conflict(abort),
                _ => Ending::Panic(panic),
            },
        };
        state.finish();
        self.collect_garbage(engine);
        engine.epochs.unpin(&self.public.slot);
        ending
    }

    /// Hands garbage over, and now and then collects some of it. Pinned.
    #[inline]
    fn collect_garbage(&mut self, engine: &Engine<P>) {
        let local = &mut self.state.get_mut().local;
        if !self.has_garbage && local.burials.is_empty() && local.retired.is_empty() {
            return;
        }
        let mut garbage = lock(&self.public.garbage);
        garbage.take_from(engine, local);
        self.until_collection -= 1;
        if self.until_collection == 0 {
            self.until_collection = COLLECT_PERIOD;
            garbage.collect(engine, local, COLLECT_BUDGET);
        }
        self.has_garbage = !garbage.is_empty();
    }

    /// Waits, unpinned, until nobody has the token; not for ever.
    fn wait_for_token(&mut self, engine: &Engine<P>, options: &RunOptions) {
        let begun = Instant::now();
        let id = self.state.get_mut().local.id;
        while engine.token.is_others(id) && begun.elapsed() < TOKEN_WAIT_MAX && options.refusal(0).is_none() {
            thread::yield_now();
        }
        self.state.get_mut().local.has_yielded = engine.token.is_others(id);
    }
}

/// Commits; a panic of a user's updater comes back as such, with the attempt ended.
#[inline]
fn commit<P: Protocol>(state: &mut State<P>, engine: &Engine<P>) -> std::thread::Result<Result<(), Abort>> {
    if state.writes.has_users() {
        return catch_unwind(AssertUnwindSafe(|| state.commit(engine).map(|_| ())));
    }
    Ok(state.commit(engine).map(|_| ()))
}

/// Validates what an error or a panic of the closure was based on.
#[cold]
fn commit_error<P: Protocol>(
    state: &mut State<P>,
    engine: &Engine<P>,
) -> std::thread::Result<Result<Option<Abort>, Abort>> {
    let outcome = catch_unwind(AssertUnwindSafe(|| state.commit_error(engine)));
    if outcome.is_err() {
        state.abort(engine);
    }
    outcome
}

/// A randomized pause after the `failed`th conflict in a row. Nothing is held or pinned meanwhile.
fn pause(random: &mut Random, failed: u32) {
    if MODELLED {
        return thread::yield_now();
    }
    let bound = (BACKOFF_FIRST * (1 << failed.min(10))).min(BACKOFF_MAX);
    let wait = Duration::from_nanos(random.below(bound.as_nanos() as u64));
    let begun = Instant::now();
    while begun.elapsed() < wait {
        if wait <= SPUN_MAX { std::hint::spin_loop() } else { thread::yield_now() }
    }
}
