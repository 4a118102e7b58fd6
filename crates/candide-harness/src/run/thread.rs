//! One thread of a run: it repeats transactions and counts them.

use std::time::Duration;

use candide::Abort;
use candide::report::Stats;
use candide_workloads::{Failure, Step, Worker};
use quanta::Instant;

use super::barrier::Member;
use super::pace::Pace;
use super::preemption::{self, CoreShare};
use super::signals::{MEASURE, MEET, STOP, Signals, Timing};
use super::slices::{Share, Slices};
use crate::results::{Locks, Phase, Probes, Run};

/// The part of the measured time whose throughput is reported apart: fresh memory and cold caches
/// show in it.
const FIRST_SECOND: Duration = Duration::from_secs(1);
/// The shortest measured time whose first second is reported.
const FIRST_SECOND_MIN: Duration = Duration::from_secs(2);

/// The number of measured transactions after which a thread reads the hottest row. These reads
/// count neither as transactions nor in latencies. But they take time, so that slightly fewer
/// transactions commit.
const LOOK_EVERY: u64 = 256;

/// Runs transactions until the order to stop, and counts the transactions that begin after the
/// order to measure.
///
/// The clock is read once per transaction: the end of a transaction is the beginning of the next
/// one. If a pace is given, the intended beginning is used instead. Reading the clock costs about
/// 8 ns where the processor's counter can be used, and 25 ns otherwise (measured on a virtualized
/// x86-64), while a transaction takes half a microsecond or more. This cost is the same under every
/// protocol. A read of the hottest row takes place between two transactions. So with a pace, the
/// latency of the next transaction may include that read.
pub(super) fn repeat(
    worker: &mut dyn Worker,
    kinds: usize,
    signals: &Signals,
    member: &Member<'_>,
    timing: &Timing,
    mut pace: Option<Pace>,
    slices: Option<&Slices>,
) -> Result<Run, Failure> {
    let mut count = Count::new(kinds, timing);
    let mut begin = Instant::now();
    loop {
        let order = signals.order();
        if order == STOP {
            break;
        }
        if order == MEET {
            count.phase_begun = member.wait();
            count.run.phases.push(Phase::default());
            // Transactions that should have begun in the previous phase, but did not, are not begun
            // later.
            if let Some(pace) = &mut pace {
                pace.restart(count.phase_begun);
            }
            begin = Instant::now();
            continue;
        }
        if order == MEASURE && count.before.is_none() {
            count.begin(worker, signals, pace.as_mut(), slices);
            // The steps above are no part of the first transaction.
            begin = Instant::now();
        }
        if let Some(pace) = &mut pace {
            let Some(intended) = pace.wait(begin, || signals.order() == order) else {
                begin = Instant::now();
                continue;
            };
            begin = intended;
        }
        let step = worker.step()?;
        let end = Instant::now();
        let has_looked = order == MEASURE && count.record(worker, &step, begin, end)?;
        begin = if has_looked { Instant::now() } else { end };
    }
    Ok(count.end(worker))
}

/// The results of a thread while it is measured.
struct Count<'a> {
    run: Run,
    timing: &'a Timing,
    /// The session's counters when measuring began; `None` before.
    before: Option<Stats>,
    /// The counters after the transaction before, if they are read after each.
    last: Option<Stats>,
    switches_before: Option<u64>,
    /// The share of a core that the thread has; `None` before the measured time.
    core: Option<CoreShare>,
    share: Option<Share<'a>>,
    first_second_ends: Option<Instant>,
    phase_begun: Instant,
    /// The number of transactions until the next read of the hottest row.
    until_look: u64,
}

impl<'a> Count<'a> {
    fn new(kinds: usize, timing: &'a Timing) -> Self {
        let mut run = Run::new(kinds);
        run.hottest = timing.hottest.then(Probes::new);
        Count {
            run,
            timing,
            before: None,
            last: None,
            switches_before: None,
            core: None,
            share: None,
            first_second_ends: None,
            phase_begun: Instant::now(),
            until_look: LOOK_EVERY,
        }
    }

