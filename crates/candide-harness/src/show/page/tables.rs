//! Every number of the results, in tables.

use super::super::rows::{
    CAUSES_HEADER, CAUSES_TITLE, HOTTEST_HEADER, HOTTEST_TITLE, LOCKS_TITLE, LOGS_TITLE,
    SETS_TITLE, counts_locks, finds_causes, has_logs, looks_at_hottest,
};
use super::comparison::{Comparison, Entry};
use super::markup::{Cell, Row, escape, folded, table};
use super::number::{count, decimal, mebibytes, percent, rate};
use super::parameters::parameters;
use crate::results::{
    Aborted, Doubt, Locks, LogUse, MEBIBYTE, Measurement, NamedPhase, NumberedSlice, Report,
    SetSizes, SpeedUp, Transactions,
};

/// Returns all tables; the most important ones are unfolded.
pub(crate) fn all(report: &Report, comparisons: &[Comparison<'_>]) -> String {
    let mut tables = vec![
        format!(
            "<h3>Throughput</h3>\n<p>Counts are those of all runs together.</p>\n{}",
            throughput(comparisons)
        ),
        format!(
            "<h3>Latency</h3>\n<p>In \u{b5}s, {}.</p>\n{}",
            report.latency_span(),
            latency(comparisons)
        ),
        folded("Memory and invariants", &memory(comparisons)),
    ];
    if report.results.iter().any(|result| !result.abort_reasons.is_empty()) {
        tables.push(folded("Aborted attempts by reason", &reasons(comparisons)));
    }
    if finds_causes(report) {
        tables.push(explained("Aborted attempts by cause", CAUSES_TITLE, &causes(comparisons)));
    }
    if looks_at_hottest(report) {
        tables.push(explained("The hottest row", HOTTEST_TITLE, &hottest(comparisons)));
    }
    if report.results.iter().any(|result| result.speed_up.is_some()) {
        let words = "The same program without transactions, on one thread";
        tables.push(explained("Speed-up", words, &speed_ups(comparisons)));
    }
    if report.results.iter().any(|result| result.sets.is_some()) {
        tables.push(explained("Read and write sets", SETS_TITLE, &sets(comparisons)));
    }
    if counts_locks(report) {
        tables.push(explained("Locks by policy", LOCKS_TITLE, &locks(comparisons)));
    }
    if has_logs(report) {
        tables.push(explained("Logs", LOGS_TITLE, &logs(comparisons)));
    }
    if report.results.iter().any(|result| result.timeline.is_some()) {
        tables.push(folded(
            "Over time: transactions per second in the fifths of each phase",
            &fifths(comparisons),
        ));
        tables.push(slices(comparisons));
    }
    if report.results.iter().any(|result| !result.slices.is_empty()) {
        let words = "Latencies in \u{b5}s of all types together, memory at the end of a slice";
        tables.push(explained("Slices of the runs", words, &run_slices(comparisons)));
    }
    tables.extend(comparisons.iter().map(parameters));
    tables.concat()
}

/// Returns the comparison with earlier results; an empty text if there is none.
pub(crate) fn changes(report: &Report, comparisons: &[Comparison<'_>]) -> String {
    let Some(baseline) = &report.baseline else { return String::new() };
    let sentence = format!("<p>{}.</p>\n", escape(&baseline.sentence()));
    if baseline.changes.is_empty() {
        return sentence;
    }
    let columns = ["txn/s before ", "txn/s now ", "change"];
    let table = of_results("Changes", &columns, comparisons, |Entry { index, result }| {
        let changes = baseline.changes.iter().filter(|change| change.result == index);
        let cells = changes.map(|change| {
            vec![
                Cell::derived(rate(change.before_tps)),
                Cell::derived(rate(result.throughput_tps)),
                Cell::text(change.words()),
            ]
        });
        cells.collect()
    });
    sentence + &table
}

/// Returns a folded table below a sentence, which is given without its full stop.
fn explained(title: &str, sentence: &str, table: &str) -> String {
    folded(title, &format!("<p>{}.</p>\n{table}", escape(sentence)))
}

/// The first columns of every table. If there are several workloads, a column with the workload
/// precedes them.
const SETTING: [&str; 4] = ["protocol", "CU", "TS", "threads "];

/// Returns a row for a result. The row begins with the setting of the measurement.
fn row(workload: Option<&str>, entry: Entry<'_>, cells: Vec<Cell>) -> Row {
    let Measurement { cu, ts, threads, .. } = *entry.result;
    let switch = |on: bool| Cell::text(if on { "on" } else { "off" });
    let setting = [
        Cell::text(entry.result.protocol_words()),
        switch(cu),
        switch(ts),
        Cell::number(threads.to_string(), "threads"),
    ];
    let cells = workload.map(Cell::text).into_iter().chain(setting).chain(cells).collect();
    Row { result: entry.index, cells }
}

/// Returns a table with rows for each result, in which `columns` follow those of the setting.
fn of_results(
    label: &str,
    columns: &[&str],
    comparisons: &[Comparison<'_>],
    cells: impl Fn(Entry<'_>) -> Vec<Vec<Cell>>,
) -> String {
    let several = comparisons.len() > 1;
    let header: Vec<&str> =
        several.then_some("workload").iter().chain(&SETTING).chain(columns).copied().collect();
    let rows = comparisons.iter().flat_map(|comparison| {
        let workload = several.then_some(comparison.title.as_str());
        let of_result = |&entry: &Entry<'_>| {
            cells(entry).into_iter().map(|cells| row(workload, entry, cells)).collect::<Vec<_>>()
        };
        comparison.entries.iter().flat_map(of_result).collect::<Vec<_>>()
    });
    table(label, &header, rows)
}

fn throughput(comparisons: &[Comparison<'_>]) -> String {
    let columns = [
        "txn/s, median ",
        "each run ",
        "first second ",
        "committed ",
        "aborted ",
        "of attempts ",
        "rolled back ",
        "measured, s ",
        "involuntary switches ",
        "least share of a core ",
    ];
    of_results("Throughput", &columns, comparisons, |Entry { result, .. }| {
        let runs: Vec<String> = result.tps_runs.iter().map(|&tps| rate(tps)).collect();
        vec![vec![
            Cell::number(rate(result.throughput_tps), "throughput_tps"),
            Cell::numbers(&runs, "tps_runs"),
            known(result.first_second_tps.map(rate), "first_second_tps", "not measured"),
            Cell::number(count(result.committed), "committed"),
            Cell::number(count(result.aborted), "aborted"),
            Cell::number(percent(result.abort_ratio()), "abort_rate"),
            Cell::number(count(result.user_aborted), "user_aborted"),
            Cell::number(decimal(result.duration_s), "duration_s"),
            known(result.involuntary_switches.map(count), "involuntary_switches", "unknown"),
            known(result.core_share.map(percent), "core_share", "unknown"),
        ]]
    })
}

fn logs(comparisons: &[Comparison<'_>]) -> String {
    let columns = ["level", "log, MiB ", "log bytes per txn "];
    of_results("Logs", &columns, comparisons, |Entry { result, .. }| {
        let of_log = |log: LogUse| {
            vec![
                Cell::text(log.acknowledge),
                optional_mebibytes(Some(log.log_bytes), "log/log_bytes"),
                known(
                    log.log_bytes_per_txn.map(decimal),
                    "log/log_bytes_per_txn",
                    "no transaction committed",
                ),
            ]
        };
        result.log.into_iter().map(of_log).collect()
    })
}

fn latency(comparisons: &[Comparison<'_>]) -> String {
    let columns = [
        "transaction",
        "committed ",
        "aborted ",
        "rolled back ",
        "median ",
        "99 % ",
        "99.9 % ",
        "slowest ",
    ];
    of_results("Latency", &columns, comparisons, |Entry { result, .. }| {
        let of_kind = |(name, kind): (&&str, &Transactions)| {
            let number = |text: String, field: &str| {
                Cell::number(text, &format!("transactions/{name}/{field}"))
            };
            vec![
                Cell::text(*name),
                number(count(kind.committed), "committed"),
                number(count(kind.aborted), "aborted"),
                number(count(kind.user_aborted), "user_aborted"),
                number(decimal(kind.p50_us), "p50_us"),
                number(decimal(kind.p99_us), "p99_us"),
                number(decimal(kind.p999_us), "p999_us"),
                number(decimal(kind.max_us), "max_us"),
            ]
        };
        result.transactions.iter().map(of_kind).collect()
    })
}

fn memory(comparisons: &[Comparison<'_>]) -> String {
    let columns = [
        "database, MiB ",
        "process, MiB ",
        "in huge pages, MiB ",
        "taken while measured, MiB ",
        "of it fresh, MiB ",
        "invariants examined ",
        "failed ",
    ];
    of_results("Memory and invariants", &columns, comparisons, |Entry { result, .. }| {
        vec![vec![
            optional_mebibytes(Some(result.memory.footprint.memory_bytes), "memory_bytes"),
            optional_mebibytes(result.memory.footprint.rss_bytes, "rss_bytes"),
            optional_mebibytes(result.memory.huge_page_bytes, "huge_page_bytes"),
            optional_mebibytes(Some(result.grown_bytes), "grown_bytes"),
            optional_mebibytes(Some(result.fresh_bytes), "fresh_bytes"),
            Cell::number(count(result.consistency.checked as u64), "consistency/checked"),
            Cell::derived(count(result.consistency.failed.len() as u64)),
        ]]
    })
}

/// Returns the cell of a number that may be unknown.
fn known(number: Option<String>, field: &str, otherwise: &str) -> Cell {
    number.map_or_else(|| Cell::derived(otherwise), |number| Cell::number(number, field))
}

fn optional_mebibytes(bytes: Option<u64>, field: &str) -> Cell {
    match bytes {
        Some(bytes) => Cell::number(mebibytes(bytes), field).scaled(MEBIBYTE),
        None => Cell::derived("unknown"),
    }
}

fn reasons(comparisons: &[Comparison<'_>]) -> String {
    of_results(
        "Aborted attempts by reason",
        &["reason", "attempts "],
        comparisons,
        |Entry { result, .. }| {
            let of_reason = |(reason, &attempts): (&&str, &u64)| {
                let number = Cell::number(count(attempts), &format!("abort_reasons/{reason}"));
                vec![Cell::text(reason.replace('_', " ")), number]
            };
            result.abort_reasons.iter().map(of_reason).collect()
        },
    )
}

fn causes(comparisons: &[Comparison<'_>]) -> String {
    let [_, attempts, reason, place, aborted, met] = CAUSES_HEADER;
    let columns = [&format!("{attempts} "), reason, place, aborted, met];
    of_results("Aborted attempts by cause", &columns, comparisons, |Entry { result, .. }| {
        let causes = result.causes.iter().flatten().enumerate();
        let of_cause = |(index, cause): (usize, &Aborted)| {
            vec![
                Cell::number(count(cause.attempts), &format!("causes/{index}/attempts")),
                Cell::text(cause.reason.replace('_', " ")),
                Cell::sentence(&cause.place),
                Cell::text(cause.aborted),
                Cell::sentence(if cause.met.is_empty() {
                    "unknown".to_string()
                } else {
                    cause.met.join(" or ")
                }),
            ]
        };
        causes.map(of_cause).collect()
    })
}

fn hottest(comparisons: &[Comparison<'_>]) -> String {
    let [_, row, numbers @ ..] = HOTTEST_HEADER;
    let numbers = numbers.map(|name| format!("{name} "));
    let columns: Vec<&str> = [row].into_iter().chain(numbers.iter().map(String::as_str)).collect();
    of_results("The hottest row", &columns, comparisons, |Entry { result, .. }| {
        let Some(hottest) = &result.hottest else { return Vec::new() };
        let number = |text: String, field: &str| Cell::number(text, &format!("hottest/{field}"));
        let optional = |text, field: &str| known(text, &format!("hottest/{field}"), "unknown");
        vec![vec![
            Cell::text(hottest.row),
            number(count(hottest.probes), "probes"),
            number(count(hottest.aborted), "aborted"),
            optional(hottest.p50_us.map(decimal), "p50_us"),
            optional(hottest.p99_us.map(decimal), "p99_us"),
            optional(hottest.versions_p99.map(count), "versions_p99"),
            optional(hottest.versions_max.map(count), "versions_max"),
        ]]
    })
}

fn speed_ups(comparisons: &[Comparison<'_>]) -> String {
    let columns = ["sequential txn/s ", "speed-up "];
    of_results("Speed-up", &columns, comparisons, |Entry { result, .. }| {
        let cells = |SpeedUp { sequential_tps, speed_up, speed_up_doubt }| {
            let doubt = speed_up_doubt.map_or("", Doubt::words);
            let speed_up = known(speed_up.map(decimal), "speed_up", doubt);
            vec![Cell::number(rate(sequential_tps), "sequential_tps"), speed_up]
        };
        result.speed_up.into_iter().map(cells).collect()
    })
}

fn sets(comparisons: &[Comparison<'_>]) -> String {
    let columns = ["transaction", "read set ", "write set ", "OCC would abort "];
    of_results("Read and write sets", &columns, comparisons, |Entry { result, .. }| {
        let cells = |name: &str, path: &str, sets: SetSizes| {
            let number = |text: String, field: &str| Cell::number(text, &format!("{path}{field}"));
            let would_abort = sets.occ_would_abort.map(percent);
            vec![
                Cell::text(name),
                number(decimal(sets.read_set), "read_set"),
                number(decimal(sets.write_set), "write_set"),
                known(would_abort, &format!("{path}occ_would_abort"), "not counted"),
            ]
        };
        let all = result.sets.map(|sets| cells("all", "", sets));
        let kinds = result.transactions.iter().filter_map(|(name, kind)| {
            kind.sets.map(|sets| cells(name, &format!("transactions/{name}/"), sets))
        });
        all.into_iter().chain(kinds).collect()
    })
}

fn locks(comparisons: &[Comparison<'_>]) -> String {
    let columns = Locks::NAMES.map(|name| format!("{name} "));
    let columns = columns.each_ref().map(String::as_str);
    of_results("Locks by policy", &columns, comparisons, |Entry { result, .. }| {
        let of_locks = |locks: Locks| {
            let counts = Locks::NAMES.into_iter().zip(locks.counts());
            counts
                .map(|(name, number)| Cell::number(count(number), &format!("locks/{name}")))
                .collect()
        };
        result.locks.into_iter().map(of_locks).collect()
    })
}

fn fifths(comparisons: &[Comparison<'_>]) -> String {
    let columns = [
        "phase",
        "from, s ",
        "first fifth ",
        "second ",
        "third ",
        "fourth ",
        "last ",
        "aborted, of attempts ",
    ];
    of_results("Over time", &columns, comparisons, |Entry { result, .. }| {
        let Some(timeline) = &result.timeline else { return Vec::new() };
        let of_phase = |(index, named): (usize, &NamedPhase)| {
            let mut cells = vec![
                Cell::text(named.name),
                Cell::derived(decimal(index as f64 * timeline.phase_s)),
            ];
            cells.extend(
                named.phase.parts(5).iter().map(|part| Cell::derived(rate(part.throughput()))),
            );
            cells.push(Cell::derived(percent(named.phase.parts(1)[0].abort_ratio())));
            cells
        };
        timeline.phases.iter().enumerate().map(of_phase).collect()
    })
}

fn run_slices(comparisons: &[Comparison<'_>]) -> String {
    let columns = [
        "run ",
        "from, s ",
        "length, s ",
        "txn/s ",
        "committed ",
        "aborted ",
        "rolled back ",
        "median ",
        "99 % ",
        "99.9 % ",
        "slowest ",
        "database, MiB ",
        "process, MiB ",
    ];
    of_results("Slices of the runs", &columns, comparisons, |Entry { result, .. }| {
        let of_slice = |(index, NumberedSlice { run, slice }): (usize, &NumberedSlice)| {
            let number =
                |text: String, field: &str| Cell::number(text, &format!("slices/{index}/{field}"));
            vec![
                number(run.to_string(), "run"),
                number(seconds(slice.from_s), "from_s"),
                number(seconds(slice.duration_s), "duration_s"),
                Cell::derived(rate(slice.throughput())),
                number(count(slice.all.committed), "committed"),
                number(count(slice.all.aborted), "aborted"),
                number(count(slice.all.user_aborted), "user_aborted"),
                number(decimal(slice.all.p50_us), "p50_us"),
                number(decimal(slice.all.p99_us), "p99_us"),
                number(decimal(slice.all.p999_us), "p999_us"),
                number(decimal(slice.all.max_us), "max_us"),
                number(mebibytes(slice.footprint.memory_bytes), "memory_bytes").scaled(MEBIBYTE),
                optional_mebibytes(slice.footprint.rss_bytes, &format!("slices/{index}/rss_bytes")),
            ]
        };
        result.slices.iter().enumerate().map(of_slice).collect()
    })
}

/// Returns lists of the slices of every phase, which are too many for a table.
fn slices(comparisons: &[Comparison<'_>]) -> String {
    let entries = comparisons
        .iter()
        .flat_map(|comparison| comparison.entries.iter().map(move |&entry| (comparison, entry)));
    let of_result = |(comparison, entry): (&Comparison<'_>, Entry<'_>)| {
        let Some(timeline) = &entry.result.timeline else { return String::new() };
        let phases = timeline.phases.iter().enumerate().map(|(index, named)| {
            let list = |name: &str, field: &str, scale: &str, numbers: Vec<String>| {
                format!(
                    "<dt>{name}</dt><dd data-field=\"timeline/phases/{index}/{field}\"{scale}>{}</dd>\n",
                    numbers.join(" ")
                )
            };
            let slices = &named.phase.slices;
            let lists = [
                list("committed", "committed", "", slices.iter().map(|slice| slice.committed.to_string()).collect()),
                list("aborted", "aborted", "", slices.iter().map(|slice| slice.aborted.to_string()).collect()),
                list(
                    "ms, of all runs",
                    "seconds",
                    " data-scale=\"0.001\"",
                    slices.iter().map(|slice| milliseconds(slice.seconds)).collect(),
                ),
            ];
            format!(
                "<h4>Phase {}: {}</h4>\n<dl class=\"slices\">\n{}</dl>\n",
                index + 1,
                escape(named.name),
                lists.concat()
            )
        });
        let lengths = format!(
            "<p>Phases of <span data-field=\"timeline/phase_s\">{}</span> s, in slices of <span data-field=\"timeline/slice_s\" \
             data-scale=\"0.001\">{}</span> ms.</p>\n",
            timeline.phase_s,
            decimal(timeline.slice_s * 1e3),
        );
        let summary = format!("Slices: {}, {}", comparison.title, entry.setting());
        let body = lengths + &phases.collect::<String>();
        format!(
            "<div class=\"screen\" data-results=\"{}\">\n{}</div>\n",
            entry.index,
            folded(&summary, &body)
        )
    };
    entries.map(of_result).collect()
}

/// Writes a time in seconds; times below a second are exact to the microsecond.
fn seconds(seconds: f64) -> String {
    if 0.0 < seconds && seconds < 1.0 { format!("{seconds:.6}") } else { decimal(seconds) }
}

/// Writes a time in milliseconds; times below a millisecond are exact to the nanosecond.
fn milliseconds(seconds: f64) -> String {
    let millis = seconds * 1e3;
    if millis < 1.0 { format!("{millis:.6}") } else { format!("{millis:.3}") }
}
