//! Databases: tables by name, sessions, and the options they were built with.

#![forbid(unsafe_code)]

use crate::catalog::{Catalog, TableOptions};
use crate::epoch::{Collect, Epoch, Epochs, Slot};
use crate::error::{Abort, Error};
use crate::factor::{Factor, Factors};
use crate::memory::Memory;
use crate::protocol::recorded::{Batch, Recorded};
use crate::protocol::{
    Common, DefaultProtocol, Engine, Hot, Local, Occ, Options, Properties, Protocol, ReadView,
    Token,
};
use crate::record::{Record, RowType};
use crate::session::{Session, run_cached};
use crate::stats::{Counters, Stats};
use crate::sync::{
    AtomicBool, AtomicU64, MODELLED, Mutex, MutexGuard, Ordering, Parking, Random, Turns, lock,
    process_unique, try_lock,
};
use crate::table::Table;
use crate::timestamps::{self, Timestamps};
use crate::txn::{Garbage, RunOptions, SessionShared, Tx, TxnRunner};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// An in-memory database whose transactions are serializable by protocol `P`.
///
/// A handle: clones are the same database. It lives as long as any handle, table or session of it.
///
/// ```
/// use candide::{Abort, Database, Exclusion, Serial};
///
/// let db = Database::new(); // optimistic concurrency control, every default
/// let other = Database::<Serial>::builder().policy(Exclusion::GlobalLock).memory_limit(64 << 20).build()?;
/// assert_eq!(db.run(|tx| Ok::<_, Abort>(tx.attempt()))?, 1);
/// # drop(other);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Database<P: Protocol = DefaultProtocol> {
    pub(crate) inner: Arc<Inner<P>>,
}

impl<P: Protocol> std::fmt::Debug for Database<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Engine { common, .. } = &self.inner.engine;
        f.debug_struct("Database")
            .field("protocol", &common.properties.name)
            .field("tables", &self.inner.catalog.tables())
            .field("sessions", &lock(&self.inner.sessions).len())
            .field("reserved_bytes", &common.memory.reserved_bytes())
            .finish_non_exhaustive()
    }
}

impl<P: Protocol> Clone for Database<P> {
    fn clone(&self) -> Self {
        Database { inner: self.inner.clone() }
    }
}

/// The database behind its handles.
#[derive(Debug)]
pub(crate) struct Inner<P: Protocol> {
    pub(crate) engine: Engine<P>,
    pub(crate) catalog: Catalog,
    /// Sessions that exist, by their numbers.
    sessions: Mutex<BTreeMap<u64, Arc<SessionShared>>>,
    sessions_made: AtomicU64,
    /// Set while the one session of a protocol that allows only one exists.
    session_taken: AtomicBool,
    /// Counts of sessions that are gone.
    past: Mutex<Stats>,
    collector: Mutex<Collector>,
    /// Garbage that sessions have left, and what has become of entries that are for all. The
    /// advancer collects it.
    common_garbage: Mutex<Garbage>,
    /// Garbage of sessions that have left since the advancer took it over. Apart, so that a session
    /// that leaves waits for no collection.
    left_garbage: Mutex<Vec<Garbage>>,
    /// Held by who adds or drops a secondary index.
    pub(crate) index_changes: Mutex<()>,
}

/// What the advancer collects with.
#[derive(Debug)]
pub(crate) struct Collector {
    slot: Arc<Slot>,
    local: Local,
}

/// While it lives, the advancer collects no garbage of the database.
pub(crate) type CollectorGuard<'a> = MutexGuard<'a, Collector>;

impl Database<Occ> {
    /// A database with every default: optimistic concurrency control, splitting and commit-time
    /// updates on, no memory limit.
    #[expect(
        clippy::new_without_default,
        reason = "`Database::default()` would need the protocol spelled out"
    )]
    pub fn new() -> Database<Occ> {
        Database::<Occ>::builder().build().expect("the defaults are valid")
    }
}

