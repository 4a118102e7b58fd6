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
//! commit, fail with the outcome of that update.

#![forbid(unsafe_code)]

use super::deferred::Deferred;
use super::index_scratch::IndexScratch;
use super::limits::StagedLimits;
use super::session_log::{NOW, SEEN, SessionLog};
use crate::access::{self, Intent, WriteSet};
use crate::engine::own_thread::{self, Held};
use crate::engine::{
    Committed, ConflictNote, Context, Engine, InPlace, Local, Missing, Protocol, ReadView,
    TableCore, Versions, Worker,
};
use crate::epoch::Epoch;
use crate::error::Abort;
use crate::factor::Factor;
use crate::index::{Found, Linked, Place, Start, Supplies};
use crate::log::LogTurn;
use crate::memory::Cache;
use crate::record::{CellAt, RecordAt};
use crate::schema::{KeyPacking, Op, Unit, Units, Words};
use crate::stats::LockCounters;
use crate::sync::{MODELLED, Mutant, Ordering, Point, Spin, mutant, pass};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

/// The number of operations after which a running transaction is first revalidated. This number
/// doubles with each revalidation, so that revalidation costs a constant share.
const FIRST_REVALIDATION: u32 = 64;

/// The number of epochs after which a read-only transaction is registered as a snapshot.
/// Registering takes a lock, but few transactions run for so many epochs.
const KEPT_AFTER: Epoch = 8;

/// The number of rounds for which a put or an insert waits until the collector, which has marked
/// the key's record as dead, has unlinked it.
const UNLINK_ROUNDS_MAX: u32 = if MODELLED { 2 } else { 80 };

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
    /// in this outcome. [`Abort::NotUnique`] if none was returned and there are `deferred` entries.
    pub(super) failed: Option<Abort>,
    /// The number of the operation to which `failed` belongs, or [`AT_COMMIT`].
    pub(super) failed_at: u32,
    /// The rows that wait for another row to give up its key; empty outside of an attempt.
    pub(super) deferred: Deferred,
    /// The limits of sequences that parts of the transaction have staged.
    pub(super) limits: StagedLimits,
    scratch: Vec<u64>,
    pub(super) index_scratch: IndexScratch,
    /// The number of operations that the attempt will have made at the next revalidation.
    operations: u32,
    /// The number of operations until the next revalidation; one if the attempt is doomed, so that
    /// each further operation returns the conflict.
    pub(super) until_look: u32,
    /// The session's end of the log; `None` if the database has no log.
    pub(crate) log: Option<Box<SessionLog>>,
    /// The number of units that the attempt has noted as held.
    held: u32,
    /// Whether conflicts unwind the stack.
    unwinds: bool,
}

/// The number behind those of all operations: that of an outcome which only the commit returns.
pub(super) const AT_COMMIT: u32 = u32::MAX;

/// The panic payload of a conflict that unwinds the stack.
pub(super) struct Unwound(pub(super) Abort);

/// The target record of an insert or put.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InsertTarget {
    pub(crate) record: RecordAt,
    /// Whether this transaction has just linked the record and not written it yet. Such a record
    /// holds no row, but has room for one. For any other record, the writer first makes room.
    pub(crate) is_new: bool,
}

/// A moment in the life of a transaction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    writes: access::Mark,
    /// The number of applied writes, under protocols that apply writes at once.
    applied: usize,
}

impl<P: Protocol> State<P> {
    pub(crate) fn new(
        engine: &Engine<P>,
        mut worker: Worker<P::SessionVersions>,
        counts: &Arc<LockCounters>,
    ) -> State<P> {
        let log = engine.log.get().map(|log| Box::new(SessionLog::new(log)));
        worker.local.is_logged = log.is_some();
        State {
            attempt: P::attempt(&engine.clock, counts),
            writes: WriteSet::default(),
            worker,
            attempt_number: 0,
            last_conflict: None,
            doomed: None,
            failed: None,
            failed_at: AT_COMMIT,
            deferred: Deferred::default(),
            limits: StagedLimits::default(),
            scratch: Vec::new(),
            index_scratch: IndexScratch::default(),
            operations: FIRST_REVALIDATION,
            until_look: FIRST_REVALIDATION,
            log,
            held: 0,
            unwinds: engine.options.factors.has(Factor::UnwindingAborts),
        }
    }

