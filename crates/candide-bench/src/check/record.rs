//! Recording what transactions do, checked while they go on.

use std::fs::File;
use std::io::BufWriter;
use std::panic;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use candide::history::{Batch, Recorded};
use candide::{Abort, Database, Protocol};
use candide_check::json::{Header, Writer};
use candide_check::{Checker, Event};
use candide_workloads::{Loaded, Loading, Worker, Workload};

use super::Run;
use super::verdict::{Claim, Verdict};
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::{self, Clock};
use crate::registry::Job;
use crate::sink::Sink;

/// What the threads are told.
const GO_ON: u8 = 0;
const WAIT: u8 = 1;
const STOP: u8 = 2;

/// Events at once beyond which the threads have to wait for the checker, so that memory stays bounded.
const EVENTS_MAX: usize = 100_000;

/// One workload under one protocol.
pub(super) struct Recording<'a, W> {
    pub(super) workload: &'a W,
    pub(super) threads: usize,
    pub(super) run: &'a Run<'a>,
}

/// Where a history goes: to the checker, and to a file if one was named.
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

impl<W: Workload> Job for Recording<'_, W> {
    type Output = Result<Verdict, Failure>;

    fn run<P: Protocol>(self, policy: P::Policy) -> Self::Output {
        let Recording { workload, threads, run: &Run { args, seed, ref agenda } } = self;
        workload.validate().map_err(Failure::Usage)?;
        let properties = P::properties(&policy);
        let claim = Claim::of_protocol(properties, args);
        let header = Header {
            protocol: properties.name.to_string(),
            seed,
            text: format!("{} with {threads} threads", workload.name()),
        };
        let file =
            args.history.as_deref().map(|path| Ok::<_, Failure>(Writer::new(Sink::open(path)?.emptied()?, &header)?));
        let mut destination = Destination { checker: Checker::new(claim.of_versions()), file: file.transpose()? };
        let db = Database::<Recorded<P>>::builder().policy(policy).build()?;
        // What is loaded here is small.
        let loaded = workload.load(&db, &Loading { threads, seed, progress: &|_| {}, stopped: &|| false })?;
        let clock = Clock::new(agenda, &format!("recording {} {}", workload.name(), properties.name), args.duration);
        let ended_early = !run_recorded(&db, &loaded, threads, args.duration, &mut destination, &clock)?;
        drop(clock);
        let check = || -> Result<_, candide_workloads::Failure> { loaded.check(db.session()?) };
        let consistency = progress::with_line(agenda, "checking the tables,", None, check)?;
        destination.take(db.take_history())?;
        if let Some(file) = destination.file {
            file.finish()?;
        }
        let title = format!("{}, {threads} threads, seed {seed}", workload.name());
        let verdict = Verdict::of_versions(title, claim, destination.checker.finish(), consistency.failed);
        Ok(verdict.ended(ended_early))
    }
}

/// Runs transactions on some threads while this one takes what they leave to the checker. Gives whether Ctrl-C was not pressed.
fn run_recorded<P: Protocol, L: Loaded<Recorded<P>>>(
    db: &Database<Recorded<P>>,
    loaded: &L,
    threads: usize,
    duration: Duration,
    destination: &mut Destination,
    clock: &Clock,
) -> Result<bool, Failure> {
    let sessions = (0..threads).map(|_| db.session()).collect::<Result<Vec<_>, _>>()?;
    loaded.expect_workers(threads);
    let phase = AtomicU8::new(GO_ON);
    thread::scope(|scope| {
        let phase = &phase;
        let spawn = |(thread, session)| {
            scope.spawn(move || {
                let mut worker = loaded.worker(session, thread);
                loop {
                    match phase.load(Ordering::Relaxed) {
                        GO_ON => drop(worker.step()?),
                        WAIT => thread::sleep(Duration::from_micros(100)),
                        _ => break,
                    }
                }
                loaded.absorb(worker);
                Ok::<_, Abort>(())
            })
        };
        let workers: Vec<_> = sessions.into_iter().enumerate().map(spawn).collect();
        let begun = Instant::now();
        let mut rounds = 0;
        let mut taken = Ok(0);
        let over = || begun.elapsed() >= duration || workers.iter().any(thread::ScopedJoinHandle::is_finished);
        while !over() && destination.checker.violation().is_none() {
            taken = destination.take(db.take_history());
            let Ok(count) = taken else { break };
            // Workloads that change over time do so here all the time.
            rounds += 1;
            loaded.enter_phase(rounds);
            clock.show(begun.elapsed());
            // Whoever has to wait begins again when the checker has caught up.
            phase.store(if count > EVENTS_MAX { WAIT } else { GO_ON }, Ordering::Relaxed);
            if count < EVENTS_MAX && !interrupt::sleep(Duration::from_millis(5)) {
                break;
            }
        }
        let whole = begun.elapsed() >= duration || !interrupt::is_pressed();
        phase.store(STOP, Ordering::Relaxed);
        for worker in workers {
            worker.join().unwrap_or_else(|payload| panic::resume_unwind(payload))?;
        }
        taken.map(|_| whole)
    })
}