impl<P: Protocol> Database<P> {
    /// Begins building a database.
    pub fn builder() -> Builder<P> {
        Builder {
            options: Options {
                splitting: true,
                commit_time_updates: true,
                opaque: true,
                factors: Factors::default(),
                memory_limit_bytes: usize::MAX,
                timestamps: None,
            },
            policy: P::Policy::default(),
            seed: None,
            own_epochs: None,
        }
    }

    /// The table of this name, created empty if there is none.
    ///
    /// # Errors
    /// [`Error::TableType`] if the name belongs to a table of another row type, [`Error::RowType`]
    /// if `R` cannot be stored, [`Error::EmptyTableName`], [`Error::TooManyTables`],
    /// [`Error::MemoryLimit`].
    pub fn table<R: Record>(&self, name: &str) -> Result<Table<R, P>, Error> {
        self.table_with(name, TableOptions::default())
    }

    /// As [`Database::table`], with options for the case that the table is created.
    ///
    /// # Errors
    /// As [`Database::table`].
    pub fn table_with<R: Record>(
        &self,
        name: &str,
        options: TableOptions,
    ) -> Result<Table<R, P>, Error> {
        let inner = &self.inner;
        let core = inner.catalog.table(&inner.engine.common, name, options, &RowType::of::<R>())?;
        Ok(Table::new(inner.clone(), core))
    }

    /// A session: what a thread runs its transactions with.
    ///
    /// # Errors
    /// [`Error::SecondSession`] if the protocol allows one session and it exists.
    pub fn session(&self) -> Result<Session<P>, Error> {
        Session::new(&self.inner)
    }

    /// Runs a transaction with a session that this thread keeps for the database. See
    /// [`Session::run`]; the difference is a look-up in a thread-local list, and that the session's
    /// statistics are only part of the database's. An empty transaction takes about 240
    /// instructions this way and 130 by a session of one's own, under `Occ`.
    ///
    /// # Errors
    /// As [`Session::run`], and [`Abort::Nested`] if this thread is inside `run` of the same
    /// database already (or the protocol allows one session and another one exists).
    pub fn run<T, E: From<Abort>>(
        &self,
        body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
    ) -> Result<T, E> {
        run_cached(&self.inner, const { &RunOptions::new() }, ReadView::Current, body)
    }

    /// As [`Database::run`], with limits on retrying, told of conflicts, or only reading.
    ///
    /// # Errors
    /// As [`Database::run`], and [`Abort::AttemptsExhausted`] or [`Abort::DeadlinePassed`].
    pub fn run_with<T, E: From<Abort>>(
        &self,
        options: RunOptions<'_>,
        body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
    ) -> Result<T, E> {
        run_cached(&self.inner, &options, options.read_view(), body)
    }

    /// Runs a transaction that [only reads](RunOptions::read_only).
    ///
    /// # Errors
    /// As [`Database::run`], and [`Abort::ReadOnly`] from each operation that would write or lock.
    pub fn run_read_only<T, E: From<Abort>>(
        &self,
        body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.run_with(RunOptions::new().read_only(), body)
    }

    /// Counts of all sessions, past and present.
    pub fn stats(&self) -> Stats {
        self.inner.stats()
    }

    /// What the database's memory is used for.
    pub fn memory(&self) -> MemoryUse {
        let inner = &self.inner;
        let of_sessions: usize =
            lock(&inner.sessions).values().map(|public| lock(&public.garbage).len()).sum();
        MemoryUse {
            reserved_bytes: inner.engine.memory.reserved_bytes(),
            garbage: of_sessions + inner.common_garbage(),
        }
    }

    /// Returns the properties of the database's protocol, by the policy that it was built with.
    pub fn properties(&self) -> Properties {
        self.inner.engine.properties
    }

    /// Whether each column group has a timestamp of its own.
    pub fn splitting(&self) -> bool {
        self.inner.engine.options.splitting
    }

    /// Whether updates are blind.
    pub fn commit_time_updates(&self) -> bool {
        self.inner.engine.options.commit_time_updates
    }
}

impl<P: Protocol> Database<Recorded<P>> {
    /// The attempts that have ended since the last call, and what has been forgotten. Whoever
    /// records for long has to call it now and then: until then all of it is kept.
    pub fn take_history(&self) -> Batch {
        self.inner.engine.clock.take()
    }
}

