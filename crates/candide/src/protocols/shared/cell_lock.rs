//! Locks on cells, shared by the protocols that lock a unit by flags in its cell's first word and
//! install at commit.
//!
//! # Invariants
//! * **CL1** LOCK is the right to change the cell. LOCK is set by one exchange. INSTALL means that
//!   the lock's owner is committing. Phase 1 sets both flags together; or a read for update sets
//!   LOCK, and its owner sets INSTALL in phase 1. In both cases, words change only between INSTALL
//!   and the release. A cell with LOCK but not INSTALL still has the words of its version. Readers
//!   and validation pass such a cell; only attempts that want its lock have to wait.
//! * **CL2** QUEUED changes only in an unlocked cell, by exchange, or when the lock's owner
//!   releases the cell. An absent cell is released QUEUED, or is in the list `linked` of the
//!   attempt that linked the record. So the holder of a cell can release the cell with the word
//!   that it found.
//! * **CL3** A DEAD cell is never unlocked.
//! * **CL4** A read for update holds only cells of existing rows. (So the collector never meets a
//!   held cell of an absent record, and an attempt that linked a record never holds the record's
//!   cells while the row is absent.) A row with a held cell cannot be deleted by another attempt: a
//!   delete takes the locks of all the row's cells.
//! * **CL5** The note of a write item is zero until the attempt owns the item's cell as a writer.
//!   Afterwards the note is the cell's word, including LOCK and INSTALL. A held cell is in
//!   the attempt's list. If the cell has a write item, phase 1 moves it from the list to the item.
//! * **CL6** The epoch of a record's queue entry is a stamp (EP2): it was read after the record
//!   became absent and QUEUED, and after a full fence. A commit that deletes the row of a queued
//!   record sets REQUEUE. So does an attempt that is about to stage a put or an insert on an absent
//!   record which is queued. The collector clears REQUEUE, passes a full fence, and gives the entry
//!   a new epoch. The collector makes a record dead only if REQUEUE is clear, and the entry's epoch
//!   is behind the horizon.
//!
//! # Why no record dies under a staged write
//! Before an attempt stages a put or an insert in a record that it has found in the index, it looks
//! at the record's first cell (`may_be_reaped`, `keep`). Let the attempt find the row present, or
//! absent without QUEUED, or absent with REQUEUE. Before the record can die, the cell changes: the
//! row is deleted, QUEUED is set, or REQUEUE is cleared. The entry gets its epoch after that change
//! and a full fence. This is the case that the proof in `epoch/mod.rs` treats: the attempt is the
//! reader R, the change is the unlinking, and the epoch is the stamp. So the epoch is not behind
//! the horizon before the attempt has ended. In the remaining case, absent and QUEUED without
//! REQUEUE, the attempt sets REQUEUE by an exchange. `kill` begins with an exchange of the same
//! word. If the attempt's exchange comes first, `kill` fails. Otherwise the attempt finds the cell
//! locked or dead, and in the end looks for another record of the key.
//!
//! So a later lookup of the attempt finds the record, and in its write set the staged write. The
//! same holds for a transaction that has seen the row, or its absence, in the record: it has ended
//! before the record is unlinked.
//!
//! # Waiting
//! Every wait for a lock is bounded. If the wait fails, the attempt ends in `Locked` and releases
//! all that it holds. So attempts that wait for one another in a circle do not deadlock; they
//! conflict. A session waits for the starvation token only between attempts, when it holds no cell.
//! A read for update yields to the token like a commit.
//!
//! An attempt *sleeps* ([`Parking`](crate::sync::Parking)) for 10 ms at most. An attempt sleeps
//! only in waits that cannot be part of a cycle:
//! * **WA1** A read for update sleeps if all cells that its attempt holds have smaller addresses
//!   than the cell it waits for, and the attempt holds no lock by policy. A chain of such sleepers
//!   waits for ever greater addresses.
//! * **WA2** A commit sleeps for its first lock, if it holds nothing. A commit that has failed on a
//!   lock sleeps after it has released all others.
//! * **WA3** A reader that meets INSTALL sleeps, whatever its attempt holds: a commit that owns a
//!   lock never sleeps for another. A commit in a pipeline does, without a bound; but a
//!   reader sleeps for 10 ms at most, so no circle with one lasts.
//!
//! Between attempts a transaction holds nothing, so it may sleep for the lock on which it has
//! failed (`TxnRunner::await_lock`).
//!
//! All other waits take a few rounds, about as long as a commit in progress. If a read for update
//! fails, the next attempt locks the cells that the failed attempt held and waited for
//! (`engine/wanted.rs`). These locks are taken before the closure begins and in the order of
//! addresses, so by WA1 it can sleep for all of them. A lock may be *handed over* to a sleeper:
//! LOCK stays set, without INSTALL (CL1), and the sleeper becomes the owner. A row whose lock is
//! handed over exists (CL4).

