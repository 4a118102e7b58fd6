//! One run: threads that start together, warm up, and are measured.

use std::collections::BTreeMap;
use std::panic;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use candide::{Database, Protocol, Stats};
use candide_workloads::{Causes, Loaded, Step, Timeline, Worker};
use hdrhistogram::Histogram;

use crate::affinity::Cores;
use crate::failure::Failure;
use crate::progress::Clock;
use crate::rendezvous::{Member, Rendezvous};
use crate::timeline::Phase;

/// What a run's threads are told to do. One byte, changed by the thread that keeps the time and read by all others.
const WARM_UP: u8 = 0;
const MEASURE: u8 = 1;
const STOP: u8 = 2;
/// Meet the others, while the workload changes.
const MEET: u8 = 3;

/// How a run goes.
pub(crate) struct Timing {
    pub(crate) warmup: Duration,
    pub(crate) duration: Duration,
    /// How the workload changes meanwhile, if it does.
    pub(crate) timeline: Option<Timeline>,
}

/// What one run came to.
pub(crate) struct Run {
    /// How long it was measured.
    pub(crate) elapsed: Duration,
    /// Each transaction type, in the workload's order.
    pub(crate) kinds: Vec<Kind>,
    /// Aborted attempts by the engine's reason.
    pub(crate) abort_reasons: BTreeMap<&'static str, u64>,
    /// Where they were and whom they met, if the workload finds out.
    pub(crate) causes: Option<Causes>,
    /// What the workload's phases came to, if it has any.
    pub(crate) phases: Vec<Phase>,
    /// Whether Ctrl-C ended it; if that was before anything was measured, no time has elapsed.
    pub(crate) ended_early: bool,
}

/// What one transaction type came to.
pub(crate) struct Kind {
    pub(crate) committed: u64,
    /// Attempts that a conflict ended.
    pub(crate) aborted: u64,
    /// Transactions that rolled themselves back.
    pub(crate) user_aborted: u64,
    /// Nanoseconds from first attempt to end.
    pub(crate) latency: Histogram<u64>,
}

impl Kind {
    fn new() -> Self {
        // Two digits keep the buckets of a few types within the second-level cache; a minute is beyond any transaction here.
        let latency = Histogram::new_with_bounds(1, 60_000_000_000, 2).expect("bounds in order");
        Kind { committed: 0, aborted: 0, user_aborted: 0, latency }
    }

    #[inline]
    fn record(&mut self, step: &Step, latency: Duration) {
        if step.committed {
            self.committed += 1;
        } else {
            self.user_aborted += 1;
        }
        self.aborted += step.retries;
        self.latency.saturating_record(latency.as_nanos() as u64);
    }

    fn merge(&mut self, other: &Kind) {
        self.committed += other.committed;
        self.aborted += other.aborted;
        self.user_aborted += other.user_aborted;
        self.latency.add(&other.latency).expect("all have the same bounds");
    }
}

impl Run {
    /// Nothing yet, of `kinds` transaction types.
    pub(crate) fn new(kinds: usize) -> Self {
        Run {
            elapsed: Duration::ZERO,
            kinds: (0..kinds).map(|_| Kind::new()).collect(),
            abort_reasons: BTreeMap::new(),
            causes: None,
            phases: Vec::new(),
            ended_early: false,
        }
    }

    /// Adds what another thread or another run came to. The times of runs add up; threads do not have any.
    pub(crate) fn merge(&mut self, other: &Run) {
        self.elapsed += other.elapsed;
        self.ended_early |= other.ended_early;
        for (kind, other) in self.kinds.iter_mut().zip(&other.kinds) {
            kind.merge(other);
        }
        for (&reason, count) in &other.abort_reasons {
            *self.abort_reasons.entry(reason).or_default() += count;
        }
        if let Some(causes) = &other.causes {
            self.causes.get_or_insert_default().merge(causes);
        }
        if self.phases.len() < other.phases.len() {
            self.phases.resize_with(other.phases.len(), Phase::default);
        }
        self.phases.iter_mut().zip(&other.phases).for_each(|(phase, other)| phase.merge(other));
    }

    pub(crate) fn committed(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.committed).sum()
    }

    /// Committed transactions per second.
    pub(crate) fn throughput(&self) -> f64 {
        self.committed() as f64 / self.elapsed.as_secs_f64()
    }
}

