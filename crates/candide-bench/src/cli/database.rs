//! The options of `candide log`, `candide backup` and `candide recover-bench`.

use std::path::PathBuf;

use candide_harness::database::{From, Inspection, RecoveryOrder};
use candide_harness::{Choices, each_once};
use clap::{Args, Subcommand};

use super::values::{positive, threads};

/// The text at the end of the help of `log`.
pub(super) const LOG_HELP: &str = "\
Examples:
  candide log verify shop.candide
  candide log inspect shop.candide --table accounts --json
  candide log repair shop.candide repaired.candide";

/// A tool for a database in files that is not in use.
#[derive(Debug, Subcommand)]
pub(crate) enum LogCommand {
    /// Print the commit records in the files, with the names and values of columns
    Inspect(InspectArgs),
    /// Check every checksum, and that the log can be replayed
    Verify {
        /// The directory of the database
        #[arg(value_name = "DIR")]
        place: PathBuf,
    },
    /// Print what takes how much room, by table and column group
    Stats {
        /// The directory of the database
        #[arg(value_name = "DIR")]
        place: PathBuf,
    },
    /// Make a copy that ends before the first damage, and print what is lost
    Repair(RepairArgs),
}

/// The options of `candide log inspect`.
#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// The directory of the database
    #[arg(value_name = "DIR")]
    pub(crate) place: PathBuf,

    /// Print the changes of this table only
    #[arg(long)]
    table: Option<String>,

    /// Print commit records with at least this stamp only; with a generation before it, those of
    /// all later generations, too
    #[arg(long, value_name = "[GENERATION:]CUT")]
    from: Option<From>,

    /// Print an object of JSON for each commit record, one in a line
    #[arg(long)]
    json: bool,
}

impl InspectArgs {
    /// Returns the parts to be printed.
    pub(crate) fn inspection(self) -> (PathBuf, Inspection) {
        let InspectArgs { place, table, from, json } = self;
        (place, Inspection { table, from, json })
    }
}

/// The options of `candide log repair`.
#[derive(Debug, Args)]
pub(crate) struct RepairArgs {
    /// The directory of the database, which stays as it is
    #[arg(value_name = "DIR")]
    pub(crate) place: PathBuf,

    /// The directory of the copy, which must be empty or not exist
    #[arg(value_name = "TO")]
    pub(crate) to: PathBuf,

    /// Let the copy end at this cut of this generation, although the log continues
    #[arg(long, value_name = "GENERATION:CUT", value_parser = generation_and_cut)]
    pub(crate) until: Option<(u64, u64)>,
}

fn generation_and_cut(text: &str) -> Result<(u64, u64), String> {
    let numbers = text.split_once(':').map(|(one, other)| (one.parse(), other.parse()));
    match numbers {
        Some((Ok(generation), Ok(cut))) => Ok((generation, cut)),
        _ => Err("expected a generation and a cut, such as 2:17".to_string()),
    }
}

/// The options of `candide backup`.
#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// The directory of the database
    #[arg(value_name = "DIR")]
    pub(crate) place: PathBuf,

    /// The directory of the copy, which must be empty or not exist
    #[arg(value_name = "TO")]
    pub(crate) to: PathBuf,
}

/// The options of `candide recover-bench`.
#[derive(Debug, Args)]
pub(crate) struct RecoverBenchArgs {
    /// Rows of the checkpoint, each of 96 bytes
    #[arg(long, value_name = "N", value_parser = positive::<u64>, default_value = "1000000")]
    rows: u64,

    /// Commit records of the log, each of which updates a row
    #[arg(long, value_name = "N", value_parser = positive::<u64>, default_value = "1000000")]
    records: u64,

    /// Protocols and locking policies, separated by commas; `all` and `usual` as with `bench`
    #[arg(long, default_value = "occ")]
    protocol: Choices,

    /// Numbers of threads that recover, separated by commas
    #[arg(long, value_parser = threads, value_delimiter = ',', default_value = "1,2", allow_hyphen_values = true)]
    threads: Vec<usize>,

    /// The directory of the files, which must be empty or not exist, and is removed at the end
    /// [default: one in the directory of temporary files]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl RecoverBenchArgs {
    /// Returns the request that the options make.
    pub(crate) fn order(self) -> RecoveryOrder {
        let RecoverBenchArgs { rows, records, protocol, threads, dir } = self;
        let threads = each_once(&threads);
        RecoveryOrder { rows, records, threads, protocols: protocol, place: dir }
    }
}
