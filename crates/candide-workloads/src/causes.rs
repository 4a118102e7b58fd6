//! The causes of aborts that a workload can tell: the reason, the place and the types it met.

use std::collections::HashMap;

use candide::{Abort, Conflict};

/// One sort of aborted attempts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cause {
    /// The engine's reason.
    pub reason: Abort,
    /// The table; `None` if it was about no table: the attempt gave way to a transaction that had
    /// failed too often.
    pub table: Option<String>,
    /// The column group of the row, `"*"` without timestamp splitting; `None` if it was about a key
    /// that was absent.
    pub group: Option<&'static str>,
    /// The type that was aborted, an index into [`Workload::KINDS`](crate::Workload::KINDS).
    pub aborted: usize,
    /// The types it met, in ascending order; more than one if it was one of these, none if that is
    /// not known. What it means to have met a type is the workload's to say.
    pub met: Vec<usize>,
}

impl Cause {
    pub(crate) fn new(conflict: &Conflict, aborted: usize, met: Vec<usize>) -> Self {
        Cause {
            reason: conflict.cause,
            table: conflict.table.clone(),
            group: conflict.group,
            aborted,
            met,
        }
    }

    /// Returns the place of the conflict: `warehouses.takings`, or `orders, absent key`.
    pub fn place(&self) -> String {
        match (&self.table, self.group) {
            (None, _) => "no table".to_string(),
            (Some(table), Some(group)) => format!("{table}.{group}"),
            (Some(table), None) => format!("{table}, absent key"),
        }
    }
}

/// Aborted attempts by cause.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Causes(HashMap<Cause, u64>);

impl Causes {
    /// Counts one more.
    pub(crate) fn count(&mut self, cause: Cause) {
        *self.0.entry(cause).or_default() += 1;
    }

    /// Adds what others have counted.
    pub fn merge(&mut self, other: &Causes) {
        for (cause, count) in &other.0 {
            *self.0.entry(cause.clone()).or_default() += count;
        }
    }

    /// Returns the number of attempts that were aborted.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// All causes with their counts, the most frequent first.
    pub fn by_frequency(&self) -> Vec<(&Cause, u64)> {
        let mut causes: Vec<_> = self.0.iter().map(|(cause, &count)| (cause, count)).collect();
        // Names decide between equals, so that the order is the same each time.
        causes.sort_by_cached_key(|(cause, count)| {
            (u64::MAX - count, cause.place(), cause.reason.name(), cause.aborted, cause.met.clone())
        });
        causes
    }
}
