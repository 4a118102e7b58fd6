//! The causes of aborts that a workload distinguishes: by reason, by place, and by the types of the
//! conflicting transactions.

use std::collections::HashMap;

use candide::Abort;
use candide::report::Conflict;

/// A cause of aborted attempts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cause {
    /// The engine's reason.
    pub reason: Abort,
    /// The table of the conflict. `None` if the conflict was about no table: the attempt yielded to
    /// a transaction that had failed too often.
    pub table: Option<String>,
    /// The column group of the row, `"*"` without timestamp splitting. `None` if the conflict was
    /// about a key without a row.
    pub group: Option<&'static str>,
    /// The type of the aborted transaction, an index into
    /// [`Workload::KINDS`](crate::Workload::KINDS).
    pub aborted: usize,
    /// The possible types of the transaction with which the aborted one conflicted, in ascending
    /// order; empty if the type is not known. Each workload defines when its transactions conflict
    /// with a type.
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

/// The numbers of aborted attempts, by cause.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Causes(HashMap<Cause, u64>);

impl Causes {
    /// Counts one more attempt aborted by `cause`.
    pub(crate) fn count(&mut self, cause: Cause) {
        *self.0.entry(cause).or_default() += 1;
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Causes) {
        for (cause, count) in &other.0 {
            *self.0.entry(cause.clone()).or_default() += count;
        }
    }

    /// Returns the number of attempts that were aborted.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Returns all causes with their counts, the most frequent first.
    pub fn by_frequency(&self) -> Vec<(&Cause, u64)> {
        let mut causes: Vec<_> = self.0.iter().map(|(cause, &count)| (cause, count)).collect();
        // Causes with equal counts are ordered by name, so that the order is the same each time.
        causes.sort_by_cached_key(|(cause, count)| {
            (u64::MAX - count, cause.place(), cause.reason.name(), cause.aborted, cause.met.clone())
        });
        causes
    }
}
