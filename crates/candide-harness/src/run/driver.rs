//! One run: threads that start together, warm up, and are measured.

use std::panic;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use candide_workloads::Timeline;
use quanta::Instant;

use super::barrier::Member;
use super::pace::{self, Pace};
use super::signals::{MEASURE, MEET, STOP, Signals, Timing};
use super::slices::Slices;
use super::thread::repeat;
use crate::affinity::Cores;
use crate::any_workload::{LoadedDatabase, PreparedWorker};
use crate::failure::Failure;
use crate::progress::Clock;
use crate::results::{Footprint, Run};

/// Runs the workload of the filled database `site`, which has `kinds` transaction types, on
/// `threads` threads.
pub(super) fn run(
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
    let signals = Signals::new(threads);
    let slices = timing.slice.map(Slices::new);
    let crew = Crew { kinds, threads, timing, signals: &signals, slices: slices.as_ref() };
    let timekeeper = Timekeeper { site, clock, crew };
    let mut footprints = Vec::new();
    let mut total = thread::scope(|scope| -> Result<Run, Failure> {
        let mut workers: Vec<ScopedJoinHandle<'_, _>> = Vec::with_capacity(threads);
        for (thread, prepared) in prepared.into_iter().enumerate() {
            // The barrier does not wait for a thread that panics before the start, or could not be
            // spawned.
            let member = crew.signals.meeting.member();
            let begun = thread::Builder::new().spawn_scoped(scope, move || {
                cores.pin(thread);
                crew.work(thread, prepared, &member)
            });
            match begun {
                Ok(worker) => workers.push(worker),
                Err(error) => return Err(crew.dismiss(thread, &error)),
            }
        }
        let (mut total, lengths) = timekeeper.measure(&mut footprints);
        for worker in workers {
            total.merge(&worker.join().unwrap_or_else(|payload| panic::resume_unwind(payload))?);
        }
        total.elapsed = lengths.iter().sum();
        total.ended_early = total.elapsed < timing.duration;
        if let Some(timeline) = timing.timeline {
            // After the last phase, the threads met once more in order to stop. The last meeting
            // pushed a phase that was not measured.
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

/// The threads of a run.
#[derive(Clone, Copy)]
struct Crew<'a> {
    /// The number of transaction types.
    kinds: usize,
    threads: usize,
    timing: &'a Timing,
    signals: &'a Signals,
    slices: Option<&'a Slices>,
}

impl Crew<'_> {
    /// Runs transactions on the calling thread, number `thread`, from the common start to the order
    /// to stop.
    fn work(
        self,
        thread: usize,
        prepared: Box<dyn PreparedWorker + '_>,
        member: &Member<'_>,
    ) -> Result<Run, candide_workloads::Failure> {
        let Crew { kinds, threads, timing, signals, slices } = self;
        let mut run = None;
        prepared.work(&mut |worker| {
            member.wait();
            let pace = timing.rate.map(|rate| {
                pace::be_exact();
                Pace::new(rate, thread, threads, *signals.started.get_or_init(Instant::now))
            });
            run = Some(repeat(worker, kinds, signals, member, timing, pace, slices));
        });
        run.expect("a prepared worker works once")
    }

    /// Ends the run because of `error`, by which thread number `thread` could not be started.
    /// Returns the failure of the run.
    fn dismiss(self, thread: usize, error: &std::io::Error) -> Failure {
        let Crew { threads, signals, .. } = self;
        signals.give(STOP);
        (thread + 1..threads).for_each(|_| drop(signals.meeting.member()));
        signals.meeting.gather(|| ());
        let begun = format!(
            "only {thread} of {threads} threads could be started: {error}; ask for fewer by --threads"
        );
        Failure::Run(begun.into())
    }
}

/// The timekeeper: the thread that starts and ends the phases.
struct Timekeeper<'a> {
    site: &'a dyn LoadedDatabase,
    clock: &'a Clock<'a>,
    crew: Crew<'a>,
}

impl Timekeeper<'_> {
    /// Lets the threads start, warm up and measure, and then stop. Returns the memory and the log
    /// that the measured time took, and the lengths of the phases; of the whole, if there are no
    /// phases. Adds the memory at the end of each slice to `footprints`.
    fn measure(&self, footprints: &mut Vec<Footprint>) -> (Run, Vec<Duration>) {
        let Timekeeper { site, clock, crew: Crew { threads, timing, signals, slices, .. } } = *self;
        signals.meeting.gather(|| ());
        let all_began = signals.meeting.members() == threads;
        let warm = all_began && clock.sleep(timing.warmup);
        let recorded = || site.durability().map_or(0, |files| files.recorded_bytes);
        let (before, recorded_before) = (site.memory(), recorded());
        let lengths = match timing.timeline {
            _ if !warm => {
                signals.give(STOP);
                Vec::new()
            }
            None => {
                let slice = slices.map_or(timing.duration, Slices::length);
                let look = || {
                    footprints.extend(slices.map(|_| Footprint::now(site.memory().reserved_bytes)))
                };
                vec![self.measure_slices(slice, look)]
            }
            Some(timeline) => self.measure_phases(&timeline),
        };
        let (after, recorded_after) = (site.memory(), recorded());
        let mut total = Run::new(self.crew.kinds);
        // Arrays of hash indexes may have been freed meanwhile.
        total.grown_bytes = after.reserved_bytes.saturating_sub(before.reserved_bytes) as u64;
        total.fresh_bytes = (after.fresh_bytes - before.fresh_bytes) as u64;
        total.log_bytes = recorded_after - recorded_before;
        (total, lengths)
    }

    /// Makes the threads measure until the time has ended or Ctrl-C is pressed, and then stop.
    /// Returns the measured time. Calls `look` at the end of every slice of length `slice`. For the
    /// last slice, `look` is called after the order to stop.
    fn measure_slices(&self, slice: Duration, mut look: impl FnMut()) -> Duration {
        let Timekeeper { clock, crew: Crew { timing, signals, .. }, .. } = *self;
        let duration = timing.duration;
        let begun = *signals.measured.get_or_init(Instant::now);
        signals.give(MEASURE);
        let mut ends = Duration::ZERO;
        loop {
            ends = duration.min(ends.saturating_add(slice));
            let whole = clock.sleep(ends.saturating_sub(begun.elapsed()));
            if !whole || ends == duration {
                signals.give(STOP);
                let elapsed = begun.elapsed();
                look();
                return elapsed;
            }
            look();
        }
    }

    /// Makes the threads measure one phase after another until the time has ended, and then stop.
    /// Ctrl-C ends the current phase, which is then the last one. Between two phases, every thread
    /// ends its transaction and waits for the others. Returns the lengths of the phases, without
    /// these waits.
    fn measure_phases(&self, timeline: &Timeline) -> Vec<Duration> {
        let Timekeeper { site, clock, crew: Crew { timing, signals, .. } } = *self;
        let mut lengths = Vec::new();
        let mut left = timing.duration;
        signals.give(MEET);
        let (_, mut begun) = signals.meeting.gather(|| signals.give(MEASURE));
        loop {
            let phase = left.min(timeline.phase);
            let whole = clock.sleep(phase.saturating_sub(begun.elapsed()));
            signals.give(MEET);
            left = if whole { left - phase } else { Duration::ZERO };
            let (ended, parted) = signals.meeting.gather(|| {
                if left.is_zero() {
                    signals.give(STOP);
                } else {
                    site.enter_phase(lengths.len() + 1);
                    signals.give(MEASURE);
                }
            });
            lengths.push(ended - begun);
            if left.is_zero() {
                return lengths;
            }
            begun = parted;
        }
    }
}

