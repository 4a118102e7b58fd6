//! The crash laboratory of the command: random scripts on simulated disks, and every state that a
//! crash could leave; and real processes that are killed.

mod engine;
pub mod kill;
mod ledger;

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use candide_log_testing::laboratory::{self, Counts, Plan, ReplayError};

use crate::failure::Failure;
use crate::progress::{self, Agenda};
use crate::registry::Choices;
use crate::results::{Finding, grouped};
use crate::{interrupt, output};
use engine::Engine;

pub use candide_log_testing::laboratory::{Place, PlaceError};

/// The end of a run.
#[derive(Debug, Clone, Copy)]
pub enum Bound {
    /// The run ends when it has taken this time.
    Time(Duration),
    /// The run ends when it has judged this number of states.
    States(u64),
}

/// The order for a run of the laboratory.
#[derive(Debug)]
pub struct Order {
    /// The end of the run. Scripts that have begun are judged to their end.
    pub bound: Bound,
    /// The first seed; `None` if the ledger determines it.
    pub seed: Option<u64>,
    /// The file to which the run is added.
    pub ledger: Option<PathBuf>,
    /// The number of threads.
    pub threads: usize,
    /// The share of the states, from 0 to 1, that the whole engine opens.
    pub engine_share: f64,
    /// The share of the states, from 0 to 1, in which crashes of the recovery are judged, too.
    pub recovery_share: f64,
    /// The protocols under which the engine opens states, in turn.
    pub protocols: Choices,
}

/// The largest number of findings that are printed.
const FINDINGS_MAX: usize = 10;

/// The data that the threads of a run share.
struct Run<'a> {
    plan: &'a Plan,
    engine: &'a Engine,
    next: AtomicU64,
    states: AtomicU64,
    is_over: AtomicBool,
    total: Mutex<Total>,
}

/// The sum of all threads.
#[derive(Default)]
struct Total {
    counts: Counts,
    findings: Vec<laboratory::Finding>,
    /// The time that the threads ran; `None` if the system does not report it.
    cpu: Option<Duration>,
}

/// Judges the states of one script after the other, and prints the findings. Returns
/// [`Finding::Bad`] if a state was not as it must be.
///
/// # Errors
/// The ledger cannot be read or written.
pub fn run(order: &Order) -> Result<Finding, Failure> {
    let first = match (order.seed, &order.ledger) {
        (Some(seed), _) => seed,
        (None, Some(path)) => ledger::next_seed(path)?,
        (None, None) => 0,
    };
    interrupt::listen()?;
    let engine = Engine::new(order.protocols.clone());
    let plan = Plan {
        engine_share: order.engine_share,
        recovery_share: order.recovery_share,
        ..engine.plan().map_err(Failure::Run)?
    };
    let run = Run {
        plan: &plan,
        engine: &engine,
        next: AtomicU64::new(first),
        states: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
        total: Mutex::default(),
    };
    let begun = Instant::now();
    let (units, of_bound) = match order.bound {
        Bound::Time(time) => (time.as_millis() as u64, "judging crashes, ms"),
        Bound::States(states) => (states, "judging crashes, states"),
    };
    progress::with_bar(&Agenda::new(1, Duration::ZERO), of_bound, units, false, |done| {
        thread::scope(|scope| {
            for _ in 0..order.threads {
                scope.spawn(|| run.judge());
            }
            while !run.is_over.load(Ordering::Relaxed) {
                let reached = match order.bound {
                    Bound::Time(_) => begun.elapsed().as_millis() as u64,
                    Bound::States(_) => run.states.load(Ordering::Relaxed),
                };
                done.store(reached.min(units), Ordering::Relaxed);
                if reached >= units || !interrupt::sleep(Duration::from_millis(5)) {
                    run.is_over.store(true, Ordering::Relaxed);
                }
            }
        });
    });
    let (took, next) = (begun.elapsed(), run.next.into_inner());
    let total = run.total.into_inner().expect("no thread panics with it");
    let states = total.counts.states();
    let per_second = states as f64 / took.as_secs_f64();
    if let Some(path) = &order.ledger {
        let entry = ledger::Entry {
            first_seed: first,
            last_seed: next.saturating_sub(1).max(first),
            states,
            failures: total.findings.len() as u64,
            states_per_second: per_second,
        };
        ledger::append(path, &entry)?;
    }
    output::print(|out| total.print(out, first, next, took))?;
    for finding in total.findings.iter().take(FINDINGS_MAX) {
        output::say(&format!("FAILED: {finding}"));
    }
    Ok(if total.findings.is_empty() { Finding::Good } else { Finding::Bad })
}

