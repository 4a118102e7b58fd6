//! Results as tables of text.

use std::io::{self, Write};

use comfy_table::Table;

use super::explained::{Shared, explained_columns};
use super::figure_rows::*;
use super::outcome::outcome;
use super::rows::*;
use super::table::{filled, fit, table, wrapped};
use crate::output::say;
use crate::results::{DOUBTS, Figure, Locks, Measurement, Report, grouped, label};

/// The sentence that explains the ratios of a figure.
const RATIOS: &str = "Ratios are to the line above that has 1, with as many threads: the median of those within each \
                      round.";

/// The sentence in front of the differences from the paper.
const DEVIATIONS: &str = "The words of the paper are those of its text, which does not have the heights of bars and \
                          lines. Here is different:";

/// Prints the tables, and the notes on them. No line has more than a hundred columns, except that
/// each note is one line.
pub(super) fn print(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let results = &report.results;
    let shared = Shared::of(results);
    match &report.figure {
        Some(figure) => print_figure(figure, results, out)?,
        None => print_throughput(report, shared, out)?,
    }
    if finds_causes(report) {
        writeln!(out, "\n{}\n{}", wrapped(CAUSES_TITLE, ""), causes(report, shared))?;
    }
    if looks_at_hottest(report) {
        writeln!(
            out,
            "\n{}\n{}",
            wrapped(HOTTEST_TITLE, ""),
            filled(
                &HOTTEST_HEADER,
                2..8,
                results.iter().filter_map(|result| hottest_row(shared, result))
            )
        )?;
    }
    if report.figure.is_none() && counts_sets(report) {
        writeln!(
            out,
            "\n{}\n{}",
            wrapped(SETS_TITLE, ""),
            filled(&SETS_HEADER, 2..5, results.iter().flat_map(|result| sets_rows(shared, result)))
        )?;
    }
    if report.figure.is_none() && counts_locks(report) {
        let header = [&["setting"], &Locks::NAMES[..]].concat();
        let rows = results.iter().filter_map(|result| locks_row(shared, result));
        let locks = filled(&header, 1..10, rows);
        writeln!(out, "\n{}\n{locks}", wrapped(LOCKS_TITLE, ""))?;
    }
    if has_logs(report) {
        writeln!(
            out,
            "\n{}\n{}",
            wrapped(LOGS_TITLE, ""),
            filled(&LOGS_HEADER, 2..4, results.iter().filter_map(|result| log_row(shared, result)))
        )?;
    }
    if report.figure.is_none() && results.iter().any(|result| result.timeline.is_some()) {
        writeln!(
            out,
            "\n{TIMELINE_TITLE}\n{}",
            filled(
                &TIMELINE_HEADER,
                2..9,
                results.iter().flat_map(|result| timeline_rows(shared, result))
            )
        )?;
    }
    for result in results.iter().filter(|result| !result.slices.is_empty()) {
        let slices = filled(&SLICES_HEADER, 0..10, slice_rows(result));
        let title = format!("{}: {SLICES_TITLE}", label(result));
        writeln!(out, "\n{}\n{slices}", wrapped(&title, ""))?;
    }
    let mut speed_ups = results.iter().filter_map(speed_up_line).peekable();
    if speed_ups.peek().is_some() {
        writeln!(out)?;
    }
    for line in speed_ups {
        writeln!(out, "{}", wrapped(&line, "  "))?;
    }
    if let Some(baseline) = &report.baseline {
        let rows = baseline.changes.iter().map(|change| change_row(shared, report, change));
        writeln!(out, "\n{}", wrapped(&baseline.sentence(), ""))?;
        if !baseline.changes.is_empty() {
            writeln!(out, "{}", filled(&CHANGES_HEADER, 1..3, rows))?;
        }
    }
    for note in report.all_notes() {
        writeln!(out, "note: {note}")?;
    }
    writeln!(out, "\n{}", outcome(report))
}

/// Prints throughput and latencies, and explains the columns.
fn print_throughput(report: &Report, shared: Shared, out: &mut dyn Write) -> io::Result<()> {
    let results = &report.results;
    if let Some(first) = results.first() {
        write!(out, "{}", shared.sentence(first))?;
    }
    let (header, rows, numbers) = throughput_table(results, shared);
    writeln!(
        out,
        "{}\n\n{}\n\nLatencies in µs, {}\n{}",
        filled(&header, numbers, rows),
        explained_columns(),
        report.latency_span(),
        filled(
            &LATENCY_HEADER,
            2..9,
            results.iter().flat_map(|result| latency_rows(shared, result))
        )
    )
}

/// Prints, to standard error, the invariants that did not hold.
pub(super) fn say_failures(report: &Report) {
    for result in &report.results {
        for failure in &result.consistency.failed {
            say(&format!("FAILED: {}: {failure}", label(result)));
        }
    }
}

