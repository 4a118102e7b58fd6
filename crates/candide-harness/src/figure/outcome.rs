//! The results of a figure, by its panels and lines.

use std::time::Duration;

use candide_workloads::Timeline;

use super::outline::Outline;
use crate::results::{
    Doubt, Figure, Kind, MeasuredLine, PhaseResult, Point, Run, SetSums, Shown, Slice, abort_ratio,
    least_share, median,
};
use crate::run::Experiment;

/// The time after the switch to a phase that is reported apart.
pub(crate) const AT_FIRST: Duration = Duration::from_millis(5);

impl PhaseResult {
    /// Returns the results of `runs` for each name of phases that were run.
    fn of(timeline: &Timeline, runs: &[Run]) -> Vec<PhaseResult> {
        let of_name = |name: &'static str| {
            let mut parts = [Slice::default(); 2];
            let mut tps_runs = Vec::new();
            for run in runs {
                let mut of_run = Slice::default();
                let named = timeline.phases.iter().cycle().zip(&run.phases);
                for (_, phase) in named.filter(|(other, _)| **other == name) {
                    for (index, slice) in phase.slices.iter().enumerate() {
                        let begins = timeline.slice * u32::try_from(index).unwrap_or(u32::MAX);
                        parts[usize::from(begins >= AT_FIRST)].add(slice);
                        of_run.add(slice);
                    }
                }
                tps_runs.push(of_run.throughput());
            }
            let [at_first, later] = parts;
            let mut all = at_first;
            all.add(&later);
            (all.seconds > 0.0).then(|| PhaseResult {
                name,
                throughput_tps: median(&tps_runs),
                tps_runs,
                abort_ratio: all.abort_ratio(),
                abort_ratio_at_first: at_first.abort_ratio(),
                abort_ratio_later: later.abort_ratio(),
            })
        };
        timeline.phases.iter().filter_map(|&name| of_name(name)).collect()
    }
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
                let experiment = &experiments[of.0];
                let (threads, runs) = experiment.runs(of.1);
                let kinds = experiment.workload.kinds();
                let place = |name: &&str| {
                    let place = kinds.iter().position(|kind| kind == name);
                    place.expect("a figure counts types of its workload")
                };
                let counted: Vec<usize> = line.counted.iter().map(place).collect();
                let mut point = Point::new(of, threads, runs, &counted)?;
                if outline.shows.counts_sets() {
                    let counts_stale = experiment.variant.finds_stale_commits();
                    point.sets = sums(runs, &counted).averages(counts_stale);
                }
                if outline.shows == Shown::Tails {
                    point.find_tails(runs, &counted);
                }
                if outline.shows == Shown::Commits {
                    point.find_commits(runs, &counted);
                    point.table_bytes = experiment.table_bytes(of.1);
                }
                if let Some(timeline) = experiment.workload.timeline() {
                    point.phases = PhaseResult::of(&timeline, runs);
                }
                Some(point)
            });
            let mut line = MeasuredLine {
                panel: line.panel,
                label: line.label.clone(),
                counted: (!line.counted.is_empty()).then(|| line.counted.join(" and ")),
                base: line.base.map(|base| outline.lines[base].label.clone()),
                published: line.published.clone(),
                points: points.collect(),
            };
            if let Some(base) = outline.lines[lines.len()].base {
                line.points.iter_mut().for_each(|point| point.compare(&lines[base].points));
            }
            lines.push(line);
        }
        let verdicts = outline.claims.iter().flat_map(|claim| claim.judge(&lines)).collect();
        let grades = outline.grades.iter().filter_map(|graded| graded.grade(&lines)).collect();
        let &Outline { name, title, source, shows, .. } = outline;
        let deviations = outline.deviations.clone();
        Figure { name, title, source, lines, verdicts, grades, shows, deviations }
    }

    /// Records that the measurement of `case` with its number `index` of threads is at `result` in
    /// the list of results.
    pub(crate) fn link(&mut self, case: usize, index: usize, result: usize) {
        let points = self.lines.iter_mut().flat_map(|line| &mut line.points);
        points.filter(|point| point.of == (case, index)).for_each(|point| point.result = result);
    }
}

impl Point {
    /// Makes the point of `runs`, which counts the transaction types in `counted`; all types if it
    /// is empty. Returns `None` if there are no runs.
    pub(super) fn new(
        of: (usize, usize),
        threads: usize,
        runs: &[Run],
        counted: &[usize],
    ) -> Option<Point> {
        if runs.is_empty() {
            return None;
        }
        let counted = |run: &Run| {
            let kinds = run.kinds.iter().enumerate();
            kinds
                .filter(|(number, _)| counted.is_empty() || counted.contains(number))
                .map(|(_, kind)| (kind.committed, kind.aborted))
                .fold((0, 0), |sum: (u64, u64), counts| (sum.0 + counts.0, sum.1 + counts.1))
        };
        let rate = |run: &Run| counted(run).0 as f64 / run.elapsed.as_secs_f64();
        let tps_runs: Vec<f64> = runs.iter().map(rate).collect();
        let (committed, aborted): (u64, u64) = runs
            .iter()
            .map(counted)
            .fold((0, 0), |sum, counts| (sum.0 + counts.0, sum.1 + counts.1));
        Some(Point {
            threads,
            throughput_tps: median(&tps_runs),
            tps_runs,
            of_base: None,
            ratio_runs: Vec::new(),
            doubt: None,
            core_share: runs.iter().map(|run| run.core_share).fold(None, least_share),
            abort_ratio: abort_ratio(committed, aborted),
            sets: None,
            read_set_of_base: None,
            p999_us: None,
            latency_us: None,
            table_bytes: None,
            of_sequential: None,
            involuntary_switches: None,
            phases: Vec::new(),
            locks_taken: runs.iter().map(|run| run.locks.taken).sum(),
            result: 0,
            of,
        })
    }

