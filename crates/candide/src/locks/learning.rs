//! The policies `mocc` and `hybrid`: locks during the attempt, in the order of addresses; and
//! `deferred-2pl`, which locks in this order, too, but only before its commit.
//!
//! # The order of locks
//! An attempt is in *canonical mode* with respect to a lock if all locks that it holds have smaller
//! addresses. Only then does it sleep for the lock: a chain of such sleepers waits for ever greater
//! addresses, so it has no circle.
//!
//! Before the closure runs, the retrospective list is locked in that order. At the commit, those
//! rows of the write set whose writers ask are locked in that order before phase 1 begins. Locks
//! that are in the way are released; reads under these locks are validated like any other read. The
//! other rows of the write set are locked in phase 1 as under `Occ` alone: in the order in which
//! the closure has staged them (with the factor `sorted-locks`, in the order of addresses), each
//! with a few rounds of waiting, or asleep if the commit holds nothing (WA2).
//!
//! While the closure runs, an attempt sleeps only if it then holds no lock, since others would wait
//! for it meanwhile. If all that it holds is a few locks for reading, and they are in the way, it
//! *restores* canonical mode: it releases them. The attempt keeps a lock for writing, since another
//! writer would replace what was read under the lock. In all other cases it waits a few rounds, and
//! then continues without the lock. A commit does not wait for the lock of a row that it has read,
//! since the lock's holder is about to replace what was read; unless it has read no more than that
//! a number is in a range.
//!
//! # Waiting as in the paper
//! With [`MoccOptions::paper_waiting`](crate::policy::MoccOptions::paper_waiting), an attempt
//! restores canonical mode whenever that takes the release of few locks, locks for writing
//! included. It sleeps in canonical mode whatever other locks of these policies it holds, also
//! while its closure runs and at a commit for a row that it has read. Only with more locks in the
//! way does it continue without the lock. No circle of sleepers arises, beside reads for update
//! either:
//! * A sleeper for a lock of these policies holds only such locks, all before the one that it waits
//!   for, and no TID word (`RowLocks::ask_in_order` lets no attempt with TID words sleep).
//! * A sleeper for a TID word that a read for update holds has no lock by policy (WA1), and the
//!   words that it holds come before the word that it waits for. A sleeper for a commit (WA3) waits
//!   for a session that does not sleep.
//! * So an attempt that holds locks of both kinds does not sleep for a lock of any kind. A chain of
//!   sleepers has only one kind of sleepers, which wait for ever greater addresses. The chain ends
//!   at an attempt that runs.
//!
//! At a queue lock, an attempt that is not in canonical mode leaves its request in the queue,
//! continues without the lock, and may find later that it was granted. Such a request counts as a
//! lock that the attempt holds, since others wait behind it.
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
//!   are hot, under `mocc`; of all its reads and writes, under `hybrid`. A long list is reduced to
//!   the rows that are hot and those whose reads failed to validate.
//!
//! # Source
//! [WK16], section 3, and [TH98] for `hybrid`. There the retrospective list is consulted at each
//! access, and the part of it that comes before a lock is taken along with that lock. Here it is
//! taken before the closure runs, so that reads of rows that are not hot need not look at it. In
//! the paper a lock in the way is released at once, and an attempt in canonical mode waits whatever
//! it holds; here the attempt first tries to take the lock without waiting, and then waits by the
//! rules above. The paper does not treat reads of rows that are often written, since its
//! transactions declare beforehand that they are going to write.

#![forbid(unsafe_code)]

use super::cell_queue::{has_queue, queue, queue_mode};
use super::heat::{self, heat, is_hot, warm};
use super::patience::{long_patience, patience};
use super::row_lock::{RowLock, is_asked_for, is_written};
use super::row_locks::{Grant, RowLocks};
use super::shared::{LockBase, Locker};
use super::waiting::{Asker, When, runs_beside};
use super::word::Mode;
use super::{RANGE, RASK, WASK};
use crate::access::WriteSet;
use crate::error::Abort;
use crate::policy::Policy;
use crate::record::{CellAt, Tid};
use crate::stats::LockCount;
use crate::sync::{Ordering, step};