#![forbid(unsafe_code)]

use crate::access::{Failure, WriteItem, WriteSet};
use crate::engine::{Context, GcOutcome, Local, Protocol, class_of, own_thread, word_in};
use crate::error::Abort;
use crate::factor::Factor;
use crate::locks::{Early, HeldCells, patience, wait_to_own};
use crate::record::{CellAt, Tid};
use crate::schema::Words;
use crate::sync::{MODELLED, Ordering, Point, Wait, Waited, Wish, full_fence, pass};
use std::panic::resume_unwind;

/// Copies the words of a unit between two loads of its TID word.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn copy_shared(at: CellAt, copy: &mut impl FnMut(Words<'_>)) {
    copy(Words::Shared(at.payload()));
    pass(Point::Copied);
}

/// Waits until no commit to a cell is in progress, and returns the result of `look` after that. The
/// cell's TID word was `tid`. Out of line, with arguments by value, so that a read that meets no
/// commit has short code.
#[cold]
#[inline(never)]
pub(crate) fn look_again<P: Protocol, T>(
    mut context: Context<'_, P>,
    at: CellAt,
    mut tid: Tid,
    mut look: impl FnMut() -> Result<T, Tid>,
) -> Result<T, Abort> {
    // The attempt may sleep here even if it holds locks (WA3).
    let mut wait =
        Wait::new(&context.engine.parking, at.address(), Wish::Look, patience(!MODELLED));
    loop {
        if tid.has(Tid::DEAD) {
            return Err(context.conflict(Abort::RecordRemoved, at));
        }
        if wait.wait() == Waited::InVain {
            return Err(context.conflict(Abort::Locked, at));
        }
        match look() {
            Ok(seen) => return Ok(seen),
            Err(said) => tid = said,
        }
    }
}

/// Begins a commit and runs its phase 1: takes over the locks that the closure's reads for update
/// hold, and locks the rest of the write set. After an error no item is locked. `install_held`
/// raises INSTALL in a held cell and returns the cell's new word.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn acquire<P: Protocol, E: Early<P>>(
    context: &mut Context<'_, P>,
    early: &mut E,
    writes: &mut WriteSet,
    install_held: impl Fn(CellAt, Tid) -> Tid,
) -> Result<(), Abort> {
    context.yield_to_token()?;
    context.reserve_for(writes);
    context.sort_writes(writes);
    before_locking();
    if !early.held().is_empty() {
        early.held().hand_over(writes, install_held);
    }
    lock_all(context, writes, early)?;
    debug_assert!(writes.items().iter().all(is_owned), "CL5: phase 1 has locked every item's cell");
    after_locking();
    Ok(())
}

/// Returns whether the attempt owns the item's cell as a writer, by the item's note (CL1, CL5).
pub(crate) fn is_owned(item: &WriteItem) -> bool {
    let tid = Tid(item.note);
    tid.has(Tid::LOCK) && tid.has(Tid::INSTALL)
}