/// What a database's memory is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryUse {
    /// Bytes that tables and indexes have taken, as the memory limit counts them.
    pub reserved_bytes: usize,
    /// Deleted records and unlinked blocks that are waiting for the last transaction that could see
    /// them.
    pub garbage: usize,
}

/// Builds a [`Database`]. The switches are the basis factors that experiments vary; the defaults
/// are the good choices.
#[derive(Debug)]
pub struct Builder<P: Protocol> {
    options: Options,
    policy: P::Policy,
    seed: Option<u64>,
    own_epochs: Option<OwnEpochs>,
}

/// Epochs that a database has for itself, in tests.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(test), expect(dead_code, reason = "databases share the epochs of their process"))]
enum OwnEpochs {
    Manual(Epoch),
    Passing,
}

impl<P: Protocol> Clone for Builder<P> {
    fn clone(&self) -> Self {
        Builder {
            options: self.options,
            policy: self.policy.clone(),
            seed: self.seed,
            own_epochs: self.own_epochs,
        }
    }
}

impl<P: Protocol> Builder<P> {
    /// Chooses a policy, of a protocol that leaves a choice: how [`Serial`](crate::Serial) keeps
    /// transactions apart ([`Exclusion`](crate::Exclusion)), and which protocol
    /// [`Erased`](crate::Erased) runs ([`Chosen`](crate::Chosen)).
    #[must_use]
    pub fn policy(mut self, policy: P::Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Timestamp splitting: whether each column group is a unit of conflict by itself (default), or
    /// the whole row is one.
    #[must_use]
    pub fn timestamp_splitting(mut self, on: bool) -> Self {
        self.options.splitting = on;
        self
    }

    /// Commit-time updates: whether updates are blind (default), or observe what they update like a
    /// read and a write.
    #[must_use]
    pub fn commit_time_updates(mut self, on: bool) -> Self {
        self.options.commit_time_updates = on;
        self
    }

    /// Whether attempts that are going to fail see only what was there at one moment (default),
    /// where that takes looks at what has been seen before: under [`Occ`](crate::Occ). Without it
    /// the closure of such an attempt may see values of different times, and panic at what never
    /// was; what comes of it is never shown to the caller. Other protocols are
    /// [opaque](Protocol::OPAQUE) or not, whatever this says.
    #[must_use]
    pub fn opaque(mut self, on: bool) -> Self {
        self.options.opaque = on;
        self
    }

    /// Where timestamps come from, under a protocol that draws them and leaves the choice
    /// ([`Protocol::TIMESTAMPS`](crate::Protocol::TIMESTAMPS)): today [`Mvto`](crate::Mvto). By
    /// default the first that it knows.
    #[must_use]
    pub fn timestamps(mut self, timestamps: Timestamps) -> Self {
        self.options.timestamps = Some(timestamps);
        self
    }

    /// Makes some of the bad choices that there are, besides those already made; for experiments.
    #[must_use]
    pub fn factors(mut self, factors: impl IntoIterator<Item = Factor>) -> Self {
        self.options.factors = factors.into_iter().fold(self.options.factors, Factors::with);
        self
    }

    /// The most bytes that tables and indexes may take. An insert that would exceed it fails with
    /// [`Abort::MemoryLimit`]; so does an update, where it makes a version. Memory is taken in
    /// steps of 64 KiB and 2 MiB. What has been begun is ended past the limit: a bucket that is
    /// half moved takes some lines more, and a delete its version.
    #[must_use]
    pub fn memory_limit(mut self, bytes: usize) -> Self {
        self.options.memory_limit_bytes = bytes;
        self
    }

    /// Fixes the hash functions of the tables, for repeatable experiments. By default they differ
    /// from process to process, so that nobody can prepare keys that collide.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Epochs of its own that begin at `first` and move only by hand: for tests that own time.
    #[cfg(test)]
    pub(crate) fn manual_epochs(mut self, first: Epoch) -> Self {
        self.own_epochs = Some(OwnEpochs::Manual(first));
        self
    }

    /// Epochs of its own that pass by the clock: for tests whose transactions wait for one another,
    /// and must not wait for those of other tests.
    #[cfg(test)]
    pub(crate) fn passing_epochs(mut self) -> Self {
        self.own_epochs = Some(OwnEpochs::Passing);
        self
    }

    /// The database.
    ///
    /// # Errors
    /// [`Error::Timestamps`] if the protocol draws none from where it is to. Limits that cannot
    /// work are found when tables are created.
    pub fn build(self) -> Result<Database<P>, Error> {
        let mut properties = P::properties(&self.policy);
        properties.opaque &= self.options.opaque || !properties.opaque_by_looks;
        if let Some(wanted) =
            self.options.timestamps.filter(|wanted| !properties.timestamps.contains(wanted))
        {
            return Err(Error::Timestamps { protocol: properties.name, wanted });
        }
        let timestamps =
            self.options.timestamps.unwrap_or_else(|| timestamps::first_of(properties.timestamps));
        let id = process_unique();
        let epochs = match self.own_epochs {
            Some(OwnEpochs::Manual(first)) => Epochs::manual(first),
            Some(OwnEpochs::Passing) => Epochs::advancing(),
            None if MODELLED => Epochs::manual(1),
            None => Epochs::of_process(),
        };
        // A sanitizer watches over what the system has allocated, and knows nothing of blocks
        // within that.
        let system = cfg!(sanitized) || self.options.factors.has(Factor::SystemAllocator);
        let memory = Arc::new(Memory::new(self.options.memory_limit_bytes).by_system(system));
        let seed = self.seed.unwrap_or_else(Random::process_seed);
        let catalog = Catalog::new(&memory, seed);
        let slot = epochs.register();
        let collector = Collector { local: Local::new(id, COLLECTOR, slot.clone()), slot };
        let inner = Arc::new(Inner {
            engine: Engine {
                common: Common {
                    id,
                    options: self.options,
                    properties,
                    epochs: epochs.clone(),
                    memory,
                    tables: RwLock::new(Vec::new()).into(),
                    token: Token::new(),
                    parking: Parking::new(),
                    turns: Box::new(Turns::new()),
                    hot: Hot::default(),
                },
                clock: P::clock(&self.policy, timestamps, &epochs),
            },
            catalog,
            sessions: Mutex::new(BTreeMap::new()),
            sessions_made: AtomicU64::new(COLLECTOR),
            session_taken: AtomicBool::new(false),
            past: Mutex::new(Stats::default()),
            collector: Mutex::new(collector),
            common_garbage: Mutex::default(),
            left_garbage: Mutex::default(),
            index_changes: Mutex::new(()),
        });
        let weak: std::sync::Weak<Inner<P>> = Arc::downgrade(&inner);
        epochs.add_collector(weak);
        Ok(Database { inner })
    }
}

/// The collector's number among the sessions.
const COLLECTOR: u64 = 1;

impl<P: Protocol> Inner<P> {
    /// Admits a session, if the protocol allows another one.
    pub(crate) fn admit(&self) -> Result<(), Error> {
        // Acquire: what the one session before did is this one's to see (E12).
        if self.engine.properties.one_session && self.session_taken.swap(true, Ordering::Acquire) {
            return Err(Error::SecondSession { protocol: self.engine.properties.name });
        }
        Ok(())
    }