/// The largest number of locks that an attempt releases, while its closure runs, in order to wait
/// for another one.
const RELEASED_MAX: usize = 8;
/// The number of times that a commit looks which rows of its write set are to be locked.
const LOOKS_MAX: usize = 4;
/// The largest number of locks in a retrospective list. Of a longer list only the locks of hot
/// rows, and of rows whose reads have failed to validate, are kept.
const LISTED_MAX: usize = 256;
/// The same for `hybrid`, whose list has all that an attempt has read.
const LISTED_MAX_HYBRID: usize = 1 << 14;

impl RowLocks {
    /// Asks for the lock of a cell under a policy that waits in the order of addresses, before
    /// phase 1 of the commit.
    ///
    /// # Errors
    /// [`Abort::Locked`] if the commit needs the lock and does not get it;
    /// [`Abort::RecordRemoved`] if the record is dead.
    pub(super) fn ask_in_order(
        &mut self,
        locker: &mut Locker<'_>,
        at: CellAt,
        policy: Policy,
        (mut mode, when): (Mode, When),
        holds_cells: bool,
    ) -> Result<Grant, Abort> {
        if self.is_still_queued(locker, at, (mode, when))? {
            return Ok(Grant::Without);
        }
        self.has_staged |= when == When::Staging;
        match (self.place(at).map(|place| self.list[place].mode), mode) {
            (Some(Mode::Write), _) | (Some(Mode::Read), Mode::Read) => return Ok(Grant::Held),
            (Some(Mode::Read), Mode::Write) => {
                if when == When::Staging {
                    heat::note_written(locker.base(), at, true);
                }
                if self.give_up_read_lock(locker.base(), at, locker.own.desk) {
                    locker.count(LockCount::Taken);
                    return Ok(Grant::Held);
                }
            }
            (None, Mode::Write) if when == When::Staging => return Ok(Grant::Without),
            // The first attempt is optimistic, and later ones have locked before.
            (None, Mode::Read) if when == When::Now && policy == Policy::Hybrid => {
                return Ok(Grant::Without);
            }
            (None, Mode::Read) if when == When::Now && heat::is_written(locker.base(), at) => {
                mode = Mode::Write;
            }
            (None, _) => {}
        }
        // Reserved in advance, since nothing may fail between the grant and the push.
        self.list.reserve(1);
        if locker.locks.policies.mocc().is_unreliable() && locker.local.random.next() >> 63 != 0 {
            let is_granted = locker.local.random.next() >> 63 != 0;
            locker.count(if is_granted { LockCount::Taken } else { LockCount::Forgone });
            return Ok(if is_granted { Grant::Held } else { Grant::Without });
        }
        let paper_waiting = locker.locks.policies.mocc().has_paper_waiting();
        let restored =
            paper_waiting.then(|| self.may_sleep(locker, at, (policy, when), holds_cells));
        let lock = match self.queueing.try_take(locker, (at, mode)) {
            Some(lock) => lock,
            None => {
                heat::note_wait(locker, at);
                let is_canonical = restored
                    .unwrap_or_else(|| self.may_sleep(locker, at, (policy, when), holds_cells));
                let wish = (mode, when);
                let waited = match has_queue(at) {
                    // The holders of a queue lock are not known, and might wait for the outer
                    // transaction.
                    true if runs_beside(locker.base(), locker.own.desk) => None,
                    true => self.wait_in_queue(locker, at, wish, is_canonical)?,
                    false => {
                        let holds_others = holds_cells || self.holds_any();
                        let asker = Asker::new(policy, mode, 0, (when, holds_cells, holds_others));
                        let is_patient = self.is_patient
                            && when == When::BeforeCommit
                            && policy == Policy::DeferredTwoPhase;
                        let deadline = locker.local.wanted.deadline();
                        let long = is_patient.then(|| long_patience(deadline));
                        let asker = asker.canonical(is_canonical).patient(long);
                        let grant = self.take(locker, at, asker)?;
                        (grant == Grant::Held).then_some(RowLock { at, mode, node: None })
                    }
                };
                let Some(lock) = waited else {
                    locker.count(LockCount::Forgone);
                    return Ok(Grant::Without);
                };
                lock
            }
        };
        locker.count(LockCount::Taken);
        if when == When::Ahead {
            locker.count(LockCount::Retrospective);
        }
        let grant = self.look_again(locker.base(), lock, WASK)?;
        if grant == Grant::Held {
            self.push(lock);
            self.holds_ordered = true;
            self.is_patient &= policy == Policy::DeferredTwoPhase;
        }
        Ok(grant)
    }

