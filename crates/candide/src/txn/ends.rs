//! The ends of an attempt: the conflicts that doom it, its outcome, its commit and abort, and the
//! stamp that an acknowledgement awaits.

#![forbid(unsafe_code)]

use super::session_log::{NOW, SEEN};
use super::state::{AT_COMMIT, FIRST_REVALIDATION, HAS_STEPS, NO_UNITS, State, WRITES_VALUES};
use crate::access::WriteSet;
use crate::engine::{
    Committed, ConflictNote, Context, Engine, InPlace, Protocol, ReadView, TableCore, Versions,
    own_thread,
};
use crate::error::Abort;
use crate::gc::LeftValues;
use crate::log::LogTurn;
use crate::record::CellAt;
use std::panic::resume_unwind;
use std::thread;

/// The panic payload of a conflict that unwinds the stack.
pub(super) struct Unwound(pub(super) Abort);

impl<P: Protocol> State<P> {
    /// Returns the conflict if the attempt is doomed, and otherwise revalidates the attempt.
    #[cold]
    #[inline(never)]
    pub(super) fn revalidate_early(&mut self, engine: &Engine<P>) -> Result<(), Abort> {
        if let Some(abort) = self.doomed {
            self.until_revalidation = 1;
            return Err(abort);
        }
        self.until_revalidation = self.operations;
        self.operations = self.operations.saturating_mul(2);
        if matches!(self.worker.local.read_view, ReadView::AtBegin | ReadView::Past(_)) {
            self.register_snapshot(engine);
        }
        self.revalidate(engine)
    }

    /// Returns an error if the attempt is doomed, or if changes of other transactions doom it now.
    #[cold]
    pub(super) fn validate(&mut self, engine: &Engine<P>) -> Result<(), Abort> {
        match self.doomed {
            Some(abort) => Err(abort),
            None => self.revalidate(engine),
        }
    }

    /// Validates that everything read is unchanged, and that each row to be written exists or is
    /// absent, as expected.
    fn revalidate(&mut self, engine: &Engine<P>) -> Result<(), Abort> {
        let context = &mut Context::new(engine, &mut self.worker);
        // The write set passed is empty. A commit ignores locks on units of its write set, because
        // these are its own locks; but staged writes are not locked yet, so here every lock is
        // another session's.
        let mut valid = P::revalidate(context, &mut self.attempt, &WriteSet::default());
        for item in self.writes.items() {
            // If the commit alone finds out whether the row exists, the row may be in a chain of
            // commits, and its word tells nothing.
            let is_unknown = P::ASSUMES_BLINDLY && P::assumes_blindly(context, item.at);
            let accepts = || item.accepts(P::is_present(&self.attempt, item.at));
            if valid.is_ok() && !is_unknown && !accepts() {
                valid = Err(context.conflict(Abort::ExistenceChanged, item.at));
            }
        }
        valid.map_err(|abort| self.doom(abort))
    }

    /// Dooms the attempt if `abort` is a conflict, and returns `abort`.
    pub(super) fn doom(&mut self, abort: Abort) -> Abort {
        if abort.is_conflict() {
            self.doomed.get_or_insert(abort);
            self.until_revalidation = 1;
            self.unwind(abort);
        }
        abort
    }

    /// Unwinds the stack because of a conflict, if conflicts unwind and no panic is already
    /// unwinding.
    pub(super) fn unwind(&self, abort: Abort) {
        if self.unwinds && !thread::panicking() {
            resume_unwind(Box::new(Unwound(abort)));
        }
    }

    /// Dooms the attempt, which has read a unit and related data at different times.
    #[cold]
    pub(crate) fn torn(&mut self, engine: &Engine<P>, at: CellAt) -> Abort {
        let abort = Context::new(engine, &mut self.worker).conflict(Abort::ExistenceChanged, at);
        self.doom(abort)
    }

