//! The command line.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use serde::Serialize;

use crate::command::positive_duration;

/// Candide's tables beside the concurrent maps of the Rust ecosystem, in one process, taking turns.
#[derive(Debug, Clone, Parser)]
#[command(name = "maps", version)]
pub struct Options {
    /// Rows in each map, separated by commas [default: 100000,1000000, or with --misses 10000 to
    /// 10000000]
    #[arg(long, value_delimiter = ',')]
    pub(crate) rows: Vec<NonZeroUsize>,

    /// Bytes in a key, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', default_value = "8,24")]
    pub(crate) keys: Vec<KeySize>,

    /// Numbers of threads, separated by commas; --misses uses one
    #[arg(long, value_delimiter = ',', default_value = "1,2")]
    pub(crate) threads: Vec<NonZeroUsize>,

    /// How long a run of one map and operation is measured, such as 1s or 200ms; inserts take as
    /// long as they take
    #[arg(long, value_parser = positive_duration, default_value = "300ms")]
    pub(crate) duration: Duration,

    /// How many runs to take the median of
    #[arg(long, default_value = "5")]
    pub(crate) runs: NonZeroUsize,

    /// Only these maps, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    pub(crate) only: Vec<String>,

    /// What the peers' hash maps hash with: `fold`, which is quick, or `sip`, the standard
    /// library's
    #[arg(long, value_enum, default_value = "fold")]
    pub(crate) hasher: Hasher,

    /// Instead of throughput, the cost of a lookup by the number of rows: time, cache misses and
    /// instructions
    #[arg(long)]
    pub(crate) misses: bool,

    /// Draw what --misses measures to this file, as SVG: the time of a lookup by the number of rows
    /// and by its cache misses
    #[arg(long, value_name = "FILE", requires = "misses")]
    pub(crate) plot: Option<PathBuf>,

    /// The seed of everything random
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,

    /// Write the results to this file as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

impl Options {
    pub(crate) fn rows(&self) -> Vec<usize> {
        match (self.rows.is_empty(), self.misses) {
            (false, _) => self.rows.iter().map(|rows| rows.get()).collect(),
            (true, false) => vec![100_000, 1_000_000],
            (true, true) => vec![10_000, 100_000, 1_000_000, 10_000_000, 100_000_000],
        }
    }

    /// Returns whether the options select the map `name`.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }
}

/// The size of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KeySize {
    /// One word
    #[value(name = "8")]
    Narrow,
    /// Three words, the first two of which many rows share
    #[value(name = "24")]
    Wide,
}

/// The hash function of the peers' hash maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Hasher {
    /// foldhash
    Fold,
    /// SipHash 1-3
    Sip,
}