    /// Returns whether the attempt may sleep for a lock. Brings the attempt into canonical mode, if
    /// that is all that it needs.
    fn may_sleep(
        &mut self,
        locker: &mut Locker<'_>,
        at: CellAt,
        (policy, when): (Policy, When),
        holds_cells: bool,
    ) -> bool {
        let is_hopeful = when == When::BeforeCommit || !self.has_slept_in_vain;
        let may = policy.waits_in_order()
            && is_hopeful
            && !holds_cells
            && !runs_beside(locker.base(), locker.own.desk);
        may && self.make_canonical(locker, at, when)
    }

    /// Waits for a queue lock: asleep if the attempt is in canonical mode. Otherwise leaves the
    /// request in the queue, except before phase 1. Returns `None` if the attempt continues without
    /// the lock.
    ///
    /// # Errors
    /// [`Abort::Locked`] before phase 1, if the lock is not granted.
    fn wait_in_queue(
        &mut self,
        locker: &mut Locker<'_>,
        at: CellAt,
        (mode, when): (Mode, When),
        is_canonical: bool,
    ) -> Result<Option<RowLock>, Abort> {
        let is_needed = when == When::BeforeCommit;
        let gives_up = locker.engine.token.is_held_by(locker.local.id)
            || locker.local.wanted.gives_up_locks()
            || !is_needed && !locker.locks.policies.at(at).waits_in_order();
        let node = if gives_up { None } else { self.queueing.take(locker) };
        let Some(node) = node else { return Ok(None) };
        self.requests.reserve(1);
        let lock = queue(locker.base(), &at);
        let request = RowLock { at, mode, node: Some(node) };
        if lock.request(node, queue_mode(mode)) {
            return Ok(Some(request));
        }
        if !is_canonical && !is_needed {
            self.requests.push(request);
            self.holds_ordered = true;
            return Ok(None);
        }
        locker.count(LockCount::Waited);
        self.has_waited = true;
        if lock.wait(node, patience(is_canonical)) {
            return Ok(Some(request));
        }
        if let Some(lock) = self.queueing.cancel(locker.base(), request) {
            return Ok(Some(lock));
        }
        locker.local.wanted.note_failure(is_canonical);
        self.has_slept_in_vain |= !is_needed;
        if is_needed {
            locker.count(LockCount::Died);
            return Err(Abort::Locked);
        }
        Ok(None)
    }

    /// Returns whether the attempt has a request of a sufficient mode in the queue of a cell's
    /// lock. If the request was granted, lists the lock. A request of an insufficient mode leaves
    /// the queue, and so does every request before phase 1.
    ///
    /// # Errors
    /// See [`RowLocks::look_again`].
    fn is_still_queued(
        &mut self,
        locker: &mut Locker<'_>,
        at: CellAt,
        (mode, when): (Mode, When),
    ) -> Result<bool, Abort> {
        let is_it = |request: &RowLock| request.at.address() == at.address();
        let Some(place) = self.requests.iter().position(is_it) else { return Ok(false) };
        let request = self.requests[place];
        let serves = when != When::BeforeCommit
            && (request.mode == Mode::Write || mode == Mode::Read)
            && request.node.is_some_and(|node| !queue(locker.base(), &at).poll(node));
        if serves {
            return Ok(true);
        }
        self.list.reserve(1);
        self.requests.swap_remove(place);
        if let Some(lock) = self.queueing.cancel(locker.base(), request) {
            locker.count(LockCount::Taken);
            if self.look_again(locker.base(), lock, WASK)? == Grant::Held {
                self.push(lock);
            }
        }
        Ok(false)
    }

    /// Takes a lock of the retrospective list.
    ///
    /// # Errors
    /// See [`RowLocks::ask`].
    pub(crate) fn lock_ahead(
        &mut self,
        locker: &mut Locker<'_>,
        at: CellAt,
        mode: Mode,
    ) -> Result<Grant, Abort> {
        if !locker.locks.policies.at(at).learns() || !warm(locker.base(), at) {
            return Ok(Grant::Without);
        }
        self.ask(locker, at, (mode, When::Ahead), false)
    }