/// Raises INSTALL in a held cell, whose word was `tid`, by calling `store`. A store suffices, since
/// under the lock no other thread changes the word. Returns the new TID word.
pub(crate) fn raise_install(tid: Tid, store: impl FnOnce(u64)) -> Tid {
    let owned = Tid(tid.0 | Tid::LOCK | Tid::INSTALL);
    store(owned.0);
    owned
}

/// Orders the locks of a commit before its validation (E1).
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn fence_after_locking() {
    full_fence(); // E1
}

/// Evaluates the operations of a validated commit on the words that the commit has locked. Nothing
/// can fail afterwards, so the values are noted that the commit, at `timestamp`, replaces.
///
/// # Errors
/// The failure of an operation. The caller passes it to [`fail`].
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn evaluate(
    local: &mut Local,
    writes: &mut WriteSet,
    timestamp: u64,
    version: impl Fn(&WriteItem) -> u64,
) -> Result<(), Failure> {
    pass(Point::Validated);
    if !writes.needs_evaluation() && !local.values.is_used() {
        return Ok(());
    }
    writes.evaluate(|item| Words::Shared(item.at.payload()), version)?;
    if local.values.is_used() {
        // Values: the words of an absent row mean nothing.
        local.values.replace_all(writes, timestamp, &|item, word| {
            if Tid(item.note).has(Tid::ABSENT) { 0 } else { word_in(item.at.payload(), word) }
        });
    }
    Ok(())
}

/// Ends a commit whose evaluation has failed: releases the commit's items and returns the outcome.
/// If an updater has panicked, also releases the locks that the closure's reads for update hold,
/// and continues the panic.
#[cold]
pub(crate) fn fail<P: Protocol>(
    context: &mut Context<'_, P>,
    early: &mut impl Early<P>,
    writes: &mut WriteSet,
    failure: Failure,
    release_held: impl FnMut(&mut Context<'_, P>, CellAt, Tid),
) -> Abort {
    release(context, writes.items());
    match failure {
        Failure::Outcome(abort) => abort,
        Failure::Panic(panic) => {
            early.release_in_panic(context, writes.items(), release_held);
            resume_unwind(panic)
        }
    }
}

/// Begins phase 5 for an item. Returns the item's cell, which the commit owns, and the cell's word.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn begin_install(item: &WriteItem) -> (CellAt, Tid) {
    debug_assert!(is_owned(item), "CL1: words change between INSTALL and the release");
    let was = Tid(item.note);
    pass(Point::Installing);
    (item.at, was)
}

/// Ends a commit, whether it succeeded or failed: releases the locks that reads for update still
/// hold.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn end<P: Protocol>(
    context: &mut Context<'_, P>,
    held: &mut HeldCells,
    release_held: impl FnMut(&mut Context<'_, P>, CellAt, Tid),
) {
    if !held.is_empty() {
        held.give_back(context, release_held);
    }
    note_end();
}

/// Lets tests stop a commit that has released everything.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn note_end() {
    pass(Point::Released);
}

/// Runs phase 1 for all items. After an error no item is locked.
#[cfg_attr(not(debug_assertions), inline(always))]
fn lock_all<P: Protocol, E: Early<P>>(
    context: &mut Context<'_, P>,
    writes: &mut WriteSet,
    early: &mut E,
) -> Result<(), Abort> {
    let is_locked = |item: &mut WriteItem| matches!(try_lock(item, E::ASKS), Ok(true));
    match writes.items_mut().iter_mut().position(|item| !is_locked(item)) {
        None => Ok(()),
        Some(first) => lock_rest(context, writes, first, early),
    }
}

