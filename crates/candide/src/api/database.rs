//! Databases: their tables by name, their sessions, and their options.

#![forbid(unsafe_code)]

use super::index_changes::{self, Asked};
use super::index_turn::IndexTurn;
use super::migration::migrate;
use super::pending::Pending;
use super::session::{Session, last_outcome_of_thread, run_cached, run_cached_logged};
use super::table::Table;
use super::table_freeze::restrict;
use crate::catalog::{Catalog, FoundTable, Migrations, TableOptions, check_name};
use crate::engine::{
    Common, Engine, IndexCore, IndexPlan, Options, Properties, Protocol, ReadView, SharedQueue,
    TableCore, Token, Watchers,
};
use crate::epoch::{Epoch, Epochs};
use crate::error::{Abort, Error};
use crate::factor::{Factor, Factors};
use crate::handle::Handle;
use crate::locks::SharedLocks;
use crate::log::Level;
use crate::memory::{Allocator, LongMemory, Memory, NotReserved};
use crate::protocols::DefaultProtocol;
#[cfg(any(test, feature = "history"))]
use crate::protocols::recorded::{Batch, Recorded};
use crate::schema::{Record, RowType};
use crate::shared::Inner;
use crate::stats::{NamedStats, Names, Stats};
use crate::sync::{MODELLED, Parking, Random, Turns, lock, process, process_unique, try_lock};
use crate::timestamps;
use crate::txn::{Outcome, RunOptions, Tx};
use std::sync::{Arc, OnceLock, RwLock};

/// An in-memory database. The protocol `P` makes its transactions serializable.
///
/// A `Database` is a handle: its clones refer to the same database. The database lives as long as
/// any handle: databases, tables, indexes, sequences, sessions, snapshots, and the [`Pending`] of a
/// database with a log. When the last one is dropped, a database that is [open](Database::open) is
/// closed before the drop returns: everything that was committed is written and synced, and another
/// process can open the directory. [`Database::close`] does the same, and returns its errors.
///
/// ```
/// use candide::protocols::Exclusion;
/// use candide::{Database, Mvcc, Serial};
///
/// let db = Database::new(); // optimistic concurrency control, every default
/// let versioned = Database::<Mvcc>::default(); // another protocol
/// let locked = Database::<Serial>::builder().policy(Exclusion::GlobalLock);
/// let other = locked.memory_limit(64 << 20).build()?;
/// assert_eq!(db.run(|tx| Ok(tx.attempt_number()))?, 1);
/// # drop((versioned, other));
/// # Ok::<(), candide::Error>(())
/// ```
#[doc(alias = "begin_write")]
#[doc(alias = "begin_read")]
#[doc(alias = "transaction")]
#[doc(alias = "open_table")]
pub struct Database<P: Protocol = DefaultProtocol> {
    pub(crate) inner: Handle<P>,
}

impl<P: Protocol> std::fmt::Debug for Database<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Engine { common, .. } = &self.inner.engine;
        f.debug_struct("Database")
            .field("protocol", &common.properties.name)
            .field("tables", &self.inner.catalog.tables())
            .field("sessions", &lock(&self.inner.sessions).len())
            .field("reserved_bytes", &common.memory.reserved_bytes())
            .finish()
    }
}

impl<P: Protocol> Clone for Database<P> {
    fn clone(&self) -> Self {
        Database { inner: self.inner.clone() }
    }
}

impl<P: Protocol> Default for Database<P> {
    /// Makes a database with the default options of protocol `P`. Where the type says the protocol,
    /// as in code that is generic over it, that is `Database::default()`; otherwise
    /// `Database::<P>::default()`.
    fn default() -> Self {
        Database::builder().build().expect("the defaults are valid")
    }
}

impl Database<DefaultProtocol> {
    /// Makes a database of the default protocol, with the default options: optimistic concurrency
    /// control, timestamp splitting, commit-time updates, no memory limit.
    ///
    /// For another protocol there is [`Database::<Mvcc>::default()`](Database::default). This
    /// function exists for one protocol only, so that `Database::new()` names it: if there were one
    /// for each protocol, the compiler would ask for the protocol, since it does not use the
    /// default of a type's parameter in expressions.
    pub fn new() -> Database<DefaultProtocol> {
        Database::default()
    }
}

