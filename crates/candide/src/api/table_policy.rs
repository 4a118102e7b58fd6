//! The policy of a table, which may change while transactions run.

#![forbid(unsafe_code)]

use super::table::Table;
use crate::engine::{Protocol, TableCore};
use crate::error::Error;
use crate::locks::{FROZEN, LAST_RANK, LockBase, flags_of, follow_policy, possible};
use crate::policy::Policy;
use crate::schema::Record;
use crate::shared::Inner;
use crate::sync::{Ordering, lock};

impl<R: Record, P: Protocol> Table<R, P> {
    /// Returns the policy of the table; [`Policy::Optimistic`] under protocols without policies.
    pub fn policy(&self) -> Policy {
        self.inner().catalog.policy_of(self.core())
    }

    /// Changes the policy of the table. Transactions may run meanwhile: a running attempt uses
    /// either policy, and so does each row, until the call returns. A row that a commit writes, or
    /// that another thread inserts, just when the call comes to it may keep the old policy until
    /// the next call. A row that is locked at that moment may keep it until a lock is released. The
    /// call visits every row once. Memory that other transactions free is not reused meanwhile. Of
    /// several calls at the same time, one waits for the other.
    ///
    /// The policies of a table whose first policy locks can be changed at will. A table that was
    /// made under [`Policy::Optimistic`] has no room for locks, and one with
    /// [queue locks](crate::policy::MoccOptions::queue_locks) none for those of some policies.
    ///
    /// # Errors
    /// [`Error::PolicyWithoutRoom`] if the table has no room for the locks of `policy`;
    /// [`Error::NoPolicies`] under a protocol other than [`Occ`](crate::Occ). The policy then stays
    /// the same.
    ///
    /// ```
    /// # use candide::policy::Policy;
    /// # use candide::{Database, Occ, Record, TableOptions};
    /// # #[derive(Record, Clone, Copy)]
    /// # struct Account { #[key] id: u64, cents: i64 }
    /// let db = Database::<Occ>::new();
    /// let options = TableOptions::default().policy(Policy::WaitDie);
    /// let accounts = db.table_with::<Account>("accounts", options)?;
    /// db.run(|tx| accounts.insert(tx, Account { id: 1, cents: 5 }))?;
    /// accounts.set_policy(Policy::Optimistic)?;
    /// assert_eq!(accounts.policy(), Policy::Optimistic);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_policy(&self, policy: Policy) -> Result<(), Error> {
        set_policy(self.inner(), self.core(), policy)
    }

    /// Returns the rank of the table: the place of its rows in the order in which commits under
    /// [`Policy::Pipelined`] lock. By default it is `u16::MAX`, the last one.
    pub fn rank(&self) -> u16 {
        let locks = self.inner().catalog.locks();
        locks.map_or(LAST_RANK, |locks| locks.policies.rank_of(self.core().number))
    }

    /// Sets the [rank](Table::rank) of the table. Of two rows, commits lock the one of the table
    /// with the smaller rank first; within one rank, the order is by address. Rows that many
    /// transactions write should come early if what is written later follows from them, and late
    /// otherwise. The rank matters in transactions that write rows under [`Policy::Pipelined`],
    /// also for their rows under other policies. It is not stored in files.
    ///
    /// Waits a short time for transactions that lock rows by their policies; others may run.
    ///
    /// Source: Mu, Angel and Shasha, EuroSys 2019, sections 4.1 and 7.2.
    ///
    /// # Errors
    /// [`Error::NotQuiescent`] if such transactions go on, or run in the closure of which this is
    /// called; [`Error::NoPolicies`] under a protocol other than [`Occ`](crate::Occ). The rank then
    /// stays the same.
    ///
    /// ```
    /// # use candide::policy::Policy;
    /// # use candide::{Database, Occ, Record, TableOptions};
    /// # #[derive(Record, Clone, Copy)]
    /// # struct Account { #[key] id: u64, cents: i64 }
    /// let db = Database::<Occ>::new();
    /// let options = TableOptions::default().policy(Policy::Pipelined);
    /// let accounts = db.table_with::<Account>("accounts", options)?;
    /// accounts.set_rank(1)?;
    /// assert_eq!(accounts.rank(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_rank(&self, rank: u16) -> Result<(), Error> {
        let (inner, core) = (self.inner(), self.core());
        let locks = inner.catalog.locks().ok_or_else(|| no_policies(inner, core))?;
        let _one_at_a_time = lock(&locks.policies.changes);
        core.check_in_use()?;
        if locks.set_rank(core.number, rank) { Ok(()) } else { Err(Error::NotQuiescent) }
    }
}

/// Returns the error of a protocol without policies.
fn no_policies<P: Protocol>(inner: &Inner<P>, table: &TableCore) -> Error {
    let protocol = inner.engine.properties.name;
    Error::NoPolicies { table: table.name.to_string(), protocol }
}

fn set_policy<P: Protocol>(
    inner: &Inner<P>,
    table: &TableCore,
    policy: Policy,
) -> Result<(), Error> {
    let engine = &inner.engine;
    let locks = inner.catalog.locks().ok_or_else(|| no_policies(inner, table))?;
    let possible = possible(table.layout.cell_words());
    let has_room = possible.contains(&policy);
    #[cfg(any(test, feature = "experiments"))]
    let has_room = has_room || policy == Policy::Random && possible.len() == Policy::ALL.len();
    if !has_room {
        let table = table.name.to_string();
        return Err(Error::PolicyWithoutRoom { table, wanted: policy, possible });
    }
    let _one_at_a_time = lock(&locks.policies.changes);
    table.check_in_use()?;
    locks.policies.set(table.number, policy);
    // Relaxed: a record that is linked meanwhile may have either flags.
    let flags = &table.at_links.new_record_flags;
    let frozen = flags.load(Ordering::Relaxed) & FROZEN;
    flags.store(flags_of(policy, locks.policies.mocc()) | frozen, Ordering::Relaxed);
    let base = LockBase { engine: &engine.common, locks };
    let slot = engine.epochs.register();
    let pinned = engine.epochs.pinned(&slot);
    table.index.for_each(&mut |record| {
        table.layout.cells(record).for_each(|at| follow_policy(base, at, policy));
    });
    drop(pinned);
    engine.epochs.unregister(&slot);
    Ok(())
}
