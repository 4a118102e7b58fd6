//! Running a transaction: attempts, backoff, and the result for the caller.

#![forbid(unsafe_code)]

use super::ends::Unwound;
use super::observed::{Kept, Observed};
use super::options::RunOptions;
use super::state::NO_UNITS;
use super::tx::{Effects, Tx};
use super::{Conflict, State};
use crate::engine::own_thread::{self, Held};
use crate::engine::{
    Backlog, Common, Context, Engine, InPlace, KnownTables, Protocol, ReadView, TableCore,
    Unwatched, VALUES_AT_ONCE, Versions, Watch, Worker, take_buffer,
};
use crate::epoch::{Epoch, Epochs, Slot};
use crate::error::Abort;
use crate::factor::Factor;
use crate::gc::{Garbage, LeftValues};
use crate::index::Found;
use crate::log::{Awaited, Level};
use crate::record::{CellAt, PlacedUnit};
use crate::schema::Words;
use crate::stats::{Counters, NamedCount, Names, NamesByAddress, SessionNames};
use crate::sync::{
    Duration, Exclusive, Instant, MODELLED, Mutex, MutexGuard, Point, Random, Turn, Turns, Wait,
    Waited, Wish, lock, pass, patience, sleep, thread, try_lock,
};
use std::any::Any;
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// The number of failed attempts in a row after which a session requests the token. By then,
/// backoff alone has not helped.
const TOKEN_ATTEMPTS: u32 = 32;
/// The longest time that a transaction waits for the holder of the token. The holder may be stuck
/// in its closure, or may be waiting for this very transaction.
const TOKEN_WAIT_MAX: Duration = Duration::from_millis(100);
/// The longest time that a transaction waits, between two attempts, for the lock on which it has
/// failed.
const LOCK_WAIT_MAX: Duration = Duration::from_millis(10);
/// The bound of the pause after a transaction's first conflict. Each further conflict doubles the
/// bound. Which lengths are best depends on the machine and on the workload.
const BACKOFF_FIRST: Duration = Duration::from_micros(2);
/// The largest bound of a pause after a conflict.
const BACKOFF_MAX: Duration = Duration::from_micros(200);
/// The largest number of values that a transaction keeps, between two attempts, to be dropped at
/// its end.
const VALUES_KEPT: usize = 64;
/// The longest pause that is spun. For a shorter pause, a system call would take longer than the
/// pause.
const SPUN_MAX: Duration = Duration::from_micros(20);

/// The part of a session that other threads may access.
#[derive(Debug)]
pub(crate) struct SessionShared<B> {
    /// The session's number.
    pub(crate) session: u64,
    pub(crate) slot: Arc<Slot>,
    /// Locked by the session, and also by the advancer while the session is idle or in a long
    /// report.
    garbage: Mutex<Garbage<B>>,
    /// The part of the garbage that the session adds to without the lock.
    left_values: LeftValues,
    pub(crate) counters: Counters,
    /// The counts of transactions with a name.
    pub(crate) names: SessionNames,
    pub(crate) known_tables: Arc<KnownTables>,
}

impl<B: Backlog> SessionShared<B> {
    /// Makes the part of the session numbered `session`.
    pub(crate) fn new(session: u64, slot: Arc<Slot>) -> SessionShared<B> {
        SessionShared {
            session,
            slot,
            garbage: Mutex::new(Garbage::default()),
            left_values: LeftValues::default(),
            counters: Counters::new(),
            names: SessionNames::default(),
            known_tables: Arc::default(),
        }
    }

    /// Locks all garbage of the session.
    #[inline]
    pub(crate) fn garbage(&self, epochs: &Epochs) -> MutexGuard<'_, Garbage<B>> {
        let mut garbage = lock(&self.garbage);
        garbage.take_values(epochs, &self.left_values);
        garbage
    }

    /// Locks all garbage of the session, if it is not locked.
    pub(crate) fn try_garbage(&self, epochs: &Epochs) -> Option<MutexGuard<'_, Garbage<B>>> {
        let mut garbage = try_lock(&self.garbage)?;
        garbage.take_values(epochs, &self.left_values);
        Some(garbage)
    }

    /// Returns whether the session has left values outside of its locked garbage.
    pub(crate) fn has_left_values(&self) -> bool {
        !self.left_values.is_empty()
    }
}

/// The working parts of a session, without its reference to the database.
pub(crate) struct TxnRunner<P: Protocol> {
    pub(crate) state: RefCell<State<P>>,
    pub(crate) public: Arc<SessionShared<P::Backlog>>,
    has_garbage: bool,
    /// The value of [`Epochs::progress`](crate::epoch::Epochs::progress) at the last collection.
    /// While it is unchanged, nothing new can be collected; zero if the last collection was not
    /// finished.
    collected_at: u64,
    names: NamesByAddress,
    observed: Kept,
}

/// The engine's verdict on an attempt.
enum Verdict<'e> {
    /// The closure's result is returned: its value, its error, or its panic.
    Stands,
    /// The attempt has ended in this outcome, which replaces the closure's result.
    Outcome(Abort),
    /// The attempt has no effect and is repeated.
    Conflict(Abort),
    /// The attempt has no effect and is repeated when something has changed.
    Retry(Change<'e>),
    /// An updater has panicked.
    Panic(Panic),
}

