//! The command line.

use std::time::Duration;

use clap::Parser;

use super::work::Shape;
use crate::command::positive_duration;
use crate::stores::threads;

/// Maps and queues within transactions, in Candide and on software transactional memory.
#[derive(Debug, Clone, Parser)]
#[command(name = "objects", version)]
pub struct Options {
    /// What the transactions use, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', default_value = "map,queue")]
    pub(crate) shape: Vec<Shape>,

    /// Keys that a map may have; half of them are there at first
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000), default_value = "100000")]
    pub(crate) keys: u64,

    /// Numbers of threads, separated by commas
    #[arg(long, value_parser = threads, value_delimiter = ',', default_value = "1,2")]
    pub(crate) threads: Vec<usize>,

    /// How long a run is measured, such as 2s or 200ms
    #[arg(long, value_parser = positive_duration, default_value = "1s")]
    pub(crate) duration: Duration,

    /// How many runs to take the median of
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..), default_value = "3")]
    pub(crate) runs: u16,

    /// The seed of everything random
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}
