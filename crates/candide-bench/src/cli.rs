//! The command line.

mod array;
mod bayes;
mod beside;
mod crash;
mod database;
mod genome;
mod intruder;
mod key_value;
mod kmeans;
mod labyrinth;
mod long_scan;
mod predicate;
mod range_scan;
mod reach;
mod reproduce;
mod rubis;
mod shifting;
mod tpcb;
mod tpcc;
mod vacation;
mod values;
mod wikipedia;
mod ycsb_hot;
mod ycsb_narrow;

use std::path::PathBuf;
use std::time::Duration;

use candide::Level;
use candide::experiments::{Factor, Timestamps};
use candide_compiled::keys::measured;
use candide_harness::{
    Choices, Cores, Failure, Files, Matrix, Outputs, Profile, Rules, each_once, explained_columns,
};
use candide_workloads::smallbank::{Customers, SmallBank};
use candide_workloads::stamp::Scale;
use candide_workloads::ycsb::{Layout, Mode, Verify, Writes, Ycsb, YcsbStrings};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

pub(crate) use array::ArrayArgs;
pub(crate) use bayes::BayesArgs;
pub(crate) use beside::BesideArgs;
pub(crate) use crash::{CrashArgs, CrashOrder};
pub(crate) use database::{
    BackupArgs, DumpArgs, GetArgs, LoadArgs, LogCommand, RecoverBenchArgs, RepairArgs, TablesArgs,
};
pub(crate) use genome::GenomeArgs;
pub(crate) use intruder::IntruderArgs;
pub(crate) use key_value::KeyValueArgs;
pub(crate) use kmeans::KmeansArgs;
pub(crate) use labyrinth::LabyrinthArgs;
pub(crate) use long_scan::LongScanArgs;
pub(crate) use predicate::PredicateArgs;
pub(crate) use range_scan::RangeScanArgs;
pub(crate) use reach::{DrillArgs, ReachCommand};
pub(crate) use reproduce::{FigureName, ReproduceArgs};
pub(crate) use rubis::RubisArgs;
pub(crate) use shifting::ShiftingArgs;
pub(crate) use tpcb::TpcBArgs;
pub(crate) use tpcc::TpccArgs;
pub(crate) use vacation::VacationArgs;
pub(crate) use wikipedia::WikipediaArgs;
pub(crate) use ycsb_hot::YcsbHotArgs;
pub(crate) use ycsb_narrow::YcsbNarrowArgs;

use values::{duration, level, number, positive, positive_duration, rate, threads, weights, whole};

/// The exit statuses of the command. docs/correctness.md repeats these words.
const EXIT_STATUS: &str = "\
Exit status:
  0    fine
  1    a violation, an error while running, a run that committed nothing, or a damaged history file
  2    a wrong option or a missing file
  3    unknown: no commit in the history file, too short a horizon, or a search without a result
  130  ended early by Ctrl-C, and fine until then";

/// A main-memory transactional engine, measured and checked.
#[derive(Debug, Parser)]
#[command(name = "candide", version, after_help = EXIT_STATUS)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The text at the end of the help of `bench`.
const BENCH_HELP: &str = "\
Columns of the table of results:
COLUMNS
Options of a workload:
  candide bench WORKLOAD --help lists them: its own, those of the database, of the runs and of the results

Examples:
  candide bench tpcc
  candide bench tpcc --warehouses 2 --protocol occ,mvto --threads 1,2 --duration 5s --json tpcc.json
  candide bench ycsb --json - | jq '.results[].throughput_tps'
  candide bench ycsb --help";

/// The text at the end of the help of `reproduce`.
const REPRODUCE_HELP: &str = "\
Example:
  candide reproduce factors --threads 1,2 --runs 3 --report factors.html";

/// The text at the end of the help of `check`.
const CHECK_HELP: &str = "\
Examples:
  candide check random --protocol occ --history history.jsonl
  candide check --file history.jsonl
  candide check random --protocol occ --history - | candide check --file - --strict

What is proved of a history:
  yes      there is a serial order. It follows from the order of versions, or of the elements of
           lists, which the history tells; of registers one was found, and played through
  NO       there is none, and what shows it is printed
  unknown  neither was found. Of registers, a history tells little about the order of writes: all
           that follows from it is derived, and what is then open is searched, up to a number of
           steps. Prefer lists";