/// Runs phase 1 for the items from index `first` on. The lock of that item was not free, or its
/// cell has a flag of [`Early::ASKS`].
#[cold]
#[inline(never)]
fn lock_rest<P: Protocol, E: Early<P>>(
    context: &mut Context<'_, P>,
    writes: &mut WriteSet,
    first: usize,
    early: &mut E,
) -> Result<(), Abort> {
    let waits = !context.engine.options.factors.has(Factor::NoWait);
    for index in first..writes.items().len() {
        let at = writes.items()[index].at;
        // Relaxed: the exchange looks at the flags again.
        let has = |flags| Tid(at.cell_word(0).load(Ordering::Relaxed)).has(flags);
        let mut unasked = E::ASKS;
        let locked = loop {
            if has(unasked) {
                unasked = 0;
                if let Err(abort) = early.before_lock(context, at) {
                    break Err(abort);
                }
            }
            match try_lock(&mut writes.items_mut()[index], unasked) {
                Ok(true) => break Ok(()),
                Ok(false) if has(unasked) => {}
                Ok(false) if waits => {
                    let owns_nothing = early.held().owns_nothing();
                    let again = &|at: CellAt| early.wait_again(at);
                    break lock_later(context, writes, index, owns_nothing, (unasked, again));
                }
                Ok(false) => break Err(Abort::Locked),
                Err(abort) => break Err(abort),
            }
        };
        if let Err(abort) = locked {
            release(context, writes.items());
            if abort == Abort::Locked && early.held().owns_nothing() && waits {
                await_unlocked(context, at);
            }
            return Err(context.conflict(abort, at));
        }
    }
    Ok(())
}

/// Locks one more item of a commit that has locked others.
///
/// # Errors
/// The conflict; the item is not locked then.
#[cold]
pub(crate) fn lock_one<P: Protocol>(
    context: &mut Context<'_, P>,
    writes: &mut WriteSet,
    index: usize,
    held: &HeldCells,
) -> Result<(), Abort> {
    let waits = !context.engine.options.factors.has(Factor::NoWait);
    let item = &mut writes.items_mut()[index];
    let at = item.at;
    if item.note != 0 {
        // The commit has locked it already.
        return Ok(());
    }
    let locked = match try_lock(item, 0) {
        Ok(true) => Ok(()),
        Ok(false) if waits => lock_later(context, writes, index, held.owns_nothing(), (0, &|_| {})),
        Ok(false) => Err(Abort::Locked),
        Err(abort) => Err(abort),
    };
    locked.map_err(|abort| context.conflict(abort, at))
}

/// Waits until a cell is unlocked. Called by a commit that has failed on this cell and owns nothing
/// any more: an immediate retry would fail on the same cell again.
#[cold]
pub(crate) fn await_unlocked<P: Protocol>(context: &Context<'_, P>, at: CellAt) {
    pass(Point::GivenUp);
    if own_thread::is_held_by_another(at, context.local.id) {
        return;
    }
    let mut wait =
        Wait::new(&context.engine.parking, at.address(), Wish::Look, patience(!MODELLED));
    while is_locked(&at) && wait.wait() == Waited::Again {}
}

/// Returns whether a cell is locked and not dead.
pub(crate) fn is_locked(at: &CellAt) -> bool {
    let tid = Tid(at.cell_word(0).load(Ordering::Relaxed));
    tid.has(Tid::LOCK) && !tid.has(Tid::DEAD)
}

/// Runs phase 1 for one item: locks the item's cell if the cell is free and the item's expectation
/// holds, and notes the cell's new word. Returns true if the cell was free or already locked by
/// this attempt, and false if another attempt has locked it or its word has a flag of `asks`.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn try_lock(item: &mut WriteItem, asks: u64) -> Result<bool, Abort> {
    let cell = item.at.cell_word(0);
    loop {
        let tid = Tid(cell.load(Ordering::Relaxed));
        if tid.has(Tid::DEAD) {
            return Err(Abort::RecordRemoved);
        }
        if !tid.has(Tid::LOCK | asks) {
            // Checked before locking: an attempt that is going to fail must not hold a lock for
            // which others wait.
            if !item.accepts(!tid.has(Tid::ABSENT)) {
                return Err(Abort::ExistenceChanged);
            }
            let locked = Tid(tid.0 | Tid::LOCK | Tid::INSTALL);
            // Acquire: sees the last owner's words, which this commit may replace (E3).
            if cell
                .compare_exchange_weak(tid.0, locked.0, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
            {
                debug_assert_eq!(item.note, 0, "CL5: the cell was unlocked, so not the item's");
                item.note = locked.0;
                return Ok(true);
            }
        } else if item.note != 0 {
            return accept_held(item).map(|()| true);
        } else {
            return Ok(false);
        }
    }
}