/// The reason for another attempt.
enum Again<'e> {
    Conflict(Abort),
    Retry(Change<'e>),
}

/// The change that an attempt awaits which has called [`Tx::retry`].
enum Change<'e> {
    /// A change of what is watched.
    Watched(Box<Watch<'e>>),
    /// A change that has come already.
    Made,
    /// None: a unit that the attempt has observed was locked, and the session has waited for that
    /// lock instead.
    Unknown,
}

type Panic = Box<dyn Any + Send>;

/// An attempt that has not committed: the verdict, and the closure's result.
type Ended<'e, T, E> = (Verdict<'e>, Result<Result<T, E>, Panic>);

impl<P: Protocol> TxnRunner<P> {
    pub(crate) fn new(
        engine: &Engine<P>,
        id: u64,
        public: Arc<SessionShared<P::Backlog>>,
    ) -> TxnRunner<P> {
        let mut worker = Worker::new(engine.id, id, public.slot.clone());
        worker.local.known_tables = public.known_tables.clone();
        let state = RefCell::new(State::new(engine, worker, public.counters.locks()));
        let (names, observed) = Default::default();
        TxnRunner { state, public, has_garbage: false, collected_at: 0, names, observed }
    }

    /// Runs a transaction as [`TxnRunner::run`] does, and counts it under its name.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn run_counted<T, E: From<Abort>>(
        &mut self,
        engine: &Engine<P>,
        options: &RunOptions<'_>,
        read_view: ReadView,
        effects: &Effects,
        body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
    ) -> Result<T, E> {
        let observed = self.observed.begin(options.name, self.public.session);
        let (name, end) = (options.name, NamedCount::Error);
        let mut naming = Naming { core: self, engine, name, end, observed };
        let result = naming.core.run(engine, options, read_view, effects, body);
        naming.observed.return_to_caller();
        if result.is_ok() {
            naming.end = NamedCount::Commit;
        }
        result
    }

    /// Counts a transaction called `name`.
    #[inline(never)]
    fn count_named(&mut self, engine: &Engine<P>, name: &'static str, what: NamedCount) {
        self.names.count(&engine.names, &self.public.names, name, what);
    }

    /// Counts a transaction that is given up or refused.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn count_refusal(&mut self, engine: &Engine<P>, refusal: Abort) {
        self.public.counters.aborted(refusal);
        let names = (&engine.names, &self.public.names);
        self.observed.note_abort(&mut self.names, names, (None, refusal));
    }

    /// Notes the end of an attempt that has not committed, if the transaction is observed. The
    /// session is not pinned any more.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn observe_end(&mut self, engine: &Engine<P>, verdict: &Verdict<'_>) {
        let abort = match verdict {
            Verdict::Stands | Verdict::Panic(_) => return self.observed.note(None),
            Verdict::Outcome(abort) | Verdict::Conflict(abort) => *abort,
            Verdict::Retry(_) => Abort::Retry,
        };
        let conflict = &self.state.get_mut().worker.local.conflict;
        let table = conflict.filter(|note| note.cause == abort).and_then(|note| note.table);
        let names = (&engine.names, &self.public.names);
        self.observed.note_abort(&mut self.names, names, (table, abort));
    }

    /// Leaves the counts by name to `names`, when the session ends.
    pub(crate) fn leave_names(&self, names: &Names) {
        if !self.names.is_empty() {
            names.keep(&self.public.names);
        }
    }

    /// Runs `body` until an attempt commits, or ends in a validated error or panic. After a commit,
    /// the caller runs `effects` once the session is free again.
    #[inline]
    pub(crate) fn run<T, E: From<Abort>>(
        &mut self,
        engine: &Engine<P>,
        options: &RunOptions<'_>,
        read_view: ReadView,
        effects: &Effects,
        mut body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
    ) -> Result<T, E> {
        let state = self.state.get_mut();
        state.attempt_number = 0;
        let local = &mut state.worker.local;
        (local.has_yielded, local.read_view) = (false, read_view);
        if !local.wanted.is_as_new() {
            local.wanted.clear();
        }
        let mut starvation = None;
        loop {
            if let Some(log) = &mut self.state.get_mut().log
                && log.begin()
            {
                self.state.get_mut().begin_view(engine, read_view);
            }
            let ended = match self.attempt(engine, options, effects, &mut body) {
                Ok(value) if self.state.get_mut().log.is_none() => return Ok(value),
                Ok(value) => {
                    return match self.acknowledge(engine, options, effects, &mut starvation) {
                        Ok(()) => Ok(value),
                        Err(abort) => end_unacknowledged(value, abort, effects),
                    };
                }
                Err(ended) => ended,
            };
            let end = self.after_attempt(engine, options, effects, ended, &mut starvation);
            if let ControlFlow::Break(result) = end {
                return result;
            }
        }
    }

    /// Ends the transaction with the result of its last attempt, which has not committed; or waits
    /// for what the next attempt needs.
    #[cold]
    #[inline(never)]
    fn after_attempt<'e, T, E: From<Abort>>(
        &mut self,
        engine: &'e Engine<P>,
        options: &RunOptions<'_>,
        effects: &Effects,
        (verdict, result): Ended<'e, T, E>,
        starvation: &mut Option<StarvationGuard<'e>>,
    ) -> ControlFlow<Result<T, E>> {
        if !matches!(verdict, Verdict::Conflict(_) | Verdict::Retry(_))
            && let Err(abort) = self.acknowledge(engine, options, effects, starvation)
        {
            return ControlFlow::Break(end_unacknowledged(result, abort, effects));
        }
        let again = settle(verdict, result, effects)?;
        let failed = self.state.get_mut().attempt_number;
        let refusal = match again {
            Again::Conflict(cause) => {
                effects.leave_values(&engine.shared_garbage, VALUES_KEPT);
                self.after_conflict(engine, options, cause, failed, starvation)
            }
            Again::Retry(change) => {
                effects.leave_values(&engine.shared_garbage, 0);
                self.await_change(engine, options, change, failed, starvation)
            }
        };
        match refusal {
            Some(refusal) => ControlFlow::Break(Err(refusal.into())),
            None => ControlFlow::Continue(()),
        }
    }

    /// Sets the level for which transactions wait by default. In a database without a log, that has
    /// no effect.
    pub(crate) fn set_acknowledge(&mut self, level: Level) {
        if let Some(log) = &mut self.state.get_mut().log {
            log.acknowledge = level;
        }
    }

    /// Lets the session's transactions write, in a database that follows another one.
    pub(crate) fn admit_writes(&mut self) {
        if let Some(log) = &mut self.state.get_mut().log {
            log.admit_writes();
        }
    }

    /// Returns the stamp on which the result of the last transaction rests; `None` in a database
    /// without a log.
    #[cfg(test)]
    pub(crate) fn rests_on(&mut self, engine: &Engine<P>) -> Option<u64> {
        self.awaited(engine).map(|awaited| awaited.stamp)
    }

    /// Returns what the acknowledgement of the last transaction awaits; `None` in a database
    /// without a log.
    pub(crate) fn awaited(&mut self, engine: &Engine<P>) -> Option<Awaited> {
        let state = self.state.get_mut();
        let log = state.log.as_ref()?;
        Some(log.awaited(state.rests_on(engine)))
    }

    /// Waits, in a database with a log, until everything on which the result of the transaction
    /// rests has reached the level for which the caller waits. The session is not pinned.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn acknowledge(
        &mut self,
        engine: &Engine<P>,
        options: &RunOptions<'_>,
        effects: &Effects,
        starvation: &mut Option<StarvationGuard<'_>>,
    ) -> Result<(), Abort> {
        let acknowledge = self.state.get_mut().log.as_ref().map(|log| log.acknowledge);
        match acknowledge.map(|level| options.level.unwrap_or(level)) {
            None | Some(Level::Memory) => Ok(()),
            Some(level) => self.await_level(engine, level, options.deadline, effects, starvation),
        }
    }

    /// Waits for a level, in a database with a log, until `deadline` at the latest. Releases the
    /// token and the turn before, and leaves the values that it is to drop to other transactions
    /// meanwhile.
    #[inline(never)]
    fn await_level(
        &mut self,
        engine: &Engine<P>,
        level: Level,
        deadline: Option<Instant>,
        effects: &Effects,
        starvation: &mut Option<StarvationGuard<'_>>,
    ) -> Result<(), Abort> {
        starvation.iter_mut().for_each(StarvationGuard::end_early);
        let has_left = effects.leave_values(&engine.shared_garbage, 0);
        let state = self.state.get_mut();
        let session_log = state.log.as_deref().expect("the database has a log");
        let awaited = match level {
            Level::Replicated => session_log.awaited(state.rests_on(engine)),
            _ => state.rests_on(engine).into(),
        };
        let reached = session_log.log.progress.wait(awaited, level, deadline);
        if has_left {
            // If all transactions wait for the log, no other one drops them.
            let mut values = Vec::new();
            engine.shared_garbage.take_unwanted(&mut values, VALUES_AT_ONCE);
            effects.drop_later(values);
        }
        if let Err(abort) = reached {
            self.observed.note(Some(abort));
        }
        reached
    }

    /// Reads a unit of the record with this key outside a transaction, and returns whether the row
    /// exists. Returns `None`, and leaves no trace, if a transaction is needed (to read, or to
    /// collect garbage); the words that `copy` was given are then invalid.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn single_read(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        key: &[u64],
        unit: PlacedUnit,
        copy: impl FnMut(Words<'_>),
    ) -> Option<bool> {
        if !P::SINGLE_READ_COMMITS
            || self.has_to_collect(engine)
            || self.state.get_mut().log.is_some()
        {
            return None;
        }
        table.check_key(key);
        pass(Point::Pinning);
        // `copy` runs user code if a column has a user-defined type, and may panic.
        let _pin = engine.epochs.pinned_for_attempt(&self.public.slot).ok()?;
        // The pin comes first: rows of a dropped table are deleted when no transaction has one.
        if !table.owner.is(engine.id) {
            return None;
        }
        let state = self.state.get_mut();
        state.worker.local.read_view = ReadView::Current;
        P::begin(&mut Context::new(engine, &mut state.worker), &mut state.attempt);
        let seen = match table.index.find(key) {
            Found::Record(record) => P::read_at_once(&mut state.attempt, unit.of(record), copy),
            Found::Nothing { .. } => None,
        };
        if seen.is_some() {
            self.public.counters.observed_and_wrote(P::read_set_size(&state.attempt), 0);
            self.public.counters.committed();
        }
        seen.map(|seen| seen.present)
    }

    /// Handles the conflict of the attempt numbered `failed`: notes and reports the conflict. Then
    /// returns the error that ends the transaction, or pauses and returns `None`.
    #[cold]
    #[inline(never)]
    fn after_conflict<'e>(
        &mut self,
        engine: &'e Engine<P>,
        options: &RunOptions<'_>,
        cause: Abort,
        failed: u32,
        starvation: &mut Option<StarvationGuard<'e>>,
    ) -> Option<Abort> {
        let state = self.state.get_mut();
        let session = state.worker.local.id;
        let starvation = starvation.get_or_insert_with(|| StarvationGuard::new(engine, session));
        state.worker.local.wanted.note_deadline(options.deadline);
        state.note_conflict(cause);
        if let Some(note) = &mut state.last_conflict {
            note.transaction = options.name;
        }
        #[cfg(feature = "tracing")]
        if let Some(note) = state.last_conflict {
            super::events::conflict(engine, note, failed);
        }
        if let (Some(tell), Some(note)) = (options.on_conflict, state.last_conflict) {
            tell(&Conflict::named(engine, note));
        }
        if let Some(refusal) = options.refusal(failed - starvation.uncounted) {
            self.count_refusal(engine, refusal);
            return Some(refusal);
        }
        if self.waits_for_itself(engine, cause) {
            self.count_refusal(engine, Abort::Nested);
            return Some(Abort::Nested);
        }
        self.public.counters.retried();
        if let Some(name) = options.name {
            self.count_named(engine, name, NamedCount::Retry);
        }
        if cause == Abort::Yielded {
            if let Some(log) = &self.state.get_mut().log
                && log.log.progress.is_behind()
            {
                starvation.end_early();
                if let Err(refusal) = log.log.progress.wait_while_behind(options.deadline) {
                    self.count_refusal(engine, refusal);
                    return Some(refusal);
                }
            }
            self.wait_for_token(engine, options);
            return None;
        }
        let conflicts = starvation.record_conflict(options);
        let state = self.state.get_mut();
        let row = state.last_conflict.and_then(|note| note.row());
        // Transactions that lock by policy hold locks while they run, and so does a thread that has
        // lost its core. So of those that have failed, only as many try again at the same time as
        // there are cores.
        let few = state.worker.local.wanted.most_at_once();
        let row = row.map(|row| few.map_or(row, |few| row % few));
        if starvation.turn.is_none()
            && matches!(cause, Abort::ReadChanged | Abort::Locked)
            && let Some(row) = row
        {
            starvation.wait_for_turn(row);
        }
        // The second attempt may find the lock free, or sleep for it before its closure runs.
        if conflicts > 1 && !MODELLED {
            self.await_lock(engine, options);
        }
        if !engine.options.factors.has(Factor::NoBackoff) {
            engine.parking.wake_unwoken();
            pause(&mut self.state.get_mut().worker.local.random, backoff(conflicts));
        }
        None
    }

    /// Sleeps until the lock on which the attempt has failed is free, but for a limited time. The
    /// lock's holder may be in its closure. The session holds no lock, so no other session waits
    /// for it.
    fn await_lock(&mut self, engine: &Engine<P>, options: &RunOptions<'_>) {
        // The record of the lock stays where it is.
        let _pin = engine.epochs.pinned(&self.public.slot);
        let State { worker, attempt, .. } = self.state.get_mut();
        let Some(at) = worker.local.wanted.take_awaited(engine) else { return };
        await_free(engine, options, &mut Context::new(engine, worker), attempt, at);
    }

    /// Watches the observations of an attempt that has called [`Tx::retry`]. Returns the verdict on
    /// the attempt, which has been validated. The session is still pinned.
    #[cold]
    #[inline(never)]
    fn watch<'e>(&mut self, engine: &'e Engine<P>, options: &RunOptions<'_>) -> Verdict<'e> {
        let state = self.state.get_mut();
        let State { worker, attempt, has_observed, held, .. } = state;
        if worker.local.read_view != ReadView::Current || engine.properties.one_session {
            return Verdict::Outcome(Abort::NothingToAwait);
        }
        let session = worker.local.id;
        let mut watch = Box::new(Watch::begin(&engine.common)); // WT1
        let context = &mut Context::new(engine, worker);
        let watched = P::watch(context, attempt, &mut watch);
        pass(Point::Watching);
        match watched {
            Ok(()) if !*has_observed => Verdict::Outcome(Abort::NothingToAwait),
            Ok(()) if is_in_another_that_holds(engine, *held & !NO_UNITS) => {
                Verdict::Outcome(Abort::Nested)
            }
            Ok(()) => {
                watch.begin_sleep();
                Verdict::Retry(Change::Watched(watch))
            }
            Err(Unwatched::Changed) => Verdict::Retry(Change::Made),
            Err(Unwatched::Locked(at)) if own_thread::is_held_by_another(at, session) => {
                Verdict::Outcome(Abort::Nested)
            }
            Err(Unwatched::Locked(at)) => {
                drop(watch);
                if !MODELLED {
                    await_free(engine, options, context, attempt, at);
                }
                Verdict::Retry(Change::Unknown)
            }
        }
    }

    /// Sleeps until something has changed that the last attempt, numbered `failed`, has observed.
    /// Returns the error that ends the transaction, or `None`.
    #[cold]
    #[inline(never)]
    fn await_change<'e>(
        &mut self,
        engine: &'e Engine<P>,
        options: &RunOptions<'_>,
        change: Change<'_>,
        failed: u32,
        starvation: &mut Option<StarvationGuard<'e>>,
    ) -> Option<Abort> {
        let State { worker, log, .. } = self.state.get_mut();
        let session = worker.local.id;
        let starvation = starvation.get_or_insert_with(|| StarvationGuard::new(engine, session));
        if let Change::Unknown = change {
            starvation.uncounted += 1;
        }
        let log_failure = || log.as_ref().filter(|log| log.has_failed()).map(|_| Abort::LogFailed);
        let refusal = options.refusal(failed - starvation.uncounted).or_else(|| {
            starvation.end_early(); // WT4
            engine.parking.wake_unwoken();
            let Change::Watched(watch) = change else {
                pause(&mut worker.local.random, BACKOFF_FIRST);
                return log_failure();
            };
            // The logger notes that the log has failed, and then wakes all watchers.
            log_failure().or_else(|| match watch.sleep(options.deadline) {
                true => log_failure(),
                false => Some(Abort::DeadlinePassed),
            })
        });
        match refusal {
            Some(refusal) => self.count_refusal(engine, refusal),
            None => self.state.get_mut().has_waited = true,
        }
        refusal
    }

    /// Returns whether the conflict was with an enclosing transaction, in whose closure this
    /// transaction runs. The enclosing transaction cannot continue before this one has ended.
    fn waits_for_itself(&mut self, engine: &Engine<P>, cause: Abort) -> bool {
        match cause {
            Abort::Yielded => Held::Token(engine.id).is_own_threads(),
            Abort::Locked => {
                self.state.get_mut().last_conflict.is_some_and(|note| note.is_own_threads)
            }
            _ => false,
        }
    }

    /// Runs one attempt, from pin to unpin. The only user code run here is the closure and
    /// updaters. If one of these panics, the attempt is cleaned up before the panic continues.
    #[inline]
    fn attempt<'e, T, E>(
        &mut self,
        engine: &'e Engine<P>,
        options: &RunOptions<'_>,
        effects: &Effects,
        body: &mut impl FnMut(&Tx<'_, P>) -> Result<T, E>,
    ) -> Result<T, Ended<'e, T, E>> {
        if let Err(abort) = P::InPlace::enter(&engine.clock, options.deadline) {
            return Err(self.refused(engine, abort));
        }
        let state = self.state.get_mut();
        let pinned = match state.worker.local.read_view {
            ReadView::Current => engine.epochs.pin_for_attempt(&state.worker.local.slot),
            ReadView::Snapshot(_) if P::Versions::WORDS > 0 => {
                engine.epochs.pin_for_memory(&state.worker.local.slot)
            }
            _ if P::Versions::WORDS > 0 && engine.past.is_some() => state.pin_in_past(engine),
            _ => engine.epochs.pin_for_attempt(&state.worker.local.slot),
        };
        if let Err(abort) = pinned {
            P::InPlace::leave(&engine.clock);
            return Err(self.refused(engine, abort));
        }
        state.attempt_number += 1;
        state.begin(engine);
        let locks_ahead = !state.worker.local.wanted.is_empty();
        if locks_ahead {
            state.lock_wanted(engine);
        }
        let tx = Tx::new(engine, &self.state, effects);
        let result = catch_unwind(AssertUnwindSafe(|| body(&tx)));
        let state = self.state.get_mut();
        if locks_ahead {
            state.check_locked_ahead();
        }
        let ended = match result {
            Ok(Ok(value)) => match state.commit_reads(engine) {
                Some(Ok(())) => {
                    self.end_committed(engine, effects);
                    return Ok(value);
                }
                reads => match self.commit_writes(engine, effects, reads) {
                    Verdict::Stands => return Ok(value),
                    verdict => (verdict, Ok(Ok(value))),
                },
            },
            // An error or a panic that results from inconsistent reads is discarded.
            result => (commit_error(state, engine, result.is_err()), result),
        };
        let ended = match ended {
            (Verdict::Outcome(Abort::Retry), result) => (self.watch(engine, options), result),
            ended => ended,
        };
        self.end_otherwise(engine, effects, &ended.0);
        Err(ended)
    }

    /// Counts an attempt that has been refused before its begin. Returns the end of the attempt.
    #[cold]
    fn refused<'e, T, E>(&mut self, engine: &Engine<P>, abort: Abort) -> Ended<'e, T, E> {
        let state = self.state.get_mut();
        if state.is_registered() {
            state.unregister_snapshot(engine);
        }
        self.count_refusal(engine, abort);
        let panic: Panic = Box::new("never seen: the verdict is an outcome");
        (Verdict::Outcome(abort), Err(panic))
    }

    /// Commits an attempt that has failed, or whose write set is not empty; `reads` is the conflict
    /// if the commit of its reads has already failed. If the attempt stands, ends it.
    #[inline(never)]
    fn commit_writes(
        &mut self,
        engine: &Engine<P>,
        effects: &Effects,
        reads: Option<Result<(), Abort>>,
    ) -> Verdict<'static> {
        let state = self.state.get_mut();
        let committed = catch_unwind(AssertUnwindSafe(|| {
            let committed = reads.unwrap_or_else(|| state.commit(engine).map(drop));
            committed.or_else(|abort| state.unwind_at_commit(abort))
        }));
        match committed {
            Ok(Ok(())) => {}
            committed => match self.commit_otherwise(engine, effects, committed) {
                Verdict::Stands => {}
                verdict => return verdict,
            },
        }
        self.end_committed(engine, effects);
        Verdict::Stands
    }

    /// Returns the verdict on an attempt whose commit has not succeeded at once. Commits the
    /// attempt if it has steps or late rows.
    #[cold]
    #[inline(never)]
    fn commit_otherwise(
        &mut self,
        engine: &Engine<P>,
        effects: &Effects,
        committed: Result<Result<(), Abort>, Panic>,
    ) -> Verdict<'static> {
        let verdict = verdict_on(committed);
        if !matches!(verdict, Verdict::Outcome(Abort::NotYet)) {
            return verdict;
        }
        let state = self.state.get_mut();
        verdict_on(catch_unwind(AssertUnwindSafe(|| {
            let committed = state.commit_steps(engine, effects.known_steps());
            committed.or_else(|abort| state.unwind_at_commit(abort))
        })))
    }

    /// Counts an attempt that has committed, and ends it.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn end_committed(&mut self, engine: &Engine<P>, effects: &Effects) {
        let state = self.state.get_mut();
        let (read_set, write_set) = state.set_sizes();
        self.public.counters.observed_and_wrote(read_set, write_set);
        if state.worker.local.is_stale() {
            self.public.counters.stale_commit();
        }
        self.end(engine, effects, Counters::committed);
    }

    /// Ends an attempt whose verdict is known: collects garbage, counts, and unpins.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn end(&mut self, engine: &Engine<P>, effects: &Effects, count: impl FnOnce(&Counters)) {
        P::InPlace::leave(&engine.clock);
        let state = self.state.get_mut();
        state.finish(engine);
        if state.holds_some() {
            self.end_held(engine, effects);
        }
        self.collect_garbage(engine, effects);
        // The count comes before the unpinning. So an observer that sees no pin but an old count
        // can be sure that no transaction is missing from the count.
        count(&self.public.counters);
        engine.epochs.unpin(&self.public.slot);
        pass(Point::Unpinned);
    }

    /// Ends what the attempt has held: units, values, and steps.
    #[inline(never)]
    fn end_held(&mut self, engine: &Engine<P>, effects: &Effects) {
        if self.state.get_mut().end_held(engine, &self.public.left_values) {
            // Another thread may have taken over what was left, to count it.
            self.has_garbage = true;
            self.give_up_values(effects);
        }
    }

    /// Calls [`TxnRunner::end`] for an attempt that has not committed. Out of line, so that the
    /// path of committed attempts is short.
    #[cold]
    #[inline(never)]
    fn end_otherwise(&mut self, engine: &Engine<P>, effects: &Effects, verdict: &Verdict<'_>) {
        let state = self.state.get_mut();
        state.retries = false;
        if let Verdict::Outcome(abort) = verdict {
            state.settle_outcome(*abort);
        }
        state.deferred.clear();
        self.end(engine, effects, |counters| match verdict {
            Verdict::Stands | Verdict::Panic(_) => counters.user_error(),
            Verdict::Outcome(abort) | Verdict::Conflict(abort) => counters.aborted(*abort),
            Verdict::Retry(_) => counters.aborted(Abort::Retry),
        });
        self.observe_end(engine, verdict);
    }

    /// Returns whether the session or the shared queue has garbage, and epochs have advanced since
    /// the last collection. Because of the order of the conditions, a session without garbage
    /// always takes the same steps.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn has_to_collect(&self, engine: &Engine<P>) -> bool {
        (self.has_garbage || !engine.shared_garbage.is_empty())
            && engine.epochs.progress() != self.collected_at
    }

    /// Takes over the attempt's garbage, and collects some garbage if epochs have advanced. Also
    /// wakes the sessions that watch what the attempt has changed. The attempt has ended, but its
    /// session is still pinned.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn collect_garbage(&mut self, engine: &Engine<P>, effects: &Effects) {
        let Worker { local, versions } = &self.state.get_mut().worker;
        if local.leaves_some() || P::Versions::leaves_some(versions) || self.has_to_collect(engine)
        {
            self.collect_some(engine, effects);
        }
    }

    #[inline(never)]
    fn collect_some(&mut self, engine: &Engine<P>, effects: &Effects) {
        let worker = &mut self.state.get_mut().worker;
        let changed = std::mem::take(&mut worker.local.changed_places);
        if changed != 0 {
            engine.watchers.wake(changed); // WT6
        }
        let mut garbage = self.public.garbage(&engine.epochs);
        garbage.take_from(engine, worker);
        let progress = engine.epochs.progress();
        if progress != self.collected_at {
            garbage.collect(engine, worker, &self.public.slot, Epoch::MAX);
            // After a long report, much garbage can be collected at once. Garbage beyond the budget
            // does not wait for the next epoch, which may be far off.
            self.collected_at = if garbage.has_more(engine) { 0 } else { progress };
        }
        self.has_garbage = !garbage.is_empty();
        drop(garbage);
        let unwanted = &self.state.get_mut().worker.local.values.unwanted;
        if !unwanted.is_empty() || !engine.shared_garbage.is_empty() {
            self.collect_values(engine, effects);
        }
    }

    /// Takes values from the shared queue, or leaves values there, so that the session has not too
    /// many to drop.
    #[cold]
    #[inline(never)]
    fn collect_values(&mut self, engine: &Engine<P>, effects: &Effects) {
        let unwanted = &mut self.state.get_mut().worker.local.values.unwanted;
        if unwanted.len() > VALUES_AT_ONCE {
            engine.shared_garbage.put_unwanted(&mut unwanted.split_off(VALUES_AT_ONCE));
        }
        let most = VALUES_AT_ONCE - unwanted.len();
        if engine.shared_garbage.take_unwanted(unwanted, most) {
            // The next transaction goes on.
            self.collected_at = 0;
        }
        self.give_up_values(effects);
    }

    /// Leaves the values that the session is to drop to the effects of the transaction. So they are
    /// dropped when the session is free.
    fn give_up_values(&mut self, effects: &Effects) {
        let unwanted = &mut self.state.get_mut().worker.local.values.unwanted;
        if !unwanted.is_empty() {
            effects.drop_later(std::mem::replace(unwanted, take_buffer()));
        }
    }

    /// Waits, unpinned and for a limited time, until no other session has the token.
    fn wait_for_token(&mut self, engine: &Engine<P>, options: &RunOptions<'_>) {
        let id = self.state.get_mut().worker.local.id;
        let patience = options.sleeps_at_most(patience(TOKEN_WAIT_MAX));
        let place = engine.token.address();
        let mut wait = Wait::new(&engine.parking, place, Wish::Look, patience);
        while engine.token.is_others(id) && wait.wait() == Waited::Again {}
        drop(wait);
        self.state.get_mut().worker.local.has_yielded = engine.token.is_others(id);
    }
}

