//! The arguments of YCSB on a few rows.

use candide_harness::each_once;
use candide_workloads::Think;
use candide_workloads::ycsb::{Joint, Verify, Ycsb};
use clap::Args;

use super::values::{think, whole};
use super::{Common, Switch, WORKLOAD};

#[derive(Debug, Args)]
#[command(next_help_heading = WORKLOAD)]
pub(crate) struct YcsbHotArgs {
    /// Numbers of read-modify-writes in a transaction, from 0 to --operations, separated by commas.
    /// The first operations each read one column and write another; the remaining ones only read a
    /// column
    #[arg(long, value_parser = whole::<usize>, value_name = "COUNT", value_delimiter = ',', default_value = "0,1,10")]
    rmws: Vec<usize>,

    /// Rows in the table, separated by commas
    #[arg(long, value_parser = whole::<u64>, value_delimiter = ',', default_value = "50")]
    rows: Vec<u64>,

    /// Operations per transaction
    #[arg(long, value_parser = whole::<usize>, value_name = "COUNT", default_value_t = 10)]
    operations: usize,

    /// Whether the read of a read-modify-write says that the row will be written (a read for
    /// update), separated by commas
    #[arg(long, value_enum, value_delimiter = ',', default_value = "off")]
    for_update: Vec<Switch>,

    /// Access a transaction's keys in ascending order, not in the order drawn
    #[arg(long)]
    sorted: bool,

    /// Use an ordered index for the table, not a hash index
    #[arg(long)]
    ordered: bool,

    /// Time for which a transaction works after each operation, such as 500ns or 2us, up to 1ms. A
    /// read-modify-write is one operation
    #[arg(long, value_parser = think, value_name = "DURATION", default_value = "0", allow_hyphen_values = true)]
    think: Think,

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

impl YcsbHotArgs {
    /// Returns one workload for each number of rows, each number of read-modify-writes, and reads
    /// for update or not.
    pub(crate) fn workloads(&self) -> Vec<Ycsb<Joint>> {
        let (rmws, for_update) = (each_once(&self.rmws), Switch::are_on(&self.for_update));
        let mut workloads = Vec::new();
        for rows in each_once(&self.rows) {
            for &rmws in &rmws {
                workloads.extend(for_update.iter().map(|&on| self.workload(rows, rmws, on)));
            }
        }
        workloads
    }

    fn workload(&self, rows: u64, rmws: usize, for_update: bool) -> Ycsb<Joint> {
        let verify = self.common.by_profile(Verify::Increment, Verify::Counts);
        Ycsb {
            rows,
            operations: self.operations,
            sorted: self.sorted,
            ordered: self.ordered,
            for_update,
            think: self.think,
            transactions: self.transactions,
            verify: self.verify.unwrap_or(verify),
            ..Ycsb::hot(rmws)
        }
    }
}
