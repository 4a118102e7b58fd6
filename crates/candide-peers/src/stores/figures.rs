//! The results of measurements. The names of the fields are the interface to other programs.

use candide_harness::results::{median, range};
use serde::Serialize;

use super::about::About;
use super::driver::{Job, Sample};
use crate::Role;

/// The figures of one peer for one workload and one number of threads, over all runs.
#[derive(Debug, Serialize)]
pub(crate) struct Figure {
    pub(crate) workload: &'static str,
    /// The number of rows in each table.
    pub(crate) rows: u64,
    pub(crate) threads: usize,
    pub(crate) peer: &'static str,
    pub(crate) role: Role,
    /// The number of committed transactions per second of all threads together: the median of the
    /// runs.
    pub(crate) throughput_tps: f64,
    pub(crate) tps_runs: Vec<f64>,
    /// The number of transactions that committed in the measured time.
    pub(crate) committed: u64,
    /// The number of repetitions of these transactions after conflicts.
    pub(crate) retries: u64,
    /// The throughput divided by the throughput of [`BASELINE`]; `None` if the baseline was not
    /// measured.
    pub(crate) of_candide: Option<f64>,
    /// The reason why the figures cannot be trusted, or why the peer could not be measured; `None`
    /// if all went well.
    pub(crate) failure: Option<String>,
}

/// The peer with which all other peers are compared: Candide's default.
pub(crate) const BASELINE: &str = "candide-occ";

impl Figure {
    /// Creates the figures of a peer that has not had a turn yet.
    pub(crate) fn new(job: &Job, threads: usize, peer: About) -> Figure {
        Figure {
            workload: job.name(),
            rows: job.rows(),
            threads,
            peer: peer.name,
            role: peer.role,
            throughput_tps: 0.0,
            tps_runs: Vec::new(),
            committed: 0,
            retries: 0,
            of_candide: None,
            failure: None,
        }
    }

    /// Adds the sample of another turn.
    pub(crate) fn add(&mut self, sample: Sample) {
        self.tps_runs.push(sample.per_second);
        self.throughput_tps = median(&self.tps_runs);
        self.committed += sample.committed;
        self.retries += sample.retries;
    }

    /// Returns the transactions per second of the slowest and of the fastest run.
    pub(crate) fn range(&self) -> (f64, f64) {
        range(&self.tps_runs)
    }
}

/// Compares each figure with the baseline.
pub(crate) fn compare(figures: &mut [Figure]) {
    let sound = |figure: &Figure| figure.failure.is_none();
    let baseline = figures.iter().find(|figure| figure.peer == BASELINE && sound(figure));
    let Some(baseline) = baseline.map(|figure| figure.throughput_tps) else { return };
    for figure in figures.iter_mut().filter(|figure| sound(figure)) {
        figure.of_candide = Some(figure.throughput_tps / baseline);
    }
}
