//! The directions of a published figure: claims about its lines, each with the values for which it
//! holds.

use std::ops::RangeInclusive;

use crate::results::{
    Doubt, MeasuredLine, PhaseResult, Point, Verdict, least_share, median, range,
};

/// A direction of a published figure, which holds if a quantity of a line has one of the accepted
/// values. The direction is judged for each number of threads.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The claim in words.
    pub text: String,
    /// The index of the line.
    pub line: usize,
    /// The quantity.
    pub quantity: Quantity,
    /// The line or number with which the quantity is compared.
    pub compared: Compared,
    /// The values for which the claim holds.
    pub accepted: RangeInclusive<f64>,
    /// The smallest number of threads with which the claim is judged.
    pub least_threads: usize,
}

/// A quantity of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// The throughput.
    Throughput,
    /// The throughput in the phases of this name.
    ThroughputIn(&'static str),
    /// The share of attempts that were aborted.
    Aborted,
    /// The share of attempts that were aborted in the phases of this name.
    AbortedIn(&'static str),
    /// The share of attempts that were aborted at the beginning of the phases of this name.
    AbortedAtFirst(&'static str),
    /// The number of locks that were taken by policy.
    Locks,
    /// The throughput as a multiple of the throughput of the line with which this line is compared.
    OfBase,
    /// The number of entries in a read set.
    ReadSet,
    /// The share of commits that OCC would have aborted.
    WouldAbort,
    /// The 99th percentile of latencies.
    P99,
    /// The bytes that tables and indexes take.
    Memory,
    /// The throughput as a multiple of that of the sequential program.
    OfSequential,
}

/// The line or number with which a quantity of a line is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compared {
    /// Nothing.
    Nothing,
    /// The largest quantity of the lines with these indexes, as a ratio.
    RatioTo(Vec<usize>),
    /// The quantity of the line with this index, as the absolute value of the difference.
    DifferenceFrom(usize),
}

impl Claim {
    /// Makes a claim about a quantity of a line that is compared with none.
    pub fn alone(
        text: impl Into<String>,
        line: usize,
        quantity: Quantity,
        accepted: RangeInclusive<f64>,
    ) -> Claim {
        let compared = Compared::Nothing;
        Claim { text: text.into(), line, quantity, compared, accepted, least_threads: 1 }
    }

    /// Makes a claim about a quantity of a line as a part of the largest of the lines `others`.
    pub fn ratio(
        text: impl Into<String>,
        line: usize,
        quantity: Quantity,
        others: impl Into<Vec<usize>>,
        accepted: RangeInclusive<f64>,
    ) -> Claim {
        let compared = Compared::RatioTo(others.into());
        Claim { text: text.into(), line, quantity, compared, accepted, least_threads: 1 }
    }

    /// Makes a claim about the throughput of a line as a part of the throughput of the fastest line
    /// among `others`.
    pub fn speed(
        text: impl Into<String>,
        line: usize,
        others: impl Into<Vec<usize>>,
        accepted: RangeInclusive<f64>,
    ) -> Claim {
        Claim::ratio(text, line, Quantity::Throughput, others, accepted)
    }

    /// Judges the claim only with at least two threads: one alone does not contend.
    #[must_use]
    pub fn if_contended(self) -> Claim {
        Claim { least_threads: 2, ..self }
    }

    /// Judges the claim with each number of threads that was run with all its lines.
    pub(crate) fn judge<'a>(
        &'a self,
        lines: &'a [MeasuredLine],
    ) -> impl Iterator<Item = Verdict> + 'a {
        let points = lines[self.line].points.iter();
        points.filter(|point| point.threads >= self.least_threads).filter_map(move |point| {
            let with_as_many = |&line: &usize| {
                lines[line].points.iter().find(|other| other.threads == point.threads)
            };
            let others: Option<Vec<&Point>> = match &self.compared {
                Compared::Nothing => Some(Vec::new()),
                Compared::RatioTo(lines) => lines.iter().map(with_as_many).collect(),
                Compared::DifferenceFrom(line) => [line].into_iter().map(with_as_many).collect(),
            };
            let others = others?;
            let measured = self.measure(point, &others);
            let doubt = measured.and_then(|_| self.doubt(point, &others));
            let holds = measured.is_some_and(|value| self.accepted.contains(&value));
            let words = match (doubt, measured) {
                (Some(Doubt::Spread), _) => "the rounds disagree".to_string(),
                (Some(doubt), _) => doubt.words().to_string(),
                (None, Some(value)) => {
                    self.range(point, &others).unwrap_or_else(|| self.words(value))
                }
                (None, None) => "nothing".to_string(),
            };
            Some(Verdict {
                claim: self.text.clone(),
                threads: point.threads,
                measured,
                holds: doubt.is_none().then_some(holds),
                doubt,
                words,
            })
        })
    }

    /// Returns why noise leaves open whether the claim holds: the claim compares throughputs, and
    /// they cannot be compared, or the claim holds in some rounds only. Returns `None` otherwise.
    fn doubt(&self, point: &Point, others: &[&Point]) -> Option<Doubt> {
        let is_compared = self.compared != Compared::Nothing || self.quantity == Quantity::OfBase;
        if !(is_compared && self.quantity.is_of_speed()) {
            return None;
        }
        let points = || [point].into_iter().chain(others.iter().copied());
        if points().any(|point| point.doubt == Some(Doubt::Cores)) {
            return Some(Doubt::Cores);
        }
        let least = points().map(|point| point.core_share).fold(None, least_share);
        let rounds = self.rounds(point, others);
        Doubt::of_runs(least, rounds.len()).or_else(|| {
            let holding = rounds.iter().filter(|value| self.accepted.contains(value)).count();
            (holding > 0 && holding < rounds.len()).then_some(Doubt::Spread)
        })
    }

    /// Returns the range of the ratios of throughputs, if they differ more from each other than
    /// from 1: then no single ratio is given.
    fn range(&self, point: &Point, others: &[&Point]) -> Option<String> {
        let is_ratio =
            matches!(self.compared, Compared::RatioTo(_)) && self.quantity.is_throughput();
        let rounds = if is_ratio { self.rounds(point, others) } else { Vec::new() };
        let is_wide = rounds.len() > 1 && Doubt::of_ratios(&rounds, None).is_some();
        let (low, high) = range(&rounds);
        is_wide.then(|| format!("{low:.2} to {high:.2}"))
    }

    /// Returns the value of the claim in each round; an empty list if the quantity is not one of
    /// speed.
    fn rounds(&self, point: &Point, others: &[&Point]) -> Vec<f64> {
        let runs = |point| self.quantity.runs(point);
        let rounds = runs(point).iter().enumerate().filter_map(|(round, &ours)| {
            let mut theirs = others.iter().filter_map(|other| runs(other).get(round).copied());
            match self.compared {
                Compared::Nothing => Some(ours),
                Compared::DifferenceFrom(_) => theirs.next().map(|theirs| (ours - theirs).abs()),
                Compared::RatioTo(_) => {
                    let most = theirs.fold(0.0, f64::max);
                    (most > 0.0).then(|| ours / most)
                }
            }
        });
        rounds.collect()
    }

    /// Returns the value of the claim at `point`, compared with the points in `others`.
    fn measure(&self, point: &Point, others: &[&Point]) -> Option<f64> {
        let of = |point: &Point| self.quantity.of(point);
        match self.compared {
            Compared::Nothing => of(point),
            Compared::DifferenceFrom(_) => Some((of(point)? - of(others.first()?)?).abs()),
            // Within each round, since the machine may be slow in one of them.
            Compared::RatioTo(_) if self.quantity.is_throughput() => {
                let ratios = self.rounds(point, others);
                (!ratios.is_empty()).then(|| median(&ratios))
            }
            Compared::RatioTo(_) => {
                let most = others.iter().copied().filter_map(of).fold(0.0, f64::max);
                of(point).filter(|_| most > 0.0).map(|ours| ours / most)
            }
        }
    }

    /// Returns a value of the claim in words.
    fn words(&self, value: f64) -> String {
        match (&self.compared, self.quantity) {
            (Compared::RatioTo(_), _) => format!("{value:.2}"),
            (_, quantity) if quantity.is_throughput() => format!("{value:.0} txn/s"),
            (_, Quantity::Locks) => format!("{value:.0}"),
            (_, Quantity::P99) => format!("{value:.1} \u{b5}s"),
            (_, Quantity::Memory) => format!("{:.1} MiB", value / f64::from(1 << 20)),
            (_, Quantity::OfBase | Quantity::ReadSet | Quantity::OfSequential) => {
                format!("{value:.2}")
            }
            (Compared::DifferenceFrom(_), _) => format!("{:.2} points", value * 100.0),
            (Compared::Nothing, _) => format!("{:.2} %", value * 100.0),
        }
    }
}

