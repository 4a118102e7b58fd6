//! Workloads and databases behind trait objects: whatever does not need to know which workload it is, under which protocol, is
//! compiled once.

use std::sync::atomic::Ordering;

use candide::{Database, Factor, Protocol, Timestamps};
use candide_workloads::{Consistency, Loaded, Loading, Timeline, Workload};

use crate::affinity::Cores;
use crate::driver::{self, Run, Timing};
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::{self, Agenda, Clock};
use crate::registry::{Choice, Job};

/// How a database is set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Variant {
    pub(crate) protocol: Choice,
    /// Commit-time updates.
    pub(crate) cu: bool,
    /// Timestamp splitting.
    pub(crate) ts: bool,
    /// Where timestamps come from, if the protocol leaves a choice.
    pub(crate) timestamps: Option<Timestamps>,
    pub(crate) factors: Vec<Factor>,
}

/// What loading needs to know.
pub(crate) struct Filling<'a> {
    pub(crate) variant: &'a Variant,
    pub(crate) cores: &'a Cores,
    pub(crate) seed: u64,
    pub(crate) agenda: &'a Agenda,
}

/// A workload, whichever it is.
pub(crate) trait Subject {
    fn name(&self) -> String;

    /// The names of its transaction types.
    fn kinds(&self) -> &'static [&'static str];

    /// Its knobs.
    fn params(&self) -> Result<serde_json::Value, Failure>;

    /// What a report has to admit.
    fn admissions(&self) -> Vec<&'static str>;

    fn grows(&self) -> bool;

    fn timeline(&self) -> Option<Timeline>;

    /// The row that its transactions want most, if one stands out.
    fn hottest(&self) -> Option<&'static str>;

    fn validate(&self) -> Result<(), String>;

    /// A database with its tables, filled; `None` if Ctrl-C was pressed meanwhile.
    fn load(&self, filling: &Filling<'_>) -> Result<Option<Box<dyn Site>>, Failure>;
}

/// A database with a workload's tables, whichever they are.
pub(crate) trait Site: Sync {
    /// Runs the workload on so many threads.
    fn run(&self, threads: usize, timing: &Timing, cores: &Cores, clock: &Clock) -> Result<Run, Failure>;

    /// Compares the tables with what was committed.
    fn check(&self) -> Result<Consistency, candide_workloads::Failure>;

    /// What the database has reserved.
    fn reserved_bytes(&self) -> u64;
}

impl<W: Workload + 'static> Subject for W {
    fn name(&self) -> String {
        Workload::name(self)
    }

    fn kinds(&self) -> &'static [&'static str] {
        W::KINDS
    }

    fn params(&self) -> Result<serde_json::Value, Failure> {
        Ok(serde_json::to_value(self)?)
    }

    fn admissions(&self) -> Vec<&'static str> {
        self.unchecked().into_iter().chain(self.differences()).collect()
    }

    fn grows(&self) -> bool {
        Workload::grows(self)
    }

    fn timeline(&self) -> Option<Timeline> {
        Workload::timeline(self)
    }

    fn hottest(&self) -> Option<&'static str> {
        Workload::hottest(self)
    }

    fn validate(&self) -> Result<(), String> {
        Workload::validate(self)
    }

    fn load(&self, filling: &Filling<'_>) -> Result<Option<Box<dyn Site>>, Failure> {
        filling.variant.protocol.run(Load { workload: self, filling })
    }
}

struct Load<'a, W> {
    workload: &'a W,
    filling: &'a Filling<'a>,
}

impl<W: Workload + 'static> Job for Load<'_, W> {
    type Output = Result<Option<Box<dyn Site>>, Failure>;

    fn run<P: Protocol>(self, policy: P::Policy) -> Self::Output {
        let Load { workload, filling: &Filling { variant, cores, seed, agenda } } = self;
        let builder = Database::<P>::builder().policy(policy);
        let builder = builder.commit_time_updates(variant.cu).timestamp_splitting(variant.ts);
        let builder =
            variant.timestamps.into_iter().fold(builder, |builder, timestamps| builder.timestamps(timestamps));
        let db = builder.factors(variant.factors.iter().copied()).build()?;
        let threads = if variant.protocol.permits(cores.count()) { cores.count() } else { 1 };
        let title = format!("loading {} {}", Workload::name(workload), variant.protocol.name());
        let loaded = progress::with_bar(agenda, &title, workload.keys(), |done| {
            let progress = |keys| {
                done.fetch_add(keys, Ordering::Relaxed);
            };
            workload.load(&db, &Loading { threads, seed, progress: &progress, stopped: &interrupt::is_pressed })
        });
        match loaded {
            Ok(loaded) => Ok(Some(Box::new(Filled::<P, W> { db, loaded }))),
            Err(candide_workloads::Failure::Stopped) => Ok(None),
            Err(failure) => Err(failure.into()),
        }
    }
}

/// The only kind of [`Site`].
struct Filled<P: Protocol, W: Workload> {
    db: Database<P>,
    loaded: W::Loaded<P>,
}

impl<P: Protocol, W: Workload> Site for Filled<P, W> {
    fn run(&self, threads: usize, timing: &Timing, cores: &Cores, clock: &Clock) -> Result<Run, Failure> {
        driver::run(&self.db, &self.loaded, W::KINDS.len(), threads, timing, cores, clock)
    }

    fn check(&self) -> Result<Consistency, candide_workloads::Failure> {
        self.loaded.check(self.db.session()?)
    }

    fn reserved_bytes(&self) -> u64 {
        self.db.memory().reserved_bytes as u64
    }
}
