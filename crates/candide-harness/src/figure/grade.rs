//! Grades of choices by the share of a system's throughput that they leave, as Figure 7 of
//! "Opportunities for Optimism" (VLDB 2020) grades systems.

use crate::results::{Doubt, Grade, MeasuredLine};

/// A line that is graded: a system with one choice other than those of the line with which it is
/// compared.
#[derive(Debug, Clone)]
pub struct Graded {
    /// The name of the protocol.
    pub protocol: &'static str,
    /// The name of the choice.
    pub choice: &'static str,
    /// The subject of the choice, in the words of the published figure; `None` if that figure does
    /// not have the choice.
    pub about: Option<&'static str>,
    /// The index of the line.
    pub line: usize,
}

impl Graded {
    /// Grades the line by its point with the largest number of threads. Returns `None` if the line
    /// was not compared.
    pub(crate) fn grade(&self, lines: &[MeasuredLine]) -> Option<Grade> {
        let points = lines[self.line].points.iter();
        let compared = points.filter_map(|point| Some((point, point.of_base?)));
        let (point, of_base) = compared.max_by_key(|(point, _)| point.threads)?;
        let &Graded { protocol, choice, about, .. } = self;
        let (threads, grade) = (point.threads, grade_of(of_base));
        // A choice without an effect has a ratio within the spread, and its grade can be told.
        let doubt = point.doubt.filter(|doubt| *doubt != Doubt::Spread).or_else(|| {
            let agree = point.ratio_runs.iter().all(|&ratio| grade_of(ratio) == grade);
            (!agree).then_some(Doubt::Spread)
        });
        Some(Grade { protocol, choice, about, threads, of_base, doubt, grade })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::outcome::in_tests::line;

    #[test]
    fn ratios_of_nine_tenths_are_graded_good_and_of_seven_tenths_poor() {
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
        let doubt = |doubt, ratios: &[f64]| {
            let mut lines = [line(&[4], &[(100, 0)])];
            let point = &mut lines[0].points[0];
            (point.of_base, point.doubt, point.ratio_runs) = (Some(0.95), doubt, ratios.to_vec());
            of(0).grade(&lines).expect("compared").doubt
        };
        assert_eq!(doubt(Some(Doubt::Spread), &[0.92, 0.95, 1.1]), None, "good in each round");
        assert_eq!(doubt(None, &[0.89, 0.95, 0.96]), Some(Doubt::Spread));
        assert_eq!(doubt(Some(Doubt::Cores), &[0.92, 0.95, 1.1]), Some(Doubt::Cores));
    }
}
