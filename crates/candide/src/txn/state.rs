//! The state of a transaction, and the meaning of each operation on one row in it.
//!
//! | the transaction has … the row | read | update, modify | insert | put | delete |
//! |---|---|---|---|---|---|
//! | not touched | observe | blind; `NotFound` observed | `Duplicate` observed; else blind | blind | blind; `NotFound` observed |
//! | updated | observe, then apply the pending updates | append | `Duplicate` | replace | mark deleted |
//! | inserted or put | its own image | append | `Duplicate` | replace | mark deleted |
//! | deleted | absent | `NotFound` | present again | present again | `NotFound` |
//!
//! *Blind* means that only the row's existence is assumed, and checked at commit. A pending update
//! whose guard fails makes every later read of its unit, and the commit, fail with that outcome.

#![forbid(unsafe_code)]

use super::index_scratch::IndexScratch;
use crate::access::{self, Intent, WriteSet};
use crate::engine::own_thread::{self, Held};
use crate::engine::{
    Committed, ConflictNote, Context, Engine, Local, Missing, Protocol, ReadView, TableCore,
};
use crate::epoch::Epoch;
use crate::error::Abort;
use crate::factor::Factor;
use crate::index::{Found, Linked, Place, Start, Supplies};
use crate::memory::Cache;
use crate::record::{CellAt, RecordAt};
use crate::schema::{KeyPacking, Op, Unit, Units, Words};
use crate::sync::{Mutant, Point, mutant, pass};
use std::panic::resume_unwind;
use std::thread;

/// Observations after which a running transaction is first looked over; then after twice as many,
/// and so on, so that looking costs a constant share.
const FIRST_REVALIDATION: u32 = 64;

/// Epochs after which what a transaction sees that only reads is kept like a snapshot: that takes a
/// lock, and few take so long.
const KEPT_AFTER: Epoch = 8;

/// What a session's transactions work with, kept from attempt to attempt.
pub(crate) struct State<P: Protocol> {
    pub(crate) attempt: P::Attempt,
    pub(crate) writes: WriteSet,
    pub(crate) local: Local,
    pub(crate) attempt_number: u32,
    /// The last conflict in which an attempt of this session ended.
    pub(crate) last_conflict: Option<ConflictNote>,
    /// The conflict that dooms this attempt.
    doomed: Option<Abort>,
    /// The outcome of a pending update that this attempt has been shown; it can only end in it.
    failed: Option<Abort>,
    scratch: Vec<u64>,
    pub(super) workbench: IndexScratch,
    /// Operations that the attempt will have done when it is next looked over.
    operations: u32,
    /// Those of them that are still to come; one if the attempt is doomed, so that each further
    /// operation is told.
    until_look: u32,
    /// How many units the attempt has noted that it holds.
    held: u32,
    /// Whether conflicts unwind the stack.
    unwinds: bool,
}

/// What conflicts unwind the stack with, where they do.
pub(super) struct Unwound(pub(super) Abort);

/// The record of a key that is to be inserted or put.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InsertTarget {
    pub(crate) record: RecordAt,
    /// Whether the transaction has just linked it: then it has not written it, there is no row, and
    /// the record has room for one. Otherwise who writes makes room before.
    pub(crate) is_new: bool,
}

/// A moment in the life of a transaction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    writes: access::Mark,
    /// Of protocols that apply writes at once.
    applied: usize,
}

impl<P: Protocol> State<P> {
    pub(crate) fn new(engine: &Engine<P>, local: Local) -> State<P> {
        State {
            attempt: P::attempt(&engine.clock),
            writes: WriteSet::default(),
            local,
            attempt_number: 0,
            last_conflict: None,
            doomed: None,
            failed: None,
            scratch: Vec::new(),
            workbench: IndexScratch::default(),
            operations: FIRST_REVALIDATION,
            until_look: FIRST_REVALIDATION,
            held: 0,
            unwinds: engine.options.factors.has(Factor::UnwindingAborts),
        }
    }

