//! The arguments of the scans of ranges.

use candide_workloads::micro::Ranges;
use clap::Args;

use super::{Common, Profile};

#[derive(Debug, Args)]
pub(crate) struct RangeScanArgs {
    #[command(flatten)]
    pub(crate) common: Common,

    /// Rows in the table [default: 1000000, or 10000000 with --profile paper]
    #[arg(long)]
    rows: Option<u64>,

    /// The most rows that a transaction scans; the least is one
    #[arg(long, value_name = "ROWS", default_value_t = 99)]
    scan: u64,

    /// Share of transactions that scan; the others read and write a row
    #[arg(long, value_name = "FRACTION", default_value_t = 0.95)]
    read_only: f64,

    /// Skew of the keys, from 0 (uniform) to 2
    #[arg(long, default_value_t = 0.99)]
    theta: f64,

    /// Transactions generated per thread beforehand, and replayed
    #[arg(long, value_name = "COUNT", default_value_t = 200_000)]
    transactions: usize,
}

impl RangeScanArgs {
    pub(crate) fn workload(&self) -> Ranges {
        let rows = match self.common.profile {
            Profile::Strict => 1_000_000,
            Profile::Paper => Ranges::published().rows,
        };
        Ranges {
            rows: self.rows.unwrap_or(rows),
            scan: self.scan,
            read_only: self.read_only,
            theta: self.theta,
            transactions: self.transactions,
        }
    }
}