/// Returns the result of `run` after an attempt that has not committed, or the reason for which
/// `run` makes another attempt. Nothing is locked or pinned any more: user code may run here, and
/// panic.
#[cold]
#[inline(never)]
fn settle<'e, T, E: From<Abort>>(
    verdict: Verdict<'e>,
    result: Result<Result<T, E>, Panic>,
    effects: &Effects,
) -> ControlFlow<Result<T, E>, Again<'e>> {
    effects.fail_steps();
    // The user's values are dropped first. If their destructors panicked while another panic
    // unwinds, the process would be aborted.
    match verdict {
        Verdict::Conflict(cause) => {
            drop(result);
            drop(effects.discard());
            ControlFlow::Continue(Again::Conflict(cause))
        }
        Verdict::Retry(change) => {
            drop(result);
            drop(effects.discard());
            ControlFlow::Continue(Again::Retry(change))
        }
        Verdict::Outcome(abort) => {
            drop(result);
            drop(effects.discard_last());
            ControlFlow::Break(Err(abort.into()))
        }
        Verdict::Panic(panic) => {
            drop(result);
            drop(effects.discard_last());
            resume_unwind(panic)
        }
        Verdict::Stands => {
            drop(effects.discard_last());
            ControlFlow::Break(result.unwrap_or_else(|panic| resume_unwind(panic)))
        }
    }
}

