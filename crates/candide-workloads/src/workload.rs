//! The traits and types through which a driver runs any workload under any protocol.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use candide::report::Stats;
use candide::{Abort, Database, Protocol, RunOptions, Session, Tx};
use serde::Serialize;

use crate::replay::Stopped;
use crate::{Causes, Consistency, Failure, Loading, Probe, THETA_MAX};

/// A workload before any table exists: knobs from which a database of any protocol can be filled.
///
/// The serialized workload is the set of parameters that a report shows together with the
/// measurements.
pub trait Workload: Serialize + Sync {
    /// This workload with its tables filled.
    type Loaded<P: Protocol>: Loaded<P>;

    /// The names of the transaction types, in the order of [`Step::kind`].
    const KINDS: &'static [&'static str];

    /// The names of the tables, in the order in which [`Workload::load`] creates them.
    const TABLES: &'static [&'static str];

    /// Returns the name under which results are reported.
    fn name(&self) -> String;

    /// Returns the number of keys that will be reported to [`Loading::progress`].
    fn keys(&self) -> u64;

    /// Returns an estimate of the memory that the workload takes with these knobs.
    fn size(&self) -> Size;

    /// Describes, for the report, what the check leaves out with these knobs; `None` if the check
    /// leaves nothing out.
    fn unchecked(&self) -> Option<&'static str>;

    /// Describes, for the report, the differences between the workload with these knobs and the
    /// standard of the same name.
    fn differences(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// Returns whether the workload's tables grow while it runs. If they do, each run should begin
    /// with new tables, so that all runs begin with tables of one size.
    fn grows(&self) -> bool {
        false
    }

    /// Returns how the workload changes while it runs; `None` if it does not change.
    fn timeline(&self) -> Option<Timeline> {
        None
    }

    /// Returns the table and key of the row that the transactions access most, such as
    /// `usertable[0]`. `None` if, with these knobs, many rows are accessed equally often. If there
    /// is such a row, the [workers](Worker::hottest) can read it.
    fn hottest(&self) -> Option<&'static str> {
        None
    }

    /// Checks the knobs. The error names the knob that is out of range and the values it may have.
    fn validate(&self) -> Result<(), String>;

    /// Creates the tables and fills them. The knobs must be valid.
    fn load<P: Protocol>(
        &self,
        db: &Database<P>,
        loading: &Loading<'_>,
    ) -> Result<Self::Loaded<P>, Failure>;
}

/// A workload whose tables are filled, and an account of the transactions committed since.
///
/// Any number of rounds of workers can follow one another. The check covers all of them together.
pub trait Loaded<P: Protocol>: Send + Sync {
    /// Runs transactions on one thread.
    type Worker: Worker;

    /// Announces the number of workers of the next round, for workloads that divide their data
    /// among their workers.
    fn expect_workers(&self, _workers: usize) {}

    /// Begins a phase of the workload's [`Timeline`], numbered from 0. Before the first call, the
    /// workload is in phase 0. Transactions that are running may still end as in the previous
    /// phase.
    fn enter_phase(&self, _phase: usize) {}

    /// Makes a worker that repeats the inputs of thread number `thread`. No two workers with one
    /// number may be alive at the same time.
    fn worker(&self, session: Session<P>, thread: usize) -> Self::Worker {
        self.worker_unless(session, thread, &|| false)
    }

    /// Makes the same worker as [`Loaded::worker`], but stops drawing inputs once `stopped` returns
    /// `true`. The worker then has fewer inputs, but at least those of one transaction.
    fn worker_unless(
        &self,
        session: Session<P>,
        thread: usize,
        stopped: Stopped<'_>,
    ) -> Self::Worker;

    /// Adds the commits of `worker` to the account that [`Loaded::check`] compares with the tables.
    fn absorb(&self, worker: Self::Worker);

    /// Returns how many transactions per second the same program commits without transactions, on
    /// one thread; `None` if there is no such program, or if `stopped` has returned `true`. If that
    /// depends on how many have been committed before, it is measured from when the last
    /// `committed` ones of those entered into the account began.
    fn sequential_tps(&self, _committed: u64, _stopped: Stopped<'_>) -> Option<f64> {
        None
    }

    /// Compares the tables with the account. No worker may be alive.
    fn check(&self, session: Session<P>) -> Result<Consistency, Failure>;
}

/// The transactions of one thread.
pub trait Worker {
    /// Runs the next transaction until it has committed or rolled itself back. An error means that
    /// the workload cannot continue: by design, no transaction here fails for a missing key or for
    /// lack of memory.
    fn step(&mut self) -> Result<Step, Abort>;

    /// Returns the session's counters, of which the aborts by reason are of interest.
    fn stats(&self) -> Stats;

    /// Returns a probe of the workload's [hottest row](Workload::hottest); `None` if the worker
    /// cannot read such a row.
    fn hottest(&mut self) -> Option<Box<dyn Probe + '_>> {
        None
    }

    /// Returns the causes of the attempts aborted since the last call. `None` if causes were not
    /// requested, or if the workload cannot find them out.
    fn take_causes(&mut self) -> Option<Causes> {
        None
    }
}

