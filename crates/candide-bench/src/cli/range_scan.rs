//! The arguments of the scans of ranges.

use candide_workloads::micro::Ranges;
use clap::Args;

use super::values::{number, whole};
use super::{Common, WORKLOAD};

#[derive(Debug, Args)]
#[command(next_help_heading = WORKLOAD)]
pub(crate) struct RangeScanArgs {
    /// Rows in the table [default: 1000000, or 10000000 with --profile paper]
    #[arg(long, value_parser = whole::<u64>)]
    rows: Option<u64>,

    /// Largest number of rows that a transaction scans; the smallest is one
    #[arg(long, value_parser = whole::<u64>, value_name = "ROWS", default_value_t = 99)]
    scan: u64,

    /// Share of transactions that scan; each of the others reads and writes one row
    #[arg(long, value_parser = number, value_name = "FRACTION", default_value_t = 0.95)]
    read_only: f64,

    /// Skew of the keys, from 0 (uniform) to 2
    #[arg(long, value_parser = number, default_value_t = 0.99)]
    theta: f64,

    /// Transactions generated per thread beforehand, and replayed
    #[arg(long, value_parser = whole::<usize>, value_name = "COUNT", default_value_t = 200_000)]
    transactions: usize,

    #[command(flatten)]
    pub(crate) common: Common,
}

impl RangeScanArgs {
    pub(crate) fn workload(&self) -> Ranges {
        let rows = self.common.by_profile(1_000_000, Ranges::published().rows);
        Ranges {
            rows: self.rows.unwrap_or(rows),
            scan: self.scan,
            read_only: self.read_only,
            theta: self.theta,
            transactions: self.transactions,
        }
    }
}
