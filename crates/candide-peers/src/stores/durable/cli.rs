//! The command line.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

use super::contenders;
use super::driver::Shape;
use crate::stores::cli::{has, one_of, threads};

/// Commits that survive a loss of power: Candide beside other stores, on one disk, taking turns.
#[derive(Debug, Clone, Parser)]
#[command(name = "durable", version)]
pub struct Options {
    /// A directory on the disk to measure; each experiment makes a new folder in it, and removes it
    #[arg(value_name = "DIR", value_parser = directory)]
    pub(crate) directory: PathBuf,

    /// What the transactions do, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', default_value = "counter,transfer")]
    pub(crate) shapes: Vec<Shape>,

    /// Stores to compare, separated by commas, or `all` that are built in
    #[arg(long, value_parser = store, value_delimiter = ',', default_value = "all", value_name = "NAME")]
    pub(crate) stores: Vec<String>,

    /// Rows in the table
    #[arg(long, value_parser = clap::value_parser!(u64).range(100..=100_000_000), default_value = "100000")]
    pub(crate) rows: u64,

    /// Numbers of threads, separated by commas
    #[arg(long, value_parser = threads, value_delimiter = ',', default_value = "1,2,4,8,16,32,64")]
    pub(crate) threads: Vec<usize>,

    /// How many seconds a turn of one store is measured, such as 3 or 0.5; a fifth of that comes
    /// before, for warming up
    #[arg(long, value_name = "S", value_parser = seconds, default_value = "3")]
    pub(crate) seconds: Duration,

    /// How many rounds to take the median of; in each, the stores take turns
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), default_value = "5")]
    pub(crate) rounds: u16,

    /// The seed of everything random
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,

    /// Write the results to this file as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

impl Options {
    /// Returns whether the options select the store `name`.
    pub(crate) fn wants(&self, name: &str) -> bool {
        has(&self.stores, name)
    }
}

/// The longest time of a turn, in seconds.
const SECONDS_MAX: f64 = 3600.0;

pub(crate) fn directory(text: &str) -> Result<PathBuf, String> {
    match fs::metadata(text) {
        Ok(found) if found.is_dir() => Ok(PathBuf::from(text)),
        Ok(_) => Err("it is not a directory".to_string()),
        Err(error) => Err(format!("{error}; give an existing directory on the disk to measure")),
    }
}

pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.001..=SECONDS_MAX).contains(&seconds) => {
            Ok(Duration::from_secs_f64(seconds))
        }
        _ => Err(format!("use a number from 0.001 to {SECONDS_MAX}, such as 3 or 0.5")),
    }
}

fn store(name: &str) -> Result<String, String> {
    let known: Vec<_> = contenders::all().iter().map(|store| store.about().name).collect();
    let feature = DURABLE_FEATURES.iter().find(|feature| **feature == name);
    one_of(name, "store with durable commits", &known, feature.copied())
}

/// The features that each add a durable store of the same name.
const DURABLE_FEATURES: &[&str] = &["fjall", "redb", "sqlite", "surrealmx"];
