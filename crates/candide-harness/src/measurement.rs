//! One line of the results: a workload under one setting, with all runs merged.

use std::collections::BTreeMap;
use std::fs;

use candide::Level;
use candide::experiments::Timestamps;
use candide_workloads::{Cause, Consistency};
use serde::Serialize;

use crate::any_workload::{AnyWorkload, Variant};
use crate::driver::{Kind, Run};
use crate::failure::Failure;
use crate::files::level_name;
use crate::hottest::Hottest;
use crate::locks::Locks;
use crate::sets::SetSizes;
use crate::slices::NumberedSlice;
use crate::timeline::Timeslices;

/// The size of a workload, and how much of it is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// A size that suits any machine, and everything is checked.
    Strict,
    /// The published size and checks.
    Paper,
}

/// The results of a measurement. The names of the fields are the interface to other programs.
#[derive(Debug, Serialize)]
pub(crate) struct Measurement {
    pub(crate) workload: String,
    /// The workload's knobs and the seed. Also the `rate`, if it was given.
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
    /// Transactions that rolled themselves back. They are not part of the throughput.
    pub(crate) user_aborted: u64,
    /// The median throughput of the runs.
    pub(crate) throughput_tps: f64,
    pub(crate) tps_runs: Vec<f64>,
    /// The median throughput in the first second of the measured time; `None` if the measured time
    /// is shorter than two seconds, or has phases.
    pub(crate) first_second_tps: Option<f64>,
    /// The number of bytes that the database took in the measured time of all runs.
    pub(crate) grown_bytes: u64,
    /// The part of `grown_bytes` that the operating system had not yet provided. The first
    /// transaction that uses a page of these bytes waits for the operating system.
    pub(crate) fresh_bytes: u64,
    /// How often the system made a thread leave its core; `None` if it does not report that.
    pub(crate) involuntary_switches: Option<u64>,
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
    /// The results by transaction type. Types of which no transaction has ended are left out.
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
    fn new(level: Level, run: &Run) -> Self {
        let (log_bytes, committed) = (run.log_bytes, run.committed());
        LogUse {
            acknowledge: level_name(level),
            log_bytes,
            log_bytes_per_txn: (committed > 0).then(|| log_bytes as f64 / committed as f64),
        }
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
    fn new(kinds: &[&'static str], cause: &Cause, attempts: u64) -> Self {
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

/// The memory of the process after the runs.
#[derive(Debug, Serialize)]
pub(crate) struct Memory {
    #[serde(flatten)]
    pub(crate) footprint: Footprint,
    /// The resident bytes in huge pages; `None` if the system does not report them.
    pub(crate) huge_page_bytes: Option<u64>,
}

impl Memory {
    pub(crate) fn now(memory_bytes: usize) -> Self {
        let huge_page_bytes = bytes_of("/proc/self/smaps_rollup", "AnonHugePages:");
        Memory { footprint: Footprint::now(memory_bytes), huge_page_bytes }
    }
}

/// The part of the memory use that can be read while transactions are being measured, because the
/// system has counted it already. Counting huge pages makes the system walk through all pages,
/// which takes 8 ms for each GiB of small pages.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Footprint {
    /// The bytes that the database has reserved.
    pub(crate) memory_bytes: u64,
    /// The resident bytes of the process, with the inputs drawn beforehand; `None` if the system
    /// does not report them.
    pub(crate) rss_bytes: Option<u64>,
}

impl Footprint {
    pub(crate) fn now(memory_bytes: usize) -> Self {
        Footprint {
            memory_bytes: memory_bytes as u64,
            rss_bytes: bytes_of("/proc/self/status", "VmRSS:"),
        }
    }
}

/// Returns the number of bytes that Linux reports in the line of `file` that begins with `field`;
/// `None` if there is no such line.
fn bytes_of(file: &str, field: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes << 10)
}

/// The parameters of a measurement.
pub(crate) struct Setting<'a> {
    pub(crate) workload: &'a dyn AnyWorkload,
    pub(crate) variant: &'a Variant,
    pub(crate) threads: usize,
    pub(crate) seed: u64,
    pub(crate) rate: Option<f64>,
    pub(crate) profile: Profile,
    /// The level for which transactions waited; `None` if the database had no log.
    pub(crate) level: Option<Level>,
}

impl Measurement {
    /// Merges the results of `runs`, which holds at least one run.
    pub(crate) fn new(
        setting: &Setting<'_>,
        runs: &[Run],
        memory: Memory,
        consistency: Consistency,
    ) -> Result<Self, Failure> {
        let Setting { workload, variant, threads, seed, rate, profile, level } = *setting;
        let mut params = workload.params()?;
        params["seed"] = seed.into();
        if let Some(rate) = rate {
            params["rate"] = rate.into();
        }
        let kinds = workload.kinds();
        let counts_stale = variant.finds_stale_commits();
        let mut total = Run::new(kinds.len());
        runs.iter().for_each(|run| total.merge(run));
        let sum = |count: fn(&Kind) -> u64| total.kinds.iter().map(count).sum();
        let tps_runs: Vec<f64> = runs.iter().map(Run::throughput).collect();
        let first_seconds: Vec<f64> =
            runs.iter().filter_map(|run| run.first_second).map(|count| count as f64).collect();
        let slices = runs.iter().enumerate().flat_map(|(index, run)| {
            run.slices
                .iter()
                .map(move |slice| NumberedSlice { run: index + 1, slice: slice.clone() })
        });
        let ended = kinds
            .iter()
            .zip(&total.kinds)
            .filter(|(_, kind)| kind.committed + kind.user_aborted > 0);
        Ok(Measurement {
            workload: workload.name(),
            params,
            variety: String::new(),
            profile,
            protocol: variant.protocol.name(),
            cu: variant.cu,
            ts: variant.ts,
            timestamps: variant.timestamps.map(Timestamps::name),
            opaque: variant.opaque,
            factors: variant.factors.iter().map(|factor| factor.name()).collect(),
            threads,
            duration_s: total.elapsed.as_secs_f64(),
            committed: total.committed(),
            aborted: sum(|kind| kind.aborted),
            user_aborted: sum(|kind| kind.user_aborted),
            throughput_tps: median(&tps_runs),
            tps_runs,
            first_second_tps: (!first_seconds.is_empty()).then(|| median(&first_seconds)),
            grown_bytes: total.grown_bytes,
            fresh_bytes: total.fresh_bytes,
            log: level.map(|level| LogUse::new(level, &total)),
            involuntary_switches: total.involuntary_switches,
            ended_early: total.ended_early,
            transactions: ended
                .map(|(&name, kind)| (name, Transactions::new(kind, counts_stale)))
                .collect(),
            timeline: workload.timeline().map(|timeline| Timeslices::new(&timeline, &total.phases)),
            slices: slices.collect(),
            abort_reasons: total.abort_reasons,
            sets: total.sets.averages(counts_stale),
            locks: variant.protocol.locks().then_some(total.locks),
            causes: total.causes.map(|causes| {
                causes
                    .by_frequency()
                    .into_iter()
                    .map(|(cause, count)| Aborted::new(kinds, cause, count))
                    .collect()
            }),
            hottest: total
                .hottest
                .zip(workload.hottest())
                .map(|(probes, row)| Hottest::new(row, &probes)),
            memory,
            consistency,
        })
    }

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

    /// Returns the throughput of the slowest and of the fastest run.
    pub(crate) fn range(&self) -> (f64, f64) {
        self.tps_runs
            .iter()
            .fold((f64::INFINITY, 0.0), |(low, high), &tps| (tps.min(low), tps.max(high)))
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
        let attempts = self.aborted + self.committed;
        if attempts == 0 { 0.0 } else { self.aborted as f64 / attempts as f64 }
    }
}

/// Returns a knob's value without the quotation marks of JSON.
pub(crate) fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

/// Returns the median of `values`, which are not empty. If their number is even, the median is the
/// mean of the two in the middle.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&[3.0]), 3.0);
        assert_eq!(median(&[9.0, 1.0, 5.0]), 5.0);
        assert_eq!(median(&[9.0, 1.0, 5.0, 6.0]), 5.5);
    }
}