impl<P: Protocol> Database<P> {
    /// Returns the builder of a database, with the default options.
    pub fn builder() -> Builder<P> {
        Builder {
            options: Options {
                splitting: true,
                commit_time_updates: true,
                opaque: true,
                factors: Factors::default(),
                memory_limit_bytes: usize::MAX,
                timestamps: None,
                counts_stale: false,
                past_ms: 0,
            },
            policy: P::Policy::default(),
            seed: None,
            reserve_bytes: 0,
            own_epochs: None,
            migrations: Migrations::default(),
        }
    }

    /// Returns the table called `name`. If no such table exists, creates an empty one.
    ///
    /// # Errors
    /// [`Error::TableType`] if the name belongs to a table of another row type,
    /// [`Error::TableOption`] if it belongs to a [volatile](TableOptions::volatile) one,
    /// [`Error::RowType`]
    /// if `R` cannot be stored, [`Error::EmptyTableName`], [`Error::ReservedName`] if the name
    /// begins with `candide.`, [`Error::TooManyTables`], [`Error::MemoryLimit`].
    ///
    /// In a database that is [open](Database::open), also [`Error::Schema`] if the rows in the
    /// files are of another type, and [`Error::Migration`] if they could not be
    /// [migrated](Builder::migration); and, if the declared indexes of a table from the files have
    /// to be made, [`Error::NotUnique`] and [`Error::KeyTooLong`], and [`Error::SecondSession`]
    /// under a protocol that allows one session, if there is one: name such tables before that.
    /// [`Error::Transaction`] and [`Error::Files`] if the table cannot be added to the files.
    pub fn table<R: Record>(&self, name: &str) -> Result<Table<R, P>, Error> {
        self.table_with(name, TableOptions::default())
    }

    /// As [`Database::table`]. If the call creates the table, `options` apply to it. If the table
    /// exists, it must have these options: [volatile](TableOptions::volatile) or not, and as every
    /// other option says that is given. (The [capacity](TableOptions::capacity) of a table from the
    /// files is not known, and is not compared; the policy is the table's [present
    /// one](Table::policy).)
    ///
    /// # Errors
    /// As [`Database::table`], and [`Error::TableOption`] if the table differs from `options`.
    pub fn table_with<R: Record>(
        &self,
        name: &str,
        options: TableOptions,
    ) -> Result<Table<R, P>, Error> {
        check_name(name)?;
        let core = find_table(&self.inner, name, options, &RowType::of::<R>())?;
        Ok(Table::new(self.inner.clone(), core))
    }

    /// Returns a session, with which a thread runs its transactions.
    ///
    /// # Errors
    /// [`Error::SecondSession`] if the protocol allows only one session and the database has one.
    pub fn session(&self) -> Result<Session<P>, Error> {
        Session::new(&self.inner)
    }

