//! A store under measurement, with its type erased; and the code of an experiment.

use std::io;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use candide_harness::CoreShare;
use candide_harness::results::least_share;
use clap::ValueEnum;

use super::figures::{Latency, Sample};
use crate::stores::about::About;
use crate::stores::driver::{Drawn, Lots, Turn};
use crate::stores::durability::{Committer, Durable};
use crate::stores::scratch::Scratch;
use crate::stores::versions::version_of;
use crate::stores::workloads::{Counter, Transfer, Workload, contents, examine};
use crate::stores::{Failure, Size, Store, Writing};
use crate::threads::on_free_threads;

/// A store under measurement.
pub(crate) trait Contender {
    fn about(&self) -> About;

    /// Opens the store in a new folder of `directory`, fills it, commits transactions, opens the
    /// store again, and checks its rows.
    fn measure(&self, job: &Job, turn: Turn, directory: &Path) -> Result<Sample, Failure>;
}

/// Returns a contender that opens stores of `D`.
pub(crate) fn of<D: Durable>() -> Box<dyn Contender> {
    Box::new(Of::<D>(PhantomData))
}

struct Of<D>(PhantomData<D>);

impl<D: Durable> Contender for Of<D> {
    fn about(&self) -> About {
        About {
            name: D::NAME,
            role: D::ROLE,
            crate_name: D::CRATE,
            version: D::CRATE.and_then(version_of),
            usage: D::USE,
            threads_max: usize::MAX,
        }
    }

    fn measure(&self, job: &Job, turn: Turn, directory: &Path) -> Result<Sample, Failure> {
        match job {
            Job::Counter(drawn) => measure::<D, _>(drawn, turn, directory),
            Job::Transfer(drawn) => measure::<D, _>(drawn, turn, directory),
        }
    }
}

/// A workload whose requests are bodies of transactions themselves.
trait Simple: Workload<Value = i64, Request: Writing<i64, Output = ()>> {
    /// The growth of the sum over all rows by each transaction.
    const GROWTH: i128;
}

impl Simple for Counter {
    const GROWTH: i128 = 1;
}

impl Simple for Transfer {
    const GROWTH: i128 = 0;
}

/// The form of the transactions of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shape {
    /// One counter of many is incremented: one read, one write
    Counter,
    /// Money moves between two accounts: two reads, two writes
    Transfer,
}

/// A shape with its inputs.
pub(crate) enum Job {
    Counter(Drawn<Counter>),
    Transfer(Drawn<Transfer>),
}

impl Job {
    /// Draws the inputs of a shape over `rows` rows.
    pub(crate) fn draw(shape: Shape, rows: u64, lots: Lots) -> Job {
        match shape {
            Shape::Counter => Job::Counter(Drawn::new(Counter { counters: rows }, lots)),
            Shape::Transfer => Job::Transfer(Drawn::new(Transfer { accounts: rows }, lots)),
        }
    }

    /// Returns the shape's name.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Job::Counter(drawn) => drawn.workload().name(),
            Job::Transfer(drawn) => drawn.workload().name(),
        }
    }
}

/// The work of one thread.
struct Share {
    /// The number of transactions that were acknowledged before the end of the measured time.
    in_time: u64,
    retries: u64,
    /// The latencies of all transactions.
    latency: Latency,
    /// The least share of a core that a thread had; `None` if the system does not report it.
    core_share: Option<f64>,
}

fn measure<D: Durable, W: Simple>(
    drawn: &Drawn<W>,
    turn: Turn,
    directory: &Path,
) -> Result<Sample, Failure> {
    let workload = drawn.workload();
    let size = Size { tables: W::TABLES, rows: workload.rows() };
    let folder = Scratch::below(directory)?;
    let mut store = D::open(folder.path(), size)?;
    for table in 0..W::TABLES {
        store.load(table, (0..workload.rows()).map(|key| (key, workload.initial(table, key))))?;
    }
    write_back(folder.path())?;
    // Bound to cores, 64 threads of `surrealmx` on two cores did not end two turns of half a second
    // within 40 seconds. Unbound, they took four to nine.
    let shares = on_free_threads(turn.threads, |thread, start| {
        work(drawn.requests(thread), D::committer(&store), turn, start)
    });
    let mut total = Share::new();
    let mut committed = 0;
    for share in shares {
        let (before, share) = share?;
        total.in_time += share.in_time;
        total.retries += share.retries;
        total.latency.add_all(&share.latency);
        total.core_share = least_share(total.core_share, share.core_share);
        committed += before + share.latency.count();
    }
    let left = contents(workload, &mut store.session()?)?;
    drop(store);
    let store = D::open(folder.path(), size).map_err(|error| format!("opened again: {error}"))?;
    let mut session = store.session()?;
    let growth = W::GROWTH * i128::from(committed);
    examine(workload, &mut session, growth).map_err(|error| format!("opened again: {error}"))?;
    let found = contents(workload, &mut session)?;
    let changed = left.iter().zip(&found).filter(|(left, found)| left != found).count();
    if changed > 0 || left.len() != found.len() {
        return Err(format!("opened again: {changed} rows have changed").into());
    }
    let per_second = total.in_time as f64 / turn.duration.as_secs_f64();
    Ok(Sample {
        core_share: total.core_share,
        ..Sample::new(per_second, total.retries, &total.latency)
    })
}

/// Runs one thread's part. Returns the number of transactions in the warm-up, and the work in the
/// measured time.
fn work<R: Writing<i64, Output = ()>>(
    requests: &[R],
    committer: Result<impl Committer, Failure>,
    turn: Turn,
    start: &Barrier,
) -> Result<(u64, Share), Failure> {
    let mut number = turn.run.wrapping_mul(0x9e37_79b9) % requests.len();
    let mut next = || {
        let request = &requests[number];
        number = (number + 1) % requests.len();
        request
    };
    let warm = committer.and_then(|mut committer| {
        Ok((spend(&mut committer, &mut next, turn.duration / 5)?.latency.count(), committer))
    });
    // A thread that fails still waits at the barrier, since the other threads wait there for it.
    start.wait();
    let (before, mut committer) = warm?;
    Ok((before, spend(&mut committer, &mut next, turn.duration)?))
}

impl Share {
    fn new() -> Share {
        Share { in_time: 0, retries: 0, latency: Latency::new(), core_share: None }
    }
}

/// Begins transactions until the time has ended, at least one, and waits until all are
/// acknowledged.
fn spend<'r, R: Writing<i64, Output = ()> + 'r>(
    committer: &mut impl Committer,
    next: &mut impl FnMut() -> &'r R,
    duration: Duration,
) -> Result<Share, Failure> {
    let core = CoreShare::begin();
    let end = Instant::now() + duration;
    let Share { mut in_time, mut retries, mut latency, .. } = Share::new();
    let mut acknowledged = |begun: Instant| {
        let now = Instant::now();
        latency.add(now - begun);
        in_time += u64::from(now <= end);
    };
    loop {
        retries += committer.commit(next(), &mut acknowledged)?;
        if Instant::now() >= end {
            break;
        }
    }
    committer.finish(&mut acknowledged)?;
    Ok(Share { in_time, retries, latency, core_share: core.end() })
}

/// Waits until the system has written everything in the file system of `directory` to the disk, so
/// that an experiment does not pay for earlier writes.
#[cfg(target_os = "linux")]
fn write_back(directory: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(std::fs::File::open(directory)?)?)
}

/// Does nothing: not every system can be asked to write everything back.
#[cfg(not(target_os = "linux"))]
fn write_back(_: &Path) -> io::Result<()> {
    Ok(())
}
