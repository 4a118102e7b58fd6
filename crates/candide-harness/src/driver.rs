//! One run: threads that start together, warm up, and are measured.

use std::collections::BTreeMap;
use std::panic;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::Duration;

use candide::Abort;
use candide::report::Stats;
use candide_workloads::{Causes, Step, Timeline, Worker};
use hdrhistogram::Histogram;
use quanta::Instant;

use crate::affinity::Cores;
use crate::any_workload::LoadedDatabase;
use crate::barrier::{Barrier, Member};
use crate::failure::Failure;
use crate::hottest::{self, Probes};
use crate::locks::Locks;
use crate::measurement::Footprint;
use crate::pace::{self, Pace};
use crate::preemption;
use crate::progress::Clock;
use crate::sets::SetSums;
use crate::slices::{RunSlice, Slices};
use crate::timeline::Phase;

/// The part of the measured time whose throughput is reported beside that of the whole: fresh
/// memory and cold caches show in it.
const FIRST_SECOND: Duration = Duration::from_secs(1);
/// The shortest measured time of which the first second is reported.
const FIRST_SECOND_MIN: Duration = Duration::from_secs(2);

/// The orders to a run's threads. The current order is one byte, written by the timekeeper and read
/// by all other threads.
const WARM_UP: u8 = 0;
const MEASURE: u8 = 1;
const STOP: u8 = 2;
/// The order to wait for the other threads while the workload changes.
const MEET: u8 = 3;

/// The timing of a run.
pub(crate) struct Timing {
    pub(crate) warmup: Duration,
    pub(crate) duration: Duration,
    /// The changes of the workload during the run; `None` if it does not change.
    pub(crate) timeline: Option<Timeline>,
    /// The number of transactions per second that all threads together begin; `None` if the threads
    /// begin as many as they can.
    pub(crate) rate: Option<f64>,
    /// The length of the slices whose results are reported; `None` if the run is not cut into
    /// slices. A workload that changes has its own slices instead.
    pub(crate) slice: Option<Duration>,
    /// Whether threads occasionally read the workload's hottest row.
    pub(crate) hottest: bool,
    /// Whether the session's counters are read after every transaction, so that the sizes of read
    /// and write sets are known by transaction type.
    pub(crate) set_sizes: bool,
}

/// The results of one run.
pub(crate) struct Run {
    /// The time during which the run was measured.
    pub(crate) elapsed: Duration,
    /// The results of each transaction type, in the workload's order.
    pub(crate) kinds: Vec<Kind>,
    /// Aborted attempts by the engine's reason.
    pub(crate) abort_reasons: BTreeMap<&'static str, u64>,
    /// The read and write sets of all committed transactions.
    pub(crate) sets: SetSums,
    /// The locks on rows by policy.
    pub(crate) locks: Locks,
    /// The causes of aborted attempts: the row and the conflicting transaction types; `None` if the
    /// workload does not find them out.
    pub(crate) causes: Option<Causes>,
    /// The results of reads of the workload's hottest row; `None` if these reads were not
    /// requested.
    pub(crate) hottest: Option<Probes>,
    /// The results of the workload's phases; empty if the workload has none.
    pub(crate) phases: Vec<Phase>,
    /// The results of the slices; empty if the run was not cut into slices. Slices of different
    /// runs are not merged.
    pub(crate) slices: Vec<RunSlice>,
    /// The transactions committed in the first second of the measured time; `None` if the measured
    /// time is shorter than two seconds, or has phases.
    pub(crate) first_second: Option<u64>,
    /// How often the system made one of the threads leave its core while it was measured; `None`
    /// if the system does not report it.
    pub(crate) involuntary_switches: Option<u64>,
    /// The number of bytes that the database took in the measured time.
    pub(crate) grown_bytes: u64,
    /// The part of `grown_bytes` that the operating system had not yet provided.
    pub(crate) fresh_bytes: u64,
    /// The bytes of the commit records of the measured time; zero if the database has no log.
    pub(crate) log_bytes: u64,
    /// Whether Ctrl-C ended the run. If the measurement had not begun by then, `elapsed` is zero.
    pub(crate) ended_early: bool,
}

