//! Locks on cells: what protocols share that lock by flags in a cell's first word and install at
//! commit.
//!
//! # Invariants
//! * **K1** LOCK is the right to change the cell, taken by one exchange. INSTALL says that the
//!   owner is committing. Both are set together in phase 1; or LOCK first, by a read for update,
//!   and INSTALL by its owner in phase 1. Either way words change only between INSTALL and the
//!   release, and a cell with LOCK alone has the words of its version: readers and validation pass
//!   it, and only another lock has to wait.
//! * **K2** QUEUED changes only in an unlocked cell, by exchange, or by the lock's owner as it
//!   releases. An absent cell is released QUEUED, or is in the `linked` list of the attempt that
//!   linked it. So what a holder found is what it gives back. The same goes for ON_SNAPSHOT_LIST,
//!   which stands for QUEUED while a snapshot is open.
//! * **K3** A DEAD cell stays locked for ever.
//! * **K4** Only cells of rows that are there are held. (So burial never meets a held cell of an
//!   absent record, and the attempt that linked a record never holds it absent.) A row with a held
//!   cell stays: deleting it takes the locks of all its cells.
//! * **K5** The note of a write item is zero until the attempt owns its cell as a writer; then it
//!   is what the cell says, LOCK and INSTALL included. A held cell is in [`Held`], until phase 1
//!   hands it over to its item, if it has one.
//!
//! # Waiting
//! Every wait for a lock is bounded and ends in `Locked`, after which the attempt gives back what
//! it holds. So holders that wait for one another (in opposite orders, in a circle) are no deadlock
//! but conflicts. No cell is held while a session waits for the starvation token: that happens
//! between attempts. A read for update yields to the token like a commit.
//!
//! An attempt *sleeps* ([`Parking`](crate::sync::Parking)) where that cannot be part of a circle,
//! for [`SLEEP_MAX`] at most:
//! * **W1** A read for update, if all that it holds lies at smaller addresses: attempts that sleep
//!   so wait for greater and greater ones.
//! * **W2** A commit, for its first lock, if it holds nothing; and one that has failed on a lock
//!   and given back all the others.
//! * **W3** A reader that meets INSTALL, whatever it holds: a commit that has a lock sleeps for no
//!   other.
//!
//! All other waits take a few rounds, as many as a commit that is going on. What an attempt has
//! held and waited for when its read for update failed is locked by the next one before that
//! begins, in the order of addresses ([`Wanted`](crate::engine::Wanted)), so by W1 it can sleep for
//! all of it. A lock may be *handed over* to a sleeper: then it stays set, without INSTALL (K1),
//! and is the sleeper's. A row whose lock is handed over is there (K4).

#![forbid(unsafe_code)]

use crate::access::{WriteItem, WriteSet};
use crate::engine::{Context, GcOutcome, Protocol, own_thread};
use crate::error::Abort;
use crate::record::{CellAt, Tid};
use crate::sync::{
    Duration, MODELLED, Mutant, Ordering, Patience, Point, Wait, Waited, Wish, mutant, pass, step,
};

/// Rounds of waiting for something short before the attempt gives up: the busy rounds cover a
/// commit in progress, the yielding ones a committer that lost its processor in the middle.
pub(crate) const LOCK_ROUNDS_MAX: u32 = if MODELLED { 2 } else { 80 };

/// Rounds of waiting for a lock that an attempt may not sleep for. Its owner may wait for the
/// attempt in turn, so more of them give less: with four times as many, two threads that locked two
/// rows in opposite orders were five times slower.
const ROUNDS_HELD: u32 = if MODELLED { 2 } else { 16 };

/// The longest that an attempt sleeps for one lock.
const SLEEP_MAX: Duration = Duration::from_millis(10);

/// How long an attempt waits for a lock: asleep, if the wait cannot be part of a circle; otherwise
/// for as long as a commit takes that is going on.
pub(crate) fn patience(sleeps: bool) -> Patience {
    match sleeps && !cfg!(loom) {
        true => Patience::Lasting(SLEEP_MAX),
        false => Patience::Rounds(ROUNDS_HELD),
    }
}

