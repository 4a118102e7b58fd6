//! The knobs, and the published configurations.

use serde::Serialize;

use crate::stamp::choices::{Form, Mode};
use crate::stamp::kept::Kept;
use crate::workload::{require, require_range};

/// The largest number of queries of a task.
pub const QUERIES_MAX: usize = 16;

/// The largest number of relations. All ids of three tables together are numbered.
const RELATIONS_MAX: u32 = 1 << 30;

/// The knobs. The letters are those of STAMP's options.
#[derive(Debug, Clone, Serialize)]
pub struct Vacation {
    /// The published configuration from which the other knobs come.
    pub mode: Mode,
    /// The form of the transactions.
    pub form: Form,
    /// The largest number of queries of a task (`-n`).
    pub queries: usize,
    /// The percentage of the ids that tasks use (`-q`).
    pub queried_pct: u32,
    /// The percentage of tasks that reserve (`-u`).
    pub user_pct: u32,
    /// The number of cars, of flights, of rooms and of customers (`-r`).
    pub relations: u32,
    /// The number of tasks of all threads together after which they repeat their inputs (`-t`).
    pub tasks: u64,
    /// What databases with these knobs share; empty at first.
    #[serde(skip)]
    pub kept: Kept,
}

impl Vacation {
    /// Returns a published configuration.
    pub fn published(mode: Mode, form: Form) -> Self {
        let (queries, queried_pct, user_pct) = match mode {
            Mode::Low | Mode::LowSim | Mode::Drp => (2, 90, 98),
            Mode::High | Mode::HighSim => (4, 60, 90),
            Mode::DrpHi => (4, 1, 90),
        };
        let (relations, tasks) = match mode {
            Mode::LowSim | Mode::HighSim => (16_384, 4_096),
            Mode::Low | Mode::High | Mode::Drp => (1_048_576, 4_194_304),
            Mode::DrpHi => (184_857, 12_194_304),
        };
        let kept = Kept::default();
        Vacation { mode, form, queries, queried_pct, user_pct, relations, tasks, kept }
    }

    /// Returns the number of ids that tasks use.
    pub(super) fn query_range(&self) -> u32 {
        let ids = f64::from(self.relations) * f64::from(self.queried_pct) / 100.0;
        (ids.round() as u32).max(1)
    }

    /// Checks that all knobs are in range.
    pub(super) fn validate(&self) -> Result<(), String> {
        require_range("the number of queries", 1..=QUERIES_MAX, self.queries)?;
        require_range("the percentage of queried ids", 1..=100, self.queried_pct)?;
        require_range("the percentage of tasks that reserve", 0..=100, self.user_pct)?;
        require_range("the number of relations", 1..=RELATIONS_MAX, self.relations)?;
        require(self.tasks > 0, || "there must be at least one task".to_string())
    }
}