    /// Begins the measured time.
    #[cold]
    fn begin(
        &mut self,
        worker: &mut dyn Worker,
        signals: &Signals,
        pace: Option<&mut Pace>,
        slices: Option<&'a Slices>,
    ) {
        let timing = self.timing;
        self.switches_before = preemption::count();
        self.core = Some(CoreShare::begin());
        self.before = Some(worker.stats());
        self.last = self.before.filter(|_| timing.set_sizes);
        // Drops the causes of aborts that were counted during the warm-up.
        drop(worker.take_causes());
        if timing.timeline.is_some() {
            return;
        }
        let measured = *signals.measured.wait();
        if timing.duration >= FIRST_SECOND_MIN {
            self.first_second_ends = Some(measured + FIRST_SECOND);
            self.run.first_second = Some(0);
        }
        if let Some(pace) = pace {
            pace.skip_to(measured);
        }
        self.share = slices.map(|slices| slices.share(measured));
    }

    /// Counts the transaction `step`, which took from `begin` to `end`. Returns whether it was
    /// followed by a read of the hottest row.
    #[inline]
    fn record(
        &mut self,
        worker: &mut dyn Worker,
        step: &Step,
        begin: Instant,
        end: Instant,
    ) -> Result<bool, Failure> {
        let run = &mut self.run;
        let latency = end - begin;
        run.kinds[step.kind].record(step, latency);
        if step.committed && self.first_second_ends.is_some_and(|ends| end < ends) {
            *run.first_second.get_or_insert_default() += 1;
        }
        if let Some(last) = &mut self.last {
            let before = std::mem::replace(last, worker.stats());
            run.kinds[step.kind].sets.add(&before, last);
        }
        if let (Some(timeline), Some(phase)) = (self.timing.timeline, run.phases.last_mut()) {
            phase.record(step, end - self.phase_begun, timeline.slice);
        }
        if let Some(share) = &mut self.share {
            share.record(step, latency, end);
        }
        if let Some(probes) = &mut run.hottest {
            self.until_look -= 1;
            if self.until_look == 0 {
                self.until_look = LOOK_EVERY;
                probes.look(worker)?;
                self.last = self.last.map(|_| worker.stats());
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Ends the measured time, and returns its results.
    fn end(self, worker: &mut dyn Worker) -> Run {
        let Count { mut run, before, switches_before, core, share, .. } = self;
        if let Some(before) = switches_before {
            run.involuntary_switches = preemption::count().map(|after| after - before);
        }
        run.core_share = core.and_then(CoreShare::end);
        if let Some(share) = share {
            share.close();
        }
        let Some(before) = before else { return run };
        let after = worker.stats();
        for (number, ((reason, before), (_, after))) in
            before.abort_reasons().zip(after.abort_reasons()).enumerate()
        {
            // A transaction that ended itself, for example by a guard that refused, was not aborted
            // by a conflict: it rolled itself back.
            if !Abort::ALL[number].is_conflict() {
                continue;
            }
            let attempts =
                after - before - run.hottest.as_ref().map_or(0, |probes| probes.aborts(number));
            if attempts > 0 {
                run.abort_reasons.insert(reason, attempts);
            }
        }
        run.causes = worker.take_causes();
        run.sets.add(&before, &after);
        run.locks = Locks::between(&before, &after);
        if let Some(probes) = &run.hottest {
            run.sets.subtract(probes.sets);
            run.locks.subtract(probes.locks);
        }
        run
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::BTreeMap;
    use std::thread;

    use candide_workloads::Probe;

    use super::*;
    use crate::results::Hottest;

    const STEPS: u64 = 3 * LOOK_EVERY + 1;

    /// A worker for tests. Each of its transactions is aborted once, by a changed read. Each of its
    /// reads of the hottest row is aborted twice, by a lock. The worker gives the order to stop
    /// after `STEPS` transactions.
    struct Fake<'a> {
        signals: &'a Signals,
        steps: u64,
        stats: Stats,
        /// The total time of the reads of the hottest row.
        looked: &'a Cell<Duration>,
    }

    impl Worker for Fake<'_> {
        fn step(&mut self) -> Result<Step, Abort> {
            self.steps += 1;
            self.stats.commits += 1;
            self.stats.read_set += 3;
            self.stats.write_set += 1;
            self.stats.locks.taken += 2;
            self.stats.aborts[Abort::ReadChanged as usize] += 1;
            if self.steps == STEPS {
                self.signals.give(STOP);
            }
            Ok(Step { kind: 0, committed: true, retries: 1 })
        }

        fn stats(&self) -> Stats {
            self.stats
        }

        fn hottest(&mut self) -> Option<Box<dyn Probe + '_>> {
            Some(Box::new(FakeProbe { stats: &mut self.stats, looked: self.looked }))
        }
    }

    struct FakeProbe<'a> {
        stats: &'a mut Stats,
        looked: &'a Cell<Duration>,
    }

