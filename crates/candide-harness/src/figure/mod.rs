//! Measures the content of a published figure. The claims of the paper's text and the differences
//! from the paper are shown beside the results.
//!
//! Every case is run once in each round, and results are compared within a round. So a time at
//! which the machine is slow affects all lines alike.

mod claim;
mod grade;
mod outcome;
mod outline;

use crate::failure::Failure;
use crate::progress::Agenda;
use crate::results::{Figure, Machine, Report};
pub use crate::results::{Published, Shown};
use crate::rules::Rules;
use crate::run::{Experiment, Turn, admit, expect_room};
pub use claim::{Claim, Compared, Quantity};
pub use grade::Graded;
pub use outline::{Case, Line, Opacity, Outline, Panel, Workload, plain};

impl Outline {
    /// Returns an error if a case is estimated to take more memory than is free, unless
    /// `rules.force` is set.
    pub fn expect_room(&self, rules: &Rules) -> Result<(), Failure> {
        self.cases.iter().try_for_each(|case| {
            let most = case.threads.iter().copied().max().unwrap_or(1);
            expect_room(&*case.workload, most, Some("a lower --scale or fewer --threads"), rules)
        })
    }

    /// Measures the figure. The report includes `notes`.
    pub fn measure(self, rules: &Rules, mut notes: Vec<String>) -> Result<Report, Failure> {
        admit(&mut notes, self.cases.iter().map(|case| &*case.workload));
        let cases = self.cases.iter();
        let mut experiments: Vec<_> = cases
            .map(|case| Experiment::new(&*case.workload, case.variant.clone(), &case.threads))
            .collect();
        let turns: usize = experiments.iter().map(Experiment::len).sum();
        let mut agenda = Agenda::new(turns * rules.runs, rules.warmup + rules.duration);
        let ended_early = rounds(&mut experiments, rules, &mut agenda)? == Turn::EndedEarly;
        let mut figure = Figure::new(&self, &experiments);
        let mut results = Vec::new();
        for (case, experiment) in experiments.into_iter().enumerate() {
            for (index, measurement) in experiment.into_measurements(rules)?.into_iter().enumerate()
            {
                if let Some(measurement) = measurement {
                    figure.link(case, index, results.len());
                    results.push(measurement);
                }
            }
        }
        let mut report =
            Report::new(Machine::inspect(rules.cores.count()), notes, results, ended_early)?;
        report.figure = Some(figure);
        Ok(report)
    }
}

/// Runs all cases, round by round. Only one database exists at a time, so that each may be as large
/// as memory permits.
fn rounds(
    experiments: &mut [Experiment<'_>],
    rules: &Rules,
    agenda: &mut Agenda,
) -> Result<Turn, Failure> {
    for _ in 0..rules.runs {
        for experiment in experiments.iter_mut() {
            for index in 0..experiment.len() {
                if experiment.turn(index, rules, agenda)? == Turn::EndedEarly {
                    experiment.close(agenda)?;
                    return Ok(Turn::EndedEarly);
                }
                agenda.advance();
            }
            experiment.close(agenda)?;
        }
    }
    Ok(Turn::Whole)
}