impl Run<'_> {
    /// Judges one script after the other, in one thread.
    fn judge(&self) {
        let mut counts = Counts::default();
        while !self.is_over.load(Ordering::Relaxed) {
            let seed = self.next.fetch_add(1, Ordering::Relaxed);
            match laboratory::examine(seed, self.plan, Some(self.engine)) {
                Ok(judged) => {
                    counts += judged;
                    self.states.fetch_add(judged.states(), Ordering::Relaxed);
                }
                Err(finding) => self.total().findings.push(*finding),
            }
        }
        let mut total = self.total();
        total.counts += counts;
        if let Some(cpu) = cpu_time() {
            *total.cpu.get_or_insert_default() += cpu;
        }
    }

    fn total(&self) -> std::sync::MutexGuard<'_, Total> {
        self.total.lock().expect("no thread panics with it")
    }
}

impl Total {
    fn print(
        &self,
        out: &mut dyn Write,
        first: u64,
        next: u64,
        took: Duration,
    ) -> std::io::Result<()> {
        let Total { counts, findings, cpu } = self;
        let number = |count: u64| grouped(count as f64);
        let states = counts.states();
        let rate = states as f64 / took.as_secs_f64();
        writeln!(
            out,
            "{} states of {} scripts, seeds {first} to {}: {} failed",
            number(states),
            number(counts.scripts + findings.len() as u64),
            next.saturating_sub(1).max(first),
            findings.len()
        )?;
        writeln!(out, "  after a loss of power       {}", number(counts.crashes))?;
        writeln!(out, "  after the end of a process  {}", number(counts.kills))?;
        writeln!(out, "  after a crash in recovery   {}", number(counts.recoveries))?;
        writeln!(out, "  opened by the engine, too   {}", number(counts.engines))?;
        write!(out, "{:.1} s, {} states/s", took.as_secs_f64(), grouped(rate))?;
        if let Some(cpu) = cpu.filter(|cpu| !cpu.is_zero()) {
            let per_core = states as f64 / cpu.as_secs_f64();
            write!(out, ", {} states for each second of a core", grouped(per_core))?;
        }
        writeln!(out)
    }
}

/// Returns the time for which this thread has run; `None` if the system does not report it.
fn cpu_time() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// Runs the script of a seed again, and judges one of its states, or all. Prints what happened.
///
/// # Errors
/// The script has no state of that name.
pub fn replay(seed: u64, place: Option<Place>, protocols: &Choices) -> Result<Finding, Failure> {
    let engine = Engine::new(protocols.clone());
    let plan = engine.plan().map_err(Failure::Run)?;
    let judged = match place {
        None => laboratory::examine(seed, &plan, Some(&engine))
            .map(|counts| format!("{} states\n", grouped(counts.states() as f64))),
        Some(place) => match laboratory::replay(seed, place, &plan, Some(&engine)) {
            Ok(story) => Ok(story),
            Err(ReplayError::Found(finding)) => Err(finding),
            Err(ReplayError::NoState { last }) => {
                return Err(Failure::Usage(format!(
                    "the script {seed} has no state {place}: its disk does {last} operations"
                )));
            }
        },
    };
    match judged {
        Ok(story) => {
            output::print(|out| writeln!(out, "{story}is as it must be"))?;
            Ok(Finding::Good)
        }
        Err(finding) => {
            output::say(&format!("FAILED: {finding}"));
            Ok(Finding::Bad)
        }
    }
}
