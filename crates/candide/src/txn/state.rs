//! The state of a transaction, and the meaning of each operation on one row.
//!
//! | the transaction has … the row | read | update, modify | insert | put | delete |
//! |---|---|---|---|---|---|
//! | not touched | observe | blind; `NotFound` observed | `Duplicate` observed; else blind | blind | blind; `NotFound` observed |
//! | updated | observe, then apply the pending updates | append | `Duplicate` | replace | mark deleted |
//! | inserted or put | its own image | append | `Duplicate` | replace | mark deleted |
//! | deleted | absent | `NotFound` | present again | present again | `NotFound` |
//!
//! *Blind* means that the operation only assumes whether the row exists; the commit checks this
//! assumption. A pending update whose guard fails makes every later read of its unit, and the
//! commit, fail with the outcome of that update. The test whether a number is in a range applies
//! only the pending updates of that number, so the failure of an update of another column shows at
//! the commit.

#![forbid(unsafe_code)]

use super::deferred::Deferred;
use super::index_scratch::IndexScratch;
use super::limits::StagedLimits;
use super::session_log::SessionLog;
use crate::access::{self, Intent, Sums, WriteSet};
use crate::engine::own_thread::Held;
use crate::engine::{
    ConflictNote, Context, Engine, InPlace, Protocol, ReadView, TableCore, Worker,
};
use crate::epoch::Moment;
use crate::error::Abort;
use crate::factor::Factor;
use crate::record::{CellAt, RecordAt};
use crate::schema::{NumberRange, Op, Words};
use crate::stats::LockCounters;
use std::sync::Arc;

/// The number of operations after which a running transaction is first revalidated. The number
/// doubles with each revalidation, so that revalidation costs a constant share.
pub(super) const FIRST_REVALIDATION: u32 = 64;

/// The working state of a session's transactions, kept from attempt to attempt.
pub(crate) struct State<P: Protocol> {
    pub(crate) attempt: P::Attempt,
    pub(crate) writes: WriteSet,
    pub(crate) worker: Worker<P::SessionVersions>,
    pub(crate) attempt_number: u32,
    /// The last conflict in which an attempt of this session ended.
    pub(crate) last_conflict: Option<ConflictNote>,
    /// The conflict that dooms this attempt.
    pub(super) doomed: Option<Abort>,
    /// The outcome of a pending update that was returned to the closure. The attempt can only end
    /// in this outcome. If none was returned: [`Abort::NotUnique`] if there are `deferred` entries,
    /// and otherwise [`Abort::NotYet`] if there have been steps, of which the commit has to know,
    /// or are late rows.
    pub(super) failed: Option<Abort>,
    /// The number of the operation to which `failed` belongs, or [`AT_COMMIT`].
    pub(super) failed_at: u32,
    /// The rows that wait for another row to give up its key; empty outside of an attempt.
    pub(super) deferred: Deferred,
    /// The limits of sequences that parts of the transaction have staged.
    pub(super) limits: StagedLimits,
    pub(super) scratch: Vec<u64>,
    /// The words of the values of any length that the running operation has kept, in their order,
    /// each with the number of its column's word in the row.
    pub(super) kept: Vec<(usize, u64)>,
    pub(super) index_scratch: IndexScratch,
    /// The number of operations that the attempt will have made at the next revalidation.
    pub(super) operations: u32,
    /// The number of operations until the next revalidation; one if the attempt is doomed, so that
    /// each further operation returns the conflict.
    pub(super) until_revalidation: u32,
    /// The session's end of the log; `None` if the database has no log.
    pub(crate) log: Option<Box<SessionLog>>,
    /// The number of units that the attempt has noted as held, [`WRITES_VALUES`] and [`HAS_STEPS`].
    pub(super) held: u32,
    /// The timestamp of the attempt's view and the moment at which the attempt began, if the view
    /// is registered as a snapshot; otherwise `None`.
    pub(super) registered: Option<(u64, Moment)>,
    /// Whether conflicts unwind the stack.
    pub(super) unwinds: bool,
    /// Whether the closure has called [`Tx::retry`](super::Tx::retry), outside of parts that were
    /// undone. Such an attempt has failed, so it never commits.
    pub(super) retries: bool,
    /// Whether the attempt had observed or assumed anything when `retries` was set.
    pub(super) has_observed: bool,
    /// Whether the last attempt of a transaction ended without a conflict, and another one follows.
    pub(super) has_waited: bool,
}

