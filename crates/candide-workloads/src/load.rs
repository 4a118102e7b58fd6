//! Filling tables from several sessions at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::{panic, thread};

use candide::{Abort, Database, Protocol, Session, Tx};

use crate::Failure;

/// Rows per loading transaction: enough to make a commit's own cost small, few enough that a write
/// set stays in cache.
const BATCH: u64 = 16;

/// How to load: by how many threads, from which seed, whom to tell and whom to ask.
pub struct Loading<'a> {
    /// Loader threads, each with a session of its own and an equal segment of the keys.
    pub threads: usize,
    /// Everything random in the workload follows from it.
    pub seed: u64,
    /// Told by the loader threads, after each transaction, how many more keys are in.
    pub progress: &'a (dyn Fn(u64) + Sync),
    /// Asked by the loader threads, between transactions, whether to give up. Then loading fails
    /// with [`Failure::Stopped`].
    pub stopped: &'a (dyn Fn() -> bool + Sync),
}

impl Loading<'_> {
    /// Fails if loading is to stop.
    pub(crate) fn go_on(&self) -> Result<(), Failure> {
        if (self.stopped)() { Err(Failure::Stopped) } else { Ok(()) }
    }

    /// Calls `insert` once for each key below `keys`, a batch of them per transaction. An attempt
    /// may be repeated, so what `insert` writes must depend on the key alone.
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

    /// Calls `work` once for each of so many parts. A loader that is done with one takes the next,
    /// so parts may differ in size; a part of many transactions asks in between [whether to go
    /// on](Loading::go_on).
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

/// What one loader thread does.
type Loader<'a> = Box<dyn FnOnce() -> Result<(), Failure> + Send + 'a>;

/// Runs each on a thread of its own and waits for all of them. Returns the first failure.
fn run_all(loaders: Vec<Loader<'_>>) -> Result<(), Failure> {
    thread::scope(|scope| {
        let threads: Vec<_> = loaders.into_iter().map(|load| scope.spawn(load)).collect();
        for thread in threads {
            thread.join().unwrap_or_else(|payload| panic::resume_unwind(payload))?;
        }
        Ok(())
    })
}

/// Runs a transaction that is not measured. All such closures of a protocol share this code.
#[inline(never)]
pub(crate) fn run_unmeasured<P: Protocol>(
    session: &mut Session<P>,
    body: &mut dyn FnMut(&Tx<'_, P>) -> Result<(), Abort>,
) -> Result<(), Abort> {
    session.run(body)
}