/// The results of one transaction type.
pub(crate) struct Kind {
    pub(crate) committed: u64,
    /// Attempts aborted by a conflict.
    pub(crate) aborted: u64,
    /// Transactions that rolled themselves back.
    pub(crate) user_aborted: u64,
    /// The nanoseconds from the first attempt to the end of each transaction. If a rate was given,
    /// they are from the transaction's intended beginning instead.
    pub(crate) latency: Histogram<u64>,
    /// The read and write sets of the committed transactions, if they are counted by type.
    pub(crate) sets: SetSums,
}

impl Kind {
    pub(crate) fn new() -> Self {
        // With two digits, the buckets of a few types fit into the second-level cache. The bound of
        // an hour is more than any transaction takes, even with the time it waits to begin if the
        // rate is too high.
        let latency = Histogram::new_with_bounds(1, 3_600_000_000_000, 2).expect("bounds in order");
        Kind { committed: 0, aborted: 0, user_aborted: 0, latency, sets: SetSums::default() }
    }

    /// Counts one transaction and records its latency.
    #[inline]
    pub(crate) fn record(&mut self, step: &Step, latency: Duration) {
        if step.committed {
            self.committed += 1;
        } else {
            self.user_aborted += 1;
        }
        self.aborted += step.retries;
        self.latency.saturating_record(latency.as_nanos() as u64);
    }

    /// Clears all counts.
    pub(crate) fn clear(&mut self) {
        (self.committed, self.aborted, self.user_aborted) = (0, 0, 0);
        self.latency.reset();
        self.sets = SetSums::default();
    }

    /// Adds the results of another thread or run.
    pub(crate) fn merge(&mut self, other: &Kind) {
        self.committed += other.committed;
        self.aborted += other.aborted;
        self.user_aborted += other.user_aborted;
        self.latency.add(&other.latency).expect("all have the same bounds");
        self.sets.merge(other.sets);
    }
}

impl Run {
    /// Creates empty results of `kinds` transaction types.
    pub(crate) fn new(kinds: usize) -> Self {
        Run {
            elapsed: Duration::ZERO,
            kinds: (0..kinds).map(|_| Kind::new()).collect(),
            abort_reasons: BTreeMap::new(),
            sets: SetSums::default(),
            locks: Locks::default(),
            causes: None,
            hottest: None,
            phases: Vec::new(),
            slices: Vec::new(),
            first_second: None,
            involuntary_switches: None,
            grown_bytes: 0,
            fresh_bytes: 0,
            log_bytes: 0,
            ended_early: false,
        }
    }

    /// Adds the results of another thread or run. The measured times of runs are added up; that of
    /// a single thread's results is zero.
    pub(crate) fn merge(&mut self, other: &Run) {
        self.elapsed += other.elapsed;
        self.ended_early |= other.ended_early;
        self.grown_bytes += other.grown_bytes;
        self.fresh_bytes += other.fresh_bytes;
        self.log_bytes += other.log_bytes;
        if let Some(committed) = other.first_second {
            *self.first_second.get_or_insert_default() += committed;
        }
        if let Some(switches) = other.involuntary_switches {
            *self.involuntary_switches.get_or_insert_default() += switches;
        }
        for (kind, other) in self.kinds.iter_mut().zip(&other.kinds) {
            kind.merge(other);
        }
        for (&reason, count) in &other.abort_reasons {
            *self.abort_reasons.entry(reason).or_default() += count;
        }
        self.sets.merge(other.sets);
        self.locks.merge(other.locks);
        if let Some(causes) = &other.causes {
            self.causes.get_or_insert_default().merge(causes);
        }
        if let Some(hottest) = &other.hottest {
            self.hottest.get_or_insert_with(Probes::new).merge(hottest);
        }
        if self.phases.len() < other.phases.len() {
            self.phases.resize_with(other.phases.len(), Phase::default);
        }
        self.phases.iter_mut().zip(&other.phases).for_each(|(phase, other)| phase.merge(other));
    }

