//! The settings that all measurements of one command share.

use std::time::Duration;

use crate::affinity::Cores;
use crate::files::Files;
use crate::results::Profile;

/// The settings that all turns of one command share.
pub struct Rules {
    /// The cores that threads may use.
    pub cores: Cores,
    /// The time for which a run warms up before it is measured.
    pub warmup: Duration,
    /// The measured time of a run.
    pub duration: Duration,
    /// The number of runs with each number of threads.
    pub runs: usize,
    /// The seed of everything random.
    pub seed: u64,
    /// The number of transactions per second that all threads together begin; `None` if the threads
    /// begin as many as they can.
    pub rate: Option<f64>,
    /// The length of the slices whose results are reported; `None` if runs are not cut into slices.
    pub slice: Option<Duration>,
    /// Whether threads occasionally read the workload's hottest row.
    pub hottest: bool,
    /// Whether the sizes of read and write sets are counted by transaction type, which takes a
    /// little time after each transaction.
    pub set_sizes: bool,
    /// Whether each database reserves the memory that its workload is estimated to take.
    pub reserve: bool,
    /// Whether to run workloads even if they are estimated to take more memory than is free.
    pub force: bool,
    /// The profile of the workloads' settings, for the report.
    pub profile: Profile,
    /// The place of the databases' files; `None` if the databases have no files.
    pub files: Option<Files>,
}
