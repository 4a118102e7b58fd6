//! The rows of tables, which the text and the page have in common.

use std::ops::Range;

use super::explained::Shared;
use crate::results::{
    Change, Doubt, MEBIBYTE, Measurement, NamedPhase, NumberedSlice, Report, SpeedUp, grouped,
    label, protocol,
};

/// The columns of [`throughput_table`], if nothing is left out.
const THROUGHPUT_HEADER: [&str; 12] = [
    "workload",
    "cu",
    "ts",
    "protocol",
    "threads",
    "txn/s",
    "slowest",
    "fastest",
    "first second",
    "fresh MiB",
    "aborted",
    "invariants",
];

/// Returns the header and the rows of the table of throughput and consistency, and the columns with
/// numbers. The parts of the setting that are shared are left out.
pub(super) fn throughput_table(
    results: &[Measurement],
    shared: Shared,
) -> (Vec<&'static str>, Vec<Vec<String>>, Range<usize>) {
    let left_out = [shared.workload, shared.cu, shared.ts];
    fn kept<T>(cells: [T; 12], left_out: [bool; 3]) -> Vec<T> {
        let is_kept = |index: usize| !left_out.get(index).is_some_and(|left_out| *left_out);
        let cells = cells.into_iter().enumerate();
        cells.filter(|(index, _)| is_kept(*index)).map(|(_, cell)| cell).collect()
    }
    let rows = results.iter().map(|result| kept(throughput_row(result), left_out)).collect();
    let first = 4 - left_out.iter().filter(|left_out| **left_out).count();
    (kept(THROUGHPUT_HEADER, left_out), rows, first..first + 7)
}

fn throughput_row(result: &Measurement) -> [String; 12] {
    let (slowest, fastest) = result.range();
    let failed = result.consistency.failed.len();
    let held = result.consistency.checked - failed;
    [
        format!("{}{}", result.workload, result.variety),
        switch(result.cu).to_string(),
        switch(result.ts).to_string(),
        protocol(result),
        result.threads.to_string(),
        grouped(result.throughput_tps),
        grouped(slowest),
        grouped(fastest),
        result.first_second_tps.map_or_else(String::new, grouped),
        fresh(result),
        format!("{:.2} %", result.abort_ratio() * 100.0),
        if failed == 0 {
            format!("{held} hold")
        } else {
            format!("{failed} of {} FAILED", failed + held)
        },
    ]
}

/// The columns of [`latency_rows`].
pub(super) const LATENCY_HEADER: [&str; 9] =
    ["setting", "transaction", "committed", "aborted", "rolled back", "p50", "p99", "p99.9", "max"];

/// Returns one row for each transaction type of a setting.
pub(super) fn latency_rows(
    shared: Shared,
    result: &Measurement,
) -> impl Iterator<Item = [String; 9]> {
    result.transactions.iter().map(move |(name, kind)| {
        let micros = |value: f64| format!("{value:.1}");
        [
            shared.label(result),
            name.to_string(),
            grouped(kind.committed as f64),
            grouped(kind.aborted as f64),
            grouped(kind.user_aborted as f64),
            micros(kind.p50_us),
            micros(kind.p99_us),
            micros(kind.p999_us),
            micros(kind.max_us),
        ]
    })
}

/// Returns whether the causes of aborts were requested for any setting.
pub(super) fn finds_causes(report: &Report) -> bool {
    report.results.iter().any(|result| result.causes.is_some())
}

/// The largest number of causes that are printed for a setting.
pub(super) const CAUSES_SHOWN: usize = 20;

/// The heading of the table of causes.
pub(super) const CAUSES_TITLE: &str = "Aborted attempts by cause. Met is the type of the transaction that was writing in the same \
                                       place. Finding causes takes time, so throughput is lower than without --causes";

/// The columns of [`cause_rows`].
pub(super) const CAUSES_HEADER: [&str; 6] =
    ["setting", "attempts", "reason", "place", "aborted", "met"];

/// Returns one row for each cause of a setting, the most frequent cause first.
pub(super) fn cause_rows(
    shared: Shared,
    result: &Measurement,
) -> impl Iterator<Item = [String; 6]> {
    result.causes.iter().flatten().map(move |cause| {
        [
            shared.label(result),
            grouped(cause.attempts as f64),
            cause.reason.to_string(),
            cause.place.clone(),
            cause.aborted.to_string(),
            if cause.met.is_empty() { "unknown".to_string() } else { cause.met.join(" or ") },
        ]
    })
}

