//! The policies `mocc` and `hybrid`: locks during the attempt, in the order of addresses.
//!
//! # The order of locks
//! An attempt is in *canonical mode* with respect to a lock if all locks that it holds have smaller
//! addresses. Then it waits for the lock asleep: a chain of such sleepers waits for ever greater
//! addresses, so it has no circle. Otherwise the attempt *restores* canonical mode by releasing the
//! locks that are in the way, if they are few; what it has read under them is validated like any
//! other read. If they are many, it waits only a few rounds, and then goes on without the lock. At
//! the commit, the write set is locked in the order of addresses before phase 1 begins.
//!
//! An address belongs to one record for as long as any session that knows it is pinned, so two
//! attempts that wait for one another agree on the order.
//!
//! # What is locked
//! * A read of a hot row: for reading; for writing, if rows that were read there have usually been
//!   written afterwards.
//! * A write of a row that the attempt has locked to read. Any other write is locked at the commit.
//! * Before the closure runs: the retrospective lock list, in the order of addresses. The attempt
//!   before has made it, when it failed: of its writes and of the reads that failed to validate or
//!   are hot, under `mocc`; of all its reads and writes, under `hybrid`.
//!
//! # Source
//! [WK16], section 3, and [TH98] for `hybrid`. There the retrospective list is consulted at each
//! access, and the part of it that comes before a lock is taken along with that lock. Here it is
//! taken before the closure runs, so that reads of rows that are not hot need not look at it. There
//! a lock in the way is released at once; here an attempt first tries to take the lock as it is.
//! Which lock a read takes of a row that is often written is not in the paper, whose transactions
//! say beforehand that they are going to write.

#![forbid(unsafe_code)]

use super::heat::{self, heat, is_hot, warm};
use super::locks::{Grant, Locks, look_again, release_by_policy};
use super::waiting::{Asker, When};
use super::word::{Lock, Mode};
use super::{RASK, WASK};
use crate::access::WriteSet;
use crate::engine::{Common, Local};
use crate::error::Abort;
use crate::policy::Policy;
use crate::record::{CellAt, Tid};
use crate::stats::LockCount;
use crate::sync::{Mutant, Ordering, mutant};

/// The largest number of locks that an attempt releases in order to wait for another one.
const RELEASED_MAX: usize = 8;
/// The largest number of locks in a retrospective list; with more, the list is empty.
const LISTED_MAX: usize = 256;
/// The same for `hybrid`, whose list has all that an attempt has read.
const LISTED_MAX_HYBRID: usize = 1 << 14;

impl Locks {
    /// Asks a policy that learns from conflicts for the lock of a cell, before phase 1 of the
    /// commit.
    ///
    /// # Errors
    /// [`Abort::Locked`] if the commit needs the lock and does not get it;
    /// [`Abort::RecordRemoved`] if the record is dead.
    pub(super) fn hint(
        &mut self,
        engine: &Common,
        local: &mut Local,
        at: CellAt,
        policy: Policy,
        (mut mode, when): (Mode, When),
        holds_cells: bool,
    ) -> Result<Grant, Abort> {
        match (self.place(at).map(|place| self.list[place].1), mode) {
            (Some(Mode::Write), _) | (Some(Mode::Read), Mode::Read) => return Ok(Grant::Held),
            (Some(Mode::Read), Mode::Write) => {
                if when == When::Staging {
                    heat::note_written(engine, at, true);
                }
                if self.give_up_read_lock(engine, at, local.desk) {
                    local.locks.count(LockCount::Taken);
                    return Ok(Grant::Held);
                }
            }
            (None, Mode::Write) if when == When::Staging => return Ok(Grant::Without),
            (None, Mode::Read) if when == When::Now && heat::is_written(engine, at) => {
                mode = Mode::Write;
            }
            (None, _) => {}
        }
        // Reserved in advance, since nothing may fail between the exchange and the push.
        self.list.reserve(1);
        if engine.policies.mocc().is_unreliable() && local.random.next() >> 63 != 0 {
            let is_granted = local.random.next() >> 63 != 0;
            local.locks.count(if is_granted { LockCount::Taken } else { LockCount::Forgone });
            return Ok(if is_granted { Grant::Held } else { Grant::Without });
        }
        let lock = Lock::of(&at);
        let taken = match mode {
            Mode::Read => lock.take_to_read(local.desk),
            Mode::Write => lock.take_to_write(local.desk),
        };
        if taken.is_err() {
            heat::note_wait(engine, at);
            let is_canonical = !holds_cells && self.make_canonical(engine, local, at);
            let holds_others = holds_cells || self.holds_any();
            let asker = Asker::new(policy, mode, 0, (when, holds_cells, holds_others))
                .canonical(is_canonical || mutant(Mutant::WaitsOutOfOrder));
            if self.take(engine, local, at, asker)? == Grant::Without {
                local.locks.count(LockCount::Forgone);
                return Ok(Grant::Without);
            }
        }
        local.locks.count(LockCount::Taken);
        if when == When::Ahead {
            local.locks.count(LockCount::Retrospective);
        }
        let grant = look_again(engine, at, mode, WASK)?;
        if grant == Grant::Held {
            self.push(at, mode);
            self.holds_ordered = true;
        }
        Ok(grant)
    }