    /// Finds the tail of the latencies of the types in `counted` (of all types, if `counted` is
    /// empty), and the number of times that threads were made to leave their cores.
    fn find_tails(&mut self, runs: &[Run], counted: &[usize]) {
        let all = merged(runs, counted);
        self.p999_us = Some(all.latency.value_at_quantile(0.999) as f64 / 1e3);
        let switches: Option<Vec<u64>> = runs.iter().map(|run| run.involuntary_switches).collect();
        self.involuntary_switches =
            switches.map(|switches| switches.iter().sum::<u64>() as f64 / runs.len() as f64);
    }

    /// Finds the percentiles of the latencies of the types in `counted` (of all types, if `counted`
    /// is empty), and the ratio to the sequential program.
    fn find_commits(&mut self, runs: &[Run], counted: &[usize]) {
        let all = merged(runs, counted);
        let micros = |quantile| all.latency.value_at_quantile(quantile) as f64 / 1e3;
        self.latency_us = Some([0.5, 0.9, 0.99].map(micros));
        let ratios = runs.iter().filter_map(|run| Some(run.throughput() / run.sequential_tps?));
        let ratios: Vec<f64> = ratios.collect();
        self.of_sequential = (!ratios.is_empty()).then(|| median(&ratios));
    }

    fn compare(&mut self, base: &[Point]) {
        let Some(base) = base.iter().find(|point| point.threads == self.threads) else { return };
        let rounds = self.tps_runs.iter().zip(&base.tps_runs).filter(|(_, base)| **base > 0.0);
        let ratios: Vec<f64> = rounds.map(|(ours, base)| ours / base).collect();
        if !ratios.is_empty() {
            self.of_base = Some(median(&ratios));
            self.doubt = Doubt::of_ratios(&ratios, least_share(self.core_share, base.core_share));
            self.ratio_runs = ratios;
        }
        if let (Some(ours), Some(base)) = (self.sets, base.sets)
            && base.read_set > 0.0
        {
            self.read_set_of_base = Some(ours.read_set / base.read_set);
        }
    }
}

/// Returns the results of all runs together, of the transaction types that are `counted`; of all,
/// if it is empty.
fn merged(runs: &[Run], counted: &[usize]) -> Kind {
    let mut all = Kind::new();
    let kinds = runs.iter().flat_map(|run| run.kinds.iter().enumerate());
    kinds
        .filter(|(number, _)| counted.is_empty() || counted.contains(number))
        .for_each(|(_, kind)| all.merge(kind));
    all
}

/// Returns the sums over the transaction types that are `counted`; over all, if it is empty.
fn sums(runs: &[Run], counted: &[usize]) -> SetSums {
    let mut sums = SetSums::default();
    for run in runs {
        match counted {
            [] => sums.merge(run.sets),
            counted => counted.iter().for_each(|&kind| sums.merge(run.kinds[kind].sets)),
        }
    }
    sums
}

/// Lines that were never measured, for tests.
#[cfg(test)]
pub(super) mod in_tests {
    use super::*;
    use crate::results::Locks;

