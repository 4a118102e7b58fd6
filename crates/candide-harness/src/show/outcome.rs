//! One line that says what came out of a command.

use super::table::wrapped;
use crate::results::{CORE_SHARE_MIN, Measurement, Report, grouped, protocol};

/// The largest number of settings whose throughput the line gives one by one.
const SETTINGS_MAX: usize = 3;

/// The numbers that are written as words.
const WORDS: [&str; 12] = [
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve",
];

/// Says in one sentence what came out: throughput or claims, and the checks.
pub(super) fn outcome(report: &Report) -> String {
    let parts = [
        claims(report).unwrap_or_else(|| throughput(&report.results)),
        checks(report),
        noise(report),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    wrapped(&(parts.join("; ") + "."), "")
}

/// Counts the paper's claims that hold; `None` if the report reproduces no figure.
fn claims(report: &Report) -> Option<String> {
    let verdicts = &report.figure.as_ref()?.verdicts;
    let count = |holds| verdicts.iter().filter(|verdict| verdict.holds == holds).count();
    let open = match count(None) {
        0 => String::new(),
        open => format!(", {open} are open"),
    };
    Some(format!("{} of {} claims of the paper hold here{open}", count(Some(true)), verdicts.len()))
}

/// Warns if threads did not have their cores.
fn noise(report: &Report) -> String {
    let shares = report.results.iter().filter_map(|result| result.core_share);
    let least = shares.fold(1.0, f64::min);
    match least < CORE_SHARE_MIN {
        true => format!("noise: a thread had only {least:.2} of a core"),
        false => String::new(),
    }
}

/// Describes the checks of the tables.
fn checks(report: &Report) -> String {
    let results = || report.results.iter().map(|result| &result.consistency);
    let checked: usize = results().map(|consistency| consistency.checked).sum();
    let failed: usize = results().map(|consistency| consistency.failed.len()).sum();
    match (checked, failed) {
        (0, _) => "nothing was checked".to_string(),
        (_, 0) => "every check held".to_string(),
        (checked, failed) => format!("{failed} of {checked} checks FAILED"),
    }
}

/// Gives the throughput by the number of threads, or from the slowest to the fastest result if
/// there are many settings.
fn throughput(results: &[Measurement]) -> String {
    let mut series: Vec<Vec<&Measurement>> = Vec::new();
    for result in results {
        match series.iter_mut().find(|series| setting(series[0]) == setting(result)) {
            Some(series) => series.push(result),
            None => series.push(vec![result]),
        }
    }
    if series.len() > SETTINGS_MAX {
        return extremes(results, series.len());
    }
    let is_alone = series.len() == 1;
    let sentences: Vec<String> = series
        .into_iter()
        .map(|mut series| {
            series.sort_by_key(|result| result.threads);
            let name = if is_alone { String::new() } else { format!("{}: ", setting(series[0])) };
            let rates = series.iter().enumerate().map(|(index, result)| {
                let unit = if index == 0 { " transactions a second" } else { "" };
                let threads = with_threads(result.threads, index == 0);
                format!("{}{unit} with {threads}", grouped(result.throughput_tps))
            });
            name + &rates.collect::<Vec<_>>().join(", ")
        })
        .collect();
    sentences.join("; ")
}

fn extremes(results: &[Measurement], settings: usize) -> String {
    let by_throughput =
        |a: &&Measurement, b: &&Measurement| a.throughput_tps.total_cmp(&b.throughput_tps);
    let (Some(least), Some(most)) =
        (results.iter().min_by(by_throughput), results.iter().max_by(by_throughput))
    else {
        return String::new();
    };
    let words = |result: &Measurement| {
        let threads = with_threads(result.threads, true);
        format!("{} ({} with {threads})", grouped(result.throughput_tps), setting(result))
    };
    format!("{settings} settings: from {} to {} transactions a second", words(least), words(most))
}

/// Returns a setting without its number of threads.
fn setting(result: &Measurement) -> String {
    let off = [(result.cu, ", cu off"), (result.ts, ", ts off")];
    let off: String = off.iter().filter(|(on, _)| !on).map(|(_, words)| *words).collect();
    format!("{}{} {}{off}", result.workload, result.variety, protocol(result))
}

/// Returns a number of threads in words, with the noun if `is_named`.
fn with_threads(threads: usize, is_named: bool) -> String {
    let number = match threads.checked_sub(1).and_then(|index| WORDS.get(index)) {
        Some(word) => (*word).to_string(),
        None => threads.to_string(),
    };
    match (is_named, threads) {
        (false, _) => number,
        (true, 1) => format!("{number} thread"),
        (true, _) => format!("{number} threads"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample::{Sample, measurement, report};

    const SAMPLE: Sample = Sample { protocol: 0, threads: 1, cu: true, ts: true, tps: 27_153.0 };

    #[test]
    fn the_line_gives_throughput_by_threads_and_the_checks() {
        let two = Sample { threads: 2, tps: 40_092.0, ..SAMPLE };
        let of = |samples: &[Sample]| {
            outcome(&report(samples.iter().map(|&sample| measurement("tpcc", sample)).collect()))
        };
        assert_eq!(
            of(&[SAMPLE, two]),
            "27,153 transactions a second with one thread, 40,092 with two; every check held."
        );
        let off = Sample { cu: false, ..SAMPLE };
        let words = of(&[SAMPLE, off]);
        assert!(words.contains("tpcc occ: 27,153") && words.contains("tpcc occ, cu off: 27,153"));
        let many: Vec<Sample> =
            (0..4).map(|protocol| Sample { protocol, tps: 10.0, ..two }).chain([SAMPLE]).collect();
        let words = of(&many).replace('\n', " ");
        assert!(words.starts_with("4 settings: from 10 (tpcc "), "{words}");
        assert!(words.contains(" to 27,153 (tpcc occ with one thread) transactions a"), "{words}");
    }

    #[test]
    fn failed_and_missing_checks_are_in_the_line() {
        let mut bad = measurement("tpcc", Sample { threads: 13, ..SAMPLE });
        bad.consistency.failed.push("a row is lost".to_string());
        assert_eq!(
            outcome(&report(vec![bad])),
            "27,153 transactions a second with 13 threads; 1 of 2 checks FAILED."
        );
        let mut noisy = measurement("tpcc", SAMPLE);
        noisy.core_share = Some(0.614);
        let words = outcome(&report(vec![noisy])).replace('\n', " ");
        assert!(words.ends_with("every check held; noise: a thread had only 0.61 of a core."));
        let mut unchecked = measurement("tpcc", SAMPLE);
        unchecked.consistency.checked = 0;
        assert!(outcome(&report(vec![unchecked])).ends_with("; nothing was checked."));
    }
}
