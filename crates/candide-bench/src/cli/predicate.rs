//! The arguments of the benchmark of predicates.

use candide_workloads::micro::Predicate;
use clap::Args;

use super::values::{number, whole};
use super::{Common, WORKLOAD};

#[derive(Debug, Args)]
#[command(next_help_heading = WORKLOAD)]
pub(crate) struct PredicateArgs {
    /// Number of balances, one in each row
    #[arg(long, value_parser = whole::<u64>, default_value_t = 1000)]
    rows: u64,

    /// Share of transactions that only read
    #[arg(long, value_parser = number, value_name = "FRACTION", default_value_t = 0.0)]
    read_only: f64,

    /// Skew of the balances, from 0 (uniform) to 2
    #[arg(long, value_parser = number, default_value_t = 0.0)]
    theta: f64,

    /// Transactions generated per thread beforehand, and replayed
    #[arg(long, value_parser = whole::<usize>, value_name = "COUNT", default_value_t = 200_000)]
    transactions: usize,

    #[command(flatten)]
    pub(crate) common: Common,
}

impl PredicateArgs {
    pub(crate) fn workload(&self) -> Predicate {
        let PredicateArgs { rows, read_only, theta, transactions, .. } = *self;
        Predicate { rows, read_only, theta, transactions }
    }
}
