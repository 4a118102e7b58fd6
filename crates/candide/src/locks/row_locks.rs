//! The locks on second words that an attempt holds.

#![forbid(unsafe_code)]

use super::cell_queue::has_queue;
use super::chain::EndWish;
use super::desks::class_of;
use super::row_lock::{Queueing, RowLock};
use super::shared::{LockBase, Locker};
use super::waiting::{Asker, Verdict, When, verdict};
use super::word::{Lock, LockWord, Mode};
use super::{RASK, WASK};
use crate::access::{ByAddress, WriteItem};
use crate::engine::{Common, own_thread};
use crate::error::Abort;
use crate::policy::Policy;
use crate::record::{CellAt, Tid};
use crate::stats::LockCount;
use crate::sync::{Ordering, Patience, Wait, Waited, Wish, step};

/// The answer of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grant {
    /// The attempt holds the lock.
    Held,
    /// The attempt continues without the lock.
    Without,
}

/// The locks on second words that an attempt holds; empty between attempts.
#[derive(Debug, Default)]
pub(crate) struct RowLocks {
    pub(super) list: Vec<RowLock>,
    /// Requests for queue locks that were not granted at once. Such requests count as locks that
    /// the attempt holds, since other requests wait behind them.
    pub(super) requests: Vec<RowLock>,
    pub(super) queueing: Queueing,
    places: ByAddress,
    /// The number of locks for writing in the list.
    written: usize,
    /// Whether the attempt has taken locks under policies that wait in the order of addresses.
    pub(super) holds_ordered: bool,
    /// Whether the attempt has taken locks under other policies.
    pub(super) holds_unordered: bool,
    /// Whether the session's desk shows the attempt.
    is_shown: bool,
    /// Whether the attempt has waited for a lock since this was last asked.
    pub(super) has_waited: bool,
    /// Whether the attempt has slept without success for a lock without which it then continued.
    pub(super) has_slept_in_vain: bool,
    /// Whether the attempt has staged a write of a row whose writers ask.
    pub(super) has_staged: bool,
    /// Whether the attempt had read nothing and held no lock when its commit began to lock what it
    /// writes, and has since taken only locks of `deferred-2pl`. Only valid in that phase.
    pub(super) is_patient: bool,
    /// The wish that a chain ends, so that the attempt can lock the cell's TID word.
    wish: Option<EndWish>,
}

impl RowLocks {
    /// Returns whether the attempt holds no lock and its session's desk does not show the attempt.
    pub(crate) fn is_unused(&self) -> bool {
        !self.holds_any() && !self.is_shown
    }

    /// Returns whether the attempt holds a listed lock, or has a request in a queue.
    pub(crate) fn holds_any(&self) -> bool {
        !self.list.is_empty() || !self.requests.is_empty()
    }

    /// Asks the policy of a cell's table for the lock in the cell's second word, and waits if the
    /// policy lets the attempt wait. `holds_cells` is whether the attempt holds TID words.
    ///
    /// # Errors
    /// [`Abort::Locked`] if the attempt must abort by the policy, or by the request of another
    /// session; [`Abort::RecordRemoved`] if the record is dead. The locks that the attempt holds
    /// already stay held.
    #[cold]
    #[inline(never)]
    pub(crate) fn ask(
        &mut self,
        locker: &mut Locker<'_>,
        at: CellAt,
        (mode, when): (Mode, When),
        holds_cells: bool,
    ) -> Result<Grant, Abort> {
        let policy = locker.locks.policies.at(at);
        #[cfg(any(test, feature = "experiments"))]
        if policy == Policy::Random {
            return random(locker, at, mode);
        }
        if policy == Policy::Pipelined {
            // Such a row is locked by its TID word alone, when its chain has ended.
            if mode == Mode::Write && when != When::Staging {
                self.wish_for_end(locker.engine, at);
            }
            return Ok(Grant::Without);
        }
        // A commit allocates nothing, so it does not join the desks. Locks that are held name the
        // desk.
        if locker.own.desk == 0 && when != When::Commit && self.list.is_empty() {
            locker.own.desk = locker.locks.desks.join(true).unwrap_or(0);
        }
        if !asks_for(policy, mode, when) {
            return Ok(Grant::Without);
        }
        let me = locker.own.desk;
        if me == 0 && when == When::Commit {
            // Without a desk, a lock that is not listed could not be found again.
            return Ok(Grant::Without);
        }
        if !self.is_shown {
            self.show(locker);
        }
        if self.is_doomed(locker) {
            locker.count(LockCount::Killed);
            return Err(Abort::Locked);
        }
        if when != When::Commit && (policy.waits_in_order() || has_queue(at)) {
            return self.ask_in_order(locker, at, policy, (mode, when), holds_cells);
        }
        if policy.waits_in_order() && Tid(at.cell_word(0).load(Ordering::Relaxed)).has(Tid::ABSENT)
        {
            // No other attempt writes the record of an insert before the insert has committed.
            return Ok(Grant::Without);
        }
        if has_queue(at) {
            // A queue lock is held only if it was taken before phase 1, when its node was noted.
            let is_held = self.place(at).is_some();
            return Ok(if is_held { Grant::Held } else { Grant::Without });
        }
        let lock = Lock::of(&at);
        if self.has(lock.word(), at, mode, me) {
            return Ok(Grant::Held);
        }
        if mode == Mode::Write && self.give_up_read_lock(locker.base(), at, me) {
            locker.count(LockCount::Taken);
            return Ok(Grant::Held);
        }
        // Reserved in advance, since nothing may fail between the exchange and the push.
        self.list.reserve(usize::from(when != When::Commit));
        if lock.take(me, mode).is_err() {
            let holds_others = holds_cells || when == When::Commit || self.holds_any();
            let asker = Asker::new(policy, mode, self.written, (when, holds_cells, holds_others))
                .beside_ordered(self.holds_ordered);
            if self.take(locker, at, asker)? == Grant::Without {
                locker.count(LockCount::Forgone);
                return Ok(Grant::Without);
            }
        }
        locker.count(LockCount::Taken);
        let flag = if mode == Mode::Read { RASK } else { WASK };
        let lock = RowLock { at, mode, node: None };
        let grant = self.look_again(locker.base(), lock, flag)?;
        if grant == Grant::Held && when != When::Commit {
            self.push(lock);
            self.holds_unordered = true;
        }
        Ok(grant)
    }

