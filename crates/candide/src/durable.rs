//! The files of a database: its store, the thread of its logger, and checkpoints that begin
//! unasked.

#![forbid(unsafe_code)]

use crate::log::{Cuts, Log, Progress};
use crate::sync::process::{Builder, JoinHandle};
use crate::sync::{AtomicU64, Mutex, Ordering, lock};
use candide_log::Store;
use candide_log::store::Replies;
use std::fmt::Debug;
use std::io;
use std::sync::{Arc, Weak};

/// The files of a database that is open, and the threads that write them. The program's handles
/// share this value. The threads hold nothing that keeps the database open.
pub(crate) struct Durable {
    log: Arc<Log>,
    store: Arc<Store>,
    checkpoints: Arc<Checkpoints>,
    database: Arc<dyn CutSource>,
}

impl Durable {
    /// Starts the logger.
    pub(crate) fn start(log: Arc<Log>, store: Arc<Store>, database: Arc<dyn CutSource>) -> Durable {
        let checkpoints = Arc::new(Checkpoints::of(&store));
        let cuts = DatabaseCuts(Arc::downgrade(&database));
        log.start(Box::new(Logging { cuts, checkpoints: checkpoints.clone() }));
        Durable { log, store, checkpoints, database }
    }

    pub(crate) fn log(&self) -> &Arc<Log> {
        &self.log
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Returns the error of the last checkpoint that began unasked; `None` if it has not failed.
    pub(crate) fn checkpoint_failure(&self) -> Option<String> {
        lock(&self.checkpoints.failure).clone()
    }

    /// Writes and syncs everything that has been committed, and unlocks the directory. No
    /// transaction is running any more. Afterwards no thread touches the directory.
    ///
    /// The call waits for writes and syncs, and for a checkpoint that is being made, but for no
    /// thread that runs the program's code. So the logger may make it, from a waker, and so may the
    /// thread that makes the calls of `on_durable`. The logger's thread may end later.
    ///
    /// # Errors
    /// The failure of the log, which may have failed before.
    pub(crate) fn close(self) -> Result<(), Arc<io::Error>> {
        let Durable { log, store, checkpoints, database } = self;
        log.progress.stop();
        let closed = log.close(database.cut());
        if let Some(remote) = log.progress.remote() {
            remote.close();
        }
        checkpoints.end();
        let only = Arc::into_inner(store);
        debug_assert!(only.is_some(), "the directory would stay locked");
        closed
    }
}

/// The checkpoints that begin unasked.
#[derive(Debug)]
struct Checkpoints {
    making: Mutex<Making>,
    failure: Mutex<Option<String>>,
    /// The number of bytes of log at which the next checkpoint begins after a failure; zero if the
    /// last checkpoint has not failed.
    not_before: AtomicU64,
}

/// The store, and the thread that makes a checkpoint of it.
#[derive(Debug)]
struct Making {
    /// `None` once the database is being closed, so that no checkpoint begins.
    store: Option<Arc<Store>>,
    /// The thread of the last checkpoint that has begun, if there is one.
    thread: Option<JoinHandle<()>>,
}

impl Checkpoints {
    fn of(store: &Arc<Store>) -> Checkpoints {
        Checkpoints {
            making: Mutex::new(Making { store: Some(store.clone()), thread: None }),
            failure: Mutex::default(),
            not_before: AtomicU64::new(0),
        }
    }

    /// Begins a checkpoint if the log has become long enough, and none is being made.
    fn begin_if_due(self: &Arc<Checkpoints>) {
        let Making { store, thread } = &mut *lock(&self.making);
        let Some(store) = store else { return };
        if !store.wants_checkpoint() || store.log_bytes() < self.not_before.load(Ordering::Relaxed)
        {
            return;
        }
        if thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        let (store, checkpoints) = (store.clone(), self.clone());
        let make = move || checkpoints.make(&store);
        // Without a thread, the next block tries again.
        *thread = Builder::new().name("candide-checkpoint".to_owned()).spawn(make).ok();
    }

    fn make(&self, store: &Store) {
        let made = store.checkpoint_at_rate();
        // The next attempt waits until the log is a quarter longer.
        let bytes = store.log_bytes();
        let not_before = if made.is_err() { bytes + bytes / 4 } else { 0 };
        self.not_before.store(not_before, Ordering::Relaxed);
        *lock(&self.failure) = made.err().map(|error| error.to_string());
    }

    /// Waits for the checkpoint in progress, which does not pause any more. No checkpoint begins
    /// afterwards.
    fn end(&self) {
        let mut making = lock(&self.making);
        if let Some(store) = making.store.take() {
            store.end_pauses();
        }
        let thread = making.thread.take();
        drop(making);
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

/// What a copy of the log elsewhere tells.
pub(crate) struct RemoteReplies {
    pub(crate) progress: Arc<Progress>,
    pub(crate) database: Weak<dyn CutSource>,
}

impl Debug for RemoteReplies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteReplies").finish_non_exhaustive()
    }
}

impl Replies for RemoteReplies {
    fn reach(&self, cut: u64, append: u64) {
        self.progress.reach_remote(cut, append);
    }

    fn set_behind(&self, is_behind: bool) {
        self.progress.set_behind(is_behind);
    }

    fn fail(&self, failure: io::Error) {
        self.progress.fail(failure);
        self.progress.wake_due();
        if let Some(database) = self.database.upgrade() {
            database.wake_watchers();
        }
    }

    fn can_write(&self) -> bool {
        !self.progress.has_failed() && !self.progress.is_full()
    }
}

/// The part of a database that its files need.
pub(crate) trait CutSource: Send + Sync {
    /// Returns a cut.
    fn cut(&self) -> u64;

    /// Wakes the sessions that sleep until something changes: nothing can be written any more.
    fn wake_watchers(&self);
}

/// A reference to a database by which the logger does not keep the database's memory.
pub(crate) struct DatabaseCuts(pub(crate) Weak<dyn CutSource>);

impl Debug for DatabaseCuts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DatabaseCuts").finish_non_exhaustive()
    }
}

impl Cuts for DatabaseCuts {
    fn cut(&self) -> Option<u64> {
        Some(self.0.upgrade()?.cut())
    }

    fn has_failed(&self) {
        if let Some(database) = self.0.upgrade() {
            database.wake_watchers();
        }
    }
}

/// The parts of a database in files that its logger needs.
#[derive(Debug)]
struct Logging {
    cuts: DatabaseCuts,
    checkpoints: Arc<Checkpoints>,
}

impl Cuts for Logging {
    fn cut(&self) -> Option<u64> {
        self.cuts.cut()
    }

    fn has_written(&self) {
        self.checkpoints.begin_if_due();
    }

    fn has_failed(&self) {
        self.cuts.has_failed();
    }
}