/// Waits for the lock of an item's cell. Fails if the cell gets a flag of `unasked` meanwhile.
/// `owns_nothing` is whether the attempt holds nothing beside its items. Calls `again` with the
/// cell each time that it has waited in vain.
#[cold]
#[inline(never)]
fn lock_later<P: Protocol>(
    context: &mut Context<'_, P>,
    writes: &mut WriteSet,
    index: usize,
    owns_nothing: bool,
    (unasked, again): (u64, &dyn Fn(CellAt)),
) -> Result<(), Abort> {
    // WA2: asleep only if nothing is owned; otherwise a wait of few rounds.
    let owns_nothing = owns_nothing && writes.items().iter().all(|item| item.note == 0);
    let item = &mut writes.items_mut()[index];
    let mut wait = wait_to_own(context, item.at, owns_nothing);
    let (waited, failure) = loop {
        match wait.wait() {
            Waited::Again => match try_lock(item, unasked) {
                Ok(true) => return Ok(()),
                Ok(false) => again(item.at),
                Err(failure) => break (wait.give_up(), failure),
            },
            waited => break (waited, Abort::Locked),
        }
    };
    if waited != Waited::Handed {
        return Err(failure);
    }
    pass(Point::HandedOver);
    // From here on the cell counts as locked by this attempt, even if the item's expectation fails.
    // The OR is atomic, since under protocols with timestamps other sessions may extend the version
    // until INSTALL is set.
    item.note = item.at.cell_word(0).fetch_or(Tid::INSTALL, Ordering::Acquire) | Tid::INSTALL;
    if Tid(item.note).has(unasked) {
        return Err(Abort::Locked);
    }
    accept_held(item)
}

/// Runs phase 1 for an item whose cell is locked already. The row exists (CL4).
#[cold]
fn accept_held(item: &WriteItem) -> Result<(), Abort> {
    debug_assert!(!Tid(item.note).has(Tid::ABSENT | Tid::DEAD), "CL4: a row was held");
    if item.accepts(true) { Ok(()) } else { Err(Abort::ExistenceChanged) }
}

/// Releases the items' cells, with the words in their notes.
#[cold]
pub(crate) fn release<P: Protocol>(context: &mut Context<'_, P>, items: &[WriteItem]) {
    for item in items {
        if item.note != 0 {
            release_cell(context, item.at, Tid(item.note).unlocked());
        }
    }
}

/// Releases a cell by storing the unlocked word `tid`. Also sets QUEUED if the cell is the first
/// one of an absent record (CL2).
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn release_cell<P: Protocol>(context: &mut Context<'_, P>, at: CellAt, mut tid: Tid) {
    debug_assert!(!tid.has(Tid::LOCK | Tid::INSTALL), "CL1: the owner releases both flags");
    debug_assert!(!tid.has(Tid::DEAD), "CL3: a dead cell stays locked");
    if tid.has(Tid::ABSENT) && at.is_first() && !tid.has(Tid::QUEUED) {
        tid.0 |= Tid::QUEUED;
        let queue = &mut context.local.reap_queue;
        debug_assert!(queue.len() < queue.capacity(), "C4: its room was reserved");
        queue.push(at);
    }
    let store = |is_handed: bool| {
        let lock = if is_handed { Tid::LOCK } else { 0 };
        at.cell_word(0).store(tid.0 | lock, Ordering::Release); // E3
    };
    free(context, at, !tid.has(Tid::ABSENT), store);
}

