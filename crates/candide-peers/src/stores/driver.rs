//! A peer under measurement, with its type erased; and the code of its measurement.

use std::marker::PhantomData;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use candide_harness::CoreShare;
use candide_harness::results::least_share;
use candide_workloads::stream;

use super::about::About;
use super::versions::version_of;
use super::workloads::{Skew, SmallBank, Transfer, Workload, Ycsb, examine};
use super::{Failure, Peer, Session, Size, Store};
use crate::threads::on_threads;

/// A peer under measurement.
pub(crate) trait Contender {
    fn about(&self) -> About;

    /// Opens a store, fills it, runs transactions on it, and checks the rows that the transactions
    /// have left.
    fn measure(&self, job: &Job, turn: Turn) -> Result<Sample, Failure>;
}

/// Returns a contender that opens stores of peer `P`.
pub(crate) fn of<P: Peer>() -> Box<dyn Contender> {
    Box::new(Of::<P>(PhantomData))
}

struct Of<P>(PhantomData<P>);

impl<P: Peer> Contender for Of<P> {
    fn about(&self) -> About {
        About {
            name: P::NAME,
            role: P::ROLE,
            crate_name: P::CRATE,
            version: P::CRATE.and_then(version_of),
            usage: P::USE,
            threads_max: P::THREADS_MAX,
        }
    }

    fn measure(&self, job: &Job, turn: Turn) -> Result<Sample, Failure> {
        match job {
            Job::Transfer(drawn) => measure::<P, _>(drawn, turn),
            Job::SmallBank(drawn) => measure::<P, _>(drawn, turn),
            Job::Ycsb(drawn) => measure::<P, _>(drawn, turn),
            Job::Skew(drawn) => measure::<P, _>(drawn, turn),
        }
    }
}

/// The parameters of a measurement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    /// The number of threads.
    pub(crate) threads: usize,
    /// The length of the measurement. A warm-up of a fifth of this time precedes it.
    pub(crate) duration: Duration,
    /// The number of the run. The number determines the place in the input at which the run begins.
    pub(crate) run: usize,
}

/// The result of one turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    /// The number of committed transactions per second of all threads together.
    pub(crate) per_second: f64,
    pub(crate) committed: u64,
    pub(crate) retries: u64,
    /// The least share of a core that a thread had; `None` if the system does not report it.
    pub(crate) core_share: Option<f64>,
}

/// A workload with its inputs.
pub(crate) enum Job {
    Transfer(Drawn<Transfer>),
    SmallBank(Drawn<SmallBank>),
    Ycsb(Drawn<Ycsb>),
    Skew(Drawn<Skew>),
}

impl Job {
    /// Returns the workload's name.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Job::Transfer(drawn) => drawn.workload.name(),
            Job::SmallBank(drawn) => drawn.workload.name(),
            Job::Ycsb(drawn) => drawn.workload.name(),
            Job::Skew(drawn) => drawn.workload.name(),
        }
    }

    /// Returns the number of rows in each table.
    pub(crate) fn rows(&self) -> u64 {
        match self {
            Job::Transfer(drawn) => drawn.workload.rows(),
            Job::SmallBank(drawn) => drawn.workload.rows(),
            Job::Ycsb(drawn) => drawn.workload.rows(),
            Job::Skew(drawn) => drawn.workload.rows(),
        }
    }
}

/// The parameters for drawing inputs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lots {
    pub(crate) threads: usize,
    /// The number of transactions that are drawn for each thread. The thread runs them in a cycle.
    pub(crate) each: usize,
    pub(crate) seed: u64,
}

/// The drawn requests of each thread.
pub(crate) struct Drawn<W: Workload> {
    workload: W,
    requests: Vec<Vec<W::Request>>,
}

/// The number of transactions between two readings of the clock.
const STRIDE: usize = 16;

impl<W: Workload> Drawn<W> {
    pub(crate) fn new(workload: W, lots: Lots) -> Drawn<W> {
        let draw = |thread| {
            let mut rng = stream(lots.seed, thread as u64);
            (0..lots.each).map(|_| workload.draw(&mut rng)).collect()
        };
        let requests = (0..lots.threads).map(draw).collect();
        Drawn { workload, requests }
    }

    pub(crate) fn workload(&self) -> &W {
        &self.workload
    }

    /// Returns the requests of a thread.
    pub(crate) fn requests(&self, thread: usize) -> &[W::Request] {
        &self.requests[thread]
    }
}

/// The work of one thread.
#[derive(Default)]
struct Tally {
    committed: u64,
    retries: u64,
    /// The growth of the sum over all rows that the thread's transactions caused.
    growth: i128,
}

fn measure<P: Peer, W: Workload>(drawn: &Drawn<W>, turn: Turn) -> Result<Sample, Failure> {
    let workload = &drawn.workload;
    let mut store = P::Store::<W::Value>::open(Size { tables: W::TABLES, rows: workload.rows() })?;
    for table in 0..W::TABLES {
        store.load(table, (0..workload.rows()).map(|key| (key, workload.initial(table, key))))?;
    }
    let store = &store;
    let shares = on_threads(turn.threads, |thread, start| {
        let session = store.session();
        work(drawn, session, thread, turn, start)
    });
    let mut total = Sample { per_second: 0.0, committed: 0, retries: 0, core_share: None };
    let mut growth = 0;
    for share in shares {
        let (sample, grown) = share?;
        total.per_second += sample.per_second;
        total.committed += sample.committed;
        total.retries += sample.retries;
        total.core_share = least_share(total.core_share, sample.core_share);
        growth += grown;
    }
    examine(workload, &mut store.session()?, growth)?;
    Ok(total)
}

/// Runs one thread's part. Returns the thread's work in the measured time, and the growth of the
/// sum over all rows that the thread caused, including its warm-up.
fn work<W: Workload>(
    drawn: &Drawn<W>,
    session: Result<impl Session<W::Value>, Failure>,
    thread: usize,
    turn: Turn,
    start: &Barrier,
) -> Result<(Sample, i128), Failure> {
    let requests = &drawn.requests[thread];
    let mut number = turn.run.wrapping_mul(0x9e37_79b9) % requests.len();
    let mut spend = |session: &mut _, duration| -> Result<(Tally, Duration), Failure> {
        let begun = Instant::now();
        let mut tally = Tally::default();
        loop {
            for _ in 0..STRIDE {
                let done = drawn.workload.carry_out(&requests[number], session)?;
                number = if number + 1 == requests.len() { 0 } else { number + 1 };
                tally.retries += done.retries;
                tally.growth += i128::from(done.output);
            }
            tally.committed += STRIDE as u64;
            let elapsed = begun.elapsed();
            if elapsed >= duration {
                return Ok((tally, elapsed));
            }
        }
    };
    let warm =
        session.and_then(|mut session| Ok((spend(&mut session, turn.duration / 5)?, session)));
    // A thread that fails still waits at the barrier, since the other threads wait there for it.
    start.wait();
    let ((before, _), mut session) = warm?;
    let core = CoreShare::begin();
    let (tally, elapsed) = spend(&mut session, turn.duration)?;
    let core_share = core.end();
    let per_second = tally.committed as f64 / elapsed.as_secs_f64();
    let Tally { committed, retries, .. } = tally;
    let sample = Sample { per_second, committed, retries, core_share };
    Ok((sample, before.growth + tally.growth))
}
