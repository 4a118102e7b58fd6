//! The results of measurements. The names of the fields are the interface to other programs.

use std::time::Duration;

use candide_harness::results::{median, range};
use hdrhistogram::Histogram;
use serde::Serialize;

use crate::Role;
use crate::stores::about::About;
use crate::stores::figures::BASELINE;

/// Latencies in nanoseconds, to two significant digits.
pub(crate) struct Latency(Histogram<u64>);

/// The largest latency that is distinguished from larger ones: an hour.
const LATENCY_MAX: u64 = 3_600_000_000_000;

impl Latency {
    pub(crate) fn new() -> Latency {
        Latency(Histogram::new_with_bounds(1, LATENCY_MAX, 2).expect("bounds in order"))
    }

    pub(crate) fn add(&mut self, latency: Duration) {
        self.0.saturating_record(u64::try_from(latency.as_nanos()).unwrap_or(LATENCY_MAX));
    }

    pub(crate) fn add_all(&mut self, other: &Latency) {
        self.0.add(&other.0).expect("all have the same bounds");
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.len()
    }

    /// Returns, in microseconds, the latency that `percentage` percent of all do not exceed.
    fn microseconds(&self, percentage: f64) -> f64 {
        self.0.value_at_percentile(percentage) as f64 / 1e3
    }
}

/// The result of one turn.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Sample {
    /// The number of commits that were acknowledged per second, to all threads together.
    pub(crate) per_second: f64,
    pub(crate) latency_p50_us: f64,
    pub(crate) latency_p99_us: f64,
    /// The number of transactions that began in the measured time. All of them have committed.
    pub(crate) committed: u64,
    /// The number of repetitions of these transactions after conflicts.
    pub(crate) retries: u64,
    /// The least share of a core that a thread had while it could run; `None` if the system does
    /// not report it.
    pub(crate) core_share: Option<f64>,
}

impl Sample {
    pub(crate) fn new(per_second: f64, retries: u64, latency: &Latency) -> Sample {
        Sample {
            per_second,
            latency_p50_us: latency.microseconds(50.0),
            latency_p99_us: latency.microseconds(99.0),
            committed: latency.count(),
            retries,
            core_share: None,
        }
    }
}

/// The figures of one store, or of the floor, for one shape and one number of threads.
#[derive(Debug, Serialize)]
pub(crate) struct Figure {
    pub(crate) shape: &'static str,
    pub(crate) threads: usize,
    pub(crate) store: &'static str,
    /// `None` for the floor.
    pub(crate) role: Option<Role>,
    /// The result of each round.
    pub(crate) rounds: Vec<Sample>,
    /// The medians of the rounds: commits per second, and latencies.
    pub(crate) commits_per_second: f64,
    pub(crate) latency_p50_us: f64,
    pub(crate) latency_p99_us: f64,
    /// The commits per second of the slowest and of the fastest round.
    pub(crate) commits_per_second_min: f64,
    pub(crate) commits_per_second_max: f64,
    /// The commits per second divided by those of [`BASELINE`]; `None` if the baseline was not
    /// measured, and for the floor.
    pub(crate) of_candide: Option<f64>,
    /// The reason why the figures cannot be trusted, or why the store could not be measured; `None`
    /// if all went well.
    pub(crate) failure: Option<String>,
}

/// The name of the floor among the stores.
pub(crate) const FLOOR: &str = "4 KiB write + fdatasync";

impl Figure {
    /// Creates the figures of a store that has not had a turn yet; `None` stands for the floor.
    pub(crate) fn new(shape: &'static str, threads: usize, about: Option<About>) -> Figure {
        Figure {
            shape,
            threads,
            store: about.map_or(FLOOR, |about| about.name),
            role: about.map(|about| about.role),
            rounds: Vec::new(),
            commits_per_second: 0.0,
            latency_p50_us: 0.0,
            latency_p99_us: 0.0,
            commits_per_second_min: 0.0,
            commits_per_second_max: 0.0,
            of_candide: None,
            failure: None,
        }
    }

    /// Adds the result of another round.
    pub(crate) fn add(&mut self, sample: Sample) {
        self.rounds.push(sample);
        let all = |value: fn(&Sample) -> f64| self.rounds.iter().map(value).collect::<Vec<_>>();
        let rates = all(|round| round.per_second);
        self.commits_per_second = median(&rates);
        (self.commits_per_second_min, self.commits_per_second_max) = range(&rates);
        self.latency_p50_us = median(&all(|round| round.latency_p50_us));
        self.latency_p99_us = median(&all(|round| round.latency_p99_us));
    }
}

/// Compares each store's figures with the baseline.
pub(crate) fn compare(figures: &mut [Figure]) {
    let sound = |figure: &Figure| figure.failure.is_none() && figure.role.is_some();
    let baseline = figures.iter().find(|figure| figure.store == BASELINE && sound(figure));
    let Some(baseline) = baseline.map(|figure| figure.commits_per_second) else { return };
    for figure in figures.iter_mut().filter(|figure| sound(figure)) {
        // On a very slow disk, a turn may be too short for a commit.
        if baseline > 0.0 {
            figure.of_candide = Some(figure.commits_per_second / baseline);
        }
    }
}