    pub(crate) fn committed(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.committed).sum()
    }

    /// Returns the committed transactions per second.
    pub(crate) fn throughput(&self) -> f64 {
        self.committed() as f64 / self.elapsed.as_secs_f64()
    }
}

/// Runs the workload of the filled database `site`, which has `kinds` transaction types, on
/// `threads` threads.
pub(crate) fn run(
    site: &dyn LoadedDatabase,
    kinds: usize,
    threads: usize,
    timing: &Timing,
    cores: &Cores,
    clock: &Clock<'_>,
) -> Result<Run, Failure> {
    // The calling thread opens the sessions, so that the threads of the run need not.
    let prepared = site.prepare(threads)?;
    site.enter_phase(0);
    let orders = AtomicU8::new(WARM_UP);
    let (started, measured) = (OnceLock::new(), OnceLock::new());
    let meeting = Barrier::of(threads);
    let slices = timing.slice.map(Slices::new);
    let mut footprints = Vec::new();
    let mut total = thread::scope(|scope| -> Result<Run, Failure> {
        let (orders, meeting, slices) = (&orders, &meeting, slices.as_ref());
        let (started, measured) = (&started, &measured);
        let mut workers = Vec::with_capacity(threads);
        for (thread, prepared) in prepared.into_iter().enumerate() {
            // The barrier does not wait for a thread that panics before the start, or could not be
            // spawned.
            let member = meeting.member();
            let begun = thread::Builder::new().spawn_scoped(scope, move || {
                cores.pin(thread);
                let mut run = None;
                prepared.work(&mut |worker| {
                    member.wait();
                    let pace = timing.rate.map(|rate| {
                        pace::be_exact();
                        Pace::new(rate, thread, threads, *started.get_or_init(Instant::now))
                    });
                    let signals = Signals { orders, member: &member, measured };
                    run = Some(repeat(worker, kinds, &signals, timing, pace, slices));
                });
                run.expect("a prepared worker works once")
            });
            match begun {
                Ok(worker) => workers.push(worker),
                Err(error) => {
                    orders.store(STOP, Ordering::Relaxed);
                    (thread + 1..threads).for_each(|_| drop(meeting.member()));
                    meeting.gather(|| ());
                    let begun = format!(
                        "only {thread} of {threads} threads could be started: {error}; ask for fewer by --threads"
                    );
                    return Err(Failure::Run(begun.into()));
                }
            }
        }
        meeting.gather(|| ());
        let all_began = meeting.members() == threads;
        let warm = all_began && clock.sleep(timing.warmup);
        let recorded = || site.durability().map_or(0, |files| files.recorded_bytes);
        let (before, recorded_before) = (site.memory(), recorded());
        let lengths = match timing.timeline {
            _ if !warm => {
                orders.store(STOP, Ordering::Relaxed);
                Vec::new()
            }
            None => {
                let slice = slices.map_or(timing.duration, Slices::length);
                let look = || {
                    footprints.extend(slices.map(|_| Footprint::now(site.memory().reserved_bytes)))
                };
                vec![measure(timing.duration, slice, orders, measured, clock, look)]
            }
            Some(timeline) => {
                measure_phases(timing.duration, &timeline, orders, meeting, site, clock)
            }
        };
        let (after, recorded_after) = (site.memory(), recorded());
        let mut total = Run::new(kinds);
        // Arrays of hash indexes may have been freed meanwhile.
        total.grown_bytes = after.reserved_bytes.saturating_sub(before.reserved_bytes) as u64;
        total.fresh_bytes = (after.fresh_bytes - before.fresh_bytes) as u64;
        total.log_bytes = recorded_after - recorded_before;
        for worker in workers {
            total.merge(&worker.join().unwrap_or_else(|payload| panic::resume_unwind(payload))?);
        }
        total.elapsed = lengths.iter().sum();
        total.ended_early = total.elapsed < timing.duration;
        if let Some(timeline) = timing.timeline {
            // After the last phase, the threads met once more in order to stop. That meeting pushed
            // a phase that was not measured.
            total.phases.truncate(lengths.len());
            total
                .phases
                .iter_mut()
                .zip(lengths)
                .for_each(|(phase, length)| phase.measured(length, timeline.slice));
        }
        Ok(total)
    })?;
    if let Some(slices) = slices {
        total.slices = slices.into_list(total.elapsed, footprints);
    }
    Ok(total)
}

