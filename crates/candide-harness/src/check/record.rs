//! Recording the operations of transactions, which a checker judges while the transactions run.

use std::io::Write;
use std::panic;
use std::thread;
use std::time::{Duration, Instant};

use candide::Abort;
use candide::history::Batch;
use candide_check::json::{Header, Writer};
use candide_check::{Checker, Event};
use candide_workloads::{Loading, Worker};

use super::Rules;
use super::allowance::Allowance;
use super::recordable::{Recordable, RecordedSite};
use super::verdict::Verdict;
use crate::any_workload::{FillError, PreparedWorker};
use crate::failure::Failure;
use crate::interrupt;
use crate::output::Sink;
use crate::progress::{self, Clock};
use crate::registry::Choice;
use crate::results::Locks;
use crate::run::Barrier;

/// The number of reads, writes and scans that threads record before the checker takes them, on the
/// average of the run: some 100 MB.
const ACCESSES_MAX: u64 = 1_000_000;

/// The number of transactions that run at first. The number may double each time that the checker
/// has caught up, until all threads run and the checker takes as much as it can.
const TRANSACTIONS_FIRST: u64 = 16;

/// The destinations of a history: the checker, and a file; `None` if no file was named.
struct Destination {
    checker: Checker,
    file: Option<Writer<Box<dyn Write>, Event>>,
}

impl Destination {
    /// Takes a part of the history. Returns the number of its accesses; an event counts as one
    /// more.
    fn take(&mut self, batch: Batch) -> Result<u64, Failure> {
        let mut accesses = 0;
        for event in &batch.events {
            if let Some(file) = &mut self.file {
                file.write(event)?;
            }
            accesses += 1 + match event {
                Event::Transaction(it) => it.reads.len() + it.scans.len() + it.writes.len(),
                Event::Forgotten(_) => 0,
            } as u64;
            self.checker.feed(event);
        }
        self.checker.advance(batch.complete_before);
        Ok(accesses)
    }
}

/// Runs a workload under a protocol on `threads` threads, and judges its history and its tables.
pub fn record(
    workload: &dyn Recordable,
    protocol: Choice,
    threads: usize,
    rules: &Rules<'_>,
) -> Result<Verdict, Failure> {
    let &Rules { options, seed, duration, ref agenda, .. } = rules;
    workload.validate().map_err(Failure::Usage)?;
    let claim = rules.claim.with_promises(protocol, options);
    let (name, protocol_name) = (workload.name(), protocol.name());
    let header = Header {
        protocol: protocol_name.to_string(),
        seed,
        text: format!("{name} with {threads} threads"),
    };
    let [history] = Sink::open_all([("--history", rules.history)])?;
    let loading = Loading { threads, seed, progress: &|_| {}, stopped: &interrupt::is_pressed };
    let site = match workload.fill(protocol, options, &loading) {
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
/// `destination`. The threads begin, and the duration, when all threads have drawn their inputs.
/// Returns the number of commits, and `false` if Ctrl-C ended the run early.
fn run_recorded(
    site: &dyn RecordedSite,
    threads: usize,
    duration: Duration,
    destination: &mut Destination,
    clock: &Clock<'_>,
) -> Result<(u64, bool), Failure> {
    // The loading.
    destination.take(site.take_history())?;
    let prepared = site.prepare(threads)?;
    let (allowance, meeting) = (Allowance::new(), Barrier::of(threads));
    thread::scope(|scope| {
        let (allowance, meeting) = (&allowance, &meeting);
        let spawn = |prepared: Box<dyn PreparedWorker>| {
            scope.spawn(move || {
                let member = meeting.member();
                let mut end = Ok(0);
                prepared.work(&mut |worker| {
                    member.wait();
                    end = work(worker, allowance);
                });
                end
            })
        };
        let workers: Vec<_> = prepared.into_iter().map(spawn).collect();
        meeting.gather(|| ());
        let mut allowed = TRANSACTIONS_FIRST;
        allowance.renew(allowed as usize);
        let begun = Instant::now();
        let (mut rounds, mut accesses) = (0, 0);
        let mut taken = Ok(0);
        let over = || {
            begun.elapsed() >= duration || workers.iter().any(thread::ScopedJoinHandle::is_finished)
        };
        while !over() && destination.checker.violation().is_none() {
            taken = destination.take(site.take_history());
            let Ok(count) = taken else { break };
            // Workloads that change over time enter their next phase in every round of this loop.
            rounds += 1;
            site.enter_phase(rounds);
            clock.show(begun.elapsed());
            accesses += count;
            let of_each = accesses.div_ceil(allowance.ended().max(1) as u64).max(1);
            allowed = (2 * allowed).min(ACCESSES_MAX / of_each).max(1);
            allowance.renew(allowed as usize);
            // If threads wait for the checker, the checker takes their recorded transactions at
            // once.
            let goes_on = match allowance.is_any_left() || count == 0 {
                true => interrupt::sleep(Duration::from_millis(5)),
                false => !interrupt::is_pressed(),
            };
            if !goes_on {
                break;
            }
        }
        let whole = begun.elapsed() >= duration || !interrupt::is_pressed();
        allowance.end();
        let mut committed = 0;
        for worker in workers {
            committed += worker.join().unwrap_or_else(|payload| panic::resume_unwind(payload))?;
        }
        taken.map(|_| (committed, whole))
    })
}

/// Runs transactions until the run has ended. Returns the number of commits.
fn work(worker: &mut dyn Worker, allowance: &Allowance) -> Result<u64, Abort> {
    let mut committed = 0;
    allowance.spend(|| {
        committed += u64::from(worker.step()?.committed);
        Ok::<_, Abort>(())
    })?;
    Ok(committed)
}
