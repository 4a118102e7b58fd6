//! One line of the results: a workload under one setting, with all runs merged.

use std::collections::BTreeMap;

use candide::experiments::Timestamps;
use candide_workloads::{Cause, Consistency};
use serde::Serialize;

use super::doubt::{Doubt, Sampled};
use super::hottest::Hottest;
use super::kind::Transactions;
use super::locks::Locks;
use super::memory::Memory;
use super::number::{abort_ratio, range};
use super::run::Run;
use super::sets::SetSizes;
use super::slices::NumberedSlice;
use super::speed_up::SpeedUp;
use super::timeline::Timeslices;

/// The size of a workload, and how much of it is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// A size that suits any machine, with all checks.
    Strict,
    /// The published size and checks.
    Paper,
}

/// The results of a measurement. The names of the fields are the interface to other programs.
#[derive(Debug, Serialize)]
pub(crate) struct Measurement {
    pub(crate) workload: String,
    /// The workload's knobs and the seed, and the `rate` if it was given.
    pub(crate) params: serde_json::Value,
    /// The knobs, in words, by which this result differs from the report's other results of the
    /// same workload.
    #[serde(skip)]
    pub(crate) variety: String,
    pub(crate) profile: Profile,
    pub(crate) protocol: &'static str,
    pub(crate) cu: bool,
    pub(crate) ts: bool,
    /// The source of timestamps; `None` if the protocol offers no choice of sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timestamps: Option<&'static str>,
    /// Whether the database was opaque; `None` if the protocol leaves no choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) opaque: Option<bool>,
    pub(crate) factors: Vec<&'static str>,
    pub(crate) threads: usize,
    /// The measured time of all runs together. All counts are also of all runs together.
    pub(crate) duration_s: f64,
    pub(crate) committed: u64,
    /// Attempts aborted by a conflict.
    pub(crate) aborted: u64,
    /// Transactions that rolled themselves back. These transactions are not part of the throughput.
    pub(crate) user_aborted: u64,
    /// The median throughput of the runs.
    pub(crate) throughput_tps: f64,
    pub(crate) tps_runs: Vec<f64>,
    /// The median throughput in the first second of the measured time; `None` if the measured time
    /// is shorter than two seconds, or has phases.
    pub(crate) first_second_tps: Option<f64>,
    /// The speed-up over the same program without transactions; `None` if there is no such program.
    #[serde(flatten)]
    pub(crate) speed_up: Option<SpeedUp>,
    /// The number of bytes that the database took in the measured time of all runs.
    pub(crate) grown_bytes: u64,
    /// The part of `grown_bytes` that the operating system had not yet provided. The first
    /// transaction that uses a page of these bytes waits for the operating system.
    pub(crate) fresh_bytes: u64,
    /// The number of times that the system made a thread leave its core; `None` if the system does
    /// not report it.
    pub(crate) involuntary_switches: Option<u64>,
    /// The least share of a core that a thread had in a run, of the time in which it could have
    /// run: 1 unless other threads took the core; `None` if the system does not report it.
    pub(crate) core_share: Option<f64>,
    /// Whether Ctrl-C ended the last run early. Then there may be fewer runs than requested.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) ended_early: bool,
    pub(crate) abort_reasons: BTreeMap<&'static str, u64>,
    /// The sizes of read and write sets; `None` if nothing committed.
    #[serde(flatten)]
    pub(crate) sets: Option<SetSizes>,
    /// The locks on rows by policy; `None` if no table has a policy that may lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) locks: Option<Locks>,
    /// The aborted attempts by their causes, the most frequent first; `None` if causes were not
    /// requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) causes: Option<Vec<Aborted>>,
    /// Results of reads of the workload's hottest row; `None` if they were not requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hottest: Option<Hottest>,
    /// The results by transaction type. Types without an ended transaction are left out.
    pub(crate) transactions: BTreeMap<&'static str, Transactions>,
    /// The results by phase and slice; `None` if the workload does not change while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeline: Option<Timeslices>,
    /// The slices of all runs, one run after the other; empty if the runs were not cut into
    /// slices.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) slices: Vec<NumberedSlice>,
    #[serde(flatten)]
    pub(crate) memory: Memory,
    /// The log of the measured time; `None` if the database had none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) log: Option<LogUse>,
    pub(crate) consistency: Consistency,
}