/// Returns the command line, with an example in the help of each workload. Negative numbers pass
/// clap, so that the parsers in `values` refuse them and name the allowed range.
pub(crate) fn command() -> clap::Command {
    let workload = |command: clap::Command| {
        let example = format!(
            "Example:\n  candide bench {} --protocol usual --threads 1,2 --duration 5s\n\n\
             Columns of the table of results:\n{}",
            command.get_name(),
            explained_columns()
        );
        command.after_help(example)
    };
    let help = BENCH_HELP.replace("COLUMNS", &explained_columns());
    let command = Cli::command()
        .mut_subcommand("bench", |bench| bench.mut_subcommands(workload).after_help(help));
    with_negative_numbers(command)
}

/// Lets the values of the options of `command` and of its subcommands be negative numbers.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|arg| {
        let takes_values = arg.get_action().takes_values();
        arg.allow_negative_numbers(takes_values)
    });
    command.mut_subcommands(with_negative_numbers)
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Load a workload, run it, check its invariants, and report
    // The value name below lists the workloads, so that the usage line does, too. The error for an
    // unknown workload shows only the usage line.
    #[command(
        subcommand,
        subcommand_help_heading = "Workloads",
        subcommand_value_name = "tpcc|ycsb|ycsb-narrow|ycsb-hot|smallbank|rubis|wikipedia|tpcb|kmeans|vacation|labyrinth|bayes|genome|intruder|\
                                 long-scan|shifting|key-value|range-scan|predicate|array|beside"
    )]
    Bench(Box<Bench>),
    /// Measure a published figure again, at a size that suits this machine, and compare with the
    /// paper's text
    #[command(after_help = REPRODUCE_HELP)]
    Reproduce(ReproduceArgs),
    /// Record the history of concurrent transactions, and check that the history is serializable
    #[command(after_help = format!("{CHECK_HELP}\n\n{EXIT_STATUS}"))]
    Check(CheckArgs),
    /// Judge the states that crashes leave of databases in files: random scripts on simulated
    /// disks, or real processes that are killed
    #[command(after_help = crash::CRASH_HELP)]
    Crash(Box<CrashArgs>),
    /// Look at a database in files that is not in use, check it, or repair a copy of it
    #[command(subcommand, after_help = database::LOG_HELP)]
    Log(LogCommand),
    /// Print the tables of a database in files that is not in use: rows, columns, indexes
    Tables(TablesArgs),
    /// Print all rows of a table of a database in files that is not in use
    #[command(after_help = database::DUMP_HELP)]
    Dump(DumpArgs),
    /// Add rows, as `dump` prints them, to a table of a database in files that is not in use
    #[command(after_help = database::LOAD_HELP)]
    Load(LoadArgs),
    /// Print the row with a key of a table of a database in files that is not in use
    #[command(after_help = database::GET_HELP)]
    Get(GetArgs),
    /// Copy a database in files that is not in use
    Backup(BackupArgs),
    /// Look at the log of a database in a place that outlives the machine, check it, follow it, or
    /// take over
    #[command(subcommand, after_help = reach::REACH_HELP)]
    Reach(ReachCommand),
    /// Measure how fast a database in files is opened: from a checkpoint, and from the log
    #[command(name = "recover-bench")]
    RecoverBench(RecoverBenchArgs),
}

