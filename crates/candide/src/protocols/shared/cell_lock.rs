//! Locks on cells, shared by the protocols that lock by flags in a cell's first word and install at
//! commit.
//!
//! # Invariants
//! * **CL1** LOCK is the right to change the cell, taken by one exchange. INSTALL means that the
//!   owner is committing. Both are set together in phase 1; or LOCK first, by a read for update,
//!   and INSTALL by its owner in phase 1. Either way words change only between INSTALL and the
//!   release, and a cell with LOCK alone has the words of its version: readers and validation pass
//!   it, and only another lock has to wait.
//! * **CL2** QUEUED changes only in an unlocked cell, by exchange, or by the lock's owner as it
//!   releases. An absent cell is released QUEUED, or is in the `linked` list of the attempt that
//!   linked it. So a holder gives a cell back as it found it.
//! * **CL3** A DEAD cell stays locked for ever.
//! * **CL4** Only cells of existing rows are held. (So garbage collection never meets a held cell
//!   of an absent record, and the attempt that linked a record never holds it absent.) A row with a
//!   held cell stays: deleting it takes the locks of all its cells.
//! * **CL5** The note of a write item is zero until the attempt owns its cell as a writer; then it
//!   is the cell's word, LOCK and INSTALL included. A held cell is in [`Held`], until phase 1 hands
//!   it over to its item, if it has one.
//!
//! # Waiting
//! Every wait for a lock is bounded and ends in `Locked`, after which the attempt gives back what
//! it holds. So holders that wait for one another (in opposite orders, in a circle) are no deadlock
//! but conflicts. No cell is held while a session waits for the starvation token: that happens
//! between attempts. A read for update yields to the token like a commit.
//!
//! An attempt *sleeps* ([`Parking`](crate::sync::Parking)) where that cannot be part of a circle,
//! for [`SLEEP_MAX`] at most:
//! * **WA1** A read for update, if all that it holds lies at smaller addresses: attempts that sleep
//!   so wait for greater and greater ones.
//! * **WA2** A commit, for its first lock, if it holds nothing; and one that has failed on a lock
//!   and given back all the others.
//! * **WA3** A reader that meets INSTALL, whatever it holds: a commit that has a lock sleeps for no
//!   other.
//!
//! All other waits take a few rounds, as long as a commit in progress. The cells that an attempt
//! held and waited for when its read for update failed are locked by the next attempt before its
//! closure begins, in the order of addresses ([`Wanted`](super::Wanted)), so by WA1 it can sleep
//! for all of them. A lock may be *handed over* to a sleeper: then it stays set, without INSTALL
//! (CL1), and is the sleeper's. A row whose lock is handed over exists (CL4).

#![forbid(unsafe_code)]

use crate::access::{Failure, WriteItem, WriteSet};
use crate::engine::{Context, GcOutcome, Protocol, own_thread};
use crate::error::Abort;
use crate::factor::Factor;
use crate::record::{CellAt, Tid};
use crate::schema::Words;
use crate::sync::{
    Duration, MODELLED, Mutant, Ordering, Patience, Point, Wait, Waited, Wish, full_fence, mutant,
    pass, step,
};
use std::panic::resume_unwind;

/// The number of rounds of a short wait before the attempt gives up: the busy rounds cover a commit
/// in progress, the yielding ones a committer that lost its processor in the middle.
pub(crate) const LOCK_ROUNDS_MAX: u32 = if MODELLED { 2 } else { 80 };

/// The number of rounds of waiting for a lock that an attempt may not sleep for. Its owner may wait
/// for the attempt in turn, so more rounds do not help: with four times as many, two threads that
/// locked two rows in opposite orders were five times slower.
const ROUNDS_HELD: u32 = if MODELLED { 2 } else { 16 };

/// The longest that an attempt sleeps for one lock.
const SLEEP_MAX: Duration = Duration::from_millis(10);

/// Returns how long an attempt waits for a lock: asleep, if the wait cannot be part of a circle;
/// otherwise as long as a commit in progress takes.
pub(crate) fn patience(sleeps: bool) -> Patience {
    match sleeps && !cfg!(loom) {
        true => Patience::Lasting(SLEEP_MAX),
        false => Patience::Rounds(ROUNDS_HELD),
    }
}

