//! Recording the operations of transactions, which a checker judges while the transactions run.

use std::cell::OnceCell;
use std::fs::File;
use std::io::BufWriter;
use std::panic;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use candide::Abort;
use candide::history::Batch;
use candide_check::json::{Header, Writer};
use candide_check::{Checker, Event};
use candide_workloads::{Loading, Worker};

use super::Rules;
use super::recordable::{Recordable, RecordedSite};
use super::verdict::Verdict;
use crate::any_workload::{FillError, PreparedWorker};
use crate::failure::Failure;
use crate::interrupt;
use crate::locks::Locks;
use crate::progress::{self, Clock};
use crate::registry::Choice;
use crate::sink::Sink;

/// The orders to the threads.
const GO_ON: u8 = 0;
const WAIT: u8 = 1;
const STOP: u8 = 2;

/// The number of events taken at once beyond which the threads wait for the checker, so that memory
/// stays bounded.
const EVENTS_MAX: usize = 100_000;

/// The destinations of a history: the checker, and a file; `None` if no file was named.
struct Destination {
    checker: Checker,
    file: Option<Writer<BufWriter<File>, Event>>,
}

impl Destination {
    fn take(&mut self, batch: Batch) -> Result<usize, Failure> {
        for event in &batch.events {
            if let Some(file) = &mut self.file {
                file.write(event)?;
            }
            self.checker.feed(event);
        }
        self.checker.advance(batch.complete_before);
        Ok(batch.events.len())
    }
}

/// Runs a workload under a protocol on `threads` threads, and judges its history and its tables.
pub fn record(
    workload: &dyn Recordable,
    protocol: Choice,
    threads: usize,
    rules: &Rules<'_>,
) -> Result<Verdict, Failure> {
    let &Rules { opaque, seed, duration, ref agenda, .. } = rules;
    workload.validate().map_err(Failure::Usage)?;
    let claim = rules.claim.with_promises(protocol, opaque);
    let (name, protocol_name) = (workload.name(), protocol.name());
    let header = Header {
        protocol: protocol_name.to_string(),
        seed,
        text: format!("{name} with {threads} threads"),
    };
    let history = rules.history.map(Sink::open).transpose()?;
    let loading = Loading { threads, seed, progress: &|_| {}, stopped: &interrupt::is_pressed };
    let site = match workload.fill(protocol, opaque, &loading) {
        Err(FillError::Loading(candide_workloads::Failure::Stopped)) => {
            return Err(Failure::Interrupted);
        }
        filled => filled?,
    };
    let file = history.map(|sink| Ok::<_, Failure>(Writer::new(sink.emptied()?, &header)?));
    let mut destination =
        Destination { checker: Checker::new(claim.of_versions()), file: file.transpose()? };
    let clock = Clock::new(agenda, &format!("recording {name} {protocol_name}"), duration);
    let before = site.stats();
    let (committed, whole) = run_recorded(&*site, threads, duration, &mut destination, &clock)?;
    let locks = Locks::between(&before, &site.stats());
    drop(clock);
    let consistency = progress::with_line(agenda, "checking the tables,", None, || site.check())?;
    destination.take(site.take_history())?;
    if let Some(file) = destination.file {
        file.finish()?;
    }
    let title = format!("{name}, {threads} threads, seed {seed}");
    let verdict =
        Verdict::of_versions(title, claim, destination.checker.finish(), consistency.failed);
    Ok(verdict.of_run(committed, !whole).of_locks(protocol, locks))
}

/// Runs transactions on `threads` threads, while the calling thread passes their history to
/// `destination`. The duration begins when all threads have drawn their inputs. Returns the number
/// of commits, and `false` if Ctrl-C ended the run early.
fn run_recorded(
    site: &dyn RecordedSite,
    threads: usize,
    duration: Duration,
    destination: &mut Destination,
    clock: &Clock<'_>,
) -> Result<(u64, bool), Failure> {
    let prepared = site.prepare(threads)?;
    let (phase, ready) = (AtomicU8::new(GO_ON), AtomicUsize::new(0));
    thread::scope(|scope| {
        let (phase, ready) = (&phase, &ready);
        let spawn = |prepared: Box<dyn PreparedWorker>| {
            scope.spawn(move || {
                let mut end = Ok(0);
                prepared.work(&mut |worker| {
                    ready.fetch_add(1, Ordering::Relaxed);
                    end = work(worker, phase);
                });
                end
            })
        };
        let workers: Vec<_> = prepared.into_iter().map(spawn).collect();
        let begun = OnceCell::<Instant>::new();
        let elapsed = || begun.get().map_or(Duration::ZERO, Instant::elapsed);
        let mut rounds = 0;
        let mut taken = Ok(0);
        let over =
            || elapsed() >= duration || workers.iter().any(thread::ScopedJoinHandle::is_finished);
        while !over() && destination.checker.violation().is_none() {
            taken = destination.take(site.take_history());
            let Ok(count) = taken else { break };
            if ready.load(Ordering::Relaxed) == threads {
                begun.get_or_init(Instant::now);
            }
            // Workloads that change over time enter their next phase in every round of this loop.
            rounds += 1;
            site.enter_phase(rounds);
            clock.show(elapsed());
            // Waiting threads go on when the checker has caught up.
            phase.store(if count > EVENTS_MAX { WAIT } else { GO_ON }, Ordering::Relaxed);
            if count < EVENTS_MAX && !interrupt::sleep(Duration::from_millis(5)) {
                break;
            }
        }
        let whole = elapsed() >= duration || !interrupt::is_pressed();
        phase.store(STOP, Ordering::Relaxed);
        let mut committed = 0;
        for worker in workers {
            committed += worker.join().unwrap_or_else(|payload| panic::resume_unwind(payload))?;
        }
        taken.map(|_| (committed, whole))
    })
}

/// Runs transactions until the order to stop. Returns the number of commits.
fn work(worker: &mut dyn Worker, phase: &AtomicU8) -> Result<u64, Abort> {
    let mut committed = 0;
    loop {
        match phase.load(Ordering::Relaxed) {
            GO_ON => committed += u64::from(worker.step()?.committed),
            WAIT => thread::sleep(Duration::from_micros(100)),
            _ => return Ok(committed),
        }
    }
}
