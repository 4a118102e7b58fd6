//! A row's lock that an attempt holds or has asked for: the lock of one word, or the queue lock.
//!
//! A cell of two words has a lock of one word (`word.rs`), and a cell of four words a queue lock
//! ([`QueueLock`]), for the policies that wait in the order of addresses. Requests at a queue lock
//! are nodes, of which each session has a supply.

#![forbid(unsafe_code)]

use super::WASK;
use super::cell_queue::{has_queue, queue, queue_mode};
use super::change::{follow, follows, toss};
use super::heat;
use super::word::{Lock, Mode, release};
use crate::engine::{Common, Local};
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
    /// until a moment ago.
    pub(super) fn take(&mut self, engine: &Common, local: &Local) -> Option<NodeId> {
        if local.desk == 0 {
            return None;
        }
        let supply = self.0.get_or_insert_with(|| Supply::new(local.desk));
        supply.take(&engine.queue_nodes, engine.epochs.bound())
    }

    /// Gives back a node that is in no queue.
    pub(super) fn give_back(&mut self, engine: &Common, node: NodeId) {
        let supply = self.0.as_mut().expect("a node was taken");
        supply.give_back(&engine.queue_nodes, node, engine.epochs.stamp());
    }

    /// Takes the lock of a cell if it is free. Returns `None` if it is not.
    pub(super) fn try_take(
        &mut self,
        engine: &Common,
        local: &Local,
        (at, mode): (CellAt, Mode),
    ) -> Option<RowLock> {
        if !has_queue(at) {
            let taken = Lock::of(&at).take(local.desk, mode);
            return taken.is_ok().then_some(RowLock { at, mode, node: None });
        }
        let lock = queue(engine, &at);
        // A node that is given back comes back late, even if it was in no queue.
        if !lock.looks_open(queue_mode(mode)) {
            return None;
        }
        let node = self.take(engine, local)?;
        if lock.try_acquire(node, queue_mode(mode)) {
            return Some(RowLock { at, mode, node: Some(node) });
        }
        self.give_back(engine, node);
        None
    }

    /// Releases a lock, and leaves the cell's flags as they are.
    #[inline]
    pub(super) fn release(&mut self, engine: &Common, lock: RowLock) {
        match lock.node {
            Some(node) => {
                queue(engine, &lock.at).release(node);
                self.give_back(engine, node);
            }
            None => release(engine, lock.at, lock.mode),
        }
    }

    /// Cancels a request at a queue lock. Returns the lock if it was granted meanwhile.
    pub(super) fn cancel(&mut self, engine: &Common, request: RowLock) -> Option<RowLock> {
        let node = request.node.expect("a request is a node in a queue");
        if !queue(engine, &request.at).cancel(node) {
            return Some(request);
        }
        self.give_back(engine, node);
        None
    }

    /// Releases a lock, and changes the cell's flags as the policy of its table says.
    #[inline]
    pub(super) fn release_by_policy(
        &mut self,
        engine: &Common,
        local: &mut Local,
        mut lock: RowLock,
    ) {
        let RowLock { at, mode, .. } = lock;
        let policy = engine.policies.at(at);
        if policy == Policy::Adaptive {
            let is_heads = local.random.next() >> 63 != 0;
            lock.mode = toss(at, mode, local.desk, is_heads);
        } else if !policy.learns() {
            if mode == Mode::Write || !follows(engine, at, policy) {
                let follow = |_: &mut Local| follow(engine, at, policy);
                return self.release_alone(engine, local, lock, follow);
            }
        } else if heat::cools(engine, local, at) {
            return self.release_alone(engine, local, lock, |local| heat::clear(local, at));
        }
        self.release(engine, lock);
    }

    /// Releases a lock, and changes the cell's flags by `change` before if no other session holds
    /// the lock (LK4).
    fn release_alone(
        &mut self,
        engine: &Common,
        local: &mut Local,
        mut lock: RowLock,
        change: impl FnOnce(&mut Local),
    ) {
        let at = lock.at;
        if lock.node.is_some() && lock.mode == Mode::Read {
            // A request cannot change its mode.
            self.release(engine, lock);
            let Some(again) = self.try_take(engine, local, (at, Mode::Write)) else { return };
            lock = again;
        }
        if lock.mode == Mode::Write || heat::is_cleared_too_early() {
            change(local);
        } else if Lock::of(&at).upgrade(local.desk) {
            lock.mode = Mode::Write;
            change(local);
        }
        self.release(engine, lock);
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
pub(super) fn is_written(engine: &Common, at: CellAt) -> bool {
    match has_queue(at) {
        true => queue(engine, &at).is_written(),
        false => Lock::of(&at).word().is_written(),
    }
}
