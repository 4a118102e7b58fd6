//! The arguments of the long scan.

use candide_workloads::Think;
use candide_workloads::two_tables::LongScan;
use clap::Args;

use super::values::{think, whole};
use super::{Common, Switch, WORKLOAD};

#[derive(Debug, Args)]
#[command(next_help_heading = WORKLOAD)]
pub(crate) struct LongScanArgs {
    /// Rows of the large table; the small table has a single row
    #[arg(long, value_parser = whole::<u64>, default_value_t = 1_000_000)]
    rows: u64,

    /// Number of consecutive rows of the large table that a transaction scans
    #[arg(long, value_parser = whole::<u64>, value_name = "ROWS", default_value_t = 1_000)]
    scan: u64,

    /// Whether the read of the row that is written later says so (a read for update), separated by
    /// commas
    #[arg(long, value_enum, value_delimiter = ',', default_value = "off")]
    for_update: Vec<Switch>,

    /// Time for which a transaction works after the read, after the scan and after the write, such
    /// as 500ns or 2us, up to 1ms
    #[arg(long, value_parser = think, value_name = "DURATION", default_value = "0", allow_hyphen_values = true)]
    think: Think,

    /// Transactions generated per thread beforehand, and replayed
    #[arg(long, value_parser = whole::<usize>, value_name = "COUNT", default_value_t = 200_000)]
    transactions: usize,

    #[command(flatten)]
    pub(crate) common: Common,
}

impl LongScanArgs {
    /// Returns one workload with reads for update, one without, or both.
    pub(crate) fn workloads(&self) -> Vec<LongScan> {
        let LongScanArgs { rows, scan, think, transactions, .. } = *self;
        let workload = |for_update| LongScan { rows, scan, for_update, think, transactions };
        Switch::are_on(&self.for_update).into_iter().map(workload).collect()
    }
}
