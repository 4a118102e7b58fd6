//! Workloads and databases behind trait objects, so that code that does not depend on the
//! workload's type and the protocol is compiled once. The code below [`measurable`] is compiled for
//! each workload and protocol.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use candide::any::Erased;
use candide::experiments::{Factor, Timestamps};
use candide::report::MemoryUse;
use candide::{Builder, Database, Durability, Error, OpenError, Protocol, Session};
use candide_workloads::{Consistency, Loaded, Loading, Size, Timeline, Worker, Workload};

use crate::affinity::Cores;
use crate::failure::Failure;
use crate::files::{Directory, Files};
use crate::interrupt;
use crate::progress::{self, Agenda};
use crate::registry::{Choice, Job};

/// The setting of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    /// The protocol.
    pub protocol: Choice,
    /// Whether updates are applied at commit.
    pub cu: bool,
    /// Whether each column group has its own timestamp.
    pub ts: bool,
    /// The source of timestamps; `None` if the protocol offers no choice of sources.
    pub timestamps: Option<Timestamps>,
    /// Whether attempts that are going to fail see only values of one moment; `None` if the
    /// protocol leaves no choice.
    pub opaque: Option<bool>,
    /// The bad design choices whose cost is measured.
    pub factors: Vec<Factor>,
    /// Whether commits are counted that OCC would have aborted.
    pub counts_stale: bool,
}

/// The parameters of a load.
pub(crate) struct LoadContext<'a> {
    pub(crate) variant: &'a Variant,
    pub(crate) cores: &'a Cores,
    pub(crate) seed: u64,
    pub(crate) agenda: &'a Agenda,
    /// The number of bytes that the database reserves.
    pub(crate) reserve_bytes: usize,
    /// The place of the database's files; `None` if it has none.
    pub(crate) files: Option<&'a Files>,
}

/// A workload of any type that can be measured.
pub trait AnyWorkload: Sync {
    /// Returns the name under which results are reported.
    fn name(&self) -> String;

    /// Returns the names of the workload's transaction types.
    fn kinds(&self) -> &'static [&'static str];

    /// Returns the names of the workload's tables.
    fn tables(&self) -> &'static [&'static str];

    /// Returns the total number of keys that loading reports as progress.
    fn keys(&self) -> u64;

    /// Returns an estimate of the memory that the workload takes.
    fn size(&self) -> Size;

    /// Returns the workload's knobs.
    fn params(&self) -> serde_json::Result<serde_json::Value>;

    /// Returns the caveats that a report states.
    fn caveats(&self) -> Vec<&'static str>;

    /// Returns whether the workload's tables grow while it runs.
    fn grows(&self) -> bool;

    /// Returns the changes of the workload during a run; `None` if it does not change.
    fn timeline(&self) -> Option<Timeline>;

    /// Returns the name of the row that transactions use most; `None` if no row is used more than
    /// others.
    fn hottest(&self) -> Option<&'static str>;

    /// Checks that all knobs are in range. The error names the knob that is not, and the values
    /// allowed.
    fn validate(&self) -> Result<(), String>;

    /// Sets up a database that reserves `reserve_bytes` bytes and has its files in `directory`, if
    /// it is to have any; creates the tables and fills them. When this returns, the rows are
    /// durable.
    fn fill(
        &self,
        variant: &Variant,
        reserve_bytes: usize,
        directory: Option<Directory>,
        loading: &Loading<'_>,
    ) -> Result<Box<dyn LoadedDatabase>, FillError>;
}

/// A filled database of any workload and protocol, with an account of the transactions committed to
/// it.
pub trait LoadedDatabase: Send + Sync {
    /// Opens a session for each of the `threads` threads of the next run.
    fn prepare(&self, threads: usize) -> Result<Vec<Box<dyn PreparedWorker + '_>>, Error>;

    /// Begins phase number `phase` of the workload's timeline.
    fn enter_phase(&self, phase: usize);

    /// Returns how many transactions per second the same program commits without transactions; see
    /// [`Loaded::sequential_tps`].
    fn sequential_tps(&self, committed: u64) -> Option<f64>;

    /// Compares the tables with the account of the committed transactions.
    fn check(&self) -> Result<Consistency, candide_workloads::Failure>;

    /// Returns the use of the database's memory.
    fn memory(&self) -> MemoryUse;

    /// Returns the state of the database's files; `None` if it has none.
    fn durability(&self) -> Option<Durability>;