    #[doc = include_str!("run_docs/run.txt")]
    #[inline]
    pub fn run<T>(&self, body: impl FnMut(&Tx<'_, P>) -> Result<T, Abort>) -> Result<T, Abort> {
        self.try_run(body)
    }

    #[doc = include_str!("run_docs/try_run.txt")]
    #[inline]
    pub fn try_run<T, E: From<Abort>>(
        &self,
        body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
    ) -> Result<T, E> {
        run_cached(&self.inner, const { &RunOptions::new() }, ReadView::Current, body)
    }

    #[doc = include_str!("run_docs/read_view.txt")]
    #[inline]
    pub fn read_view<T>(
        &self,
        body: impl FnMut(&Tx<'_, P>) -> Result<T, Abort>,
    ) -> Result<T, Abort> {
        run_cached(&self.inner, const { &RunOptions::new() }, ReadView::AtBegin, body)
    }

    #[doc = include_str!("run_docs/run_logged.txt")]
    pub fn run_logged<T>(&self, body: impl FnMut(&Tx<'_, P>) -> Result<T, Abort>) -> Pending<T> {
        self.try_run_logged(body)
    }

    #[doc = include_str!("run_docs/try_run_logged.txt")]
    pub fn try_run_logged<T, E: From<Abort>>(
        &self,
        body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
    ) -> Pending<T, E> {
        let options = RunOptions::new().acknowledge(Level::Memory);
        run_cached_logged(&self.inner, &options, ReadView::Current, body)
    }

    /// Returns the counts of all sessions together, past and present.
    pub fn stats(&self) -> Stats {
        self.inner.stats()
    }

    /// Returns the last outcome of the transactions that this thread has run by [`Database::run`]
    /// and similar functions, with the names of table, key and column. `None` if they never had
    /// one, or inside such a transaction, where [`Tx::last_outcome`] returns it.
    ///
    /// ```
    /// # use candide::{Abort, Database, Record};
    /// # #[derive(Record, Clone, Copy)]
    /// # struct Account { #[key] id: u64, cents: i64 }
    /// let db = Database::new();
    /// let accounts = db.table::<Account>("accounts")?;
    /// let account = |id| Account { id, cents: 50 };
    /// db.run(|tx| accounts.insert_many(tx, [1, 2, 3].map(account)))?;
    /// let again = db.run(|tx| accounts.insert_many(tx, [4, 2, 5].map(account)));
    /// assert_eq!(again, Err(Abort::Duplicate));
    /// assert_eq!(db.last_outcome().unwrap().to_string(), "duplicate on accounts, key id: 2");
    /// # Ok::<(), candide::Error>(())
    /// ```
    pub fn last_outcome(&self) -> Option<Outcome> {
        last_outcome_of_thread(&self.inner)
    }

    /// Returns the counts of the transactions that have a [name](RunOptions::named), of all
    /// sessions together, past and present, in the order of the names.
    ///
    /// A database counts 256 names apart. Transactions of further names are counted together, under
    /// `"(other)"`. A call that the database refuses with [`Abort::Nested`] because the thread is
    /// inside `run` already is not counted.
    pub fn named_stats(&self) -> Vec<NamedStats> {
        self.inner.named_stats()
    }

    /// Returns the database's use of memory.
    pub fn memory(&self) -> MemoryUse {
        let inner = &self.inner;
        let mut of_sessions = 0;
        let epochs = &inner.engine.epochs;
        inner.for_each_session(|public| of_sessions += public.garbage(epochs).len());
        let memory = &inner.engine.memory;
        MemoryUse {
            reserved_bytes: memory.reserved_bytes(),
            ready_bytes: memory.ready_bytes(),
            fresh_bytes: memory.fresh_bytes(),
            value_bytes: inner.engine.long_memory().map_or(0, LongMemory::reserved_bytes),
            garbage: of_sessions + inner.common_garbage(),
        }
    }

    /// Returns the properties that the database's protocol has under the policy of this database.
    pub fn properties(&self) -> Properties {
        self.inner.engine.properties
    }

    /// Returns whether each column group has a timestamp of its own.
    pub fn splitting(&self) -> bool {
        self.inner.engine.options.splitting
    }

    /// Returns whether updates are blind: applied at commit time, without observing the row.
    pub fn commit_time_updates(&self) -> bool {
        self.inner.engine.options.commit_time_updates
    }
}

#[cfg(any(test, feature = "history"))]
impl<P: Protocol> Database<Recorded<P>> {
    /// Returns the attempts that have ended, and the records of deleted rows that were removed,
    /// since the last call. A program that records for a long time must call this regularly,
    /// because the whole history stays in memory until it is returned.
    pub fn take_history(&self) -> Batch {
        self.inner.engine.clock.take()
    }
}

/// The use of a database's memory.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUse {
    /// Bytes that tables and indexes have taken, as the memory limit counts them.
    pub reserved_bytes: usize,
    /// Bytes that the operating system has provided and that tables and indexes have not yet taken:
    /// the rest of the [reserve](Builder::reserve), and the stretch ahead of demand.
    pub ready_bytes: usize,
    /// Bytes that were not ready when tables and indexes took them. The count only rises. The first
    /// transaction that uses a page of them waits while the operating system clears the page.
    pub fresh_bytes: usize,
    /// The bytes among `reserved_bytes` for strings and bytes of more than seven bytes, of all
    /// tables, including blocks that are free.
    pub value_bytes: usize,
    /// The number of deleted records and unlinked blocks that cannot be freed before the last
    /// transaction that could see them has ended.
    pub garbage: usize,
}

/// The builder of a [`Database`]. The defaults are the good choices. Switching one off shows how
/// much it is worth. A database with the defaults needs no builder: [`Database::new`] makes one of
/// the default protocol, `Database::<P>::default()` one of protocol `P`.
pub struct Builder<P: Protocol> {
    options: Options,
    policy: P::Policy,
    seed: Option<u64>,
    reserve_bytes: usize,
    own_epochs: Option<OwnEpochs>,
    pub(super) migrations: Migrations,
}

/// Epochs that a database has for itself, in tests.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(test), expect(dead_code, reason = "databases share the epochs of their process"))]
enum OwnEpochs {
    Manual(Epoch),
    Passing,
}

impl<P: Protocol> std::fmt::Debug for Builder<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("protocol", &P::properties(&self.policy).name)
            .field("timestamp_splitting", &self.options.splitting)
            .field("commit_time_updates", &self.options.commit_time_updates)
            .field("opaque", &self.options.opaque)
            .field("memory_limit", &self.options.memory_limit_bytes)
            .field("reserve", &self.reserve_bytes)
            .finish_non_exhaustive()
    }
}

