//! The results of measurements. The names of the fields are the interface to other programs.

use candide_harness::results::range;
use serde::Serialize;

use crate::contender::Operation;
use crate::counters::Events;
use crate::{Kind, Role};

/// The figures of one map and operation, over all runs.
#[derive(Debug, Serialize)]
pub(crate) struct Throughput {
    pub(crate) rows: usize,
    pub(crate) key_bytes: usize,
    pub(crate) threads: usize,
    pub(crate) map: &'static str,
    pub(crate) kind: Kind,
    pub(crate) role: Role,
    pub(crate) operation: Operation,
    /// The number of operations per second of all threads together: the median of the runs.
    pub(crate) ops_per_second: f64,
    pub(crate) runs: Vec<f64>,
}

impl Throughput {
    /// Returns the operations per second of the slowest and of the fastest run.
    pub(crate) fn range(&self) -> (f64, f64) {
        range(&self.runs)
    }
}

/// The cost of a lookup in a map of one size.
#[derive(Debug, Serialize)]
pub(crate) struct Cost {
    pub(crate) rows: usize,
    pub(crate) key_bytes: usize,
    pub(crate) map: &'static str,
    pub(crate) kind: Kind,
    pub(crate) role: Role,
    /// The time of a lookup: the median of the runs. The figures in `events` are medians, too.
    pub(crate) nanoseconds: f64,
    /// The time of a load that depends on the load before it, from as many cache lines as there are
    /// rows.
    pub(crate) load_nanoseconds: f64,
    pub(crate) events: Option<Events>,
}

impl Cost {
    /// Returns the time of a lookup in dependent loads.
    pub(crate) fn loads(&self) -> f64 {
        self.nanoseconds / self.load_nanoseconds
    }
}
