//! The results as one HTML page that needs nothing else: tables, a chart, and the JSON.

use std::fmt::Display;

use crate::chart;
use crate::failure::Failure;
use crate::report::Report;
use crate::table::{
    CAUSES_HEADER, CAUSES_TITLE, LATENCY_HEADER, THROUGHPUT_HEADER, TIMELINE_HEADER, TIMELINE_TITLE, cause_rows,
    finds_causes, label, latency_rows, throughput_row, timeline_rows,
};

const STYLE: &str = "
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { padding: .2rem .7rem; border-bottom: 1px solid #ddd; text-align: left; font-variant-numeric: tabular-nums; }
.failed { color: #b00020; }
svg text { font: 13px system-ui, sans-serif; }
";

/// The page.
pub(crate) fn render(report: &Report) -> Result<String, Failure> {
    let machine = &report.machine;
    let commit = machine.commit.as_deref().unwrap_or("unknown");
    let facts = [
        ("processor", format!("{}, {} cores", machine.cpu, machine.cores)),
        ("system", format!("{}, kernel {}", machine.os, machine.kernel)),
        ("huge pages", machine.thp.clone()),
        ("allocator", machine.allocator.to_string()),
        ("compiler", machine.rustc.to_string()),
        ("commit", commit.to_string()),
        ("time", machine.time.clone()),
    ];
    let failures = report.results.iter().flat_map(|result| {
        result.consistency.failed.iter().map(move |failure| format!("{}: {failure}", label(result)))
    });
    let causes = match finds_causes(report) {
        true => {
            let rows = table(&CAUSES_HEADER, report.results.iter().flat_map(cause_rows));
            format!("<h2>Aborted attempts</h2>\n<p>{CAUSES_TITLE}.</p>\n{rows}")
        }
        false => String::new(),
    };
    // Within a script, the only thing that could end it is a closing tag.
    let json = report.to_json()?.replace("</", "<\\/");
    Ok(format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Candide: measurements</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<h1>Candide: measurements</h1>\n\
         {facts}{notes}{failures}\
         <h2>Throughput</h2>\n<p>Median of the runs; the thin line reaches from the slowest to the fastest.</p>\n\
         {chart}{throughputs}\
         <h2>Latency</h2>\n<p>In µs, from the first attempt to the end, retries included.</p>\n{latencies}{causes}\
         {timelines}\
         <script type=\"application/json\" id=\"results\">\n{json}</script>\n</body>\n</html>\n",
        facts = table(&["", ""], facts.into_iter().map(|(name, value)| [name.to_string(), value])),
        notes = list("notes", report.notes.iter()),
        failures = list("failed", failures),
        chart = chart::bars(&report.results),
        throughputs = table(&THROUGHPUT_HEADER, report.results.iter().map(throughput_row)),
        timelines = timelines(report),
        latencies = table(&LATENCY_HEADER, report.results.iter().flat_map(latency_rows)),
    ))
}

/// A line for each setting that has phases, and their figures.
fn timelines(report: &Report) -> String {
    let lines: String = report
        .results
        .iter()
        .filter_map(|result| Some((result, result.timeline.as_ref()?)))
        .map(|(result, timeline)| format!("<h3>{}</h3>\n{}", escape(&label(result)), chart::line(timeline)))
        .collect();
    if lines.is_empty() {
        return lines;
    }
    let figures = table(&TIMELINE_HEADER, report.results.iter().flat_map(timeline_rows));
    format!("<h2>{TIMELINE_TITLE}</h2>\n{lines}{figures}")
}

fn table<const N: usize>(header: &[&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let row = |tag: &str, cells: &[String]| {
        let cells: String = cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let body: String = rows.map(|cells| row("td", &cells)).collect();
    format!("<table>\n{}{body}</table>\n", row("th", &header.map(str::to_string)))
}

fn list(class: &str, items: impl Iterator<Item = impl Display>) -> String {
    let items: String = items.map(|item| format!("<li>{}</li>\n", escape(&item.to_string()))).collect();
    if items.is_empty() { items } else { format!("<ul class=\"{class}\">\n{items}</ul>\n") }
}

/// `text` with what HTML would take for markup made harmless.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