/// Ends a transaction without a result, since the log has failed before the commits that the result
/// depends on were durable.
#[cold]
fn end_unacknowledged<T, E: From<Abort>>(
    unshown: impl Sized,
    abort: Abort,
    effects: &Effects,
) -> Result<T, E> {
    effects.fail_steps();
    drop(unshown);
    drop(effects.discard_last());
    Err(abort.into())
}

/// A guard that counts a transaction under its name, if it has one, when the transaction ends, also
/// by a panic.
struct Naming<'a, P: Protocol> {
    core: &'a mut TxnRunner<P>,
    engine: &'a Engine<P>,
    name: Option<&'static str>,
    end: NamedCount,
    observed: Observed,
}

impl<P: Protocol> Drop for Naming<'_, P> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn drop(&mut self) {
        if let Some(name) = self.name {
            let Naming { core, engine, end, observed, .. } = self;
            core.count_named(engine, name, *end);
            let (names, attempts) = (&engine.names, core.state.get_mut().attempt_number);
            let end = (*end == NamedCount::Commit, attempts);
            core.observed.end(&mut core.names, (names, &core.public.names), observed, end);
        }
    }
}

/// The count of a transaction's conflicts, made when the first attempt has failed. The guard takes
/// the token once there are too many conflicts, and releases the token when the transaction ends.
struct StarvationGuard<'a> {
    engine: &'a Common,
    session: u64,
    conflicts: u32,
    /// The number of failed attempts that do not count for the limit on attempts.
    uncounted: u32,
    turn: Option<(Turn<'a>, Held)>,
}

