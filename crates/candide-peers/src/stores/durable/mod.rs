//! Measurements of durable commits: transactions that are acknowledged only when they survive a
//! loss of power, in Candide and in other stores, on the same disk and in one process.
//!
//! ```text
//! cd crates/candide-peers
//! cargo run --release --bin durable -- DIRECTORY                    # more than half an hour
//! cargo run --release --bin durable -- DIRECTORY --threads 1,64 --seconds 0.5 --stores candide-occ,sqlite
//! ```
//!
//! To add a store, implement [`Durable`](super::Durable) beside its [`Peer`](super::Peer), and add
//! one line to the list of `contenders`.
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
//!   whose blocks have been written before. The floor takes its turn in each round, too. On an idle
//!   machine, a store that syncs once for each commit is hardly faster; a store whose commits share
//!   a sync can be.
//!
//! # What is equal
//! - **Durability**: each acknowledged transaction has been synced. The list that the command
//!   prints names the setting of each store. Whether a sync also flushes a volatile cache of the
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
//!   the thread waits for the scheduler: for milliseconds, while a fast disk takes a tenth of a
//!   millisecond. The delay affects stores differently. So the machine must be idle; the command
//!   notes its load.
//! - The store is closed before it is opened again. So the check finds transactions that were never
//!   written, but not those that were never synced.

mod cli;
mod contenders;
mod disk;
mod driver;
mod figures;
mod floor;
mod report;
mod suite;
mod table;

#[cfg(test)]
mod tests;

pub use cli::Options;
pub(crate) use cli::{directory, seconds};
pub(crate) use contenders::all;
pub(crate) use driver::{Job, Shape};
pub use suite::run;
