//! Whether an attempt that meets a lock waits, aborts, or continues without the lock.
//!
//! # Waiting and circles
//! An attempt sleeps for a lock only if its policy excludes circles of sleepers, or finds them:
//! * wait-die: a sleeper is older than all holders, so a chain of sleepers goes from older to ever
//!   younger attempts.
//! * dreadlock: a sleeper has published for which sessions it waits, has found itself not among
//!   those for which they wait, and looks again whenever it wakes up. Sleepers publish under the
//!   policies wait-die and swiss, too, so circles through locks of these policies are found.
//! * mocc, hybrid and deferred-2pl: a sleeper holds only locks of these policies, and all of them
//!   come before the lock that it waits for in the order of addresses (`learning.rs`). No other
//!   transaction of its thread runs.
//! * swiss: a sleeper has asked the holder to abort, which the holder sees when it asks for its
//!   next lock and while it waits.
//!
//! A commit never sleeps for a lock by policy once it has begun phase 1, since readers sleep until
//! its TID words are unlocked (WA3). An attempt that holds locks of policies that wait in the order
//! of addresses does not sleep for a lock of another policy, nor the reverse. An attempt that holds
//! TID words by reads for update does not sleep for a lock by policy, nor the reverse (WA1). Two
//! orders together might close a circle.
//!
//! A lock may be taken by another attempt while an attempt sleeps for it. The sleeper then decides
//! again when it wakes up, after 4 ms at the latest. No wait is longer than 10 ms, except that of a
//! commit under deferred-2pl whose attempt has read nothing and holds no other locks than those of
//! deferred-2pl that it has taken in their order. That wait lasts 100 ms in the first attempt, and
//! a second in each later one, but no longer than to the transaction's deadline; it does not count
//! among the failures after which a transaction does without locks. (Only after a conflict are the
//! options of the transaction looked at, so the first attempt does not know the deadline.) All
//! other waits take a few rounds.

#![forbid(unsafe_code)]

use super::cell_queue::queue;
use super::desks::{Desk, class_of};
use super::patience::{LOCK_ROUNDS_MAX, ROUNDS_HELD, patience};
use super::shared::{LockBase, Locker};
use super::word::{Lock, LockWord, Mode};
use crate::engine::own_thread;
use crate::policy::Policy;
use crate::record::CellAt;
use crate::sync::Patience;

/// The number of writes after which an attempt draws a ticket under the policy `swiss` (as in
/// SwissTM).
const TIMID_WRITES: usize = 10;

/// The time at which an attempt asks for a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// The attempt is staging a write. Some policies lock only at the commit.
    Staging,
    /// The closure has not begun, and the attempt before has wanted the lock.
    Ahead,
    /// Phase 1 of the commit has not begun, under the policies that wait in the order of addresses.
    BeforeCommit,
    /// The attempt is reading, or reading for update.
    Now,
    /// The attempt is in phase 1 of its commit. Locks taken in phase 1 are not listed, since
    /// nothing may be allocated then: they are found by the write set.
    Commit,
}

/// The reaction of an attempt to a lock that it cannot take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Wait(Patience),
    /// The attempt has the lock after all.
    Handed,
    /// The attempt continues without the lock.
    Without,
    Die,
    /// The attempt aborts because it has slept without success.
    InVain,
    /// Another attempt has asked this one to abort.
    Doomed,
}

/// A wish for a lock, under a policy.
#[derive(Debug)]
pub(super) struct Asker {
    policy: Policy,
    mode: Mode,
    when: When,
    /// The number of locks for writing that the attempt holds.
    written: usize,
    /// Whether the attempt may sleep: not during a commit, whose locks readers wait for asleep
    /// (WA3), nor while it holds TID words.
    may_sleep: bool,
    /// Whether all locks that the attempt holds come before this one in the order of locks, under
    /// the policies that wait in that order.
    is_canonical: bool,
    /// How long the attempt waits, if it has nothing to lose by a long wait.
    long: Option<Patience>,
    /// Whether the attempt holds other locks.
    holds_others: bool,
    /// Whether the session's desk publishes for which sessions it waits.
    is_published: bool,
    /// Whether the session counts among those that hold locks and sleep.
    is_counted: bool,
}

impl Asker {
    pub(super) fn new(
        policy: Policy,
        mode: Mode,
        written: usize,
        (when, holds_cells, holds_others): (When, bool, bool),
    ) -> Asker {
        let may_sleep = when != When::Commit && !holds_cells;
        Asker {
            policy,
            mode,
            when,
            written,
            may_sleep,
            is_canonical: false,
            long: None,
            holds_others,
            is_published: false,
            is_counted: false,
        }
    }

