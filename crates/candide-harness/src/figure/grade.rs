//! Grades of choices by what they leave of a system's throughput, as Figure 7 of "Opportunities for
//! Optimism" (VLDB 2020) grades systems.

use serde::Serialize;

use super::outcome::MeasuredLine;

/// A line that is graded: a system with one choice other than those of the line with which it is
/// compared.
#[derive(Debug, Clone)]
pub struct Graded {
    /// The name of the protocol.
    pub protocol: &'static str,
    /// The name of the choice.
    pub choice: &'static str,
    /// What the choice is about, in the words of the published figure; `None` if that figure does
    /// not have it.
    pub about: Option<&'static str>,
    /// The index of the line.
    pub line: usize,
}

/// The grade of a line. The names of the fields are the interface to other programs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Grade {
    pub(crate) protocol: &'static str,
    pub(crate) choice: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) about: Option<&'static str>,
    /// The largest number of threads with which the line was compared.
    pub(crate) threads: usize,
    /// The ratio of the throughputs with that many threads.
    pub(crate) of_base: f64,
    pub(crate) grade: &'static str,
}

impl Graded {
    /// Grades the line by its point with the largest number of threads. Returns `None` if the line
    /// was not compared.
    pub(crate) fn grade(&self, lines: &[MeasuredLine]) -> Option<Grade> {
        let points = lines[self.line].points.iter();
        let compared = points.filter_map(|point| Some((point.threads, point.of_base?)));
        let (threads, of_base) = compared.max_by_key(|(threads, _)| *threads)?;
        let &Graded { protocol, choice, about, .. } = self;
        Some(Grade { protocol, choice, about, threads, of_base, grade: grade_of(of_base) })
    }
}

/// Returns the grade of a choice that leaves this part of the throughput: at least nine tenths is
/// good, at least seven tenths poor, and less very poor.
fn grade_of(of_base: f64) -> &'static str {
    match of_base {
        0.9.. => "+",
        0.7..0.9 => "-",
        _ => "--",
    }
}

/// Returns the table of grades: the header, and a row for each choice. A choice that a protocol
/// does not have is "N/A", as in the published figure.
pub(crate) fn table(grades: &[Grade]) -> (Vec<&'static str>, Vec<Vec<String>>) {
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
    use crate::figure::outcome::in_tests::line;

    #[test]
    fn nine_tenths_are_good_and_seven_tenths_poor() {
        let grades = [
            (1.2, "+"),
            (1.0, "+"),
            (0.9, "+"),
            (0.899, "-"),
            (0.7, "-"),
            (0.699, "--"),
            (0.01, "--"),
            (0.0, "--"),
        ];
        for (of_base, grade) in grades {
            assert_eq!(grade_of(of_base), grade, "{of_base}");
        }
    }

    #[test]
    fn a_line_is_graded_by_its_largest_number_of_threads_that_was_compared() {
        let mut lines = [line(&[1, 4, 2, 8], &[(100, 0)]), line(&[1], &[(100, 0)])];
        let ratios = [Some(0.5), Some(0.95), Some(0.6), None];
        for (point, ratio) in lines[0].points.iter_mut().zip(ratios) {
            point.of_base = ratio;
        }
        let of = |line| Graded { protocol: "occ", choice: "no-backoff", about: None, line };
        let grade = of(0).grade(&lines).expect("compared");
        assert_eq!((grade.threads, grade.of_base, grade.grade), (4, 0.95, "+"));
        assert_eq!(of(1).grade(&lines), None, "compared with none");
    }

    #[test]
    fn the_table_has_a_row_for_each_choice_and_a_column_for_each_protocol() {
        let grade = |protocol, choice, about, of_base| Grade {
            protocol,
            choice,
            about,
            threads: 2,
            of_base,
            grade: grade_of(of_base),
        };
        let (header, rows) = table(&[
            grade("occ", "no-backoff", Some("contention regulation"), 0.5),
            grade("occ", "no-wait", None, 1.0),
            grade("mvto", "no-backoff", Some("contention regulation"), 0.75),
        ]);
        assert_eq!(header, ["choice", "about", "occ", "mvto"]);
        assert_eq!(
            rows,
            [
                ["no-backoff", "contention regulation", "-- (0.50)", "- (0.75)"],
                ["no-wait", "not in the figure", "+ (1.00)", "N/A"]
            ]
        );
    }
}
