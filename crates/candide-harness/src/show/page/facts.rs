//! The facts of a report: the workloads, the machine, the program, and the outcome of the checks.

use super::comparison::Comparison;
use super::markup::{escape, folded, list};
use super::number::{count, counted};
use crate::results::{Report, label};

/// The largest number of notes on single results that are shown unfolded.
const FEW: usize = 4;

/// Returns the head of the page.
pub(crate) fn head(report: &Report, comparisons: &[Comparison<'_>]) -> String {
    let failed = report.results.iter().flat_map(|result| {
        result.consistency.failed.iter().map(move |failure| format!("{}: {failure}", label(result)))
    });
    let told = report.results.iter().flat_map(|result| {
        result.consistency.notes.iter().map(move |note| format!("{}: {note}", label(result)))
    });
    let told: Vec<String> = told.collect();
    let told = match told.len() {
        0..=FEW => list("notes", told.into_iter()),
        many => folded(&counted(many, "note"), &list("notes", told.into_iter())),
    };
    format!(
        "<header>\n<h1>Candide: {}</h1>\n<p>{}</p>\n{}{}{}</header>\n",
        escape(&title(comparisons)),
        escape(&extent(report)),
        verdict(report),
        list("failed", failed),
        list("notes", report.notes.iter().cloned()) + &told,
    )
}

/// Returns a short description of the measurement.
pub(crate) fn title(comparisons: &[Comparison<'_>]) -> String {
    match comparisons {
        [] => "nothing measured".to_string(),
        [comparison] => comparison.title.clone(),
        [first, others @ ..] => {
            format!("{} and {}", first.title, counted(others.len(), "other workload"))
        }
    }
}

fn extent(report: &Report) -> String {
    let runs = report.results.iter().map(|result| result.tps_runs.len()).max().unwrap_or(0);
    let seconds: f64 = report.results.iter().map(|result| result.duration_s).sum();
    format!(
        "{} of {}, measured for {seconds:.1} s in all, on {} ({}), {}.",
        counted(report.results.len(), "setting"),
        counted(runs, "run"),
        report.machine.cpu,
        counted(report.machine.cores, "core"),
        report.machine.time,
    )
}

fn verdict(report: &Report) -> String {
    let examined: usize = report.results.iter().map(|result| result.consistency.checked).sum();
    match report.is_consistent() {
        true => format!("<p class=\"held\">Every invariant held: {} examined.</p>\n", count(examined as u64)),
        false => "<p class=\"failed\">Invariants failed. The figures of a database that is wrong mean nothing:</p>\n"
            .to_string(),
    }
}

/// Returns the section on the machine and the program.
pub(crate) fn machine(report: &Report) -> String {
    let machine = &report.machine;
    let facts = [
        ("processor", machine.cpu.as_str()),
        ("cores this process may use", &machine.cores.to_string()),
        ("system", &machine.os),
        ("kernel", &machine.kernel),
        ("huge pages", &machine.thp),
        ("allocator", machine.allocator),
        ("compiler", machine.rustc),
        ("commit", machine.commit.as_deref().unwrap_or("unknown")),
        ("time", &machine.time),
    ];
    let facts = facts
        .map(|(name, value)| format!("<div><dt>{name}</dt><dd>{}</dd></div>\n", escape(value)));
    format!("<dl class=\"facts\">\n{}</dl>\n", facts.concat())
}
