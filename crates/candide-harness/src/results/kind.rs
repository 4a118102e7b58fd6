//! The results of one transaction type: as they are counted, and as they are reported.

use std::time::Duration;

use candide_workloads::Step;
use hdrhistogram::Histogram;
use serde::Serialize;

use super::sets::{SetSizes, SetSums};

/// The results of one transaction type.
pub(crate) struct Kind {
    pub(crate) committed: u64,
    /// Attempts aborted by a conflict.
    pub(crate) aborted: u64,
    /// Transactions that rolled themselves back.
    pub(crate) user_aborted: u64,
    /// The nanoseconds from the first attempt to the end of each transaction. If a rate was given,
    /// they are from the transaction's intended beginning instead.
    pub(crate) latency: Histogram<u64>,
    /// The read and write sets of the committed transactions, if they are counted by type.
    pub(crate) sets: SetSums,
}

impl Kind {
    pub(crate) fn new() -> Self {
        // With two digits, the buckets of a few types fit into the second-level cache. The bound of
        // an hour is more than any transaction takes, even with the time it waits to begin if the
        // rate is too high.
        let latency = Histogram::new_with_bounds(1, 3_600_000_000_000, 2).expect("bounds in order");
        Kind { committed: 0, aborted: 0, user_aborted: 0, latency, sets: SetSums::default() }
    }

    /// Counts one transaction and records its latency.
    #[inline]
    pub(crate) fn record(&mut self, step: &Step, latency: Duration) {
        if step.committed {
            self.committed += 1;
        } else {
            self.user_aborted += 1;
        }
        self.aborted += step.retries;
        self.latency.saturating_record(latency.as_nanos() as u64);
    }

    /// Clears all counts.
    pub(crate) fn clear(&mut self) {
        (self.committed, self.aborted, self.user_aborted) = (0, 0, 0);
        self.latency.reset();
        self.sets = SetSums::default();
    }

    /// Adds the results of another thread or run.
    pub(crate) fn merge(&mut self, other: &Kind) {
        self.committed += other.committed;
        self.aborted += other.aborted;
        self.user_aborted += other.user_aborted;
        self.latency.add(&other.latency).expect("all have the same bounds");
        self.sets.merge(other.sets);
    }
}

/// The results of one transaction type, or of all types together. Latencies are from the first
/// attempt to the end, retries included. If a rate was given, latencies are from the *intended*
/// beginning instead. Then the latency of a transaction that begins late includes its wait for the
/// previous one, as for a client. So one slow transaction also shows in the latencies of all
/// transactions that queued behind it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Transactions {
    pub(crate) committed: u64,
    pub(crate) aborted: u64,
    pub(crate) user_aborted: u64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) p999_us: f64,
    pub(crate) max_us: f64,
    /// The sizes of read and write sets; `None` if they were not counted by type.
    #[serde(flatten)]
    pub(crate) sets: Option<SetSizes>,
}

impl Transactions {
    /// Returns the results of a type; `counts_stale` says whether stale commits were counted.
    pub(crate) fn new(kind: &Kind, counts_stale: bool) -> Self {
        let micros = |nanos: u64| nanos as f64 / 1e3;
        let quantile = |quantile| micros(kind.latency.value_at_quantile(quantile));
        Transactions {
            committed: kind.committed,
            aborted: kind.aborted,
            user_aborted: kind.user_aborted,
            p50_us: quantile(0.5),
            p99_us: quantile(0.99),
            p999_us: quantile(0.999),
            max_us: micros(kind.latency.max()),
            sets: kind.sets.averages(counts_stale),
        }
    }
}
