//! Cells that an attempt locks before phase 1 of its commit, by reads for update.
//! `protocols/shared/cell_lock.rs` describes the locks, with the invariants.

#![forbid(unsafe_code)]

use super::patience::patience;
use crate::access::{WriteItem, WriteSet};
use crate::engine::{Context, Protocol, own_thread};
use crate::error::Abort;
use crate::record::{CellAt, Tid};
use crate::sync::{Ordering, Wait, Waited, Wish, step};

/// Begins to wait for the lock of a cell; asleep if `sleeps`. The attempt never sleeps for a lock
/// that another transaction of the same thread holds: that transaction cannot continue before this
/// one has ended.
pub(crate) fn wait_to_own<'e, P: Protocol>(
    context: &Context<'e, P>,
    at: CellAt,
    sleeps: bool,
) -> Wait<'e> {
    let sleeps = sleeps && !own_thread::is_held_by_another(at, context.local.id);
    Wait::new(&context.engine.parking, at.address(), Wish::Own(0), patience(sleeps))
}

/// The cells that an attempt's reads for update have locked, each with its word from before the
/// lock. Empty between attempts.
#[derive(Debug, Default)]
pub(crate) struct HeldCells {
    cells: Vec<(CellAt, Tid)>,
    /// Whether the attempt has a cell here, or may have other locks, which are listed elsewhere.
    is_used: bool,
    /// Whether the attempt has other locks.
    has_others: bool,
}

impl HeldCells {
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn is_empty(&self) -> bool {
        !self.is_used
    }

    /// Notes that the attempt must end its use of other locks, and whether it has any.
    pub(crate) fn note_others(&mut self, has_others: bool) {
        self.is_used = true;
        self.has_others |= has_others;
    }

    /// Returns whether the attempt has a cell here.
    pub(crate) fn has_cells(&self) -> bool {
        !self.cells.is_empty()
    }

    /// Returns whether the attempt has no cell here and no other lock.
    pub(crate) fn owns_nothing(&self) -> bool {
        self.cells.is_empty() && !self.has_others
    }

    /// Makes room for one more cell.
    #[inline]
    pub(crate) fn reserve(&mut self) {
        self.cells.reserve(1);
    }

    /// Adds a cell, for which there is room. The cell's word was `tid` before it was locked.
    #[inline]
    pub(crate) fn push(&mut self, at: CellAt, tid: Tid) {
        self.cells.push((at, tid));
        self.is_used = true;
    }

    /// Returns whether all that the attempt has locked comes before a cell in the order of
    /// addresses, so that the attempt may sleep for the cell (WA1).
    #[inline]
    pub(crate) fn is_before(&self, at: CellAt) -> bool {
        !self.has_others && self.cells.iter().all(|(held, _)| held.address() < at.address())
    }

    /// Sorts the cells, for [`HeldCells::has_sorted`].
    #[inline]
    pub(crate) fn sort(&mut self) {
        self.cells.sort_unstable_by_key(|(held, _)| held.address());
    }

    /// Returns whether a cell is held. The cells have been sorted.
    #[inline]
    pub(crate) fn has_sorted(&self, at: CellAt) -> bool {
        self.cells.binary_search_by_key(&at.address(), |(held, _)| held.address()).is_ok()
    }

    /// Returns whether the cell is held. The list is searched only for a locked cell. The search
    /// begins with the cell held last, since a repeated request usually comes soon after the first.
    pub(crate) fn has(&self, at: CellAt) -> bool {
        let is_it = |&(held, _): &(CellAt, Tid)| {
            step();
            held.address() == at.address()
        };
        // Relaxed: a thread sees its own locks.
        let may_be =
            !self.is_empty() && Tid(at.cell_word(0).load(Ordering::Relaxed)).has(Tid::LOCK);
        may_be && self.cells.iter().rev().any(is_it)
    }

