//! Options of the log of a database.

#![forbid(unsafe_code)]

use crate::error::Error;
use crate::log::Level;
use crate::sync::Duration;
use candide_log::Progress;
use candide_log::store::Remote;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// A function that hears of the progress of recovery.
type Report = dyn Fn(Progress) + Send + Sync;

/// Options with which a database is [opened](crate::Builder::open). The defaults are good choices.
#[derive(Clone)]
pub struct LogOptions {
    pub(crate) acknowledge: Level,
    pub(crate) flush_every: Duration,
    pub(crate) segment_bytes: u64,
    pub(crate) checkpoint_bytes: u64,
    pub(crate) checkpoint_rate: u64,
    pub(crate) recovery_threads: usize,
    pub(crate) progress: Option<Arc<Report>>,
    pub(crate) remote: Option<Arc<dyn Remote>>,
}

impl std::fmt::Debug for LogOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogOptions")
            .field("acknowledge", &self.acknowledge)
            .field("flush_every", &self.flush_every)
            .field("segment_bytes", &self.segment_bytes)
            .field("checkpoint_bytes", &self.checkpoint_bytes)
            .field("checkpoint_rate", &self.checkpoint_rate)
            .field("recovery_threads", &self.recovery_threads)
            .field("remote", &self.remote)
            .finish_non_exhaustive()
    }
}

impl Default for LogOptions {
    fn default() -> LogOptions {
        LogOptions {
            acknowledge: Level::Durable,
            flush_every: Duration::from_millis(10),
            segment_bytes: 64 << 20,
            checkpoint_bytes: 256 << 20,
            checkpoint_rate: 64 << 20,
            recovery_threads: std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
            progress: None,
            remote: None,
        }
    }
}

/// The largest size of a segment of the log, in bytes.
const SEGMENT_BYTES_MAX: u64 = 64 << 30;

/// The largest number of threads that recover.
const RECOVERY_THREADS_MAX: u64 = 1024;

impl LogOptions {
    /// Checks that no option is too large, and that the default level can be reached.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let copies = self.remote.as_ref().is_some_and(|remote| remote.copies());
        if self.acknowledge == Level::Replicated && !copies {
            return Err(Error::NotReplicated);
        }
        let threads = self.recovery_threads as u64;
        for (option, given, most) in [
            ("LogOptions::segment_bytes", self.segment_bytes, SEGMENT_BYTES_MAX),
            ("LogOptions::recovery_threads", threads, RECOVERY_THREADS_MAX),
        ] {
            if given > most {
                return Err(Error::OptionTooLarge { option, given, most });
            }
        }
        Ok(())
    }

    /// Returns the default options.
    pub fn new() -> LogOptions {
        LogOptions::default()
    }

    /// Sets the level for which [`Database::run`](crate::Database::run) and its like wait before
    /// they return. The default is [`Level::Durable`]. A transaction can choose another level by
    /// [`RunOptions::acknowledge`](crate::RunOptions::acknowledge).
    #[must_use]
    pub fn acknowledge(self, level: Level) -> LogOptions {
        LogOptions { acknowledge: level, ..self }
    }

    /// Sets the time after which a commit for which no thread waits is written and synced at the
    /// latest; 10 ms by default. A commit for which a thread or a task waits is written at once.
    #[must_use]
    pub fn flush_every(self, time: Duration) -> LogOptions {
        LogOptions { flush_every: time, ..self }
    }

    /// Sets the largest size of a segment of the log; 64 MiB by default, at most 64 GiB. Values
    /// below 64 KiB count as 64 KiB. The files of segments take their room on the disk beforehand.
    #[must_use]
    pub fn segment_bytes(self, bytes: u64) -> LogOptions {
        LogOptions { segment_bytes: bytes.max(64 << 10), ..self }
    }

    /// Sets the size of the log above which a checkpoint begins by itself; 256 MiB by default. If
    /// the last checkpoint is larger, the next one begins when the log is as large as that one, but
    /// at the latest when it has four times the size set here. A smaller size makes recovery
    /// shorter, and writes the rows more often. The checkpoint takes about as much memory as the
    /// log.
    #[must_use]
    pub fn checkpoint_bytes(self, bytes: u64) -> LogOptions {
        LogOptions { checkpoint_bytes: bytes, ..self }
    }

    /// Sets the bytes that a checkpoint which begins by itself reads and writes in a second, while
    /// the log does not grow; 64 MiB by default, at least 1 (0 counts as 1). With [`u64::MAX`] it
    /// does not pause. The log stays bounded at any rate: if it grows, the checkpoint goes on
    /// faster, as necessary for being finished before the log has grown by the size at which the
    /// next one begins. A checkpoint that another call waits for does not pause:
    /// [`Database::checkpoint`], [`Database::backup`], the end of the database; nor does one while
    /// the disk is full.
    ///
    /// [`Database::checkpoint`]: crate::Database::checkpoint
    /// [`Database::backup`]: crate::Database::backup
    #[must_use]
    pub fn checkpoint_rate(self, bytes: u64) -> LogOptions {
        LogOptions { checkpoint_rate: bytes, ..self }
    }

    /// Sets the number of threads that recover, at most 1,024; by default as many as there are
    /// cores. Under a protocol that allows one session, one thread recovers.
    #[must_use]
    pub fn recovery_threads(self, threads: NonZeroUsize) -> LogOptions {
        LogOptions { recovery_threads: threads.get(), ..self }
    }

    /// Has `remote` make a copy of the log elsewhere. Applications use the crate `candide-reach`,
    /// whose trait `Replicate` has remotes for directories and other places.
    #[must_use]
    pub fn remote(self, remote: Arc<dyn Remote>) -> LogOptions {
        LogOptions { remote: Some(remote), ..self }
    }

    /// Calls `report` now and then while the database is being recovered.
    #[must_use]
    pub fn progress(self, report: impl Fn(Progress) + Send + Sync + 'static) -> LogOptions {
        LogOptions { progress: Some(Arc::new(report)), ..self }
    }
}