impl<P: Protocol> Clone for Builder<P> {
    fn clone(&self) -> Self {
        Builder {
            options: self.options,
            policy: self.policy.clone(),
            seed: self.seed,
            reserve_bytes: self.reserve_bytes,
            own_epochs: self.own_epochs,
            migrations: self.migrations.clone(),
        }
    }
}

/// Choices for [experiments](crate::experiments).
#[cfg(any(test, feature = "experiments"))]
impl<P: Protocol> Builder<P> {
    /// Chooses the source of timestamps, under a protocol that leaves the choice
    /// ([`Properties::timestamps`]): today [`Mvto`](crate::Mvto). The default is the first source
    /// in that list.
    #[must_use]
    pub fn timestamps(mut self, timestamps: timestamps::Timestamps) -> Self {
        self.options.timestamps = Some(timestamps);
        self
    }

    /// Adds `factors`, which are bad choices, to those already chosen.
    #[must_use]
    pub fn factors(mut self, factors: impl IntoIterator<Item = Factor>) -> Self {
        self.options.factors = factors.into_iter().fold(self.options.factors, Factors::with);
        self
    }

    /// Gives the database epochs of its own, which only [`Database::end_epoch`] ends, and
    /// transactions that wait for the end of one. So the work of a thread does not depend on the
    /// clock. By default all databases of the process share epochs of about a millisecond.
    #[must_use]
    pub fn own_epochs(mut self) -> Self {
        self.own_epochs = Some(OwnEpochs::Manual(1));
        self
    }

    /// Sets whether to count the transactions that commit although OCC would have aborted them
    /// ([`Stats::stale_commits`](crate::report::Stats::stale_commits)); off by default. Each commit
    /// then looks at its read set once more, and transactions that read old versions note their
    /// reads.
    #[must_use]
    pub fn count_stale_commits(mut self, on: bool) -> Self {
        self.options.counts_stale = on;
        self
    }
}

impl<P: Protocol> Builder<P> {
    /// Chooses the policy of a protocol that leaves a choice. For [`Occ`](crate::Occ), a
    /// [`Policy`](crate::policy::Policy), or [`Policies`](crate::policy::Policies) by table,
    /// determine when rows are locked. For [`Serial`](crate::Serial), an
    /// [`Exclusion`](crate::protocols::Exclusion) determines how transactions are kept apart. For
    /// [`Erased`](crate::any::Erased), a [`Chosen`](crate::any::Chosen) names the protocol.
    #[must_use]
    pub fn policy(mut self, policy: impl Into<P::Policy>) -> Self {
        self.policy = policy.into();
        self
    }

    /// Sets timestamp splitting: whether each column group is a unit of conflict by itself
    /// (default), or the whole row is one unit.
    #[must_use]
    pub fn timestamp_splitting(mut self, on: bool) -> Self {
        self.options.splitting = on;
        self
    }

    /// Sets whether updates are blind and applied at commit time (default), or observe the row that
    /// they update, as a read and a write would.
    #[must_use]
    pub fn commit_time_updates(mut self, on: bool) -> Self {
        self.options.commit_time_updates = on;
        self
    }

    /// Sets whether an attempt that is going to fail sees only values that were in the database at
    /// one moment (default). Under [`Occ`](crate::Occ), this takes revalidations of the read set
    /// while the closure runs. Without revalidations, the closure of such an attempt may see values
    /// of different times and may panic because of such values. Neither the closure's result nor
    /// its panic reaches the caller then. The setting affects no other protocol;
    /// [`Protocol::OPAQUE`] is `true` for those that are opaque.
    #[must_use]
    pub fn opaque(mut self, on: bool) -> Self {
        self.options.opaque = on;
        self
    }

