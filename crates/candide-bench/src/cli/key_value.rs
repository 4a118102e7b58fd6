//! The arguments of other engines' key-value benchmarks.

use candide_compiled::keys::measured;
use candide_harness::AnyWorkload;
use candide_workloads::ycsb::{Layout, Verify, Writes, Ycsb};
use clap::{Args, ValueEnum};

use super::values::{number, whole};
use super::{Common, Switch, WORKLOAD};

#[derive(Debug, Args)]
#[command(next_help_heading = WORKLOAD)]
pub(crate) struct KeyValueArgs {
    /// The benchmark to run
    #[arg(long, value_enum, default_value = "index")]
    preset: Preset,

    /// Rows in the table [default: the preset's; with --profile strict, at most 1000000]
    #[arg(long, value_parser = whole::<u64>)]
    rows: Option<u64>,

    /// Operations per transaction [default: the preset's]
    #[arg(long, value_parser = whole::<usize>, value_name = "COUNT")]
    operations: Option<usize>,

    /// Probability that an operation writes [default: the preset's]
    #[arg(long, value_parser = number, value_name = "FRACTION")]
    write_probability: Option<f64>,

    /// Share of transactions in which no operation writes [default: the preset's]
    #[arg(long, value_parser = number, value_name = "FRACTION")]
    read_only: Option<f64>,

    /// Skew of the keys, from 0 (uniform) to 2 [default: the preset's]
    #[arg(long, value_parser = number)]
    theta: Option<f64>,

    /// Keep the table's keys in order (on) or hashed (off) [default: the preset's]
    #[arg(long, value_enum)]
    ordered: Option<Switch>,

    /// Transactions generated per thread beforehand, and replayed
    #[arg(long, value_parser = whole::<usize>, value_name = "COUNT", default_value_t = 200_000)]
    transactions: usize,

    /// The values that are written, and the check after the runs: `increment`, `tag`, `values` or
    /// `counts`, as in `bench ycsb` [default: increment, or counts with --profile paper]
    #[arg(long)]
    verify: Option<Verify>,

    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Preset {
    /// STO's micro-benchmark of indexes: rows of one word, 20 operations, theta 0.8, four of five
    /// transactions only read
    Index,
    /// Cicada's single counter: every transaction reads and writes the same word
    Counter,
    /// Cicada: rows of 100 bytes, 16 operations, half of them read-modify-writes, theta 0.99
    Cicada,
    /// DBx1000: 10 columns of 10 bytes, 16 operations, one in ten a blind write, theta 0.6
    Dbx1000,
    /// CCBench: ordered rows of one word, 10 uniform operations, half of them blind writes
    Ccbench,
    /// Silo: ordered rows of 100 bytes, one uniform operation, one in five a blind write
    Silo,
}

impl KeyValueArgs {
    /// Returns the workload of the preset, boxed, since presets differ in the type of their rows.
    pub(crate) fn workload(&self) -> Box<dyn AnyWorkload> {
        match self.preset {
            Preset::Index => measured::ycsb_word(self.with_knobs(Ycsb::index())),
            Preset::Counter => measured::ycsb_word(self.with_knobs(Ycsb::counter())),
            Preset::Cicada => measured::ycsb_single(self.with_knobs(Ycsb::cicada())),
            Preset::Dbx1000 => measured::ycsb_joint(self.with_knobs(Ycsb::dbx1000())),
            Preset::Ccbench => measured::ycsb_word(self.with_knobs(Ycsb::cc_bench())),
            Preset::Silo => measured::ycsb_single(self.with_knobs(Ycsb::silo())),
        }
    }

    fn with_knobs<L: Layout>(&self, published: Ycsb<L>) -> Ycsb<L> {
        let profile = self.common.ycsb(published);
        Ycsb {
            rows: self.rows.unwrap_or(profile.rows),
            operations: self.operations.unwrap_or(profile.operations),
            writes: self.write_probability.map_or(profile.writes, Writes::Probability),
            read_only: self.read_only.unwrap_or(profile.read_only),
            theta: self.theta.unwrap_or(profile.theta),
            ordered: self.ordered.map_or(profile.ordered, Switch::is_on),
            transactions: self.transactions,
            verify: self.verify.unwrap_or(profile.verify),
            ..profile
        }
    }
}
