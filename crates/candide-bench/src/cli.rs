//! The command line.

mod key_value;
mod long_scan;
mod predicate;
mod range_scan;
mod reproduce;
mod rubis;
mod shifting;
mod tpcb;
mod tpcc;
mod voter;
mod wikipedia;
mod ycsb_hot;
mod ycsb_narrow;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use candide::{Factor, Timestamps};
use candide_harness::{Choices, Cores, Matrix, Profile, Rules};
use candide_workloads::smallbank::{Customers, SmallBank};
use candide_workloads::ycsb::{Mode, Verify, Writes, Ycsb};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use key_value::KeyValueArgs;
pub(crate) use long_scan::LongScanArgs;
pub(crate) use predicate::PredicateArgs;
pub(crate) use range_scan::RangeScanArgs;
pub(crate) use reproduce::{FigureName, ReproduceArgs};
pub(crate) use rubis::RubisArgs;
pub(crate) use shifting::ShiftingArgs;
pub(crate) use tpcb::TpcBArgs;
pub(crate) use tpcc::TpccArgs;
pub(crate) use voter::VoterArgs;
pub(crate) use wikipedia::WikipediaArgs;
pub(crate) use ycsb_hot::YcsbHotArgs;
pub(crate) use ycsb_narrow::YcsbNarrowArgs;

/// What the command ends with.
const EXIT_STATUS: &str = "\
Exit status:
  0    All is as it should be
  1    An invariant does not hold, a history is not what it should be or is damaged, a run could
       not be finished or committed nothing
  2    The arguments are wrong
  3    It cannot be told whether a history is what it should be: nothing in it committed, or what
       would decide it was forgotten
  130  Ctrl-C ended it early, and nothing is wrong with what was done by then";

/// A main-memory transactional engine, measured and checked.
#[derive(Debug, Parser)]
#[command(name = "candide", version, after_help = EXIT_STATUS)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Load a workload, run it, check its invariants, and report
    // Named in the usage line, which is all that a mistyped workload is answered with.
    #[command(
        subcommand,
        subcommand_value_name = "tpcc|ycsb|ycsb-narrow|ycsb-hot|smallbank|rubis|wikipedia|tpcb|voter|long-scan|shifting|key-value|\
                                 range-scan|predicate"
    )]
    Bench(Box<Bench>),
    /// Measure what a published figure shows, at a size that suits this machine, beside what the paper's text says
    Reproduce(ReproduceArgs),
    /// Record what concurrent transactions do, and check that it is serializable
    #[command(after_help = EXIT_STATUS)]
    Check(CheckArgs),
}

/// What is checked, and how.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// What to run [default: random, or lists with --mode black]
    #[arg(value_enum)]
    pub(crate) workload: Option<Subject>,

    /// Protocols, separated by commas, or `all`
    #[arg(long, default_value = "all")]
    pub(crate) protocol: Choices,

    /// Number of threads; protocols that run one transaction at a time get one
    #[arg(long, default_value = "4")]
    pub(crate) threads: NonZeroUsize,

    /// How long each protocol runs, such as 5s or 2h
    #[arg(long, value_parser = positive_duration, default_value = "5s")]
    pub(crate) duration: Duration,

    /// The seed of everything random [default: drawn, and printed]
    #[arg(long)]
    pub(crate) seed: Option<u64>,

    /// `white` believes the versions that the engine says it read and wrote; `black` believes only what clients were told
    #[arg(long, value_enum, default_value = "white")]
    pub(crate) mode: CheckMode,

    /// The serial order has to agree with real time. Without this each protocol is held to what it promises; a file, to
    /// being serializable
    #[arg(long)]
    pub(crate) strict: bool,

    /// Aborted attempts have to have seen a state of the serial order, too; again, what protocols promise is checked anyway
    #[arg(long)]
    pub(crate) opacity: bool,

    /// Keys of the random workload; half of the accesses go to an eighth of them
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) keys: u32,

    /// The most operations of a transaction of the random workload
    #[arg(long, default_value_t = 8)]
    pub(crate) operations: usize,

    /// Without --strict: how many beginnings and ends of transactions later one may still have overtaken another
    #[arg(long, value_name = "MOMENTS", default_value_t = 1_000_000)]
    pub(crate) horizon: u64,

    /// Keep the history in this file, as JSON lines
    #[arg(long, value_name = "FILE")]
    pub(crate) history: Option<PathBuf>,

    /// Keep the history of clients in this file, in the form that Elle reads
    #[arg(long, value_name = "FILE")]
    pub(crate) edn: Option<PathBuf>,

    /// Check the history in this file instead of making one: JSON lines, or Elle's form if it ends in `.edn`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["workload", "history", "edn", "seed", "mode"])]
    pub(crate) file: Option<PathBuf>,
}

