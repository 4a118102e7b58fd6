//! Loading, running and checking every case of a benchmark.

mod plan;

use crate::any_workload::AnyWorkload;
use crate::failure::Failure;
use crate::progress::Agenda;
use crate::results::{Machine, Report};
use crate::rules::Rules;
use crate::run::{Experiment, Turn, admit, expect_few, expect_room};
use plan::{Case, Plan};
pub use plan::{Matrix, crowding, unconcerned};

/// The workloads, and the cases in which each workload is run.
pub struct Suite<'a> {
    workloads: Vec<&'a dyn AnyWorkload>,
    rules: Rules,
    plan: Plan,
}

impl<'a> Suite<'a> {
    /// Plans to run each of the workloads with each combination of settings in `matrix`. Returns an
    /// error if a workload or setting is not valid.
    pub fn plan(
        workloads: &'a [Box<dyn AnyWorkload>],
        matrix: &Matrix,
        rules: Rules,
    ) -> Result<Self, Failure> {
        let workloads: Vec<&dyn AnyWorkload> = workloads.iter().map(Box::as_ref).collect();
        workloads.iter().try_for_each(|workload| workload.validate()).map_err(Failure::Usage)?;
        workloads.iter().try_for_each(|workload| {
            matrix.protocols.expect_tables(&workload.name(), workload.tables())
        })?;
        if rules.hottest {
            workloads.iter().try_for_each(|workload| expect_hottest(*workload))?;
        }
        let plan = Plan::new(matrix, rules.cores.count())?;
        expect_few(rules.slice, rules.duration)?;
        let most =
            plan.cases.iter().flat_map(|case| case.threads.iter().copied()).max().unwrap_or(1);
        workloads.iter().try_for_each(|workload| expect_room(*workload, most, None, &rules))?;
        Ok(Suite { workloads, rules, plan })
    }

    /// Loads, runs and checks each workload in each case, one after another.
    pub fn run(self) -> Result<Report, Failure> {
        let Suite { workloads, rules, plan } = self;
        let mut notes = plan.notes;
        let has_deltas = |case: &Case| case.variant.protocol.has_deltas();
        if rules.files.is_some() && plan.cases.iter().any(has_deltas) {
            notes.push(NO_DELTAS.to_string());
        }
        admit(&mut notes, workloads.iter().copied());
        let turns: usize = plan.cases.iter().map(|case| case.threads.len()).sum();
        let mut agenda =
            Agenda::new(workloads.len() * turns * rules.runs, rules.warmup + rules.duration);
        let mut results = Vec::new();
        let mut ended_early = false;
        let cases = workloads
            .iter()
            .flat_map(|&workload| plan.cases.iter().map(move |case| (workload, case)));
        for (workload, case) in cases {
            if ended_early {
                break;
            }
            let mut experiment = Experiment::new(workload, case.variant.clone(), &case.threads);
            let turns = (0..experiment.len()).flat_map(|index| (0..rules.runs).map(move |_| index));
            for index in turns {
                if experiment.turn(index, &rules, &agenda)? == Turn::EndedEarly {
                    experiment.close(&agenda)?;
                    ended_early = true;
                    break;
                }
                agenda.advance();
            }
            results.extend(experiment.into_measurements(&rules)?.into_iter().flatten());
        }
        Report::new(Machine::inspect(rules.cores.count()), notes, results, ended_early)
    }
}

/// The note on results under `mvto` if its databases have logs.
const NO_DELTAS: &str = "mvto defers no update in a database with a log, since the log contains results: there are no deltas, and every update reads its row at commit";

/// Returns an error if `workload` has no hottest row.
fn expect_hottest(workload: &dyn AnyWorkload) -> Result<(), Failure> {
    let name = workload.name();
    workload.hottest().map(drop).ok_or_else(|| {
        Failure::Usage(format!(
            "{name} has no hottest row with these knobs, since many rows are equally hot; leave --hottest out, or draw keys with more skew"
        ))
    })
}
