//! The arguments of the shifting workload.

use std::time::Duration;

use candide_workloads::Think;
use candide_workloads::two_tables::Shifting;
use clap::Args;

use super::values::{positive_duration, think, whole};
use super::{Common, Switch, WORKLOAD};

/// The default duration of a run: eight phases of the default length.
const DURATION: Duration = Duration::from_millis(800);

#[derive(Debug, Args)]
#[command(next_help_heading = WORKLOAD)]
pub(crate) struct ShiftingArgs {
    /// Rows of the large table; the small table has a single row
    #[arg(long, value_parser = whole::<u64>, default_value_t = 1_000_000)]
    rows: u64,

    /// Number of rows of the large table that a transaction reads
    #[arg(long, value_parser = whole::<usize>, value_name = "ROWS", default_value_t = 20)]
    reads: usize,

    /// Time of a phase, such as 100ms; in the first phase of a run and in every second phase after
    /// it, transactions only read. A run takes 800ms, unless --duration is given
    #[arg(long, value_parser = positive_duration, default_value = "100ms", allow_hyphen_values = true)]
    phase: Duration,

    /// Whether the read of a read-modify-write says that the row will be written (a read for
    /// update), separated by commas
    #[arg(long, value_enum, value_delimiter = ',', default_value = "off")]
    for_update: Vec<Switch>,

    /// Time for which a transaction works after the operation on the small table's row and after
    /// each read, such as 500ns or 2us, up to 1ms
    #[arg(long, value_parser = think, value_name = "DURATION", default_value = "0", allow_hyphen_values = true)]
    think: Think,

    /// Transactions generated per thread beforehand, and replayed
    #[arg(long, value_parser = whole::<usize>, value_name = "COUNT", default_value_t = 200_000)]
    transactions: usize,

    // A run is measured for 800 ms, unless --duration is given.
    #[command(flatten)]
    common: Common,
}

impl ShiftingArgs {
    /// Returns one workload with reads for update, one without, or both.
    pub(crate) fn workloads(&self) -> Vec<Shifting> {
        Switch::are_on(&self.for_update).into_iter().map(|on| self.workload(on)).collect()
    }

    fn workload(&self, for_update: bool) -> Shifting {
        let slice = self.common.by_profile(Duration::from_millis(1), Shifting::published().slice);
        Shifting {
            rows: self.rows,
            reads: self.reads,
            phase: self.phase,
            slice: self.common.slice.unwrap_or(slice),
            for_update,
            think: self.think,
            transactions: self.transactions,
        }
    }

    /// Returns the common options, with this workload's default duration. These options request no
    /// slices, since this workload cuts its phases into slices itself.
    pub(crate) fn into_common(mut self) -> Common {
        self.common.duration.get_or_insert(DURATION);
        self.common.slice = None;
        self.common
    }
}
