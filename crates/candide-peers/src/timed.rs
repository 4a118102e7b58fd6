//! Runs of some threads for a given time.

use std::error::Error;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use candide_harness::Cores;
use candide_workloads::Consistency;

/// The parameters of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lot {
    pub(crate) threads: usize,
    pub(crate) duration: Duration,
    pub(crate) seed: u64,
}

/// The results of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) committed: u64,
    /// The number of attempts that conflicts aborted.
    pub(crate) retries: u64,
    elapsed: Duration,
    /// The transactions per second of the same program without transactions.
    pub(crate) sequential_tps: f64,
}

impl Sample {
    pub(crate) fn tps(&self) -> f64 {
        self.committed as f64 / self.elapsed.as_secs_f64()
    }

    pub(crate) fn retries_per_hundred(&self) -> f64 {
        100.0 * self.retries as f64 / self.committed.max(1) as f64
    }
}

/// A failure of a thread.
pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// The size of a thread's stack, which the system gives as it is used. An attempt of a peer that
/// has seen the head of a list drops all elements that were popped meanwhile, one within another.
const STACK_BYTES: usize = 1 << 28;

/// Runs each of `threads` on a thread of its own. A thread repeats transactions as long as the
/// function that it gets returns `true`, and returns the numbers of commits and of retries.
pub(crate) fn drive<T>(
    threads: impl ExactSizeIterator<Item = T>,
    duration: Duration,
) -> Result<Sample, Failure>
where
    T: FnOnce(&dyn Fn() -> bool) -> Result<(u64, u64), Failure> + Send,
{
    let (start, is_over) = (Barrier::new(threads.len() + 1), AtomicBool::new(false));
    let (start, is_over, cores) = (&start, &is_over, &Cores::allowed());
    thread::scope(|scope| {
        let spawn = |(number, thread): (usize, T)| {
            let run = move || {
                cores.pin(number);
                start.wait();
                thread(&|| !is_over.load(Ordering::Relaxed))
            };
            let builder = thread::Builder::new().stack_size(STACK_BYTES);
            builder.spawn_scoped(scope, run).expect("the machine has room for the threads")
        };
        let running: Vec<_> = threads.enumerate().map(spawn).collect();
        start.wait();
        let begun = Instant::now();
        thread::sleep(duration);
        is_over.store(true, Ordering::Relaxed);
        let elapsed = begun.elapsed();
        let mut sample = Sample { committed: 0, retries: 0, elapsed, sequential_tps: f64::NAN };
        for thread in running {
            let (committed, retries) = thread.join().expect("threads do not panic")?;
            sample.committed += committed;
            sample.retries += retries;
        }
        Ok(sample)
    })
}

/// Returns an error if a check has failed.
pub(crate) fn expect(consistency: &Consistency) -> Result<(), Failure> {
    match consistency.failed.first() {
        None => Ok(()),
        Some(failure) => Err(format!("a check has failed: {failure}").into()),
    }
}
