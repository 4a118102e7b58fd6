//! Throughputs as horizontal bars, and over time as lines.

use crate::html::escape;
use crate::measurement::Measurement;
use crate::table::label;
use crate::timeline::Timeslices;

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

const LINE_WIDTH: f64 = 900.0;
const LINE_HEIGHT: f64 = 160.0;

/// Into how many points a phase is drawn, however many slices it has.
const POINTS_PER_PHASE: usize = 50;

/// Throughput over time, from zero upwards, with a vertical line where a phase begins, as an SVG element.
pub(crate) fn line(timeline: &Timeslices) -> String {
    let rates: Vec<f64> = timeline
        .phases
        .iter()
        .flat_map(|named| named.phase.parts(named.phase.slices.len().min(POINTS_PER_PHASE)))
        .map(|part| part.throughput())
        .collect();
    let most = rates.iter().copied().fold(1.0, f64::max);
    let pitch = LINE_WIDTH / rates.len() as f64;
    let points: String = rates
        .iter()
        .enumerate()
        .map(|(index, rate)| {
            format!("{:.1},{:.1} ", (index as f64 + 0.5) * pitch, LINE_HEIGHT * (1.0 - rate / most) + 20.0)
        })
        .collect();
    let mut begun = 0;
    let mut switches = String::new();
    for named in &timeline.phases {
        let x = begun as f64 * pitch;
        switches += &format!(
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"0\" y2=\"{0}\" stroke=\"#ccc\"/><text x=\"{1:.1}\" y=\"13\">{2}</text>\n",
            LINE_HEIGHT + 20.0,
            x + 4.0,
            escape(named.name),
        );
        begun += named.phase.slices.len().min(POINTS_PER_PHASE);
    }
    format!(
        "<svg viewBox=\"0 0 {LINE_WIDTH} {0}\" width=\"{LINE_WIDTH}\" role=\"img\">\n{switches}\
         <polyline points=\"{points}\" fill=\"none\" stroke=\"#3d7ea6\"/>\n\
         <text x=\"4\" y=\"{1}\">top: {most:.0} txn/s</text>\n</svg>\n",
        LINE_HEIGHT + 40.0,
        LINE_HEIGHT + 35.0,
    )
}