    /// Expresses the wish that the chain of a cell ends, until the attempt ends or has another such
    /// wish.
    #[cold]
    #[inline(never)]
    fn wish_for_end(&mut self, engine: &Common, at: CellAt) {
        let wish = EndWish::of(at);
        wish.express();
        if let Some(before) = self.wish.replace(wish) {
            before.end(engine);
        }
    }

    #[cold]
    #[inline(never)]
    fn end_wish(&mut self, engine: &Common) {
        if let Some(wish) = self.wish.take() {
            wish.end(engine);
        }
    }

    /// Expresses the wish that the chain of a cell ends again, if the attempt has that wish.
    pub(crate) fn renew_wish(&self, at: CellAt) {
        if let Some(wish) = &self.wish {
            wish.express_about(at);
        }
    }

    /// Returns whether the attempt has waited for a lock since the last call.
    pub(crate) fn has_waited(&mut self) -> bool {
        std::mem::take(&mut self.has_waited)
    }

    /// Shows the attempt on the session's desk, for a commit that is about to lock in the order of
    /// ranks. Returns `false` if the session has no desk.
    pub(crate) fn show_in_order(&mut self, locker: &mut Locker<'_>) -> bool {
        if locker.own.desk == 0 {
            locker.own.desk = locker.locks.desks.join(true).unwrap_or(0);
        }
        if !self.is_shown {
            self.show(locker);
        }
        self.is_shown
    }

    /// Releases the lock of a cell that phase 1 has taken by policy, if it has taken one.
    pub(crate) fn release_unlisted(&mut self, locker: &mut Locker<'_>, at: CellAt) {
        let is_held = at.cell_words() == 2 && Lock::of(&at).word().is_written_by(locker.own.desk);
        if self.is_shown && is_held {
            let lock = RowLock { at, mode: Mode::Write, node: None };
            self.queueing.release_by_policy(locker, lock);
        }
    }

    /// Shows the attempt, which is not shown yet, on the session's desk, if the session has one.
    #[inline(never)]
    fn show(&mut self, locker: &mut Locker<'_>) {
        let desk = locker.own.desk;
        let (engine, cores) = (locker.engine, locker.locks.desks.cores());
        let age = locker.local.wanted.age(cores, || {
            let epoch = engine.epochs.now();
            epoch << u16::BITS | u64::from(desk)
        });
        // The token's holder is the oldest of all.
        let age = if locker.engine.token.is_held_by(locker.local.id) { 0 } else { age };
        if locker.own.desk != 0 {
            let ticket = locker.local.wanted.ticket();
            locker.locks.desks.desk(locker.own.desk).begin(age, ticket, own_thread::number());
            self.is_shown = true;
        }
    }