/// Returns the sentence on the speed-up under one setting over the same program without
/// transactions; `None` if there is no such program.
pub(super) fn speed_up_line(result: &Measurement) -> Option<String> {
    let SpeedUp { sequential_tps, speed_up, speed_up_doubt } = result.speed_up?;
    let told = speed_up.map(|speed_up| format!("{speed_up:.2} times as fast as"));
    let doubt =
        || format!("not told ({}) how fast beside", speed_up_doubt.map_or("", Doubt::words));
    Some(format!(
        "{}: {} the sequential program, {} txn/s",
        label(result),
        told.unwrap_or_else(doubt),
        grouped(sequential_tps)
    ))
}

/// The columns of [`change_row`].
pub(super) const CHANGES_HEADER: [&str; 4] = ["setting", "before", "now", "change"];

/// Returns the cells of the change of a result: its setting, both throughputs, and what is told.
pub(super) fn change_row(shared: Shared, report: &Report, change: &Change) -> [String; 4] {
    let result = &report.results[change.result];
    [
        shared.label(result),
        grouped(change.before_tps),
        grouped(result.throughput_tps),
        change.words(),
    ]
}

/// Returns whether reads of the hottest row were requested for any setting.
pub(super) fn looks_at_hottest(report: &Report) -> bool {
    report.results.iter().any(|result| result.hottest.is_some())
}

/// The heading of the table of hottest rows.
pub(super) const HOTTEST_TITLE: &str = "The hottest row, as threads find it after each 256th of their transactions: the \u{b5}s that a read \
                                        takes, and the versions of the row. Other results do not count these reads, which take time";

/// The columns of [`hottest_row`].
pub(super) const HOTTEST_HEADER: [&str; 8] =
    ["setting", "row", "reads", "aborted", "read p50", "read p99", "versions p99", "versions max"];

/// Returns the cells that summarise the reads of the hottest row under one setting; `None` if such
/// reads were not requested.
pub(super) fn hottest_row(shared: Shared, result: &Measurement) -> Option<[String; 8]> {
    let hottest = result.hottest.as_ref()?;
    let micros = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.1}"));
    let count = |value: Option<u64>| value.map_or_else(String::new, |value| grouped(value as f64));
    Some([
        shared.label(result),
        hottest.row.to_string(),
        grouped(hottest.probes as f64),
        grouped(hottest.aborted as f64),
        micros(hottest.p50_us),
        micros(hottest.p99_us),
        count(hottest.versions_p99),
        count(hottest.versions_max),
    ])
}

/// Returns whether the sizes of read and write sets were counted by transaction type.
pub(super) fn counts_sets(report: &Report) -> bool {
    let mut transactions = report.results.iter().flat_map(|result| result.transactions.values());
    transactions.any(|kind| kind.sets.is_some())
}

/// The title of the table of read and write sets.
pub(super) const SETS_TITLE: &str = "Read and write sets: entries for each committed transaction, on average, and with \
     --would-abort the share of the commits that OCC would have aborted. Counting takes a little \
     time after each transaction";

/// The columns of [`sets_rows`].
pub(super) const SETS_HEADER: [&str; 5] =
    ["setting", "transaction", "read set", "write set", "occ would abort"];

/// Returns one row for all transaction types of a setting, and one for each type.
pub(super) fn sets_rows(shared: Shared, result: &Measurement) -> impl Iterator<Item = [String; 5]> {
    let kinds = result.transactions.iter().map(|(name, kind)| (*name, kind.sets));
    let all = [("all", result.sets)].into_iter().chain(kinds);
    all.filter_map(move |(name, sets)| {
        let sets = sets?;
        let would_abort = sets.occ_would_abort;
        Some([
            shared.label(result),
            name.to_string(),
            format!("{:.2}", sets.read_set),
            format!("{:.2}", sets.write_set),
            would_abort.map_or_else(String::new, |share| format!("{:.2} %", share * 100.0)),
        ])
    })
}

/// Returns whether any setting has policies that may lock rows.
pub(super) fn counts_locks(report: &Report) -> bool {
    report.results.iter().any(|result| result.locks.is_some())
}

/// The heading of the table of locks.
pub(super) const LOCKS_TITLE: &str = "Locks on rows by policy: locks that were taken and waited for; attempts that ended because they \
     did not get a lock (died), or because another transaction asked for it (killed); locks without \
     which an attempt went on (forgone); locks taken at once where the attempt before had failed \
     (retrospective); releases to take locks in order (restored); rows that became hot (heated) and \
     no longer are (cooled). Locks that every commit takes are not counted";

