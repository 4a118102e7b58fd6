//! What a driver needs to know of a workload, whichever it is and whichever protocol runs it.

use std::fmt;
use std::time::Duration;

use candide::{Abort, Database, Error, Protocol, RunOptions, Session, Stats, Tx};
use serde::Serialize;

use crate::replay::Stopped;
use crate::{Causes, Consistency, Loading, Probe, THETA_MAX};

/// A workload before any table exists: knobs that can fill a database of any protocol.
///
/// Serializing it gives the parameters to report beside the measurements.
pub trait Workload: Serialize + Sync {
    /// This workload with its tables filled.
    type Loaded<P: Protocol>: Loaded<P>;

    /// The names of the transaction types, in the order of [`Step::kind`].
    const KINDS: &'static [&'static str];

    /// The name to report results under.
    fn name(&self) -> String;

    /// Returns the number of keys that will be reported to [`Loading::progress`].
    fn keys(&self) -> u64;

    /// Returns about how much memory it takes with these knobs.
    fn size(&self) -> Size;

    /// Returns what the check leaves out with these knobs, for a report to state.
    fn unchecked(&self) -> Option<&'static str>;

    /// In what these knobs make it differ from the standard it is named after, for a report to
    /// admit.
    fn differences(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// Returns whether its tables grow while it runs: then each run should begin with new ones, as
    /// large as those of the others.
    fn grows(&self) -> bool {
        false
    }

    /// Returns how the workload changes while it runs, if it does.
    fn timeline(&self) -> Option<Timeline> {
        None
    }

    /// The row that its transactions want most, by its table and key, such as `usertable[0]`;
    /// `None` if with these knobs none stands out: many rows are wanted alike. If there is one, its
    /// [workers](Worker::hottest) can look at it.
    fn hottest(&self) -> Option<&'static str> {
        None
    }

    /// Says which knob is out of range and which values it may have.
    fn validate(&self) -> Result<(), String>;

    /// Creates the tables and fills them. The knobs must be valid.
    fn load<P: Protocol>(
        &self,
        db: &Database<P>,
        loading: &Loading<'_>,
    ) -> Result<Self::Loaded<P>, Failure>;
}

/// A workload whose tables are filled, and the account of what was committed to them since.
///
/// Any number of rounds of workers can follow one another; the check is against all of them
/// together.
pub trait Loaded<P: Protocol>: Send + Sync {
    /// Runs transactions on one thread.
    type Worker: Worker;

    /// Says how many workers the next round will have, for workloads that share out their data
    /// among them.
    fn expect_workers(&self, _workers: usize) {}

    /// Begins a phase of the workload's [`Timeline`], counted from 0; until then it is in that one.
    /// Transactions that are running may end as they began.
    fn enter_phase(&self, _phase: usize) {}

    /// Makes a worker that repeats the inputs of thread number `thread`. No two of one number may
    /// be alive at a time.
    fn worker(&self, session: Session<P>, thread: usize) -> Self::Worker {
        self.worker_unless(session, thread, &|| false)
    }

    /// Makes the same worker, but ends the drawing of inputs once `stopped` says so: then they are
    /// fewer, those of one transaction at least.
    fn worker_unless(
        &self,
        session: Session<P>,
        thread: usize,
        stopped: Stopped<'_>,
    ) -> Self::Worker;

    /// Adds what `worker` committed to the account that [`Loaded::check`] settles.
    fn absorb(&self, worker: Self::Worker);

    /// Compares the tables with the account. No worker may be alive.
    fn check(&self, session: Session<P>) -> Result<Consistency, Failure>;
}

/// The transactions of one thread.
pub trait Worker {
    /// Runs the next transaction until it has committed or rolled itself back. An error means that
    /// the workload cannot go on: no transaction here meets a missing key or runs out of memory by
    /// design.
    fn step(&mut self) -> Result<Step, Abort>;

    /// The session's counters, of which the aborts by reason are of interest.
    fn stats(&self) -> Stats;

    /// A look at the workload's [hottest row](Workload::hottest); `None` if no row of it can be.
    fn hottest(&mut self) -> Option<Box<dyn Probe + '_>> {
        None
    }

    /// Why attempts were aborted since the last call; `None` if the workload has not been told to
    /// find out, or cannot.
    fn take_causes(&mut self) -> Option<Causes> {
        None
    }
}