/// Prints a figure's lines, panel by panel, beside the claims of the paper, and then the
/// differences from the paper.
fn print_figure(figure: &Figure, results: &[Measurement], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}\n{}", wrapped(figure.title, ""), wrapped(figure.source, ""))?;
    for panel in figure.lines.chunk_by(|one, next| one.panel == next.panel) {
        let shown = figure.shows.columns();
        let header = [&FIGURE_HEADER[..], shown].concat();
        let has_base = panel.iter().any(|line| line.base.is_some());
        let rows = panel.iter().flat_map(|line| {
            line.points.iter().map(move |point| {
                let is_base = line.base.is_none() && has_base;
                let held = results[point.result].consistency.failed.is_empty();
                let label =
                    if held { line.label.clone() } else { format!("{}: FAILED", line.label) };
                let cells = figure_row(label, point, is_base);
                cells.into_iter().chain(figure.shows.cells(point))
            })
        });
        let table = filled(&header, 1..header.len(), rows);
        writeln!(out, "\n{}\n{table}", wrapped(panel[0].panel, ""))?;
        let published = panel.iter().filter_map(|line| Some((line, line.published.as_ref()?)));
        for (line, published) in published {
            let words = format!("the paper on {}: {}", line.label, published.text);
            writeln!(out, "{}", wrapped(&words, "  "))?;
        }
    }
    if figure.lines.iter().any(|line| line.base.is_some()) {
        writeln!(out, "\n{}\n{}", wrapped(RATIOS, ""), wrapped(&format!("{DOUBTS}."), ""))?;
    }
    if has_phases(figure) {
        let table = filled(&PHASES_HEADER, 1..7, phase_rows(figure).map(|(_, cells)| cells));
        writeln!(out, "\n{}\n{table}", wrapped(PHASES_TITLE, ""))?;
    }
    if !figure.grades.is_empty() {
        let (header, rows) = grade_table(&figure.grades);
        let table = filled(&header, 0..0, rows);
        writeln!(out, "\n{}\n{table}", wrapped(GRADES_TITLE, ""))?;
    }
    if !figure.verdicts.is_empty() {
        writeln!(out, "\n{VERDICTS_TITLE}")?;
        figure
            .verdicts
            .iter()
            .try_for_each(|verdict| writeln!(out, "{}", wrapped(&verdict_line(verdict), "  ")))?;
        writeln!(out)?;
    }
    writeln!(out, "{}", wrapped(DEVIATIONS, ""))?;
    for deviation in &figure.deviations {
        writeln!(out, "{}", wrapped(&format!("- {deviation}"), "  "))?;
    }
    writeln!(out)
}

/// Returns the table of the first causes of each setting. The files of results have all causes.
fn causes(report: &Report, shared: Shared) -> Table {
    let mut table = table(&CAUSES_HEADER, 1..2);
    for result in &report.results {
        table.add_rows(cause_rows(shared, result).take(CAUSES_SHOWN));
        let others = result.causes.iter().flatten().skip(CAUSES_SHOWN);
        let (kinds, attempts) =
            others.fold((0, 0), |(kinds, sum), cause| (kinds + 1, sum + cause.attempts));
        if kinds > 0 {
            table.add_row([
                shared.label(result),
                grouped(attempts as f64),
                format!("{kinds} other causes"),
            ]);
        }
    }
    fit(&mut table, &CAUSES_HEADER, 1..2);
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample::{Sample, measurement, report};
    use crate::results::{MeasuredLine, Point, Shown};

    const LONG: &str = "a text of many words, and of more words, and of more words, and of more words, and of more words";

    fn expect_narrow(report: &Report) -> String {
        let mut out = Vec::new();
        print(report, &mut out).expect("memory takes everything");
        let text = String::from_utf8(out).expect("text");
        let mut lines = text.lines().filter(|line| !line.starts_with("note: "));
        assert!(lines.all(|line| line.chars().count() <= 100), "{text}");
        text
    }

    fn two_results() -> Report {
        let of = |workload, threads| {
            let sample = Sample { protocol: 0, cu: true, ts: true, threads, tps: 123_456_789.0 };
            measurement(workload, sample)
        };
        report(vec![of("a-workload-of-a-long-name", 1), of("tpcc", 128)])
    }

    #[test]
    fn results_fit_into_a_hundred_columns() {
        let text = expect_narrow(&two_results());
        assert!(text.contains(" 123,456,789 "), "numbers are not broken: {text}");
    }

    #[test]
    fn figures_fit_into_a_hundred_columns() {
        let mut report = two_results();
        let point = Point {
            threads: 2,
            throughput_tps: 123_456_789.0,
            tps_runs: vec![123_456_788.0, 123_456_790.0],
            of_base: Some(0.5),
            ratio_runs: vec![0.5, 0.5],
            doubt: None,
            core_share: None,
            abort_ratio: 0.25,
            sets: None,
            read_set_of_base: None,
            p999_us: Some(1_234_567.0),
            latency_us: None,
            table_bytes: None,
            of_sequential: None,
            involuntary_switches: Some(12_345.0),
            phases: Vec::new(),
            locks_taken: 0,
            result: 0,
            of: (0, 0),
        };
        report.figure = Some(Figure {
            name: "delivery",
            title: LONG,
            source: LONG,
            lines: vec![MeasuredLine {
                panel: LONG,
                label: LONG.to_string(),
                counted: None,
                base: Some("a base".to_string()),
                published: None,
                points: vec![point],
            }],
            verdicts: Vec::new(),
            grades: Vec::new(),
            shows: Shown::Tails,
            deviations: vec![LONG.to_string()],
        });
        let text = expect_narrow(&report);
        assert!(text.contains(" 123,456,789 ") && text.contains(" 0.50 "), "{text}");
    }
}