    /// Takes a lock of the retrospective list.
    ///
    /// # Errors
    /// See [`Locks::ask`].
    pub(crate) fn lock_ahead(
        &mut self,
        engine: &Common,
        local: &mut Local,
        at: CellAt,
        mode: Mode,
    ) -> Result<Grant, Abort> {
        if !engine.policies.of(at.table()).learns() || !warm(at) {
            return Ok(Grant::Without);
        }
        self.ask(engine, local, at, (mode, When::Ahead), false)
    }

    /// Takes the locks of the write set, of the rows whose writers must ask, in the order of
    /// addresses. Called before phase 1 by an attempt that has used locks.
    ///
    /// # Errors
    /// See [`Locks::ask`]; also returns the cell.
    pub(crate) fn lock_writes(
        &mut self,
        engine: &Common,
        local: &mut Local,
        writes: &WriteSet,
        holds_cells: bool,
    ) -> Result<(), (Abort, CellAt)> {
        let asks = |at: &CellAt| {
            Tid(at.cell_word(0).load(Ordering::Relaxed)).has(WASK)
                && engine.policies.of(at.table()).learns()
        };
        let mut cells: Vec<CellAt> =
            writes.items().iter().map(|item| item.at).filter(asks).collect();
        cells.sort_unstable_by_key(|at| at.address());
        for at in cells {
            let lock = (Mode::Write, When::BeforeCommit);
            self.ask(engine, local, at, lock, holds_cells).map_err(|abort| (abort, at))?;
        }
        Ok(())
    }

    /// Brings the attempt into canonical mode with respect to a lock: releases the locks that do
    /// not come before it, if they are few. Returns whether the attempt is in canonical mode.
    fn make_canonical(&mut self, engine: &Common, local: &mut Local, at: CellAt) -> bool {
        if self.holds_unordered {
            return false;
        }
        let is_in_the_way = |(held, _): &(CellAt, Mode)| held.address() >= at.address();
        let count = self.list.iter().filter(|held| is_in_the_way(held)).count();
        if count > RELEASED_MAX {
            return false;
        }
        if count > 0 {
            local.locks.count(LockCount::Restored);
        }
        while let Some(place) = self.list.iter().position(is_in_the_way) {
            let (held, mode) = self.list[place];
            self.remove(place);
            release_by_policy(engine, local, held, mode);
        }
        true
    }

    /// Notes of the locks for writing that reads have taken, by their preference, whether the rows
    /// were written. Called when an attempt has committed.
    pub(crate) fn note_preferences(&self, engine: &Common, writes: &WriteSet) {
        for &(at, mode) in &self.list {
            if mode == Mode::Write && is_hot(at) && writes.find(at).is_none() {
                heat::note_written(engine, at, false);
            }
        }
    }
}

/// Learns from the conflict in which an attempt ends: raises the temperatures of the rows whose
/// reads have failed to validate, and makes the retrospective lock list for the next attempt. The
/// attempt still has its `locks`, but no TID words for its writes.
#[cold]
#[inline(never)]
pub(crate) fn learn(
    engine: &Common,
    local: &mut Local,
    locks: &Locks,
    reads: &[(CellAt, Tid)],
    writes: &WriteSet,
) {
    let mut listed: Vec<(CellAt, bool)> = Vec::new();
    let mut is_hybrid = false;
    for &(at, seen) in reads {
        let policy = engine.policies.of(at.table());
        if !policy.learns() {
            continue;
        }
        let tid = Tid(at.cell_word(0).load(Ordering::Relaxed));
        let has_failed = !tid.same_version(seen) || tid.has(Tid::INSTALL);
        if policy == Policy::Mocc && has_failed {
            heat(engine, local, at);
            if writes.find(at).is_some() {
                heat::note_written(engine, at, true);
            }
        }
        is_hybrid |= policy == Policy::Hybrid;
        if has_failed || policy == Policy::Hybrid || tid.has(RASK) {
            listed.push((at, false));
        }
    }
    let exists = |at: &CellAt| !Tid(at.cell_word(0).load(Ordering::Relaxed)).has(Tid::ABSENT);
    let written = writes.items().iter().map(|item| item.at);
    let written =
        written.filter(|at| engine.policies.of(at.table()).learns()).filter(exists);
    listed.extend(written.map(|at| (at, true)));
    let held = locks.list.iter().filter(|(at, _)| engine.policies.of(at.table()).learns());
    listed.extend(held.map(|&(at, mode)| (at, mode == Mode::Write)));
    listed.sort_unstable_by_key(|&(at, writes)| (at.address(), !writes));
    listed.dedup_by_key(|(at, _)| at.address());
    let most = if is_hybrid { LISTED_MAX_HYBRID } else { LISTED_MAX };
    if listed.len() > most || mutant(Mutant::NothingRetrospective) {
        listed.clear();
    }
    local.wanted.set_retrospective(engine, &listed);
}
