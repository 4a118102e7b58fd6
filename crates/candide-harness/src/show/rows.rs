//! The rows of tables, which the text and the page have in common.

use std::ops::Range;

use super::explained::Shared;
use crate::results::{
    Figure, Grade, MEBIBYTE, Measurement, NamedPhase, NumberedSlice, Point, Report, Shown, SpeedUp,
    Verdict, grouped, label, protocol,
};

/// Returns whether a line of the figure has phases.
pub(super) fn has_phases(figure: &Figure) -> bool {
    figure.lines.iter().flat_map(|line| &line.points).any(|point| !point.phases.is_empty())
}

/// The heading of the table of [`phase_rows`].
pub(super) const PHASES_TITLE: &str =
    "By phase: aborted attempts of transactions that ended in the first 5 ms of a phase, and later";

/// The columns of [`phase_rows`].
pub(super) const PHASES_HEADER: [&str; 7] = [
    "line",
    "threads",
    "phases",
    "txn/s",
    "aborted attempts",
    "aborted in the first 5 ms",
    "aborted later",
];

/// Returns one row for each name of phases of each line, with the index of the line's result.
pub(super) fn phase_rows(figure: &Figure) -> impl Iterator<Item = (usize, [String; 7])> {
    let share = |share: f64| format!("{:.2} %", share * 100.0);
    figure.lines.iter().flat_map(move |line| {
        line.points.iter().flat_map(move |point| {
            point.phases.iter().map(move |phase| {
                let cells = [
                    line.label.clone(),
                    point.threads.to_string(),
                    phase.name.to_string(),
                    grouped(phase.throughput_tps),
                    share(phase.abort_ratio),
                    share(phase.abort_ratio_at_first),
                    share(phase.abort_ratio_later),
                ];
                (point.result, cells)
            })
        })
    })
}

/// The heading of the table of grades.
pub(super) const GRADES_TITLE: &str = "Protocols by the choices, at high contention and with the most threads: + if a choice leaves at \
                                       least 0.9 of the throughput, - if at least 0.7, -- if less";

/// The heading of the table of verdicts.
pub(super) const VERDICTS_TITLE: &str = "Claims of the paper, and whether they hold here";

/// The columns of [`verdict_row`].
pub(super) const VERDICTS_HEADER: [&str; 4] = ["claim", "threads", "measured", ""];

/// Returns the cells of a verdict.
pub(super) fn verdict_row(verdict: &Verdict) -> [String; 4] {
    [
        verdict.claim.clone(),
        verdict.threads.to_string(),
        verdict.words.clone(),
        verdict.outcome().to_string(),
    ]
}

/// The columns of [`figure_row`].
pub(super) const FIGURE_HEADER: [&str; 8] = [
    "line",
    "threads",
    "txn/s (median)",
    "slowest",
    "fastest",
    "ratio",
    "aborted attempts",
    "the paper",
];

/// Returns the cells for a line of a figure with one number of threads.
pub(super) fn figure_row(
    label: String,
    point: &Point,
    is_base: bool,
    published: &str,
) -> [String; 8] {
    let (slowest, fastest) = point.range();
    [
        label,
        point.threads.to_string(),
        grouped(point.throughput_tps),
        grouped(slowest),
        grouped(fastest),
        match point.of_base {
            Some(ratio) => format!("{ratio:.2}"),
            None if is_base => "1".to_string(),
            None => String::new(),
        },
        format!("{:.2} %", point.abort_ratio * 100.0),
        published.to_string(),
    ]
}

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
pub(super) const CAUSES_TITLE: &str = "Aborted attempts by cause; met: who was writing there at the same time. Finding that out \
                                       takes time, so the figures above are lower than without --causes";

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
    let SpeedUp { sequential_tps, speed_up } = result.speed_up?;
    Some(format!(
        "{}: {speed_up:.2} times as fast as the sequential program, {} txn/s",
        label(result),
        grouped(sequential_tps)
    ))
}

/// Returns whether reads of the hottest row were requested for any setting.
pub(super) fn looks_at_hottest(report: &Report) -> bool {
    report.results.iter().any(|result| result.hottest.is_some())
}