    /// Notes whether all locks that the attempt holds come before this one in the order of locks.
    /// The wish comes from a policy that waits in that order.
    pub(super) fn canonical(self, is_canonical: bool) -> Asker {
        Asker { is_canonical, may_sleep: self.may_sleep && is_canonical, ..self }
    }

    /// Notes how long the attempt waits, if it has nothing to lose by a long wait. It is then in
    /// canonical mode, or does not wait.
    pub(super) fn patient(self, long: Option<Patience>) -> Asker {
        Asker { long, ..self }
    }

    /// Returns whether the attempt has nothing to lose by a long wait.
    pub(super) fn is_patient(&self) -> bool {
        self.long.is_some()
    }

    /// Notes whether the attempt holds locks in the order of locks. The wish comes from another
    /// policy, which does not use that order.
    pub(super) fn beside_ordered(self, holds_ordered: bool) -> Asker {
        Asker { may_sleep: self.may_sleep && !holds_ordered, ..self }
    }

    /// Returns whether the lock is taken ahead, so that a failure ends no attempt.
    pub(super) fn is_ahead(&self) -> bool {
        self.when == When::Ahead
    }

    pub(super) fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns the verdict to wait a few rounds, fewer if the attempt holds other locks: the lock's
    /// holder may in turn be waiting for the attempt.
    fn rounds(&self) -> Verdict {
        let rounds = if self.holds_others { ROUNDS_HELD } else { LOCK_ROUNDS_MAX };
        Verdict::Wait(Patience::Rounds(rounds))
    }

    /// Returns the verdict to wait: asleep, if the attempt may and not too many sessions that hold
    /// locks sleep. With the paper's waiting, any number of them sleep.
    fn sleep(&mut self, base: LockBase<'_>) -> Verdict {
        if !self.may_sleep {
            return self.rounds();
        }
        if let Some(long) = self.long {
            return Verdict::Wait(long);
        }
        if self.policy.waits_in_order() && base.locks.policies.mocc().has_paper_waiting() {
            return Verdict::Wait(patience(true));
        }
        if self.holds_others && !self.is_counted {
            self.is_counted = base.locks.desks.begin_sleep();
        }
        match self.is_counted || !self.holds_others {
            true => Verdict::Wait(patience(true)),
            false => self.rounds(),
        }
    }

    /// Returns the decision of the attempt after a wait of length `patience` without success.
    pub(super) fn in_vain(&self, patience: Patience) -> Verdict {
        match (self.policy, patience) {
            (Policy::Adaptive, _) if self.mode == Mode::Read => Verdict::Without,
            (_, Patience::Rounds(_)) if self.is_hint() => Verdict::Without,
            (_, Patience::Rounds(_)) => Verdict::Die,
            _ => Verdict::InVain,
        }
    }

    /// Returns whether the attempt continues if it does not get the lock, because its policy waits
    /// in the order of addresses and the commit has not begun.
    pub(super) fn is_hint(&self) -> bool {
        self.policy.waits_in_order() && !matches!(self.when, When::BeforeCommit | When::Commit)
    }

    /// Ends the wish.
    pub(super) fn end(&self, locker: &Locker<'_>) {
        if self.is_published {
            locker.locks.desks.desk(locker.own.desk).set_waits_for(0);
        }
        if self.is_counted {
            locker.locks.desks.end_sleep();
        }
    }

    /// Publishes for which sessions the session waits.
    fn publish(&mut self, locker: &Locker<'_>, word: LockWord) {
        self.is_published = true;
        locker.locks.desks.desk(locker.own.desk).set_waits_for(others(locker, word));
    }
}

