//! How a primary writes.

#![forbid(unsafe_code)]

use std::time::Duration;

/// The most objects that may be under way.
pub(super) const UNDER_WAY_MAX: usize = 64;

/// How a primary writes into its place. The defaults are good choices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplicateOptions {
    pub(super) every: Duration,
    pub(super) backlog: u64,
    pub(super) keep: Duration,
    pub(super) under_way: usize,
    pub(super) takes_over: bool,
    pub(super) is_alone: bool,
}

impl Default for ReplicateOptions {
    fn default() -> ReplicateOptions {
        ReplicateOptions {
            every: Duration::from_millis(100),
            backlog: 1 << 30,
            keep: Duration::from_secs(600),
            under_way: 4,
            takes_over: false,
            is_alone: false,
        }
    }
}

impl ReplicateOptions {
    /// Returns the default options.
    pub fn new() -> ReplicateOptions {
        ReplicateOptions::default()
    }

    /// Sets the time after which a commit for which no thread waits is written to the place at the
    /// latest; 100 ms by default. What a thread waits for is written at once.
    #[must_use]
    pub fn replicate_every(self, time: Duration) -> ReplicateOptions {
        ReplicateOptions { every: time, ..self }
    }

    /// Sets by how many bytes of commit records the place may lag; 1 GiB by default. Up to that,
    /// commits go on, and the local log keeps what the place lacks. Beyond it, transactions that
    /// write wait, or end at their deadline; those that read go on. A checkpoint then waits for the
    /// place no more; the place gets the checkpoint instead of the log.
    #[must_use]
    pub fn replicate_backlog(self, bytes: u64) -> ReplicateOptions {
        ReplicateOptions { backlog: bytes, ..self }
    }

    /// Sets how long the place keeps a snapshot, and the log before it, once there is a newer one;
    /// ten minutes by default. Standbys that are reading them have that long. They are deleted at
    /// a later checkpoint.
    #[must_use]
    pub fn keep(self, time: Duration) -> ReplicateOptions {
        ReplicateOptions { keep: time, ..self }
    }

    /// Sets how many objects may be under way at a time, from 1 to 64; 4 by default. Each has a
    /// thread, and up to 8 MiB of commit records in memory. A transaction is acknowledged when the
    /// place has its object and all before it. Another number is an error when the database is
    /// opened.
    #[must_use]
    pub fn objects_under_way(self, count: usize) -> ReplicateOptions {
        ReplicateOptions { under_way: count, ..self }
    }

    /// Opens the database without its place, which is not asked for anything: it may be away. The
    /// log stays in the directory, which remembers what the place has. When the database is opened
    /// with the place again, the place gets what it lacks, if no other directory has led meanwhile.
    ///
    /// Checkpoints keep the log that the place lacks, up to
    /// [`replicate_backlog`](ReplicateOptions::replicate_backlog); beyond that, the place will get
    /// a checkpoint. No transaction can wait for
    /// [`Level::Replicated`](candide::Level::Replicated).
    #[must_use]
    pub fn open_alone(self) -> ReplicateOptions {
        ReplicateOptions { is_alone: true, ..self }
    }

    /// Leads although another directory has led since, which is known to be gone for good. The
    /// place must not have commits that this directory lacks, nor lack any that are here.
    #[must_use]
    pub fn take_over(self) -> ReplicateOptions {
        ReplicateOptions { takes_over: true, ..self }
    }
}