    /// Takes an admission back.
    pub(crate) fn dismiss(&self) {
        self.session_taken.store(false, Ordering::Release); // E12
    }

    /// A new session's working parts.
    pub(crate) fn join(&self) -> TxnRunner<P> {
        let id = self.sessions_made.fetch_add(1, Ordering::Relaxed) + 1;
        let public = Arc::new(SessionShared {
            session: id,
            slot: self.engine.epochs.register(),
            garbage: Mutex::new(Garbage::default()),
            counters: Counters::new(),
        });
        lock(&self.sessions).insert(id, public.clone());
        TxnRunner::new(&self.engine, id, public)
    }

    /// Forgets a session, keeping its counts, and its garbage for the advancer. Takes as long
    /// whatever other sessions have left.
    pub(crate) fn leave(&self, core: &mut TxnRunner<P>) {
        let state = core.state.get_mut();
        let mut garbage = std::mem::take(&mut *lock(&core.public.garbage));
        garbage.take_from(&self.engine, &mut state.local);
        if !garbage.is_empty() {
            lock(&self.left_garbage).push(garbage);
            // Without the session's slot the advancer may have found all idle, and be about to
            // sleep.
            self.engine.epochs.unpark();
        }
        state
            .local
            .leave_tallies(&self.engine.tables.read().unwrap_or_else(PoisonError::into_inner));
        self.engine.give_token_back(state.local.id);
        self.engine.epochs.unregister(&core.public.slot);
        let mut sessions = lock(&self.sessions);
        // Under the lock of the sessions, so that nobody finds these counts in both places, or in
        // none.
        lock(&self.past).add(&core.public.counters.read());
        sessions.remove(&core.public.session);
    }