/// What can be run to be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Subject {
    /// Everything the engine can do, at random
    Random,
    /// Reads and writes of single columns
    Ycsb,
    /// Reads and read-modify-writes of fifty rows
    YcsbHot,
    /// Scans between a read and a write of a row that all want
    LongScan,
    /// Reads beside an operation on a row that all want, by turns a read and a write
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

/// What a checker believes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckMode {
    White,
    Black,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Point reads and writes of 100-byte columns, with keys from a Zipf distribution
    Ycsb(YcsbArgs),
    /// Point reads and blind writes of 10-byte columns: what finer timestamps are worth
    #[command(name = "ycsb-narrow")]
    YcsbNarrow(YcsbNarrowArgs),
    /// Reads and read-modify-writes of fifty rows: contention beyond what optimism bears
    #[command(name = "ycsb-hot")]
    YcsbHot(YcsbHotArgs),
    /// Scans of a thousand rows, between a read and a write of a row that all want
    #[command(name = "long-scan")]
    LongScan(LongScanArgs),
    /// Reads beside an operation on a row that all want, which changes from read to write and back; reported over time
    Shifting(ShiftingArgs),
    /// The key-value benchmarks of other engines, by preset
    #[command(name = "key-value")]
    KeyValue(KeyValueArgs),
    /// Scans of up to a hundred rows, and modifications of single ones
    #[command(name = "range-scan")]
    RangeScan(RangeScanArgs),
    /// Whether a balance is above ten: one is taken off it if so, or else it is filled up
    Predicate(PredicateArgs),
    /// Six kinds of bank transactions over savings and checking accounts
    #[command(name = "smallbank")]
    SmallBank(SmallBankArgs),
    /// TPC-C: orders, payments and deliveries of warehouses
    #[command(name = "tpcc")]
    Tpcc(TpccArgs),
    /// RUBiS: bids, purchases and looks at the items of an auction site
    #[command(name = "rubis")]
    Rubis(RubisArgs),
    /// Wikipedia: looking at pages, listing, editing and watching them
    #[command(name = "wikipedia")]
    Wikipedia(WikipediaArgs),
    /// TPC-B: small deposits at the branches of a bank
    #[command(name = "tpcb")]
    TpcB(TpcBArgs),
    /// Voter: votes by telephone, counted by caller, contestant and state
    #[command(name = "voter")]
    Voter(VoterArgs),
}