impl<'a> StarvationGuard<'a> {
    fn new(engine: &'a Common, session: u64) -> StarvationGuard<'a> {
        StarvationGuard { engine, session, conflicts: 0, uncounted: 0, turn: None }
    }
}

impl StarvationGuard<'_> {
    /// Waits for a turn among the transactions that have failed on `row`. Does not wait if an
    /// enclosing transaction has the turn, since that transaction cannot continue before this one
    /// has ended.
    fn wait_for_turn(&mut self, row: u64) {
        let number = Turns::number(row);
        let held = Held::Turn(self.engine.id, number);
        if !held.is_own_threads()
            && let Some(turn) = self.engine.turns.wait(&self.engine.parking, number, self.session)
        {
            held.note();
            self.turn = Some((turn, held));
        }
    }

    #[cfg_attr(not(feature = "tracing"), expect(unused_variables, reason = "for an event"))]
    fn record_conflict(&mut self, options: &RunOptions<'_>) -> u32 {
        self.conflicts += 1;
        if self.conflicts >= TOKEN_ATTEMPTS && self.engine.token.try_take(self.session) {
            Held::Token(self.engine.id).note();
            if self.engine.properties.opaque && self.engine.properties.opaque_by_looks {
                // Everything written before this tick needs no revalidation.
                self.engine.epochs.tick_between_passes();
            }
            #[cfg(feature = "tracing")]
            super::events::token_taken(self.session, self.conflicts, options.name);
        }
        self.conflicts
    }
}

