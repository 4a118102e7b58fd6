//! How a primary writes.

#![forbid(unsafe_code)]

use std::time::Duration;

/// How a primary writes into its place. The defaults are good choices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplicateOptions {
    pub(super) every: Duration,
    pub(super) backlog: u64,
    pub(super) takes_over: bool,
}

impl Default for ReplicateOptions {
    fn default() -> ReplicateOptions {
        let every = Duration::from_millis(100);
        ReplicateOptions { every, backlog: 1 << 30, takes_over: false }
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
    /// write wait, or end at their deadline; those that read go on.
    #[must_use]
    pub fn replicate_backlog(self, bytes: u64) -> ReplicateOptions {
        ReplicateOptions { backlog: bytes, ..self }
    }

    /// Leads although another directory has led since, which is known to be gone for good. The
    /// place must not have commits that this directory lacks, nor lack any that are here.
    #[must_use]
    pub fn take_over(self) -> ReplicateOptions {
        ReplicateOptions { takes_over: true, ..self }
    }
}
