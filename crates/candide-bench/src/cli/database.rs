//! The options of `candide log`, `candide tables`, `candide dump`, `candide load`, `candide get`,
//! `candide backup` and `candide recover-bench`.

use std::path::PathBuf;

use candide_harness::database::{From, Inspection, Loading, RecoveryOrder, TextFormat};
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

/// The text at the end of the help of `dump`.
pub(super) const DUMP_HELP: &str = "\
The rows come in ascending order of the words of their keys. In JSON, numbers of more than 53 bits
and bytes are strings; in CSV, nothing is the absence of an optional value, and \"\" an empty text.

Examples:
  candide dump shop.candide accounts --csv > accounts.csv
  candide dump shop.candide accounts | jq .cents";

/// The text at the end of the help of `load`.
pub(super) const LOAD_HELP: &str = "\
The rows are as `candide dump` prints them: each has every field, in any order. They are added to
those that there are. If a row is wrong, or its key is there, also in a unique index that the row
type declares, all rows before it are loaded, and none from it on. A unique index that a program
makes by `create_index` is named in a warning, and checked when the program makes it again.

The files do not have what a program may change without a migration: how many bytes an index keeps
of a text (`bytes = ..`), and that a text is JSON of a type. Such rows are loaded. A text that is
too long is the error of the program when it names the table, with table, index, length and limit;
one that is no JSON is the outcome of the transaction that reads it. `Table::import_json` checks
both.

Examples:
  candide load shop.candide accounts accounts.csv
  candide dump old.candide accounts | candide load shop.candide accounts -";

/// The text at the end of the help of `get`.
pub(super) const GET_HELP: &str = "\
A key is its components with commas between them. A text with a comma or a quote is in quotes, and
the quote is doubled. Bytes are hexadecimal digits, the absence of an optional part is None.

Examples:
  candide get shop.candide accounts 7
  candide get shop.candide lines 7,2
  candide get shop.candide customers '\"Doe, Jane\",7' --csv
  candide get shop.candide customers @key.txt";

/// The options of `candide tables`.
#[derive(Debug, Args)]
pub(crate) struct TablesArgs {
    /// The directory of the database
    #[arg(value_name = "DIR")]
    pub(crate) place: PathBuf,
}

/// The options of `candide dump`.
#[derive(Debug, Args)]
pub(crate) struct DumpArgs {
    /// The directory of the database
    #[arg(value_name = "DIR")]
    pub(crate) place: PathBuf,

    /// The name of the table
    #[arg(value_name = "TABLE")]
    pub(crate) table: String,

    #[command(flatten)]
    pub(crate) form: FormArgs,
}

/// The options of `candide get`.
#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// The directory of the database
    #[arg(value_name = "DIR")]
    pub(crate) place: PathBuf,

    /// The name of the table
    #[arg(value_name = "TABLE")]
    pub(crate) table: String,

    /// The key of the row, such as 7, or 7,2; with @FILE, what the file contains
    #[arg(value_name = "KEY", allow_hyphen_values = true)]
    pub(crate) key: String,

    #[command(flatten)]
    pub(crate) form: FormArgs,
}

/// The form in which rows are printed.
#[derive(Debug, Args)]
pub(crate) struct FormArgs {
    /// Print an object of JSON for each row, one in a line [default]
    #[arg(long, conflicts_with = "csv")]
    json: bool,

    /// Print comma-separated values, with the names of the columns in the first line
    #[arg(long)]
    csv: bool,
}

impl FormArgs {
    /// Returns the form that the options choose.
    pub(crate) fn format(&self) -> TextFormat {
        if self.csv { TextFormat::Csv } else { TextFormat::Json }
    }
}

/// The options of `candide load`.
#[derive(Debug, Args)]
pub(crate) struct LoadArgs {
    /// The directory of the database
    #[arg(value_name = "DIR")]
    pub(crate) place: PathBuf,

    /// The name of the table
    #[arg(value_name = "TABLE")]
    table: String,

    /// The file of the rows; with -, standard input
    #[arg(value_name = "FILE")]
    from: PathBuf,

    /// Read an object of JSON in each line [default, unless FILE ends in .csv]
    #[arg(long, conflicts_with = "csv")]
    json: bool,

    /// Read comma-separated values, with the names of the columns in the first line
    #[arg(long)]
    csv: bool,
}

impl LoadArgs {
    /// Returns the order that the options make.
    pub(crate) fn order(self) -> (PathBuf, Loading) {
        let LoadArgs { place, table, from, json, csv } = self;
        let is_named_csv = from.extension().is_some_and(|ending| ending == "csv");
        let is_csv = csv || (is_named_csv && !json);
        let format = if is_csv { TextFormat::Csv } else { TextFormat::Json };
        (place, Loading { table, from, format })
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
