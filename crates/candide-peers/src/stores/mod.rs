//! Measurements of Candide beside the alternatives that a program has: other stores, SQL, software
//! transactional memory, and hand-written locking.
//!
//! ```text
//! cd crates/candide-peers
//! cargo run --release --bin stores                                       # half an hour
//! cargo run --release --bin stores -- --workload transfer --peers candide-occ,surrealmx,sharded --duration 500ms
//! cargo run --release --features rocksdb --bin stores -- --peers all     # C++: asks for libclang, compiles for many minutes
//! ```
//!
//! The command `durable` measures commits that survive a loss of power: see [`durable`]. The
//! command `beside` draws one task with and without durability: see [`beside`].
//!
//! To add a peer, write one file in `peers` that implements [`Peer`], [`Store`] and [`Session`],
//! and one line in the list of `peers`. Each workload is written once, in terms of these traits.
//!
//! # What is compared
//! The comparison covers transactions in one process, over tables of 100,000 rows with keys of one
//! word. In each run the peers take turns. Each turn opens a new store, fills it, runs the workload
//! for the given time, and then checks the rows that the workload has left. Medians are compared.
//! The inputs are drawn before the clock starts, and are the same for all peers.
//!
//! | workload | a transaction |
//! |---|---|
//! | `transfer` | moves money between two of 100,000 accounts, drawn uniformly: two reads, two writes |
//! | `smallbank` | one of the six types of SmallBank over uniform accounts, in BenchBase's mix; customers come by their number |
//! | `ycsb-a` | 16 operations on rows of one column of 100 bytes, half of them writes; Zipf, theta 0.99 |
//! | `ycsb-b` | the same, one in twenty a write; theta 0.8 |
//! | `ycsb-c` | 16 uniform reads |
//! | `skew` | a probe of isolation, not a measurement: pairs of rows where one of the two has to stay |
//!
//! A write of YCSB reads the column, adds one to the counter at its head, and writes all hundred
//! bytes, which depend on the counter. So the check finds every update that was lost or torn.
//!
//! # What is equal
//! - **Isolation**: every transaction is serializable. A peer that is not serializable by default
//!   is used in a way that makes it so. The list that the command prints describes that way.
//! - **Durability**: none. A store that needs files has them in memory (on `/dev/shm`, if that
//!   exists), and never waits for a disk.
//! - **Work**: the bodies of transactions are the same code. A transaction with a conflict is
//!   repeated as the peer's documentation prescribes. It counts once, when it has committed, and
//!   its repetitions are in a column of their own.
//! - **Advance knowledge**: read-only transactions are declared beforehand, and use the peer's
//!   cheaper form of transaction if the peer has one. The rows that a transaction may touch are
//!   known beforehand. Only `sharded` uses this knowledge, and cannot work without it.
//!
//! # What is not comparable
//! - Candide's commit-time updates, which write without reading, are not used, and neither is
//!   `find_many`: no peer has such operations.
//! - `mutex` and `sharded` cannot roll back. The bodies of transactions decide before their first
//!   write whether to write, so a rollback is never needed.
//! - `fast-stm` and `stm` keep their rows in a map that is built when the table is loaded and never
//!   changes. So they allow no inserts. Neither is word-based: they replace whole rows.
//! - `sqlite` prepares its statements beforehand, so it parses nothing in the measured time. But it
//!   interprets the statements.
//! - `fjall`, `redb`, `lmdb`, `sqlite` and `rocksdb` are designed to keep data on disk.
//! - The hash maps of the yardsticks use `foldhash`, which is quicker than the standard library's
//!   hash.

mod about;
pub mod beside;
mod cli;
mod driver;
mod durability;
pub mod durable;
mod figures;
mod peers;
mod progress;
mod report;
mod scratch;
mod suite;
mod table;
mod value;
mod versions;
mod workloads;

#[cfg(test)]
mod tests;

use std::error::Error;
#[cfg(any(feature = "surrealmx", feature = "fjall", feature = "rocksdb"))]
use std::time::Duration;

use candide::Abort;

pub use cli::Options;
pub(crate) use cli::threads;
pub use durability::{Committer, Durable, Waiting};
pub use suite::run;
pub use value::Value;

use crate::Role;

/// The reason why a measurement cannot continue.
pub type Failure = Box<dyn Error + Send + Sync>;

/// A store to measure, for any type of rows.
pub trait Peer: 'static {
    /// The peer's name, as in `--peers`.
    const NAME: &'static str;
    /// The crate whose version is reported; `None` for the standard library.
    const CRATE: Option<&'static str>;
    /// A description of the way in which the peer is used here, and of what makes its transactions
    /// serializable.
    const USE: &'static str;
    /// The peer's role among the others.
    const ROLE: Role;
    /// The largest number of threads that can use the peer at the same time.
    const THREADS_MAX: usize = usize::MAX;

    /// The peer's store, with rows that hold a `V`.
    type Store<V: Value>: Store<V>;
}

/// The numbers of tables and rows.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// The number of tables.
    pub tables: usize,
    /// The number of rows in each table, with keys from 0.
    pub rows: u64,
}