    /// Dooms the attempt, which has read a node of the index that has since been removed.
    #[cold]
    pub(crate) fn phantom(&mut self, engine: &Engine<P>, table: u16) -> Abort {
        let abort = Context::new(engine, &mut self.worker).phantom(table);
        self.doom(abort)
    }

    /// Ensures that the attempt reads at `time`, a timestamp of the protocol, or later.
    pub(crate) fn reach(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        time: u64,
    ) -> Result<(), Abort> {
        let context = &mut Context::new(engine, &mut self.worker);
        P::reach(context, &mut self.attempt, time, table.number).map_err(|abort| self.doom(abort))
    }

    /// Commits an attempt that has not failed and has an empty write set: either it has written
    /// nothing, or its protocol applies writes at once. Runs no user code. Returns `None` if
    /// [`State::commit`] is needed.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn commit_reads(&mut self, engine: &Engine<P>) -> Option<Result<(), Abort>> {
        let has_failed =
            self.doomed.is_some() || self.failed.is_some() || P::InPlace::has_failed(&self.attempt);
        let has_changed = P::InPlace::has_changed(&self.attempt) && self.log.is_some();
        let is_simple = self.writes.is_empty() && !has_failed && !has_changed;
        is_simple.then(|| {
            let mut turn = LogTurn::unlogged();
            let context = &mut Context::new(engine, &mut self.worker);
            let committed = P::commit(context, &mut self.attempt, &mut self.writes, &mut turn);
            turn.end_unlogged();
            committed?;
            self.note_seen();
            Ok(())
        })
    }

    /// Commits, or ends the attempt without effect and returns the reason. Returns
    /// [`Abort::NotYet`], and has done nothing, if [`State::commit_steps`] is needed.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn commit(&mut self, engine: &Engine<P>) -> Result<Committed, Abort> {
        self.commit_as::<false>(engine)
    }

    /// Does the work of [`State::commit`]; with late rows if `LATE`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn commit_as<const LATE: bool>(
        &mut self,
        engine: &Engine<P>,
    ) -> Result<Committed, Abort> {
        if self.doomed.is_some() || self.failed.is_some() {
            return Err(self.commit_failed(engine));
        }
        debug_assert!(self.has_noted_values(engine), "each write of a value is noted");
        if self.log.is_some() {
            return self.commit_logged::<LATE>(engine);
        }
        let turn = &mut LogTurn::unlogged();
        let context = &mut Context::new(engine, &mut self.worker);
        match LATE {
            true => P::commit_late(context, &mut self.attempt, &mut self.writes, turn),
            false => P::commit(context, &mut self.attempt, &mut self.writes, turn),
        }
    }

    /// Does the work of [`State::commit`] for an attempt that has failed, or has had steps, or has
    /// late rows.
    #[cold]
    #[inline(never)]
    fn commit_failed(&mut self, engine: &Engine<P>) -> Abort {
        if self.doomed.is_none() && self.failed == Some(Abort::NotYet) {
            return Abort::NotYet;
        }
        match self.end_without_effect(engine, true) {
            Ok(outcome) => outcome.expect("a failed attempt has an outcome"),
            Err(conflict) => conflict,
        }
    }

    /// Commits, and leaves the record of the commit in the session's buffer.
    #[inline(never)]
    fn commit_logged<const LATE: bool>(&mut self, engine: &Engine<P>) -> Result<Committed, Abort> {
        let State { attempt, writes, worker, log, .. } = self;
        let context = &mut Context::new(engine, worker);
        let log = log.as_deref_mut().expect("the database has a log");
        let (mut turn, logged) = match log.open(&mut context.local.values) {
            Ok(opened) => opened,
            Err(refusal) => {
                P::abort(context, attempt, writes);
                return Err(refusal);
            }
        };
        let committed = match LATE {
            true => P::commit_late(context, attempt, writes, &mut turn)?,
            false => P::commit(context, attempt, writes, &mut turn)?,
        };
        let values = &context.local.values;
        logged.append(turn, (engine, values), committed, |record| {
            P::changes(attempt, writes, record);
        });
        Ok(committed)
    }

    /// Notes, in a database with a log, that the result of the attempt depends on the commits that
    /// the attempt has seen. The attempt has been validated, and has written nothing.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn note_seen(&mut self) {
        if let Some(log) = &mut self.log {
            log.stamp = SEEN;
        }
    }

    /// Returns a stamp that is no smaller than those of all commits on which the result of the last
    /// attempt rests. The database has a log.
    pub(crate) fn rests_on(&self, engine: &Engine<P>) -> u64 {
        match self.log.as_ref().map_or(0, |log| log.stamp) {
            // What other databases have is not shown for the first time here.
            SEEN if self.log.as_ref().is_some_and(|log| log.reads_view()) => 0,
            SEEN => P::seen_stamp(&engine.clock, &engine.epochs, &self.attempt),
            NOW => P::last_stamp(&engine.clock, &engine.epochs),
            stamp => stamp,
        }
    }

    /// Ends the attempt without effect, after validating the closure's reads. Returns the outcome
    /// of an operation that failed before the closure's error; `None` if no operation failed.
    ///
    /// # Errors
    /// A conflict: the closure must run again.
    pub(crate) fn commit_error(&mut self, engine: &Engine<P>) -> Result<Option<Abort>, Abort> {
        self.end_without_effect(engine, false)
    }

    /// Does the work of [`State::commit_error`]. Also returns an outcome that comes only at the end
    /// of the closure, if `at_commit`: if the closure has returned a value.
    fn end_without_effect(
        &mut self,
        engine: &Engine<P>,
        at_commit: bool,
    ) -> Result<Option<Abort>, Abort> {
        if self.has_missed_own() {
            self.find_keys_at_once(engine);
        }
        if let Some(abort) = self.doomed {
            self.abort(engine);
            return Err(abort);
        }
        if let Some(log) = &mut self.log {
            // An updater may panic.
            log.stamp = NOW;
        }
        let context = &mut Context::new(engine, &mut self.worker);
        let mut images = Vec::new();
        let applied =
            match P::validate_without_writes(context, &mut self.attempt, &self.writes, &mut images)
            {
                Ok(applied) => applied,
                Err(abort) => {
                    self.abort(engine);
                    return Err(abort);
                }
            };
        let mut writes = std::mem::take(&mut self.writes);
        self.writes.outcomes = std::mem::take(&mut writes.outcomes);
        P::commit(context, &mut self.attempt, &mut self.writes, &mut LogTurn::unlogged())?;
        self.note_seen();
        // Updaters may run only now, on validated words.
        let outcome = applied.or_else(|| {
            let failure = writes.first_failure(&mut images)?;
            self.writes.outcomes.note(failure);
            Some(failure.cause)
        });
        let counts = at_commit || self.failed_at != AT_COMMIT;
        Ok(outcome.or(self.failed.filter(|_| counts)))
    }

    /// Ends the attempt without effect.
    pub(crate) fn abort(&mut self, engine: &Engine<P>) {
        P::abort(&mut Context::new(engine, &mut self.worker), &mut self.attempt, &mut self.writes);
    }

    /// Ends a failed commit by unwinding or by returning the error.
    #[cold]
    pub(super) fn unwind_at_commit(&self, abort: Abort) -> Result<(), Abort> {
        if abort.is_conflict() {
            self.unwind(abort);
        }
        Err(abort)
    }

    /// Notes that the operation with this number has failed. The first failure in program order
    /// counts.
    pub(super) fn note_failure(&mut self, number: u32, abort: Abort) {
        if self.failed.is_none() || number < self.failed_at {
            (self.failed, self.failed_at) = (Some(abort), number);
        }
    }

    /// Notes that the closure has called [`Tx::retry`](super::Tx::retry): the attempt has failed.
    /// Returns the error for the closure.
    #[cold]
    pub(super) fn note_retry(&mut self, engine: &Engine<P>) -> Abort {
        if let Some(abort) = self.doomed {
            return abort;
        }
        let has_entered =
            (self.operations, self.until_revalidation) != (FIRST_REVALIDATION, FIRST_REVALIDATION);
        self.has_observed = match engine.properties.applies_at_once {
            true => has_entered,
            false => {
                P::read_set_size(&self.attempt) > 0
                    || self.writes.items().iter().any(|item| item.expects.is_some())
            }
        };
        self.retries = true;
        if !P::InPlace::fail(&mut self.attempt, Abort::Retry) {
            let number = self.writes.push_nothing();
            self.note_failure(number, Abort::Retry);
        }
        Abort::Retry
    }

    /// Notes that an operation has ended in a panic, and may have been staged in part. A conflict
    /// that unwinds the stack is noted already.
    pub(super) fn note_panic(&mut self) {
        self.fail(Abort::Panicked);
    }

    /// Notes that the transaction can only end in `abort`, an outcome that belongs to no operation
    /// of a row.
    #[cold]
    pub(crate) fn fail(&mut self, abort: Abort) {
        if self.doomed.is_some() {
            return;
        }
        self.outcome_nowhere(abort);
        // Numbers of operations do not ascend where each is applied at once and then forgotten.
        if !P::InPlace::fail(&mut self.attempt, abort) {
            // The operation may have failed before any part of it was staged.
            let number = self.writes.push_nothing();
            self.note_failure(number, abort);
        }
    }

    /// Makes sure that a commit ends in an outcome exactly if an operation has failed or there are
    /// deferred entries, and that it notices that there have been steps, or are late rows. Called
    /// after each change of these.
    pub(super) fn note_deferred(&mut self) {
        if self.failed.is_none() || self.failed_at == AT_COMMIT {
            let is_refused = (!self.deferred.is_empty()).then_some(Abort::NotUnique);
            let has_steps = self.held & HAS_STEPS != 0;
            let is_late = || has_steps || self.writes.late_row_count() > 0;
            self.failed = is_refused.or_else(|| is_late().then_some(Abort::NotYet));
            self.failed_at = AT_COMMIT;
        }
    }

    /// Notes the conflict in which the attempt has ended.
    #[cold]
    pub(crate) fn note_conflict(&mut self, cause: Abort) {
        // A conflict without a note concerned no row; usually the attempt yielded to the token.
        let noted = self.worker.local.conflict.take().filter(|note| note.cause == cause);
        self.last_conflict = noted.or(Some(ConflictNote::nowhere(cause)));
        self.has_waited = false;
    }

    /// Clears the state of an attempt after its end. Queues the records that the attempt has linked
    /// and left absent, so that they are unlinked. If [`State::holds_some`], the caller then calls
    /// [`State::end_held`].
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn finish(&mut self, engine: &Engine<P>) {
        if P::Versions::WORDS > 0 && self.registered.is_some() {
            self.unregister_snapshot(engine);
        }
        self.writes.clear();
        while let Some(first) = self.worker.local.linked.pop() {
            if P::enqueue_if_absent(&engine.clock, first) {
                self.worker.local.reap_queue.push(first);
            }
        }
    }

    /// Returns whether the attempt holds units, or has values or steps.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn holds_some(&self) -> bool {
        self.held > 0
    }

    /// Forgets the units that the attempt has held, and ends its ownership of values, which it
    /// leaves to `left`. Returns whether it had values.
    pub(crate) fn end_held(&mut self, engine: &Engine<P>, left: &LeftValues) -> bool {
        let held = std::mem::take(&mut self.held);
        if held & !NO_UNITS > 0 {
            own_thread::forget_units(held & !NO_UNITS);
        }
        let has_values = held >= WRITES_VALUES;
        if has_values {
            self.end_values(left, engine.long_memory());
        }
        has_values
    }
}
