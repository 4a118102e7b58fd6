//! The order among the members of chains: gates, and waits for predecessors.

#![forbid(unsafe_code)]

use super::Pipeline;
use crate::locks::chain::Member;
use crate::locks::shared::Locker;
use crate::stats::LockCount;
use crate::sync::{Patience, Wait, Wish, full_fence, step};

impl Pipeline {
    /// Waits until every predecessor has passed the rank of link `number`, or is over (PL2).
    pub(super) fn await_gate(&mut self, locker: &Locker<'_>, number: usize) {
        let rank = self.links[number].rank;
        let mut has_waited = false;
        self.predecessors.retain(|member| {
            step();
            let desk = locker.locks.desks.desk(member.desk);
            // If the rank is that of a later attempt, the predecessor is over.
            let mut is_open = || desk.passed() >= rank || desk.is_over(member.attempt);
            has_waited |= wait_until(locker, desk.address(), &mut is_open);
            // A session has one attempt at a time, so the list stays short.
            !desk.is_over(member.attempt)
        });
        if has_waited {
            locker.count(LockCount::Gated);
        }
    }

    /// Returns the least rank that a predecessor has passed which is not over.
    pub(super) fn least_passed(&self, locker: &Locker<'_>) -> u64 {
        let passed = |member: &Member| {
            let desk = locker.locks.desks.desk(member.desk);
            let passed = desk.passed();
            // The rank is the attempt's if the attempt is running still.
            if desk.is_over(member.attempt) { u64::MAX } else { passed }
        };
        self.predecessors.iter().map(passed).min().unwrap_or(u64::MAX)
    }

    /// Shows that the attempt, which has locked everything, has passed all ranks that its
    /// predecessors have passed: all, if there are none.
    pub(crate) fn raise(&mut self, locker: &Locker<'_>) {
        let least = self.least_passed(locker).min(self.ceiling);
        if least > self.passed {
            self.show_passed(locker, least);
            wake(locker, &[self.own_desk(locker).address()]);
        }
    }

    /// Shows the rank that the attempt has passed. The caller wakes those that wait for it.
    pub(super) fn show_passed(&mut self, locker: &Locker<'_>, rank: u64) {
        self.passed = rank;
        self.own_desk(locker).show_passed(rank);
    }

    /// Waits until the predecessor of each item is done with it, or is over (PL4). The attempt has
    /// locked everything.
    pub(crate) fn await_done(&mut self, locker: &Locker<'_>) {
        for number in 0..self.links.len() {
            let Some(before) = self.links[number].before else { continue };
            let desk = locker.locks.desks.desk(before.desk);
            // If the bit is that of a later attempt, the predecessor is over.
            let item = usize::from(before.item);
            let mut is_done = || {
                self.raise(locker);
                desk.has_done(item) || desk.is_over(before.attempt)
            };
            wait_until(locker, desk.address(), &mut is_done);
        }
    }

    /// Shows that the attempt is done with all its items.
    pub(crate) fn note_done(&self, locker: &Locker<'_>) {
        let desk = self.own_desk(locker);
        desk.note_all_done();
        wake(locker, &[desk.address()]);
    }

    /// Waits until all predecessors are over (PL3).
    pub(crate) fn await_predecessors(&mut self, locker: &Locker<'_>) {
        while let Some(&member) = self.predecessors.last() {
            let desk = locker.locks.desks.desk(member.desk);
            let mut is_over = || {
                self.raise(locker);
                desk.is_over(member.attempt)
            };
            wait_until(locker, desk.address(), &mut is_over);
            self.predecessors.pop();
        }
    }

    /// Ends the attempt's use of chains, all of which it has left. The desk shows that the attempt
    /// is over.
    pub(crate) fn end(&mut self, locker: &Locker<'_>) {
        wake(locker, &[self.own_desk(locker).address()]);
        self.links.clear();
    }
}

/// Waits until `is_so`, without a bound. Returns whether that took any time.
fn wait_until(locker: &Locker<'_>, address: u64, is_so: &mut dyn FnMut() -> bool) -> bool {
    if is_so() {
        return false;
    }
    let mut wait = Wait::new(&locker.engine.parking, address, Wish::Look, Patience::Endless);
    while !is_so() {
        wait.wait();
    }
    true
}

/// Wakes the sessions that wait at `addresses`, for what the caller has stored before. Other
/// sleepers look again by themselves after a millisecond, but here all that come behind them wait,
/// too. So there is a fence between the stores and the look at the sleepers.
pub(super) fn wake(locker: &Locker<'_>, addresses: &[u64]) {
    full_fence(); // E1
    if locker.engine.parking.has_sleepers() {
        addresses.iter().for_each(|&address| locker.engine.parking.wake(address));
    }
}