/// The bit of [`State::held`] that says that the attempt has staged values, or writes units with
/// values. So the end of an attempt looks at one word only.
pub(super) const WRITES_VALUES: u32 = 1 << 31;

/// The bit of [`State::held`] that says that the attempt has staged a step, which may be undone.
pub(super) const HAS_STEPS: u32 = 1 << 30;

/// The bits of [`State::held`] that count no units.
pub(super) const NO_UNITS: u32 = WRITES_VALUES | HAS_STEPS;

/// The number behind those of all operations: that of an outcome which only the commit returns.
pub(super) const AT_COMMIT: u32 = u32::MAX;

/// A moment in the life of a transaction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    writes: access::Mark,
    /// The number of applied writes, under protocols that apply writes at once.
    applied: usize,
}

/// Returns the error of an operation on a table that does not belong to the database.
#[cold]
fn refused(table: &TableCore) -> Abort {
    if table.owner.is_none() { Abort::TableDropped } else { Abort::ForeignTable }
}

impl<P: Protocol> State<P> {
    pub(crate) fn new(
        engine: &Engine<P>,
        mut worker: Worker<P::SessionVersions>,
        counts: &Arc<LockCounters>,
    ) -> State<P> {
        let log = engine
            .log
            .get()
            .map(|log| Box::new(SessionLog::new(log, engine.following().is_some())));
        worker.local.is_logged = log.is_some();
        let mut writes = WriteSet::default();
        if engine.options.factors.has(Factor::PlainSets) {
            writes.search_plainly();
        }
        State {
            attempt: P::attempt(&engine.clock, counts),
            writes,
            worker,
            attempt_number: 0,
            last_conflict: None,
            doomed: None,
            failed: None,
            failed_at: AT_COMMIT,
            deferred: Deferred::default(),
            limits: StagedLimits::default(),
            scratch: Vec::new(),
            kept: Vec::new(),
            index_scratch: IndexScratch::default(),
            operations: FIRST_REVALIDATION,
            until_revalidation: FIRST_REVALIDATION,
            log,
            held: 0,
            registered: None,
            unwinds: engine.options.factors.has(Factor::UnwindingAborts),
            retries: false,
            has_observed: false,
            has_waited: false,
        }
    }