/// The use of the log in the measured time.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct LogUse {
    /// The level for which transactions waited.
    pub(crate) acknowledge: &'static str,
    /// The bytes of all commit records of all runs.
    pub(crate) log_bytes: u64,
    /// The bytes of commit records per committed transaction; `None` if nothing committed.
    pub(crate) log_bytes_per_txn: Option<f64>,
}

impl LogUse {
    /// Returns the use of the log in `run`, whose transactions waited for the level `acknowledge`.
    pub(crate) fn new(acknowledge: &'static str, run: &Run) -> Self {
        let (log_bytes, committed) = (run.log_bytes, run.committed());
        LogUse {
            acknowledge,
            log_bytes,
            log_bytes_per_txn: (committed > 0).then(|| log_bytes as f64 / committed as f64),
        }
    }
}

/// Attempts that were aborted for the same cause.
#[derive(Debug, Serialize)]
pub(crate) struct Aborted {
    pub(crate) reason: &'static str,
    /// The table of the conflict; `None` if the conflict concerned no table.
    pub(crate) table: Option<String>,
    /// The column group of the conflict; `None` if the conflict concerned an absent key.
    pub(crate) group: Option<&'static str>,
    /// Table and group in words.
    #[serde(skip)]
    pub(crate) place: String,
    /// The type of the aborted transaction.
    pub(crate) aborted: &'static str,
    /// The possible types of the conflicting transaction; empty if the type is unknown.
    pub(crate) met: Vec<&'static str>,
    pub(crate) attempts: u64,
}

impl Aborted {
    /// Returns the `attempts` that `cause` aborted; `kinds` are the workload's transaction types.
    pub(crate) fn new(kinds: &[&'static str], cause: &Cause, attempts: u64) -> Self {
        Aborted {
            reason: cause.reason.name(),
            table: cause.table.clone(),
            group: cause.group,
            place: cause.place(),
            aborted: kinds[cause.aborted],
            met: cause.met.iter().map(|&kind| kinds[kind]).collect(),
            attempts,
        }
    }
}

impl Measurement {
    /// Returns the source of timestamps; `None` if it is a counter.
    pub(crate) fn other_timestamps(&self) -> Option<&'static str> {
        self.timestamps.filter(|&timestamps| timestamps != Timestamps::default().name())
    }

    /// Returns whether the protocol's opacity was off.
    pub(crate) fn is_opacity_off(&self) -> bool {
        self.opaque == Some(false)
    }

    /// Returns the protocol, with the choices that differ from the default of its databases.
    pub(crate) fn protocol_words(&self) -> String {
        let timestamps = self
            .other_timestamps()
            .map_or_else(String::new, |timestamps| format!(" by {timestamps}"));
        let opaque = if self.is_opacity_off() { " not opaque" } else { "" };
        format!("{}{timestamps}{opaque}", self.protocol)
    }

    /// Returns the throughputs by which this result is compared with others.
    pub(crate) fn sampled(&self) -> Sampled<'_> {
        Sampled { runs: &self.tps_runs, core_share: self.core_share }
    }

    /// Returns the throughput as a multiple of that of `base`, or the reason why that is not told;
    /// `None` if nothing committed in `base`.
    pub(crate) fn ratio_to(&self, base: &Measurement) -> Option<Result<f64, Doubt>> {
        (base.throughput_tps > 0.0).then(|| {
            match Doubt::of_medians(&self.sampled(), &base.sampled()) {
                Some(doubt) => Err(doubt),
                None => Ok(self.throughput_tps / base.throughput_tps),
            }
        })
    }

    /// Returns the throughput of the slowest and of the fastest run.
    pub(crate) fn range(&self) -> (f64, f64) {
        range(&self.tps_runs)
    }

    /// Describes the times from which and to which latencies are measured.
    pub(crate) fn latency_span(&self) -> &'static str {
        if self.params.get("rate").is_some() {
            "from the intended beginning to the end, waiting and retries included"
        } else {
            "from the first attempt to the end, retries included"
        }
    }

    /// Returns the share of attempts that were aborted.
    pub(crate) fn abort_ratio(&self) -> f64 {
        abort_ratio(self.committed, self.aborted)
    }
}

/// Returns a knob's value without the quotation marks of JSON.
pub(crate) fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}
