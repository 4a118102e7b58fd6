//! The arguments of YCSB with narrow columns.

use candide_harness::each_once;
use candide_workloads::ycsb::{Contention, Narrow, Verify, Writes, Ycsb};
use clap::Args;

use super::values::{number, whole};
use super::{Common, WORKLOAD};

#[derive(Debug, Args)]
#[command(next_help_heading = WORKLOAD)]
pub(crate) struct YcsbNarrowArgs {
    /// Levels of contention, separated by commas: `high` (16 operations, half of them writes, theta
    /// 0.9), `medium` (16 operations, one in ten a write, theta 0.8), `read-only` (2 uniform
    /// reads). Add `--ts on,off` to measure the effect of two timestamps
    #[arg(long, value_delimiter = ',', default_value = "high")]
    contention: Vec<Contention>,

    /// Rows in the table [default: 1000000, or 10000000 with --profile paper]
    #[arg(long, value_parser = whole::<u64>)]
    rows: Option<u64>,

    /// Operations per transaction [default: by --contention]
    #[arg(long, value_parser = whole::<usize>, value_name = "COUNT")]
    operations: Option<usize>,

    /// Probability that an operation writes [default: by --contention]
    #[arg(long, value_parser = number, value_name = "FRACTION")]
    write_probability: Option<f64>,

    /// Skew of the keys, from 0 (uniform) to 2 [default: by --contention]
    #[arg(long, value_parser = number)]
    theta: Option<f64>,

    /// Access a transaction's keys in the order drawn, not in ascending order
    #[arg(long)]
    unsorted: bool,

    /// Use an ordered index for the table, as the paper's text says, and not a hash index, as the
    /// paper's code does
    #[arg(long)]
    ordered: bool,

    /// Transactions generated per thread beforehand, and replayed [default: 200000, or 1000000 with
    /// --profile paper]
    #[arg(long, value_parser = whole::<usize>, value_name = "COUNT")]
    transactions: Option<usize>,

    /// The values that are written, and the check after the runs: `increment`, `tag`, `values` or
    /// `counts`, as in `bench ycsb` [default: increment, or counts with --profile paper]
    #[arg(long)]
    verify: Option<Verify>,

    #[command(flatten)]
    pub(crate) common: Common,
}

impl YcsbNarrowArgs {
    /// Returns one workload for each level of contention.
    pub(crate) fn workloads(&self) -> Vec<Ycsb<Narrow>> {
        each_once(&self.contention)
            .into_iter()
            .map(|contention| self.workload(contention))
            .collect()
    }

    fn workload(&self, contention: Contention) -> Ycsb<Narrow> {
        let profile = self.common.ycsb(Ycsb::granularity(contention));
        let transactions = self.common.by_profile(200_000, profile.transactions);
        Ycsb {
            rows: self.rows.unwrap_or(profile.rows),
            operations: self.operations.unwrap_or(profile.operations),
            writes: self.write_probability.map_or(profile.writes, Writes::Probability),
            theta: self.theta.unwrap_or(profile.theta),
            sorted: !self.unsorted,
            ordered: self.ordered,
            transactions: self.transactions.unwrap_or(transactions),
            verify: self.verify.unwrap_or(profile.verify),
            ..profile
        }
    }
}