    /// Lets read-only transactions see the past: those of [`Database::read_view`] and of
    /// [`RunOptions::read_only`](crate::RunOptions::read_only) see the database as it was at one
    /// moment up to `age` before they begin, when all commits that they see had ended. Under
    /// [`Mvto`](crate::Mvto) they then wait for no other transaction; under [`Mvcc`](crate::Mvcc),
    /// which writes in place, a read still waits while a commit is writing that row. Only protocols
    /// with [versions](crate::Versioned) have that.
    ///
    /// The transactions stay serializable, but the order is no longer that of real time: a
    /// read-only transaction may miss what was acknowledged before it began, up to `age` before;
    /// also what its own session has committed, or an earlier such transaction has seen. All others
    /// see the present as before, and so do [snapshots](crate::Snapshot). [`Abort::NoIndex`] is the
    /// error of an index that is younger than the view.
    ///
    /// A view is renewed once in a millisecond, by its readers, and is usually between one and
    /// three milliseconds old: an `age` of less than that is seldom met. If no view is recent
    /// enough, because none has read for a while, or because another transaction has been running
    /// for as long, a read-only transaction sees the present. The age is rounded down to
    /// milliseconds; zero, which is the default, switches it off.
    ///
    /// ```
    /// use candide::{Database, Error, Mvcc, Occ};
    /// use std::time::Duration;
    ///
    /// let age = Duration::from_millis(10);
    /// assert!(Database::<Mvcc>::builder().read_only_past(age).build().is_ok());
    /// let refused = Database::<Occ>::builder().read_only_past(age).build();
    /// assert!(matches!(refused, Err(Error::NoPast { protocol: "occ" })));
    /// ```
    #[must_use]
    pub fn read_only_past(mut self, age: std::time::Duration) -> Self {
        self.options.past_ms = age.as_millis().try_into().unwrap_or(u64::MAX);
        self
    }

    /// Sets the memory limit: the largest number of bytes that tables and indexes may take. An
    /// insert that would exceed the limit fails with [`Abort::MemoryLimit`]. So does an update, if
    /// it has to make a version. Memory is taken in steps of 64 KiB and 2 MiB. Work in progress may
    /// exceed the limit: a half-moved bucket takes some more lines, and a delete takes memory for
    /// its version.
    #[must_use]
    pub fn memory_limit(mut self, bytes: usize) -> Self {
        self.options.memory_limit_bytes = bytes;
        self
    }

    /// Reserves memory: [`Builder::build`] maps `bytes` bytes, rounded up to 2 MiB, and touches all
    /// of them, by several threads. By default it reserves nothing.
    ///
    /// Tables and indexes take the reserve first. A transaction that takes other memory may have to
    /// wait while the operating system clears a page, which takes about 0.1 ms for a page of 2 MiB,
    /// and longer if a virtual machine's host has to provide the page. To avoid most such waits
    /// without a reserve, too, a thread of the process touches memory ahead of demand while a
    /// database grows: a tenth of a second of its present growth, but at most 256 MiB and a quarter
    /// of what the database has taken. When the database has not grown for a second, this stretch
    /// goes back to the operating system (under Linux). The reserve stays until the database is
    /// dropped. The thread keeps within the [memory limit](Builder::memory_limit).
    /// [`Database::memory`] shows both.
    ///
    /// ```
    /// use candide::{Database, Occ};
    ///
    /// let db = Database::<Occ>::builder().reserve(16 << 20).build()?;
    /// assert_eq!(db.memory().ready_bytes, 16 << 20);
    /// # Ok::<(), candide::Error>(())
    /// ```
    #[must_use]
    pub fn reserve(mut self, bytes: usize) -> Self {
        self.reserve_bytes = bytes;
        self
    }

    /// Fixes the hash functions of the tables, for repeatable experiments. By default the functions
    /// differ from process to process, so that no client can prepare keys that collide.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Gives the database epochs of its own, which begin at `first` and which only explicit calls
    /// move. Such epochs are for tests that control time.
    #[cfg(test)]
    pub(crate) fn manual_epochs(mut self, first: Epoch) -> Self {
        self.own_epochs = Some(OwnEpochs::Manual(first));
        self
    }