    /// Returns whether the attempt holds the lock of a cell for writing, under a policy that waits
    /// in the order of addresses.
    fn is_locked_in_order(&self, base: LockBase<'_>, at: CellAt) -> bool {
        self.holds_ordered
            && self.place(at).is_some_and(|place| self.list[place].mode == Mode::Write)
            && base.locks.policies.at(at).waits_in_order()
    }

    /// Returns whether the attempt holds the lock of a cell for writing, under a policy that learns
    /// from conflicts. A read for update then leaves the cell's TID word unlocked, so that the
    /// attempt may sleep.
    pub(crate) fn keeps_from_writers(&self, base: LockBase<'_>, at: CellAt) -> bool {
        self.is_locked_in_order(base, at) && base.locks.policies.at(at).learns()
    }

    /// Takes the locks of those rows of the write set whose writers must ask, in the order of
    /// addresses. The caller has not begun phase 1. `has_observed` says whether the attempt has
    /// read anything. While the attempt waits, other rows may become such rows, and it may have to
    /// release locks that it holds. So the attempt looks again, a few times.
    ///
    /// # Errors
    /// As for [`RowLocks::ask`]; the errors come with the cell. [`Abort::Locked`] at once for a row
    /// among `reads` that another attempt has locked for writing: that attempt is about to replace
    /// the version that was read. (A read of a range may hold in the next version, too.) A
    /// transaction that must not fail because of locks does not get this last error, and with the
    /// paper's waiting no transaction does.
    pub(crate) fn lock_writes(
        &mut self,
        locker: &mut Locker<'_>,
        (reads, has_observed): (&[(CellAt, Tid)], bool),
        writes: &WriteSet,
        holds_cells: bool,
    ) -> Result<(), (Abort, CellAt)> {
        self.is_patient = !has_observed && !holds_cells && !self.holds_any();
        for _ in 0..LOOKS_MAX {
            let asks = |at: &CellAt| {
                is_asked_for(*at)
                    && (has_queue(*at) || locker.locks.policies.at(*at).waits_in_order())
                    && self.place(*at).is_none_or(|place| self.list[place].mode == Mode::Read)
            };
            let mut cells: Vec<CellAt> =
                writes.items().iter().map(|item| item.at).filter(asks).collect();
            cells.sort_unstable_by_key(|at| at.address());
            for &at in &cells {
                let lock = (Mode::Write, When::BeforeCommit);
                self.is_still_queued(locker, at, lock).map_err(|abort| (abort, at))?;
                if self.is_locked_in_order(locker.base(), at) {
                    continue;
                }
                let is_it = |&(read, seen): &(CellAt, Tid)| {
                    read.address() == at.address() && !seen.has(RANGE)
                };
                let must_pass = || {
                    locker.locks.policies.mocc().has_paper_waiting()
                        || locker.engine.token.is_held_by(locker.local.id)
                        || locker.local.wanted.gives_up_locks()
                        || runs_beside(locker.base(), locker.own.desk)
                };
                if is_written(locker.base(), at) && reads.iter().any(is_it) && !must_pass() {
                    locker.local.wanted.note_failure(false);
                    locker.count(LockCount::Died);
                    return Err((Abort::Locked, at));
                }
                self.ask(locker, at, lock, holds_cells).map_err(|abort| (abort, at))?;
            }
            if cells.is_empty() || !self.has_waited() {
                break;
            }
        }
        Ok(())
    }