/// How one transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Its type, an index into [`Workload::KINDS`].
    pub kind: usize,
    /// Whether it committed; if not, it rolled itself back.
    pub committed: bool,
    /// How many attempts conflicts cost it before the one that counted.
    pub retries: u64,
}

/// About how much memory a workload takes, without what it inserts while it runs. Sums that are too
/// large for a number are the largest number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Bytes of its tables when they are filled.
    pub tables: u64,
    /// What tables hold, fewer of which take less memory, such as `rows`.
    pub of: &'static str,
    /// Bytes of the inputs that are drawn for each thread.
    pub inputs: u64,
}

impl Size {
    /// Returns that of `count` things called `of`, of so many `bytes` each, and of no inputs.
    pub(crate) fn of(count: u64, of: &'static str, bytes: u64) -> Size {
        Size { tables: count.saturating_mul(bytes), of, inputs: 0 }
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

/// How a workload changes while it runs, and how finely to report what comes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeline {
    /// What the phases are called, which follow one another over and over.
    pub phases: &'static [&'static str],
    /// How long each of them lasts.
    pub phase: Duration,
    /// How long the slices of a phase are whose throughput is reported.
    pub slice: Duration,
}

/// One knob's range: whether the knob is in it, and what to say if not.
pub(crate) fn require(holds: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(message()) }
}

/// The range of a skew.
pub(crate) fn require_theta(theta: f64) -> Result<(), String> {
    require((0.0..=THETA_MAX).contains(&theta), || {
        format!("theta must be from 0 (uniform) to {THETA_MAX}, not {theta}")
    })
}

/// The most transactions that are generated for a thread: gigabytes of them.
const TRANSACTIONS_MAX: usize = 100_000_000;

/// The range of the number of pregenerated transactions.
pub(crate) fn require_transactions(transactions: usize) -> Result<(), String> {
    require((1..=TRANSACTIONS_MAX).contains(&transactions), || {
        "at least one transaction must be generated per thread, and at most a hundred million"
            .to_string()
    })
}

/// That something can be drawn by the weights of `kinds`.
pub(crate) fn require_weights(weights: &[u32], kinds: &[&str]) -> Result<(), String> {
    require(weights.iter().any(|&weight| weight > 0), || {
        format!("at least one weight must be more than 0; they are for {}", kinds.join(", "))
    })
}

/// Runs a transaction, and counts the attempts that were in vain.
pub(crate) fn run_counted<T, E: From<Abort>, P: Protocol>(
    session: &mut Session<P>,
    body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
) -> (Result<T, E>, u64) {
    run_as(session, RunOptions::new(), body)
}

/// As [`run_counted`], for a transaction that only reads.
pub(crate) fn look_counted<T, E: From<Abort>, P: Protocol>(
    session: &mut Session<P>,
    body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
) -> (Result<T, E>, u64) {
    run_as(session, RunOptions::new().read_only(), body)
}

/// As [`run_counted`], in a given way.
pub(crate) fn run_as<T, E: From<Abort>, P: Protocol>(
    session: &mut Session<P>,
    options: RunOptions<'_>,
    mut body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
) -> (Result<T, E>, u64) {
    let mut attempts = 0;
    let end = session.run_with(options, |tx| {
        attempts += 1;
        body(tx)
    });
    (end, attempts - 1)
}

/// Why a workload could not be loaded or checked.
#[derive(Debug)]
pub enum Failure {
    /// The database refused a table or a session.
    Setup(Error),
    /// A transaction met an outcome that loading and checking do not expect.
    Transaction(Abort),
    /// Loading was told to stop.
    Stopped,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Setup(error)
    }
}

impl From<Abort> for Failure {
    fn from(abort: Abort) -> Self {
        Failure::Transaction(abort)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Setup(error) => write!(f, "the database refused: {error}"),
            Failure::Transaction(abort) => write!(f, "a transaction failed: {abort}"),
            Failure::Stopped => f.write_str("loading was stopped"),
        }
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Failure::Setup(error) => Some(error),
            Failure::Transaction(abort) => Some(abort),
            Failure::Stopped => None,
        }
    }
}
