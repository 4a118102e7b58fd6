//! Reads: of rows, for update, and of whether a row exists.

#![forbid(unsafe_code)]

use super::early::{EarlyLocks, FROZEN, READER_ASKS, forget_frozen};
use super::phases::VALIDATIONS_MAX;
use super::view::{self, Stuck};
use super::{Attempt, Occ};
use crate::engine::{Context, Seen};
use crate::epoch::Epochs;
use crate::error::Abort;
use crate::locks::LOCK_ROUNDS_MAX;
use crate::protocols::shared::cell_lock::{copy_shared, look_again};
use crate::record::{CellAt, Tid};
use crate::schema::Words;
use crate::sync::{Ordering, Spin};

/// The flags of a TID word with which a read cannot be done at once.
const INSTALL_OR_ASK: u64 = Tid::INSTALL | READER_ASKS | FROZEN;

/// Reads a cell: waits if need be, and moves the attempt's view forward.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn read(
    context: &mut Context<'_, Occ>,
    attempt: &mut Attempt,
    at: CellAt,
    mut copy: impl FnMut(Words<'_>),
) -> Result<Seen, Abort> {
    let mut spin = Spin::default();
    loop {
        let tid = match look(at, INSTALL_OR_ASK, &mut copy) {
            Ok(tid) => tid,
            Err(tid) => {
                if tid.has(FROZEN)
                    && let Some(seen) = read_frozen(context.again(), attempt, at, &mut copy)?
                {
                    return Ok(seen);
                }
                let (copy, context) = (&mut copy, context.again());
                let look = move || look(at, Tid::INSTALL, copy);
                read_slowly(context, &mut attempt.early, at, tid, look)?
            }
        };
        match attempt.keeps_to(at, tid) {
            Ok(()) => return Ok(attempt.observe(at, tid)),
            // The unit has changed since `look` copied it, so it is read again.
            Err(Stuck::New(_)) if spin.wait_at_most(LOCK_ROUNDS_MAX) => {}
            Err(stuck) => return Err(view::conflict(context, stuck)),
        }
    }
}

/// Reads a cell if that needs no waiting.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn read_at_once(
    attempt: &mut Attempt,
    at: CellAt,
    mut copy: impl FnMut(Words<'_>),
) -> Option<Seen> {
    let tid = look(at, INSTALL_OR_ASK, &mut copy).ok()?;
    attempt.keeps_to(at, tid).ok()?;
    Some(attempt.observe(at, tid))
}

/// Locks a cell until the attempt ends, if its row exists, and reads it.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn read_for_update(
    context: &mut Context<'_, Occ>,
    attempt: &mut Attempt,
    at: CellAt,
    mut copy: impl FnMut(Words<'_>),
) -> Result<Seen, Abort> {
    if attempt.early.before_read_for_update(context, &attempt.reads, at)? {
        return read(context, attempt, at, copy);
    }
    let tid = attempt.early.hold(context, at)?;
    attempt.keeps_to(at, tid).map_err(|stuck| view::conflict(context, stuck))?;
    attempt.reads.push(at, tid);
    let present = !tid.has(Tid::ABSENT);
    if present {
        copy(Words::Shared(at.payload()));
    }
    Ok(Seen { present, version: tid.version() })
}