    /// Returns whether the attempt has been asked to abort.
    pub(crate) fn is_doomed(&self, locker: &Locker<'_>) -> bool {
        self.is_shown && locker.locks.desks.desk(locker.own.desk).is_doomed()
    }

    /// Returns whether the attempt holds the lock of a cell, in this mode or for writing. `word` is
    /// the cell's second word.
    fn has(&self, word: LockWord, at: CellAt, mode: Mode, me: u16) -> bool {
        if word.is_written() {
            return me != 0 && word.is_written_by(me) || me == 0 && self.place(at).is_some();
        }
        mode == Mode::Read && word.classes() & class_of(me) != 0 && self.place(at).is_some()
    }

    /// Returns the place of a cell's lock in the list.
    #[inline]
    pub(super) fn place(&self, at: CellAt) -> Option<usize> {
        let address_of = |held: &RowLock| {
            step();
            held.at.address()
        };
        self.places.find(&self.list, address_of, at.address())
    }

    /// Adds a lock to the list, which has room for it.
    #[inline]
    pub(super) fn push(&mut self, lock: RowLock) {
        self.list.push(lock);
        self.written += usize::from(lock.mode == Mode::Write);
        self.places.added(&self.list, self.list.len() - 1, |lock| lock.at.address());
    }

    /// Removes a lock from the list.
    pub(super) fn remove(&mut self, place: usize) -> RowLock {
        let lock = self.list.swap_remove(place);
        self.written -= usize::from(lock.mode == Mode::Write);
        self.places.swap_removed(&self.list, place, |lock| lock.at.address(), lock.at.address());
        lock
    }

    /// Ends the attempt's lock for reading on a cell, if it has one, because it wants to write.
    /// Makes it a lock for writing if no other session reads, and returns whether that was done. An
    /// attempt never keeps a lock for reading while it waits to write: two that did would wait for
    /// one another.
    pub(super) fn give_up_read_lock(&mut self, base: LockBase<'_>, at: CellAt, me: u16) -> bool {
        if !has_queue(at) {
            let word = Lock::of(&at).word();
            if word.is_written() || word.classes() & class_of(me) == 0 {
                return false;
            }
        }
        let Some(place) = self.place(at) else { return false };
        if !has_queue(at) && Lock::of(&at).upgrade(me) {
            self.list[place].mode = Mode::Write;
            self.written += 1;
            return true;
        }
        let lock = self.remove(place);
        self.queueing.release(base, lock);
        false
    }