/// Runs a loaded workload of `kinds` transaction types on `threads` threads.
pub(crate) fn run<P: Protocol, L: Loaded<P>>(
    db: &Database<P>,
    loaded: &L,
    kinds: usize,
    threads: usize,
    timing: &Timing,
    cores: &Cores,
    clock: &Clock,
) -> Result<Run, Failure> {
    // Sessions are opened here, so that no thread can fail before the barrier and leave the others waiting at it.
    let sessions = (0..threads).map(|_| db.session()).collect::<Result<Vec<_>, _>>()?;
    loaded.expect_workers(threads);
    loaded.enter_phase(0);
    let start = Barrier::new(threads + 1);
    let orders = AtomicU8::new(WARM_UP);
    let meeting = Rendezvous::of(threads);
    thread::scope(|scope| {
        let (start, orders, meeting) = (&start, &orders, &meeting);
        let workers: Vec<_> = sessions
            .into_iter()
            .enumerate()
            .map(|(thread, session)| {
                scope.spawn(move || {
                    cores.pin(thread);
                    let member = meeting.member();
                    // Made by the thread that uses it, so that its memory is near.
                    let mut worker = loaded.worker(session, thread);
                    start.wait();
                    let run = repeat(&mut worker, kinds, orders, &member, timing.timeline);
                    loaded.absorb(worker);
                    run
                })
            })
            .collect();
        start.wait();
        let warm = clock.sleep(timing.warmup);
        let lengths = match timing.timeline {
            _ if !warm => {
                orders.store(STOP, Ordering::Relaxed);
                Vec::new()
            }
            None => vec![measure(timing.duration, orders, clock)],
            Some(timeline) => measure_phases(timing.duration, &timeline, orders, meeting, loaded, clock),
        };
        let mut total = Run::new(kinds);
        for worker in workers {
            total.merge(&worker.join().unwrap_or_else(|payload| panic::resume_unwind(payload))?);
        }
        total.elapsed = lengths.iter().sum();
        total.ended_early = total.elapsed < timing.duration;
        if let Some(timeline) = timing.timeline {
            // The threads have met once more, to stop.
            total.phases.truncate(lengths.len());
            total.phases.iter_mut().zip(lengths).for_each(|(phase, length)| phase.measured(length, timeline.slice));
        }
        Ok(total)
    })
}

/// Has the threads measure for `duration`, or until Ctrl-C is pressed, and then stop. Gives how long it was.
fn measure(duration: Duration, orders: &AtomicU8, clock: &Clock) -> Duration {
    orders.store(MEASURE, Ordering::Relaxed);
    let measured = Instant::now();
    clock.sleep(duration);
    orders.store(STOP, Ordering::Relaxed);
    measured.elapsed()
}

/// Has the threads measure each phase of `duration`, and then stop; after the phase in which Ctrl-C is pressed, and which it ends.
/// They meet in between, each having ended its transaction. Gives how long the phases were, without the meetings.
fn measure_phases<P: Protocol>(
    duration: Duration,
    timeline: &Timeline,
    orders: &AtomicU8,
    meeting: &Rendezvous,
    loaded: &impl Loaded<P>,
    clock: &Clock,
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
                loaded.enter_phase(lengths.len() + 1);
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

/// Runs transactions until told to stop and counts those that begin while being measured.
///
/// One clock reading per transaction: the end of one is the beginning of the next. A reading costs about 25 ns (measured on a
/// virtualized x86-64), a transaction a microsecond or more, and every protocol pays alike.
fn repeat<W: Worker>(
    worker: &mut W,
    kinds: usize,
    orders: &AtomicU8,
    member: &Member<'_>,
    timeline: Option<Timeline>,
) -> Result<Run, candide_workloads::Failure> {
    let mut run = Run::new(kinds);
    let mut before: Option<Stats> = None;
    let mut begin = Instant::now();
    let mut phase_begun = begin;
    loop {
        let order = orders.load(Ordering::Relaxed);
        if order == STOP {
            break;
        }
        if order == MEET {
            phase_begun = member.wait();
            run.phases.push(Phase::default());
            begin = Instant::now();
            continue;
        }
        if order == MEASURE && before.is_none() {
            before = Some(worker.stats());
            // Those of the warm-up.
            drop(worker.take_causes());
        }
        let step = worker.step()?;
        let end = Instant::now();
        if order == MEASURE {
            run.kinds[step.kind].record(&step, end - begin);
            if let (Some(timeline), Some(phase)) = (timeline, run.phases.last_mut()) {
                phase.record(&step, end - phase_begun, timeline.slice);
            }
        }
        begin = end;
    }
    if let Some(before) = before {
        let after = worker.stats();
        for ((reason, before), (_, after)) in before.abort_reasons().zip(after.abort_reasons()) {
            if after > before {
                run.abort_reasons.insert(reason, after - before);
            }
        }
        run.causes = worker.take_causes();
    }
    Ok(run)
}