impl Quantity {
    /// Returns the quantity at `point`; `None` if it was not measured.
    fn of(self, point: &Point) -> Option<f64> {
        let phase = |name| phase(point, name);
        match self {
            Quantity::Throughput => Some(point.throughput_tps),
            Quantity::ThroughputIn(name) => Some(phase(name)?.throughput_tps),
            Quantity::Aborted => Some(point.abort_ratio),
            Quantity::AbortedIn(name) => Some(phase(name)?.abort_ratio),
            Quantity::AbortedAtFirst(name) => Some(phase(name)?.abort_ratio_at_first),
            Quantity::Locks => Some(point.locks_taken as f64),
            Quantity::OfBase => point.of_base,
            Quantity::ReadSet => Some(point.sets?.read_set),
            Quantity::WouldAbort => point.sets?.occ_would_abort,
            Quantity::P99 => point.latency_us.map(|[.., p99]| p99),
            Quantity::Memory => point.table_bytes.map(|bytes| bytes as f64),
            Quantity::OfSequential => point.of_sequential,
        }
    }

    fn is_throughput(self) -> bool {
        matches!(self, Quantity::Throughput | Quantity::ThroughputIn(_))
    }

    /// Returns whether the quantity is a throughput, or a ratio of throughputs.
    fn is_of_speed(self) -> bool {
        self.is_throughput() || self == Quantity::OfBase
    }