    /// Takes the lock of a cell, after a wait if the policy allows one.
    pub(super) fn take(
        &mut self,
        locker: &mut Locker<'_>,
        at: CellAt,
        mut asker: Asker,
    ) -> Result<Grant, Abort> {
        let (lock, me, mode) = (Lock::of(&at), locker.own.desk, asker.mode());
        let Err(mut word) = lock.take(me, mode) else { return Ok(Grant::Held) };
        // A lock's holder may be stuck in its closure, so no transaction aborts here for ever.
        if locker.engine.token.is_held_by(locker.local.id) || locker.local.wanted.gives_up_locks() {
            return Ok(Grant::Without);
        }
        // The kind of the wait, and its length.
        let mut wait: Option<(Wait<'_>, Patience)> = None;
        let is_writer = mode == Mode::Write;
        let (mut has_wanted, mut has_waited) = (false, false);
        let verdict = loop {
            let patience = match verdict(locker, &mut asker, (lock, word), self.is_shown) {
                Verdict::Wait(patience) => patience,
                verdict => break verdict,
            };
            has_wanted |= is_writer && lock.want();
            let wish = if is_writer { Wish::Own(me.into()) } else { Wish::Look };
            let address = at.address() + 8;
            let (wait, patience) = wait.get_or_insert_with(|| {
                locker.count(LockCount::Waited);
                has_waited = true;
                (Wait::new(&locker.engine.parking, address, wish, patience), patience)
            });
            match wait.wait() {
                Waited::Again => {}
                Waited::Handed => break Verdict::Handed,
                Waited::InVain => break asker.in_vain(*patience),
            }
            match lock.take(me, mode) {
                Ok(()) => break Verdict::Handed,
                Err(now) => word = now,
            }
        };
        asker.end(locker);
        self.has_waited |= has_waited;
        let handed = wait.as_mut().map(|(wait, _)| wait.give_up()) == Some(Waited::Handed);
        drop(wait);
        match verdict {
            Verdict::Handed => return Ok(Grant::Held),
            // The lock was handed over after the last look.
            _ if handed => return Ok(Grant::Held),
            _ if has_wanted => {
                lock.unwant();
                // Readers may have waited for this writer, and other writers set WANT again.
                if locker.engine.parking.has_sleepers() {
                    locker.engine.parking.wake(at.address() + 8);
                }
            }
            _ => {}
        }
        if verdict == Verdict::Without {
            return Ok(Grant::Without);
        }
        if verdict == Verdict::InVain && asker.is_hint() {
            self.has_slept_in_vain = true;
            locker.local.wanted.note_failure(true);
            return Ok(Grant::Without);
        }
        if asker.is_ahead() {
            // The attempt continues without the lock, whatever its policy.
            return Err(Abort::Locked);
        }
        let has_slept = verdict == Verdict::InVain;
        if !(has_slept && asker.is_patient()) {
            locker.local.wanted.note_failure(has_slept);
        }
        locker.count(if verdict == Verdict::Doomed { LockCount::Killed } else { LockCount::Died });
        Err(Abort::Locked)
    }

    /// Looks at the TID word of a lock that was granted (LK5). Releases the lock if the word lacks
    /// `flag`, since the lock is then useless.
    ///
    /// # Errors
    /// [`Abort::RecordRemoved`] if the record is dead. The lock was then given back.
    #[inline]
    pub(super) fn look_again(
        &mut self,
        base: LockBase<'_>,
        lock: RowLock,
        flag: u64,
    ) -> Result<Grant, Abort> {
        let tid = Tid(lock.at.cell_word(0).load(Ordering::Acquire)); // E3
        if tid.has(flag) && !tid.has(Tid::DEAD) {
            return Ok(Grant::Held);
        }
        self.queueing.release(base, lock);
        if tid.has(Tid::DEAD) { Err(Abort::RecordRemoved) } else { Ok(Grant::Without) }
    }

    /// Releases all locks, after the TID words were released (LK6), and ends the attempt on the
    /// session's desk. `writes` is the write set of the attempt.
    #[cold]
    #[inline(never)]
    pub(crate) fn release_all(&mut self, locker: &mut Locker<'_>, writes: &[WriteItem]) {
        for request in self.requests.drain(..) {
            if let Some(lock) = self.queueing.cancel(locker.base(), request) {
                self.queueing.release_by_policy(locker, lock);
            }
        }
        if self.wish.is_some() {
            self.end_wish(locker.engine);
        }
        self.places.clear(self.list.len());
        for lock in self.list.drain(..) {
            self.queueing.release_by_policy(locker, lock);
        }
        (self.written, self.holds_ordered, self.holds_unordered) = (0, false, false);
        (self.has_waited, self.has_slept_in_vain, self.has_staged) = (false, false, false);
        if !std::mem::take(&mut self.is_shown) {
            return;
        }
        // Locks that phase 1 has taken are not listed.
        for &WriteItem { at, .. } in writes.iter().filter(|item| item.at.cell_words() == 2) {
            if Lock::of(&at).word().is_written_by(locker.own.desk) {
                let lock = RowLock { at, mode: Mode::Write, node: None };
                self.queueing.release_by_policy(locker, lock);
            }
        }
        locker.locks.desks.desk(locker.own.desk).end();
    }
}

/// Returns whether a policy takes a lock in this mode at this time.
fn asks_for(policy: Policy, mode: Mode, when: When) -> bool {
    match (mode, when) {
        (Mode::Write, When::Ahead | When::Now | When::BeforeCommit | When::Commit) => true,
        (Mode::Write, When::Staging) => {
            use Policy::{Adaptive, DeferredTwoPhase, Optimistic, Pessimistic, Pipelined};
            !matches!(policy, Optimistic | Adaptive | Pessimistic | DeferredTwoPhase | Pipelined)
        }
        (Mode::Read, _) => {
            use Policy::{DeferredTwoPhase, Optimistic, Pipelined, Swiss};
            !matches!(policy, Optimistic | Swiss | DeferredTwoPhase | Pipelined)
        }
    }
}

/// Answers at random, for the policy of tests: grants without a lock, refuses, or makes the attempt
/// abort.
#[cfg(any(test, feature = "experiments"))]
fn random(locker: &mut Locker<'_>, at: CellAt, mode: Mode) -> Result<Grant, Abort> {
    if Tid(at.cell_word(0).load(Ordering::Relaxed)).has(Tid::DEAD) {
        return Err(Abort::RecordRemoved);
    }
    match locker.local.random.below(64) {
        0 if mode == Mode::Write => {
            locker.count(LockCount::Died);
            Err(Abort::Locked)
        }
        1..32 => {
            locker.count(LockCount::Taken);
            Ok(Grant::Held)
        }
        _ => {
            locker.count(LockCount::Forgone);
            Ok(Grant::Without)
        }
    }
}
