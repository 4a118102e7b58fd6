//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

use crate::stores::cli::threads;
use crate::stores::durable::{directory, seconds};

/// One task in Candide, redb, fjall, and maps behind a mutex, in memory and with each commit
/// synced, taking turns: a picture and a table.
#[derive(Debug, Clone, Parser)]
#[command(name = "beside", version)]
pub struct Options {
    /// A directory on the disk for synced commits; each turn makes a new folder in it, and removes
    /// it
    #[arg(value_name = "DIR", value_parser = directory)]
    pub(crate) directory: PathBuf,

    /// Write the picture to this file as SVG
    #[arg(long, value_name = "FILE")]
    pub(crate) picture: Option<PathBuf>,

    /// Put the table into this document, between the lines `<!-- figures -->` and
    /// `<!-- end of figures -->`
    #[arg(long, value_name = "FILE")]
    pub(crate) page: Option<PathBuf>,

    /// The number of accounts
    #[arg(long, value_parser = clap::value_parser!(u64).range(100..=100_000_000), default_value = "100000")]
    pub(crate) rows: u64,

    /// Numbers of threads, separated by commas
    #[arg(long, value_parser = threads, value_delimiter = ',', default_value = "1,2")]
    pub(crate) threads: Vec<usize>,

    /// How many seconds a turn of one store is measured, such as 1 or 0.5; a fifth of that comes
    /// before, for warming up
    #[arg(long, value_name = "S", value_parser = seconds, default_value = "1")]
    pub(crate) seconds: Duration,

    /// How many rounds to take the median of; in each, the stores take turns
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..), default_value = "7")]
    pub(crate) rounds: u16,

    /// The seed of everything random
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}
