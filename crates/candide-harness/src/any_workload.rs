//! Workloads and databases behind trait objects, so that code which needs neither the workload's
//! type nor the protocol is compiled once. The code below [`measurable`] is compiled for each
//! workload and protocol.

use std::fmt;
use std::sync::atomic::Ordering;

use candide::experiments::{Factor, Timestamps};
use candide::{Database, Erased, Error, Protocol, Session};
use candide_workloads::{Consistency, Loaded, Loading, Size, Timeline, Worker, Workload};

use crate::affinity::Cores;
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::{self, Agenda};
use crate::registry::{Choice, Job};

/// The setting of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    /// The protocol.
    pub protocol: Choice,
    /// Commit-time updates.
    pub cu: bool,
    /// Timestamp splitting.
    pub ts: bool,
    /// The source of timestamps, if the protocol leaves a choice.
    pub timestamps: Option<Timestamps>,
    /// Bad choices.
    pub factors: Vec<Factor>,
}

/// The parameters of a load.
pub(crate) struct LoadContext<'a> {
    pub(crate) variant: &'a Variant,
    pub(crate) cores: &'a Cores,
    pub(crate) seed: u64,
    pub(crate) agenda: &'a Agenda,
}

/// A workload of any type that can be measured.
pub trait AnyWorkload: Sync {
    /// Returns the name to report results under.
    fn name(&self) -> String;

    /// Returns the names of its transaction types.
    fn kinds(&self) -> &'static [&'static str];

    /// Returns how many keys loading it counts.
    fn keys(&self) -> u64;

    /// Returns about how much memory it takes.
    fn size(&self) -> Size;

    /// Returns its knobs.
    fn params(&self) -> serde_json::Result<serde_json::Value>;

    /// Returns the caveats that a report states.
    fn caveats(&self) -> Vec<&'static str>;

    /// Returns whether its tables grow while it runs.
    fn grows(&self) -> bool;

    /// Returns the changes of the workload during a run; `None` if it does not change.
    fn timeline(&self) -> Option<Timeline>;

    /// Returns the row that its transactions use most; `None` if no row is used more than others.
    fn hottest(&self) -> Option<&'static str>;

    /// Says which knob is out of range and which values it may have.
    fn validate(&self) -> Result<(), String>;

    /// Sets up a database, creates the tables and fills them.
    fn fill(
        &self,
        variant: &Variant,
        loading: &Loading<'_>,
    ) -> Result<Box<dyn LoadedDatabase>, FillError>;
}

/// A filled database of any workload and protocol, with the account of what was committed to it.
pub trait LoadedDatabase: Send + Sync {
    /// Opens a session for each of `threads` threads, which are the workers of the next round.
    fn prepare(&self, threads: usize) -> Result<Vec<Box<dyn PreparedWorker + '_>>, Error>;

    /// Begins a phase of the workload's timeline.
    fn enter_phase(&self, phase: usize);

    /// Compares the tables with the account of what was committed.
    fn check(&self) -> Result<Consistency, candide_workloads::Failure>;

    /// Returns how many bytes the database has reserved.
    fn reserved_bytes(&self) -> u64;
}

/// An open session, and the number of the thread that is going to use it.
pub trait PreparedWorker: Send {
    /// Makes the worker, calls `body` with it once, and adds the worker's commits to the account.
    ///
    /// The thread that runs the transactions calls this, so that the worker's memory is local to
    /// it.
    fn work(self: Box<Self>, body: &mut dyn FnMut(&mut dyn Worker));
}

/// Why a database could not be set up and filled.
#[derive(Debug)]
pub enum FillError {
    /// The database refused its settings.
    Settings(Error),
    /// The workload could not be loaded.
    Loading(candide_workloads::Failure),
}

impl From<Error> for FillError {
    fn from(error: Error) -> Self {
        FillError::Settings(error)
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
            FillError::Loading(failure) => failure.fmt(f),
        }
    }
}