/// The options of `candide check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The workload to run [default: random, or lists with --mode black]
    #[arg(value_enum)]
    pub(crate) workload: Option<AnyWorkload>,

    /// Protocols and locking policies, separated by commas. `all` stands for all of them, `usual`
    /// for all protocols and the policies `2pl-wait-die` and `mixed`. `mixed:TABLE=POLICY`, with
    /// further pairs after commas, chooses policies by table; other tables are optimistic.
    /// `mocc:h=20,per=page,lock=queue,wait=paper` chooses other settings of MOCC,
    /// `hybrid:lock=queue` likewise
    #[arg(long, default_value = "usual")]
    pub(crate) protocol: Choices,

    /// Number of threads; protocols that run one transaction at a time get one
    #[arg(long, value_parser = threads, default_value = "4", allow_hyphen_values = true)]
    pub(crate) threads: usize,

    /// Time for which each protocol runs, such as 5s or 2h. The time begins when all threads are
    /// ready. With --mode black, a recording ends after 500000 transactions
    #[arg(long, value_parser = positive_duration, default_value = "5s", allow_hyphen_values = true)]
    pub(crate) duration: Duration,

    /// The seed of everything random [default: drawn, and printed]
    #[arg(long, value_parser = whole::<u64>)]
    pub(crate) seed: Option<u64>,

    /// The source of the history: with `white`, the versions that the engine reports as read and
    /// written; with `black`, only the values that clients receive
    #[arg(long, value_enum, default_value = "white")]
    pub(crate) mode: CheckMode,

    /// Whether databases under `occ` and its policies are opaque, so that an attempt that is going
    /// to fail sees only values of one moment. Both values, separated by a comma, are checked one
    /// after the other [default: on]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) opaque: Vec<Switch>,

    /// Under `mvcc` and `mvto`: let read-only transactions see the past, up to this time ago, in
    /// whole milliseconds. The history must then be serializable, but need not agree with real time
    #[arg(long, value_parser = duration, value_name = "TIME", default_value = "0s", allow_hyphen_values = true)]
    pub(crate) past: Duration,

    /// Require that the serial order agrees with real time. Without --strict, the history of a
    /// protocol must have the property that the protocol promises, and a history from --file must
    /// be serializable
    #[arg(long)]
    pub(crate) strict: bool,

    /// Require that the reads of aborted attempts, too, fit a state of the serial order. Without
    /// --opacity, this is checked only for protocols that promise it
    #[arg(long)]
    pub(crate) opacity: bool,

    /// Number of keys of the random workload; half of the accesses go to an eighth of the keys
    #[arg(long, default_value_t = 24, value_parser = whole::<u32>)]
    pub(crate) keys: u32,

    /// Largest number of operations in a transaction of the random workload
    #[arg(long, value_parser = whole::<usize>, default_value_t = 8)]
    pub(crate) operations: usize,

    /// Without --strict: if transaction B begins after the end of transaction A, B may still
    /// precede A in the serial order, unless more than this many moments lie between. Every
    /// beginning or end of a transaction is a moment
    #[arg(long, value_parser = whole::<u64>, value_name = "MOMENTS", default_value_t = 1_000_000)]
    pub(crate) horizon: u64,

    /// Write the history to this file, as JSON lines; `-` is standard output, and what is found
    /// then goes to standard error
    #[arg(long, value_name = "FILE")]
    pub(crate) history: Option<PathBuf>,

    /// Write the history of clients to this file, in the format that Elle reads; `-` is standard
    /// output
    #[arg(long, value_name = "FILE")]
    pub(crate) edn: Option<PathBuf>,

    /// Check the history in this file instead of recording one. The format is Elle's if the file's
    /// name ends in `.edn`, and JSON lines otherwise. `-` is standard input, whose first bytes tell
    /// the format
    #[arg(long, value_name = "FILE", conflicts_with_all = ["workload", "history", "edn", "seed", "mode", "opaque", "past"])]
    pub(crate) file: Option<PathBuf>,
}

/// The workloads whose histories can be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AnyWorkload {
    /// Random operations of every kind that the engine offers
    Random,
    /// Reads and writes of single columns
    Ycsb,
    /// Reads and read-modify-writes of fifty rows
    YcsbHot,
    /// Scans between a read and a write of one row that all transactions use
    LongScan,
    /// Reads, and one operation on a row that all transactions use; in alternate phases this
    /// operation is a read or a write
    Shifting,
    /// A bank
    Smallbank,
    /// Warehouses
    Tpcc,
    /// An auction site
    Rubis,
    /// An encyclopedia
    Wikipedia,
    /// Clients that append to lists and read them
    Lists,
    /// Clients that write registers and read them
    Registers,
}

