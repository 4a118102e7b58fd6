//! Locking in the order of ranks, taking over, and closing.

#![forbid(unsafe_code)]

use super::order::wake;
use super::{Hold, Link, Pipeline};
use crate::access::{WriteItem, WriteSet};
use crate::engine::own_thread;
use crate::error::Abort;
use crate::locks::chain::Member;
use crate::locks::desks::ITEMS_MAX;
use crate::locks::patience::patience;
use crate::locks::row_locks::RowLocks;
use crate::locks::shared::Locker;
use crate::locks::waiting::is_own_threads;
use crate::locks::word::Lock;
use crate::locks::{FLAGS, WASK, flags_of};
use crate::policy::Policy;
use crate::record::{CellAt, Tid};
use crate::stats::LockCount;
use crate::sync::{
    Duration, MODELLED, Ordering, Patience, Point, Wait, Waited, Wish, pass, patience as prolonged,
};

/// The time for which a free cell is left to the sessions that wait for the end of its chain. They
/// need less to wake up.
const LEFT_FOR: Duration = Duration::from_micros(200);

/// The number of bits of a rank that are the address of the cell; before them comes the rank of the
/// table.
const ADDRESS_BITS: u32 = 48;
const ADDRESSES: u64 = (1 << ADDRESS_BITS) - 1;

impl Pipeline {
    /// Begins the commit of an attempt that holds nothing: lists the items by rank. Returns false,
    /// and may have shown the attempt on its desk, if the commit must join no chain (PL6).
    pub(crate) fn begin(
        &mut self,
        locker: &mut Locker<'_>,
        by_policy: &mut RowLocks,
        writes: &WriteSet,
    ) -> bool {
        let policies = &locker.locks.policies;
        let mut cells = writes.items().iter().map(|item| item.at);
        if locker.local.wanted.gives_up_locks()
            || cells.any(|at| is_locked_by_own_thread(locker, at))
            || !by_policy.show_in_order(locker)
            || policies.ranks_change()
        {
            return false;
        }
        self.desk = locker.own.desk;
        self.attempt = self.own_desk(locker).attempt() as u32;
        self.own_desk(locker).begin_chains();
        self.passed = 0;
        self.ceiling = u64::MAX;
        self.predecessors.clear();
        self.predecessors.reserve(self.links.capacity().max(writes.items().len()));
        self.add_links(locker, writes.items(), 0);
        true
    }

    /// Makes room for this number of links in all.
    pub(crate) fn reserve(&mut self, links: usize) {
        self.links.reserve(links);
    }

    /// Adds the links of items, of which the first has the number `from`. Their ranks are above
    /// those of all links.
    pub(crate) fn add_links(&mut self, locker: &Locker<'_>, items: &[WriteItem], from: usize) {
        let policies = &locker.locks.policies;
        let link = |(index, item): (usize, &WriteItem)| {
            let rank = first_of(policies.rank_of(item.at.table()));
            let rank = rank | item.at.address() & ADDRESSES;
            Link { rank, at: item.at, index: from + index, hold: Hold::Nothing, before: None }
        };
        let first = self.links.len();
        self.links.extend(items.iter().enumerate().map(link));
        self.links[first..].sort_unstable_by_key(|link| link.rank);
        debug_assert!(self.links.is_sorted_by_key(|link| link.rank), "PL2: ranks ascend");
    }

    /// Returns whether the ranks of the tables of all links are below `rank`.
    pub(crate) fn are_below(&self, rank: u16) -> bool {
        self.links.last().is_none_or(|last| last.rank < first_of(rank))
    }

    /// Keeps the attempt from showing a rank as passed that is not below those of all rows in
    /// tables of this rank; `None` if it finds no further rows.
    pub(crate) fn set_ceiling(&mut self, rank: Option<u16>) {
        self.ceiling = rank.map_or(u64::MAX, |rank| first_of(rank) - 1);
    }