    /// Returns the reason for which the database's log has failed; `None` if it has not.
    fn log_failure(&self) -> Option<Arc<io::Error>>;
}

/// An open session, and the number of the thread that will use the session.
pub trait PreparedWorker: Send {
    /// Makes the worker, calls `body` with it once, and adds the worker's commits to the account.
    ///
    /// The thread that runs the transactions calls this function, so that the worker's memory is
    /// local to that thread.
    fn work(self: Box<Self>, body: &mut dyn FnMut(&mut dyn Worker));
}

/// The reason why a database could not be set up and filled.
#[derive(Debug)]
pub enum FillError {
    /// The database refused its settings.
    Settings(Error),
    /// The files of the database could not be made.
    Opening(OpenError),
    /// The workload could not be loaded.
    Loading(candide_workloads::Failure),
}

impl From<Error> for FillError {
    fn from(error: Error) -> Self {
        FillError::Settings(error)
    }
}

impl From<OpenError> for FillError {
    fn from(error: OpenError) -> Self {
        FillError::Opening(error)
    }
}

impl From<candide_workloads::Failure> for FillError {
    fn from(failure: candide_workloads::Failure) -> Self {
        FillError::Loading(failure)
    }
}

impl fmt::Display for FillError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FillError::Settings(error) => error.fmt(f),
            FillError::Opening(error) => error.fmt(f),
            FillError::Loading(failure) => failure.fmt(f),
        }
    }
}

impl std::error::Error for FillError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            FillError::Settings(error) => error.source(),
            FillError::Opening(error) => error.source(),
            FillError::Loading(failure) => failure.source(),
        }
    }
}

/// Fills a database with the tables of `workload`, and draws the progress of loading. Returns
/// `None` if Ctrl-C was pressed meanwhile.
pub(crate) fn load(
    workload: &dyn AnyWorkload,
    context: &LoadContext<'_>,
) -> Result<Option<Box<dyn LoadedDatabase>>, Failure> {
    let &LoadContext { variant, cores, seed, agenda, reserve_bytes, files } = context;
    let threads = if variant.protocol.permits(cores.count()) { cores.count() } else { 1 };
    let title = format!("loading {} {}", workload.name(), variant.protocol.name());
    let filled = progress::with_bar(agenda, &title, workload.keys(), workload.grows(), |done| {
        let progress = |keys| {
            done.fetch_add(keys, Ordering::Relaxed);
        };
        workload.fill(
            variant,
            reserve_bytes,
            files.map(|files| files.next(&workload.name(), variant.protocol.name())),
            &Loading { threads, seed, progress: &progress, stopped: &interrupt::is_pressed },
        )
    });
    match filled {
        Ok(site) => Ok(Some(site)),
        Err(
            FillError::Loading(candide_workloads::Failure::Stopped)
            | FillError::Settings(Error::Stopped),
        ) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the workload as a trait object, compiled for every protocol.
pub fn measurable<W: Workload + 'static>(workload: W) -> Box<dyn AnyWorkload> {
    Box::new(Known(workload))
}

/// The only implementation of [`AnyWorkload`].
struct Known<W>(W);

impl<W: Workload + 'static> AnyWorkload for Known<W> {
    fn name(&self) -> String {
        self.0.name()
    }

    fn kinds(&self) -> &'static [&'static str] {
        W::KINDS
    }

    fn tables(&self) -> &'static [&'static str] {
        W::TABLES
    }

    fn keys(&self) -> u64 {
        self.0.keys()
    }

    fn size(&self) -> Size {
        self.0.size()
    }

    fn params(&self) -> serde_json::Result<serde_json::Value> {
        serde_json::to_value(&self.0)
    }

    fn caveats(&self) -> Vec<&'static str> {
        self.0.unchecked().into_iter().chain(self.0.differences()).collect()
    }

    fn grows(&self) -> bool {
        self.0.grows()
    }

    fn timeline(&self) -> Option<Timeline> {
        self.0.timeline()
    }

    fn hottest(&self) -> Option<&'static str> {
        self.0.hottest()
    }

    fn validate(&self) -> Result<(), String> {
        self.0.validate()
    }

    fn fill(
        &self,
        variant: &Variant,
        reserve_bytes: usize,
        directory: Option<Directory>,
        loading: &Loading<'_>,
    ) -> Result<Box<dyn LoadedDatabase>, FillError> {
        let protocol = variant.protocol.for_tables(W::TABLES);
        protocol.run(Fill { workload: &self.0, variant, reserve_bytes, directory, loading })
    }
}