    /// Returns the throughput of each round, or its ratio; an empty list if the quantity is
    /// neither, or was not measured.
    fn runs(self, point: &Point) -> &[f64] {
        match self {
            Quantity::Throughput => &point.tps_runs,
            Quantity::OfBase => &point.ratio_runs,
            Quantity::ThroughputIn(name) => {
                phase(point, name).map_or(&[], |phase| phase.tps_runs.as_slice())
            }
            _ => &[],
        }
    }
}

/// Returns the results of the phases of this name; `None` if there were none.
fn phase<'a>(point: &'a Point, name: &str) -> Option<&'a PhaseResult> {
    point.phases.iter().find(|phase| phase.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::outcome::in_tests::line;
    use crate::results::SetSizes;

    /// Returns the verdicts on line 0 of `lines`.
    fn judged(
        lines: &[MeasuredLine],
        quantity: Quantity,
        compared: Compared,
        accepted: RangeInclusive<f64>,
    ) -> Vec<(usize, Option<f64>, Option<bool>, String)> {
        let text = "it is so".to_string();
        let claim = Claim { text, line: 0, quantity, compared, accepted, least_threads: 1 };
        let verdicts = claim.judge(lines).map(|verdict| {
            assert_eq!(verdict.claim, "it is so");
            (verdict.threads, verdict.measured, verdict.holds, verdict.words)
        });
        verdicts.collect()
    }

    #[test]
    fn throughput_is_compared_with_the_best_of_the_others_within_each_round() {
        let lines = [
            line(&[2], &[(100, 0), (30, 0), (200, 0)]),
            line(&[2], &[(50, 0), (10, 0), (40, 0)]),
            line(&[2], &[(40, 0), (20, 0), (100, 0)]),
        ];
        let fast = |least| {
            judged(
                &lines,
                Quantity::Throughput,
                Compared::RatioTo(vec![1, 2]),
                least..=f64::INFINITY,
            )
        };
        // The ratios are 2, 1.5 and 2; without rounds, 100 is 2.5 times the best.
        assert_eq!(fast(1.5), [(2, Some(2.0), Some(true), "2.00".to_string())]);
        assert_eq!(fast(2.1), [(2, Some(2.0), Some(false), "2.00".to_string())]);
        let open = (2, Some(2.0), None, "the rounds disagree".to_string());
        assert_eq!(fast(1.6), [open], "1.5 is too little, and 2 is enough");
        let alike = [line(&[2], &[(90, 0), (99, 0), (102, 0)]), line(&[2], &[(100, 0); 3])];
        let near = Compared::RatioTo(vec![1]);
        let held = judged(&alike, Quantity::Throughput, near, 0.8..=1.2);
        assert_eq!(held, [(2, Some(0.99), Some(true), "0.90 to 1.02".to_string())]);
        let plain = judged(&lines, Quantity::Throughput, Compared::Nothing, 0.0..=99.0);
        assert_eq!(plain, [(2, Some(100.0), Some(false), "100 txn/s".to_string())]);
    }

    #[test]
    fn throughput_of_phases_is_compared_within_each_round_too() {
        let with_phase = |tps_runs: &[f64]| {
            let mut line = line(&[2], &[(1, 0), (1, 0), (1, 0)]);
            line.points[0].phases = vec![PhaseResult {
                name: "read",
                throughput_tps: median(tps_runs),
                tps_runs: tps_runs.to_vec(),
                abort_ratio: 0.25,
                abort_ratio_at_first: 0.5,
                abort_ratio_later: 0.125,
            }];
            line
        };
        let lines = [with_phase(&[10.0, 4.5, 15.0]), with_phase(&[20.0, 10.0, 30.0])];
        let of = |quantity, compared| judged(&lines, quantity, compared, 0.0..=0.5)[0].clone();
        let ratio = of(Quantity::ThroughputIn("read"), Compared::RatioTo(vec![1]));
        assert_eq!(ratio, (2, Some(0.5), Some(true), "0.50".to_string()));
        let first = of(Quantity::AbortedAtFirst("read"), Compared::Nothing);
        assert_eq!(first, (2, Some(0.5), Some(true), "50.00 %".to_string()));
        assert_eq!(of(Quantity::AbortedIn("read"), Compared::Nothing).1, Some(0.25));
        assert_eq!(of(Quantity::AbortedIn("write"), Compared::Nothing).1, None);
    }

    #[test]
    fn claims_compare_shares_by_ratio_by_difference_or_by_bounds() {
        let lines = [line(&[2], &[(90, 10)]), line(&[2], &[(50, 50)]), line(&[2], &[(9, 0)])];
        let aborted = |compared, most| judged(&lines, Quantity::Aborted, compared, 0.0..=most);
        let alone = aborted(Compared::Nothing, 0.1);
        assert_eq!(alone, [(2, Some(0.1), Some(true), "10.00 %".to_string())]);
        let ratio = aborted(Compared::RatioTo(vec![1, 2]), 0.19);
        assert_eq!(ratio, [(2, Some(0.2), Some(false), "0.20".to_string())]);
        let difference = aborted(Compared::DifferenceFrom(1), 0.4);
        assert_eq!(difference, [(2, Some(0.4), Some(true), "40.00 points".to_string())]);
        let none = aborted(Compared::RatioTo(vec![2]), 1.0);
        assert_eq!(none, [(2, None, Some(false), "nothing".to_string())]);
        let locks = judged(&lines, Quantity::Locks, Compared::Nothing, 0.0..=0.0);
        assert_eq!(locks, [(2, Some(7.0), Some(false), "7".to_string())]);
    }

    #[test]
    fn claims_compare_ratios_of_lines_to_their_bases() {
        let mut lines = [line(&[2], &[(50, 0)]), line(&[2], &[(80, 0)]), line(&[2], &[(80, 0)])];
        lines[0].points[0].of_base = Some(0.5);
        lines[1].points[0].of_base = Some(0.8);
        lines[0].points[0].ratio_runs = vec![0.5; 2];
        lines[1].points[0].ratio_runs = vec![0.8; 2];
        let of = |compared| judged(&lines, Quantity::OfBase, compared, 0.0..=0.4)[0].clone();
        assert_eq!(of(Compared::Nothing), (2, Some(0.5), Some(false), "0.50".to_string()));
        let ratio = of(Compared::RatioTo(vec![1]));
        assert_eq!(ratio, (2, Some(0.625), Some(false), "0.62".to_string()));
        let (_, difference, holds, words) = of(Compared::DifferenceFrom(1));
        assert!(
            holds == Some(true)
                && (difference.expect("both") - 0.3).abs() < 1e-9
                && words == "0.30"
        );
        assert_eq!(of(Compared::DifferenceFrom(2)).1, None, "compared with none");
    }

    #[test]
    fn claims_about_set_sizes_are_judged_at_points_that_counted_them() {
        let mut lines = [line(&[2], &[(1, 0)]), line(&[2], &[(1, 0)])];
        let sets = |read_set, share| {
            Some(SetSizes { read_set, write_set: 1.0, occ_would_abort: Some(share) })
        };
        lines[0].points[0].sets = sets(7.0, 0.25);
        let of = |lines: &[MeasuredLine], quantity, compared| {
            judged(lines, quantity, compared, 0.0..=0.5)[0].clone()
        };
        let share = of(&lines, Quantity::WouldAbort, Compared::Nothing);
        assert_eq!(share, (2, Some(0.25), Some(true), "25.00 %".to_string()));
        let compared = || Compared::RatioTo(vec![1]);
        assert_eq!(of(&lines, Quantity::ReadSet, compared()).1, None);
        lines[1].points[0].sets = sets(10.0, 0.0);
        let ratio = of(&lines, Quantity::ReadSet, compared());
        assert_eq!(ratio, (2, Some(0.7), Some(false), "0.70".to_string()));
    }

    #[test]
    fn claims_compare_latencies_memory_and_sequential_programs() {
        let mut lines = [line(&[2], &[(1, 0)]), line(&[2], &[(1, 0)])];
        let of = |lines: &[MeasuredLine], quantity, compared| {
            judged(lines, quantity, compared, 0.0..=0.5)[0].clone()
        };
        for quantity in [Quantity::P99, Quantity::Memory, Quantity::OfSequential] {
            assert_eq!(of(&lines, quantity, Compared::Nothing).1, None, "{quantity:?}");
        }
        for (line, factor) in lines.iter_mut().zip([1_u8, 4]) {
            let point = &mut line.points[0];
            point.latency_us = Some([1.0, 2.0, 3.0 * f64::from(factor)]);
            point.table_bytes = Some(u64::from(factor) << 20);
            point.of_sequential = Some(0.5 * f64::from(factor));
        }
        let told = [
            (Quantity::P99, Some(3.0), Some(false), "3.0 \u{b5}s"),
            (Quantity::Memory, Some(1048576.0), Some(false), "1.0 MiB"),
            (Quantity::OfSequential, Some(0.5), Some(true), "0.50"),
        ];
        for (quantity, value, holds, words) in told {
            let alone = of(&lines, quantity, Compared::Nothing);
            assert_eq!(alone, (2, value, holds, words.to_string()));
            let ratio = of(&lines, quantity, Compared::RatioTo(vec![1]));
            assert_eq!(ratio, (2, Some(0.25), Some(true), "0.25".to_string()));
        }
    }

    #[test]
    fn claims_are_judged_for_each_number_of_threads_of_all_their_lines() {
        let lines = [line(&[1, 2, 4], &[(90, 10)]), line(&[2, 4], &[(50, 50)])];
        let verdicts = judged(&lines, Quantity::Aborted, Compared::RatioTo(vec![1]), 0.0..=1.0);
        let threads: Vec<usize> = verdicts.iter().map(|verdict| verdict.0).collect();
        assert_eq!(threads, [2, 4]);
        let contended = Claim::alone("it is so", 0, Quantity::Aborted, 0.0..=1.0).if_contended();
        let threads: Vec<usize> = contended.judge(&lines).map(|verdict| verdict.threads).collect();
        assert_eq!(threads, [2, 4]);
        let phases = Quantity::ThroughputIn("read");
        // The lines of this test have no phases.
        let verdicts = judged(&lines, phases, Compared::RatioTo(vec![1]), 0.0..=f64::INFINITY);
        assert_eq!(verdicts.len(), 2);
        assert!(verdicts.iter().all(|verdict| verdict.1.is_none() && verdict.2 == Some(false)));
        let verdicts = judged(&lines, phases, Compared::Nothing, 0.0..=f64::INFINITY);
        assert!(verdicts.iter().all(|verdict| verdict.1.is_none() && verdict.2 == Some(false)));
    }
}