/// Returns the decision of an attempt at a lock whose word is `word`. If `is_shown`, the session's
/// desk shows the attempt.
pub(super) fn verdict(
    locker: &mut Locker<'_>,
    asker: &mut Asker,
    (lock, word): (Lock<'_>, LockWord),
    is_shown: bool,
) -> Verdict {
    // The lock may be held by another transaction of this thread, which cannot continue before this
    // attempt ends.
    if is_own_threads(locker.base(), locker.own.desk, word) {
        return Verdict::Without;
    }
    if !is_shown {
        return asker.rounds();
    }
    let desk = locker.locks.desks.desk(locker.own.desk);
    if desk.is_doomed() {
        return Verdict::Doomed;
    }
    if asker.mode == Mode::Read && !word.is_written() && !asker.is_canonical {
        // A writer waits for the present readers, or there are too many. Validation suffices.
        return Verdict::Without;
    }
    match asker.policy {
        Policy::BlindDie => Verdict::Die,
        Policy::WaitDie => {
            asker.publish(locker, word);
            if is_older_than_all(locker, word) { asker.sleep(locker.base()) } else { Verdict::Die }
        }
        Policy::Dreadlock => {
            asker.publish(locker, word);
            let is_awaited = locker.locks.desks.all_awaited(others(locker, word))
                & class_of(locker.own.desk)
                != 0;
            match is_awaited {
                true => Verdict::Die,
                false => asker.sleep(locker.base()),
            }
        }
        Policy::Swiss if word.is_written() => {
            if !wins(locker, asker.written, (lock, word)) {
                let is_timid = desk.ticket() == 0;
                return if is_timid { asker.rounds() } else { Verdict::Die };
            }
            asker.publish(locker, word);
            asker.sleep(locker.base())
        }
        Policy::Pessimistic if asker.mode == Mode::Read => Verdict::Without,
        Policy::Mocc | Policy::Hybrid | Policy::DeferredTwoPhase if asker.is_canonical => {
            asker.sleep(locker.base())
        }
        _ => asker.rounds(),
    }
}

/// Returns the classes of the other sessions that hold a lock. The session itself may have read and
/// left, and its bit stays until the last reader leaves.
fn others(locker: &Locker<'_>, word: LockWord) -> u64 {
    let own = if word.is_written() { 0 } else { class_of(locker.own.desk) };
    word.classes() & !own
}

/// Returns whether a transaction of this thread, in another session, may hold the lock. Of readers
/// only the classes are visible. So the answer may be wrongly yes, and the attempt then continues
/// without a lock.
pub(super) fn is_own_threads(base: LockBase<'_>, me: u16, word: LockWord) -> bool {
    let thread = own_thread::number();
    let is_own = |number: u16| {
        let desk = base.locks.desks.desk(number);
        number != 0 && number != me && desk.is_in_attempt() && desk.thread() == thread
    };
    if thread == 0 {
        return false;
    }
    if word.is_written() {
        return is_own(word.owner());
    }
    base.locks.desks.in_classes(word.classes()).any(|(number, _)| is_own(number))
}

/// Returns the place where the session with desk `me` sleeps until a cell's lock by policy is
/// released. Returns `None` if the cell has no such lock, or the lock is free, or a transaction of
/// this thread may hold it. A session that sleeps there for a queue lock is not woken, and looks
/// again after a time.
pub(crate) fn lock_place(base: LockBase<'_>, me: u16, at: CellAt) -> Option<u64> {
    let is_locked = match at.cell_words() {
        1 => false,
        2 => {
            let word = Lock::of(&at).word();
            (word.is_written() || word.readers() > 0) && !is_own_threads(base, me, word)
        }
        _ => !queue(base, &at).is_free() && !runs_beside(base, me),
    };
    is_locked.then(|| at.address() + 8)
}

/// Returns whether a transaction of this thread, in another session than the one with desk `me`,
/// may hold locks.
pub(super) fn runs_beside(base: LockBase<'_>, me: u16) -> bool {
    let thread = own_thread::number();
    let is_own = |(number, desk): (u16, &Desk)| {
        number != me && desk.is_in_attempt() && desk.thread() == thread
    };
    thread != 0 && base.locks.desks.in_classes(u64::from(u32::MAX)).any(is_own)
}

/// Returns whether the attempt is older than all holders of a lock. Of readers only the classes are
/// visible. So the answer may be wrongly no.
fn is_older_than_all(locker: &Locker<'_>, word: LockWord) -> bool {
    let me = locker.own.desk;
    let age = locker.locks.desks.desk(me).age();
    if word.is_written() {
        let owner = word.owner();
        return owner == 0 || locker.locks.desks.desk(owner).age() > age;
    }
    let is_younger =
        |(number, desk): (u16, &Desk)| number == me || !desk.is_in_attempt() || desk.age() > age;
    locker.locks.desks.in_classes(word.classes()).all(is_younger)
}

/// Decides between the attempt and the writer of a lock, under the policy `swiss`. If the attempt
/// wins, asks the writer to abort. An attempt without a ticket loses. Otherwise the older ticket
/// wins against younger ones and against attempts without one.
fn wins(locker: &mut Locker<'_>, written: usize, (lock, word): (Lock<'_>, LockWord)) -> bool {
    let mine = locker.locks.desks.desk(locker.own.desk);
    if mine.ticket() == 0 {
        if written < TIMID_WRITES {
            return false;
        }
        let ticket = locker.locks.desks.draw_ticket();
        locker.local.wanted.set_ticket(ticket);
        mine.set_ticket(ticket);
    }
    if word.owner() == 0 {
        return true;
    }
    let owner = locker.locks.desks.desk(word.owner());
    let attempt = owner.attempt();
    let ticket = owner.ticket();
    if ticket != 0 && ticket < mine.ticket() {
        return false;
    }
    // If the owner still has the lock, then `attempt` is the owner's present attempt or an earlier
    // one, never a later one that does not hold the lock.
    if lock.word().is_written_by(word.owner()) {
        owner.doom(attempt);
    }
    true
}