/// Loads a cell's TID word, copies the words, and loads the TID word again. Returns the first TID
/// word; as an error, if it has a flag of `unless`, or if the copied words may not be those of its
/// version.
#[cfg_attr(not(debug_assertions), inline(always))]
fn look(at: CellAt, unless: u64, copy: &mut impl FnMut(Words<'_>)) -> Result<Tid, Tid> {
    let before = Tid(at.cell_word(0).load(Ordering::Acquire));
    if before.has(unless) {
        return Err(before);
    }
    copy_shared(at, copy);
    // Relaxed: if a copied word came from an install in progress, the Acquire load of that word
    // made the lock visible (E3).
    let after = Tid(at.cell_word(0).load(Ordering::Relaxed));
    // The cell may have been locked or released between the two loads. While the version is the
    // same, the words are the same.
    let same = before == after || !after.has(Tid::INSTALL) && after.same_version(before);
    if same { Ok(before) } else { Err(before) }
}

/// Reads a unit that may be frozen, without observing it: the row is permanent, and its words never
/// change, so the read holds at any moment from the row's version on. The view moves on to such a
/// moment. Returns `None`, with nothing observed, if the unit must be read as any other: it is not
/// frozen, or no commit has inserted its row, or attempts are not opaque.
#[cold]
#[inline(never)]
fn read_frozen(
    mut context: Context<'_, Occ>,
    attempt: &mut Attempt,
    at: CellAt,
    copy: &mut dyn FnMut(Words<'_>),
) -> Result<Option<Seen>, Abort> {
    if !EarlyLocks::is_frozen(&context, at) {
        forget_frozen(at);
        return Ok(None);
    }
    // Acquire: sees the words of the version (E3).
    let tid = Tid(at.cell_word(0).load(Ordering::Acquire));
    // INSTALL: the commit that inserts the row may not have its epoch yet.
    let is_there = !tid.has(Tid::INSTALL | Tid::ABSENT | Tid::DEAD);
    if !is_there || !attempt.view.is_opaque() {
        return Ok(None);
    }
    if !attempt.view.has(tid) {
        attempt.move_view(None).map_err(|stuck| view::conflict(&mut context, stuck))?;
    }
    copy(Words::Shared(at.payload()));
    attempt.note_frozen(tid);
    Ok(Some(Seen { present: true, version: tid.version() }))
}

/// Reads a cell that could not be read at once: takes early locks if a flag of the TID word `tid`
/// is set, and waits for a commit to the cell that is in progress. Returns the result of `look`
/// after that.
#[cold]
#[inline(never)]
fn read_slowly(
    mut context: Context<'_, Occ>,
    early: &mut EarlyLocks,
    at: CellAt,
    mut tid: Tid,
    mut look: impl FnMut() -> Result<Tid, Tid>,
) -> Result<Tid, Abort> {
    if tid.has(READER_ASKS) {
        early.before_read(&mut context, at)?;
    }
    if tid.has(READER_ASKS | FROZEN) {
        match look() {
            Ok(seen) => return Ok(seen),
            Err(said) => tid = said,
        }
    }
    await_commit(context, at, tid, look)
}

/// Waits for a commit to a cell whose TID word was `tid`. Returns the result of `look` after that.
#[cold]
#[inline(never)]
fn await_commit(
    context: Context<'_, Occ>,
    at: CellAt,
    tid: Tid,
    mut look: impl FnMut() -> Result<Tid, Tid>,
) -> Result<Tid, Abort> {
    let Some(wish) = EarlyLocks::wish_for_end(context.engine, at, tid) else {
        return look_again(context, at, tid, look);
    };
    wish.express();
    look_again(context, at, tid, || look().inspect_err(|_| wish.express()))
}

impl Attempt {
    /// Makes sure that `tid`, the version that a read has just found in cell `at`, belongs to the
    /// attempt's view. Moves the view forward if necessary, and fails if the view cannot move.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn keeps_to(&mut self, at: CellAt, tid: Tid) -> Result<(), Stuck> {
        if self.view.has(tid) { Ok(()) } else { self.move_view(Some((at, tid))) }
    }

    /// Moves the view forward. `new` is a cell that has just been read, with the version read.
    #[inline(never)]
    pub(super) fn move_view(&mut self, new: Option<(CellAt, Tid)>) -> Result<(), Stuck> {
        match self.view.move_on(&self.reads, &self.nodes, new) {
            Err(Stuck::Cell(at)) => self.move_view_with_ranges(new, at),
            moved => moved,
        }
    }

    /// Repeats a move of the view that has failed at the read of the unit `at`, as long as numbers
    /// are in the ranges that the attempt has observed.
    #[cold]
    #[inline(never)]
    fn move_view_with_ranges(
        &mut self,
        new: Option<(CellAt, Tid)>,
        at: CellAt,
    ) -> Result<(), Stuck> {
        let mut moved = Err(Stuck::Cell(at));
        for _ in 1..VALIDATIONS_MAX {
            if !matches!(moved, Err(Stuck::Cell(_))) {
                break;
            }
            // While the closure runs, INSTALL is always another session's.
            match self.ranges.refresh(&mut self.reads, &|_| false) {
                Ok(true) => moved = self.view.move_on(&self.reads, &self.nodes, new),
                Ok(false) => break,
                Err(at) => {
                    moved = Err(Stuck::Cell(at));
                    break;
                }
            }
        }
        self.ranges.end_refresh(&mut self.reads, moved.is_ok());
        moved
    }

    /// Returns whether the row of a unit, whose table is pipelined, is permanent and was there at
    /// the moment of the view. The row is not observed. The view moves on if need be.
    #[cold]
    pub(super) fn is_permanent(
        &mut self,
        context: &mut Context<'_, Occ>,
        at: CellAt,
    ) -> Result<bool, Abort> {
        let tid = self.ask(at);
        // Without a version, no commit has inserted the row yet.
        let is_there = !tid.has(Tid::ABSENT | Tid::DEAD) && tid.version() != Tid::INITIAL.version();
        // A row of the files may have been deleted, and is being inserted again: then its first
        // cell is queued, and the version is that of the tombstone.
        let is_known = at.is_first() && !tid.has(Tid::QUEUED);
        let is_there = is_there && (is_known || !tid.has(Tid::INSTALL));
        if !is_there || !self.view.is_opaque() || !EarlyLocks::has_permanent(context, at) {
            return Ok(false);
        }
        if !self.view.has(tid) {
            self.move_view(None).map_err(|stuck| view::conflict(context, stuck))?;
        }
        self.note_frozen(tid);
        Ok(true)
    }

    /// Notes a version that a read has found which is not observed.
    fn note_frozen(&mut self, tid: Tid) {
        let version = Tid(tid.version());
        self.frozen_epoch = self.frozen_epoch.max(version.epoch());
        if self.last.is_none_or(|last| last.version() < version.version()) {
            self.last = Some(version);
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn observe(&mut self, at: CellAt, tid: Tid) -> Seen {
        let present = !tid.has(Tid::ABSENT);
        self.reads.push(at, tid);
        Seen { present, version: tid.version() }
    }

    /// Returns the TID word of a cell, for operations that return to the closure only whether the
    /// row exists.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn ask(&self, at: CellAt) -> Tid {
        // Acquire: if the view moves forward, everything that the writer stored before it released
        // the cell must be visible (E3).
        Tid(at.cell_word(0).load(Ordering::Acquire))
    }

    /// Returns whether an operation may return, without observing the row, that the row exists (if
    /// `exists`) or is absent. If so, the answer belongs to the attempt's view.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn assumes(
        &mut self,
        context: &mut Context<'_, Occ>,
        at: CellAt,
        exists: bool,
    ) -> Result<bool, Abort> {
        let tid = self.ask(at);
        if !self.view.answers_for_existence() {
            return Ok(tid.has(Tid::ABSENT) != exists);
        }
        if tid.has(Tid::INSTALL) || tid.has(Tid::ABSENT) == exists || !self.view.has(tid) {
            if EarlyLocks::is_pipelined(context, at, tid) {
                // The commit finds out. Until then, the answer tells nothing of the row.
                return Ok(tid.has(Tid::ABSENT) != exists && !tid.has(Tid::DEAD));
            }
            let assumed = self.assumes_by_looks(at, exists);
            return assumed.map_err(|stuck| view::conflict(context, stuck));
        }
        self.view.note_existence(at, exists);
        Ok(true)
    }

    /// Does the work of [`Attempt::assumes`] if the row's existence is not `exists`, or if another
    /// session is writing the row or has written it since the view's base. Waits for the writer,
    /// and moves the view forward.
    #[inline(never)]
    fn assumes_by_looks(&mut self, at: CellAt, exists: bool) -> Result<bool, Stuck> {
        let mut spin = Spin::default();
        loop {
            let tid = self.ask(at);
            if tid.has(Tid::DEAD) || !tid.has(Tid::INSTALL) && tid.has(Tid::ABSENT) == exists {
                return Ok(false);
            }
            let kept =
                if tid.has(Tid::INSTALL) { Err(Stuck::New(at)) } else { self.keeps_to(at, tid) };
            match kept {
                Ok(()) => break,
                Err(Stuck::New(_)) if spin.wait_at_most(LOCK_ROUNDS_MAX) => {}
                Err(Stuck::New(_)) => return Err(Stuck::Locked(at)),
                Err(stuck) => return Err(stuck),
            }
        }
        self.view.note_existence(at, exists);
        Ok(true)
    }

    /// Returns the largest epoch of a version that the attempt has read, or that its session has
    /// read in a frozen unit, if the attempt has read rows and missed none. A tombstone is removed
    /// as soon as its epoch has passed in memory, durable or not; so the absence of a row may rest
    /// on a commit of any epoch. (An operation that only assumes whether a row exists stages a
    /// write, and the commit of that has a stamp.)
    pub(super) fn seen_stamp(&self, epochs: &Epochs) -> u64 {
        let is_absent = |(_, tid): &(CellAt, Tid)| tid.has(Tid::ABSENT);
        let misses = !self.nodes.is_empty() || self.reads.iter().any(is_absent);
        if misses {
            return epochs.now();
        }
        self.reads.iter().map(|(_, tid)| tid.epoch()).fold(self.frozen_epoch, u64::max)
    }
}
