//! The data that a database and its sessions keep about locks by policy.

#![forbid(unsafe_code)]

use super::desks::{Desk, Desks};
use super::table_policies::TablePolicies;
use super::temperatures::Temperatures;
use crate::engine::{Common, Local};
use crate::policy::Policies;
use crate::stats::{LockCount, LockCounters};
use crate::sync::queue_lock::Nodes;
use std::any::Any;
use std::sync::{Arc, Weak};

/// The bounds of [`SessionLocks::releases`].
const RELEASES_MIN: u8 = 1;
const RELEASES_MAX: u8 = 10;

/// A database's part of locks by policy.
#[derive(Debug)]
pub(crate) struct SharedLocks {
    pub(crate) policies: TablePolicies,
    pub(crate) desks: Desks,
    pub(crate) temperatures: Temperatures,
    pub(crate) queue_nodes: Nodes,
}

impl SharedLocks {
    pub(crate) fn new(chosen: &Policies) -> Arc<SharedLocks> {
        Arc::new(SharedLocks {
            policies: TablePolicies::new(chosen.clone()),
            desks: Desks::new(),
            temperatures: Temperatures::default(),
            queue_nodes: Nodes::new(),
        })
    }

    /// Sets the rank of table `table`. Returns false, and has done nothing, if commits go on to use
    /// ranks. The caller holds the lock of [changes](TablePolicies::changes).
    pub(crate) fn set_rank(&self, table: u16, rank: u16) -> bool {
        let is_over = |(_, desk): (u16, &Desk)| !desk.is_in_attempt();
        let are_unused = || self.desks.in_classes(u64::from(u32::MAX)).all(is_over);
        self.policies.set_rank(table, rank, are_unused)
    }

    /// Returns the result of [`Protocol::table_locks`](crate::engine::Protocol::table_locks).
    pub(crate) fn of(table_locks: Arc<dyn Any + Send + Sync>) -> Arc<SharedLocks> {
        table_locks.downcast().expect("the locks of tables are locks by policy")
    }
}

/// A session's part of locks by policy.
#[derive(Debug)]
pub(crate) struct SessionLocks {
    /// The number of the session's desk; zero if it has none.
    pub(super) desk: u16,
    /// The binary logarithm of the number of releases of locks that weigh as much as a failure.
    pub(super) releases: u8,
    counts: Arc<LockCounters>,
    /// Weak: a session that a thread keeps does not keep its database's memory.
    shared: Weak<SharedLocks>,
}

impl SessionLocks {
    pub(crate) fn new(shared: &Arc<SharedLocks>, counts: &Arc<LockCounters>) -> SessionLocks {
        let (counts, shared) = (counts.clone(), Arc::downgrade(shared));
        SessionLocks { desk: 0, releases: RELEASES_MIN, counts, shared }
    }

    pub(crate) fn count(&self, what: LockCount) {
        self.counts.count(what);
    }

    /// Notes that an attempt with this number of reads and writes has failed: it weighs as much as
    /// the release of a quarter as many locks.
    pub(super) fn note_failure(&mut self, accesses: usize) {
        let quarter = (accesses / 4).checked_ilog2().unwrap_or(0) as u8;
        self.releases = quarter.clamp(RELEASES_MIN, RELEASES_MAX);
    }

    /// Returns the number of the session's desk; zero if it has none.
    pub(crate) fn desk(&self) -> u16 {
        self.desk
    }
}

impl Drop for SessionLocks {
    fn drop(&mut self) {
        if self.desk != 0
            && let Some(shared) = self.shared.upgrade()
        {
            shared.desks.leave(self.desk);
        }
    }
}

/// A database that has locks by policy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LockBase<'a> {
    pub(crate) engine: &'a Common,
    pub(crate) locks: &'a SharedLocks,
}

/// A session that locks by policy, with its database.
#[derive(Debug)]
pub(crate) struct Locker<'a> {
    pub(crate) engine: &'a Common,
    pub(crate) locks: &'a SharedLocks,
    pub(crate) local: &'a mut Local,
    pub(crate) own: &'a mut SessionLocks,
}

impl<'a> Locker<'a> {
    pub(super) fn base(&self) -> LockBase<'a> {
        LockBase { engine: self.engine, locks: self.locks }
    }

    pub(super) fn count(&self, what: LockCount) {
        self.own.counts.count(what);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::policy::Policy;

    #[test]
    fn a_failure_weighs_as_the_release_of_a_quarter_as_many_locks_as_it_has_accesses() {
        let shared = SharedLocks::new(&Policies::of(Policy::Mocc));
        let mut locks = SessionLocks::new(&shared, &Arc::default());
        for (accesses, releases) in [(0, 1), (10, 1), (16, 2), (63, 3), (64, 4), (1 << 20, 10)] {
            locks.note_failure(accesses);
            assert_eq!(locks.releases, releases, "{accesses} accesses");
        }
    }
}