/// Returns the cells for the locks of a setting; `None` if no policy may lock.
pub(super) fn locks_row(shared: Shared, result: &Measurement) -> Option<Vec<String>> {
    let counts = result.locks?.counts().map(|count| grouped(count as f64));
    Some([shared.label(result)].into_iter().chain(counts).collect())
}

/// Returns whether the databases had logs.
pub(super) fn has_logs(report: &Report) -> bool {
    report.results.iter().any(|result| result.log.is_some())
}

/// The heading of the table of [`log_row`].
pub(super) const LOGS_TITLE: &str =
    "Logs: the level for which transactions waited, and the commit records of the measured time";

/// The columns of [`log_row`].
pub(super) const LOGS_HEADER: [&str; 4] = ["setting", "level", "log bytes/txn", "log MiB/s"];

/// Returns the cells for the log of a setting; `None` if its database had none.
pub(super) fn log_row(shared: Shared, result: &Measurement) -> Option<[String; 4]> {
    let log = result.log?;
    Some([
        shared.label(result),
        log.acknowledge.to_string(),
        log.log_bytes_per_txn.map_or_else(String::new, |bytes| format!("{bytes:.1}")),
        format!("{:.1}", log.log_bytes as f64 / MEBIBYTE / result.duration_s),
    ])
}

/// The heading of the table of [`timeline_rows`].
pub(super) const TIMELINE_TITLE: &str = "Over time: txn/s in the fifths of each phase";

/// The columns of [`timeline_rows`].
pub(super) const TIMELINE_HEADER: [&str; 9] = [
    "setting",
    "phase",
    "from",
    "first fifth",
    "second",
    "third",
    "fourth",
    "last",
    "aborted attempts",
];

/// Returns one row for each phase of a setting; none if the workload has no phases.
pub(super) fn timeline_rows(
    shared: Shared,
    result: &Measurement,
) -> impl Iterator<Item = [String; 9]> {
    result.timeline.iter().flat_map(move |timeline| {
        timeline.phases.iter().enumerate().map(move |(index, NamedPhase { name, phase })| {
            let from = format!("{:.3} s", index as f64 * timeline.phase_s);
            let parts = phase.parts(5);
            let rate = |part: usize| grouped(parts[part].throughput());
            let aborted = format!("{:.2} %", phase.parts(1)[0].abort_ratio() * 100.0);
            [
                shared.label(result),
                name.to_string(),
                from,
                rate(0),
                rate(1),
                rate(2),
                rate(3),
                rate(4),
                aborted,
            ]
        })
    })
}

/// The heading of the table of [`slice_rows`].
pub(super) const SLICES_TITLE: &str = "latencies in µs of all types, memory in MiB at the end";

/// The columns of [`slice_rows`].
pub(super) const SLICES_HEADER: [&str; 10] =
    ["run", "from", "txn/s", "committed", "p50", "p99", "p99.9", "max", "database", "process"];

/// Returns one row for each slice of a setting; none if its runs were not cut into slices.
pub(super) fn slice_rows(result: &Measurement) -> impl Iterator<Item = [String; 10]> {
    result.slices.iter().map(|NumberedSlice { run, slice }| {
        let micros = |value: f64| format!("{value:.1}");
        let mebibytes = |bytes: u64| format!("{:.1}", bytes as f64 / MEBIBYTE);
        [
            run.to_string(),
            format!("{:.3} s", slice.from_s),
            grouped(slice.throughput()),
            grouped(slice.all.committed as f64),
            micros(slice.all.p50_us),
            micros(slice.all.p99_us),
            micros(slice.all.p999_us),
            micros(slice.all.max_us),
            mebibytes(slice.footprint.memory_bytes),
            slice.footprint.rss_bytes.map_or_else(String::new, mebibytes),
        ]
    })
}

/// Returns how much of the memory that the database took in the measured time was fresh, such as
/// "2 of 310"; nothing if the database took none.
fn fresh(result: &Measurement) -> String {
    let mebibytes = |bytes: u64| grouped(bytes as f64 / MEBIBYTE);
    match (result.fresh_bytes, result.grown_bytes) {
        (0, 0) => String::new(),
        (fresh, grown) => format!("{} of {}", mebibytes(fresh), mebibytes(grown)),
    }
}

fn switch(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}
