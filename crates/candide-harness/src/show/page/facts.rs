//! The facts of a report: the workloads, the machine, the program, and the outcome of the checks.

use super::super::outcome::outcome;
use super::comparison::Comparison;
use super::markup::{escape, list};
use super::number::{count, counted};
use crate::results::{Noise, Report, label};

/// Returns the head of the page.
pub(crate) fn head(report: &Report, comparisons: &[Comparison<'_>]) -> String {
    let failed = report.results.iter().flat_map(|result| {
        result.consistency.failed.iter().map(move |failure| format!("{}: {failure}", label(result)))
    });
    format!(
        "<header>\n<h1>Candide: {}</h1>\n<p class=\"came\">{}</p>\n<p>{}</p>\n{}{}{}</header>\n",
        escape(&title(report, comparisons)),
        escape(&outcome(report).replace('\n', " ")),
        escape(&extent(report)),
        verdict(report),
        list("failed", failed),
        noise(report),
    )
}

/// Returns the verdict on noise; an empty text if the system does not report what it needs.
fn noise(report: &Report) -> String {
    Noise::of(report).map_or_else(String::new, |noise| {
        let class = if noise.is_quiet { "quiet" } else { "noisy" };
        format!("<p class=\"{class}\">{}</p>\n", escape(&noise.words))
    })
}

/// Returns the notes on the results, and what differs from the published figure.
pub(crate) fn notes(report: &Report) -> String {
    let deviations = report.figure.as_ref().map_or(String::new(), |figure| {
        format!(
            "<h3>Differences from the published figure</h3>\n{}",
            list("notes", figure.deviations.iter().cloned())
        )
    });
    let notes = list("notes", report.all_notes().into_iter());
    match (deviations.is_empty(), notes.is_empty()) {
        (_, true) => deviations,
        (true, false) => notes,
        (false, false) => format!("{deviations}<h3>On the results</h3>\n{notes}"),
    }
}

/// Returns a short description of the measurement: the figure that it reproduces, or else the
/// workloads.
pub(crate) fn title(report: &Report, comparisons: &[Comparison<'_>]) -> String {
    if let Some(figure) = &report.figure {
        return figure.title.to_string();
    }
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