/// The source of the history that a checker judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckMode {
    White,
    Black,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Point reads and writes of 100-byte columns, with keys from a Zipf distribution
    Ycsb(YcsbArgs),
    /// Point reads and blind writes of 10-byte columns: the effect of finer timestamps
    #[command(name = "ycsb-narrow")]
    YcsbNarrow(YcsbNarrowArgs),
    /// Reads and read-modify-writes of fifty rows: too much contention for optimistic protocols
    #[command(name = "ycsb-hot")]
    YcsbHot(YcsbHotArgs),
    /// Scans of a thousand rows, between a read and a write of one row that all transactions use
    #[command(name = "long-scan")]
    LongScan(LongScanArgs),
    /// Reads, and one operation on a row that all transactions use; this operation is a read in one
    /// phase and a write in the next. Reported over time
    Shifting(ShiftingArgs),
    /// The key-value benchmarks of other engines, by preset
    #[command(name = "key-value")]
    KeyValue(KeyValueArgs),
    /// Scans of up to a hundred rows, and modifications of single rows
    #[command(name = "range-scan")]
    RangeScan(RangeScanArgs),
    /// Increments of numbers in an array, of which each thread has its own share
    Array(ArrayArgs),
    /// Transfers between two rows, beside threads that read all rows in one transaction
    Beside(BesideArgs),
    /// Subtract one from a balance if it is above ten, and otherwise fill the balance up
    Predicate(PredicateArgs),
    /// Six kinds of bank transactions over savings and checking accounts
    #[command(name = "smallbank")]
    SmallBank(SmallBankArgs),
    /// TPC-C: orders, payments and deliveries of warehouses
    #[command(name = "tpcc")]
    Tpcc(TpccArgs),
    /// RUBiS: bids on items of an auction site, purchases and views of items
    #[command(name = "rubis")]
    Rubis(RubisArgs),
    /// Wikipedia: pages are viewed, listed, edited and watched
    #[command(name = "wikipedia")]
    Wikipedia(WikipediaArgs),
    /// TPC-B: small deposits at the branches of a bank
    #[command(name = "tpcb")]
    TpcB(TpcBArgs),
    /// STAMP's kmeans: points are added to the nearest of a few centres
    #[command(name = "kmeans")]
    Kmeans(KmeansArgs),
    /// STAMP's vacation: customers reserve cars, flights and rooms
    #[command(name = "vacation")]
    Vacation(VacationArgs),
    /// STAMP's labyrinth: paths through a grid must not meet
    #[command(name = "labyrinth")]
    Labyrinth(LabyrinthArgs),
    /// STAMP's bayes: the structure of a Bayesian network is learned from records
    #[command(name = "bayes")]
    Bayes(BayesArgs),
    /// STAMP's genome: a gene is put together from segments that overlap
    #[command(name = "genome")]
    Genome(GenomeArgs),
    /// STAMP's intruder: packets are put together and searched for attacks
    #[command(name = "intruder")]
    Intruder(IntruderArgs),
}

/// Headings of groups of options.
const WORKLOAD: &str = "Workload";
const DATABASE: &str = "Database";
const RUNS: &str = "Runs";
const RESULTS: &str = "Results";