impl Drop for StarvationGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.conflicts > 0 {
            self.end();
        }
    }
}

impl StarvationGuard<'_> {
    /// Releases the turn and the token, if the transaction has them, before its result waits for
    /// the log.
    fn end_early(&mut self) {
        if self.conflicts > 0 {
            self.end();
            self.conflicts = 0;
        }
    }

    /// Releases the turn and the token.
    #[cold]
    #[inline(never)]
    fn end(&mut self) {
        if let Some((_turn, held)) = self.turn.take() {
            held.forget();
        }
        if self.conflicts >= TOKEN_ATTEMPTS && self.engine.give_token_back(self.session) {
            Held::Token(self.engine.id).forget();
        }
    }
}

/// Returns the verdict on an attempt by the result of its commit, in which updaters may panic.
fn verdict_on(committed: Result<Result<(), Abort>, Panic>) -> Verdict<'static> {
    match committed {
        Ok(Ok(())) => Verdict::Stands,
        Ok(Err(abort)) if abort.is_conflict() => Verdict::Conflict(abort),
        Ok(Err(abort)) => Verdict::Outcome(abort),
        Err(panic) => match panic.downcast::<Unwound>() {
            Ok(unwound) => Verdict::Conflict(unwound.0),
            Err(panic) => Verdict::Panic(panic),
        },
    }
}