    /// Returns a line that was run in rounds of a second with each of these numbers of threads. A
    /// round has the given numbers of committed transactions and aborted attempts.
    pub(in crate::figure) fn line(threads: &[usize], rounds: &[(u64, u64)]) -> MeasuredLine {
        let run = |&(committed, aborted): &(u64, u64)| {
            let mut run = Run::new(1);
            run.elapsed = Duration::from_secs(1);
            (run.kinds[0].committed, run.kinds[0].aborted) = (committed, aborted);
            run.locks = Locks { taken: 7, ..Locks::default() };
            run
        };
        let runs: Vec<Run> = rounds.iter().map(run).collect();
        let point = |(index, &threads)| Point::new((0, index), threads, &runs, &[]).expect("runs");
        MeasuredLine {
            panel: "panel",
            label: "line".to_string(),
            counted: None,
            base: None,
            published: None,
            points: threads.iter().enumerate().map(point).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use candide_workloads::Step;

    use super::*;
    use crate::results::Phase;

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
    fn lines_are_compared_within_each_round() {
        // The machine was slow in the second round.
        let base = [run([80, 20], 0), run([8, 2], 0), run([160, 40], 0)];
        let other = [run([40, 20], 40), run([4, 1], 0), run([40, 10], 0)];
        let point =
            |runs: &[Run], counted: &[usize]| Point::new((0, 0), 2, runs, counted).expect("runs");
        let (base_all, mut all) = (point(&base, &[]), point(&other, &[]));
        all.compare(&[base_all]);
        assert_eq!((all.throughput_tps, all.range()), (50.0, (5.0, 60.0)));
        assert_eq!(all.of_base, Some(0.5), "of 0.6, 0.5 and 0.25");
        assert_eq!((all.doubt, all.told_ratio()), (Some(Doubt::Spread), None));
        assert_eq!(all.abort_ratio, 40.0 / 155.0);
        let (base_second, mut second) = (point(&base, &[1]), point(&other, &[1]));
        second.compare(&[base_second]);
        assert_eq!(
            (second.throughput_tps, second.of_base, second.abort_ratio),
            (10.0, Some(0.5), 0.0)
        );
        // The second type committed from 0.25 to 1 of the base.
        assert_eq!((second.doubt, second.ratio_runs.len()), (Some(Doubt::Spread), 3));
        let [mut fast, mut alone] = [&other[..2], &other[..1]].map(|runs| point(runs, &[]));
        fast.compare(&[point(&base[..2], &[])]);
        assert!(fast.doubt.is_none() && fast.told_ratio().is_some_and(|r| (r - 0.55).abs() < 1e-9));
        alone.compare(&[point(&base[..1], &[])]);
        assert_eq!((alone.doubt, alone.of_base), (Some(Doubt::OneRun), Some(0.6)));
        let mut starved = point(&other[..2], &[]);
        starved.core_share = Some(0.5);
        starved.compare(&[point(&base[..2], &[])]);
        assert_eq!(starved.doubt, Some(Doubt::Cores));
        assert!(Point::new((0, 0), 2, &[], &[]).is_none());
    }

    #[test]
    fn beginnings_of_phases_are_separate_points_added_up_by_name() {
        let millis = Duration::from_millis;
        let timeline = Timeline { phases: &["read", "write"], phase: millis(20), slice: millis(1) };
        let phase = |transactions: &[(u64, u64)]| {
            let mut phase = Phase::default();
            for &(after, retries) in transactions {
                let step = Step { kind: 0, committed: true, retries };
                phase.record(&step, millis(after), timeline.slice);
            }
            phase.measured(timeline.phase, timeline.slice);
            phase
        };
        let mut run = run([0, 0], 0);
        let write = phase(&[(0, 2), (4, 1), (5, 1), (19, 0), (19, 0)]);
        run.phases = vec![phase(&[(1, 0)]), write.clone(), phase(&[(7, 0)]), write];
        let [read, write] = &PhaseResult::of(&timeline, &[run])[..] else { panic!("two names") };
        assert_eq!((read.name, write.name), ("read", "write"));
        let about = |found: f64, expected: f64| (found - expected).abs() < 1e-9 * expected;
        assert!(about(read.throughput_tps, 50.0) && about(write.throughput_tps, 250.0));
        assert_eq!((read.abort_ratio, read.abort_ratio_at_first), (0.0, 0.0));
        assert_eq!(write.abort_ratio, 8.0 / 18.0);
        assert_eq!((write.abort_ratio_at_first, write.abort_ratio_later), (0.6, 0.25));
        assert!(PhaseResult::of(&timeline, &[]).is_empty());
    }

    #[test]
    fn tail_latencies_are_of_all_rounds_and_of_the_counted_types() {
        let mut rounds = [run([1, 1], 0), run([1, 1], 0)];
        for (round, micros) in rounds.iter_mut().zip([1, 2]) {
            let step = |kind| Step { kind, committed: true, retries: 0 };
            round.kinds[0].record(&step(0), Duration::from_micros(micros));
            round.kinds[1].record(&step(1), Duration::from_micros(100 * micros));
            round.involuntary_switches = Some(3 * micros);
        }
        let tail = |counted: &[usize], rounds: &[Run]| {
            let mut point = Point::new((0, 0), 2, rounds, counted).expect("runs");
            point.find_tails(rounds, counted);
            (point.p999_us.expect("found").round(), point.involuntary_switches)
        };
        assert_eq!(tail(&[0], &rounds), (2.0, Some(4.5)));
        assert!((199.0..=201.0).contains(&tail(&[], &rounds).0));
        let commits = |counted: &[usize]| {
            let mut point = Point::new((0, 0), 2, &rounds, counted).expect("runs");
            point.find_commits(&rounds, counted);
            (point.latency_us.expect("found").map(f64::round), point.of_sequential)
        };
        assert_eq!(commits(&[0]), ([1.0, 2.0, 2.0], None));
        rounds[0].sequential_tps = Some(8.0);
        let point = |rounds: &[Run]| {
            let mut point = Point::new((0, 0), 2, rounds, &[]).expect("runs");
            point.find_commits(rounds, &[]);
            point.of_sequential
        };
        // Four transactions a second, of the only round that is compared.
        assert_eq!(point(&rounds), Some(0.5));
        rounds[1].involuntary_switches = None;
        assert_eq!(tail(&[0], &rounds).1, None, "one is not known");
    }
}
