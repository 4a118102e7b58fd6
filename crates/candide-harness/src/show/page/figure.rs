//! The published figure that a report reproduces: the measurements by the figure's panels and
//! lines, beside the claims of the paper's text.

use super::super::figure_rows::{
    GRADES_TITLE, NOISE, PHASES_HEADER, PHASES_TITLE, VERDICTS_TITLE, grade_table, has_phases,
    phase_rows,
};
use super::charts;
use super::markup::{Cell, Row, escape, table};
use super::number::{percent, rate, times};
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

/// Returns the content of the section; `None` if the report reproduces no figure.
pub(crate) fn figure(report: &Report) -> Option<String> {
    let figure = report.figure.as_ref()?;
    let charts: String =
        panels(figure).map(|(first, lines)| charts::figure::chart(report, first, lines)).collect();
    let tables: String = panels(figure).map(|(_, lines)| lines_of(figure, lines)).collect();
    let ratios = if figure.lines.iter().any(|line| line.base.is_some()) { RATIOS } else { "" };
    let body = format!(
        "<p>{}. {ratios}</p>\n<div class=\"comparison\">\n{charts}</div>\n{}\
         <h3>Every line, beside the words of the paper</h3>\n\
         <p>Heights of bars and lines are not in the text of a paper.</p>\n{tables}{}{}",
        escape(figure.source),
        verdicts(figure),
        phases(figure),
        grades(figure),
    );
    Some(body)
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
        let words = [Cell::sentence(line), Cell::derived(threads), Cell::text(phase)];
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
    // No cell has a field of a result, so it does not matter to which result a row belongs.
    let rows = figure.verdicts.iter().map(|verdict| Row {
        result: 0,
        cells: vec![
            Cell::sentence(verdict.claim.clone()),
            Cell::derived(verdict.threads.to_string()),
            Cell::sentence(verdict.words.clone()),
            Cell::sentence(verdict.outcome()),
        ],
    });
    let header = ["claim", "threads ", "measured", "here"];
    format!("<h3>{VERDICTS_TITLE}</h3>\n{}", table("Claims", &header, rows))
}

/// Returns the lines of each panel of the figure, and the index of the first one.
fn panels(figure: &Figure) -> impl Iterator<Item = (usize, &[MeasuredLine])> {
    let panels = figure.lines.chunk_by(|one, next| one.panel == next.panel);
    panels.scan(0, |next, lines| {
        let first = *next;
        *next += lines.len();
        Some((first, lines))
    })
}

/// Returns the table of a panel.
fn lines_of(figure: &Figure, lines: &[MeasuredLine]) -> String {
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
    format!("<h4>{}</h4>\n{}", escape(title), table(title, &header, rows))
}

fn row(figure: &Figure, line: &MeasuredLine, point: &Point, is_last: bool) -> Row {
    let (slowest, fastest) = point.range();
    let ratio = match (point.told_ratio(), point.doubt) {
        (Some(ratio), _) => times(ratio),
        (None, Some(_)) => NOISE.to_string(),
        (None, None) => String::new(),
    };
    // The claim is about the paper's number of threads. The point nearest to it is the last one.
    let published =
        line.published.as_ref().filter(|_| is_last).map_or("", |published| published.text);
    let mut cells = vec![
        Cell::sentence(line.label.clone()),
        Cell::derived(point.threads.to_string()),
        Cell::derived(rate(point.throughput_tps)),
        Cell::derived(rate(slowest)),
        Cell::derived(rate(fastest)),
        Cell::derived(ratio),
        Cell::derived(percent(point.abort_ratio)),
    ];
    cells.extend(figure.shows.cells(point).into_iter().map(Cell::derived));
    cells.push(Cell::sentence(published));
    Row { result: point.result, cells }
}
