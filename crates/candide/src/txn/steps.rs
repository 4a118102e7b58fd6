//! Steps of a transaction: staging them, running one before the commit, and the commit that runs
//! them.

#![forbid(unsafe_code)]

use super::state::{HAS_STEPS, State};
use crate::access::{Failure, Intent, Steps, steps};
use crate::engine::{Context, Engine, InPlace, Protocol};
use crate::error::Abort;
use crate::record::CellAt;
use crate::schema::{Code, Op};
use std::panic::resume_unwind;
use std::rc::Rc;

impl<P: Protocol> State<P> {
    /// Stages a step on a unit, as an update of the unit. The caller has been admitted to update
    /// the unit ([`State::admit_update`]). `step` is the step's number in `list`, which ascends
    /// from step to step. A protocol that applies writes at once runs the step now.
    ///
    /// # Errors
    /// [`Abort::ReadOnly`], a conflict, or [`Abort::MemoryLimit`]. The step is not staged then, and
    /// has not run.
    #[cold]
    pub(crate) fn stage_step(
        &mut self,
        engine: &Engine<P>,
        at: CellAt,
        list: Rc<dyn Steps>,
        step: u32,
    ) -> Result<(), Abort> {
        self.admit_write()?;
        let words = at.payload_words();
        let operand = self.writes.push_step(step, words);
        let op = Op { code: Code::User, operand, ..Op::set_words(0, words as u16) };
        if let Some(failure) = P::InPlace::hide(&mut self.attempt, at) {
            list.refuse(step, failure);
        }
        self.held |= HAS_STEPS;
        steps::with_list(list, || self.stage_admitted(engine, at, Intent::Update, op))?;
        self.writes.note_step(at);
        self.note_deferred();
        Ok(())
    }

    /// Runs the first step of a unit that has not run, on what the transaction sees in the unit
    /// just before it. The unit is observed. A protocol that has run the step already shows what
    /// the step has done.
    ///
    /// # Errors
    /// The outcome of the step or of an earlier operation on the unit, in which the transaction
    /// ends then; or a conflict.
    ///
    /// # Panics
    /// With the panic of the step.
    #[cold]
    pub(crate) fn run_step(
        &mut self,
        engine: &Engine<P>,
        at: CellAt,
        list: Rc<dyn Steps>,
    ) -> Result<(), Abort> {
        let Some(index) = self.writes.find(at) else {
            return match P::InPlace::show(&mut self.attempt, at) {
                Ok(()) => Ok(()),
                Err(Failure::Outcome(abort)) => Err(abort),
                Err(Failure::Panic(panic)) => resume_unwind(panic),
            };
        };
        let mut image = vec![0; at.payload_words()];
        if !self.writes.replaces_unit(index) || self.is_updated_blindly(engine, index)? {
            let count = image.len();
            let present = self.observe(engine, at, |words| {
                words.copy(0, count, |word, value| image[word] = value)
            })?;
            if !self.writes.items()[index].accepts(present) {
                let context = &mut Context::new(engine, &mut self.worker);
                let abort = context.conflict(Abort::ExistenceChanged, at);
                return Err(self.doom(abort));
            }
        }
        let run = steps::with_list(list, || self.writes.run_first_step(index, &mut image));
        let result = run.map_err(|(number, abort)| {
            self.note_failure(number, abort);
            abort
        });
        self.note_deferred();
        result
    }

    /// Commits an attempt that has had steps, which are in `list`, or has late rows, as
    /// [`State::commit_reads`] and [`State::commit`] do.
    #[cold]
    pub(super) fn commit_steps(
        &mut self,
        engine: &Engine<P>,
        list: Option<Rc<impl Steps + 'static>>,
    ) -> Result<(), Abort> {
        self.failed = None;
        if let Some(failure) = list.as_ref().and_then(|list| list.failure()) {
            // The closure may have caught the panic of a computation. Such a failure belongs to no
            // operation.
            self.fail(failure);
        }
        if let Some(committed) = self.commit_reads(engine) {
            return committed;
        }
        if list.is_some() {
            self.writes.reserve_order();
        }
        let is_late = self.writes.late_row_count() > 0 || self.writes.keyed().next().is_some();
        let mut commit = || match is_late {
            false => self.commit(engine),
            true => self.commit_as::<true>(engine),
        };
        let committed = match list {
            Some(list) => steps::with_list(list, commit),
            None => commit(),
        };
        if committed == Err(Abort::MemoryLimit) {
            // The commit may not have validated what the closure has read.
            self.validate(engine)?;
        }
        committed.map(drop)
    }
}
