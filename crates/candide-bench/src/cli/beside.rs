//! The arguments of writers beside readers of the whole database.

use candide_workloads::micro::Beside;
use clap::Args;

use super::values::whole;
use super::{Common, WORKLOAD};

#[derive(Debug, Args)]
#[command(next_help_heading = WORKLOAD)]
pub(crate) struct BesideArgs {
    /// Rows, all of which a reader reads in one transaction
    #[arg(long, value_parser = whole::<u64>, default_value_t = 10_000)]
    rows: u64,

    /// Threads that read all rows; the others write, and the last one always does
    #[arg(long, value_parser = whole::<usize>, value_name = "COUNT", default_value_t = 1)]
    readers: usize,

    #[command(flatten)]
    pub(crate) common: Common,
}

impl BesideArgs {
    /// Returns the workload.
    pub(crate) fn workload(&self) -> Beside {
        let &BesideArgs { rows, readers, .. } = self;
        Beside { rows, readers }
    }
}
