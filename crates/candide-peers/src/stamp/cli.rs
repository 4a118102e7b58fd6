//! The command line.

use std::time::Duration;

use candide_workloads::stamp::Mode;
use clap::{Parser, ValueEnum};

use crate::command::positive_duration;
use crate::stores::threads;

/// Two programs of STAMP in Candide and on `fast-stm`, beside the same programs without
/// transactions.
#[derive(Debug, Clone, Parser)]
#[command(name = "stamp", version)]
pub struct Options {
    /// Programs, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', default_value = "kmeans,vacation")]
    pub(crate) program: Vec<Program>,

    /// Published configurations, separated by commas: low, high, low-sim, high-sim, drp, drp-hi
    #[arg(long, value_delimiter = ',', default_value = "low-sim,high-sim")]
    pub(crate) mode: Vec<Mode>,

    /// Numbers of threads, separated by commas
    #[arg(long, value_parser = threads, value_delimiter = ',', default_value = "1,2")]
    pub(crate) threads: Vec<usize>,

    /// How long a run is measured, such as 2s or 200ms
    #[arg(long, value_parser = positive_duration, default_value = "2s")]
    pub(crate) duration: Duration,

    /// How many runs to take the median of
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..), default_value = "3")]
    pub(crate) runs: u16,

    /// The seed of everything random
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,

    /// Divide the numbers of points and of relations by this, for a trial
    #[arg(long, value_parser = shrink, default_value = "1")]
    pub(crate) shrink: usize,
}

/// A program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Program {
    /// Clustering of points
    Kmeans,
    /// A travel agency
    Vacation,
}

impl Program {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Program::Kmeans => "kmeans",
            Program::Vacation => "vacation",
        }
    }
}

/// Returns the configuration's name, as on the command line.
pub(crate) fn name(mode: Mode) -> String {
    serde_json::to_value(mode)
        .map_or_else(|_| String::new(), |name| name.as_str().unwrap_or("").to_string())
}

fn shrink(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(shrink) if (1..=1000).contains(&shrink) => Ok(shrink),
        _ => Err("use a number from 1 to 1000".to_string()),
    }
}
