//! The results as text, for people.

use std::io::{self, Write};

use comfy_table::{CellAlignment, Table, presets};

use crate::figure::{Figure, Point, Verdict, table_of_grades};
use crate::locks::Locks;
use crate::measurement::Measurement;
use crate::output::say;
use crate::report::Report;
use crate::slices::NumberedSlice;
use crate::timeline::NamedPhase;

/// Prints the tables, and the notes that a reader of the tables must know.
pub(crate) fn print(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    match &report.figure {
        Some(figure) => print_figure(figure, &report.results, out)?,
        None => {
            writeln!(
                out,
                "{}\n\nLatencies in µs, {}\n{}",
                throughputs(report),
                report.latency_span(),
                latencies(report)
            )?;
        }
    }
    if finds_causes(report) {
        writeln!(out, "\n{CAUSES_TITLE}\n{}", causes(report))?;
    }
    if looks_at_hottest(report) {
        writeln!(out, "\n{HOTTEST_TITLE}\n{}", hottest(report))?;
    }
    if report.figure.is_none() && counts_sets(report) {
        writeln!(out, "\n{SETS_TITLE}\n{}", sets(report))?;
    }
    if report.figure.is_none() && counts_locks(report) {
        writeln!(out, "\n{LOCKS_TITLE}\n{}", locks(report))?;
    }
    if has_logs(report) {
        writeln!(out, "\n{LOGS_TITLE}\n{}", logs(report))?;
    }
    if report.figure.is_none() && report.results.iter().any(|result| result.timeline.is_some()) {
        writeln!(out, "\n{TIMELINE_TITLE}\n{}", timelines(report))?;
    }
    for result in report.results.iter().filter(|result| !result.slices.is_empty()) {
        writeln!(out, "\n{}: {SLICES_TITLE}\n{}", label(result), slices(result))?;
    }
    for note in &report.notes {
        writeln!(out, "note: {note}")?;
    }
    for result in &report.results {
        for note in &result.consistency.notes {
            writeln!(out, "note: {}: {note}", label(result))?;
        }
    }
    Ok(())
}

/// Prints, to standard error, the invariants that did not hold.
pub(crate) fn say_failures(report: &Report) {
    for result in &report.results {
        for failure in &result.consistency.failed {
            say(&format!("FAILED: {}: {failure}", label(result)));
        }
    }
}

/// Prints a figure's lines, panel by panel, beside the claims of the paper, and then the
/// differences from the paper.
fn print_figure(figure: &Figure, results: &[Measurement], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}\n{}", figure.title, figure.source)?;
    for panel in figure.lines.chunk_by(|one, next| one.panel == next.panel) {
        let [first @ .., last] = FIGURE_HEADER;
        let shown = figure.shows.columns();
        let header = [&first[..], shown, &[last]].concat();
        let mut table = table(&header, 1..7 + shown.len());
        let has_base = panel.iter().any(|line| line.base.is_some());
        for line in panel {
            let published = line.published.as_ref().map_or("", |published| published.text);
            // The claim is about the paper's number of threads. The point nearest to it is the last
            // one.
            let nearest = line.points.len().saturating_sub(1);
            let rows = line.points.iter().enumerate();
            table.add_rows(rows.map(|(index, point)| {
                let is_base = line.base.is_none() && has_base;
                let held = results[point.result].consistency.failed.is_empty();
                let label =
                    if held { line.label.clone() } else { format!("{}: FAILED", line.label) };
                let [first @ .., last] = figure_row(
                    label,
                    point,
                    is_base,
                    if index == nearest { published } else { "" },
                );
                first.into_iter().chain(figure.shows.cells(point)).chain([last])
            }));
        }
        writeln!(out, "\n{}\n{table}", panel[0].panel)?;
    }
    if figure.lines.iter().any(|line| line.base.is_some()) {
        writeln!(
            out,
            "\nRatios are to the line above that has 1, with as many threads: the median of those within each round."
        )?;
    }
    if has_phases(figure) {
        let mut table = table(&PHASES_HEADER, 1..7);
        table.add_rows(phase_rows(figure).map(|(_, cells)| cells));
        writeln!(out, "\n{PHASES_TITLE}\n{table}")?;
    }
    if !figure.grades.is_empty() {
        let (header, rows) = table_of_grades(&figure.grades);
        let mut table = table(&header, 0..0);
        table.add_rows(rows);
        writeln!(out, "\n{GRADES_TITLE}\n{table}")?;
    }
    if !figure.verdicts.is_empty() {
        let mut table = table(&VERDICTS_HEADER, 1..3);
        table.add_rows(figure.verdicts.iter().map(verdict_row));
        writeln!(out, "\n{VERDICTS_TITLE}\n{table}\n")?;
    }
    writeln!(
        out,
        "The paper's column is what its text says: heights of bars and lines are not in a text. Here is different:"
    )?;
    for deviation in &figure.deviations {
        writeln!(out, "- {deviation}")?;
    }
    writeln!(out)
}

