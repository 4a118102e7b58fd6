//! The published figure that a report reproduces: the measurements by the figure's panels and
//! lines, beside the claims of the paper's text.

use super::super::rows::{
    GRADES_TITLE, PHASES_HEADER, PHASES_TITLE, VERDICTS_TITLE, grade_table, has_phases, phase_rows,
};
use super::charts;
use super::markup::{Cell, Row, escape, list, section, table};
use super::number::{counted, percent, rate, times};
use crate::results::{Figure, MeasuredLine, Point, Report};

/// The columns of the tables.
const HEADER: [&str; 8] = [
    "line",
    "threads ",
    "txn/s (median) ",
    "slowest ",
    "fastest ",
    "ratio ",
    "aborted attempts ",
    "the paper",
];

/// The explanation of ratios, for figures that have ratios.
const RATIOS: &str = "Each ratio is to the line of the same panel that has no ratio, with as many threads: the median of the ratios within each round.";

/// Returns the section; `None` if the report reproduces no figure.
pub(crate) fn figure(report: &Report) -> Option<String> {
    let figure = report.figure.as_ref()?;
    let panels: String = panels(figure).map(|panel| part(report, figure, panel)).collect();
    let ratios = if figure.lines.iter().any(|line| line.base.is_some()) { RATIOS } else { "" };
    let body = format!(
        "<p>{}. What its text says of a line stands beside it; heights of bars and lines are not in a text. {ratios}</p>\n{panels}\
         {}{}{}<h3>In what this differs from the published figure</h3>\n{}",
        escape(figure.source),
        phases(figure),
        grades(figure),
        verdicts(figure),
        list("notes", figure.deviations.iter().cloned()),
    );
    Some(section("figure", figure.title, &body))
}

/// Returns the table of the phases by name; an empty text if no line has phases.
fn phases(figure: &Figure) -> String {
    if !has_phases(figure) {
        return String::new();
    }
    let header: Vec<String> = PHASES_HEADER
        .into_iter()
        .map(
            |name| {
                if ["line", "phases"].contains(&name) { name.into() } else { format!("{name} ") }
            },
        )
        .collect();
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let rows = phase_rows(figure).map(|(result, [line, threads, phase, numbers @ ..])| {
        let words = [Cell::text(line), Cell::derived(threads), Cell::text(phase)];
        Row { result, cells: words.into_iter().chain(numbers.map(Cell::derived)).collect() }
    });
    format!("<h3>{PHASES_TITLE}</h3>\n{}", table("By phase", &header, rows))
}

/// Returns the table of grades; an empty text if there are none.
fn grades(figure: &Figure) -> String {
    if figure.grades.is_empty() {
        return String::new();
    }
    let (header, rows) = grade_table(&figure.grades);
    // No cell has a field of a result, so it does not matter to which result a row belongs.
    let rows = rows
        .into_iter()
        .map(|cells| Row { result: 0, cells: cells.into_iter().map(Cell::text).collect() });
    format!("<h3>{GRADES_TITLE}</h3>\n{}", table("Grades", &header, rows))
}

/// Returns the verdicts on the claims; an empty text if the figure has no claims.
fn verdicts(figure: &Figure) -> String {
    if figure.verdicts.is_empty() {
        return String::new();
    }
    let items = figure.verdicts.iter().map(|verdict| {
        let threads = counted(verdict.threads, "thread");
        format!("{}: {}, {} with {threads}", verdict.claim, verdict.outcome(), verdict.words)
    });
    format!("<h3>{VERDICTS_TITLE}</h3>\n{}", list("notes", items))
}

/// Returns the lines of each panel of the figure.
fn panels(figure: &Figure) -> impl Iterator<Item = &[MeasuredLine]> {
    figure.lines.chunk_by(|one, next| one.panel == next.panel)
}

/// Returns the chart and the table of a panel.
fn part(report: &Report, figure: &Figure, lines: &[MeasuredLine]) -> String {
    let rows = lines.iter().flat_map(|line| {
        let last = line.points.len().saturating_sub(1);
        line.points
            .iter()
            .enumerate()
            .map(move |(index, point)| row(figure, line, point, index == last))
    });
    let title = lines[0].panel;
    let [first @ .., last] = HEADER;
    let shown: Vec<String> =
        figure.shows.columns().iter().map(|column| format!("{column} ")).collect();
    let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
    let header = [&first[..], &shown, &[last]].concat();
    charts::figure::chart(report, lines) + &table(title, &header, rows)
}

fn row(figure: &Figure, line: &MeasuredLine, point: &Point, is_last: bool) -> Row {
    let (slowest, fastest) = point.range();
    let ratio = point.of_base.map_or(String::new(), times);
    // The claim is about the paper's number of threads. The point nearest to it is the last one.
    let published =
        line.published.as_ref().filter(|_| is_last).map_or("", |published| published.text);
    let mut cells = vec![
        Cell::text(line.label.clone()),
        Cell::derived(point.threads.to_string()),
        Cell::derived(rate(point.throughput_tps)),
        Cell::derived(rate(slowest)),
        Cell::derived(rate(fastest)),
        Cell::derived(ratio),
        Cell::derived(percent(point.abort_ratio)),
    ];
    cells.extend(figure.shows.cells(point).into_iter().map(Cell::derived));
    cells.push(Cell::text(published));
    Row { result: point.result, cells }
}