struct Fill<'a, W> {
    workload: &'a W,
    variant: &'a Variant,
    reserve_bytes: usize,
    directory: Option<Directory>,
    loading: &'a Loading<'a>,
}

impl<W: Workload + 'static> Job for Fill<'_, W> {
    type Output = Result<Box<dyn LoadedDatabase>, FillError>;

    fn run<P: Protocol>(self, policy: P::Policy) -> Self::Output {
        let Fill { workload, variant, reserve_bytes, directory, loading } = self;
        let builder = variant.builder::<P>(policy, reserve_bytes);
        let db = match &directory {
            Some(directory) => builder.open(directory.path(), directory.options())?,
            None => builder.build_unless(&interrupt::is_pressed)?,
        };
        let loaded = workload.load(&db, loading)?;
        db.sync()?;
        Ok(Box::new(Filled::<P, W> { db, loaded, directory }))
    }
}

impl Variant {
    /// Checks that a database can be set up in this way.
    pub(crate) fn validate(&self) -> Result<(), Failure> {
        let built = self.builder::<Erased>(self.protocol.erased(), 0).build();
        built.map(drop).map_err(|error| Failure::Usage(error.to_string()))
    }

    /// Returns whether commits are counted that OCC would have aborted, and there may be some.
    pub(crate) fn finds_stale_commits(&self) -> bool {
        self.counts_stale && self.protocol.properties().commits_stale()
    }

    /// Returns the builder of an empty database with this setting and the protocol's `policy`.
    fn builder<P: Protocol>(&self, policy: P::Policy, reserve_bytes: usize) -> Builder<P> {
        let builder = Database::<P>::builder().policy(policy).reserve(reserve_bytes);
        let builder = builder.commit_time_updates(self.cu).timestamp_splitting(self.ts);
        let builder = self
            .timestamps
            .into_iter()
            .fold(builder, |builder, timestamps| builder.timestamps(timestamps));
        let builder = self.opaque.into_iter().fold(builder, |builder, on| builder.opaque(on));
        let builder = builder.factors(self.factors.iter().copied());
        builder.count_stale_commits(self.counts_stale)
    }
}

/// The only kind of [`LoadedDatabase`].
pub(crate) struct Filled<P: Protocol, W: Workload> {
    pub(crate) db: Database<P>,
    pub(crate) loaded: W::Loaded<P>,
    /// The directory of the database's files, which goes after the database; `None` if it has none.
    pub(crate) directory: Option<Directory>,
}

impl<P: Protocol, W: Workload> LoadedDatabase for Filled<P, W> {
    fn prepare(&self, threads: usize) -> Result<Vec<Box<dyn PreparedWorker + '_>>, Error> {
        let prepared = |thread| {
            let mut session = self.db.session()?;
            if let Some(directory) = &self.directory {
                session.set_acknowledge(directory.level())?;
            }
            Ok(Box::new(Prepared::<P, W> { loaded: &self.loaded, session, thread })
                as Box<dyn PreparedWorker>)
        };
        let workers = (0..threads).map(prepared).collect::<Result<_, Error>>()?;
        self.loaded.expect_workers(threads);
        Ok(workers)
    }

    fn enter_phase(&self, phase: usize) {
        self.loaded.enter_phase(phase);
    }

    fn sequential_tps(&self, committed: u64) -> Option<f64> {
        self.loaded.sequential_tps(committed, &interrupt::is_pressed)
    }

    fn check(&self) -> Result<Consistency, candide_workloads::Failure> {
        self.loaded.check(self.db.session()?)
    }

    fn memory(&self) -> MemoryUse {
        self.db.memory()
    }

    fn durability(&self) -> Option<Durability> {
        self.db.durability()
    }

    fn log_failure(&self) -> Option<Arc<io::Error>> {
        self.db.log_failure()
    }
}

/// The only kind of [`PreparedWorker`].
struct Prepared<'a, P: Protocol, W: Workload> {
    loaded: &'a W::Loaded<P>,
    session: Session<P>,
    thread: usize,
}

impl<P: Protocol, W: Workload> PreparedWorker for Prepared<'_, P, W> {
    fn work(self: Box<Self>, body: &mut dyn FnMut(&mut dyn Worker)) {
        let Prepared { loaded, session, thread } = *self;
        let mut worker = loaded.worker_unless(session, thread, &interrupt::is_pressed);
        body(&mut worker);
        loaded.absorb(worker);
    }
}
