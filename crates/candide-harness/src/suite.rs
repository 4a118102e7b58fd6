//! Loading, running and checking every case of a benchmark.

use crate::failure::Failure;
use crate::machine::Machine;
use crate::plan::{Matrix, Plan};
use crate::progress::Agenda;
use crate::report::Report;
use crate::room::expect_room;
use crate::slices;
use crate::stand::{Rules, Stand, Turn};
use crate::subject::Subject;

/// The workloads, and the cases to run each of them in.
pub struct Suite<'a> {
    subjects: Vec<&'a dyn Subject>,
    rules: Rules,
    plan: Plan,
}

impl<'a> Suite<'a> {
    /// Plans to run each of the workloads with each of the settings, if they make sense.
    pub fn plan(
        subjects: &'a [Box<dyn Subject>],
        matrix: &Matrix,
        rules: Rules,
    ) -> Result<Self, Failure> {
        let subjects: Vec<&dyn Subject> = subjects.iter().map(Box::as_ref).collect();
        subjects.iter().try_for_each(|subject| subject.validate()).map_err(Failure::Usage)?;
        if rules.hottest {
            subjects.iter().try_for_each(|subject| expect_hottest(*subject))?;
        }
        let plan = Plan::new(matrix, rules.cores.count())?;
        slices::expect_few(rules.slice, rules.duration)?;
        let most =
            plan.cases.iter().flat_map(|case| case.threads.iter().copied()).max().unwrap_or(1);
        subjects.iter().try_for_each(|subject| expect_room(*subject, most, None, &rules))?;
        Ok(Suite { subjects, rules, plan })
    }

    /// Loads, runs and checks everything, one case after the other.
    pub fn run(self) -> Result<Report, Failure> {
        let Suite { subjects, rules, plan } = self;
        let mut notes = plan.notes;
        admit(&mut notes, subjects.iter().copied());
        let turns: usize = plan.cases.iter().map(|case| case.threads.len()).sum();
        let mut agenda =
            Agenda::new(subjects.len() * turns * rules.runs, rules.warmup + rules.duration);
        let mut results = Vec::new();
        let mut ended_early = false;
        let cases =
            subjects.iter().flat_map(|&subject| plan.cases.iter().map(move |case| (subject, case)));
        for (subject, case) in cases {
            if ended_early {
                break;
            }
            let mut stand = Stand::new(subject, case.variant.clone(), &case.threads);
            let turns = (0..stand.len()).flat_map(|index| (0..rules.runs).map(move |_| index));
            for index in turns {
                if stand.turn(index, &rules, &agenda)? == Turn::EndedEarly {
                    stand.close(&agenda)?;
                    ended_early = true;
                    break;
                }
                agenda.advance();
            }
            results.extend(stand.into_measurements(&rules)?.into_iter().flatten());
        }
        Report::new(Machine::inspect(rules.cores.count()), notes, results, ended_early)
    }
}

/// It is an error if a workload has no row that can be looked at as its hottest.
fn expect_hottest(subject: &dyn Subject) -> Result<(), Failure> {
    let name = subject.name();
    subject.hottest().map(drop).ok_or_else(|| {
        Failure::Usage(format!(
            "{name} has no hottest row with these knobs, since it wants many rows alike; leave --hottest out, or draw keys with more skew"
        ))
    })
}

/// Adds what the workloads leave out or do otherwise to the notes, each thing once.
pub(crate) fn admit<'a>(
    notes: &mut Vec<String>,
    subjects: impl IntoIterator<Item = &'a dyn Subject>,
) {
    for subject in subjects {
        for what in subject.admissions() {
            let note = format!("{}: {what}", subject.name());
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
}
