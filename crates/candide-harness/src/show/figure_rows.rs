//! The rows of a published figure's tables, which the text and the page have in common.

use crate::results::{Figure, Grade, Point, Shown, Verdict, grouped};

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

/// Returns a verdict in a line, which begins with the outcome.
pub(super) fn verdict_line(verdict: &Verdict) -> String {
    let Verdict { claim, threads, words, .. } = verdict;
    let plural = if *threads == 1 { "" } else { "s" };
    format!("{:<13}  {claim}: {words}, {threads} thread{plural}", verdict.outcome())
}

/// The word in the place of a ratio that is in doubt.
pub(super) const NOISE: &str = "noise";

/// The columns of [`figure_row`].
pub(super) const FIGURE_HEADER: [&str; 7] =
    ["line", "threads", "txn/s (median)", "slowest", "fastest", "ratio", "aborted attempts"];

/// Returns the cells for a line of a figure with one number of threads.
pub(super) fn figure_row(label: String, point: &Point, is_base: bool) -> [String; 7] {
    let (slowest, fastest) = point.range();
    [
        label,
        point.threads.to_string(),
        grouped(point.throughput_tps),
        grouped(slowest),
        grouped(fastest),
        match (point.told_ratio(), point.doubt) {
            (Some(ratio), _) => format!("{ratio:.2}"),
            (None, Some(_)) => NOISE.to_string(),
            (None, None) if is_base => "1".to_string(),
            (None, None) => String::new(),
        },
        format!("{:.2} %", point.abort_ratio * 100.0),
    ]
}

impl Shown {
    /// Returns the columns of the quantity.
    pub(super) fn columns(self) -> &'static [&'static str] {
        match self {
            Shown::Throughput => &[],
            Shown::SetSizes => &["read set", "of the base", "write set"],
            Shown::StaleCommits => &["occ would abort"],
            Shown::Commits => &["p50/90/99, \u{b5}s", "MiB"],
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
            Shown::Commits => {
                let micros = |micros: [f64; 3]| micros.map(|value| format!("{value:.1}")).join("/");
                let mebibytes = |bytes: u64| format!("{:.0}", bytes as f64 / f64::from(1 << 20));
                vec![
                    point.latency_us.map_or_else(String::new, micros),
                    point.table_bytes.map_or_else(String::new, mebibytes),
                ]
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
                |grade| match grade.doubt {
                    Some(_) => NOISE.to_string(),
                    None => format!("{} ({:.2})", grade.grade, grade.of_base),
                },
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
    use crate::results::Doubt;

    #[test]
    fn the_table_has_a_row_for_each_choice_and_a_column_for_each_protocol() {
        let grade = |protocol, choice, about, of_base| Grade {
            protocol,
            choice,
            about,
            threads: 2,
            of_base,
            doubt: (of_base == 0.25).then_some(Doubt::OneRun),
            grade: "+",
        };
        let (header, rows) = grade_table(&[
            grade("occ", "no-backoff", Some("contention regulation"), 0.5),
            grade("occ", "no-wait", None, 1.0),
            grade("mvto", "no-backoff", Some("contention regulation"), 0.25),
        ]);
        assert_eq!(header, ["choice", "about", "occ", "mvto"]);
        assert_eq!(
            rows,
            [
                ["no-backoff", "contention regulation", "+ (0.50)", "noise"],
                ["no-wait", "not in the figure", "+ (1.00)", "N/A"]
            ]
        );
    }
}
