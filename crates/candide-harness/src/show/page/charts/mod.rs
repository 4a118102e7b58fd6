//! Charts: inline SVG that fills the width of the page. Charts are drawn for the width of a phone,
//! so that they can also be read on a phone.
//!
//! Each mark that is drawn for a number has attributes with that number. `data-mark` is the
//! direction in which the mark's position counts, and `data-value` is the number. Ticks have
//! `data-axis` and `data-value`. So a program can check that each mark is at the right position
//! between the ticks.

mod aborts;
mod bars;
pub(crate) mod figure;
mod frame;
mod gains;
mod latency;
mod lines;
mod scale;
mod slices;
mod throughput;
mod timeline;

use super::comparison::Comparison;

/// Returns every chart for which there are measurements.
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