/// Begins to wait for the lock of a cell; not asleep if a transaction of this thread holds it,
/// which goes on when this one has ended.
pub(crate) fn wait_to_own<'e, P: Protocol>(
    context: &Context<'e, P>,
    at: CellAt,
    sleeps: bool,
) -> Wait<'e> {
    let sleeps = sleeps && !own_thread::is_held_by_another(at, context.local.id);
    Wait::new(&context.engine.parking, at.address(), Wish::Own(0), patience(sleeps))
}

/// The cells that an attempt's reads for update have locked, with what they were; empty between
/// attempts.
#[derive(Debug, Default)]
pub(crate) struct Held(Vec<(CellAt, Tid)>);

impl Held {
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the cell is among them. Not looked for if it is unlocked; latest first: what is
    /// asked for twice is asked for soon.
    pub(crate) fn has(&self, at: CellAt) -> bool {
        let is_it = |&(held, _): &(CellAt, Tid)| {
            step();
            held.address() == at.address()
        };
        // Relaxed: what this thread has locked it sees locked.
        let may_be =
            !self.is_empty() && Tid(at.cell_word(0).load(Ordering::Relaxed)).has(Tid::LOCK);
        may_be && self.0.iter().rev().any(is_it)
    }

    /// Locks a cell whose row is there (K4), giving what it was.
    #[inline(always)]
    pub(crate) fn hold<P: Protocol>(
        &mut self,
        context: &mut Context<'_, P>,
        at: CellAt,
    ) -> Result<Tid, Abort> {
        // Others that want to write have to wait for us from now on.
        context.yield_to_token()?;
        // Nothing may come between the exchange and the note of it.
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
            debug_assert!(!tid.has(Tid::ABSENT | Tid::DEAD));
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

    /// Beginning of phase 1: the held cells that are written become their items' (K5), and say so
    /// (K1). `install` raises INSTALL in a cell that was so, and gives what it is then.
    #[cold]
    pub(crate) fn hand_over(
        &mut self,
        writes: &mut WriteSet,
        install: impl Fn(CellAt, Tid) -> Tid,
    ) {
        self.0.retain(|&(at, tid)| {
            let Some(index) = writes.find(at) else { return true };
            writes.items_mut()[index].note = install(at, tid).0;
            false
        });
    }

    /// Takes out what is still held, to be given back.
    #[cold]
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (CellAt, Tid)> {
        self.0.drain(..)
    }

    /// Forgets what is held without giving it back: a deliberate defect.
    pub(crate) fn forget(&mut self) {
        self.0.clear();
    }
}

/// Looks at a cell, which said `tid`, until a commit in progress is over. Apart, and given all it
/// needs by value, so that reads which meet none are short.
#[cold]
#[inline(never)]
pub(crate) fn look_again<P: Protocol, T>(
    mut context: Context<'_, P>,
    at: CellAt,
    mut tid: Tid,
    mut look: impl FnMut() -> Result<T, Tid>,
) -> Result<T, Abort> {
    // Asleep, whatever it holds (W3).
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

/// Phase 1 for all items. After an error none is locked.
#[inline(always)]
pub(crate) fn lock_all<P: Protocol>(
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

/// Phase 1 for the items from the first one whose lock was not free.
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

/// Waits until a cell is unlocked, on behalf of a commit that has failed on it and owns nothing:
/// what repeats it would fail on it again.
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

/// Phase 1 for one item: locks its cell if it is free and the item's expectation holds, and notes
/// what the cell is then. Returns whether it was free, or held by the attempt.
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
            // Acquire: the last owner's words are ours to see and to replace (E3).
            if cell
                .compare_exchange_weak(tid.0, locked.0, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
            {
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
    // As a cell that was held, even if it is to be given back. By exchange, since where versions
    // carry timestamps others may extend them until then.
    item.note = item.at.cell_word(0).fetch_or(Tid::INSTALL, Ordering::Acquire) | Tid::INSTALL;
    accept_held(item)
}

/// Phase 1 for an item that owns its cell already, which was held: its row is there (K4).
#[cold]
fn accept_held(item: &WriteItem) -> Result<(), Abort> {
    if item.accepts(true) { Ok(()) } else { Err(Abort::ExistenceChanged) }
}

/// Ends the items' ownership of cells, leaving them as their notes say.
#[cold]
pub(crate) fn release<P: Protocol>(context: &mut Context<'_, P>, items: &[WriteItem]) {
    for item in items {
        if item.note != 0 {
            release_cell(context, item.at, Tid(item.note).unlocked());
        }
    }
}

/// Stores an unlocked cell; an absent record's first one QUEUED (K2).
#[inline(always)]
pub(crate) fn release_cell<P: Protocol>(context: &mut Context<'_, P>, at: CellAt, mut tid: Tid) {
    debug_assert!(!tid.has(Tid::LOCK | Tid::INSTALL));
    if tid.has(Tid::ABSENT) && at.is_first() && !tid.has(Tid::QUEUED | Tid::ON_SNAPSHOT_LIST) {
        tid.0 |= Tid::QUEUED;
        context.local.reap_queue.push(at);
    }
    let store = |is_handed: bool| {
        let lock = if is_handed { Tid::LOCK } else { 0 };
        at.cell_word(0).store(tid.0 | lock, Ordering::Release); // E3
    };
    free(context, at, !tid.has(Tid::ABSENT), store);
}

/// Frees a cell by calling `free`, and wakes its sleepers; or hands it over to one of them, which
/// `free` is told, if its row is there.
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

/// For [`Protocol::enqueue_if_absent`].
pub(crate) fn enqueue_if_absent(first: CellAt) -> bool {
    // A locked cell is its owner's business: it installs a row, or releases the cell queued (K2).
    // This is tried until it is settled: where versions carry timestamps, the exchange may fail
    // because another session extends one.
    let cell = first.cell_word(0);
    let mut tid = Tid(cell.load(Ordering::Relaxed));
    while tid.has(Tid::ABSENT) && !tid.has(Tid::LOCK | Tid::QUEUED | Tid::ON_SNAPSHOT_LIST) {
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

/// For [`Protocol::reap`]: makes an absent record dead, cell after cell, unless an insert has
/// locked it.
///
/// All transactions that ran when the row was deleted must have ended, so that the end of a
/// transaction tells what a key without a record was to it. Where versions are epochs, they say
/// when that was; elsewhere it is the queue's entry, unless the row came back and was deleted
/// again. Then the cell is REQUEUE, and its entry begins anew.
pub(crate) fn reap(units: &[CellAt], is_recent: impl Fn(Tid) -> bool) -> GcOutcome {
    let first = units[0].cell_word(0);
    let tid = Tid(first.load(Ordering::Relaxed));
    debug_assert!(tid.has(Tid::QUEUED));
    if tid.has(Tid::LOCK) || tid.has(Tid::ABSENT) && is_recent(tid) {
        return GcOutcome::NotYet;
    }
    let exchange =
        |to: u64| first.compare_exchange(tid.0, to, Ordering::Acquire, Ordering::Relaxed).is_ok();
    if !tid.has(Tid::ABSENT) {
        return if exchange(tid.0 & !Tid::QUEUED) { GcOutcome::Alive } else { GcOutcome::NotYet };
    }
    if tid.has(Tid::REQUEUE) && !mutant(Mutant::BuriedEarly) {
        // If an insert has locked it, the next round will see that.
        exchange(tid.0 & !Tid::REQUEUE);
        return GcOutcome::NotYet;
    }
    if kill(units, tid) { GcOutcome::Dead } else { GcOutcome::NotYet }
}

/// Makes a record dead whose first cell says `tid`: it is absent, queued and unlocked. False if
/// an insert has locked it.
pub(crate) fn kill(units: &[CellAt], tid: Tid) -> bool {
    // A commit of an insert locks all cells, and all are absent together, so the others follow
    // the first; a failure means that an insert has locked some already and is about to fail on the
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
    pass(Point::Burying);
    for at in &units[..locked] {
        let cell = at.cell_word(0);
        let tid = cell.load(Ordering::Relaxed);
        let released = if all { tid | Tid::DEAD } else { tid & !(Tid::LOCK | Tid::INSTALL) };
        cell.store(released, Ordering::Release); // E3
    }
    all
}