    /// Calls `each` with what can be seen of every session.
    pub(crate) fn for_each_session(&self, mut each: impl FnMut(&SessionShared)) {
        lock(&self.sessions).values().for_each(|public| each(public));
    }

    /// Returns how much garbage belongs to no session.
    pub(crate) fn common_garbage(&self) -> usize {
        let common = lock(&self.common_garbage);
        let left: usize = lock(&self.left_garbage).iter().map(Garbage::len).sum();
        common.len() + left + self.engine.hot.len()
    }

    /// Keeps the advancer from collecting, unless it is, or is kept from it already.
    pub(crate) fn try_stop_collector(&self) -> Option<CollectorGuard<'_>> {
        try_lock(&self.collector)
    }

    /// Counts of all sessions, past and present.
    pub(crate) fn stats(&self) -> Stats {
        let sessions = lock(&self.sessions);
        let mut sum = *lock(&self.past);
        sessions.values().for_each(|public| sum.add(&public.counters.read()));
        sum
    }

    /// Whether no session is in a transaction.
    pub(crate) fn is_quiescent(&self) -> bool {
        !lock(&self.sessions).values().any(|public| public.slot.is_pinned())
    }
}

impl<P: Protocol> Collect for Inner<P> {
    fn collect(&self, idle_before: Epoch) -> bool {
        // Raw iteration may be going on; later is early enough.
        let Some(mut collector) = try_lock(&self.collector) else { return true };
        let Collector { slot, local } = &mut *collector;
        let Some(sessions) = try_lock(&self.sessions) else { return true };
        let mut left = false;
        for public in sessions.values() {
            // A session that is just collecting may take long, and epochs would not pass meanwhile.
            let Some(mut garbage) = try_lock(&public.garbage) else {
                left = true;
                continue;
            };
            if !garbage.is_empty() && public.slot.leaves_garbage_since(idle_before) {
                self.engine.epochs.pin(slot);
                garbage.collect(&self.engine, local, slot, 0);
                self.engine.epochs.unpin(slot);
            }
            left |= !garbage.is_empty();
        }
        drop(sessions);
        let mut common = lock(&self.common_garbage);
        std::mem::take(&mut *lock(&self.left_garbage))
            .into_iter()
            .for_each(|left| common.take_over(left));
        if !common.is_empty() || !self.engine.hot.is_empty() {
            self.engine.epochs.pin(slot);
            // What has not waited for long is for those who run transactions; passes are more
            // urgent.
            common.collect(&self.engine, local, slot, idle_before);
            self.engine.epochs.unpin(slot);
        }
        left |= !common.is_empty() || !self.engine.hot.is_empty();
        // What was freed goes to the slabs, where sessions find it.
        local.caches.clear();
        left
    }
}

impl<P: Protocol> Drop for Inner<P> {
    fn drop(&mut self) {
        self.engine.epochs.unregister(&lock(&self.collector).slot);
        // Threads may keep sessions of a database that is gone.
        for public in std::mem::take(&mut *lock(&self.sessions)).into_values() {
            self.engine.epochs.unregister(&public.slot);
            *lock(&public.garbage) = Garbage::default();
        }
    }
}
