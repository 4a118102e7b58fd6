//! Databases: tables by name, sessions, and the options they were built with.

#![forbid(unsafe_code)]

use super::session::{Session, run_cached};
use super::table::Table;
use crate::catalog::{Catalog, TableOptions};
use crate::engine::{Common, Engine, Hot, Options, Properties, Protocol, ReadView, Token};
use crate::epoch::{Epoch, Epochs};
use crate::error::{Abort, Error};
use crate::factor::{Factor, Factors};
use crate::memory::{Allocator, Memory};
use crate::protocols::DefaultProtocol;
#[cfg(any(test, feature = "history"))]
use crate::protocols::recorded::{Batch, Recorded};
use crate::schema::{Record, RowType};
use crate::shared::Inner;
use crate::stats::Stats;
use crate::sync::{MODELLED, Parking, Random, Turns, lock, process_unique};
use crate::timestamps;
use crate::txn::{RunOptions, Tx};
use std::sync::{Arc, RwLock};

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

impl Database<DefaultProtocol> {
    /// A database with every default: optimistic concurrency control, splitting and commit-time
    /// updates on, no memory limit.
    #[expect(
        clippy::new_without_default,
        reason = "`Database::default()` would need the protocol spelled out"
    )]
    pub fn new() -> Database<DefaultProtocol> {
        Database::<DefaultProtocol>::builder().build().expect("the defaults are valid")
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

    /// Returns the table of this name, which is created empty if it does not exist.
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

    /// Returns a session, with which a thread runs its transactions.
    ///
    /// # Errors
    /// [`Error::SecondSession`] if the protocol allows only one session and the database has one.
    pub fn session(&self) -> Result<Session<P>, Error> {
        Session::new(&self.inner)
    }

    /// Runs a transaction with a session that this thread keeps for the database. See
    /// [`Session::run`]. This function looks the session up in a thread-local list, and the
    /// statistics of that session are seen only as part of the database's. Under `Occ` an empty
    /// transaction takes about 240 instructions this way, and 130 with a session that the caller
    /// holds.
    ///
    /// # Errors
    /// As [`Session::run`], and [`Abort::Nested`] if this thread is inside `run` of the same
    /// database already (or if the protocol allows only one session and another one exists).
    pub fn run<T, E: From<Abort>>(
        &self,
        body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
    ) -> Result<T, E> {
        run_cached(&self.inner, const { &RunOptions::new() }, ReadView::Current, body)
    }

    /// As [`Database::run`], with limits on retrying, reports of conflicts, or only reading.
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

    /// Returns counts of all sessions, past and present.
    pub fn stats(&self) -> Stats {
        self.inner.stats()
    }

    /// Returns what the database's memory is used for.
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

    /// Returns whether each column group has a timestamp of its own.
    pub fn splitting(&self) -> bool {
        self.inner.engine.options.splitting
    }

    /// Returns whether updates are blind.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryUse {
    /// Bytes that tables and indexes have taken, as the memory limit counts them.
    pub reserved_bytes: usize,
    /// Deleted records and unlinked blocks that are waiting for the last transaction that could see
    /// them.
    pub garbage: usize,
}

/// Builds a [`Database`]. The defaults are the good choices; the switches show what each is worth.
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

/// Choices for [experiments](crate::experiments).
#[cfg(any(test, feature = "experiments"))]
impl<P: Protocol> Builder<P> {
    /// Chooses the source of timestamps, under a protocol that leaves the choice
    /// ([`Properties::timestamps`]): today [`Mvto`](crate::Mvto). By default the first that it
    /// knows.
    #[must_use]
    pub fn timestamps(mut self, timestamps: timestamps::Timestamps) -> Self {
        self.options.timestamps = Some(timestamps);
        self
    }

    /// Adds some bad choices to those already made.
    #[must_use]
    pub fn factors(mut self, factors: impl IntoIterator<Item = Factor>) -> Self {
        self.options.factors = factors.into_iter().fold(self.options.factors, Factors::with);
        self
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

    /// Sets timestamp splitting: whether each column group is a unit of conflict by itself
    /// (default), or the whole row is one.
    #[must_use]
    pub fn timestamp_splitting(mut self, on: bool) -> Self {
        self.options.splitting = on;
        self
    }

    /// Sets whether updates are blind, applied at commit time (default), or observe the row that
    /// they update, as a read and a write would.
    #[must_use]
    pub fn commit_time_updates(mut self, on: bool) -> Self {
        self.options.commit_time_updates = on;
        self
    }

    /// Sets whether an attempt that is going to fail sees only values that were in the database at
    /// one moment (default). Under [`Occ`](crate::Occ), this takes revalidations of the read set
    /// while the closure runs. Without them, the closure of such an attempt may see values of
    /// different times and may panic because of them; neither its result nor its panic reaches the
    /// caller. The setting does not affect other protocols, which are [opaque](Protocol::OPAQUE) or
    /// not.
    #[must_use]
    pub fn opaque(mut self, on: bool) -> Self {
        self.options.opaque = on;
        self
    }

    /// Sets the most bytes that tables and indexes may take. An insert that would exceed it fails
    /// with [`Abort::MemoryLimit`]; so does an update, where it makes a version. Memory is taken in
    /// steps of 64 KiB and 2 MiB. Work in progress may exceed the limit: a bucket that is half
    /// moved takes some lines more, and a delete its version.
    #[must_use]
    pub fn memory_limit(mut self, bytes: usize) -> Self {
        self.options.memory_limit_bytes = bytes;
        self
    }

    /// Fixes the hash functions of the tables, for repeatable experiments. By default they differ
    /// from process to process, so that no client can prepare keys that collide.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets epochs of its own that begin at `first` and move only by hand: for tests that own time.
    #[cfg(test)]
    pub(crate) fn manual_epochs(mut self, first: Epoch) -> Self {
        self.own_epochs = Some(OwnEpochs::Manual(first));
        self
    }

    /// Gives the database epochs of its own, which the clock advances. It is for tests whose
    /// transactions wait for one another, and must not wait for transactions of other tests.
    #[cfg(test)]
    pub(crate) fn passing_epochs(mut self) -> Self {
        self.own_epochs = Some(OwnEpochs::Passing);
        self
    }

    /// Makes the database.
    ///
    /// # Errors
    /// Only choices for experiments can be refused: a source of timestamps that the protocol cannot
    /// use, an allocator that this build does not have, or two allocators. Limits that cannot work
    /// are found when tables are created.
    pub fn build(self) -> Result<Database<P>, Error> {
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
        // A sanitizer watches the system's allocations, and knows nothing of blocks within them.
        let default = cfg!(sanitized).then_some(Allocator::System);
        let memory = Arc::new(memory.by_allocator(chosen.or(default)));
        let seed = self.seed.unwrap_or_else(Random::process_seed);
        let catalog = Catalog::new(&memory, seed);
        let engine = Engine {
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
        };
        Ok(Database { inner: Inner::new(engine, catalog) })
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
