//! Savepoints: parts of a transaction that are undone if they fail.

#![forbid(unsafe_code)]

use super::deferred;
use super::state::{AT_COMMIT, State};
use crate::access::{self, Failure};
use crate::engine::{Applied, Context, Engine, InPlace, Protocol};
use crate::error::Abort;
use std::panic::resume_unwind;

/// A moment to which the writes of a transaction can be taken back.
pub(super) struct Savepoint {
    writes: access::Savepoint,
    applied: Applied,
    deferred: deferred::Moment,
    /// The number of limits of sequences that parts had staged.
    limits: usize,
    /// Whether the closure had called [`Tx::retry`](super::Tx::retry).
    retries: bool,
}

impl<P: Protocol> State<P> {
    /// Returns a savepoint of the current moment.
    #[inline(never)]
    pub(super) fn savepoint(&mut self) -> Savepoint {
        Savepoint {
            writes: self.writes.savepoint(),
            applied: P::InPlace::applied(&self.attempt),
            deferred: self.deferred.now(),
            limits: self.limits.enter_part(),
            retries: self.retries,
        }
    }

    /// Ends a part of the transaction, which began at a savepoint and has succeeded. Evaluates the
    /// part's updates that may fail, as a read of their rows does.
    ///
    /// # Errors
    /// The outcome of the first operation of the part that has failed; [`Abort::NotUnique`] if the
    /// part leaves a deferred entry; or a conflict.
    ///
    /// # Panics
    /// If an updater panics.
    #[inline(never)]
    pub(super) fn complete(
        &mut self,
        engine: &Engine<P>,
        savepoint: &Savepoint,
    ) -> Result<(), Abort> {
        if self.doomed.is_some() {
            return Ok(());
        }
        match P::InPlace::failure_since(&mut self.attempt, savepoint.applied) {
            Ok(()) => {}
            Err(Failure::Outcome(abort)) => return Err(abort),
            Err(Failure::Panic(panic)) => resume_unwind(panic),
        }
        for index in self.writes.fallible_since(&savepoint.writes) {
            match self.read_own(engine, index, access::Mark::NOW, &mut |_| {}) {
                Err(abort) if abort.is_conflict() => return Err(abort),
                // An outcome is in `failed` now.
                Ok(_) | Err(_) => {}
            }
        }
        if let Some(abort) = self.failure_since(savepoint) {
            return Err(abort);
        }
        match self.deferred.first_since(savepoint.deferred) {
            Some(entry) => Err(self.outcome_at(Abort::NotUnique, entry)),
            None => Ok(()),
        }
    }

    /// Returns the outcome of the first operation that is known to have failed, if that operation
    /// came after a savepoint.
    fn failure_since(&self, savepoint: &Savepoint) -> Option<Abort> {
        let is_since = savepoint.writes.is_before(self.failed_at);
        self.failed.filter(|_| is_since && self.failed_at != AT_COMMIT)
    }

    /// Takes the writes of the transaction back to a savepoint. Later observations stay observed,
    /// and the assumptions of the undone writes are observed now, since the reason for undoing the
    /// writes may rest on these assumptions. Returns whether the part has called
    /// [`Tx::retry`](super::Tx::retry), which is taken back, too.
    #[inline(never)]
    pub(super) fn undo(&mut self, engine: &Engine<P>, savepoint: &Savepoint) -> bool {
        let retries = self.retries && !savepoint.retries;
        self.retries = savepoint.retries;
        self.limits.leave_part();
        self.observe_assumptions(engine, savepoint);
        if self.doomed.is_some() {
            // The attempt will have no effect.
            return retries;
        }
        P::InPlace::undo_to(&mut self.attempt, savepoint.applied);
        self.writes.undo(&savepoint.writes);
        if self.failure_since(savepoint).is_some() {
            self.failed = None;
        }
        self.deferred.undo(savepoint.deferred);
        self.note_deferred();
        self.stage_limits_again(engine, savepoint.limits);
        retries
    }

    /// Notes that a part has ended whose writes are kept.
    pub(super) fn leave_part(&mut self, savepoint: &Savepoint) {
        self.writes.leave_part(&savepoint.writes);
        self.limits.leave_part();
    }

    /// Observes whether the rows exist of which the writes since a savepoint assumed it. If an
    /// assumption has failed, dooms the attempt.
    fn observe_assumptions(&mut self, engine: &Engine<P>, savepoint: &Savepoint) {
        for item in self.writes.added_since(&savepoint.writes) {
            // Limits are staged again, with their assumptions.
            if self.doomed.is_some() || item.expects.is_none() || self.limits.has(item.at) {
                continue;
            }
            let context = &mut Context::new(engine, &mut self.worker);
            let conflict = match P::read(context, &mut self.attempt, item.at, |_| {}) {
                Ok(seen) if item.accepts(seen.present) => continue,
                Ok(_) => context.conflict(Abort::ExistenceChanged, item.at),
                Err(abort) => abort,
            };
            // The stack is not unwound by a further panic: the part's own panic may be unwinding
            // it.
            self.doomed = Some(conflict);
            self.until_revalidation = 1;
        }
    }
}
