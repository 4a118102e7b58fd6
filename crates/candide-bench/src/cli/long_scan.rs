//! The arguments of the long scan.

use candide_workloads::two_tables::LongScan;
use clap::Args;

use super::Common;

#[derive(Debug, Args)]
pub(crate) struct LongScanArgs {
    #[command(flatten)]
    pub(crate) common: Common,

    /// Rows of the large table, beside the small one's single row
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,

    /// How many of them, one after another, a transaction scans
    #[arg(long, value_name = "ROWS", default_value_t = 1_000)]
    scan: u64,

    /// Transactions generated per thread beforehand, and replayed
    #[arg(long, value_name = "COUNT", default_value_t = 200_000)]
    transactions: usize,
}

impl LongScanArgs {
    pub(crate) fn workload(&self) -> LongScan {
        LongScan { rows: self.rows, scan: self.scan, transactions: self.transactions }
    }
}
