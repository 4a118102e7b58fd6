//! Loading and running a small workload, whatever the protocol.

use std::thread;

use candide::{Database, Protocol};
use candide_workloads::{Consistency, Loaded, Loading, Worker, Workload};

/// A database with the two switches set.
pub(crate) fn database<P: Protocol>(commit_time_updates: bool, timestamp_splitting: bool) -> Database<P> {
    let builder = Database::<P>::builder();
    builder
        .commit_time_updates(commit_time_updates)
        .timestamp_splitting(timestamp_splitting)
        .build()
        .expect("valid settings")
}

/// Loads `workload` by as many threads as will run it.
pub(crate) fn load<P: Protocol, W: Workload>(db: &Database<P>, workload: &W, threads: usize) -> W::Loaded<P> {
    assert_eq!(workload.validate(), Ok(()));
    workload.load(db, &Loading { threads, seed: 5, progress: &|_| {}, stopped: &|| false }).expect("loads")
}

/// Runs `steps` transactions on each thread and enters them into the account. Gives how many committed.
pub(crate) fn run<P: Protocol, L: Loaded<P>>(db: &Database<P>, loaded: &L, threads: usize, steps: usize) -> usize {
    loaded.expect_workers(threads);
    let sessions: Vec<_> = (0..threads).map(|_| db.session().expect("a session")).collect();
    thread::scope(|scope| {
        let threads: Vec<_> = sessions
            .into_iter()
            .enumerate()
            .map(|(thread, session)| {
                scope.spawn(move || {
                    let mut worker = loaded.worker(session, thread);
                    let committed = (0..steps).filter(|_| worker.step().expect("no surprises").committed).count();
                    loaded.absorb(worker);
                    committed
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    })
}

/// Runs `steps` transactions on one thread and keeps them from the account.
pub(crate) fn run_unaccounted<P: Protocol, L: Loaded<P>>(db: &Database<P>, loaded: &L, steps: usize) {
    let mut worker = loaded.worker(db.session().expect("a session"), 0);
    for _ in 0..steps {
        worker.step().expect("no surprises");
    }
}

/// What the workload's own check finds.
pub(crate) fn check<P: Protocol, L: Loaded<P>>(db: &Database<P>, loaded: &L) -> Consistency {
    loaded.check(db.session().expect("a session")).expect("readable")
}

/// Asserts that the check examined something and found a failure that says `words`.
pub(crate) fn assert_failed(consistency: &Consistency, words: &str) {
    assert!(
        consistency.failed.iter().any(|failure| failure.contains(words)),
        "nothing of {words:?} among {:?}",
        consistency.failed
    );
}