    /// Gives the database epochs of its own, which the clock advances. These epochs are for tests
    /// whose transactions wait for one another, and must not wait for transactions of other tests.
    #[cfg(test)]
    pub(crate) fn passing_epochs(mut self) -> Self {
        self.own_epochs = Some(OwnEpochs::Passing);
        self
    }

    /// Makes the database.
    ///
    /// # Errors
    /// [`Error::ReserveAboveLimit`] or [`Error::ReserveAboveFree`], before any memory is touched;
    /// [`Error::NoPast`], if the protocol keeps no versions and [`Builder::read_only_past`] was set.
    /// Otherwise only choices for experiments can be refused: a source of timestamps that the
    /// protocol cannot use, an allocator that this build does not have, two allocators, or lengths
    /// of waits that are out of range. A memory limit that is too low is found when tables are
    /// created.
    pub fn build(self) -> Result<Database<P>, Error> {
        self.build_unless(&|| false)
    }

    /// As [`Builder::build`], but stops once `stopped` returns true, which it is asked before each
    /// 2 MiB of the [reserve](Builder::reserve), by several threads.
    ///
    /// # Errors
    /// As [`Builder::build`], and [`Error::Stopped`]. The memory touched so far is returned.
    pub fn build_unless(self, stopped: &(dyn Fn() -> bool + Sync)) -> Result<Database<P>, Error> {
        let mut properties = P::properties(&self.policy);
        properties.opaque &= self.options.opaque || !properties.opaque_by_looks;
        #[cfg(any(test, feature = "experiments"))]
        if let Some(wanted) =
            self.options.timestamps.filter(|wanted| !properties.timestamps.contains(wanted))
        {
            return Err(Error::Timestamps { protocol: properties.name, wanted });
        }
        let timestamps =
            self.options.timestamps.unwrap_or_else(|| timestamps::first_of(properties.timestamps));
        if self.options.past_ms > 0 {
            if properties.version_words == 0 {
                return Err(Error::NoPast { protocol: properties.name });
            }
            properties.strict = false;
        }
        let id = process_unique();
        let epochs = match self.own_epochs {
            Some(OwnEpochs::Manual(first)) => Epochs::manual(first),
            Some(OwnEpochs::Passing) => Epochs::advancing(),
            None if MODELLED => Epochs::manual(1),
            None => Epochs::of_process(),
        };
        #[cfg(any(test, feature = "experiments"))]
        check_allocators(self.options.factors)?;
        let is_chosen = |factor: &Factor| self.options.factors.has(*factor);
        let chosen = Factor::ALL.into_iter().filter(is_chosen).find_map(Allocator::of);
        let memory = Memory::new(self.options.memory_limit_bytes);
        // A sanitizer watches the system's allocations, and not the blocks within them.
        let default = cfg!(sanitized).then_some(Allocator::System);
        let memory = Arc::new(memory.by_allocator(chosen.or(default)));
        let (bytes, limit_bytes) = (self.reserve_bytes, self.options.memory_limit_bytes);
        memory.touch_reserve(bytes, stopped).map_err(|reason| match reason {
            NotReserved::AboveLimit => Error::ReserveAboveLimit { bytes, limit_bytes },
            NotReserved::AboveFree(free_bytes) => Error::ReserveAboveFree { bytes, free_bytes },
            NotReserved::Stopped => Error::Stopped,
        })?;
        let seed = self.seed.unwrap_or_else(Random::process_seed);
        let clock = P::clock(&self.policy, timestamps, &epochs);
        let locks = P::table_locks(&clock).map(SharedLocks::of);
        let catalog = Catalog::new(&memory, seed, locks, self.migrations);
        let engine = Engine {
            common: Common {
                id,
                options: self.options,
                properties,
                epochs: epochs.clone(),
                memory,
                long: OnceLock::new(),
                tables: RwLock::new(Vec::new()).into(),
                token: Token::new(),
                parking: Parking::new(),
                watchers: Watchers::default(),
                turns: Box::new(Turns::new()),
                shared_garbage: SharedQueue::default(),
                names: Names::default(),
                reuses: process::AtomicU64::new(0),
                log: OnceLock::new(),
                following: OnceLock::new(),
                past: (self.options.past_ms > 0).then(|| Box::new(epochs.past_view())),
            },
            clock,
        };
        Ok(Database { inner: Handle::first(Inner::new(engine, catalog)) })
    }
}