    /// Brings the attempt into canonical mode with respect to a lock, by releasing the locks that
    /// are in the way: at the commit always, and while the closure runs only under the conditions
    /// in the module's documentation. Returns whether the attempt may sleep for the lock.
    fn make_canonical(&mut self, locker: &mut Locker<'_>, at: CellAt, when: When) -> bool {
        if self.holds_unordered {
            return false;
        }
        let is_in_the_way = |held: &RowLock| {
            step();
            held.at.address() >= at.address()
        };
        let (mut count, mut writes) = (0, 0);
        for held in self.list.iter().chain(&self.requests).filter(|held| is_in_the_way(held)) {
            count += 1;
            writes += usize::from(held.mode == Mode::Write);
        }
        let is_in_closure = matches!(when, When::Now | When::Staging);
        let is_all = count == self.list.len() + self.requests.len();
        let waits_holding = locker.locks.policies.mocc().has_paper_waiting();
        let keeps = count > RELEASED_MAX || !waits_holding && (!is_all || writes > 0);
        if is_in_closure && keeps {
            return false;
        }
        if count > 0 {
            locker.count(LockCount::Restored);
        }
        while let Some(place) = self.requests.iter().position(is_in_the_way) {
            let request = self.requests.swap_remove(place);
            if let Some(lock) = self.queueing.cancel(locker.base(), request) {
                self.queueing.release_by_policy(locker, lock);
            }
        }
        // The loop begins at the end: the lock that takes the place of a released lock has been
        // looked at before.
        for place in (0..self.list.len()).rev() {
            if is_in_the_way(&self.list[place]) {
                let lock = self.remove(place);
                self.queueing.release_by_policy(locker, lock);
            }
        }
        true
    }

    /// Notes of the locks for writing that reads have taken, by their preference, whether the rows
    /// were written. Called when an attempt has committed. If the closure has ended in an error,
    /// the write set is empty, and nothing is noted of an attempt that has staged writes.
    pub(crate) fn note_preferences(&self, base: LockBase<'_>, writes: &WriteSet) {
        if self.has_staged && writes.is_empty() {
            return;
        }
        for &RowLock { at, mode, .. } in &self.list {
            if mode == Mode::Write && is_hot(at) && writes.find(at).is_none() {
                heat::note_written(base, at, false);
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
    locker: &mut Locker<'_>,
    locks: &RowLocks,
    reads: &[(CellAt, Tid)],
    writes: &WriteSet,
) {
    locker.own.note_failure(reads.len() + writes.items().len());
    let mut listed: Vec<(CellAt, bool)> = Vec::new();
    let mut failed: Vec<CellAt> = Vec::new();
    let mut is_hybrid = false;
    let conflict = locker.local.conflict;
    for &(at, seen) in reads {
        let policy = locker.locks.policies.at(at);
        if !policy.learns() {
            continue;
        }
        let tid = Tid(at.cell_word(0).load(Ordering::Relaxed));
        // A version that another attempt is about to replace counts as replaced.
        let is_taken =
            || tid.has(WASK) && locks.place(at).is_none() && is_written(locker.base(), at);
        // A number may change within the range that was observed.
        let may_fail = !seen.has(RANGE) || conflict.is_some_and(|conflict| conflict.is_about(at));
        let has_failed =
            may_fail && (!tid.same_version(seen) || tid.has(Tid::INSTALL) || is_taken());
        if has_failed {
            failed.push(at);
        }
        is_hybrid |= policy == Policy::Hybrid;
        if has_failed || policy == Policy::Hybrid || tid.has(RASK) {
            listed.push((at, false));
        }
    }
    // A row that was read several times counts once.
    failed.sort_unstable_by_key(|at| at.address());
    failed.dedup_by_key(|at| at.address());
    for &at in failed.iter().filter(|at| locker.locks.policies.at(**at) == Policy::Mocc) {
        heat(locker, at);
        if writes.find(at).is_some() {
            heat::note_written(locker.base(), at, true);
        }
    }
    let exists = |at: &CellAt| !Tid(at.cell_word(0).load(Ordering::Relaxed)).has(Tid::ABSENT);
    let written = writes.items().iter().map(|item| item.at);
    let written = written.filter(|at| locker.locks.policies.at(*at).learns()).filter(exists);
    listed.extend(written.map(|at| (at, true)));
    let held = locks.list.iter().filter(|held| locker.locks.policies.at(held.at).learns());
    listed.extend(held.map(|held| (held.at, held.mode == Mode::Write)));
    listed.sort_unstable_by_key(|&(at, writes)| (at.address(), !writes));
    listed.dedup_by_key(|(at, _)| at.address());
    let most = if is_hybrid { LISTED_MAX_HYBRID } else { LISTED_MAX };
    if listed.len() > most {
        let has_failed = |at: CellAt| {
            failed.binary_search_by_key(&at.address(), |failed| failed.address()).is_ok()
        };
        let is_kept = |at| is_hot(at) || has_failed(at);
        listed.retain(|&(at, _)| is_kept(at));
    }
    locker.local.wanted.set_retrospective(locker.engine, &listed);
}