    /// Waits at the gate of link `number` (PL2). Returns whether the link's cell is to be
    /// [taken](Pipeline::take); the caller locks the TID word of another one.
    pub(crate) fn approach(&mut self, locker: &Locker<'_>, number: usize) -> bool {
        self.await_gate(locker, number);
        is_pipelined(locker, self.links[number].at)
    }

    /// Locks the cell of a link: begins a chain, or joins one.
    ///
    /// # Errors
    /// [`Abort::Locked`] if a lock that is not of a chain was not released in time,
    /// [`Abort::ExistenceChanged`], [`Abort::RecordRemoved`].
    pub(crate) fn take(
        &mut self,
        locker: &mut Locker<'_>,
        number: usize,
        item: &mut WriteItem,
    ) -> Result<(), Abort> {
        let (at, me) = (self.links[number].at, self.me(number));
        let before = join(locker, at, me)?;
        match before {
            Some(before) => {
                locker.count(LockCount::TakenOver);
                let is_known = |member: &Member| {
                    (member.desk, member.attempt) == (before.desk, before.attempt)
                };
                if !self.predecessors.iter().any(is_known) {
                    self.predecessors.push(before);
                }
                item.note = at.cell_word(0).load(Ordering::Relaxed);
            }
            None => {
                locker.count(LockCount::Taken);
                if let Err(abort) = lock_first(locker, item) {
                    Lock::of(&at).end_chain();
                    wake(locker, &[at.address() + 8]);
                    return Err(abort);
                }
            }
        }
        let link = &mut self.links[number];
        (link.before, link.hold) = (before, Hold::InChain);
        Ok(())
    }

    /// Notes that the TID word of a link's cell is locked, without a chain.
    pub(crate) fn note_alone(&mut self, number: usize) {
        self.links[number].hold = Hold::Alone;
    }

    /// Shows that the attempt has locked link `number`, and relaxes its lock.
    pub(crate) fn hand_on(&mut self, locker: &Locker<'_>, number: usize) {
        let Link { rank, at, hold, .. } = self.links[number];
        // Nothing lies between two items of the attempt; but its predecessors may lock there.
        let next = self.links.get(number + 1).map_or(rank, |next| next.rank - 1);
        let passed = rank.max(next.min(self.least_passed(locker)));
        self.show_passed(locker, passed);
        let desk = self.own_desk(locker).address();
        if hold == Hold::InChain && number < ITEMS_MAX {
            Lock::of(&at).relax(self.me(number));
            wake(locker, &[desk, at.address() + 8]);
            pass(Point::Relaxed);
        } else {
            wake(locker, &[desk]);
        }
    }

    /// Begins to close the cell of a link. Returns false if a successor has the cell (PL1).
    pub(crate) fn begin_to_close(&self, number: usize) -> bool {
        pass(Point::Closing);
        Lock::of(&self.links[number].at).begin_to_close(self.me(number))
    }

    /// Ends the chain of a link's cell, whose TID word has been published.
    pub(crate) fn end_chain(&self, locker: &Locker<'_>, number: usize) {
        let at = self.links[number].at;
        Lock::of(&at).end_chain();
        wake(locker, &[at.address() + 8]);
    }
}

/// Returns the smallest rank of a row in a table of this rank.
fn first_of(rank: u16) -> u64 {
    u64::from(rank) << ADDRESS_BITS
}

/// Returns whether another transaction of this thread may have locked a cell by another policy.
/// That transaction cannot continue before this one has ended.
fn is_locked_by_own_thread(locker: &Locker<'_>, at: CellAt) -> bool {
    if at.cell_words() != 2 {
        return false;
    }
    let word = Lock::of(&at).word();
    !word.is_free() && !word.is_chained() && is_own_threads(locker.base(), locker.own.desk, word)
}