/// Validates the reads on which an error or a panic of the closure was based. A panic of the
/// closure comes before the outcome that an operation has panicked, and before a retry.
#[cold]
fn commit_error<P: Protocol>(
    state: &mut State<P>,
    engine: &Engine<P>,
    has_panicked: bool,
) -> Verdict<'static> {
    match catch_unwind(AssertUnwindSafe(|| state.commit_error(engine))) {
        Ok(Ok(None)) => Verdict::Stands,
        Ok(Ok(Some(Abort::Panicked | Abort::Retry))) if has_panicked => Verdict::Stands,
        Ok(Ok(Some(earlier))) => Verdict::Outcome(earlier),
        Ok(Err(abort)) => Verdict::Conflict(abort),
        Err(panic) => Verdict::Panic(panic),
    }
}

/// Returns whether another transaction of this thread holds a lock that a change may need for which
/// this transaction is about to sleep: a unit, a lock by policy, or a global lock, in any database.
/// This transaction has noted `held` units.
#[cold]
fn is_in_another_that_holds(engine: &Common, held: u32) -> bool {
    let own_global_locks = u32::from(engine.properties.applies_at_once);
    own_thread::is_in_another_that_holds(held)
        || own_thread::may_hold_shown_locks()
        || Exclusive::held_by_this_thread() > own_global_locks
}