/// Releases a cell in which a commit has installed a version, by storing the unlocked word `tid`,
/// which has not WATCHED. `was` was the cell's word before. If sessions watch the cell, notes that
/// the end of the attempt has to wake them.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn release_installed<P: Protocol>(
    context: &mut Context<'_, P>,
    at: CellAt,
    was: Tid,
    tid: Tid,
) {
    debug_assert!(!tid.has(Tid::WATCHED), "WT2: the flag goes with the version");
    release_cell(context, at, tid);
    if was.has(Tid::WATCHED) {
        context.local.note_changed(class_of(at.address())); // WT2
    }
}

/// Frees a cell by calling `free(false)`, and wakes the attempts that sleep for it. If the row
/// exists (`is_row`), may instead hand the cell over to one of these attempts by calling
/// `free(true)`.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn free<P: Protocol>(
    context: &Context<'_, P>,
    at: CellAt,
    is_row: bool,
    mut free: impl FnMut(bool),
) {
    let parking = &context.engine.parking;
    if parking.has_sleepers() {
        return parking.release(at.address(), is_row, &mut |to| free(to.is_some()));
    }
    free(false);
    if parking.has_sleepers() {
        parking.wake(at.address());
    }
}

/// Implements [`Protocol::enqueue_if_absent`].
pub(crate) fn enqueue_if_absent(first: CellAt) -> bool {
    // A locked cell is left to its owner, which installs a row or releases the cell QUEUED (CL2).
    // Repeated, because under protocols with timestamps the exchange may fail when another session
    // extends a version.
    let cell = first.cell_word(0);
    let mut tid = Tid(cell.load(Ordering::Relaxed));
    while tid.has(Tid::ABSENT) && !tid.has(Tid::LOCK | Tid::QUEUED) {
        match cell.compare_exchange(
            tid.0,
            tid.0 | Tid::QUEUED,
            Ordering::Relaxed,
            Ordering::Relaxed,
        ) {
            Ok(_) => return true,
            Err(now) => tid = Tid(now),
        }
    }
    false
}

/// Implements [`Absence::may_be_reaped`](crate::engine::Absence::may_be_reaped).
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn may_be_reaped(first: CellAt) -> bool {
    // Relaxed: if the row is deleted after this load, the record's entry waits for the attempts
    // that are running now (CL6).
    Tid(first.cell_word(0).load(Ordering::Relaxed)).has(Tid::ABSENT)
}

/// Implements [`Absence::keep`](crate::engine::Absence::keep): sets REQUEUE if the record is absent
/// and queued (CL6).
pub(crate) fn keep<P: Protocol>(
    context: &mut Context<'_, P>,
    first: CellAt,
) -> Result<bool, Abort> {
    match request_requeue(first) {
        Ok(is_kept) => Ok(is_kept),
        Err(tid) => look_again(context.again(), first, tid, move || request_requeue(first)),
    }
}

/// Sets REQUEUE in the first cell of a record, if the record is absent and queued. Returns `false`
/// if the record is dead. If the collector or an insert has locked the cell, returns the cell's
/// word as the error.
pub(crate) fn request_requeue(first: CellAt) -> Result<bool, Tid> {
    let cell = first.cell_word(0);
    let mut tid = Tid(cell.load(Ordering::Relaxed));
    loop {
        if tid.has(Tid::DEAD) {
            return Ok(false);
        }
        let may_die = tid.has(Tid::ABSENT) && tid.has(Tid::QUEUED) && !tid.has(Tid::REQUEUE);
        if !may_die {
            return Ok(true);
        }
        if tid.has(Tid::LOCK) {
            return Err(tid);
        }
        // Relaxed: the order of this one word decides whether the record dies (CL6).
        let flagged = tid.0 | Tid::REQUEUE;
        match cell.compare_exchange(tid.0, flagged, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return Ok(true),
            Err(now) => tid = Tid(now),
        }
    }
}