/// The options that all workloads have in common.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// `strict` checks everything, at a size that suits any machine. `paper` is the published
    /// configuration: YCSB then has ten million rows (more than 10 GiB) whose contents are not
    /// checked, and TPC-C follows the published measurements rather than the standard
    #[arg(help_heading = WORKLOAD, long, value_parser = profile(), default_value = "strict")]
    pub(crate) profile: Profile,

    /// Protocols and locking policies, separated by commas. `all` stands for all of them, `usual`
    /// for all protocols and the policies `2pl-wait-die` and `mixed`. `mixed:TABLE=POLICY`, with
    /// further pairs after commas, chooses policies by table; other tables are optimistic.
    /// `mocc:h=20,per=page,lock=queue,wait=paper` chooses other settings of MOCC,
    /// `hybrid:lock=queue` likewise
    #[arg(help_heading = DATABASE, long, default_value = "occ")]
    pub(crate) protocol: Choices,

    /// Commit-time updates: a blind update is applied to the row at commit (on), or reads the row
    /// and writes it back (off)
    #[arg(help_heading = DATABASE, long, value_enum, value_delimiter = ',', default_value = "on")]
    pub(crate) cu: Vec<Switch>,

    /// Timestamp splitting: each column group of a row has its own timestamp (on), or the whole row
    /// has one timestamp (off)
    #[arg(help_heading = DATABASE, long, value_enum, value_delimiter = ',', default_value = "on")]
    pub(crate) ts: Vec<Switch>,

    /// Whether databases under `occ` and its policies are opaque: an attempt that is going to fail
    /// sees only values of one moment (on), as it always does under `mvcc`, or may see values of
    /// different times (off) as in research engines [default: on]
    #[arg(help_heading = DATABASE, long, value_enum, value_delimiter = ',')]
    pub(crate) opaque: Vec<Switch>,

    /// Source of timestamps under `mvto`: one `counter`, which all threads write, or the system's
    /// `clock`, which no thread writes [default: counter]
    #[arg(help_heading = DATABASE, long, value_delimiter = ',')]
    pub(crate) timestamps: Vec<Timestamps>,

    /// Design choices other than the default, to be measured, separated by commas: `no-backoff`
    /// (retry at once), `system-allocator` (allocate rows and nodes one by one), `mimalloc` and
    /// `jemalloc` (the same from another allocator; `jemalloc` only if the command was built with
    /// `--features jemalloc`, which needs `make`), `unwinding-aborts` (conflicts unwind the stack),
    /// `ordered-only` (no hash indexes), `contended-keys` (components of keys share words),
    /// `sorted-locks` (lock write sets in the order of addresses), `sorted-keys` (in the order of
    /// primary keys), `plain-sets` (search own writes from end to end), `fixed-hash` (hash indexes
    /// do not grow), `compressed-timestamps` (`tictoc` has both timestamps of a row in one word),
    /// `preemptive-aborts` (`tictoc` validates reads before it locks, too), `no-wait` (commits that
    /// find a row locked abort at once). At most one of the allocators
    #[arg(help_heading = DATABASE, long = "factor", value_delimiter = ',')]
    pub(crate) factors: Vec<Factor>,

    /// Keep the measured databases in files: each in a directory of its own in DIR, which must be
    /// empty or not exist. The directories are removed when they are not needed any more
    #[arg(help_heading = DATABASE, long, value_name = "DIR")]
    durable: Option<PathBuf>,

    /// With --durable, the level of durability for which a measured transaction waits: `memory`
    /// (other transactions see it), `written` (it survives kill -9), `durable` (it survives a loss
    /// of power) [default: memory]. Loading waits once, at its end
    #[arg(help_heading = DATABASE, long, value_name = "LEVEL", value_parser = level(), requires = "durable")]
    ack: Option<Level>,

    /// With --durable, do not remove the directories of the databases
    #[arg(help_heading = DATABASE, long, requires = "durable")]
    keep: bool,

    /// Numbers of threads, separated by commas
    #[arg(help_heading = RUNS, long, value_parser = threads, value_delimiter = ',', default_value = "1,2", allow_hyphen_values = true)]
    pub(crate) threads: Vec<usize>,

    /// Measured time of a run, such as 5s or 200ms [default: 3s, or 10s with --profile paper]
    #[arg(help_heading = RUNS, long, value_parser = positive_duration, allow_hyphen_values = true)]
    duration: Option<Duration>,

    /// Number of runs; results are the median of the runs [default: 3, or 5 with --profile paper]
    #[arg(help_heading = RUNS, long, value_parser = positive::<usize>)]
    runs: Option<usize>,

    /// Time for which a run warms up before it is measured
    #[arg(help_heading = RUNS, long, value_parser = duration, default_value = "1s", allow_hyphen_values = true)]
    pub(crate) warmup: Duration,

    /// Transactions per second that all threads together begin, at evenly spaced times [default: as
    /// many as the threads can execute]. A thread that is late begins its next transaction at once
    /// and skips none. With --rate, a latency is measured from the intended beginning and includes
    /// the wait for earlier slow transactions
    #[arg(help_heading = RUNS, long, value_name = "TRANSACTIONS", value_parser = rate)]
    pub(crate) rate: Option<f64>,

    /// The seed of everything random
    #[arg(help_heading = RUNS, long, value_parser = whole::<u64>, default_value_t = 1)]
    pub(crate) seed: u64,

    /// Reserve the memory that a workload is estimated to take in its first ten seconds, before its
    /// tables are filled: the operating system then provides it before the measurement, and not
    /// within transactions. At most half of the free memory
    #[arg(help_heading = RUNS, long, value_enum, default_value_t = Switch::On)]
    reserve: Switch,

    /// Go on even if a workload is estimated to take more memory than is free
    #[arg(help_heading = RUNS, long)]
    pub(crate) force: bool,

    /// Cut each run into slices of this length, such as 30s, and report for each slice its
    /// transactions, the latencies of all types together, and the memory at its end. `shifting`
    /// always reports slices, but without latencies and memory [default for `shifting`: 1ms, or
    /// 10us with --profile paper]
    #[arg(help_heading = RESULTS, long, value_name = "DURATION", value_parser = positive_duration, allow_hyphen_values = true)]
    slice: Option<Duration>,

    /// Also report on the hottest row. After every 256 transactions, a thread reads this row in an
    /// extra transaction, which the other results do not count, and counts the row's versions
    #[arg(help_heading = RESULTS, long)]
    pub(crate) hottest: bool,

    /// Also report the sizes of read and write sets by transaction type. The session's counters are
    /// read after each transaction, which takes a little time. (Files have the sizes of all types
    /// together in any case)
    #[arg(help_heading = RESULTS, long)]
    pub(crate) set_sizes: bool,

    /// Also report which share of the committed transactions OCC would have aborted, as --set-sizes
    /// by type: a version that the transaction had read was replaced, or was being replaced, when
    /// it was validated. The option is for `tictoc`, `mvcc` and `mvto`, and takes time at each
    /// commit
    #[arg(help_heading = RESULTS, long)]
    pub(crate) would_abort: bool,

    /// Write the results to this file as JSON; `-` is standard output, and the tables then go to
    /// standard error
    #[arg(help_heading = RESULTS, long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Write the results to this file as a self-contained HTML page; `-` is standard output
    #[arg(help_heading = RESULTS, long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    /// Compare the results with those in this file, which --json has written earlier: the settings
    /// that are faster or slower than before by more than the spread of the runs. `-` is standard
    /// input
    #[arg(help_heading = RESULTS, long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
}