/// Returns whether a cell is locked in chains: its writers ask, and its table's policy is
/// `pipelined`.
pub(super) fn is_pipelined(locker: &Locker<'_>, at: CellAt) -> bool {
    at.cell_words() == 2
        && Tid(at.cell_word(0).load(Ordering::Relaxed)).has(WASK)
        && locker.locks.policies.at(at) == Policy::Pipelined
}

/// Returns the word with which a chain publishes its cell: `tid`, with the flags of the present
/// policy of the cell's table. The caller holds the second word (LK4).
pub(crate) fn following(locker: &Locker<'_>, at: CellAt, tid: Tid) -> Tid {
    let flags = flags_of(locker.locks.policies.at(at), locker.locks.policies.mocc());
    Tid(tid.0 & !FLAGS | flags)
}

/// The reason for which a lock cannot be taken now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Obstacle {
    /// A member of a chain has locked the cell, or the chain has to end.
    Chain,
    /// The cell is free, and left to a session that waits for it.
    Wanted,
    /// The lock of another policy.
    Other,
}

/// Takes the second word of a cell.
fn join(locker: &mut Locker<'_>, at: CellAt, me: Member) -> Result<Option<Member>, Abort> {
    let lock = Lock::of(&at);
    let mut ignores_want = false;
    let mut wait: Option<(Obstacle, Wait<'_>)> = None;
    loop {
        let word = match lock.join(me, ignores_want) {
            Ok(before) => return Ok(before),
            Err(word) => word,
        };
        let obstacle = match (word.is_chained(), word.is_free()) {
            (true, _) => Obstacle::Chain,
            (_, true) => Obstacle::Wanted,
            _ => Obstacle::Other,
        };
        if wait.as_ref().is_none_or(|(before, _)| *before != obstacle) {
            let patience = match obstacle {
                Obstacle::Chain => Patience::Endless,
                Obstacle::Wanted if MODELLED => patience(false),
                Obstacle::Wanted => Patience::Lasting(prolonged(LEFT_FOR)),
                Obstacle::Other => patience(!MODELLED),
            };
            let parking = &locker.engine.parking;
            wait = Some((obstacle, Wait::new(parking, at.address() + 8, Wish::Look, patience)));
            locker.count(LockCount::Waited);
        }
        let (_, waiting) = wait.as_mut().expect("it has just been made");
        match waiting.wait() {
            Waited::InVain if obstacle == Obstacle::Wanted => (ignores_want, wait) = (true, None),
            Waited::InVain => {
                drop(wait);
                locker.local.wanted.note_failure(false);
                locker.count(LockCount::Died);
                return Err(Abort::Locked);
            }
            Waited::Again | Waited::Handed => {}
        }
    }
}

/// Locks the TID word of an item's cell, whose second word the attempt has just taken from no
/// predecessor.
fn lock_first(locker: &mut Locker<'_>, item: &mut WriteItem) -> Result<(), Abort> {
    let (at, cell) = (item.at, item.at.cell_word(0));
    let mut wait: Option<Wait<'_>> = None;
    loop {
        let tid = Tid(cell.load(Ordering::Relaxed));
        if tid.has(Tid::DEAD) {
            return Err(Abort::RecordRemoved);
        }
        if !tid.has(Tid::LOCK) {
            if !item.accepts(!tid.has(Tid::ABSENT)) {
                return Err(Abort::ExistenceChanged);
            }
            let locked = tid.0 | Tid::LOCK | Tid::INSTALL;
            // Acquire: sees the last owner's words (E3).
            if cell.compare_exchange(tid.0, locked, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                item.note = locked;
                return Ok(());
            }
            continue;
        }
        let session = locker.local.id;
        let waiting = wait.get_or_insert_with(|| {
            let sleeps = !MODELLED && !own_thread::is_held_by_another(at, session);
            Wait::new(&locker.engine.parking, at.address(), Wish::Look, patience(sleeps))
        });
        if waiting.wait() == Waited::InVain {
            drop(wait);
            locker.local.wanted.note_failure(false);
            return Err(Abort::Locked);
        }
    }
}