/// The end of one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The transaction's type, an index into [`Workload::KINDS`].
    pub kind: usize,
    /// Whether the transaction committed; otherwise it rolled itself back.
    pub committed: bool,
    /// The number of attempts that conflicts aborted before the final one.
    pub retries: u64,
}

/// The approximate memory that a workload takes, without the rows that it inserts while it runs.
/// Sums that overflow saturate at the largest number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Bytes of the filled tables.
    pub tables: u64,
    /// The name of the entries that determine the size of the tables, such as `rows`. With fewer of
    /// these entries, the tables take less memory.
    pub of: &'static str,
    /// Bytes of the inputs that are drawn for each thread.
    pub inputs: u64,
    /// Bytes of the rows that one thread inserts in a second on a fast machine, under a protocol
    /// that keeps one version.
    pub growth: u64,
}

impl Size {
    /// Returns the size of `count` entries named `of` with `bytes` bytes each, without inputs.
    pub(crate) fn of(count: u64, of: &'static str, bytes: u64) -> Size {
        Size { tables: count.saturating_mul(bytes), of, inputs: 0, growth: 0 }
    }

    /// Adds `bytes` bytes to the tables.
    pub(crate) fn and(self, bytes: u64) -> Size {
        Size { tables: self.tables.saturating_add(bytes), ..self }
    }

    /// Sets the growth, in bytes per second and thread.
    pub(crate) fn growing_by(self, growth: u64) -> Size {
        Size { growth, ..self }
    }

    /// Adds `count` inputs of type `T` for each thread.
    pub(crate) fn with_inputs<T>(self, count: usize) -> Size {
        Size {
            inputs: self
                .inputs
                .saturating_add((count as u64).saturating_mul(size_of::<T>() as u64)),
            ..self
        }
    }
}

/// The phases of a workload that changes while it runs, and the slices in which results are
/// reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeline {
    /// The names of the phases. The phases follow one another in a cycle.
    pub phases: &'static [&'static str],
    /// The duration of each phase.
    pub phase: Duration,
    /// The duration of one slice of a phase. Throughput is reported per slice.
    pub slice: Duration,
}

/// Checks one knob. If `holds` is `false`, the knob is out of range, and `message` returns the
/// error.
pub(crate) fn require(holds: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(message()) }
}

/// Checks that the knob named `what` is in its range.
pub(crate) fn require_range<T: PartialOrd + fmt::Display>(
    what: &str,
    range: RangeInclusive<T>,
    value: T,
) -> Result<(), String> {
    require(range.contains(&value), || {
        format!("{what} must be from {} to {}, not {value}", range.start(), range.end())
    })
}

/// Checks that the share of transactions that only read is in range.
pub(crate) fn require_share(read_only: f64) -> Result<(), String> {
    require_range("the share of read-only transactions", 0.0..=1.0, read_only)
}

/// Checks that a skew is in range.
pub(crate) fn require_theta(theta: f64) -> Result<(), String> {
    require((0.0..=THETA_MAX).contains(&theta), || {
        format!("theta must be from 0 (uniform) to {THETA_MAX}, not {theta}")
    })
}

/// The largest number of transactions that are generated for a thread. Their inputs take gigabytes.
const TRANSACTIONS_MAX: usize = 100_000_000;

/// Checks that the number of pregenerated transactions is in range.
pub(crate) fn require_transactions(transactions: usize) -> Result<(), String> {
    require((1..=TRANSACTIONS_MAX).contains(&transactions), || {
        "at least one transaction must be generated per thread, and at most a hundred million"
            .to_string()
    })
}

/// Checks that at least one of the weights of `kinds` is more than zero, so that a kind can be
/// drawn.
pub(crate) fn require_weights(weights: &[u32], kinds: &[&str]) -> Result<(), String> {
    require(weights.iter().any(|&weight| weight > 0), || {
        format!("at least one weight must be more than 0; they are for {}", kinds.join(", "))
    })
}

/// Locks an account of the workers' commits.
pub(crate) fn lock<T>(account: &Mutex<T>) -> MutexGuard<'_, T> {
    account.lock().expect("no thread panics while counting")
}

/// Runs a transaction. Returns its result and the number of attempts before the last one.
pub(crate) fn run_counted<T, E: From<Abort>, P: Protocol>(
    session: &mut Session<P>,
    body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
) -> (Result<T, E>, u64) {
    run_as(session, RunOptions::new(), body)
}

/// Runs a transaction that only reads. Returns the same as [`run_counted`].
pub(crate) fn look_counted<T, E: From<Abort>, P: Protocol>(
    session: &mut Session<P>,
    body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
) -> (Result<T, E>, u64) {
    run_as(session, RunOptions::new().read_only(), body)
}

/// Runs a transaction with `options`. Returns the same as [`run_counted`].
pub(crate) fn run_as<T, E: From<Abort>, P: Protocol>(
    session: &mut Session<P>,
    options: RunOptions<'_>,
    mut body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
) -> (Result<T, E>, u64) {
    let mut attempts = 0;
    let end = session.with(options).try_run(|tx| {
        attempts += 1;
        body(tx)
    });
    (end, attempts - 1)
}