impl Common {
    fn duration(&self) -> Duration {
        self.duration.unwrap_or(Duration::from_secs(self.by_profile(3, 10)))
    }

    fn runs(&self) -> usize {
        self.runs.unwrap_or(self.by_profile(3, 5))
    }

    /// Returns the files of the results.
    pub(crate) fn outputs(&self) -> Outputs<'_> {
        Outputs {
            json: self.json.as_deref(),
            page: self.report.as_deref(),
            baseline: self.baseline.as_deref(),
        }
    }

    /// Returns the value of the profile.
    pub(crate) fn by_profile<T>(&self, strict: T, paper: T) -> T {
        match self.profile {
            Profile::Strict => strict,
            Profile::Paper => paper,
        }
    }

    /// Returns the published configurations of a program of STAMP that has two sizes: those chosen,
    /// or the profile's.
    pub(crate) fn scales(&self, chosen: &[Scale]) -> Vec<Scale> {
        match chosen {
            [] => vec![self.by_profile(Scale::Sim, Scale::Real)],
            chosen => each_once(chosen),
        }
    }

    /// Returns the published knobs. The profile `strict` has at most a million rows, and checks all
    /// writes.
    pub(crate) fn ycsb<L: Layout>(&self, published: Ycsb<L>) -> Ycsb<L> {
        let rows = published.rows;
        Ycsb {
            rows: self.by_profile(rows.min(1_000_000), rows),
            verify: self.by_profile(Verify::Increment, published.verify),
            ..published
        }
    }

    /// Returns the values of all settings; every combination of these values is measured.
    pub(crate) fn matrix(&self) -> Matrix {
        Matrix {
            protocols: self.protocol.clone(),
            threads: each_once(&self.threads),
            cu: Switch::are_on(&self.cu),
            ts: Switch::are_on(&self.ts),
            timestamps: each_once(&self.timestamps),
            opaque: Switch::are_on(&self.opaque),
            factors: each_once(&self.factors),
            counts_stale: self.would_abort,
        }
    }

    /// Returns the rules that all runs have in common. Prepares the place of the databases' files,
    /// if they are to have any.
    pub(crate) fn rules(&self) -> Result<Rules, Failure> {
        let level = self.ack.unwrap_or(Level::Memory);
        let files = self.durable.as_deref().map(|place| Files::prepare(place, level, self.keep));
        Ok(Rules {
            cores: Cores::allowed(),
            warmup: self.warmup,
            duration: self.duration(),
            runs: self.runs(),
            seed: self.seed,
            rate: self.rate,
            slice: self.slice,
            hottest: self.hottest,
            reserve: self.reserve.is_on(),
            set_sizes: self.set_sizes || self.would_abort,
            force: self.force,
            profile: self.profile,
            files: files.transpose()?,
        })
    }
}