/// Returns whether a line of the figure has phases.
pub(crate) fn has_phases(figure: &Figure) -> bool {
    figure.lines.iter().flat_map(|line| &line.points).any(|point| !point.phases.is_empty())
}

/// The heading of the table of [`phase_rows`].
pub(crate) const PHASES_TITLE: &str =
    "By phase: aborted attempts of transactions that ended in the first 5 ms of a phase, and later";

/// The columns of [`phase_rows`].
pub(crate) const PHASES_HEADER: [&str; 7] = [
    "line",
    "threads",
    "phases",
    "txn/s",
    "aborted attempts",
    "aborted in the first 5 ms",
    "aborted later",
];

/// Returns one row for each name of phases of each line, with the index of the line's result.
pub(crate) fn phase_rows(figure: &Figure) -> impl Iterator<Item = (usize, [String; 7])> {
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
pub(crate) const GRADES_TITLE: &str = "Protocols by the choices, at high contention and with the most threads: + if a choice leaves at \
                                       least 0.9 of the throughput, - if at least 0.7, -- if less";

/// The heading of the table of verdicts.
pub(crate) const VERDICTS_TITLE: &str = "What the paper claims, and whether it came out here";

/// The columns of [`verdict_row`].
pub(crate) const VERDICTS_HEADER: [&str; 4] = ["claim", "threads", "measured", ""];

/// Returns the cells of a verdict.
pub(crate) fn verdict_row(verdict: &Verdict) -> [String; 4] {
    [
        verdict.claim.clone(),
        verdict.threads.to_string(),
        verdict.words.clone(),
        verdict.outcome().to_string(),
    ]
}

/// The columns of [`figure_row`].
const FIGURE_HEADER: [&str; 8] = [
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
fn figure_row(label: String, point: &Point, is_base: bool, published: &str) -> [String; 8] {
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

/// The columns of [`throughput_row`].
pub(crate) const THROUGHPUT_HEADER: [&str; 12] = [
    "workload",
    "protocol",
    "cu",
    "ts",
    "threads",
    "txn/s (median)",
    "slowest",
    "fastest",
    "first second",
    "fresh MiB",
    "aborted attempts",
    "invariants",
];

/// Returns the cells for one setting's throughput and consistency.
pub(crate) fn throughput_row(result: &Measurement) -> [String; 12] {
    let (slowest, fastest) = result.range();
    let failed = result.consistency.failed.len();
    let held = result.consistency.checked - failed;
    [
        format!("{}{}", result.workload, result.variety),
        protocol(result),
        switch(result.cu).to_string(),
        switch(result.ts).to_string(),
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
pub(crate) const LATENCY_HEADER: [&str; 9] =
    ["setting", "transaction", "committed", "aborted", "rolled back", "p50", "p99", "p99.9", "max"];

/// Returns one row for each transaction type of a setting.
pub(crate) fn latency_rows(result: &Measurement) -> impl Iterator<Item = [String; 9]> {
    result.transactions.iter().map(|(name, kind)| {
        let micros = |value: f64| format!("{value:.1}");
        [
            label(result),
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
pub(crate) fn finds_causes(report: &Report) -> bool {
    report.results.iter().any(|result| result.causes.is_some())
}

/// The largest number of causes that are printed for a setting.
const CAUSES_SHOWN: usize = 20;

/// The heading of the table of causes.
pub(crate) const CAUSES_TITLE: &str = "Aborted attempts by cause; met: who was writing there at the same time. Finding that out \
                                       takes time, so the figures above are lower than without --causes";

/// The columns of [`cause_rows`].
pub(crate) const CAUSES_HEADER: [&str; 6] =
    ["setting", "attempts", "reason", "place", "aborted", "met"];

/// Returns one row for each cause of a setting, the most frequent cause first.
pub(crate) fn cause_rows(result: &Measurement) -> impl Iterator<Item = [String; 6]> {
    result.causes.iter().flatten().map(|cause| {
        [
            label(result),
            grouped(cause.attempts as f64),
            cause.reason.to_string(),
            cause.place.clone(),
            cause.aborted.to_string(),
            if cause.met.is_empty() { "unknown".to_string() } else { cause.met.join(" or ") },
        ]
    })
}

/// Returns whether reads of the hottest row were requested for any setting.
pub(crate) fn looks_at_hottest(report: &Report) -> bool {
    report.results.iter().any(|result| result.hottest.is_some())
}

/// The heading of the table of hottest rows.
pub(crate) const HOTTEST_TITLE: &str = "The hottest row, as threads find it after each 256th of their transactions: \u{b5}s that a read of \
                                        it takes, and how many versions of it there are. These reads are not counted above, but take time";

/// The columns of [`hottest_row`].
pub(crate) const HOTTEST_HEADER: [&str; 8] =
    ["setting", "row", "reads", "aborted", "read p50", "read p99", "versions p99", "versions max"];

/// Returns the cells that summarise the reads of the hottest row under one setting; `None` if such
/// reads were not requested.
pub(crate) fn hottest_row(result: &Measurement) -> Option<[String; 8]> {
    let hottest = result.hottest.as_ref()?;
    let micros = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.1}"));
    let count = |value: Option<u64>| value.map_or_else(String::new, |value| grouped(value as f64));
    Some([
        label(result),
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
pub(crate) fn counts_sets(report: &Report) -> bool {
    let mut transactions = report.results.iter().flat_map(|result| result.transactions.values());
    transactions.any(|kind| kind.sets.is_some())
}

/// What is said of the table of read and write sets.
pub(crate) const SETS_TITLE: &str = "Read and write sets: entries for each committed transaction, on average, and the share of the \
     commits that OCC would have aborted, if it was asked for. Counting takes time after each \
     transaction, so throughput is a little lower than otherwise";

/// The columns of [`sets_rows`].
pub(crate) const SETS_HEADER: [&str; 5] =
    ["setting", "transaction", "read set", "write set", "occ would abort"];

/// One row for all transaction types of a setting, and one for each type.
pub(crate) fn sets_rows(result: &Measurement) -> impl Iterator<Item = [String; 5]> {
    let kinds = result.transactions.iter().map(|(name, kind)| (*name, kind.sets));
    let all = [("all", result.sets)].into_iter().chain(kinds);
    all.filter_map(|(name, sets)| {
        let sets = sets?;
        let would_abort = sets.occ_would_abort;
        Some([
            label(result),
            name.to_string(),
            format!("{:.2}", sets.read_set),
            format!("{:.2}", sets.write_set),
            would_abort.map_or_else(String::new, |share| format!("{:.2} %", share * 100.0)),
        ])
    })
}

/// Returns whether any setting has policies that may lock rows.
pub(crate) fn counts_locks(report: &Report) -> bool {
    report.results.iter().any(|result| result.locks.is_some())
}

/// The heading of the table of locks.
pub(crate) const LOCKS_TITLE: &str = "Locks on rows by policy: taken; waited for; attempts that died for want of one, or were killed \
     for another transaction's; locks forgone; those among the taken for what the attempt before \
     failed on (retrospective); releases to take locks in order (restored); rows that became hot \
     (heated) and no longer are (cooled). Those that every commit takes do not count";

/// Returns the cells for the locks of a setting; `None` if no policy may lock.
fn locks_row(result: &Measurement) -> Option<Vec<String>> {
    let counts = result.locks?.counts().map(|count| grouped(count as f64));
    Some([label(result)].into_iter().chain(counts).collect())
}

/// Returns whether the databases had logs.
pub(crate) fn has_logs(report: &Report) -> bool {
    report.results.iter().any(|result| result.log.is_some())
}

/// The heading of the table of [`log_row`].
pub(crate) const LOGS_TITLE: &str =
    "Logs: the level for which transactions waited, and the commit records of the measured time";

/// The columns of [`log_row`].
pub(crate) const LOGS_HEADER: [&str; 4] = ["setting", "level", "log bytes/txn", "log MiB/s"];

/// Returns the cells for the log of a setting; `None` if its database had none.
pub(crate) fn log_row(result: &Measurement) -> Option<[String; 4]> {
    let log = result.log?;
    Some([
        label(result),
        log.acknowledge.to_string(),
        log.log_bytes_per_txn.map_or_else(String::new, |bytes| format!("{bytes:.1}")),
        format!("{:.1}", log.log_bytes as f64 / MEBIBYTE / result.duration_s),
    ])
}

/// The heading of the table of [`timeline_rows`].
pub(crate) const TIMELINE_TITLE: &str = "Over time: txn/s in the fifths of each phase";

/// The columns of [`timeline_rows`].
pub(crate) const TIMELINE_HEADER: [&str; 9] = [
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
pub(crate) fn timeline_rows(result: &Measurement) -> impl Iterator<Item = [String; 9]> {
    result.timeline.iter().flat_map(move |timeline| {
        timeline.phases.iter().enumerate().map(move |(index, NamedPhase { name, phase })| {
            let from = format!("{:.3} s", index as f64 * timeline.phase_s);
            let parts = phase.parts(5);
            let rate = |part: usize| grouped(parts[part].throughput());
            let aborted = format!("{:.2} %", phase.parts(1)[0].abort_ratio() * 100.0);
            [
                label(result),
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
const SLICES_TITLE: &str = "latencies in µs of all types, memory in MiB at the end";

/// The columns of [`slice_rows`].
const SLICES_HEADER: [&str; 10] =
    ["run", "from", "txn/s", "committed", "p50", "p99", "p99.9", "max", "database", "process"];

/// Returns one row for each slice of a setting; none if its runs were not cut into slices.
fn slice_rows(result: &Measurement) -> impl Iterator<Item = [String; 10]> {
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

/// The number of bytes in a mebibyte.
pub(crate) const MEBIBYTE: f64 = 1048576.0;

/// Returns a setting in a few words.
pub(crate) fn label(result: &Measurement) -> String {
    let off = [(result.cu, ", cu off"), (result.ts, ", ts off")];
    let off: String = off.iter().filter(|(on, _)| !on).map(|(_, words)| *words).collect();
    let plural = if result.threads == 1 { "" } else { "s" };
    format!(
        "{}{} {}, {} thread{plural}{off}",
        result.workload,
        result.variety,
        protocol(result),
        result.threads
    )
}

fn protocol(result: &Measurement) -> String {
    let factors = if result.factors.is_empty() { "" } else { " (handicapped)" };
    format!("{}{factors}", result.protocol_words())
}

fn switch(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

fn throughputs(report: &Report) -> Table {
    let mut table = table(&THROUGHPUT_HEADER, 4..11);
    table.add_rows(report.results.iter().map(throughput_row));
    table
}

fn latencies(report: &Report) -> Table {
    let mut table = table(&LATENCY_HEADER, 2..9);
    table.add_rows(report.results.iter().flat_map(latency_rows));
    table
}

/// Returns the table of the first causes of each setting. The files of results have all causes.
fn causes(report: &Report) -> Table {
    let mut table = table(&CAUSES_HEADER, 1..2);
    for result in &report.results {
        table.add_rows(cause_rows(result).take(CAUSES_SHOWN));
        let others = result.causes.iter().flatten().skip(CAUSES_SHOWN);
        let (kinds, attempts) =
            others.fold((0, 0), |(kinds, sum), cause| (kinds + 1, sum + cause.attempts));
        if kinds > 0 {
            table.add_row([
                label(result),
                grouped(attempts as f64),
                format!("{kinds} other causes"),
            ]);
        }
    }
    table
}

fn hottest(report: &Report) -> Table {
    let mut table = table(&HOTTEST_HEADER, 2..8);
    table.add_rows(report.results.iter().filter_map(hottest_row));
    table
}

fn sets(report: &Report) -> Table {
    let mut table = table(&SETS_HEADER, 2..5);
    table.add_rows(report.results.iter().flat_map(sets_rows));
    table
}

fn locks(report: &Report) -> Table {
    let mut table = table(&[&["setting"], &Locks::NAMES[..]].concat(), 1..10);
    table.add_rows(report.results.iter().filter_map(locks_row));
    table
}

fn logs(report: &Report) -> Table {
    let mut table = table(&LOGS_HEADER, 2..4);
    table.add_rows(report.results.iter().filter_map(log_row));
    table
}

fn timelines(report: &Report) -> Table {
    let mut table = table(&TIMELINE_HEADER, 2..9);
    table.add_rows(report.results.iter().flat_map(timeline_rows));
    table
}

fn slices(result: &Measurement) -> Table {
    let mut table = table(&SLICES_HEADER, 0..10);
    table.add_rows(slice_rows(result));
    table
}

/// Returns an empty table whose columns in `numbers` are aligned to the right, as numbers are.
pub(crate) fn table(header: &[&str], numbers: std::ops::Range<usize>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    for index in numbers {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Writes a number rounded to a whole one, with its digits in groups of three.
pub(crate) fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn digits_are_grouped() {
        let texts = [0.4, 12.0, 999.6, 123_456.0, 1_234_567.2].map(grouped);
        assert_eq!(texts, ["0", "12", "1,000", "123,456", "1,234,567"]);
    }
}