impl std::error::Error for FillError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            FillError::Settings(error) => error.source(),
            FillError::Loading(failure) => failure.source(),
        }
    }
}

/// Fills a database with the tables of `workload` and draws how far that is; returns `None` if
/// Ctrl-C was pressed meanwhile.
pub(crate) fn load(
    workload: &dyn AnyWorkload,
    context: &LoadContext<'_>,
) -> Result<Option<Box<dyn LoadedDatabase>>, Failure> {
    let &LoadContext { variant, cores, seed, agenda } = context;
    let threads = if variant.protocol.permits(cores.count()) { cores.count() } else { 1 };
    let title = format!("loading {} {}", workload.name(), variant.protocol.name());
    let filled = progress::with_bar(agenda, &title, workload.keys(), workload.grows(), |done| {
        let progress = |keys| {
            done.fetch_add(keys, Ordering::Relaxed);
        };
        workload.fill(
            variant,
            &Loading { threads, seed, progress: &progress, stopped: &interrupt::is_pressed },
        )
    });
    match filled {
        Ok(site) => Ok(Some(site)),
        Err(FillError::Loading(candide_workloads::Failure::Stopped)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the workload as a trait object, compiled for every protocol.
pub fn measurable<W: Workload + 'static>(workload: W) -> Box<dyn AnyWorkload> {
    Box::new(Known(workload))
}

/// The only kind of [`AnyWorkload`].
struct Known<W>(W);

impl<W: Workload + 'static> AnyWorkload for Known<W> {
    fn name(&self) -> String {
        self.0.name()
    }

    fn kinds(&self) -> &'static [&'static str] {
        W::KINDS
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
        loading: &Loading<'_>,
    ) -> Result<Box<dyn LoadedDatabase>, FillError> {
        variant.protocol.run(Fill { workload: &self.0, variant, loading })
    }
}

struct Fill<'a, W> {
    workload: &'a W,
    variant: &'a Variant,
    loading: &'a Loading<'a>,
}

impl<W: Workload + 'static> Job for Fill<'_, W> {
    type Output = Result<Box<dyn LoadedDatabase>, FillError>;

    fn run<P: Protocol>(self, policy: P::Policy) -> Self::Output {
        let Fill { workload, variant, loading } = self;
        let db = variant.build::<P>(policy)?;
        let loaded = workload.load(&db, loading)?;
        Ok(Box::new(Filled::<P, W> { db, loaded }))
    }
}

impl Variant {
    /// Checks that a database can be set up in this way.
    pub(crate) fn validate(&self) -> Result<(), Failure> {
        let built = self.build::<Erased>(self.protocol.erased());
        built.map(drop).map_err(|error| Failure::Usage(error.to_string()))
    }

    /// Returns an empty database that is set up in this way.
    fn build<P: Protocol>(&self, policy: P::Policy) -> Result<Database<P>, Error> {
        let builder = Database::<P>::builder().policy(policy);
        let builder = builder.commit_time_updates(self.cu).timestamp_splitting(self.ts);
        let builder = self
            .timestamps
            .into_iter()
            .fold(builder, |builder, timestamps| builder.timestamps(timestamps));
        builder.factors(self.factors.iter().copied()).build()
    }
}

/// The only kind of [`LoadedDatabase`].
pub(crate) struct Filled<P: Protocol, W: Workload> {
    pub(crate) db: Database<P>,
    pub(crate) loaded: W::Loaded<P>,
}

impl<P: Protocol, W: Workload> LoadedDatabase for Filled<P, W> {
    fn prepare(&self, threads: usize) -> Result<Vec<Box<dyn PreparedWorker + '_>>, Error> {
        let prepared = |thread| {
            let session = self.db.session()?;
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

    fn check(&self) -> Result<Consistency, candide_workloads::Failure> {
        self.loaded.check(self.db.session()?)
    }

    fn reserved_bytes(&self) -> u64 {
        self.db.memory().reserved_bytes as u64
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