    /// Starts an attempt.
    #[inline(always)]
    pub(crate) fn begin(&mut self, engine: &Engine<P>) {
        self.doomed = None;
        self.failed = None;
        (self.operations, self.until_look) = (FIRST_REVALIDATION, FIRST_REVALIDATION);
        P::begin(&mut Context::new(engine, &mut self.local), &mut self.attempt);
    }

    fn doom(&mut self, abort: Abort) -> Abort {
        if abort.is_conflict() {
            self.doomed.get_or_insert(abort);
            self.until_look = 1;
            self.unwind(abort);
        }
        abort
    }

    /// Leaves whatever is running because of a conflict, if that is how it is done and nothing is
    /// being left already.
    pub(super) fn unwind(&self, abort: Abort) {
        if self.unwinds && !thread::panicking() {
            resume_unwind(Box::new(Unwound(abort)));
        }
    }

    /// Ends a commit that has failed, in the way in which conflicts end things.
    #[cold]
    pub(super) fn unwind_at_commit(&self, abort: Abort) -> Result<(), Abort> {
        if abort.is_conflict() {
            self.unwind(abort);
        }
        Err(abort)
    }

    /// Entry of every operation: a doomed attempt does nothing more, and a long one is looked over
    /// now and then.
    #[inline(always)]
    pub(crate) fn enter(&mut self, engine: &Engine<P>) -> Result<(), Abort> {
        self.until_look -= 1;
        if self.until_look == 0 { self.look_over(engine) } else { Ok(()) }
    }

    #[cold]
    #[inline(never)]
    fn look_over(&mut self, engine: &Engine<P>) -> Result<(), Abort> {
        if let Some(abort) = self.doomed {
            self.until_look = 1;
            return Err(abort);
        }
        self.until_look = self.operations;
        self.operations = self.operations.saturating_mul(2);
        if self.local.read_view == ReadView::AtBegin {
            self.register_snapshot(engine);
        }
        self.look_at_all(engine)
    }

    /// Returns an error if the attempt is doomed, or has to be by what has changed.
    #[cold]
    pub(super) fn validate(&mut self, engine: &Engine<P>) -> Result<(), Abort> {
        match self.doomed {
            Some(abort) => Err(abort),
            None => self.look_at_all(engine),
        }
    }

    /// Looks whether all that has been read is as it was, and all rows that are to be written are
    /// there, or not, as expected.
    fn look_at_all(&mut self, engine: &Engine<P>) -> Result<(), Abort> {
        let context = &mut Context::new(engine, &mut self.local);
        // Not with the own writes, whose locks a commit excuses: what is only staged is not locked.
        let mut valid = P::revalidate(context, &mut self.attempt, &WriteSet::default());
        for item in self.writes.items() {
            if valid.is_ok() && !item.accepts(P::peek(&self.attempt, item.at)) {
                valid = Err(context.conflict(Abort::ExistenceChanged, item.at));
            }
        }
        valid.map_err(|abort| self.doom(abort))
    }

