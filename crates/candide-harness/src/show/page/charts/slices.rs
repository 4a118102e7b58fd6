//! Runs that were cut into slices: throughput, latency and memory over time, with a line for each
//! run.

use super::super::comparison::{Comparison, Entry};
use super::super::number::{decimal, mebibytes, rate};
use super::frame::{group, panel};
use super::timeline::{BOTTOM, HEIGHT, TOP, along, curves};
use crate::results::{MEBIBYTE, NumberedSlice, RunSlice};

struct Quantity {
    name: &'static str,
    /// Returns the value of a slice; `None` if the system does not report it.
    value: fn(&RunSlice) -> Option<f64>,
}

const QUANTITIES: [Quantity; 4] = [
    Quantity { name: "committed transactions per second", value: |slice| Some(slice.throughput()) },
    Quantity {
        name: "99.9th percentile of latencies, \u{b5}s",
        value: |slice| Some(slice.all.p999_us),
    },
    Quantity {
        name: "memory reserved by the database, MiB",
        value: |slice| Some(slice.footprint.memory_bytes as f64 / MEBIBYTE),
    },
    Quantity {
        name: "memory of the process, MiB",
        value: |slice| slice.footprint.rss_bytes.map(|bytes| bytes as f64 / MEBIBYTE),
    },
];

/// Returns a group of charts for each result that has slices, with a panel for each quantity.
pub(crate) fn chart(comparison: &Comparison<'_>) -> String {
    let sliced = comparison.entries.iter().filter(|entry| !entry.result.slices.is_empty());
    sliced.map(|&entry| charts(comparison, entry)).collect()
}

fn charts(comparison: &Comparison<'_>, entry: Entry<'_>) -> String {
    let slices = &entry.result.slices;
    let middles = middles(slices);
    let end: f64 = slices.iter().map(|numbered| numbered.slice.duration_s).sum();
    let runs = slices.chunk_by(|one, next| one.run == next.run);
    let lengths: Vec<usize> = runs.map(<[NumberedSlice]>::len).collect();
    let of_quantity = |Quantity { name, value }: &Quantity| {
        let values: Vec<f64> =
            slices.iter().map(|numbered| value(&numbered.slice)).collect::<Option<_>>()?;
        let most = values.iter().copied().fold(0.0, f64::max);
        let mut points = middles.iter().copied().zip(values);
        let lines: Vec<Vec<(f64, f64)>> =
            lengths.iter().map(|&length| points.by_ref().take(length).collect()).collect();
        let about = format!("{}, {}: {name} over time", comparison.title, entry.setting());
        Some(panel(
            name,
            &about,
            HEIGHT,
            &(boundaries(slices) + &curves(entry.result.protocol, &lines, most, end)),
        ))
    };
    let panels: String = QUANTITIES.iter().filter_map(of_quantity).collect();
    group(
        &format!("{}, {}: slice by slice", comparison.title, entry.setting()),
        &finding(slices),
        "",
        &panels,
    )
}

/// Returns a vertical line between each run and the next one.
fn boundaries(slices: &[NumberedSlice]) -> String {
    let length =
        |run: &[NumberedSlice]| run.iter().map(|numbered| numbered.slice.duration_s).sum::<f64>();
    let runs = slices.chunk_by(|one, next| one.run == next.run);
    let lengths: Vec<f64> = runs.map(length).collect();
    let along = along(lengths.iter().sum());
    let ends = lengths.iter().scan(0.0, |end, length| {
        *end += length;
        Some(*end)
    });
    let line = |end: f64| {
        let x = along.place(end);
        format!(
            "<line class=\"boundary\" x1=\"{x:.2}\" x2=\"{x:.2}\" y1=\"{TOP}\" y2=\"{BOTTOM}\"/>\n"
        )
    };
    ends.take(lengths.len().saturating_sub(1)).map(line).collect()
}

/// Returns the time of the middle of each slice, as if the runs had followed one another without a
/// pause.
fn middles(slices: &[NumberedSlice]) -> Vec<f64> {
    let mut passed = 0.0;
    let middle = |numbered: &NumberedSlice| {
        let begun = passed;
        passed += numbered.slice.duration_s;
        (begun + passed) / 2.0
    };
    slices.iter().map(middle).collect()
}

fn finding(slices: &[NumberedSlice]) -> String {
    let range = |value: fn(&RunSlice) -> f64| {
        let values = slices.iter().map(|numbered| value(&numbered.slice));
        values.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), value| {
            (low.min(value), high.max(value))
        })
    };
    let (slowest, fastest) = range(RunSlice::throughput);
    let (lowest, highest) = range(|slice| slice.all.p999_us);
    let memory = match slices {
        [first, .., last] => format!(
            " The database reserved {} MiB after the first slice, {} MiB after the last.",
            mebibytes(first.slice.footprint.memory_bytes),
            mebibytes(last.slice.footprint.memory_bytes)
        ),
        _ => String::new(),
    };
    format!(
        "From {} to {} txn/s; 99.9th percentile from {} to {} \u{b5}s.{memory} Each point is a slice; each run has a line of its own.",
        rate(slowest),
        rate(fastest),
        decimal(lowest),
        decimal(highest),
    )
}