/// Returns the parser of profiles.
fn profile() -> impl TypedValueParser<Value = Profile> {
    PossibleValuesParser::new(["strict", "paper"])
        .map(|name| if name == "paper" { Profile::Paper } else { Profile::Strict })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

impl Switch {
    pub(crate) fn is_on(self) -> bool {
        self == Switch::On
    }

    /// Returns the values of a list, each once.
    pub(crate) fn are_on(list: &[Switch]) -> Vec<bool> {
        each_once(list).into_iter().map(Switch::is_on).collect()
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = WORKLOAD)]
pub(crate) struct YcsbArgs {
    /// Mixes, separated by commas: `a` (16 operations, half of them writes, theta 0.99), `b` (16
    /// operations, one in twenty a write, theta 0.8), `c` (2 uniform reads)
    #[arg(long, value_delimiter = ',', default_value = "a")]
    mode: Vec<Mode>,

    /// Rows in the table [default: 1000000, or 10000000 with --profile paper]
    #[arg(long, value_parser = whole::<u64>)]
    rows: Option<u64>,

    /// Operations per transaction [default: the mix's]
    #[arg(long, value_parser = whole::<usize>, value_name = "COUNT")]
    operations: Option<usize>,

    /// Probability that an operation writes [default: the mix's]
    #[arg(long, value_parser = number, value_name = "FRACTION")]
    write_probability: Option<f64>,

    /// Skew of the keys, from 0 (uniform) to 2 [default: the mix's]
    #[arg(long, value_parser = number)]
    theta: Option<f64>,

    /// Access a transaction's keys in the order drawn, not in ascending order
    #[arg(long)]
    unsorted: bool,

    /// Let a transaction draw a key more than once
    #[arg(long)]
    duplicates: bool,

    /// The 100 bytes of a value are in its row (fixed), or a `String` of any length (strings)
    #[arg(long, value_enum, default_value_t = ValuesChoice::Fixed)]
    values: ValuesChoice,

    /// Transactions generated per thread beforehand, and replayed
    #[arg(long, value_parser = whole::<usize>, value_name = "COUNT", default_value_t = 200_000)]
    transactions: usize,

    /// The values that are written, and the check after the runs: `increment` (counters must add
    /// up; not with strings), `tag` (each column must hold a last committed write), `values`
    /// (random values, whose form is checked), `counts` (random values; only the number of rows is
    /// checked) [default: increment, tag with strings, or counts with --profile paper]
    #[arg(long)]
    verify: Option<Verify>,

    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ValuesChoice {
    Fixed,
    Strings,
}

impl YcsbArgs {
    /// Returns one workload for each mix.
    pub(crate) fn workloads(&self) -> Vec<Box<dyn candide_harness::AnyWorkload>> {
        let workloads = each_once(&self.mode).into_iter().map(|mode| self.workload(mode));
        match self.values {
            ValuesChoice::Fixed => workloads.map(measured::ycsb).collect(),
            ValuesChoice::Strings => {
                workloads.map(YcsbStrings::new).map(measured::ycsb_strings).collect()
            }
        }
    }

    fn workload(&self, mode: Mode) -> Ycsb {
        let mut profile = self.common.ycsb(Ycsb::published(mode));
        if self.values == ValuesChoice::Strings {
            profile.verify = self.common.by_profile(Verify::Tag, profile.verify);
        }
        Ycsb {
            rows: self.rows.unwrap_or(profile.rows),
            operations: self.operations.unwrap_or(profile.operations),
            writes: self.write_probability.map_or(profile.writes, Writes::Probability),
            theta: self.theta.unwrap_or(profile.theta),
            sorted: !self.unsorted,
            distinct: !self.duplicates,
            transactions: self.transactions,
            verify: self.verify.unwrap_or(profile.verify),
            ..profile
        }
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = WORKLOAD)]
pub(crate) struct SmallBankArgs {
    /// Customers of the bank [default: 1000000, or 18000 with --profile paper]
    #[arg(long, value_parser = whole::<u64>)]
    accounts: Option<u64>,

    /// Skew of the customers, from 0 (uniform) to 2 [default: 0 with --profile strict]
    #[arg(long, value_parser = number, conflicts_with = "hotspot")]
    theta: Option<f64>,

    /// Draw nine in ten customers from the first ACCOUNTS customers [default: 1000 with --profile
    /// paper]
    #[arg(long, value_parser = whole::<u64>, value_name = "ACCOUNTS")]
    hotspot: Option<u64>,

    /// Relative frequencies of the transaction types: amalgamate, balance, deposit-checking,
    /// send-payment, transact-savings, write-check [default: 15,15,15,25,15,15, or 1,1,1,0,1,1 with
    /// --profile paper]
    #[arg(long, value_parser = weights::<6>, allow_hyphen_values = true)]
    weights: Option<[u32; 6]>,

    /// Transactions generated per thread beforehand, and replayed
    #[arg(long, value_parser = whole::<usize>, value_name = "COUNT", default_value_t = 200_000)]
    transactions: usize,

    #[command(flatten)]
    pub(crate) common: Common,
}

impl SmallBankArgs {
    pub(crate) fn workload(&self) -> SmallBank {
        let profile = self.common.by_profile(SmallBank::bench_base(), SmallBank::published());
        let theta = self.theta.map(Customers::Theta);
        let hotspot = self.hotspot.map(Customers::Hotspot);
        SmallBank {
            accounts: self.accounts.unwrap_or(profile.accounts),
            customers: theta.or(hotspot).unwrap_or(profile.customers),
            weights: self.weights.unwrap_or(profile.weights),
            transactions: self.transactions,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses `arguments` of a subcommand, and returns the error message; `None` if they are valid.
    fn refused(arguments: &[&str]) -> Option<String> {
        let all = ["candide"].iter().chain(arguments);
        command().try_get_matches_from(all).err().map(|error| error.to_string())
    }

    #[test]
    fn exit_statuses_are_the_same_in_every_help_and_in_the_documents() {
        let mut check = command().find_subcommand("check").expect("there is one").clone();
        for help in [command().render_help(), check.render_help()] {
            assert!(help.to_string().contains(EXIT_STATUS), "{help}");
        }
        let page = include_str!("../../../docs/correctness.md")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        for line in EXIT_STATUS.lines().skip(1) {
            let (status, words) = line.trim().split_once("  ").expect("a status and what it means");
            let told = format!("{status} ({})", words.trim());
            assert!(page.contains(&told), "no {told:?} in docs/correctness.md");
        }
    }

    #[test]
    fn errors_of_option_values_are_not_those_of_standard_parsers() {
        let bench = command();
        let bench = bench.find_subcommand("bench").expect("there is one");
        let mut subcommands: Vec<(Vec<&str>, &clap::Command)> = bench
            .get_subcommands()
            .map(|workload| (vec!["bench", workload.get_name()], workload))
            .collect();
        let all = command();
        let find = |name| all.find_subcommand(name).expect("there is one");
        subcommands.push((vec!["check"], find("check")));
        for name in ["crash", "recover-bench"] {
            subcommands.push((vec![name], find(name)));
        }
        subcommands.push((vec!["reproduce", "delivery"], find("reproduce")));
        let mut answers = 0;
        for (path, subcommand) in subcommands {
            let with_values =
                subcommand.get_opts().filter(|option| option.get_action().takes_values());
            let options = with_values.filter_map(|option| option.get_long());
            for (option, value) in
                options.flat_map(|option| ["x", "-1", "", "9e99"].map(|value| (option, value)))
            {
                let option = format!("--{option}");
                let Some(message) = refused(&[&path[..], &[&option, value]].concat()) else {
                    continue;
                };
                let strange = [
                    "digit",
                    "literal",
                    "non-zero",
                    "parse integer",
                    "target type",
                    "unexpected argument",
                ];
                let found = strange.iter().find(|words| message.contains(**words));
                assert_eq!(found, None, "{path:?} {option} {value:?}: {message}");
                answers += 1;
            }
        }
        assert!(answers > 500, "{answers}");
    }
}