    /// Starts an attempt.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn begin(&mut self, engine: &Engine<P>) {
        self.doomed = None;
        self.failed = None;
        (self.operations, self.until_revalidation) = (FIRST_REVALIDATION, FIRST_REVALIDATION);
        P::begin(&mut Context::new(engine, &mut self.worker), &mut self.attempt);
    }

    /// Enters an operation. Returns the conflict if the attempt is doomed, and revalidates a long
    /// attempt now and then.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn enter(&mut self, engine: &Engine<P>) -> Result<(), Abort> {
        self.until_revalidation -= 1;
        if self.until_revalidation == 0 { self.revalidate_early(engine) } else { Ok(()) }
    }

    /// Observes a unit in the database, without the transaction's own writes. Returns whether the
    /// row exists.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn observe(
        &mut self,
        engine: &Engine<P>,
        at: CellAt,
        copy: impl FnMut(Words<'_>),
    ) -> Result<bool, Abort> {
        let context = &mut Context::new(engine, &mut self.worker);
        match P::read(context, &mut self.attempt, at, copy) {
            Ok(seen) => Ok(seen.present),
            Err(abort) => Err(self.doom(abort)),
        }
    }

    /// Reads a unit if no slow path is needed, and returns whether the row exists. The transaction
    /// has then not written the unit, so the result also holds at any earlier mark. Returns `None`,
    /// with nothing observed, if [`State::read`] or [`State::read_at_mark`] must read the unit. The
    /// caller has already called [`State::enter`].
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn read_at_once(&mut self, at: CellAt, copy: impl FnMut(Words<'_>)) -> Option<bool> {
        if !self.is_simple(at) {
            return None;
        }
        P::read_at_once(&mut self.attempt, at, copy).map(|seen| seen.present)
    }

    /// Returns whether the attempt has not written a unit.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn is_simple(&self, at: CellAt) -> bool {
        self.writes.find(at).is_none()
    }

    /// Reads a unit as the transaction sees it. Returns whether the row exists. The caller has
    /// already called [`State::enter`].
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn read(
        &mut self,
        engine: &Engine<P>,
        at: CellAt,
        mut copy: impl FnMut(Words<'_>),
    ) -> Result<bool, Abort> {
        match self.writes.find(at) {
            None => self.observe(engine, at, copy),
            Some(item) if self.writes.items()[item].present => {
                self.read_own(engine, item, access::Mark::NOW, &mut copy)
            }
            Some(_) => Ok(false),
        }
    }

    /// Returns whether a number of a unit is in `range`, as the transaction sees it; `None` if the
    /// row does not exist. Observes that, and not the number, if the protocol can. The caller has
    /// already called [`State::enter`].
    #[inline(never)]
    pub(crate) fn is_within(
        &mut self,
        engine: &Engine<P>,
        at: CellAt,
        range: NumberRange,
    ) -> Result<Option<bool>, Abort> {
        let mut number = 0;
        let own = self.writes.find(at);
        let added = match own {
            None => Sums::default(),
            Some(item) if !self.writes.items()[item].present => return Ok(None),
            Some(item) => match self.writes.sums_on(item, range.place()) {
                Some(sums) => sums,
                None => {
                    let copy = &mut |words: Words<'_>| number = range.number(words);
                    self.read_own(engine, item, access::Mark::NOW, copy)?;
                    return Ok(Some(range.has(number)));
                }
            },
        };
        let present = self.observe(engine, at, |words| number = range.number(words))?;
        if let Some(item) = own
            && !self.writes.items()[item].accepts(present)
        {
            let context = &mut Context::new(engine, &mut self.worker);
            let abort = context.conflict(Abort::ExistenceChanged, at);
            return Err(self.doom(abort));
        }
        if !present {
            return Ok(None);
        }
        let are_possible = [added.least, added.most].map(|sum| range.is_possible(number + sum));
        if let Some(item) = own
            && are_possible != [true; 2]
        {
            // One of the pending updates fails.
            self.read_own(engine, item, access::Mark::NOW, &mut |_| {})?;
        }
        let sum = number + added.all;
        let same_answer = range.around(sum).before_adding(added.all);
        let same_answer = same_answer.where_sums_are_possible(added.least, added.most);
        P::loosen(&mut self.attempt, at, same_answer);
        Ok(Some(range.has(sum)))
    }

    /// Reads a unit as [`State::read`] does, and locks the unit first if the protocol can. The
    /// caller has been admitted to write. A unit that the transaction's own writes replace is not
    /// locked before the commit.
    pub(super) fn read_for_update(
        &mut self,
        engine: &Engine<P>,
        at: CellAt,
        mut copy: impl FnMut(Words<'_>),
    ) -> Result<bool, Abort> {
        let Some(item) = self.writes.find(at) else {
            return self.observe_for_update(engine, at, copy);
        };
        if !self.writes.items()[item].present {
            return Ok(false);
        }
        if !self.writes.replaces_unit(item) && !self.writes.is_pending(item, access::Mark::NOW) {
            // If the row has been deleted, the read below notices this.
            match self.observe_for_update(engine, at, |_| {}) {
                Err(abort) if abort.is_conflict() => return Err(abort),
                _ => {}
            }
        }
        self.read_own(engine, item, access::Mark::NOW, &mut copy)
    }

    fn observe_for_update(
        &mut self,
        engine: &Engine<P>,
        at: CellAt,
        copy: impl FnMut(Words<'_>),
    ) -> Result<bool, Abort> {
        let context = &mut Context::new(engine, &mut self.worker);
        match P::read_for_update(context, &mut self.attempt, at, copy) {
            Ok(seen) => {
                // An absent unit is not held.
                if seen.present {
                    Held::unit(at, self.worker.local.id).note();
                    self.held += 1;
                }
                Ok(seen.present)
            }
            Err(abort) => Err(self.doom(abort)),
        }
    }

    /// Reads a unit that the transaction has written: the stored image, changed by the
    /// transaction's operations before the mark. Out of line, so that reads of other rows are
    /// short.
    #[cold]
    #[inline(never)]
    pub(super) fn read_own(
        &mut self,
        engine: &Engine<P>,
        index: usize,
        mark: access::Mark,
        copy: &mut dyn FnMut(Words<'_>),
    ) -> Result<bool, Abort> {
        if self.writes.is_pending(index, mark) {
            return Err(Abort::NotYet);
        }
        let observes =
            !self.writes.replaces_unit(index) || self.is_updated_blindly(engine, index)?;
        let item = self.writes.items()[index];
        let mut image = std::mem::take(&mut self.scratch);
        image.clear();
        image.resize(item.at.payload_words(), 0);
        let mut below = Ok(true);
        if observes {
            let count = image.len();
            below = self.observe(engine, item.at, |words| {
                words.copy(0, count, |word, value| image[word] = value)
            });
            if let Ok(present) = below
                && !item.accepts(present)
            {
                let context = &mut Context::new(engine, &mut self.worker);
                let abort = context.conflict(Abort::ExistenceChanged, item.at);
                below = Err(self.doom(abort));
            }
        }
        let read = below.and_then(|_| match self.writes.overlay_at(index, mark, &mut image) {
            Ok(()) => {
                copy(Words::Own(&image));
                Ok(true)
            }
            Err((number, abort)) => {
                self.note_failure(number, abort);
                Err(abort)
            }
        });
        self.scratch = image;
        read
    }

    /// Refuses to write or to lock in a read-only transaction.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn admit_write(&self) -> Result<(), Abort> {
        if self.worker.local.read_view != ReadView::Current { Err(Abort::ReadOnly) } else { Ok(()) }
    }

    /// Returns a mark of the current moment, to which a scan can return.
    pub(crate) fn mark(&mut self) -> Mark {
        Mark { writes: self.writes.mark(), applied: P::InPlace::mark(&mut self.attempt) }
    }

    /// Reads a unit as the transaction saw it at a mark. Returns whether the row existed.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn read_at_mark(
        &mut self,
        engine: &Engine<P>,
        at: CellAt,
        mark: Mark,
        mut copy: impl FnMut(Words<'_>),
    ) -> Result<bool, Abort> {
        if let Some(item) = self.writes.find(at)
            && let Some(present) = self.writes.present_at(item, mark.writes)
        {
            return if present {
                self.read_own(engine, item, mark.writes, &mut copy)
            } else {
                Ok(false)
            };
        }
        let (context, attempt) = (&mut Context::new(engine, &mut self.worker), &mut self.attempt);
        let seen = match P::InPlace::APPLIES_AT_ONCE {
            true => P::InPlace::read_at_mark(context, attempt, at, mark.applied, copy),
            false => P::read(context, attempt, at, copy),
        };
        match seen {
            Ok(seen) => Ok(seen.present),
            Err(abort) => Err(self.doom(abort)),
        }
    }

    /// Returns whether the row exists as the transaction sees it. The row is observed, unless the
    /// protocol lets the transaction assume `expected`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn exists(&mut self, engine: &Engine<P>, at: CellAt, expected: bool) -> Result<bool, Abort> {
        self.enter(engine)?;
        if let Some(index) = self.writes.find(at) {
            let present = self.writes.items()[index].present;
            if present && !expected && self.is_updated_blindly(engine, index)? {
                // The closure is told that the row exists.
                self.observe_expected(engine, index)?;
            }
            return Ok(present);
        }
        if self.assumes(engine, at, expected)? {
            Ok(expected)
        } else {
            self.observe_existence(engine, at)
        }
    }

    /// Observes the row with this first unit and returns whether it exists, if the next operation
    /// on it would otherwise answer blindly; else returns `if_unasked`. The answer goes to the
    /// closure as a value.
    pub(crate) fn learn_existence(
        &mut self,
        engine: &Engine<P>,
        first: CellAt,
        if_unasked: bool,
    ) -> Result<bool, Abort> {
        if !P::assumes_blindly(&mut Context::new(engine, &mut self.worker), first) {
            return Ok(if_unasked);
        }
        self.enter(engine)?;
        if let Some(index) = self.writes.find(first) {
            // So far the closure has been told what its own writes assume.
            self.observe_expected(engine, index)?;
        }
        self.is_there(engine, first)
    }

    /// Returns whether the attempt has updated or deleted the row of an item without a look whether
    /// the row exists, and the row may not exist.
    pub(super) fn is_updated_blindly(
        &mut self,
        engine: &Engine<P>,
        index: usize,
    ) -> Result<bool, Abort> {
        let item = self.writes.items()[index];
        let context = &mut Context::new(engine, &mut self.worker);
        if !P::ASSUMES_BLINDLY
            || item.expects != Some(true)
            || !P::assumes_blindly(context, item.at)
        {
            return Ok(false);
        }
        let is_permanent = P::is_permanent(context, &mut self.attempt, item.at);
        is_permanent.map(|is_permanent| !is_permanent).map_err(|abort| self.doom(abort))
    }

    /// Observes whether the row of an item exists, if the item expects that it does or does not.
    ///
    /// # Errors
    /// A conflict: if the row is not as expected, [`Abort::ExistenceChanged`].
    #[inline(never)]
    fn observe_expected(&mut self, engine: &Engine<P>, index: usize) -> Result<(), Abort> {
        let item = self.writes.items()[index];
        if item.expects.is_none() || item.accepts(self.observe_existence(engine, item.at)?) {
            return Ok(());
        }
        let context = &mut Context::new(engine, &mut self.worker);
        let abort = context.conflict(Abort::ExistenceChanged, item.at);
        Err(self.doom(abort))
    }

    /// Returns whether the protocol lets the closure assume, without an observation, that the row
    /// exists (if `exists`) or is absent.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn assumes(&mut self, engine: &Engine<P>, at: CellAt, exists: bool) -> Result<bool, Abort> {
        let context = &mut Context::new(engine, &mut self.worker);
        P::assumes(context, &mut self.attempt, at, exists).map_err(|abort| self.doom(abort))
    }

    fn observe_existence(&mut self, engine: &Engine<P>, at: CellAt) -> Result<bool, Abort> {
        match self.observe(engine, at, |_| {}) {
            // A unit whose pending update has failed belongs to a row that exists.
            Err(outcome) if !outcome.is_conflict() => Ok(true),
            observed => observed,
        }
    }

    /// Calls [`State::enter`], and checks that an update may be staged on this unit.
    ///
    /// # Errors
    /// [`Abort::NotFound`] if the row does not exist.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn admit_update(&mut self, engine: &Engine<P>, at: CellAt) -> Result<(), Abort> {
        self.enter(engine)?;
        match self.writes.find(at) {
            None if engine.options.commit_time_updates && self.assumes(engine, at, true)? => Ok(()),
            own => self.look_before_update(engine, at, own),
        }
    }

    /// Completes [`State::admit_update`] for a unit. `own` is the unit's item in the write set; if
    /// `own` is `None`, the unit must be observed.
    #[inline(never)]
    fn look_before_update(
        &mut self,
        engine: &Engine<P>,
        at: CellAt,
        own: Option<usize>,
    ) -> Result<(), Abort> {
        let exists = match own {
            Some(item) => self.writes.items()[item].present,
            None => self.observe_existence(engine, at)?,
        };
        if exists { Ok(()) } else { Err(self.outcome_at(Abort::NotFound, at)) }
    }

    /// Returns whether the row with this first unit exists, so that a delete may be staged.
    pub(crate) fn can_delete(&mut self, engine: &Engine<P>, first: CellAt) -> Result<bool, Abort> {
        self.exists(engine, first, true)
    }

    /// Returns whether the record with this first unit holds no row, so that an insert may be
    /// staged.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn can_insert(&mut self, engine: &Engine<P>, first: CellAt) -> Result<bool, Abort> {
        self.exists(engine, first, false).map(|exists| !exists)
    }

    /// Returns whether the row with this first unit exists as the transaction sees it. The row is
    /// observed in either case, unless the transaction has written it.
    #[cold]
    pub(crate) fn is_there(&mut self, engine: &Engine<P>, first: CellAt) -> Result<bool, Abort> {
        match self.writes.find(first) {
            Some(item) => Ok(self.writes.items()[item].present),
            None => self.observe_existence(engine, first),
        }
    }

    /// Stages one write.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn stage(
        &mut self,
        engine: &Engine<P>,
        at: CellAt,
        intent: Intent,
        op: Op,
    ) -> Result<(), Abort> {
        self.admit_write()?;
        self.stage_admitted(engine, at, intent, op)
    }

    /// Stages one write. The caller has been admitted to write.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn stage_admitted(
        &mut self,
        engine: &Engine<P>,
        at: CellAt,
        intent: Intent,
        op: Op,
    ) -> Result<(), Abort> {
        let context = &mut Context::new(engine, &mut self.worker);
        let staged = P::stage(context, &mut self.attempt, &mut self.writes, at, intent, op);
        staged.map_err(|abort| self.fail_to_stage(abort))
    }

    /// Stages the insertion of a row whose record has just been linked. The row's words begin at
    /// `operand` among the operands.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn stage_new(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        record: RecordAt,
        operand: u32,
    ) -> Result<(), Abort> {
        let context = &mut Context::new(engine, &mut self.worker);
        let cells = table.layout.cells(record);
        let staged = P::stage_new(context, &mut self.attempt, &mut self.writes, cells, operand);
        staged.map_err(|abort| self.fail_to_stage(abort))
    }

    #[cold]
    fn fail_to_stage(&mut self, abort: Abort) -> Abort {
        if abort.is_conflict() {
            self.doom(abort)
        } else {
            // Part of an operation has been staged. The transaction must not commit without the
            // rest. The last operation is the refused one. It belongs to the same parts of the
            // transaction as the staged operations; the next operation may belong to other parts.
            self.note_failure(self.writes.last_operation(), abort);
            self.failed.unwrap_or(abort)
        }
    }

    /// Admits an operation on a table: the table must belong to this database, and the attempt must
    /// not be doomed.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn admit(&mut self, engine: &Engine<P>, table: &TableCore) -> Result<(), Abort> {
        if !table.owner.is(engine.id) {
            return Err(refused(table));
        }
        self.enter(engine)
    }

    #[cfg(all(test, not(loom)))]
    pub(crate) fn attempt_for_tests(&self) -> &P::Attempt {
        &self.attempt
    }

    /// Returns the sizes of the read set and of the write set.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn set_sizes(&self) -> (usize, usize) {
        (P::read_set_size(&self.attempt), self.writes.items().len())
    }
}