/// The place of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The table's number, from 0.
    pub table: usize,
    /// The row's key.
    pub key: u64,
}

/// An open store.
pub trait Store<V: Value>: Sized + Sync {
    /// A thread's session with the store.
    type Session<'s>: Session<V>
    where
        Self: 's;

    /// Opens an empty store.
    fn open(size: Size) -> Result<Self, Failure>;

    /// Fills a table. No other thread may use the store meanwhile.
    fn load(
        &mut self,
        table: usize,
        rows: impl Iterator<Item = (u64, V)> + Send,
    ) -> Result<(), Failure>;

    /// Returns a session for the calling thread.
    fn session(&self) -> Result<Self::Session<'_>, Failure>;
}

/// One thread's session with a store. Both methods run a transaction until it has committed, and
/// repeat it after conflicts.
pub trait Session<V: Value> {
    /// Runs a transaction that only reads.
    fn read<W: Reading<V>>(&mut self, work: &W) -> Result<Done<W::Output>, Failure>;

    /// Runs a transaction that may write.
    fn write<W: Writing<V>>(&mut self, work: &W) -> Result<Done<W::Output>, Failure>;
}

/// A transaction that has committed.
#[derive(Debug, Clone, Copy)]
pub struct Done<T> {
    /// The result of the transaction's body.
    pub output: T,
    /// The number of repetitions after conflicts.
    pub retries: u64,
}

/// The body of a transaction that only reads.
pub trait Reading<V: Value> {
    /// The result of the transaction's body.
    type Output;

    /// Returns all rows that the body may touch, each once. Some stores need these rows beforehand.
    fn places(&self) -> impl Iterator<Item = Place>;

    /// Runs the body. The body may run several times.
    fn run<X: Read<V>>(&self, tx: &mut X) -> Result<Self::Output, Stopped>;
}

/// The body of a transaction that may write.
pub trait Writing<V: Value> {
    /// The result of the transaction's body.
    type Output;

    /// Returns all rows that the body may touch, each once. Some stores need these rows beforehand.
    fn places(&self) -> impl Iterator<Item = Place>;

    /// Runs the body. The body may run several times. The body decides before its first write
    /// whether to write.
    fn run<X: Write<V>>(&self, tx: &mut X) -> Result<Self::Output, Stopped>;
}

/// A transaction that is running.
pub trait Read<V: Value> {
    /// Returns the contents of a row. No row is ever missing: all rows were loaded, and none is
    /// deleted.
    fn get(&mut self, place: Place) -> Result<V, Stopped>;
}

/// A transaction that is running and may write.
pub trait Write<V: Value>: Read<V> {
    /// Overwrites a row.
    fn put(&mut self, place: Place, value: V) -> Result<(), Stopped>;

    /// Reads a row and overwrites it with the changed value. Returns the result of `change`. Stores
    /// that can read and overwrite with one lookup override this method.
    fn modify<T>(&mut self, place: Place, change: impl Fn(&mut V) -> T) -> Result<T, Stopped> {
        let mut value = self.get(place)?;
        let output = change(&mut value);
        self.put(place, value)?;
        Ok(output)
    }
}

/// The reason why the body of a transaction was not finished.
#[derive(Debug)]
pub enum Stopped {
    /// There was a conflict: the transaction has to be repeated.
    Conflict,
    /// The transaction cannot be completed.
    Failed(Failure),
}

impl From<Abort> for Stopped {
    fn from(abort: Abort) -> Stopped {
        if abort.is_conflict() { Stopped::Conflict } else { failed(abort) }
    }
}

/// Converts an error that is not a conflict into a [`Stopped`].
fn failed(error: impl Into<Failure>) -> Stopped {
    Stopped::Failed(error.into())
}

/// Returns the contents of a row, or an error if the row was not found.
#[inline]
fn there<T>(found: Option<T>, place: Place) -> Result<T, Stopped> {
    found.ok_or_else(|| failed(format!("row {} of table {} is not there", place.key, place.table)))
}

/// Repeats `attempt` as long as it ends in conflicts. If `pause` is not zero, sleeps for that time
/// after each conflict.
#[cfg(any(feature = "surrealmx", feature = "fjall", feature = "rocksdb"))]
fn repeat<T>(
    pause: Duration,
    mut attempt: impl FnMut() -> Result<T, Stopped>,
) -> Result<Done<T>, Failure> {
    let mut retries = 0;
    loop {
        match attempt() {
            Ok(output) => return Ok(Done { output, retries }),
            Err(Stopped::Conflict) => {
                retries += 1;
                if !pause.is_zero() {
                    std::thread::sleep(pause);
                }
            }
            Err(Stopped::Failed(failure)) => return Err(failure),
        }
    }
}

/// Runs `attempt` once, in a store without conflicts.
fn once<T>(attempt: impl FnOnce() -> Result<T, Stopped>) -> Result<Done<T>, Failure> {
    match attempt() {
        Ok(output) => Ok(Done { output, retries: 0 }),
        Err(Stopped::Conflict) => {
            Err("a transaction without concurrent ones meets no conflict".into())
        }
        Err(Stopped::Failed(failure)) => Err(failure),
    }
}