/// Finds or makes a table. Makes the declared indexes of a table that was recovered.
pub(crate) fn find_table<P: Protocol>(
    inner: &Handle<P>,
    name: &str,
    options: TableOptions,
    row: &RowType,
) -> Result<Arc<TableCore>, Error> {
    let files = inner.store().map(|store| &**store);
    if inner.catalog.has_waiting() {
        inner.free_former_tables();
    }
    loop {
        let found = inner.catalog.table((&inner.engine.common, files), name, options, row)?;
        let (core, rewrite) = match found {
            FoundTable::Ready(core) => return Ok(core),
            FoundTable::Recovered(core) => (core, None),
            FoundTable::Differs(core, rewrite) => (core, Some(rewrite)),
        };
        let _turn = IndexTurn::wait(inner)?;
        let _one_at_a_time = match inner.engine.epochs.refuse_inside() {
            Ok(()) => lock(&core.adoption),
            // A migration may wait for the transaction of this thread.
            Err(inside) => try_lock(&core.adoption).ok_or(inside)?,
        };
        // Another thread may have done the work meanwhile, or renamed or dropped the table.
        if inner.catalog.is_recovered(name, &core) {
            return match rewrite {
                None => adopt(inner, &core, options, row),
                Some(rewrite) => migrate(inner, &core, options, row, &rewrite),
            };
        }
    }
}

/// Gives a recovered table its row type and the declared indexes. The caller has locked its
/// adoption.
#[cold]
#[inline(never)]
fn adopt<P: Protocol>(
    inner: &Handle<P>,
    core: &Arc<TableCore>,
    options: TableOptions,
    row: &RowType,
) -> Result<Arc<TableCore>, Error> {
    let slots = declare_indexes(inner, core, row)?;
    if let Some(store) = inner.store() {
        inner.catalog.describe(store, core, row)?;
    }
    restrict(inner, core, options);
    core.indexes.declare(&slots);
    inner.catalog.adopt(&inner.engine.common, core, row);
    Ok(core.clone())
}

/// Makes the indexes that a row type declares, and returns their slots. An earlier call may have
/// made some of them, or those of another row type, and then failed.
fn declare_indexes<P: Protocol>(
    inner: &Handle<P>,
    core: &TableCore,
    row: &RowType,
) -> Result<Vec<usize>, Error> {
    let indexes = &core.indexes;
    let plan = |spec| IndexPlan::of_spec(spec, core.layout.key_packing(), row);
    let is_declared = |index: &IndexCore| {
        let mut own = row.indexes.iter().map(|spec| indexes.readable_like(&plan(spec)));
        own.any(|own| own.is_some_and(|own| own.number == index.number))
    };
    let others = indexes.kept().filter(|index| !is_declared(index));
    let others: Vec<_> = others.map(|index| index.name.clone()).collect();
    for name in others {
        index_changes::drop_made(inner, core, &name, &|_| false)?;
    }
    let create = |spec| index_changes::create(inner, core, plan(spec), Asked::ByRowType);
    row.indexes.iter().map(create).collect()
}

/// Choices for [experiments](crate::experiments).
#[cfg(any(test, feature = "experiments"))]
impl<P: Protocol> Database<P> {
    /// Ends the epoch of a database with [epochs of its own](Builder::own_epochs), and collects the
    /// garbage of sessions that have been idle for eight epochs.
    ///
    /// # Panics
    /// If the database shares the epochs of its process.
    pub fn end_epoch(&self) {
        let epochs = &self.inner.engine.epochs;
        assert!(!epochs.pass_by_clock(), "the database shares the epochs of its process");
        epochs.advance();
    }
}

/// Checks that the factors choose at most one allocator, which this build has.
#[cfg(any(test, feature = "experiments"))]
fn check_allocators(factors: Factors) -> Result<(), Error> {
    let is_chosen = |factor: &Factor| factor.is_allocator() && factors.has(*factor);
    let chosen: Vec<Factor> = Factor::ALL.into_iter().filter(is_chosen).collect();
    match *chosen {
        [first, second, ..] => Err(Error::TwoAllocators { first, second }),
        [wanted] if !wanted.is_available() => Err(Error::NoAllocator { wanted }),
        _ => Ok(()),
    }
}