#[cfg(test)]
mod tests {
    use candide::report::{MemoryUse, Stats};
    use candide::{Abort, Error};
    use candide_workloads::{Consistency, Step, Worker};

    use super::*;
    use crate::progress::Agenda;

    /// A workload whose second thread panics before it has begun.
    struct Unprepared;

    impl LoadedDatabase for Unprepared {
        fn prepare(&self, threads: usize) -> Result<Vec<Box<dyn PreparedWorker + '_>>, Error> {
            let prepared = |thread| Box::new(Unready { thread }) as Box<dyn PreparedWorker>;
            Ok((0..threads).map(prepared).collect())
        }

        fn enter_phase(&self, _phase: usize) {}

        fn sequential_tps(&self, _committed: u64) -> Option<f64> {
            None
        }

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

    /// A worker whose transactions do nothing.
    struct Idle;

    impl Worker for Idle {
        fn step(&mut self) -> Result<Step, Abort> {
            Ok(Step { kind: 0, committed: true, retries: 0 })
        }

        fn stats(&self) -> Stats {
            Stats::default()
        }
    }

    struct Unready {
        thread: usize,
    }

    impl PreparedWorker for Unready {
        fn work(self: Box<Self>, body: &mut dyn FnMut(&mut dyn Worker)) {
            assert_ne!(self.thread, 1, "on purpose");
            body(&mut Idle);
        }
    }

    #[test]
    fn a_thread_that_has_panicked_before_the_start_is_not_waited_for() {
        let (ended, told) = std::sync::mpsc::channel();
        thread::spawn(move || {
            let agenda = Agenda::new(1, Duration::ZERO);
            let timing = Timing::immediate(Duration::from_secs(36_000));
            let clock = Clock::new(&agenda, "unprepared", timing.duration);
            let run = || run(&Unprepared, 1, 3, &timing, &Cores::allowed(), &clock).is_ok();
            let panicked = panic::catch_unwind(panic::AssertUnwindSafe(run)).is_err();
            ended.send(panicked).expect("the receiver listens");
        });
        // The loop waits for a minute, or longer on a busy machine.
        let panicked = (0..60_000).find_map(|_| told.recv_timeout(Duration::from_millis(1)).ok());
        assert_eq!(panicked, Some(true));
    }
}
