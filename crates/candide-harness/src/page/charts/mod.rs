//! Charts: inline SVG that fills the width of the page. They are drawn for the width of a phone, so
//! that they can be read there, too.
//!
//! Each mark that is drawn for a number carries that number: `data-mark` is the direction in which
//! its position counts, and `data-value` the value that it should have by the ticks (`data-axis`,
//! `data-value`). So a program can check that the drawing is right.

mod aborts;
mod bars;
pub(crate) mod figure;
mod gains;
mod latency;
mod lines;
mod scale;
mod slices;
mod throughput;
mod timeline;

use super::comparison::Comparison;
use super::markup::escape;

/// The width that panels are drawn for; they are shown as wide as there is room.
const WIDTH: f64 = 400.0;

/// Every chart for which something was measured.
pub(crate) fn all(comparison: &Comparison<'_>) -> String {
    let charts = [
        throughput::chart(comparison),
        gains::chart(comparison),
        aborts::charts(comparison),
        latency::chart(comparison),
        timeline::chart(comparison),
        slices::chart(comparison),
    ];
    charts.concat()
}

/// The charts of one kind, under a heading and a sentence on what they show; with a legend, unless
/// each mark has its name beside it.
fn group(title: &str, finding: &str, legend: &str, panels: &str) -> String {
    format!(
        "<section class=\"charts\">\n<h3>{}</h3>\n<p>{}</p>\n{legend}<div class=\"panels\">\n{panels}</div>\n</section>\n",
        escape(title),
        escape(finding),
    )
}

/// One drawing, `height` units high, under a heading of its own if it needs one. `about` describes
/// it for screen readers.
fn panel(caption: &str, about: &str, height: f64, body: &str) -> String {
    let caption = if caption.is_empty() {
        String::new()
    } else {
        format!("<figcaption>{}</figcaption>\n", escape(caption))
    };
    format!(
        "<figure>{caption}<svg viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"{}\">\n{body}</svg>\n</figure>\n",
        escape(about),
    )
}

/// The heading of a chart, with that of one of its panels.
fn about(what: &str, caption: &str) -> String {
    if caption.is_empty() { what.to_string() } else { format!("{what}, {caption}") }
}

/// The attributes of a mark that shows a field of a result.
fn mark(direction: &str, value: f64, result: usize, field: &str) -> String {
    format!(
        " data-mark=\"{direction}\" data-value=\"{value}\" data-results=\"{result}\" data-field=\"{}\"",
        escape(field)
    )
}

/// The words that a pointer brings up.
fn tip(text: &str) -> String {
    format!("<title>{}</title>", escape(text))
}