/// What the workloads have in common.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Protocols, separated by commas, or `all`
    #[arg(long, default_value = "occ")]
    pub(crate) protocol: Choices,

    /// Numbers of threads, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "1,2")]
    pub(crate) threads: Vec<NonZeroUsize>,

    /// How long a run is measured, such as 5s or 200ms [default: 3s, or 10s with --profile paper]
    #[arg(long, value_parser = positive_duration)]
    duration: Option<Duration>,

    /// How many runs to take the median of [default: 3, or 5 with --profile paper]
    #[arg(long)]
    runs: Option<NonZeroUsize>,

    /// How long a run goes on before it is measured
    #[arg(long, value_parser = duration, default_value = "1s")]
    pub(crate) warmup: Duration,

    /// Begin so many transactions per second, by all threads together, at evenly spaced moments [default: as many as they can]. A
    /// thread that is late begins at once and skips nothing. Latencies then count from the intended beginning, so that waiting behind a
    /// slow transaction counts
    #[arg(long, value_name = "TRANSACTIONS", value_parser = rate, allow_negative_numbers = true)]
    pub(crate) rate: Option<f64>,

    /// Also report what each slice of this length of each run came to, such as 30s: transactions, latencies of all types together,
    /// memory at its end. `shifting` always reports slices, without latencies and memory, and this is how long they are [default there:
    /// 1ms, or 10us with --profile paper]
    #[arg(long, value_name = "DURATION", value_parser = positive_duration)]
    slice: Option<Duration>,

    /// Also report on the row that all want most: after each 256th of its transactions a thread reads it, in a transaction of its own that
    /// is not counted among them, and looks how many versions of it there are
    #[arg(long)]
    pub(crate) hottest: bool,

    /// `strict` checks everything, at a size that suits any machine; `paper` is the published configuration, which for
    /// YCSB means ten million rows (more than 10 GiB) and no check of what is in them, and for TPC-C what was measured rather
    /// than what the standard says
    #[arg(long, value_parser = profile(), default_value = "strict")]
    pub(crate) profile: Profile,

    /// Commit-time updates: blind updates are applied at commit (on), or read and write back (off)
    #[arg(long, value_enum, value_delimiter = ',', default_value = "on")]
    pub(crate) cu: Vec<Switch>,

    /// Timestamp splitting: each column group has a timestamp of its own (on), or a row has one (off)
    #[arg(long, value_enum, value_delimiter = ',', default_value = "on")]
    pub(crate) ts: Vec<Switch>,

    /// Where timestamps come from, under `mvto`: one `counter`, or the system's `clock`, which no thread has to write [default: counter]
    #[arg(long, value_delimiter = ',')]
    pub(crate) timestamps: Vec<Timestamps>,

    /// Bad choices to measure the cost of, separated by commas: `no-backoff` (retry at once), `system-allocator` (rows and nodes
    /// one by one), `unwinding-aborts` (conflicts unwind the stack), `ordered-only` (no hash indexes), `contended-keys` (components
    /// share words), `sorted-locks` (write sets in the order of addresses), `fixed-hash` (hash indexes do not grow)
    #[arg(long = "factor", value_delimiter = ',')]
    pub(crate) factors: Vec<Factor>,

    /// The seed of everything random
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,

    /// Write the results to this file as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Write the results to this file as a self-contained HTML page
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

impl Common {
    fn duration(&self) -> Duration {
        self.duration.unwrap_or(match self.profile {
            Profile::Strict => Duration::from_secs(3),
            Profile::Paper => Duration::from_secs(10),
        })
    }

    fn runs(&self) -> usize {
        self.runs.map(NonZeroUsize::get).unwrap_or(match self.profile {
            Profile::Strict => 3,
            Profile::Paper => 5,
        })
    }

    /// Returns the settings that are combined.
    pub(crate) fn matrix(&self) -> Matrix {
        let are_on = |switches: &[Switch]| switches.iter().copied().map(Switch::is_on).collect();
        Matrix {
            protocols: self.protocol.clone(),
            threads: self.threads.iter().copied().map(NonZeroUsize::get).collect(),
            cu: are_on(&self.cu),
            ts: are_on(&self.ts),
            timestamps: self.timestamps.clone(),
            factors: self.factors.clone(),
        }
    }

    /// Returns what all runs have in common.
    pub(crate) fn rules(&self) -> Rules {
        Rules {
            cores: Cores::allowed(),
            warmup: self.warmup,
            duration: self.duration(),
            runs: self.runs(),
            seed: self.seed,
            rate: self.rate,
            slice: self.slice,
            hottest: self.hottest,
            profile: self.profile,
        }
    }
}

/// A billion is beyond any thread, and little enough for beginnings to be counted.
fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|&rate| 0.0 < rate && rate <= 1e9);
    rate.ok_or_else(|| "expected a number above 0 and up to a billion, such as 25000".to_string())
}

/// Longer than anybody waits, and short enough to be added to what the clock says.
const DURATION_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

fn duration(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if duration > DURATION_MAX { Err("must be a year at most".to_string()) } else { Ok(duration) }
}