    /// Observes a unit in the database, whatever the transaction has done to it.
    #[inline(always)]
    fn observe(
        &mut self,
        engine: &Engine<P>,
        at: CellAt,
        copy: impl FnMut(Words<'_>),
    ) -> Result<bool, Abort> {
        let context = &mut Context::new(engine, &mut self.local);
        match P::read(context, &mut self.attempt, at, copy) {
            Ok(seen) => Ok(seen.present),
            Err(abort) => Err(self.doom(abort)),
        }
    }

    /// Has what an attempt sees that only reads, and has been running for long, kept as by a
    /// snapshot, so that it holds back no more than that.
    fn register_snapshot(&mut self, engine: &Engine<P>) {
        let Local { slot, kept, .. } = &mut self.local;
        let is_long = |epoch: &Epoch| engine.epochs.now() >= epoch + KEPT_AFTER;
        if kept.is_none()
            && let Some(epoch) = slot.pinned_epoch().filter(is_long)
            && let since = engine.epochs.moment_of(epoch)
            && let Some(time) = P::register_snapshot(&engine.clock, &self.attempt, since)
        {
            *kept = Some((time, since));
            engine.epochs.hold_memory_only(slot);
        }
    }

    /// Ends that.
    #[cold]
    fn unregister_snapshot(&mut self, engine: &Engine<P>) {
        let (time, since) = self.local.kept.take().expect("it is kept");
        P::unregister_snapshot(&engine.clock, time, since);
    }

    /// Reads a unit as the transaction sees it, and saw it at any mark, if that is simple: whether
    /// the row exists. Nothing, and nothing has been observed, if it has to be read by
    /// [`State::read`] or [`State::read_at_mark`]. The caller has entered.
    #[inline(always)]
    pub(crate) fn read_at_once(&mut self, at: CellAt, copy: impl FnMut(Words<'_>)) -> Option<bool> {
        if self.writes.find(at).is_some() || mutant(Mutant::AbsentSkippedByScan) {
            return None;
        }
        P::read_at_once(&mut self.attempt, at, copy).map(|seen| seen.present)
    }

    /// As [`State::read_at_once`], of units one after another, which it takes out; those are left
    /// that have to be read otherwise.
    #[inline(always)]
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

    /// Reads a unit as the transaction sees it; false if the row does not exist. The caller
    /// has entered.
    #[inline(always)]
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

    /// Reads units of a record as [`State::read`] does, and calls `copy` with the words of each,
    /// perhaps several times; what the last call was given belongs together.
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

    /// As [`State::read_units`], having locked the units as [`State::read_for_update`] does.
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

    /// As [`State::read`], having locked the unit if the protocol can; the caller has been
    /// admitted to write. Where the transaction's own writes say what the unit will be, whatever it
    /// is now, there is nothing to lock before they are committed.
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
            // Should the row be gone, reading it below finds that out, too.
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
        let context = &mut Context::new(engine, &mut self.local);
        match P::read_for_update(context, &mut self.attempt, at, copy) {
            Ok(seen) => {
                // What is not there is not held.
                if seen.present {
                    Held::unit(at, self.local.id).note();
                    self.held += 1;
                }
                Ok(seen.present)
            }
            Err(abort) => Err(self.doom(abort)),
        }
    }

    /// Reads a unit of a row that the transaction has written: the image below its operations, and
    /// those before the mark applied. Apart, so that reads of other rows are short.
    #[cold]
    #[inline(never)]
    fn read_own(
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
                let context = &mut Context::new(engine, &mut self.local);
                let abort = context.conflict(Abort::ExistenceChanged, item.at);
                below = Err(self.doom(abort));
            }
        }
        let read = below.and_then(|_| match self.writes.overlay_at(index, mark, &mut image) {
            Ok(()) => {
                copy(Words::Own(&image));
                Ok(true)
            }
            Err((_, abort)) => {
                self.failed.get_or_insert(abort);
                Err(abort)
            }
        });
        self.scratch = image;
        read
    }

    /// Dooms the attempt, which has seen a unit and what goes with it at different times.
    #[cold]
    pub(crate) fn torn(&mut self, engine: &Engine<P>, at: CellAt) -> Abort {
        let abort = Context::new(engine, &mut self.local).conflict(Abort::ExistenceChanged, at);
        self.doom(abort)
    }

    /// Dooms the attempt, which has gone through a node that is no more.
    #[cold]
    pub(crate) fn phantom(&mut self, engine: &Engine<P>, table: u16) -> Abort {
        let abort = Context::new(engine, &mut self.local).phantom(table);
        self.doom(abort)
    }

    /// Makes sure that the attempt sees what there was at a time of the protocol's.
    pub(crate) fn reach(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        time: u64,
    ) -> Result<(), Abort> {
        let context = &mut Context::new(engine, &mut self.local);
        P::reach(context, &mut self.attempt, time, table.number).map_err(|abort| self.doom(abort))
    }

    /// Refuses to write, or to lock, where the transaction is only to read.
    #[inline(always)]
    pub(crate) fn admit_write(&self) -> Result<(), Abort> {
        if self.local.read_view != ReadView::Current { Err(Abort::ReadOnly) } else { Ok(()) }
    }

    /// Whether the attempt sees what has been put out of the way of all but snapshots. (What it
    /// only reads, and is not kept like one of those, has not been put out of its way: its pin
    /// keeps it.) To be asked when it has been admitted, in which it may come to be kept.
    #[inline(always)]
    pub(crate) fn needs_deleted_index(&self) -> bool {
        P::KEEPS_DELETED_INDEX
            && match self.local.read_view {
                ReadView::Current => false,
                ReadView::AtBegin => self.local.kept.is_some(),
                ReadView::Snapshot(_) => true,
            }
    }

    /// Whether a scan may go on where what it has gone through has changed for good: it does not
    /// rest on that.
    pub(crate) fn is_looking_back(&self, engine: &Engine<P>) -> bool {
        P::VERSION_WORDS > 0
            && engine.properties.version_words > 0
            && self.local.read_view != ReadView::Current
    }

    /// Now, as something that a scan can look back to.
    pub(crate) fn mark(&mut self) -> Mark {
        Mark { writes: self.writes.mark(), applied: P::mark(&mut self.attempt) }
    }

    /// Takes note of where a scan has got to.
    #[inline(always)]
    pub(crate) fn scanned(
        &mut self,
        engine: &Engine<P>,
        scan: usize,
        to: impl FnOnce() -> Option<CellAt>,
    ) {
        P::scanned(&Context::new(engine, &mut self.local), &mut self.attempt, scan, to);
    }

    /// Reads a unit as the transaction saw it at a mark; false if the row did not exist.
    #[inline(always)]
    pub(crate) fn read_at_mark(
        &mut self,
        engine: &Engine<P>,
        at: CellAt,
        mark: Mark,
        mut copy: impl FnMut(Words<'_>),
    ) -> Result<bool, Abort> {
        let mark = if mutant(Mutant::MarkIgnored) { self.mark() } else { mark };
        if let Some(item) = self.writes.find(at)
            && let Some(present) = self.writes.present_at(item, mark.writes)
        {
            return if present {
                self.read_own(engine, item, mark.writes, &mut copy)
            } else {
                Ok(false)
            };
        }
        if mutant(Mutant::AbsentSkippedByScan) && !P::peek(&self.attempt, at) {
            return Ok(false);
        }
        let context = &mut Context::new(engine, &mut self.local);
        match P::read_at_mark(context, &mut self.attempt, at, mark.applied, copy) {
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
        for unit in units {
            if !self.read_at_mark(engine, table.layout.at(record, unit), mark, |from| {
                copy(unit, from)
            })? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the row exists as the transaction sees it; observed only if it is not `expected` to.
    #[inline(always)]
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

    /// Whether the closure may be told that the row exists, or does not, without observing it.
    #[inline(always)]
    fn assumes(&mut self, engine: &Engine<P>, at: CellAt, exists: bool) -> Result<bool, Abort> {
        let context = &mut Context::new(engine, &mut self.local);
        P::assumes(context, &mut self.attempt, at, exists).map_err(|abort| self.doom(abort))
    }

    fn observe_existence(&mut self, engine: &Engine<P>, at: CellAt) -> Result<bool, Abort> {
        match self.observe(engine, at, |_| {}) {
            // A unit whose pending update has failed belongs to a row that exists.
            Err(outcome) if !outcome.is_conflict() => Ok(true),
            observed => observed,
        }
    }

    /// Enters, and checks that an update may be staged on this unit.
    ///
    /// # Errors
    /// [`Abort::NotFound`] if the row does not exist.
    #[inline(always)]
    pub(crate) fn admit_update(&mut self, engine: &Engine<P>, at: CellAt) -> Result<(), Abort> {
        self.enter(engine)?;
        match self.writes.find(at) {
            None if engine.options.commit_time_updates && self.assumes(engine, at, true)? => Ok(()),
            own => self.look_before_update(engine, at, own),
        }
    }

    /// The rest of [`State::admit_update`], for a unit that this item is of, or that has to be
    /// observed.
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

    /// Whether a delete may be staged on the row with this first unit: whether it exists.
    pub(crate) fn can_delete(&mut self, engine: &Engine<P>, first: CellAt) -> Result<bool, Abort> {
        self.exists(engine, first, true)
    }

    /// Whether an insert may be staged on the record with this first unit: whether no row exists.
    pub(crate) fn can_insert(&mut self, engine: &Engine<P>, first: CellAt) -> Result<bool, Abort> {
        self.exists(engine, first, false).map(|exists| !exists)
    }

    /// Whether the row with this first unit exists as the transaction sees it, observed whatever
    /// comes of it.
    #[cold]
    pub(crate) fn is_there(&mut self, engine: &Engine<P>, first: CellAt) -> Result<bool, Abort> {
        match self.writes.find(first) {
            Some(item) => Ok(self.writes.items()[item].present),
            None => self.observe_existence(engine, first),
        }
    }

    /// Takes note of one write.
    #[inline(always)]
    pub(crate) fn stage(
        &mut self,
        engine: &Engine<P>,
        at: CellAt,
        intent: Intent,
        op: Op,
    ) -> Result<(), Abort> {
        self.admit_write()?;
        let context = &mut Context::new(engine, &mut self.local);
        let staged = P::stage(context, &mut self.attempt, &mut self.writes, at, intent, op);
        staged.map_err(|abort| self.fail_to_stage(abort))
    }

    /// Takes note of the insertion of a row whose record has just been linked, with its words among
    /// the operands from here on.
    #[inline(always)]
    pub(crate) fn stage_new(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        record: RecordAt,
        operand: u32,
    ) -> Result<(), Abort> {
        let context = &mut Context::new(engine, &mut self.local);
        let cells = table.layout.cells(record);
        let staged = P::stage_new(context, &mut self.attempt, &mut self.writes, cells, operand);
        staged.map_err(|abort| self.fail_to_stage(abort))
    }

    #[cold]
    fn fail_to_stage(&mut self, abort: Abort) -> Abort {
        if abort.is_conflict() {
            self.doom(abort)
        } else {
            // Part of an operation has been staged; the transaction must not commit without the
            // rest.
            *self.failed.get_or_insert(abort)
        }
    }

    /// Admits operations on a table: it must be of this database, and the attempt alive.
    #[inline(always)]
    pub(crate) fn admit(&mut self, engine: &Engine<P>, table: &TableCore) -> Result<(), Abort> {
        if table.database != engine.id {
            return Err(Abort::ForeignTable);
        }
        self.enter(engine)
    }

    /// Looks a key up, without observing anything.
    #[inline(always)]
    pub(crate) fn find(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        key: &[u64],
    ) -> Result<Found, Abort> {
        self.admit(engine, table)?;
        table.check_key(key);
        if P::KEEPS_DELETED_INDEX && self.local.read_view != ReadView::Current {
            return Ok(self.find_back(table, key));
        }
        Ok(table.index.find(key))
    }

    /// As [`State::find`], of a key that is packed.
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

    /// The record of a key, which had none a moment ago; none, and the absence observed, if it
    /// still has none.
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

    /// Apart, so that looking up what there is now is short.
    #[cold]
    #[inline(never)]
    fn find_back(&self, table: &TableCore, key: &[u64]) -> Found {
        self.read_view(table, key, table.index.find(key))
    }

    /// What there is of a key for who may look back, and has found this in the table's index: the
    /// record in the index of deleted records, if that was the row's then.
    pub(crate) fn read_view(&self, table: &TableCore, key: &[u64], found: Found) -> Found {
        if !self.needs_deleted_index() {
            return found;
        }
        let deleted_index =
            table.deleted_index.as_ref().filter(|deleted_index| !deleted_index.is_empty());
        match deleted_index.and_then(|deleted_index| deleted_index.find(key)) {
            Some(record) if self.is_older(table, record) => Found::Record(record),
            _ => found,
        }
    }

    /// Whether who looks back does so to before the deletion of a row that is in the index of
    /// deleted records. Then there is no other record of its key that says what there was.
    pub(crate) fn is_older(&self, table: &TableCore, record: RecordAt) -> bool {
        mutant(Mutant::DeletedIndexPreferred)
            || P::is_older(&self.attempt, table.layout.first_of(record))
    }

    /// Observes that a key has no record.
    #[inline(always)]
    pub(crate) fn absent(
        &mut self,
        engine: &Engine<P>,
        mut missing: Missing<'_>,
    ) -> Result<(), Abort> {
        pass(Point::Searched);
        if mutant(Mutant::NodeObservedLate) {
            missing.version = missing.node.version();
        }
        let context = &mut Context::new(engine, &mut self.local);
        P::absent(context, &mut self.attempt, missing).map_err(|abort| self.doom(abort))
    }

    /// The record of a key, linked absent if there was none.
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
            Found::Record(record) => Ok(InsertTarget { record, is_new: false }),
            Found::Nothing { .. } => self.link(engine, table, key, &mut place),
        }
    }

    /// Makes sure that there is room for writing a row of a table as a whole, while that can be
    /// refused without a trace.
    pub(crate) fn make_room(&mut self, engine: &Engine<P>, table: &TableCore) -> Result<(), Abort> {
        let context = &mut Context::new(engine, &mut self.local);
        P::make_room(context, &self.attempt, table)
    }

    /// The record for a key that has none, linked absent, if possible where the last one was; or
    /// the one that there is after all.
    #[inline(always)]
    pub(crate) fn link(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        key: &[u64],
        place: &mut Place,
    ) -> Result<InsertTarget, Abort> {
        table.check_key(key);
        self.admit_write()?;
        // A link raises a node's version and so disturbs others like a commit does.
        let context = Context::new(engine, &mut self.local);
        context.yield_to_token().map_err(|abort| self.doom(abort))?;
        let local = &mut self.local;
        let Ok(record) = RecordAt::allocate(&table.layout, key, &table.records, &mut local.caches)
        else {
            // A caller that has tried to link first does not know yet whether that is needed.
            return match table.index.find(key) {
                Found::Record(record) => Ok(InsertTarget { record, is_new: false }),
                Found::Nothing { .. } => Err(Abort::MemoryLimit),
            };
        };
        let cells = table.layout.cells(record);
        cells.clone().for_each(|at| P::init_absent_cell(&engine.clock, at));
        match place.link_near(record, key, &mut |node| {
            cells.clone().for_each(|at| P::inherit_from_node(&engine.clock, node, at))
        }) {
            Ok(linked) => Ok(self.note_link(table, record, linked)),
            Err(start) => self.link_afar(engine, table, (record, key), place, start),
        }
    }

    /// As [`State::link`], of a key that is packed.
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

    /// The rest of [`State::link`] for a key that belongs somewhere else.
    #[inline(never)]
    fn link_afar(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        (record, key): (RecordAt, &[u64]),
        place: &mut Place,
        start: Start,
    ) -> Result<InsertTarget, Abort> {
        let local = &mut self.local;
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
        Ok(self.note_link(table, record, linked))
    }

    /// Takes note of what came of linking a record.
    #[inline(always)]
    fn note_link(&mut self, table: &TableCore, record: RecordAt, linked: Linked) -> InsertTarget {
        let local = &mut self.local;
        match linked {
            Linked::New { node, before, after } => {
                let first = table.layout.first_of(record);
                P::linked(&mut self.attempt, node, before, after, first);
                local.linked.push(first);
                local.count_linked(table, true);
                InsertTarget { record, is_new: true }
            }
            Linked::Existing(existing) => {
                Cache::of(&mut local.caches, &table.records).free(&table.records, record.block());
                InsertTarget { record: existing, is_new: false }
            }
        }
    }

    /// Commits an attempt of which nothing is known but that its closure was content, and that has
    /// staged nothing (so it has written nothing, or its protocol has applied that at once): no
    /// code of the user's runs. `None` if there is more to it than that, and [`State::commit`] has
    /// to do it.
    #[inline(always)]
    pub(crate) fn commit_reads(&mut self, engine: &Engine<P>) -> Option<Result<(), Abort>> {
        let has_failed =
            self.doomed.is_some() || self.failed.is_some() || P::has_failed(&self.attempt);
        let is_simple = self.writes.is_empty() && !has_failed;
        is_simple.then(|| {
            let context = &mut Context::new(engine, &mut self.local);
            P::commit(context, &mut self.attempt, &mut self.writes).map(|_| ())
        })
    }

    /// Commits, or ends without effect and says why.
    #[inline]
    pub(crate) fn commit(&mut self, engine: &Engine<P>) -> Result<Committed, Abort> {
        if self.doomed.is_some() || self.failed.is_some() {
            return Err(self.commit_error(engine)?.expect("a failed attempt has an outcome"));
        }
        let context = &mut Context::new(engine, &mut self.local);
        P::commit(context, &mut self.attempt, &mut self.writes)
    }

    /// Ends without effect, after making sure that what the closure saw was true: gives the outcome
    /// that came before the closure's error, if one did.
    ///
    /// # Errors
    /// A conflict: the closure must run again.
    pub(crate) fn commit_error(&mut self, engine: &Engine<P>) -> Result<Option<Abort>, Abort> {
        if let Some(abort) = self.doomed {
            self.abort(engine);
            return Err(abort);
        }
        let context = &mut Context::new(engine, &mut self.local);
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
        P::commit(context, &mut self.attempt, &mut self.writes)?;
        // Only now, on words that belong together, may updaters run.
        let outcome = applied.or_else(|| writes.first_failure(&mut images));
        Ok(outcome.or(self.failed))
    }

    /// Ends without effect.
    pub(crate) fn abort(&mut self, engine: &Engine<P>) {
        P::abort(&mut Context::new(engine, &mut self.local), &mut self.attempt, &mut self.writes);
    }

    /// Locks what earlier attempts of the transaction wanted, as far as it is still there and can
    /// be locked.
    #[cold]
    #[inline(never)]
    pub(crate) fn lock_wanted(&mut self, engine: &Engine<P>) {
        for at in self.local.wanted.cells(engine) {
            match P::hold(&mut Context::new(engine, &mut self.local), &mut self.attempt, at) {
                Ok(true) => {
                    Held::ahead(at, self.local.id).note();
                    self.held += 1;
                }
                Ok(false) => {}
                Err(_) => {
                    self.local.conflict = None;
                    break;
                }
            }
        }
    }

    /// Ends the attempt in a conflict, and lets the next ones take no locks ahead, if one of these
    /// has refused another session's transaction in the closure, which has not asked for that lock.
    #[cold]
    #[inline(never)]
    pub(crate) fn check_locked_ahead(&mut self) {
        if own_thread::has_refused(self.held) {
            self.local.wanted.turn_off();
            self.doomed.get_or_insert(Abort::Locked);
        }
    }

    /// Notes in which conflict the attempt has ended.
    #[cold]
    pub(crate) fn note_conflict(&mut self, cause: Abort) {
        // Only giving way to the token is about nothing in particular.
        let noted = self.local.conflict.take().filter(|note| note.cause == cause);
        self.last_conflict = noted.or(Some(ConflictNote::nowhere(cause)));
    }

    /// Clears what the attempt leaves behind, after its end; what it linked and left absent is to
    /// be buried.
    #[inline(always)]
    pub(crate) fn finish(&mut self, engine: &Engine<P>) {
        if P::VERSION_WORDS > 0 && self.local.kept.is_some() {
            self.unregister_snapshot(engine);
        }
        if self.held > 0 {
            own_thread::forget_units(std::mem::take(&mut self.held));
        }
        self.writes.clear();
        while let Some(first) = self.local.linked.pop() {
            if P::enqueue_if_absent(&engine.clock, first) {
                self.local.reap_queue.push(first);
            }
        }
    }
}
