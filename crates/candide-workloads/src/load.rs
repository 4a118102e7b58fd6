//! Filling tables from several sessions at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::{panic, thread};

use candide::{Abort, Database, Protocol, Session, Tx};

use crate::Failure;

/// Rows per loading transaction. The batch is large enough to make the cost of the commit itself
/// small, and small enough for its write set to stay in cache.
const BATCH: u64 = 16;

/// The parameters of loading: the number of threads, the seed, and the callbacks for progress and
/// for stopping.
pub struct Loading<'a> {
    /// The number of loader threads. Each thread has its own session and an equal segment of the
    /// keys.
    pub threads: usize,
    /// The seed of everything random in the workload.
    pub seed: u64,
    /// The callback for progress. After each transaction, a loader thread passes it the number of
    /// keys that the transaction has inserted.
    pub progress: &'a (dyn Fn(u64) + Sync),
    /// The callback for stopping, which returns whether to give up. The loader threads call it
    /// between transactions. Once it returns `true`, loading fails with [`Failure::Stopped`].
    pub stopped: &'a (dyn Fn() -> bool + Sync),
}

impl Loading<'_> {
    /// Returns [`Failure::Stopped`] if loading is to stop.
    pub(crate) fn go_on(&self) -> Result<(), Failure> {
        if (self.stopped)() { Err(Failure::Stopped) } else { Ok(()) }
    }

    /// Calls `insert` once for each key below `keys`, with a batch of keys per transaction. An
    /// attempt may be repeated, so what `insert` writes must depend on the key alone.
    pub(crate) fn fill<P: Protocol>(
        &self,
        db: &Database<P>,
        keys: u64,
        insert: impl Fn(&Tx<'_, P>, u64) -> Result<(), Abort> + Sync,
    ) -> Result<(), Failure> {
        let bound =
            |loader: usize| (u128::from(keys) * loader as u128 / self.threads as u128) as u64;
        let insert = &insert;
        let loaders = (0..self.threads).map(|loader| {
            let (mut session, start, end) = (db.session()?, bound(loader), bound(loader + 1));
            let load = move || {
                for first in (start..end).step_by(BATCH as usize) {
                    self.go_on()?;
                    let last = end.min(first + BATCH);
                    run_unmeasured(&mut session, &mut |tx| {
                        (first..last).try_for_each(|key| insert(tx, key))
                    })?;
                    (self.progress)(last - first);
                }
                Ok(())
            };
            Ok(Box::new(load) as Loader<'_>)
        });
        run_all(loaders.collect::<Result<_, Failure>>()?)
    }

    /// Calls `work` once for each of `parts` parts, with its number. A loader thread that has
    /// finished one part takes the next, so parts may differ in size. If a part takes many
    /// transactions, `work` has to check between them [whether to continue](Loading::go_on).
    pub(crate) fn share<P: Protocol>(
        &self,
        db: &Database<P>,
        parts: usize,
        work: impl Fn(&mut Session<P>, usize) -> Result<(), Failure> + Sync,
    ) -> Result<(), Failure> {
        let next = AtomicUsize::new(0);
        let (next, work) = (&next, &work);
        let loaders = (0..self.threads).map(|_| {
            let mut session = db.session()?;
            let load = move || {
                loop {
                    self.go_on()?;
                    let part = next.fetch_add(1, Ordering::Relaxed);
                    if part >= parts {
                        return Ok(());
                    }
                    work(&mut session, part)?;
                }
            };
            Ok(Box::new(load) as Loader<'_>)
        });
        run_all(loaders.collect::<Result<_, Failure>>()?)
    }
}

/// The work of one loader thread.
type Loader<'a> = Box<dyn FnOnce() -> Result<(), Failure> + Send + 'a>;

/// Runs each loader on its own thread and waits for all of them. Returns the first failure.
fn run_all(loaders: Vec<Loader<'_>>) -> Result<(), Failure> {
    thread::scope(|scope| {
        let threads: Vec<_> = loaders.into_iter().map(|load| scope.spawn(load)).collect();
        for thread in threads {
            thread.join().unwrap_or_else(|payload| panic::resume_unwind(payload))?;
        }
        Ok(())
    })
}

/// Runs a transaction that is not measured. Since `body` is a trait object, this code is compiled
/// only once for each protocol.
#[inline(never)]
pub(crate) fn run_unmeasured<P: Protocol>(
    session: &mut Session<P>,
    body: &mut dyn FnMut(&Tx<'_, P>) -> Result<(), Abort>,
) -> Result<(), Abort> {
    session.run(body)
}
