//! The arguments of `candide reproduce`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::values::{duration, fraction, positive, positive_duration, threads, whole};

/// Which figure, and how much of it.
#[derive(Debug, Args)]
pub(crate) struct ReproduceArgs {
    /// The figure
    #[arg(value_enum)]
    pub(crate) figure: FigureName,

    /// Numbers of threads, separated by commas [default: 1, 2, 4 and so on up to the cores there
    /// are; where the figure has bars, as many as there are cores]
    #[arg(long, value_parser = threads, value_delimiter = ',', allow_hyphen_values = true)]
    pub(crate) threads: Vec<usize>,

    /// How long a run is measured, such as 5s or 200ms
    #[arg(long, value_parser = positive_duration, default_value = "3s", allow_hyphen_values = true)]
    pub(crate) duration: Duration,

    /// How many rounds to take the median of; in each of them everything is run once
    #[arg(long, value_parser = positive::<usize>, default_value = "5")]
    pub(crate) runs: usize,

    /// How long a run goes on before it is measured
    #[arg(long, value_parser = duration, default_value = "500ms", allow_hyphen_values = true)]
    pub(crate) warmup: Duration,

    /// How large tables are beside the published ones, from 0 to 1 [default: as large as fits into
    /// half of the memory that is free and into 1 GiB for each core, so that loading takes seconds]
    #[arg(long, value_name = "FRACTION", value_parser = fraction)]
    pub(crate) scale: Option<f64>,

    /// Go on even if a workload is estimated to take more memory than is free
    #[arg(long)]
    pub(crate) force: bool,

    /// The seed of everything random
    #[arg(long, value_parser = whole::<u64>, default_value_t = 1)]
    pub(crate) seed: u64,

    /// Write the results to this file as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Write the results to this file as a self-contained HTML page
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

/// What can be reproduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FigureName {
    /// What each choice below the protocol is worth, in TPC-C: Figure 4 of "Opportunities for
    /// Optimism" (VLDB 2020); with `jemalloc` if the command was built with `--features jemalloc`
    Factors,
    /// Deliveries with and without keys that keep districts apart: its Figure 6
    Delivery,
    /// Four protocols and six workloads: its Figure 8
    Protocols,
    /// The same with and without commit-time updates and timestamp splitting: its Figure 12, a to f
    HighContention,
    /// Commit-time updates and timestamp splitting, each alone and together: its Figure 12g
    SeparateEffects,
    /// One timestamp to a row, and several: Figures 2 and 3 of the study of timestamp granularity
    /// (2018)
    Granularity,
    /// TPC-C with as many warehouses as threads: Table 3 of MOCC (VLDB 2016)
    TpccMocc,
}
