//! Throughputs as horizontal bars.

use crate::html::escape;
use crate::measurement::Measurement;
use crate::table::label;

const LABEL_WIDTH: f64 = 340.0;
const BAR_WIDTH: f64 = 520.0;
const BAR_HEIGHT: f64 = 18.0;
const PITCH: f64 = 28.0;

/// One bar for each measurement, all to one scale, as an SVG element.
pub(crate) fn bars(results: &[Measurement]) -> String {
    let most = results.iter().map(|result| result.range().1).fold(1.0, f64::max);
    let bars: String =
        results.iter().enumerate().map(|(index, result)| bar(result, index as f64 * PITCH, most)).collect();
    let (width, height) = (LABEL_WIDTH + BAR_WIDTH + 120.0, results.len() as f64 * PITCH);
    format!("<svg viewBox=\"0 0 {width} {height}\" width=\"{width}\" role=\"img\">\n{bars}</svg>\n")
}

/// A bar `top` below the upper edge, where `most` transactions per second fill the width.
fn bar(result: &Measurement, top: f64, most: f64) -> String {
    let place = |tps: f64| LABEL_WIDTH + tps / most * BAR_WIDTH;
    let (slowest, fastest) = result.range();
    let (text, middle) = (top + BAR_HEIGHT - 5.0, top + BAR_HEIGHT / 2.0);
    format!(
        "<text x=\"{}\" y=\"{text}\" text-anchor=\"end\">{}</text>\
         <rect x=\"{LABEL_WIDTH}\" y=\"{top}\" width=\"{:.1}\" height=\"{BAR_HEIGHT}\" fill=\"#3d7ea6\"/>\
         <line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{middle}\" y2=\"{middle}\" stroke=\"#222\"/>\
         <text x=\"{:.1}\" y=\"{text}\">{:.0}</text>\n",
        LABEL_WIDTH - 8.0,
        escape(&label(result)),
        place(result.throughput_tps) - LABEL_WIDTH,
        place(slowest),
        place(fastest),
        place(fastest) + 8.0,
        result.throughput_tps,
    )
}