    impl Probe for FakeProbe<'_> {
        fn read(&mut self) -> Result<(), Abort> {
            let begun = Instant::now();
            self.stats.commits += 1;
            self.stats.read_set += 100;
            self.stats.locks.taken += 50;
            self.stats.aborts[Abort::Locked as usize] += 2;
            thread::sleep(Duration::from_millis(50));
            self.looked.set(self.looked.get() + begun.elapsed());
            Ok(())
        }

        fn versions(&mut self) -> Result<usize, Abort> {
            Ok(4)
        }
    }

    /// Runs a fake worker. Returns its results, and the time of the run without the reads of the
    /// hottest row.
    fn repeated(hottest: bool) -> (Run, Duration) {
        let signals = Signals::new(1);
        signals.give(MEASURE);
        signals.measured.get_or_init(Instant::now);
        let member = signals.meeting.member();
        let timing = Timing { hottest, set_sizes: true, ..Timing::immediate(Duration::MAX) };
        let (looked, begun) = (Cell::new(Duration::ZERO), Instant::now());
        let mut worker =
            Fake { signals: &signals, steps: 0, stats: Stats::default(), looked: &looked };
        let run = repeat(&mut worker, 1, &signals, &member, &timing, None, None)
            .unwrap_or_else(|failure| panic!("{failure}"));
        (run, begun.elapsed() - looked.get())
    }

    #[test]
    fn probes_of_the_hottest_row_count_in_no_other_figure() {
        let (run, took) = repeated(true);
        assert_eq!((run.committed(), run.kinds[0].aborted), (STEPS, STEPS));
        assert_eq!(run.abort_reasons, BTreeMap::from([(Abort::ReadChanged.name(), STEPS)]));
        for sums in [run.sets, run.kinds[0].sets] {
            let sets = sums.averages(false).expect("some committed");
            assert_eq!((sets.read_set, sets.write_set), (3.0, 1.0));
        }
        assert_eq!(run.locks, Locks { taken: 2 * STEPS, ..Locks::default() });
        // The reads of the hottest row take long and must not count in the latencies. So the
        // latencies add up to no more than the time of the run without these reads, even on a busy
        // machine. Recorded latencies are exact to a hundredth.
        let latencies = &run.kinds[0].latency;
        let sum = latencies.mean() * latencies.len() as f64;
        assert!(sum <= 1.01 * took.as_nanos() as f64, "{sum} ns of {took:?}");
        let looked = Hottest::new("rows[0]", run.hottest.as_ref().expect("asked for"));
        assert_eq!((looked.probes, looked.aborted, looked.versions_max), (3, 6, Some(4)));
        assert!(looked.p50_us > Some(49_000.0), "{looked:?}");
        // The results of two runs are merged.
        let (mut both, _) = repeated(true);
        both.merge(&run);
        assert_eq!(both.locks.taken, 4 * STEPS);
        let looked = Hottest::new("rows[0]", both.hottest.as_ref().expect("asked for"));
        assert_eq!((looked.probes, looked.aborted), (6, 12));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn involuntary_switches_are_counted_during_the_measurement_and_added_up() {
        let (mut run, _) = repeated(false);
        assert!(run.involuntary_switches.is_some());
        let mut other = Run::new(1);
        (run.involuntary_switches, other.involuntary_switches) = (Some(3), Some(4));
        run.merge(&other);
        assert_eq!(run.involuntary_switches, Some(7));
        run.merge(&Run::new(1));
        assert_eq!(run.involuntary_switches, Some(7), "nothing was measured there");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn shares_of_a_core_are_measured_and_the_least_one_is_kept() {
        let (mut run, _) = repeated(true);
        let share = run.core_share.expect("it is reported");
        assert!((0.0..=1.0).contains(&share), "{share}");
        let mut other = Run::new(1);
        (run.core_share, other.core_share) = (Some(0.75), Some(0.5));
        run.merge(&other);
        run.merge(&Run::new(1));
        assert_eq!(run.core_share, Some(0.5));
    }

    #[test]
    fn the_hottest_row_is_probed_with_its_option_only() {
        let (run, _) = repeated(false);
        assert!(run.hottest.is_none() && run.committed() == STEPS);
        assert_eq!(run.abort_reasons, BTreeMap::from([(Abort::ReadChanged.name(), STEPS)]));
    }
}