    /// Locks a cell if its row exists (CL4). Returns the cell's word from before the lock. Calls
    /// `renew` each time that it is going to wait.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn hold<P: Protocol>(
        &mut self,
        context: &mut Context<'_, P>,
        at: CellAt,
        renew: impl Fn(),
    ) -> Result<Tid, Abort> {
        // Other writers are about to wait for this attempt.
        context.yield_to_token()?;
        // Reserved in advance, since nothing may fail between the exchange and the push.
        self.reserve();
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
                // Acquire: sees the words of the version that is held (E3).
                let locked = tid.0 | Tid::LOCK;
                if cell
                    .compare_exchange_weak(tid.0, locked, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
                {
                    self.push(at, tid);
                    return Ok(tid);
                }
            }
            // WA1: asleep only if in order; otherwise a wait of few rounds.
            let begin = || wait_to_own(context, at, self.is_before(at));
            renew();
            match wait.get_or_insert_with(begin).wait() {
                Waited::Again => {}
                waited => break waited,
            }
        };
        if waited == Waited::Handed {
            // Acquire: sees the words of the version that is held (E3).
            let tid = Tid(cell.load(Ordering::Acquire)).unlocked();
            debug_assert!(!tid.has(Tid::ABSENT | Tid::DEAD), "CL4: a row is handed over");
            self.push(at, tid);
            return Ok(tid);
        }
        self.want(context, at);
        Err(context.conflict(Abort::Locked, at))
    }

    /// Makes the next attempt lock the held cells and the cell `at` ahead.
    #[cold]
    pub(crate) fn want<P: Protocol>(&self, context: &mut Context<'_, P>, at: CellAt) {
        self.cells.iter().for_each(|&(held, _)| context.want(held));
        context.want(at);
    }

    /// Locks a cell as [`HeldCells::hold`] does, unless the cell is held already. Returns whether
    /// the cell is held afterwards.
    pub(crate) fn hold_once<P: Protocol>(
        &mut self,
        context: &mut Context<'_, P>,
        at: CellAt,
        renew: impl Fn(),
    ) -> Result<bool, Abort> {
        if !self.has(at) {
            self.hold(context, at, renew)?;
        }
        Ok(self.has(at))
    }

    /// Begins phase 1: sets INSTALL in each held cell that has a write item (CL1), and moves the
    /// cell from this list to the item (CL5). `install` sets INSTALL in a cell with the given word,
    /// and returns the cell's new word.
    #[cold]
    pub(crate) fn hand_over(
        &mut self,
        writes: &mut WriteSet,
        install: impl Fn(CellAt, Tid) -> Tid,
    ) {
        self.cells.retain(|&(at, tid)| {
            let Some(index) = writes.find(at) else { return true };
            let item = &mut writes.items_mut()[index];
            debug_assert!(!tid.has(Tid::LOCK | Tid::ABSENT | Tid::DEAD), "CL4: a row is held");
            debug_assert_eq!(item.note, 0, "CL5: a held cell is no item's yet");
            item.note = install(at, tid).0;
            false
        });
    }

    /// Releases the locks that are still held: calls `release` with each cell and the cell's TID
    /// word from before the lock.
    #[cold]
    pub(crate) fn give_back<P: Protocol>(
        &mut self,
        context: &mut Context<'_, P>,
        mut release: impl FnMut(&mut Context<'_, P>, CellAt, Tid),
    ) {
        self.is_used = false;
        self.has_others = false;
        self.cells.drain(..).for_each(|(at, tid)| release(context, at, tid));
    }
}

/// The locks that an attempt has taken before phase 1: the cells that it holds, and perhaps others.
pub(crate) trait Early<P: Protocol> {
    /// The flags of a TID word with which [`Early::before_lock`] is called before phase 1 locks the
    /// cell.
    const ASKS: u64 = 0;

    fn held(&mut self) -> &mut HeldCells;

    /// Takes another lock, or continues without one. Called at most once for each cell.
    ///
    /// # Errors
    /// [`Abort::Locked`] or [`Abort::RecordRemoved`] if the attempt must abort.
    fn before_lock(&mut self, _context: &mut Context<'_, P>, _at: CellAt) -> Result<(), Abort> {
        Ok(())
    }

    /// Called each time that phase 1 has waited for a cell and has not got it.
    fn wait_again(&self, _at: CellAt) {}

    /// Releases all that the attempt has locked early. An updater has panicked, and the write set's
    /// `items` are released.
    fn release_in_panic(
        &mut self,
        context: &mut Context<'_, P>,
        _items: &[WriteItem],
        release: impl FnMut(&mut Context<'_, P>, CellAt, Tid),
    ) {
        self.held().give_back(context, release);
    }
}

impl<P: Protocol> Early<P> for HeldCells {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn held(&mut self) -> &mut HeldCells {
        self
    }
}