/// Makes the threads measure for `duration`, or until Ctrl-C is pressed, and then stop. Returns the
/// measured time. Calls `look` at the end of every slice of length `slice`. For the last slice,
/// `look` is called after the order to stop.
fn measure(
    duration: Duration,
    slice: Duration,
    orders: &AtomicU8,
    measured: &OnceLock<Instant>,
    clock: &Clock<'_>,
    mut look: impl FnMut(),
) -> Duration {
    let begun = *measured.get_or_init(Instant::now);
    orders.store(MEASURE, Ordering::Relaxed);
    let mut ends = Duration::ZERO;
    loop {
        ends = duration.min(ends.saturating_add(slice));
        let whole = clock.sleep(ends.saturating_sub(begun.elapsed()));
        if !whole || ends == duration {
            orders.store(STOP, Ordering::Relaxed);
            let elapsed = begun.elapsed();
            look();
            return elapsed;
        }
        look();
    }
}

/// Makes the threads measure one phase after another for `duration` in all, and then stop. Ctrl-C
/// ends the current phase, which is then the last one. Between two phases, every thread ends its
/// transaction and waits for the others. Returns the lengths of the phases, without these waits.
fn measure_phases(
    duration: Duration,
    timeline: &Timeline,
    orders: &AtomicU8,
    meeting: &Barrier,
    site: &dyn LoadedDatabase,
    clock: &Clock<'_>,
) -> Vec<Duration> {
    let mut lengths = Vec::new();
    let mut left = duration;
    orders.store(MEET, Ordering::Relaxed);
    let (_, mut begun) = meeting.gather(|| orders.store(MEASURE, Ordering::Relaxed));
    loop {
        let phase = left.min(timeline.phase);
        let whole = clock.sleep(phase.saturating_sub(begun.elapsed()));
        orders.store(MEET, Ordering::Relaxed);
        left = if whole { left - phase } else { Duration::ZERO };
        let (ended, parted) = meeting.gather(|| {
            if left.is_zero() {
                orders.store(STOP, Ordering::Relaxed);
            } else {
                site.enter_phase(lengths.len() + 1);
                orders.store(MEASURE, Ordering::Relaxed);
            }
        });
        lengths.push(ended - begun);
        if left.is_zero() {
            return lengths;
        }
        begun = parted;
    }
}

/// The state that a thread shares with the timekeeper and with the other threads.
struct Signals<'a> {
    orders: &'a AtomicU8,
    member: &'a Member<'a>,
    /// The time at which measuring began, for workloads without phases. The time is set before the
    /// order to measure is given.
    measured: &'a OnceLock<Instant>,
}

