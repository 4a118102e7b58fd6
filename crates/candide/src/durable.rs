//! The files of a database: its store, the thread of its logger, and checkpoints that begin by
//! themselves.

#![forbid(unsafe_code)]

use crate::log::{Cuts, Log};
use crate::sync::{AtomicU64, Mutex, Ordering, lock};
use crate::visits::Visit;
use candide_log::Store;
use std::fmt::Debug;
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};

/// The files of a database, and the threads that write them.
#[derive(Debug)]
pub(crate) struct Durable {
    log: Arc<Log>,
    store: Arc<Store>,
    logger: JoinHandle<()>,
    checkpoints: Checkpoints,
}

/// The checkpoints that begin by themselves.
#[derive(Debug, Default)]
struct Checkpoints {
    /// The thread that makes one, if one has begun.
    thread: Mutex<Option<JoinHandle<()>>>,
    failure: Arc<Mutex<Option<String>>>,
    /// The number of bytes of log at which the next one begins after a failure; zero if the last
    /// one has not failed.
    not_before: Arc<AtomicU64>,
}

impl Durable {
    /// Starts the logger.
    pub(crate) fn start(log: Arc<Log>, store: Arc<Store>, database: DatabaseCuts) -> Durable {
        let logger = log.start(Box::new(database));
        Durable { log, store, logger, checkpoints: Checkpoints::default() }
    }

    pub(crate) fn log(&self) -> &Arc<Log> {
        &self.log
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Returns what the last checkpoint that began by itself failed at; `None` if it has not
    /// failed.
    pub(crate) fn checkpoint_failure(&self) -> Option<String> {
        lock(&self.checkpoints.failure).clone()
    }

    /// Begins a checkpoint if the log has become long enough, and none is being made.
    fn checkpoint_if_due(&self) {
        let Checkpoints { thread, failure, not_before } = &self.checkpoints;
        if !self.store.wants_checkpoint()
            || self.store.log_bytes() < not_before.load(Ordering::Relaxed)
        {
            return;
        }
        let mut thread = lock(thread);
        if thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        let (store, failure, not_before) =
            (self.store.clone(), failure.clone(), not_before.clone());
        let make = move || {
            let made = store.checkpoint();
            // The next attempt waits until there is a quarter more of log.
            let bytes = store.log_bytes();
            not_before.store(if made.is_err() { bytes + bytes / 4 } else { 0 }, Ordering::Relaxed);
            *lock(&failure) = made.err().map(|error| error.to_string());
        };
        // Without a thread, the next block tries again.
        *thread = thread::Builder::new().name("candide-checkpoint".to_owned()).spawn(make).ok();
    }

    /// Writes everything that has been committed, up to `cut`, and ends the threads. No transaction
    /// is running any more.
    pub(crate) fn close(self, cut: u64) {
        self.log.progress.stop();
        // The logger itself may hold the last reference to the database for a moment.
        if self.logger.thread().id() != thread::current().id() {
            let _ = self.logger.join();
        }
        self.log.close(cut);
        if let Some(thread) = lock(&self.checkpoints.thread).take() {
            let _ = thread.join();
        }
    }
}

/// A database, as its logger sees it.
pub(crate) trait DatabaseEnd: Send + Sync {
    /// Returns a cut.
    fn cut(&self) -> u64;
    /// Returns the database's files; `None` while the database is being opened.
    fn durable(&self) -> Option<&Durable>;
}

/// A reference to a database by which the logger does not keep the database alive.
pub(crate) struct DatabaseCuts(pub(crate) Weak<dyn DatabaseEnd>);

impl Debug for DatabaseCuts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DatabaseCuts").finish_non_exhaustive()
    }
}

impl Cuts for DatabaseCuts {
    fn cut(&self) -> Option<u64> {
        let _visit = Visit::begin();
        Some(self.0.upgrade()?.cut())
    }

    fn has_written(&self) {
        let _visit = Visit::begin();
        if let Some(database) = self.0.upgrade()
            && let Some(durable) = database.durable()
        {
            durable.checkpoint_if_due();
        }
    }
}