fn positive_duration(text: &str) -> Result<Duration, String> {
    let duration = duration(text)?;
    if duration.is_zero() { Err("must be longer than nothing".to_string()) } else { Ok(duration) }
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
}

#[derive(Debug, Args)]
pub(crate) struct YcsbArgs {
    #[command(flatten)]
    pub(crate) common: Common,

    /// Mixes, separated by commas: `a` (16 operations, half of them writes, theta 0.99), `b` (16, one in twenty, 0.8), `c`
    /// (2 uniform reads)
    #[arg(long, value_delimiter = ',', default_value = "a")]
    mode: Vec<Mode>,

    /// Rows in the table [default: 1000000, or 10000000 with --profile paper]
    #[arg(long)]
    rows: Option<u64>,

    /// Operations per transaction [default: the mix's]
    #[arg(long, value_name = "COUNT")]
    operations: Option<usize>,

    /// Probability that an operation writes [default: the mix's]
    #[arg(long, value_name = "FRACTION")]
    write_probability: Option<f64>,

    /// Skew of the keys, from 0 (uniform) to 2 [default: the mix's]
    #[arg(long)]
    theta: Option<f64>,

    /// Go through a transaction's keys as they are drawn, not in ascending order
    #[arg(long)]
    unsorted: bool,

    /// Let a transaction draw a key more than once
    #[arg(long)]
    duplicates: bool,

    /// Transactions generated per thread beforehand, and replayed
    #[arg(long, value_name = "COUNT", default_value_t = 200_000)]
    transactions: usize,

    /// What writes write and what is checked: `increment` (counters must add up), `tag` (each column must hold a last
    /// committed write), `values` (random values, checked for their form), `counts` (random values, only rows are
    /// counted) [default: increment, or counts with --profile paper]
    #[arg(long)]
    verify: Option<Verify>,
}

impl YcsbArgs {
    /// One workload for each mix.
    pub(crate) fn workloads(&self) -> Vec<Ycsb> {
        self.mode.iter().map(|&mode| self.workload(mode)).collect()
    }

    fn workload(&self, mode: Mode) -> Ycsb {
        let published = Ycsb::published(mode);
        let profile = match self.common.profile {
            Profile::Strict => Ycsb { rows: 1_000_000, verify: Verify::Increment, ..published },
            Profile::Paper => published,
        };
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
pub(crate) struct SmallBankArgs {
    #[command(flatten)]
    pub(crate) common: Common,

    /// Customers of the bank [default: 1000000, or 18000 with --profile paper]
    #[arg(long)]
    accounts: Option<u64>,

    /// Skew of the customers, from 0 (uniform) to 2 [default: 0 with --profile strict]
    #[arg(long, conflicts_with = "hotspot")]
    theta: Option<f64>,

    /// Draw nine in ten customers from so many first ones [default: 1000 with --profile paper]
    #[arg(long, value_name = "ACCOUNTS")]
    hotspot: Option<u64>,

    /// How often each type is drawn: amalgamate, balance, deposit-checking, send-payment, transact-savings, write-check
    /// [default: 15,15,15,25,15,15, or 1,1,1,0,1,1 with --profile paper]
    #[arg(long, value_parser = weights::<6>)]
    weights: Option<[u32; 6]>,

    /// Transactions generated per thread beforehand, and replayed
    #[arg(long, value_name = "COUNT", default_value_t = 200_000)]
    transactions: usize,
}

impl SmallBankArgs {
    pub(crate) fn workload(&self) -> SmallBank {
        let profile = match self.common.profile {
            Profile::Strict => SmallBank::bench_base(),
            Profile::Paper => SmallBank::published(),
        };
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

/// As many weights as there are transaction types.
fn weights<const N: usize>(list: &str) -> Result<[u32; N], String> {
    let weights: Option<Vec<u32>> = list.split(',').map(|weight| weight.trim().parse().ok()).collect();
    weights.and_then(|weights| weights.try_into().ok()).ok_or_else(|| {
        let example = ["15"; N].join(",");
        format!("expected {N} whole numbers separated by commas, such as {example}")
    })
}
