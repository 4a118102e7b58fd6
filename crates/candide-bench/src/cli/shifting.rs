//! The arguments of the shifting workload.

use std::time::Duration;

use candide_workloads::two_tables::Shifting;
use clap::Args;

use super::values::{positive_duration, whole};
use super::{Common, Profile, WORKLOAD};

/// Eight phases.
const DURATION: Duration = Duration::from_millis(800);

#[derive(Debug, Args)]
#[command(next_help_heading = WORKLOAD)]
pub(crate) struct ShiftingArgs {
    /// Rows of the large table, beside the small one's single row
    #[arg(long, value_parser = whole::<u64>, default_value_t = 1_000_000)]
    rows: u64,

    /// How many of them a transaction reads
    #[arg(long, value_parser = whole::<usize>, value_name = "ROWS", default_value_t = 20)]
    reads: usize,

    /// How long a phase lasts, such as 100ms; the first of a run and every other one only read. A
    /// run lasts for 800ms, unless --duration says otherwise
    #[arg(long, value_parser = positive_duration, default_value = "100ms", allow_hyphen_values = true)]
    phase: Duration,

    /// Transactions generated per thread beforehand, and replayed
    #[arg(long, value_parser = whole::<usize>, value_name = "COUNT", default_value_t = 200_000)]
    transactions: usize,

    // A run is measured for 800 ms, unless --duration says otherwise.
    #[command(flatten)]
    common: Common,
}

impl ShiftingArgs {
    pub(crate) fn workload(&self) -> Shifting {
        let slice = match self.common.profile {
            Profile::Strict => Duration::from_millis(1),
            Profile::Paper => Shifting::published().slice,
        };
        Shifting {
            rows: self.rows,
            reads: self.reads,
            phase: self.phase,
            slice: self.common.slice.unwrap_or(slice),
            transactions: self.transactions,
        }
    }

    /// What it has in common with other workloads, with its own duration. Slices are those of its
    /// phases.
    pub(crate) fn into_common(mut self) -> Common {
        self.common.duration.get_or_insert(DURATION);
        self.common.slice = None;
        self.common
    }
}
