//! A row's lock that an attempt holds or has asked for: the lock of one word, or the queue lock.
//!
//! A cell of two words has a lock of one word (`word.rs`), and a cell of four words a queue lock
//! ([`QueueLock`]), for the policies that wait in the order of addresses. Requests at a queue lock
//! are nodes; each session has a supply of nodes.

#![forbid(unsafe_code)]

use super::WASK;
use super::cell_queue::{has_queue, queue, queue_mode};
use super::change::{follow, follows, toss};
use super::heat;
use super::shared::{LockBase, Locker};
use super::word::{Lock, Mode, release};
use crate::policy::Policy;
use crate::record::{CellAt, Tid};
use crate::sync::Ordering;
use crate::sync::queue_lock::{NodeId, Supply};

/// The lock of a cell, in the mode in which an attempt holds it or has asked for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowLock {
    pub(super) at: CellAt,
    pub(super) mode: Mode,
    /// The attempt's node, if the lock is a queue lock.
    pub(super) node: Option<NodeId>,
}

/// A session's nodes for queue locks; none before the session first asks for one.
#[derive(Debug, Default)]
pub(super) struct Queueing(Option<Supply>);

impl Queueing {
    /// Takes a node. Returns `None` if the session has no desk, or if all nodes are in use or were
    /// until just before.
    pub(super) fn take(&mut self, locker: &Locker<'_>) -> Option<NodeId> {
        if locker.own.desk == 0 {
            return None;
        }
        let supply = self.0.get_or_insert_with(|| Supply::new(locker.own.desk));
        supply.take(&locker.locks.queue_nodes, locker.engine.epochs.bound())
    }

    /// Gives back a node that is in no queue.
    pub(super) fn give_back(&mut self, base: LockBase<'_>, node: NodeId) {
        let supply = self.0.as_mut().expect("a node was taken");
        supply.give_back(&base.locks.queue_nodes, node, base.engine.epochs.stamp());
    }

    /// Takes the lock of a cell if it is free. Returns `None` if it is not.
    pub(super) fn try_take(
        &mut self,
        locker: &Locker<'_>,
        (at, mode): (CellAt, Mode),
    ) -> Option<RowLock> {
        if !has_queue(at) {
            let taken = Lock::of(&at).take(locker.own.desk, mode);
            return taken.is_ok().then_some(RowLock { at, mode, node: None });
        }
        let lock = queue(locker.base(), &at);
        // A node that is returned can be used again only later, even if it was in no queue.
        if !lock.looks_open(queue_mode(mode)) {
            return None;
        }
        let node = self.take(locker)?;
        if lock.try_acquire(node, queue_mode(mode)) {
            return Some(RowLock { at, mode, node: Some(node) });
        }
        self.give_back(locker.base(), node);
        None
    }

    /// Releases a lock, and leaves the cell's flags as they are.
    #[inline]
    pub(super) fn release(&mut self, base: LockBase<'_>, lock: RowLock) {
        match lock.node {
            Some(node) => {
                queue(base, &lock.at).release(node);
                self.give_back(base, node);
            }
            None => release(base, lock.at, lock.mode),
        }
    }

    /// Cancels a request at a queue lock. Returns the lock if it was granted meanwhile.
    pub(super) fn cancel(&mut self, base: LockBase<'_>, request: RowLock) -> Option<RowLock> {
        let node = request.node.expect("a request is a node in a queue");
        if !queue(base, &request.at).cancel(node) {
            return Some(request);
        }
        self.give_back(base, node);
        None
    }

    /// Releases a lock, and sets the cell's flags to those of its table's policy.
    #[inline]
    pub(super) fn release_by_policy(&mut self, locker: &mut Locker<'_>, mut lock: RowLock) {
        let RowLock { at, mode, .. } = lock;
        let policy = locker.locks.policies.at(at);
        if policy == Policy::Adaptive {
            let is_heads = locker.local.random.next() >> 63 != 0;
            lock.mode = toss(at, mode, locker.own.desk, is_heads);
        } else if !policy.learns() {
            if mode == Mode::Write || !follows(locker.base(), at, policy) {
                let follow = |locker: &mut Locker<'_>| follow(locker.base(), at, policy);
                return self.release_alone(locker, lock, follow);
            }
        } else if heat::cools(locker, at) {
            return self.release_alone(locker, lock, |locker| heat::clear(locker, at));
        }
        self.release(locker.base(), lock);
    }

    /// Releases a lock, and changes the cell's flags by `change` before if no other session holds
    /// the lock (LK4).
    fn release_alone(
        &mut self,
        locker: &mut Locker<'_>,
        mut lock: RowLock,
        change: impl FnOnce(&mut Locker<'_>),
    ) {
        let at = lock.at;
        if lock.node.is_some() && lock.mode == Mode::Read {
            // A request cannot change its mode.
            self.release(locker.base(), lock);
            let Some(again) = self.try_take(locker, (at, Mode::Write)) else { return };
            lock = again;
        }
        if lock.mode == Mode::Write {
            change(locker);
        } else if Lock::of(&at).upgrade(locker.own.desk) {
            lock.mode = Mode::Write;
            change(locker);
        }
        self.release(locker.base(), lock);
    }
}

/// Returns whether writers of a row ask for its lock; if not, the lock protects nothing. Writers of
/// an absent row need no lock.
pub(super) fn is_asked_for(at: CellAt) -> bool {
    let tid = Tid(at.cell_word(0).load(Ordering::Relaxed));
    tid.has(WASK) && !tid.has(Tid::ABSENT)
}

/// Returns whether a session holds the lock of a cell for writing, or waits for it at the head of a
/// queue.
pub(super) fn is_written(base: LockBase<'_>, at: CellAt) -> bool {
    match has_queue(at) {
        true => queue(base, &at).is_written(),
        false => Lock::of(&at).word().is_written(),
    }
}
