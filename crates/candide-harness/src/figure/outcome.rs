//! The results of a figure, by its panels and lines.

use serde::Serialize;

use super::outline::{Outline, Published};
use crate::driver::Run;
use crate::experiment::Experiment;
use crate::measurement::median;

/// A measured figure. The names of the fields are the interface to other programs.
#[derive(Debug, Serialize)]
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) source: &'static str,
    pub(crate) lines: Vec<MeasuredLine>,
    /// The deviations from the published figure.
    pub(crate) deviations: Vec<String>,
}

/// A measured line or bar.
#[derive(Debug, Serialize)]
pub(crate) struct MeasuredLine {
    /// The title of the line's panel.
    pub(crate) panel: &'static str,
    pub(crate) label: String,
    /// The transaction type that is counted; `None` if all types are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) counted: Option<&'static str>,
    /// The label of the line of the same panel with which this line is compared; `None` if it is
    /// not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) base: Option<String>,
    /// The claim of the paper's text about the line; `None` if the text has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) published: Option<Published>,
    /// One point for each number of threads that was run.
    pub(crate) points: Vec<Point>,
}

/// The results of a line with one number of threads.
#[derive(Debug, Serialize)]
pub(crate) struct Point {
    pub(crate) threads: usize,
    /// The median throughput of the rounds.
    pub(crate) throughput_tps: f64,
    pub(crate) tps_runs: Vec<f64>,
    /// The median of the ratios to the line with which this line is compared. Each ratio is between
    /// results of the same round. `None` if there is no such line.
    pub(crate) of_base: Option<f64>,
    /// The share of attempts that were aborted.
    pub(crate) abort_ratio: f64,
    /// The index of the full result in the list of results.
    pub(crate) result: usize,
    /// The index of the case, and the index of the number of threads within the case.
    #[serde(skip)]
    of: (usize, usize),
}

impl Figure {
    /// Makes the figure of `outline`. The results of each case are in the experiment with the same
    /// index.
    pub(crate) fn new(outline: &Outline, experiments: &[Experiment<'_>]) -> Figure {
        let mut lines: Vec<MeasuredLine> = Vec::new();
        for line in &outline.lines {
            let all = line
                .cases
                .iter()
                .flat_map(|&case| (0..experiments[case].len()).map(move |index| (case, index)));
            let points = all.filter_map(|of| {
                let (threads, runs) = experiments[of.0].runs(of.1);
                let kind = line.counted.map(|name| {
                    let kinds = experiments[of.0].workload.kinds();
                    kinds
                        .iter()
                        .position(|&kind| kind == name)
                        .expect("figures count types that there are")
                });
                Point::new(of, threads, runs, kind)
            });
            let mut line = MeasuredLine {
                panel: line.panel,
                label: line.label.clone(),
                counted: line.counted,
                base: line.base.map(|base| outline.lines[base].label.clone()),
                published: line.published.clone(),
                points: points.collect(),
            };
            if let Some(base) = outline.lines[lines.len()].base {
                line.points.iter_mut().for_each(|point| point.compare(&lines[base].points));
            }
            lines.push(line);
        }
        let &Outline { name, title, source, .. } = outline;
        Figure { name, title, source, lines, deviations: outline.deviations.clone() }
    }

    /// Records that the measurement of `case` with its number `index` of threads is at `result` in
    /// the list of results.
    pub(crate) fn link(&mut self, case: usize, index: usize, result: usize) {
        let points = self.lines.iter_mut().flat_map(|line| &mut line.points);
        points.filter(|point| point.of == (case, index)).for_each(|point| point.result = result);
    }
}

impl Point {
    /// Makes the point of `runs`, which counts only transaction type number `kind`, if given.
    /// Returns `None` if there are no runs.
    fn new(of: (usize, usize), threads: usize, runs: &[Run], kind: Option<usize>) -> Option<Point> {
        if runs.is_empty() {
            return None;
        }
        let counted = |run: &Run| match kind {
            None => (run.committed(), run.kinds.iter().map(|kind| kind.aborted).sum()),
            Some(kind) => (run.kinds[kind].committed, run.kinds[kind].aborted),
        };
        let rate = |run: &Run| counted(run).0 as f64 / run.elapsed.as_secs_f64();
        let tps_runs: Vec<f64> = runs.iter().map(rate).collect();
        let (committed, aborted): (u64, u64) = runs
            .iter()
            .map(counted)
            .fold((0, 0), |sum, counts| (sum.0 + counts.0, sum.1 + counts.1));
        let attempts = committed + aborted;
        Some(Point {
            threads,
            throughput_tps: median(&tps_runs),
            tps_runs,
            of_base: None,
            abort_ratio: if attempts == 0 { 0.0 } else { aborted as f64 / attempts as f64 },
            result: 0,
            of,
        })
    }

    fn compare(&mut self, base: &[Point]) {
        let Some(base) = base.iter().find(|point| point.threads == self.threads) else { return };
        let rounds = self.tps_runs.iter().zip(&base.tps_runs).filter(|(_, base)| **base > 0.0);
        let ratios: Vec<f64> = rounds.map(|(ours, base)| ours / base).collect();
        self.of_base = (!ratios.is_empty()).then(|| median(&ratios));
    }

    /// Returns the throughput of the slowest and of the fastest round.
    pub(crate) fn range(&self) -> (f64, f64) {
        self.tps_runs
            .iter()
            .fold((f64::INFINITY, 0.0), |(low, high), &tps| (tps.min(low), tps.max(high)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Returns a run of one second that committed `committed` transactions of two types, and in
    /// which `aborted` attempts of the first type were aborted by conflicts.
    fn run(committed: [u64; 2], aborted: u64) -> Run {
        let mut run = Run::new(2);
        run.elapsed = Duration::from_secs(1);
        run.kinds
            .iter_mut()
            .zip(committed)
            .for_each(|(kind, committed)| kind.committed = committed);
        run.kinds[0].aborted = aborted;
        run
    }

    #[test]
    fn rounds_are_compared_with_themselves() {
        // The machine was slow in the second round.
        let base = [run([80, 20], 0), run([8, 2], 0), run([160, 40], 0)];
        let other = [run([40, 20], 40), run([4, 1], 0), run([40, 10], 0)];
        let point = |runs: &[Run], kind| Point::new((0, 0), 2, runs, kind).expect("runs");
        let (base_all, mut all) = (point(&base, None), point(&other, None));
        all.compare(&[base_all]);
        assert_eq!((all.throughput_tps, all.range()), (50.0, (5.0, 60.0)));
        assert_eq!(all.of_base, Some(0.5), "of 0.6, 0.5 and 0.25");
        assert_eq!(all.abort_ratio, 40.0 / 155.0);
        let (base_second, mut second) = (point(&base, Some(1)), point(&other, Some(1)));
        second.compare(&[base_second]);
        assert_eq!(
            (second.throughput_tps, second.of_base, second.abort_ratio),
            (10.0, Some(0.5), 0.0)
        );
        assert!(Point::new((0, 0), 2, &[], None).is_none());
    }
}