/// Runs transactions until the order to stop, and counts the transactions that begin after the
/// order to measure.
///
/// The clock is read once per transaction: the end of a transaction is the beginning of the next
/// one. If a pace is given, the intended beginning is used instead. Reading the clock costs about
/// 8 ns where the processor's counter can be used, and 25 ns otherwise (measured on a virtualized
/// x86-64), while a transaction takes half a microsecond or more. This cost is the same under every
/// protocol. A read of the hottest row takes place between two transactions. So with a pace, the
/// latency of the next transaction may include that read.
fn repeat(
    worker: &mut dyn Worker,
    kinds: usize,
    signals: &Signals<'_>,
    timing: &Timing,
    mut pace: Option<Pace>,
    slices: Option<&Slices>,
) -> Result<Run, candide_workloads::Failure> {
    let orders = signals.orders;
    let timeline = timing.timeline;
    let mut run = Run::new(kinds);
    run.hottest = timing.hottest.then(Probes::new);
    let mut until_look = hottest::EVERY;
    let mut before: Option<Stats> = None;
    let mut switches_before = None;
    // The counters after the transaction before, if they are read after each.
    let mut last: Option<Stats> = None;
    let mut share = None;
    let mut first_second_ends = None;
    let mut begin = Instant::now();
    let mut phase_begun = begin;
    loop {
        let order = orders.load(Ordering::Relaxed);
        if order == STOP {
            break;
        }
        if order == MEET {
            phase_begun = signals.member.wait();
            run.phases.push(Phase::default());
            // Transactions that should have begun in the previous phase, but did not, are not begun
            // later.
            if let Some(pace) = &mut pace {
                pace.restart(phase_begun);
            }
            begin = Instant::now();
            continue;
        }
        if order == MEASURE && before.is_none() {
            switches_before = preemption::count();
            before = Some(worker.stats());
            last = before.filter(|_| timing.set_sizes);
            // Drops the causes of aborts that were counted during the warm-up.
            drop(worker.take_causes());
            if timeline.is_none() {
                let measured = *signals.measured.wait();
                if timing.duration >= FIRST_SECOND_MIN {
                    first_second_ends = Some(measured + FIRST_SECOND);
                    run.first_second = Some(0);
                }
                if let Some(pace) = &mut pace {
                    pace.skip_to(measured);
                }
                share = slices.map(|slices| slices.share(measured));
            }
            // What was done above is no part of the first transaction.
            begin = Instant::now();
        }
        if let Some(pace) = &mut pace {
            let Some(intended) = pace.wait(begin, || orders.load(Ordering::Relaxed) == order)
            else {
                begin = Instant::now();
                continue;
            };
            begin = intended;
        }
        let step = worker.step()?;
        let end = Instant::now();
        if order == MEASURE {
            let latency = end - begin;
            run.kinds[step.kind].record(&step, latency);
            if step.committed && first_second_ends.is_some_and(|ends| end < ends) {
                *run.first_second.get_or_insert_default() += 1;
            }
            if let Some(last) = &mut last {
                let before = std::mem::replace(last, worker.stats());
                run.kinds[step.kind].sets.add(&before, last);
            }
            if let (Some(timeline), Some(phase)) = (timeline, run.phases.last_mut()) {
                phase.record(&step, end - phase_begun, timeline.slice);
            }
            if let Some(share) = &mut share {
                share.record(&step, latency, end);
            }
            if let Some(probes) = &mut run.hottest {
                until_look -= 1;
                if until_look == 0 {
                    until_look = hottest::EVERY;
                    probes.look(worker)?;
                    last = last.map(|_| worker.stats());
                    begin = Instant::now();
                    continue;
                }
            }
        }
        begin = end;
    }
    if let Some(before) = switches_before {
        run.involuntary_switches = preemption::count().map(|after| after - before);
    }
    if let Some(share) = share {
        share.close();
    }
    if let Some(before) = before {
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
    }
    Ok(run)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use candide::Error;
    use candide::report::MemoryUse;
    use candide_workloads::{Consistency, Probe};

    use super::*;
    use crate::any_workload::PreparedWorker;
    use crate::hottest::Hottest;
    use crate::progress::Agenda;

    const STEPS: u64 = 3 * hottest::EVERY + 1;

    /// A worker for tests. Each of its transactions is aborted once, by a changed read. Each of its
    /// reads of the hottest row is aborted twice, by a lock. The worker gives the order to stop
    /// after `STEPS` transactions.
    struct Fake<'a> {
        orders: &'a AtomicU8,
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
                self.orders.store(STOP, Ordering::Relaxed);
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

    /// Returns the timing of a run that begins at once and measures nothing besides.
    fn timing(duration: Duration) -> Timing {
        Timing {
            warmup: Duration::ZERO,
            duration,
            timeline: None,
            rate: None,
            slice: None,
            hottest: false,
            set_sizes: false,
        }
    }

    /// Runs a fake worker. Returns its results, and the time of the run without the reads of the
    /// hottest row.
    fn repeated(hottest: bool) -> (Run, Duration) {
        let (orders, measured, meeting) =
            (AtomicU8::new(MEASURE), OnceLock::from(Instant::now()), Barrier::of(1));
        let signals = Signals { orders: &orders, member: &meeting.member(), measured: &measured };
        let timing = Timing { hottest, set_sizes: true, ..timing(Duration::MAX) };
        let (looked, begun) = (Cell::new(Duration::ZERO), Instant::now());
        let mut worker =
            Fake { orders: &orders, steps: 0, stats: Stats::default(), looked: &looked };
        let run = repeat(&mut worker, 1, &signals, &timing, None, None)
            .unwrap_or_else(|failure| panic!("{failure}"));
        (run, begun.elapsed() - looked.get())
    }

    #[test]
    fn looks_at_the_hottest_row_are_in_no_other_figure() {
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
    fn involuntary_switches_are_counted_while_measured_and_added_up() {
        let (mut run, _) = repeated(false);
        assert!(run.involuntary_switches.is_some());
        let mut other = Run::new(1);
        (run.involuntary_switches, other.involuntary_switches) = (Some(3), Some(4));
        run.merge(&other);
        assert_eq!(run.involuntary_switches, Some(7));
        run.merge(&Run::new(1));
        assert_eq!(run.involuntary_switches, Some(7), "nothing was measured there");
    }

    /// A workload whose second thread panics before it has begun.
    struct Unprepared;

    impl LoadedDatabase for Unprepared {
        fn prepare(&self, threads: usize) -> Result<Vec<Box<dyn PreparedWorker + '_>>, Error> {
            let prepared = |thread| Box::new(Unready { thread }) as Box<dyn PreparedWorker>;
            Ok((0..threads).map(prepared).collect())
        }

        fn enter_phase(&self, _phase: usize) {}

        fn check(&self) -> Result<Consistency, candide_workloads::Failure> {
            Ok(Consistency::default())
        }

        fn memory(&self) -> MemoryUse {
            MemoryUse::default()
        }

        fn durability(&self) -> Option<candide::Durability> {
            None
        }

        fn log_failure(&self) -> Option<std::sync::Arc<std::io::Error>> {
            None
        }
    }

    struct Unready {
        thread: usize,
    }

    impl PreparedWorker for Unready {
        fn work(self: Box<Self>, body: &mut dyn FnMut(&mut dyn Worker)) {
            assert_ne!(self.thread, 1, "on purpose");
            let orders = AtomicU8::new(WARM_UP);
            let looked = Cell::default();
            body(&mut Fake { orders: &orders, steps: 0, stats: Stats::default(), looked: &looked });
        }
    }

    #[test]
    fn a_thread_that_has_panicked_before_the_start_is_not_waited_for() {
        let (ended, told) = std::sync::mpsc::channel();
        thread::spawn(move || {
            let agenda = Agenda::new(1, Duration::ZERO);
            let timing = timing(Duration::from_secs(36_000));
            let clock = Clock::new(&agenda, "unprepared", timing.duration);
            let run = || run(&Unprepared, 1, 3, &timing, &Cores::allowed(), &clock).is_ok();
            let panicked = panic::catch_unwind(panic::AssertUnwindSafe(run)).is_err();
            ended.send(panicked).expect("the receiver listens");
        });
        // The loop waits for a minute, or longer on a busy machine.
        let panicked = (0..60_000).find_map(|_| told.recv_timeout(Duration::from_millis(1)).ok());
        assert_eq!(panicked, Some(true));
    }

    #[test]
    fn the_hottest_row_is_looked_at_only_if_asked() {
        let (run, _) = repeated(false);
        assert!(run.hottest.is_none() && run.committed() == STEPS);
        assert_eq!(run.abort_reasons, BTreeMap::from([(Abort::ReadChanged.name(), STEPS)]));
    }
}
