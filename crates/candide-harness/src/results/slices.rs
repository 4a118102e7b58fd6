//! The results of the slices into which the measured time of a run is cut.
//!
//! Workloads that change while they run have other slices, which are shorter and without latencies.
//! Such slices are in `timeline.rs`.

use serde::Serialize;

use super::kind::Transactions;
use super::memory::Footprint;

/// The results of a slice. A transaction belongs to the slice in which it ended.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct RunSlice {
    /// The time from the beginning of the measurement to the beginning of the slice.
    pub(crate) from_s: f64,
    /// The length of the slice. The last slice of a run may be shorter than the others.
    pub(crate) duration_s: f64,
    /// The results of all transaction types together.
    #[serde(flatten)]
    pub(crate) all: Transactions,
    /// The memory at the end of the slice.
    #[serde(flatten)]
    pub(crate) footprint: Footprint,
}

impl RunSlice {
    /// Returns the committed transactions per second.
    pub(crate) fn throughput(&self) -> f64 {
        if self.duration_s > 0.0 { self.all.committed as f64 / self.duration_s } else { 0.0 }
    }
}

/// A slice, with the number of its run.
#[derive(Debug, Serialize)]
pub(crate) struct NumberedSlice {
    /// The number of the run, from 1.
    pub(crate) run: usize,
    #[serde(flatten)]
    pub(crate) slice: RunSlice,
}
