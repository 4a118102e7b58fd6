//! Loading, running and checking every case of an invocation.

use std::sync::atomic::Ordering;

use candide::{Database, Protocol};
use candide_workloads::{Loaded, Loading, Workload};

use crate::affinity::Cores;
use crate::cli::{Common, Factor};
use crate::driver::{self, Timing};
use crate::failure::Failure;
use crate::machine::Machine;
use crate::measurement::{Measurement, Memory, Setting};
use crate::plan::{Case, Plan};
use crate::progress;
use crate::registry::Job;
use crate::report::Report;

/// The workloads, and the cases to run each of them in.
pub(crate) struct Suite<'a, W> {
    workloads: &'a [W],
    common: &'a Common,
    cores: Cores,
    plan: Plan,
}

impl<'a, W: Workload> Suite<'a, W> {
    /// What the arguments come to, if they make sense.
    pub(crate) fn plan(workloads: &'a [W], common: &'a Common) -> Result<Self, Failure> {
        workloads.iter().try_for_each(Workload::validate).map_err(Failure::Usage)?;
        let cores = Cores::allowed();
        let plan = Plan::new(common, cores.count())?;
        Ok(Suite { workloads, common, cores, plan })
    }

    /// Loads, runs and checks everything.
    pub(crate) fn run(self) -> Result<Report, Failure> {
        let Suite { workloads, common, cores, plan } = self;
        let mut notes = plan.notes;
        let mut results = Vec::new();
        for workload in workloads {
            notes.extend(workload.unchecked().map(|what| format!("{}: {what}", workload.name())));
            for case in &plan.cases {
                results.extend(case.protocol.run(Series { workload, case, common, cores: &cores })?);
            }
        }
        Ok(Report { machine: Machine::inspect(cores.count()), notes, results })
    }
}

/// One database: loaded once, then run and checked with each number of threads.
struct Series<'a, W> {
    workload: &'a W,
    case: &'a Case,
    common: &'a Common,
    cores: &'a Cores,
}

impl<W: Workload> Job for Series<'_, W> {
    type Output = Result<Vec<Measurement>, Failure>;

    fn run<P: Protocol>(self) -> Self::Output {
        let Series { workload, case, common, cores } = self;
        let db = Database::<P>::builder()
            .commit_time_updates(case.cu)
            .timestamp_splitting(case.ts)
            .backoff(!common.factors.contains(&Factor::NoBackoff))
            .sorted_locks(common.factors.contains(&Factor::SortedLocks))
            .build()?;
        let title = format!("{} {}", workload.name(), P::NAME);
        let loaders = if case.protocol.permits(cores.count()) { cores.count() } else { 1 };
        let loaded = progress::with_bar(&format!("loading {title}"), workload.keys(), |done| {
            let progress = |keys| {
                done.fetch_add(keys, Ordering::Relaxed);
            };
            workload.load(&db, &Loading { threads: loaders, seed: common.seed, progress: &progress })
        })?;

        let timing = Timing { warmup: common.warmup, duration: common.duration() };
        let line = progress::line();
        let mut measurements = Vec::new();
        for &threads in &case.threads {
            let mut runs = Vec::new();
            for run in 1..=common.runs() {
                line.set_message(format!("measuring {title} with {threads} threads, run {run} of {}", common.runs()));
                runs.push(driver::run(&db, &loaded, W::KINDS.len(), threads, &timing, cores)?);
            }
            line.set_message(format!("checking {title}"));
            let memory = Memory::now(db.memory().reserved_bytes as u64);
            let consistency = loaded.check(db.session()?)?;
            let setting = Setting { workload, common, case, threads };
            measurements.push(Measurement::new(&setting, &runs, memory, consistency)?);
        }
        line.finish_and_clear();
        Ok(measurements)
    }
}
