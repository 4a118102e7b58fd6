//! Loading, running and checking every case of an invocation.

use std::sync::atomic::Ordering;

use candide::{Database, Protocol};
use candide_workloads::{Consistency, Loaded, Loading, Workload};

use crate::affinity::Cores;
use crate::cli::Common;
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
            for what in workload.unchecked().into_iter().chain(workload.differences()) {
                let note = format!("{}: {what}", workload.name());
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
            for case in &plan.cases {
                results.extend(case.protocol.run(Series { workload, case, common, cores: &cores })?);
            }
        }
        Ok(Report { machine: Machine::inspect(cores.count()), notes, results })
    }
}

/// One setting: loaded, then run and checked with each number of threads. A workload that grows begins anew for each run, so
/// that later ones do not work on larger tables.
struct Series<'a, W> {
    workload: &'a W,
    case: &'a Case,
    common: &'a Common,
    cores: &'a Cores,
}

impl<W: Workload> Job for Series<'_, W> {
    type Output = Result<Vec<Measurement>, Failure>;

    fn run<P: Protocol>(self) -> Self::Output {
        let Series { workload, case, common, .. } = self;
        let timing = Timing { warmup: common.warmup, duration: common.duration(), timeline: workload.timeline() };
        let mut database = None;
        let mut measurements = Vec::new();
        for &threads in &case.threads {
            let (mut runs, mut consistency, mut memory) = (Vec::new(), Consistency::default(), None);
            for run in 1..=common.runs() {
                let (db, loaded) = match &mut database {
                    Some(database) => database,
                    none => none.insert(self.load::<P>()?),
                };
                let line = progress::line();
                let title = format!("{} {}", workload.name(), P::NAME);
                line.set_message(format!("measuring {title} with {threads} threads, run {run} of {}", common.runs()));
                runs.push(driver::run(db, loaded, W::KINDS.len(), threads, &timing, self.cores)?);
                if run == common.runs() || workload.grows() {
                    line.set_message(format!("checking {title}"));
                    memory = Some(Memory::now(db.memory().reserved_bytes as u64));
                    consistency.merge(loaded.check(db.session()?)?);
                }
                line.finish_and_clear();
                if workload.grows() {
                    database = None;
                }
            }
            let setting = Setting { workload, common, case, threads };
            let memory = memory.expect("there is a last run");
            measurements.push(Measurement::new(&setting, &runs, memory, consistency)?);
        }
        Ok(measurements)
    }
}

impl<W: Workload> Series<'_, W> {
    /// A database with the workload's tables, filled.
    fn load<P: Protocol>(&self) -> Result<(Database<P>, W::Loaded<P>), Failure> {
        let Series { workload, case, common, cores } = self;
        let builder = Database::<P>::builder().commit_time_updates(case.cu).timestamp_splitting(case.ts);
        let db = builder.factors(common.factors.iter().copied()).build()?;
        let loaders = if case.protocol.permits(cores.count()) { cores.count() } else { 1 };
        let title = format!("loading {} {}", workload.name(), P::NAME);
        let loaded = progress::with_bar(&title, workload.keys(), |done| {
            let progress = |keys| {
                done.fetch_add(keys, Ordering::Relaxed);
            };
            workload.load(&db, &Loading { threads: loaders, seed: common.seed, progress: &progress })
        })?;
        Ok((db, loaded))
    }
}