/// Begins to wait for the lock of a cell; not asleep if a transaction of this thread holds it,
/// which cannot go on before this one has ended.
pub(crate) fn wait_to_own<'e, P: Protocol>(
    context: &Context<'e, P>,
    at: CellAt,
    sleeps: bool,
) -> Wait<'e> {
    let sleeps = sleeps && !own_thread::is_held_by_another(at, context.local.id);
    Wait::new(&context.engine.parking, at.address(), Wish::Own(0), patience(sleeps))
}

/// The cells that an attempt's reads for update have locked, with their words from before; empty
/// between attempts.
#[derive(Debug, Default)]
pub(crate) struct Held(Vec<(CellAt, Tid)>);

impl Held {
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether the cell is held. An unlocked cell is not searched for; the search begins
    /// with the latest, since repeated requests follow soon.
    pub(crate) fn has(&self, at: CellAt) -> bool {
        let is_it = |&(held, _): &(CellAt, Tid)| {
            step();
            held.address() == at.address()
        };
        // Relaxed: a thread sees its own locks.
        let may_be =
            !self.is_empty() && Tid(at.cell_word(0).load(Ordering::Relaxed)).has(Tid::LOCK);
        may_be && self.0.iter().rev().any(is_it)
    }

    /// Locks a cell if its row exists (CL4), and returns its word from before.
    #[inline(always)]
    pub(crate) fn hold<P: Protocol>(
        &mut self,
        context: &mut Context<'_, P>,
        at: CellAt,
    ) -> Result<Tid, Abort> {
        // Other writers have to wait for this attempt from now on.
        context.yield_to_token()?;
        // Reserved before, since nothing may fail between the exchange and its note.
        self.0.reserve(1);
        let cell = at.cell_word(0);
        let mut wait: Option<Wait<'_>> = None;
        let waited = loop {
            let tid = Tid(cell.load(Ordering::Acquire)); // E3
            if tid.has(Tid::DEAD) {
                wait.as_mut().map(Wait::give_up);
                return Err(context.conflict(Abort::RecordRemoved, at));
            }
            if !tid.has(Tid::LOCK) {
                if tid.has(Tid::ABSENT) {
                    match wait.as_mut().map(Wait::give_up) {
                        Some(Waited::Handed) => break Waited::Handed,
                        _ => return Ok(tid),
                    }
                }
                // Acquire: the words of the version we hold (E3).
                let locked = tid.0 | Tid::LOCK;
                if cell
                    .compare_exchange_weak(tid.0, locked, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
                {
                    self.0.push((at, tid));
                    return Ok(tid);
                }
            }
            // WA1: otherwise a wait of few rounds.
            let is_in_order = || self.0.iter().all(|(held, _)| held.address() < at.address());
            let begin = || wait_to_own(context, at, is_in_order());
            match wait.get_or_insert_with(begin).wait() {
                Waited::Again => {}
                waited => break waited,
            }
        };
        if waited == Waited::Handed {
            // Acquire: the words of the version we hold (E3).
            let tid = Tid(cell.load(Ordering::Acquire)).unlocked();
            debug_assert!(!tid.has(Tid::ABSENT | Tid::DEAD), "CL4: a row is handed over");
            self.0.push((at, tid));
            return Ok(tid);
        }
        self.0.iter().for_each(|&(held, _)| context.want(held));
        context.want(at);
        Err(context.conflict(Abort::Locked, at))
    }

    /// Locks a cell as [`Held::hold`] does, unless it is held. Returns whether it is held then.
    pub(crate) fn hold_once<P: Protocol>(
        &mut self,
        context: &mut Context<'_, P>,
        at: CellAt,
    ) -> Result<bool, Abort> {
        if !self.has(at) {
            self.hold(context, at)?;
        }
        Ok(self.has(at))
    }

    /// Begins phase 1: hands the held cells that are written over to their items (CL5), with
    /// INSTALL (CL1). `install` sets INSTALL in a cell with the given word, and returns its new
    /// word.
    #[cold]
    pub(crate) fn hand_over(
        &mut self,
        writes: &mut WriteSet,
        install: impl Fn(CellAt, Tid) -> Tid,
    ) {
        self.0.retain(|&(at, tid)| {
            let Some(index) = writes.find(at) else { return true };
            let item = &mut writes.items_mut()[index];
            debug_assert!(!tid.has(Tid::LOCK | Tid::ABSENT | Tid::DEAD), "CL4: a row is held");
            debug_assert_eq!(item.note, 0, "CL5: a held cell is no item's yet");
            item.note = install(at, tid).0;
            false
        });
    }

    /// Releases the locks that are still held: calls `release` with each cell and its TID word
    /// before the lock.
    #[cold]
    pub(crate) fn give_back<P: Protocol>(
        &mut self,
        context: &mut Context<'_, P>,
        mut release: impl FnMut(&mut Context<'_, P>, CellAt, Tid),
    ) {
        if mutant(Mutant::HeldForEver) {
            self.0.clear();
        }
        self.0.drain(..).for_each(|(at, tid)| release(context, at, tid));
    }
}

/// Copies the words of a unit between two loads of its TID word.
#[inline(always)]
pub(crate) fn copy_shared(at: CellAt, copy: &mut impl FnMut(Words<'_>)) {
    copy(Words::Shared(at.payload()));
    pass(Point::Copied);
}

/// Loads the TID word of a cell, which was `tid`, until no commit to the cell is in progress. Out
/// of line, with arguments by value, so that reads which meet no commit are short.
#[cold]
#[inline(never)]
pub(crate) fn look_again<P: Protocol, T>(
    mut context: Context<'_, P>,
    at: CellAt,
    mut tid: Tid,
    mut look: impl FnMut() -> Result<T, Tid>,
) -> Result<T, Abort> {
    // The attempt sleeps, even if it holds locks (WA3).
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

/// Begins a commit and runs its phase 1: takes over the locks that the closure holds, and locks the
/// rest of the write set. After an error no item is locked. `install_held` raises INSTALL in a held
/// cell.
#[inline(always)]
pub(crate) fn acquire<P: Protocol>(
    context: &mut Context<'_, P>,
    held: &mut Held,
    writes: &mut WriteSet,
    install_held: impl Fn(CellAt, Tid) -> Tid,
) -> Result<(), Abort> {
    context.yield_to_token()?;
    context.reserve_for(writes);
    if context.engine.options.factors.has(Factor::SortedLocks) {
        writes.sort();
    }
    before_locking(writes);
    if !held.is_empty() {
        held.hand_over(writes, install_held);
    }
    lock_all(context, writes, held)?;
    debug_assert!(writes.items().iter().all(is_owned), "CL5: phase 1 has locked every item's cell");
    after_locking(writes);
    Ok(())
}

/// Returns whether an item's note says that the attempt owns its cell as a writer (CL1, CL5).
pub(crate) fn is_owned(item: &WriteItem) -> bool {
    let tid = Tid(item.note);
    tid.has(Tid::LOCK) && tid.has(Tid::INSTALL)
}

/// Raises INSTALL in a held cell, which was `tid`, by calling `store`: under the lock no other
/// thread changes it. Returns the new TID word.
pub(crate) fn raise_install(tid: Tid, store: impl FnOnce(u64)) -> Tid {
    let owned = Tid(tid.0 | Tid::LOCK | Tid::INSTALL);
    if !mutant(Mutant::HeldNotInstalling) {
        store(owned.0);
    }
    owned
}

/// Orders the locks of a commit before its validation (E1).
#[inline(always)]
pub(crate) fn fence_after_locking() {
    if !mutant(Mutant::NoFence) {
        full_fence(); // E1
    }
}

/// Returns whether the TID word of a cell differs from the one that was read.
#[inline(always)]
pub(crate) fn says_otherwise(&(at, seen): &(CellAt, Tid)) -> bool {
    at.cell_word(0).load(Ordering::Relaxed) != seen.0 && !mutant(Mutant::NoReadValidation)
}

/// Returns whether another commit has locked a cell, which says `tid`, to replace its version.
#[inline(always)]
pub(crate) fn is_locked_by_another(tid: Tid, is_own: impl FnOnce() -> bool) -> bool {
    tid.has(Tid::INSTALL) && !mutant(Mutant::OthersLocksIgnored) && !is_own()
}

/// Evaluates the operations of a commit that has validated, by the words that it has locked.
///
/// # Errors
/// A failure, which [`fail`] takes.
#[inline(always)]
pub(crate) fn evaluate(writes: &mut WriteSet) -> Result<(), Failure> {
    pass(Point::Validated);
    if mutant(Mutant::EvaluateBeforeLock) || mutant(Mutant::InstallBeforeValidation) {
        return Ok(());
    }
    evaluate_locked(writes)
}

/// Evaluates the operations by the words in the units.
#[inline(always)]
fn evaluate_locked(writes: &mut WriteSet) -> Result<(), Failure> {
    writes.evaluate(|item| Words::Shared(item.at.payload()))
}

/// Ends a commit whose evaluation has failed: releases its items and returns the outcome. If an
/// updater has panicked, releases the locks of the closure, too, and continues the panic.
#[cold]
pub(crate) fn fail<P: Protocol>(
    context: &mut Context<'_, P>,
    held: &mut Held,
    writes: &mut WriteSet,
    failure: Failure,
    release_held: impl FnMut(&mut Context<'_, P>, CellAt, Tid),
) -> Abort {
    if mutant(Mutant::EvaluateBetweenInstalls) {
        writes.install(0, writes.items()[0].at.payload());
    }
    release(context, writes.items());
    match failure {
        Failure::Outcome(abort) => abort,
        Failure::Panic(panic) => {
            held.give_back(context, release_held);
            resume_unwind(panic)
        }
    }
}

/// Begins phase 5 for an item. Returns its cell, which the commit owns, and what that was.
#[inline(always)]
pub(crate) fn begin_install(item: &WriteItem) -> (CellAt, Tid) {
    debug_assert!(is_owned(item), "CL1: words change between INSTALL and the release");
    let was = Tid(item.note);
    if mutant(Mutant::UnlockBeforeInstall) {
        item.at.cell_word(0).store(was.unlocked().0, Ordering::Relaxed);
    }
    pass(Point::Installing);
    (item.at, was)
}

/// Ends a commit, successful or not: releases the locks that are still held.
#[inline(always)]
pub(crate) fn end<P: Protocol>(
    context: &mut Context<'_, P>,
    held: &mut Held,
    release_held: impl FnMut(&mut Context<'_, P>, CellAt, Tid),
) {
    if !held.is_empty() {
        held.give_back(context, release_held);
    }
    pass(Point::Released);
}

/// Runs phase 1 for all items. After an error none is locked.
#[inline(always)]
fn lock_all<P: Protocol>(
    context: &mut Context<'_, P>,
    writes: &mut WriteSet,
    held: &Held,
) -> Result<(), Abort> {
    let is_locked = |item: &mut WriteItem| matches!(try_lock(item), Ok(true));
    match writes.items_mut().iter_mut().position(|item| !is_locked(item)) {
        None => Ok(()),
        Some(first) => lock_rest(context, writes, first, held),
    }
}

/// Runs phase 1 for the items from the first one whose lock was not free.
#[cold]
#[inline(never)]
fn lock_rest<P: Protocol>(
    context: &mut Context<'_, P>,
    writes: &mut WriteSet,
    first: usize,
    held: &Held,
) -> Result<(), Abort> {
    for index in first..writes.items().len() {
        let locked = match try_lock(&mut writes.items_mut()[index]) {
            Ok(false) => lock_later(context, writes, index, held),
            locked => locked.map(drop),
        };
        if let Err(abort) = locked {
            release(context, writes.items());
            let at = writes.items()[index].at;
            if abort == Abort::Locked && held.is_empty() {
                await_unlocked(context, at);
            }
            return Err(context.conflict(abort, at));
        }
    }
    Ok(())
}

/// Waits until a cell is unlocked, after a commit that has failed on it and owns nothing: an
/// immediate retry would fail on it again.
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

/// Runs phase 1 for one item: locks its cell if it is free and the item's expectation holds, and
/// notes the cell's new word. Returns whether the cell was free or locked by the attempt.
#[inline(always)]
fn try_lock(item: &mut WriteItem) -> Result<bool, Abort> {
    let cell = item.at.cell_word(0);
    loop {
        let tid = Tid(cell.load(Ordering::Relaxed));
        if tid.has(Tid::DEAD) {
            return Err(Abort::RecordRemoved);
        }
        if !tid.has(Tid::LOCK) {
            // Before locking: an attempt that is going to fail must not hold a lock that others
            // wait for.
            if !item.accepts(!tid.has(Tid::ABSENT)) {
                return Err(Abort::ExistenceChanged);
            }
            let locked = Tid(tid.0 | Tid::LOCK | Tid::INSTALL);
            // Acquire: sees the last owner's words, which it may replace (E3).
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

/// Waits for the lock of an item's cell.
#[cold]
#[inline(never)]
fn lock_later<P: Protocol>(
    context: &mut Context<'_, P>,
    writes: &mut WriteSet,
    index: usize,
    held: &Held,
) -> Result<(), Abort> {
    // WA2: otherwise a wait of few rounds.
    let owns_nothing = held.is_empty() && writes.items().iter().all(|item| item.note == 0);
    let item = &mut writes.items_mut()[index];
    let mut wait = wait_to_own(context, item.at, owns_nothing);
    let (waited, failure) = loop {
        match wait.wait() {
            Waited::Again => match try_lock(item) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(failure) => break (wait.give_up(), failure),
            },
            waited => break (waited, Abort::Locked),
        }
    };
    if waited != Waited::Handed {
        return Err(failure);
    }
    pass(Point::HandedOver);
    // From here on the cell counts as locked by the attempt, even if the lock is to be released.
    // The OR is atomic, since under protocols with timestamps other sessions may extend the version
    // until then.
    item.note = item.at.cell_word(0).fetch_or(Tid::INSTALL, Ordering::Acquire) | Tid::INSTALL;
    accept_held(item)
}

/// Runs phase 1 for an item whose cell was held: its row exists (CL4).
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

/// Stores an unlocked word in a cell; QUEUED is set in the first cell of an absent record (CL2).
#[inline(always)]
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

/// Frees a cell by calling `free(false)`, and wakes its sleepers; or, if its row exists, hands it
/// over to one of them with `free(true)`.
#[inline(always)]
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

/// Implements [`Absence::reap`](crate::engine::Absence::reap): makes an absent record dead, cell
/// after cell, unless an insert has locked it.
///
/// All transactions that ran when the row was deleted must have ended, since a transaction that
/// finds no record for a key validates that absence only at its end. Versions with epochs give the
/// time of the deletion; otherwise the entry in the queue gives it, unless the row was inserted and
/// deleted again. Then the cell has the flag `requeue`, and its entry starts anew.
pub(crate) fn reap(units: &[CellAt], requeue: u64, is_recent: impl Fn(Tid) -> bool) -> GcOutcome {
    let first = units[0].cell_word(0);
    let tid = Tid(first.load(Ordering::Relaxed));
    debug_assert!(tid.has(Tid::QUEUED), "CL2: the holder of the entry clears the flag");
    if tid.has(Tid::LOCK) || tid.has(Tid::ABSENT) && is_recent(tid) {
        return GcOutcome::NotYet;
    }
    let exchange =
        |to: u64| first.compare_exchange(tid.0, to, Ordering::Acquire, Ordering::Relaxed).is_ok();
    if !tid.has(Tid::ABSENT) {
        return if exchange(tid.0 & !Tid::QUEUED) { GcOutcome::Alive } else { GcOutcome::NotYet };
    }
    if tid.has(requeue) && !mutant(Mutant::ReapedEarly) {
        // If an insert has locked it, the next round will see that.
        exchange(tid.0 & !requeue);
        return GcOutcome::NotYet;
    }
    if kill(units, tid) { GcOutcome::Dead } else { GcOutcome::NotYet }
}

/// Makes a record dead whose first cell's word is `tid`: absent, queued and unlocked. Returns false
/// if an insert has locked it.
pub(crate) fn kill(units: &[CellAt], tid: Tid) -> bool {
    // A commit of an insert locks all cells, and all are absent together, so the others follow the
    // first; if one fails, an insert has locked some cells already and is about to fail on the
    // first.
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
        if tid.has(Tid::LOCK) || !mutant(Mutant::KilledByStore) && !exchange() {
            break;
        }
        locked += 1;
    }
    let all = locked == units.len();
    pass(Point::Reaping);
    for at in &units[..locked] {
        let cell = at.cell_word(0);
        let tid = cell.load(Ordering::Relaxed);
        debug_assert!(
            !all || Tid(tid).has(Tid::ABSENT) || mutant(Mutant::KilledByStore),
            "CL3: no row dies with its record"
        );
        let released = if all { tid | Tid::DEAD } else { tid & !(Tid::LOCK | Tid::INSTALL) };
        cell.store(released, Ordering::Release); // E3
    }
    all
}

/// Passes the point at which nothing is locked, where updaters must not see their rows.
#[inline(always)]
fn before_locking(writes: &mut WriteSet) {
    if mutant(Mutant::EvaluateBeforeLock) {
        let _ = evaluate_locked(writes);
    }
    pass(Point::Unlocked);
}

/// Passes the point at which all is locked and nothing validated, where nothing must be stored.
#[inline(always)]
fn after_locking(writes: &mut WriteSet) {
    pass(Point::Locked);
    if mutant(Mutant::InstallBeforeValidation) && evaluate_locked(writes).is_ok() {
        for (index, item) in writes.items().iter().enumerate() {
            writes.install(index, item.at.payload());
        }
    }
}