/// Returns the flags, besides QUEUED, of a cell whose row a commit has just deleted. `was` is the
/// cell's word before the commit. If the record was queued before, its entry is older than the
/// deletion (CL6).
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn flags_of_deleted(was: Tid) -> u64 {
    let is_older = was.has(Tid::QUEUED);
    Tid::ABSENT | if is_older { Tid::REQUEUE } else { 0 }
}

/// Returns whether the entry of an absent record must be queued anew. If so, clears REQUEUE in the
/// record's first cell, whose word was `tid`, and passes a full fence. The caller then reads the
/// epoch of the entry (CL6).
pub(crate) fn requeues(first: CellAt, tid: Tid) -> bool {
    if !tid.has(Tid::REQUEUE) {
        return false;
    }
    // Relaxed: the fence orders the exchange before the load of the epoch. If the exchange fails,
    // another session has changed the cell, and the flag is left to the next examination.
    let cleared = tid.0 & !Tid::REQUEUE;
    let _ =
        first.cell_word(0).compare_exchange(tid.0, cleared, Ordering::Relaxed, Ordering::Relaxed);
    full_fence(); // E10
    true
}

/// Implements [`Absence::reap`](crate::engine::Absence::reap): marks the cells of an absent record
/// as dead, one after another, unless an insert has locked the record or the entry must be queued
/// anew (CL6).
pub(crate) fn reap(units: &[CellAt]) -> GcOutcome {
    let first = units[0].cell_word(0);
    let tid = Tid(first.load(Ordering::Relaxed));
    debug_assert!(tid.has(Tid::QUEUED), "CL2: the holder of the entry clears the flag");
    if tid.has(Tid::LOCK) {
        return GcOutcome::NotYet;
    }
    if !tid.has(Tid::ABSENT) {
        let alive = tid.0 & !Tid::QUEUED;
        let exchange =
            first.compare_exchange(tid.0, alive, Ordering::Acquire, Ordering::Relaxed).is_ok();
        return if exchange { GcOutcome::Alive } else { GcOutcome::NotYet };
    }
    if requeues(units[0], tid) {
        return GcOutcome::NotYet;
    }
    if kill(units, tid) { GcOutcome::Dead } else { GcOutcome::NotYet }
}

/// Marks a record as dead. `tid` is the word of its first cell: absent, queued and unlocked.
/// Returns false, and leaves the record alive, if an insert has locked a cell.
pub(crate) fn kill(units: &[CellAt], tid: Tid) -> bool {
    // The commit of an insert locks all cells, and all cells are absent together, so the other
    // cells need no checks beyond the first one's. If one cannot be locked, an insert has locked
    // some cells already and is about to fail on the first cell, or another session is changing the
    // cell's flags.
    let mut tid = tid;
    let mut locked = 0;
    while let Some(at) = units.get(locked) {
        let cell = at.cell_word(0);
        if locked > 0 {
            tid = Tid(cell.load(Ordering::Relaxed));
        }
        let owned = tid.0 | Tid::LOCK | Tid::INSTALL;
        let exchange =
            || cell.compare_exchange(tid.0, owned, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if tid.has(Tid::LOCK) || !exchange() {
            break;
        }
        locked += 1;
    }
    let all = locked == units.len();
    pass(Point::Reaping);
    for at in &units[..locked] {
        let cell = at.cell_word(0);
        let tid = cell.load(Ordering::Relaxed);
        debug_assert!(!all || Tid(tid).has(Tid::ABSENT), "CL3: no row dies with its record");
        let released = if all { tid | Tid::DEAD } else { tid & !(Tid::LOCK | Tid::INSTALL) };
        cell.store(released, Ordering::Release); // E3
    }
    all
}

/// Lets tests stop a commit before it locks anything. At this point, updaters must not have seen
/// their rows yet.
#[cfg_attr(not(debug_assertions), inline(always))]
fn before_locking() {
    pass(Point::Unlocked);
}

/// Lets tests stop a commit that has locked everything and validated nothing. At this point, no
/// words must have been stored yet.
#[cfg_attr(not(debug_assertions), inline(always))]
fn after_locking() {
    pass(Point::Locked);
}