    /// Starts an attempt.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn begin(&mut self, engine: &Engine<P>) {
        self.doomed = None;
        self.failed = None;
        (self.operations, self.until_look) = (FIRST_REVALIDATION, FIRST_REVALIDATION);
        P::begin(&mut Context::new(engine, &mut self.worker), &mut self.attempt);
    }

    fn doom(&mut self, abort: Abort) -> Abort {
        if abort.is_conflict() {
            self.doomed.get_or_insert(abort);
            self.until_look = 1;
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

    /// Ends a failed commit by unwinding or by returning the error.
    #[cold]
    pub(super) fn unwind_at_commit(&self, abort: Abort) -> Result<(), Abort> {
        if abort.is_conflict() {
            self.unwind(abort);
        }
        Err(abort)
    }

    /// Enters an operation. Returns the conflict if the attempt is doomed, and revalidates a long
    /// attempt now and then.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn enter(&mut self, engine: &Engine<P>) -> Result<(), Abort> {
        self.until_look -= 1;
        if self.until_look == 0 { self.revalidate_early(engine) } else { Ok(()) }
    }

    #[cold]
    #[inline(never)]
    fn revalidate_early(&mut self, engine: &Engine<P>) -> Result<(), Abort> {
        if let Some(abort) = self.doomed {
            self.until_look = 1;
            return Err(abort);
        }
        self.until_look = self.operations;
        self.operations = self.operations.saturating_mul(2);
        if self.worker.local.read_view == ReadView::AtBegin {
            self.register_snapshot(engine);
        }
        self.look_at_all(engine)
    }

    /// Returns an error if the attempt is doomed, or if changes of other transactions doom it now.
    #[cold]
    pub(super) fn validate(&mut self, engine: &Engine<P>) -> Result<(), Abort> {
        match self.doomed {
            Some(abort) => Err(abort),
            None => self.look_at_all(engine),
        }
    }

    /// Validates that everything read is unchanged, and that each row to be written exists or is
    /// absent, as expected.
    fn look_at_all(&mut self, engine: &Engine<P>) -> Result<(), Abort> {
        let context = &mut Context::new(engine, &mut self.worker);
        // The write set passed is empty. A commit ignores locks on units of its write set, because
        // these are its own locks; but staged writes are not locked yet, so here every lock is
        // another session's.
        let mut valid = P::revalidate(context, &mut self.attempt, &WriteSet::default());
        for item in self.writes.items() {
            if valid.is_ok() && !item.accepts(P::is_present(&self.attempt, item.at)) {
                valid = Err(context.conflict(Abort::ExistenceChanged, item.at));
            }
        }
        valid.map_err(|abort| self.doom(abort))
    }

    /// Observes a unit in the database, without the transaction's own writes. Returns whether the
    /// row exists.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn observe(
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

    /// Registers a long read-only attempt as a snapshot, so that the attempt delays collection no
    /// more than a snapshot does.
    fn register_snapshot(&mut self, engine: &Engine<P>) {
        let Local { slot, kept, .. } = &mut self.worker.local;
        let is_long = |epoch: &Epoch| engine.epochs.now() >= epoch + KEPT_AFTER;
        if kept.is_none()
            && let Some(epoch) = slot.pinned_epoch().filter(is_long)
            && let since = engine.epochs.moment_of(epoch)
            && let Some(time) = P::Versions::register_snapshot(&engine.clock, &self.attempt, since)
        {
            *kept = Some((time, since));
            engine.epochs.hold_memory_only(slot);
        }
    }

    /// Unregisters the snapshot of a long read-only attempt.
    #[cold]
    fn unregister_snapshot(&mut self, engine: &Engine<P>) {
        let (time, since) = self.worker.local.kept.take().expect("it is kept");
        P::Versions::unregister_snapshot(&engine.clock, time, since);
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
        self.writes.find(at).is_none() && !mutant(Mutant::AbsentSkippedByScan)
    }

    /// Calls [`State::read_at_once`] for one unit after another, and removes each from `units`.
    /// Returns `None` at the first unit that needs the slow path; that unit stays in `units`.
    /// Otherwise returns whether the row exists.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn read_units_at_once(
        &mut self,
        table: &TableCore,
        record: RecordAt,
        units: &mut Units,
        mut copy: impl FnMut(Unit, Words<'_>),
    ) -> Option<bool> {
        loop {
            let left = *units;
            let Some(unit) = units.next() else { return Some(true) };
            match self.read_at_once(table.layout.at(record, unit), |from| copy(unit, from)) {
                Some(true) => {}
                Some(false) => return Some(false),
                None => {
                    *units = left;
                    return None;
                }
            }
        }
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

    /// Appends `count` bytes of a unit, from its word `first` on, to `to`. Returns whether the row
    /// exists; if not, or if the read fails, `to` stays the same.
    pub(crate) fn append_bytes(
        &mut self,
        engine: &Engine<P>,
        at: CellAt,
        (first, count): (usize, usize),
        to: &mut Vec<u8>,
    ) -> Result<bool, Abort> {
        let before = to.len();
        to.resize(before + count, 0);
        let mut copy = |from: Words<'_>| from.copy_bytes(first, &mut to[before..]);
        let is_there = match self.read_at_once(at, &mut copy) {
            Some(is_there) => Ok(is_there),
            None => self.read(engine, at, copy),
        };
        if is_there != Ok(true) {
            to.truncate(before);
        }
        is_there
    }

    /// Reads units of a record as [`State::read`] does. Calls `copy` with each unit and its words,
    /// perhaps several times; the words of the last call are consistent.
    #[inline(never)]
    pub(crate) fn read_units(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        (record, units): (RecordAt, Units),
        copy: &mut dyn FnMut(Unit, Words<'_>),
    ) -> Result<bool, Abort> {
        for unit in units {
            if !self.read(engine, table.layout.at(record, unit), |from| copy(unit, from))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads units as [`State::read_units`] does, and locks them as [`State::read_for_update`]
    /// does.
    pub(crate) fn read_units_for_update(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        (record, units): (RecordAt, Units),
        copy: &mut dyn FnMut(Unit, Words<'_>),
    ) -> Result<bool, Abort> {
        for unit in units {
            if !self
                .read_for_update(engine, table.layout.at(record, unit), |from| copy(unit, from))?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads a unit as [`State::read`] does, and locks the unit first if the protocol can. The
    /// caller has been admitted to write. A unit that the transaction's own writes replace is not
    /// locked before the commit.
    fn read_for_update(
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
        if !self.writes.replaces_unit(item) {
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
        let item = self.writes.items()[index];
        let mut image = std::mem::take(&mut self.scratch);
        image.clear();
        image.resize(item.at.payload_words(), 0);
        let mut below = Ok(true);
        if !self.writes.replaces_unit(index) {
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

    /// Refuses to write or to lock in a read-only transaction.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn admit_write(&self) -> Result<(), Abort> {
        if self.worker.local.read_view != ReadView::Current { Err(Abort::ReadOnly) } else { Ok(()) }
    }

    /// Returns whether the attempt must search the index of deleted records. (A read-only attempt
    /// that is not registered as a snapshot need not search there: its pin keeps records in the
    /// main index.) Called after admission, which may register the attempt.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn needs_deleted_index(&self) -> bool {
        P::Versions::KEEPS_DELETED_INDEX
            && match self.worker.local.read_view {
                ReadView::Current => false,
                ReadView::AtBegin => self.worker.local.kept.is_some(),
                ReadView::Snapshot(_) => true,
            }
    }

    /// Returns whether a scan may continue after a node that it has read was replaced. A scan of an
    /// older read view may, since it does not depend on the node.
    pub(crate) fn is_looking_back(&self, engine: &Engine<P>) -> bool {
        P::Versions::WORDS > 0
            && engine.properties.version_words > 0
            && self.worker.local.read_view != ReadView::Current
    }

    /// Returns a mark of the current moment, to which a scan can return.
    pub(crate) fn mark(&mut self) -> Mark {
        Mark { writes: self.writes.mark(), applied: P::InPlace::mark(&mut self.attempt) }
    }

    /// Notes the position of a scan.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn scanned(
        &mut self,
        engine: &Engine<P>,
        scan: usize,
        to: impl FnOnce() -> Option<CellAt>,
    ) {
        P::scanned(&Context::new(engine, &mut self.worker), &mut self.attempt, scan, to);
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

    /// Reads units of a record as [`State::read_at_mark`] does, and calls `copy` as
    /// [`State::read_units`] does.
    #[inline]
    pub(crate) fn read_units_at_mark(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        (record, units): (RecordAt, Units),
        mark: Mark,
        copy: &mut dyn FnMut(Unit, Words<'_>),
    ) -> Result<bool, Abort> {
        let mark = self.mark_of_scan(mark);
        for unit in units {
            let at = table.layout.at(record, unit);
            if !self.is_observed_by_scan(at)
                || !self.read_at_mark(engine, at, mark, |from| copy(unit, from))?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the mark at which a scan reads: its own mark, `mark`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn mark_of_scan(&mut self, mark: Mark) -> Mark {
        if mutant(Mutant::MarkIgnored) { self.mark() } else { mark }
    }

    /// Returns whether a scan observes a unit even if its row is absent: always `true`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn is_observed_by_scan(&self, at: CellAt) -> bool {
        let is_skipped = || self.writes.find(at).is_none() && !P::is_present(&self.attempt, at);
        !(mutant(Mutant::AbsentSkippedByScan) && is_skipped())
    }

    /// Returns whether the row exists as the transaction sees it. The row is observed, unless the
    /// protocol lets the transaction assume `expected`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn exists(&mut self, engine: &Engine<P>, at: CellAt, expected: bool) -> Result<bool, Abort> {
        self.enter(engine)?;
        if let Some(item) = self.writes.find(at) {
            return Ok(self.writes.items()[item].present);
        }
        if self.assumes(engine, at, expected)? {
            Ok(expected)
        } else {
            self.observe_existence(engine, at)
        }
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
        if exists { Ok(()) } else { Err(Abort::NotFound) }
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
            // rest. The last operation is the refused one: it belongs to the same parts of the
            // transaction, whereas the next one may belong to others.
            self.note_failure(self.writes.last_operation(), abort);
            self.failed.unwrap_or(abort)
        }
    }

    /// Notes that an operation has ended in a panic, and may have been staged in part. A conflict
    /// that unwinds the stack is noted already.
    pub(super) fn note_panic(&mut self) {
        if self.doomed.is_some() || mutant(Mutant::PanicForgotten) {
            return;
        }
        // Numbers of operations do not ascend where each is applied at once and then forgotten.
        if !P::InPlace::fail(&mut self.attempt, Abort::Panicked) {
            // The panic may have come before the first part of the operation was staged.
            let number = self.writes.push_nothing();
            self.note_failure(number, Abort::Panicked);
        }
    }

    /// Notes that the operation with this number has failed. The first failure in program order
    /// counts.
    fn note_failure(&mut self, number: u32, abort: Abort) {
        if self.failed.is_none() || number < self.failed_at {
            (self.failed, self.failed_at) = (Some(abort), number);
        }
    }

    /// Makes sure that a commit ends in an outcome exactly if an operation has failed or there are
    /// deferred entries. Called after each change of these.
    pub(super) fn note_deferred(&mut self) {
        if self.failed.is_none() || self.failed_at == AT_COMMIT {
            self.failed = (!self.deferred.is_empty()).then_some(Abort::NotUnique);
            self.failed_at = AT_COMMIT;
        }
    }

    /// Admits an operation on a table: the table must belong to this database, and the attempt must
    /// not be doomed.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn admit(&mut self, engine: &Engine<P>, table: &TableCore) -> Result<(), Abort> {
        if table.database != engine.id {
            return Err(Abort::ForeignTable);
        }
        self.enter(engine)
    }

    /// Looks up a key, without observing anything.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn find(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        key: &[u64],
    ) -> Result<Found, Abort> {
        self.admit(engine, table)?;
        table.check_key(key);
        if P::Versions::KEEPS_DELETED_INDEX && self.worker.local.read_view != ReadView::Current {
            return Ok(self.find_back(table, key));
        }
        Ok(table.index.find(key))
    }

    /// Packs a key and calls [`State::find`].
    #[inline(never)]
    pub(crate) fn find_packed(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        packing: KeyPacking,
        words: &[u64],
    ) -> Result<Found, Abort> {
        self.find(engine, table, packing.pack(words).as_slice())
    }

    /// Looks up again a key that had no record a moment ago. If the key still has no record,
    /// observes its absence.
    #[cold]
    #[inline(never)]
    pub(crate) fn look_again(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        key: &[u64],
    ) -> Result<Option<RecordAt>, Abort> {
        match self.find(engine, table, key)? {
            Found::Record(record) => Ok(Some(record)),
            Found::Nothing { node, version } => {
                self.absent(
                    engine,
                    Missing { table: table.number, key: Some(key), node, version },
                )?;
                Ok(None)
            }
        }
    }

    /// Looks up a key for an older read view. Out of line, so that looking up the current row is
    /// short.
    #[cold]
    #[inline(never)]
    fn find_back(&self, table: &TableCore, key: &[u64]) -> Found {
        self.read_view(table, key, table.index.find(key))
    }

    /// Returns the record of a key for the attempt's read view; `found` is the result in the
    /// table's main index. If a record in the index of deleted records held the row in that view,
    /// returns that record.
    pub(crate) fn read_view(&self, table: &TableCore, key: &[u64], found: Found) -> Found {
        if !self.needs_deleted_index() {
            return found;
        }
        table.check_key(key);
        let deleted_index = table.deleted_index().filter(|deleted_index| !deleted_index.is_empty());
        match deleted_index.and_then(|deleted_index| deleted_index.find(key)) {
            Some(record) if self.is_older(table, record) => Found::Record(record),
            _ => found,
        }
    }

    /// Returns whether the attempt's read view is older than the deletion of the row of `record`,
    /// which is in the index of deleted records. If so, no other record of the same key holds the
    /// row of that view.
    pub(crate) fn is_older(&self, table: &TableCore, record: RecordAt) -> bool {
        mutant(Mutant::DeletedIndexPreferred)
            || P::Versions::is_older(&self.attempt, table.layout.first_of(record))
    }

    /// Observes that a key has no record.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn absent(&mut self, engine: &Engine<P>, missing: Missing<'_>) -> Result<(), Abort> {
        let context = &mut Context::new(engine, &mut self.worker);
        P::absent(context, &mut self.attempt, as_searched(missing))
            .map_err(|abort| self.doom(abort))
    }

    /// Returns the record of a key. If the key has none, links an absent record.
    pub(crate) fn record_for(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        key: &[u64],
    ) -> Result<InsertTarget, Abort> {
        self.admit(engine, table)?;
        self.admit_write()?;
        table.check_key(key);
        let mut place = Place::default();
        match table.index.find_place(key, &mut place) {
            Found::Record(record) => self.existing(engine, table, record),
            Found::Nothing { .. } => self.link(engine, table, key, &mut place),
        }
    }

    /// Returns a record that this operation has found in the index, as the target of an insert or
    /// put. The record stays in the index until the attempt has ended.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn existing(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        record: RecordAt,
    ) -> Result<InsertTarget, Abort> {
        if P::may_be_reaped(&engine.clock, table.layout.first_of(record)) {
            return self.keep(engine, table, record);
        }
        Ok(InsertTarget { record, is_new: false })
    }

    #[cold]
    #[inline(never)]
    fn keep(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        record: RecordAt,
    ) -> Result<InsertTarget, Abort> {
        let context = &mut Context::new(engine, &mut self.worker);
        match P::keep(context, table.layout.first_of(record)) {
            Ok(true) => Ok(InsertTarget { record, is_new: false }),
            Ok(false) => self.instead_of_dead(engine, table, record),
            Err(abort) => Err(self.doom(abort)),
        }
    }

    /// Returns the target of an insert or put of a key whose record is dead: another record, as
    /// soon as the collector has unlinked the dead one.
    #[cold]
    #[inline(never)]
    fn instead_of_dead(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        dead: RecordAt,
    ) -> Result<InsertTarget, Abort> {
        let key = dead.key_words(table.layout.key_words());
        let mut spin = Spin::default();
        loop {
            match table.index.find(key.as_slice()) {
                Found::Nothing { .. } => {
                    return self.link(engine, table, key.as_slice(), &mut Place::default());
                }
                Found::Record(record) if record != dead => {
                    return self.existing(engine, table, record);
                }
                Found::Record(_) if spin.wait_at_most(UNLINK_ROUNDS_MAX) => {}
                Found::Record(_) => {
                    let first = table.layout.first_of(dead);
                    let context = &mut Context::new(engine, &mut self.worker);
                    let abort = context.conflict(Abort::RecordRemoved, first);
                    return Err(self.doom(abort));
                }
            }
        }
    }

    /// Reserves room for writing a whole row of a table. At this point a refusal leaves no trace.
    pub(crate) fn make_room(&mut self, engine: &Engine<P>, table: &TableCore) -> Result<(), Abort> {
        let context = &mut Context::new(engine, &mut self.worker);
        P::Versions::make_room(context, &self.attempt, table)
    }

    /// Links an absent record for a key that has none, if possible near `place`. If another
    /// transaction has linked a record for the key meanwhile, returns that record.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn link(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        key: &[u64],
        place: &mut Place,
    ) -> Result<InsertTarget, Abort> {
        table.check_key(key);
        self.admit_write()?;
        // A link raises the version of a node, so it causes conflicts like a commit.
        let context = Context::new(engine, &mut self.worker);
        context.yield_to_token().map_err(|abort| self.doom(abort))?;
        let local = &mut self.worker.local;
        let Ok(record) = RecordAt::allocate(&table.layout, key, &table.records, &mut local.caches)
        else {
            // A caller that links without a lookup does not know whether the key has a record.
            return match table.index.find(key) {
                Found::Record(record) => self.existing(engine, table, record),
                Found::Nothing { .. } => Err(Abort::MemoryLimit),
            };
        };
        let cells = table.layout.cells(record);
        // Relaxed: a record may be born with the flags of the old policy or of the new one.
        let flags = table.birth_flags.load(Ordering::Relaxed);
        cells.clone().for_each(|at| P::init_absent_cell(&engine.clock, at, flags));
        match place.link_near(record, key, &mut |node| {
            cells.clone().for_each(|at| P::inherit_from_node(&engine.clock, node, at))
        }) {
            Ok(linked) => self.note_link(engine, table, record, linked),
            Err(start) => self.link_afar(engine, table, (record, key), place, start),
        }
    }

    /// Packs a key and calls [`State::link`].
    #[inline(never)]
    pub(crate) fn link_packed(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        packing: KeyPacking,
        words: &[u64],
        place: &mut Place,
    ) -> Result<InsertTarget, Abort> {
        self.link(engine, table, packing.pack(words).as_slice(), place)
    }

    /// Completes [`State::link`] for a key that does not belong at `place`.
    #[inline(never)]
    fn link_afar(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        (record, key): (RecordAt, &[u64]),
        place: &mut Place,
        start: Start,
    ) -> Result<InsertTarget, Abort> {
        let local = &mut self.worker.local;
        let inherit_from_node = |node| {
            table.layout.cells(record).for_each(|at| P::inherit_from_node(&engine.clock, node, at))
        };
        let mut supplies = Supplies {
            caches: &mut local.caches,
            retired: &mut local.retired_parts,
            changes: &mut local.divided,
        };
        let linked =
            table.index.link(record, key, (place, start), &mut supplies, inherit_from_node);
        local.retire_parts(table.number);
        local.divided.iter().for_each(|change| P::divided(&mut self.attempt, change));
        local.divided.clear();
        let Ok(linked) = linked else {
            Cache::of(&mut local.caches, &table.records).free(&table.records, record.block());
            return Err(Abort::MemoryLimit);
        };
        self.note_link(engine, table, record, linked)
    }

    /// Notes the result of linking a record.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn note_link(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        record: RecordAt,
        linked: Linked,
    ) -> Result<InsertTarget, Abort> {
        let local = &mut self.worker.local;
        match linked {
            Linked::New { node, before, after } => {
                let first = table.layout.first_of(record);
                P::linked(&mut self.attempt, node, before, after, first);
                local.linked.push(first);
                local.count_linked(table, true);
                Ok(InsertTarget { record, is_new: true })
            }
            Linked::Existing(existing) => {
                Cache::of(&mut local.caches, &table.records).free(&table.records, record.block());
                self.existing(engine, table, existing)
            }
        }
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

    /// Commits, or ends the attempt without effect and returns the reason.
    #[inline]
    pub(crate) fn commit(&mut self, engine: &Engine<P>) -> Result<Committed, Abort> {
        if self.doomed.is_some() || self.failed.is_some() {
            let outcome = self.end_without_effect(engine, true)?;
            return Err(outcome.expect("a failed attempt has an outcome"));
        }
        if self.log.is_some() {
            return self.commit_logged(engine);
        }
        let turn = &mut LogTurn::unlogged();
        let context = &mut Context::new(engine, &mut self.worker);
        P::commit(context, &mut self.attempt, &mut self.writes, turn)
    }

    /// Commits, and leaves the record of the commit in the session's buffer.
    #[inline(never)]
    fn commit_logged(&mut self, engine: &Engine<P>) -> Result<Committed, Abort> {
        let State { attempt, writes, worker, log, .. } = self;
        let context = &mut Context::new(engine, worker);
        let log = log.as_deref_mut().expect("the database has a log");
        let (mut turn, logged) = match log.open() {
            Ok(opened) => opened,
            Err(refusal) => {
                P::abort(context, attempt, writes);
                return Err(refusal);
            }
        };
        let committed = P::commit(context, attempt, writes, &mut turn)?;
        logged.append(turn, engine, committed, |record| P::changes(attempt, writes, record));
        Ok(committed)
    }

    /// Notes, in a database with a log, that the result of the attempt rests on what the attempt
    /// has seen. The attempt has been validated, and has written nothing.
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
            SEEN if mutant(Mutant::ReadOnlyAckAtOnce) => 0,
            SEEN => P::seen_stamp(&engine.clock, &engine.epochs, &self.attempt),
            NOW if mutant(Mutant::OutcomeAckAtOnce) => 0,
            NOW => P::last_stamp(&engine.clock, &engine.epochs),
            stamp => stamp,
        }
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

    /// Ends the attempt without effect, after validating what the closure saw. Returns the outcome
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
        let writes = std::mem::take(&mut self.writes);
        P::commit(context, &mut self.attempt, &mut self.writes, &mut LogTurn::unlogged())?;
        self.note_seen();
        // Updaters may run only now, on validated words.
        let outcome = applied.or_else(|| writes.first_failure(&mut images));
        let counts = at_commit || self.failed_at != AT_COMMIT;
        Ok(outcome.or(self.failed.filter(|_| counts)))
    }

    /// Ends the attempt without effect.
    pub(crate) fn abort(&mut self, engine: &Engine<P>) {
        P::abort(&mut Context::new(engine, &mut self.worker), &mut self.attempt, &mut self.writes);
    }

    /// Locks the units that earlier attempts of the transaction wanted, except units that no longer
    /// exist. Takes the locks of the retrospective lock list first. Stops at the first unit that
    /// cannot be locked.
    #[cold]
    #[inline(never)]
    pub(crate) fn lock_wanted(&mut self, engine: &Engine<P>) {
        for (at, writes) in self.worker.local.wanted.retrospective(engine) {
            let context = &mut Context::new(engine, &mut self.worker);
            if P::lock_ahead(context, &mut self.attempt, at, writes).is_err() {
                self.worker.local.conflict = None;
                break;
            }
        }
        for at in self.worker.local.wanted.cells(engine) {
            match P::hold(&mut Context::new(engine, &mut self.worker), &mut self.attempt, at) {
                Ok(true) => {
                    Held::ahead(at, self.worker.local.id).note();
                    self.held += 1;
                }
                Ok(false) => {}
                Err(_) => {
                    self.worker.local.conflict = None;
                    break;
                }
            }
        }
    }

    /// Checks whether a lock taken ahead, which the closure has not asked for, has refused a
    /// transaction of another session inside the closure. If so, dooms the attempt, and stops later
    /// attempts from locking ahead.
    #[cold]
    #[inline(never)]
    pub(crate) fn check_locked_ahead(&mut self) {
        if own_thread::has_refused(self.held) {
            self.worker.local.wanted.turn_off();
            self.doomed.get_or_insert(Abort::Locked);
        }
    }

    /// Notes the conflict in which the attempt has ended.
    #[cold]
    pub(crate) fn note_conflict(&mut self, cause: Abort) {
        // A conflict without a note concerned no row; usually the attempt gave way to the token.
        let noted = self.worker.local.conflict.take().filter(|note| note.cause == cause);
        self.last_conflict = noted.or(Some(ConflictNote::nowhere(cause)));
    }

    /// Clears the state of an attempt after its end. Queues the records that the attempt has linked
    /// and left absent, so that they are unlinked.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn finish(&mut self, engine: &Engine<P>) {
        if P::Versions::WORDS > 0 && self.worker.local.kept.is_some() {
            self.unregister_snapshot(engine);
        }
        if self.held > 0 {
            own_thread::forget_units(std::mem::take(&mut self.held));
        }
        self.writes.clear();
        while let Some(first) = self.worker.local.linked.pop() {
            if P::enqueue_if_absent(&engine.clock, first) {
                self.worker.local.reap_queue.push(first);
            }
        }
    }
}

/// Returns how an unsuccessful search is observed: by its node, in the version that was searched.
#[cfg_attr(not(debug_assertions), inline(always))]
fn as_searched(mut missing: Missing<'_>) -> Missing<'_> {
    pass(Point::Searched);
    if mutant(Mutant::NodeObservedLate) {
        missing.version = missing.node.version();
    }
    missing
}