/// The heading of the table of hottest rows.
pub(super) const HOTTEST_TITLE: &str = "The hottest row, as threads find it after each 256th of their transactions: \u{b5}s that a read of \
                                        it takes, and how many versions of it there are. These reads are not counted above, but take time";

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
pub(super) const SETS_TITLE: &str = "Read and write sets: entries for each committed transaction, on average, and the share of the \
     commits that OCC would have aborted, if it was asked for. Counting takes time after each \
     transaction, so throughput is a little lower than otherwise";

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
pub(super) const LOCKS_TITLE: &str = "Locks on rows by policy: taken; waited for; attempts that died for want of one, or were killed \
     for another transaction's; locks forgone; those among the taken for what the attempt before \
     failed on (retrospective); releases to take locks in order (restored); rows that became hot \
     (heated) and no longer are (cooled). Those that every commit takes do not count";

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

impl Shown {
    /// Returns the columns of the quantity.
    pub(super) fn columns(self) -> &'static [&'static str] {
        match self {
            Shown::Throughput => &[],
            Shown::SetSizes => &["read set", "of the base", "write set"],
            Shown::StaleCommits => &["occ would abort"],
            Shown::Tails => &["p99.9, \u{b5}s", "involuntary switches"],
        }
    }

    /// Returns the cells of the columns, for a point.
    pub(super) fn cells(self, point: &Point) -> Vec<String> {
        let text =
            |value: Option<f64>, format: fn(f64) -> String| value.map_or_else(String::new, format);
        let decimal = |value: f64| format!("{value:.2}");
        let sets = point.sets;
        match self {
            Shown::Throughput => Vec::new(),
            Shown::SetSizes => vec![
                text(sets.map(|sets| sets.read_set), decimal),
                text(point.read_set_of_base, decimal),
                text(sets.map(|sets| sets.write_set), decimal),
            ],
            Shown::StaleCommits => {
                vec![text(sets.and_then(|sets| sets.occ_would_abort), |share| {
                    format!("{:.2} %", share * 100.0)
                })]
            }
            Shown::Tails => vec![
                text(point.p999_us, |micros| format!("{micros:.1}")),
                text(point.involuntary_switches, |count| format!("{count:.0}")),
            ],
        }
    }
}

/// Returns the table of grades: the header, and a row for each choice. A choice that a protocol
/// does not have is "N/A", as in the published figure.
pub(super) fn grade_table(grades: &[Grade]) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let (mut protocols, mut choices) = (Vec::new(), Vec::new());
    for grade in grades {
        let choice = (grade.choice, grade.about);
        if !protocols.contains(&grade.protocol) {
            protocols.push(grade.protocol);
        }
        if !choices.contains(&choice) {
            choices.push(choice);
        }
    }
    let row = |&(choice, about): &(&str, Option<&str>)| {
        let cell = |protocol: &&str| {
            let is_it = |grade: &&Grade| (grade.protocol, grade.choice) == (*protocol, choice);
            grades.iter().find(is_it).map_or_else(
                || "N/A".to_string(),
                |grade| format!("{} ({:.2})", grade.grade, grade.of_base),
            )
        };
        let head = [choice.to_string(), about.unwrap_or("not in the figure").to_string()];
        head.into_iter().chain(protocols.iter().map(cell)).collect()
    };
    let rows = choices.iter().map(row).collect();
    (["choice", "about"].into_iter().chain(protocols.iter().copied()).collect(), rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_row_for_each_choice_and_a_column_for_each_protocol() {
        let grade = |protocol, choice, about, of_base| Grade {
            protocol,
            choice,
            about,
            threads: 2,
            of_base,
            grade: "+",
        };
        let (header, rows) = grade_table(&[
            grade("occ", "no-backoff", Some("contention regulation"), 0.5),
            grade("occ", "no-wait", None, 1.0),
            grade("mvto", "no-backoff", Some("contention regulation"), 0.75),
        ]);
        assert_eq!(header, ["choice", "about", "occ", "mvto"]);
        assert_eq!(
            rows,
            [
                ["no-backoff", "contention regulation", "+ (0.50)", "+ (0.75)"],
                ["no-wait", "not in the figure", "+ (1.00)", "N/A"]
            ]
        );
    }
}
