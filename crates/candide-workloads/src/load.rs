//! Filling tables from several sessions at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::{panic, thread};

use candide::{Abort, Database, Protocol, Session, Tx};

use crate::Failure;

/// Rows per loading transaction: enough to make a commit's own cost small, few enough that a write set stays in cache.
const BATCH: u64 = 16;

/// How to load: by how many threads, from which seed, whom to tell and whom to ask.
pub struct Loading<'a> {
    /// Loader threads, each with a session of its own and an equal segment of the keys.
    pub threads: usize,
    /// Everything random in the workload follows from it.
    pub seed: u64,
    /// Told by the loader threads, after each transaction, how many more keys are in.
    pub progress: &'a (dyn Fn(u64) + Sync),
    /// Asked by the loader threads, between transactions, whether to give up. Then loading fails with [`Failure::Stopped`].
    pub stopped: &'a (dyn Fn() -> bool + Sync),
}

impl Loading<'_> {
    /// Calls `insert` once for each key below `keys`, a batch of them per transaction. An attempt may be repeated, so what
    /// `insert` writes must depend on the key alone.
    pub(crate) fn fill<P: Protocol>(
        &self,
        db: &Database<P>,
        keys: u64,
        insert: impl Fn(&Tx<'_, P>, u64) -> Result<(), Abort> + Sync,
    ) -> Result<(), Failure> {
        let sessions = (0..self.threads).map(|_| db.session()).collect::<Result<Vec<_>, _>>()?;
        let bound = |loader: usize| (u128::from(keys) * loader as u128 / self.threads as u128) as u64;
        let insert = &insert;
        thread::scope(|scope| {
            let loaders: Vec<_> = (0..)
                .zip(sessions)
                .map(|(loader, mut session)| {
                    let (start, end) = (bound(loader), bound(loader + 1));
                    scope.spawn(move || {
                        for first in (start..end).step_by(BATCH as usize) {
                            if (self.stopped)() {
                                return Err(Failure::Stopped);
                            }
                            let last = end.min(first + BATCH);
                            session.run(|tx| (first..last).try_for_each(|key| insert(tx, key)))?;
                            (self.progress)(last - first);
                        }
                        Ok(())
                    })
                })
                .collect();
            for loader in loaders {
                loader.join().unwrap_or_else(|payload| panic::resume_unwind(payload))?;
            }
            Ok(())
        })
    }

    /// Calls `work` once for each of so many parts. Who is done with one takes the next, so parts may differ in size.
    pub(crate) fn share<P: Protocol>(
        &self,
        db: &Database<P>,
        parts: usize,
        work: impl Fn(&mut Session<P>, usize) -> Result<(), Abort> + Sync,
    ) -> Result<(), Failure> {
        let sessions = (0..self.threads).map(|_| db.session()).collect::<Result<Vec<_>, _>>()?;
        let next = AtomicUsize::new(0);
        let (next, work) = (&next, &work);
        thread::scope(|scope| {
            let start = |mut session: Session<P>| {
                scope.spawn(move || {
                    loop {
                        if (self.stopped)() {
                            return Err(Failure::Stopped);
                        }
                        let part = next.fetch_add(1, Ordering::Relaxed);
                        if part >= parts {
                            return Ok(());
                        }
                        work(&mut session, part)?;
                    }
                })
            };
            let loaders: Vec<thread::ScopedJoinHandle<'_, Result<(), Failure>>> =
                sessions.into_iter().map(start).collect();
            for loader in loaders {
                loader.join().unwrap_or_else(|payload| panic::resume_unwind(payload))?;
            }
            Ok(())
        })
    }
}