/// Sleeps until the lock of the unit `at` is free, but for a limited time. The session is pinned
/// and holds no lock.
fn await_free<P: Protocol>(
    engine: &Engine<P>,
    options: &RunOptions<'_>,
    context: &mut Context<'_, P>,
    attempt: &P::Attempt,
    at: CellAt,
) {
    let mut wait: Option<Wait<'_>> = None;
    while let Some(place) = P::lock_place(context, attempt, at) {
        let wait = wait.get_or_insert_with(|| {
            let patience = options.sleeps_at_most(patience(LOCK_WAIT_MAX));
            Wait::new(&engine.parking, place, Wish::Look, patience)
        });
        if wait.wait() == Waited::InVain {
            break;
        }
    }
    if wait.is_some() {
        P::end_wait(context, at);
    }
}

/// Returns the bound of the pause after conflict number `conflicts` of a transaction, counted from
/// 1.
fn backoff(conflicts: u32) -> Duration {
    let doublings = (conflicts - 1).min(u32::BITS - 1);
    BACKOFF_FIRST.saturating_mul(1 << doublings).min(BACKOFF_MAX)
}

/// Pauses for a random time below `bound`. Nothing is locked or pinned meanwhile.
fn pause(random: &mut Random, bound: Duration) {
    if MODELLED {
        return thread::yield_now();
    }
    let wait = Duration::from_nanos(random.below(bound.as_nanos() as u64));
    if wait > SPUN_MAX {
        return sleep(wait);
    }
    let begun = Instant::now();
    while begun.elapsed() < wait {
        std::hint::spin_loop();
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_pauses_double_from_the_first_to_the_largest() {
        let bounds = [1, 2, 3, 7, 8, 9, 33, u32::MAX].map(backoff);
        assert_eq!(bounds.map(|bound| bound.as_micros()), [2, 4, 8, 128, 200, 200, 200, 200]);
    }
}
