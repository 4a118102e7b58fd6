//! Measurements of durable commits: transactions that are acknowledged only when they survive a
//! loss of power, in Candide and in other stores, on the same disk and in one process.
//!
//! ```text
//! cd crates/candide-peers
//! cargo run --release --bin durable -- DIRECTORY                    # more than half an hour
//! cargo run --release --bin durable -- DIRECTORY --threads 1,64 --seconds 0.5 --stores candide-occ,sqlite
//! ```
//!
//! To add a store, implement [`Durable`] beside its [`Peer`](super::Peer), and add one line to the
//! list of `peers`.
//!
//! # What is compared
//! In each experiment, a number of threads commit transactions on one table of 100,000 rows with
//! keys and values of one word, drawn uniformly:
//!
//! | shape | a transaction |
//! |---|---|
//! | `counter` | increments one counter: one read, one write |
//! | `transfer` | moves money between two accounts: two reads, two writes |
//!
//! An experiment makes a new folder in the given directory, opens the store in it, loads the rows,
//! waits until the system has written everything to the disk, warms up for a fifth of the time,
//! and measures. Afterwards all rows are read, the store is closed and opened again, and the
//! rows must be the same and have the sum that the acknowledged transactions make. Then the folder
//! is removed. A folder that is left after an interruption is named `candide-stores-…`.
//!
//! In each round, all stores take their turns, one experiment each. The tables show medians of the
//! rounds, and the slowest and the fastest round.
//!
//! - *Commits per second* are those acknowledged in the measured time, to all threads together.
//! - *Latency* is the time from the beginning of a transaction to its acknowledgement, repetitions
//!   after conflicts included, for all transactions that began in the measured time.
//! - The *floor* is the time of a plain write of 4 KiB and an `fdatasync`, by one thread, to a file
//!   whose blocks have been written before. It takes its turn in each round, too. On an idle
//!   machine, a store that syncs once for each commit is hardly faster; a store whose commits share
//!   a sync can be.
//!
//! # What is equal
//! - **Durability**: each acknowledged transaction has been synced. The list that the command
//!   prints says how each store is told so. Whether a sync also flushes a volatile cache of the
//!   disk depends on the system, and is the same for all stores.
//! - **Isolation**: every transaction is serializable.
//! - **Threads** are not bound to cores, unlike in `stores`. Threads of `surrealmx` poll for
//!   earlier commits, and made hardly any progress when many were bound to one core.
//! - **Work**: the bodies of transactions are the same code. A thread begins its next transaction
//!   when the one before is acknowledged, except in the line that is named for it:
//!   `candide-64-pending` uses `run_logged`, so that a thread has up to 64 transactions that are
//!   not acknowledged yet. All other lines wait in each commit.
//!
//! # What is not comparable
//! - `sqlite`, `redb` and `fjall` can keep more rows than fit into memory. Candide and `surrealmx`
//!   cannot.
//! - Candide pauses after a conflict by itself; `surrealmx` pauses for 200 microseconds here, since
//!   a conflict lasts as long as a sync. `fjall` repeats at once: it commits one transaction at a
//!   time.
//! - All stores write checkpoints, or compact their files, as they do by default. `surrealmx` does
//!   so only on request, so its log grows without end.
//! - A thread sleeps during a sync, and needs a core afterwards. If other programs hold the cores,
//!   it waits for the scheduler, for milliseconds instead of the tenth of one that a fast disk
//!   takes. This hits stores in different ways. So the machine must be idle; the command notes its
//!   load.
//! - The store is closed before it is opened again. So the check finds transactions that were never
//!   written, but not those that were never synced.

mod cli;
mod disk;
mod driver;
mod figures;
mod floor;
mod report;
mod suite;
mod table;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::time::Instant;

pub use cli::Options;
pub(crate) use driver::{Contender, of};
pub use suite::run;

use super::{Failure, Session, Size, Store, Writing};
use crate::Role;

/// A store to measure that keeps its rows in files, where commits survive a loss of power.
pub trait Durable: 'static {
    /// The store's name, as in `--stores`.
    const NAME: &'static str;
    /// The crate whose version is reported.
    const CRATE: &'static str;
    /// A description of the way in which the store is used here, and of what makes its commits
    /// durable.
    const USE: &'static str;
    /// The store's role among the others.
    const ROLE: Role;

    /// The store.
    type Store: Store<i64>;
    /// One thread's transactions with the store.
    type Committer<'s>: Committer;

    /// Opens the store in a directory. In an empty directory, creates a store without rows.
    fn open(directory: &Path, size: Size) -> Result<Self::Store, Failure>;

    /// Returns the calling thread's committer.
    fn committer(store: &Self::Store) -> Result<Self::Committer<'_>, Failure>;
}

/// One thread's transactions with a durable store.
pub trait Committer {
    /// Runs a transaction until it has committed, and repeats it after conflicts. Returns the
    /// number of repetitions.
    ///
    /// Once a transaction is durable, calls `acknowledged` with the time at which the transaction
    /// began. The calls may come during later calls of this function, or of
    /// [`finish`](Committer::finish).
    fn commit<W: Writing<i64, Output = ()>>(
        &mut self,
        work: &W,
        acknowledged: &mut impl FnMut(Instant),
    ) -> Result<u64, Failure>;

    /// Waits until all transactions are acknowledged.
    fn finish(&mut self, acknowledged: &mut impl FnMut(Instant)) -> Result<(), Failure>;
}

/// A committer that begins a transaction when the one before is durable.
pub struct Waiting<S>(pub(super) S);

impl<S: Session<i64>> Committer for Waiting<S> {
    fn commit<W: Writing<i64, Output = ()>>(
        &mut self,
        work: &W,
        acknowledged: &mut impl FnMut(Instant),
    ) -> Result<u64, Failure> {
        let begun = Instant::now();
        let done = self.0.write(work)?;
        acknowledged(begun);
        Ok(done.retries)
    }

    fn finish(&mut self, _: &mut impl FnMut(Instant)) -> Result<(), Failure> {
        Ok(())
    }
}
