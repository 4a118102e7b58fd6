//! What was measured. The names of the fields are the interface to other programs.

use serde::Serialize;

use crate::contender::Operation;
use crate::counters::Events;
use crate::{Kind, Role};

/// A map and an operation, all runs taken together.
#[derive(Debug, Serialize)]
pub(crate) struct Throughput {
    pub(crate) rows: usize,
    pub(crate) key_bytes: usize,
    pub(crate) threads: usize,
    pub(crate) map: &'static str,
    pub(crate) kind: Kind,
    pub(crate) role: Role,
    pub(crate) operation: Operation,
    /// Operations in a second, of all threads together: the median of the runs.
    pub(crate) ops_per_second: f64,
    pub(crate) runs: Vec<f64>,
}

impl Throughput {
    /// The slowest and the fastest run.
    pub(crate) fn range(&self) -> (f64, f64) {
        self.runs
            .iter()
            .fold((f64::INFINITY, 0.0), |(low, high), &rate| (rate.min(low), rate.max(high)))
    }
}

/// What a lookup costs in a map of some size.
#[derive(Debug, Serialize)]
pub(crate) struct Cost {
    pub(crate) rows: usize,
    pub(crate) key_bytes: usize,
    pub(crate) map: &'static str,
    pub(crate) kind: Kind,
    pub(crate) role: Role,
    /// Medians of the runs, as are the events.
    pub(crate) nanoseconds: f64,
    pub(crate) events: Option<Events>,
}

/// The middle of `values`, or of the two in the middle.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}
