//! The arguments of `candide reproduce`.

use std::path::PathBuf;
use std::time::Duration;

use candide_harness::laid_out;
use clap::{Args, ValueEnum};

use super::Switch;
use super::values::{duration, fraction, positive, positive_duration, threads, whole};

/// The options of `candide reproduce`: the figure, and the settings of its runs.
#[derive(Debug, Args)]
pub(crate) struct ReproduceArgs {
    /// The figure to reproduce; without one, all are listed
    #[arg(value_enum)]
    pub(crate) figure: Option<FigureName>,

    /// Numbers of threads, separated by commas [default: 1, 2, 4 and so on up to the number of
    /// cores; for `drp` up to 4 in any case; for `separate-effects`, `set-sizes` and `mocc`, only
    /// the number of cores]
    #[arg(long, value_parser = threads, value_delimiter = ',', allow_hyphen_values = true)]
    pub(crate) threads: Vec<usize>,

    /// Measured time of a run, such as 5s or 200ms [default: 3s; for `mocc` and `drp`, 2s]
    #[arg(long, value_parser = positive_duration, allow_hyphen_values = true)]
    pub(crate) duration: Option<Duration>,

    /// Number of rounds, each of which runs everything once; results are the median of the rounds
    #[arg(long, value_parser = positive::<usize>, default_value = "5")]
    pub(crate) runs: usize,

    /// Time for which a run warms up before it is measured
    #[arg(long, value_parser = duration, default_value = "500ms", allow_hyphen_values = true)]
    pub(crate) warmup: Duration,

    /// Size of tables as a fraction of the published size, from 0 to 1; fewer transactions are
    /// drawn beforehand, too [default: the largest that fits into half of the free memory and into
    /// 1 GiB for each core, so that loading takes seconds]
    #[arg(long, value_name = "FRACTION", value_parser = fraction)]
    pub(crate) scale: Option<f64>,

    /// Whether databases under `occ` and its policies are opaque: all lines (on), none (off), or
    /// each line both ways (on,off) [default: none, as in the papers, and in each part of the
    /// figure one more line of `occ`, which is opaque and shows the price]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) opaque: Vec<Switch>,

    /// Go on even if a workload is estimated to take more memory than is free
    #[arg(long)]
    pub(crate) force: bool,

    /// The seed of everything random
    #[arg(long, value_parser = whole::<u64>, default_value_t = 1)]
    pub(crate) seed: u64,

    /// Write the results to this file as JSON; `-` is standard output, and the tables then go to
    /// standard error
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Write the results to this file as a self-contained HTML page; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    /// Compare the results with those in this file, which --json has written earlier: the settings
    /// that are faster or slower than before by more than the spread of the runs. `-` is standard
    /// input
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
}

/// The figures that can be reproduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FigureName {
    /// The effect of each design choice below the protocol, in TPC-C under `occ`, `tictoc` and
    /// `mvto`, and the protocols graded by it: Figures 4 and 7 of "Opportunities for Optimism"
    /// (VLDB 2020); with `jemalloc` if the command was built with `--features jemalloc`
    Factors,
    /// Deliveries with and without keys that keep districts apart: Figure 6 of the same paper
    Delivery,
    /// Four protocols and six workloads: Figure 8 of the same paper
    Protocols,
    /// Four protocols and six workloads, with and without commit-time updates and timestamp
    /// splitting: Figure 12, a to f, of the same paper
    HighContention,
    /// Commit-time updates and timestamp splitting, each alone and together: Figure 12g of the same
    /// paper
    SeparateEffects,
    /// Read sets of TPC-C with and without the two: its section 6.3
    SetSizes,
    /// The share of commits that OCC would have aborted, under protocols that may commit before a
    /// transaction that has ended: its section 5.1
    Reordering,
    /// Three timestamps to a row, two, and one: its section 6.2
    ThreeTimestamps,
    /// Hash indexes and trees: its section 4.4
    Indexes,
    /// Each protocol beside `serial` where no transactions meet, with one thread: in no paper
    Machinery,
    /// One timestamp per row against several: Figures 2 and 3 of the study of timestamp granularity
    /// (2018)
    Granularity,
    /// MOCC beside optimistic and pessimistic policies, with little contention, with conflicts, and
    /// with both alternately: Figures 6 to 8, Tables 3 and 4 of MOCC (VLDB 2016)
    Mocc,
    /// Deferred runtime pipelining beside `occ`, deferred and plain two-phase locking: an array,
    /// TPC-C, kmeans and vacation: Figures 1 to 8 of the paper (EuroSys 2019)
    Drp,
}

impl FigureName {
    /// Returns the list of all figures, with what each shows.
    pub(crate) fn list() -> String {
        let figures = FigureName::value_variants().iter().filter_map(FigureName::to_possible_value);
        let rows = figures.map(|figure| {
            let help = figure.get_help().map(ToString::to_string).unwrap_or_default();
            [figure.get_name().to_string(), help]
        });
        format!(
            "{}\n\nRun one by `candide reproduce FIGURE`; `candide reproduce --help` lists the options.",
            laid_out(&["figure", "what it shows"], rows)
        )
    }
}
