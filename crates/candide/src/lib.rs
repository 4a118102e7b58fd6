//! Main-memory transactions for Rust programs: closures over typed tables, serializable, from every core.
//!
//! A program opens a [`Database`], defines tables of plain rows, and runs closures on them from as many threads as it likes.
//! Each closure happens as if it were alone: all of it or nothing, in some order that everybody agrees on. Nothing is
//! written to disk.
//!
//! ```
//! use candide::{Abort, Database, Record, Whole};
//!
//! /// An account. The balance is a column group of its own: reading the owner never conflicts with a transfer.
//! #[derive(Record, Clone, Copy, Debug, PartialEq)]
//! struct Account {
//!     #[key]
//!     id: u64,
//!     owner: u32,
//!     #[group(balance)]
//!     cents: i64,
//! }
//!
//! let db = Database::new();
//! let accounts = db.table::<Account>("accounts")?;
//! db.run(|tx| {
//!     accounts.insert(tx, Account { id: 1, owner: 10, cents: 500 })?;
//!     accounts.insert(tx, Account { id: 2, owner: 20, cents: 0 })
//! })?;
//!
//! let transfer = |cents| {
//!     db.run(|tx| {
//!         accounts.update(tx, &1, Account::CENTS.sub(cents).at_least(0))?; // no read, so no conflict
//!         accounts.update(tx, &2, Account::CENTS.add(cents))?;
//!         accounts.read(tx, &2, (Account::OWNER, Account::CENTS)) // sees the pending update
//!     })
//! };
//! assert_eq!(transfer(300), Ok((20, 300)));
//! assert_eq!(transfer(300), Err(Abort::Guard)); // and nothing has happened
//! assert_eq!(db.run(|tx| accounts.read(tx, &1, Whole)), Ok::<_, Abort>(Account { id: 1, owner: 10, cents: 200 }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Transactions
//! [`Session::run`] (and [`Database::run`], with a session kept for the thread) runs a closure **again after every
//! conflict**, so closures have no effects outside the database; what is to happen once goes into [`Tx::on_commit`]. The
//! closure's error type is its own and converts from [`Abort`]. Errors and panics reach the caller only if what they were based
//! on is true in the serial order; the transaction then has had no effect.
//!
//! # Rows, groups and projections
//! A [`Record`](macro@Record) is plain data, kept inline in 64-bit words. Its groups are the units of conflict; declaring one
//! is all there is to timestamp splitting. A read names what it wants as a value, a [`Column`], a tuple, or [`Whole`], and observes
//! exactly the groups those lie in.
//!
//! # Updates
//! [`Table::update`] is blind: it applies built-in operations ([`Column::add`], [`Column::set`], guards such as
//! [`ColumnUpdate::at_least`]) or an [`Updater`] of one's own when the transaction commits, and conflicts with nobody who
//! does not look. [`Table::modify`] reads, calls a closure, and writes back. A row found by [`Table::find`] is not
//! looked up again, and [`Table::find_many`] overlaps the cache misses of many.
//!
//! A transaction that reads a row everybody writes, and then takes its time, may have to run again many times.
//! [`Table::get_for_update`] locks what it reads, so that writers wait for it instead.
//!
//! | on a row that is … | [`get`](Table::get) | [`read`](Table::read) | [`insert`](Table::insert) | [`put`](Table::put) | [`update`](Table::update), [`modify`](Table::modify), [`delete`](Table::delete) |
//! |---|---|---|---|---|---|
//! | there | `Some` | the value | `Duplicate` | replaces it | do it |
//! | not there | `None` | `NotFound` | inserts it | inserts it | `NotFound` |
//!
//! All of them see what the transaction itself has done before. Outcomes are part of the transaction: whoever saw
//! `NotFound` commits only if the row is still missing.
//!
//! # Protocols
//! | type | name | readers | writers | guarantee |
//! |---|---|---|---|---|
//! | [`Occ`] (default) | `occ` | never wait for readers, validate at commit | lock at commit | strictly serializable |
//! | [`GlobalLock`] | `global-lock` | wait for everybody | wait for everybody | one after another |
//! | [`Serial`] | `serial` | | one session, nothing to wait for | one after another |
//!
//! Under `Occ` an attempt that is going to be repeated may see values of different times before it is; it never sees
//! half of a write.
//!
//! # Memory
//! Deleted rows are freed within a few milliseconds of the last transaction that could see them, also while their session is
//! idle. [`Builder::memory_limit`] bounds what tables and indexes take. Freed records serve their own table again; they do not
//! go back to the operating system before the database is dropped.
//!
//! # Watching it
//! [`Database::stats`] and [`Session::stats`] count what became of transactions. [`Tx::last_conflict`] tells a closure why it is
//! run again, [`Session::last_conflict`] tells afterwards; a [`Conflict`] names table, group and key. [`Database::health`] says how
//! much garbage there is and which session keeps it from being freed, [`Database::tables`] what each table takes.
//!
//! With the cargo feature `tracing` (off by default; nothing of it is compiled then) conflicts are events of the crate of that
//! name: one for each at level `DEBUG`, target `candide::conflict`, with the fields `cause`, `table`, `group`, `key` and `attempt`;
//! and one at level `WARN`, target `candide::token`, with `session` and `conflicts`, when a transaction has met so many that
//! others have to give way to it. They come when the attempt is over and holds nothing, so a subscriber may use the
//! database (with another session).
//!
//! # Limits
//! 65,535 tables, 64 groups and 512 KiB a row, 32 words (about 250 bytes) a key. Keys are found by equality; ordered
//! tables and scans are not there yet. Forking a process with open databases is not supported. `panic = "abort"` turns the
//! panic of a doomed attempt into the end of the process.

#![warn(missing_docs)]

mod access;
mod bulk;
mod db;
mod epoch;
mod error;
mod health;
mod index;
mod memory;
mod protocol;
mod record;
mod scan;
mod secondary;
mod session;
mod stats;
mod stream;
mod sync;
mod table;
#[cfg(test)]
mod tests;
mod txn;

pub use bulk::LoadOptions;
#[cfg(feature = "derive")]
pub use candide_derive::{Key, Record};
pub use db::{Builder, Database, MemoryUse, TableOptions};
pub use error::{Abort, Error};
pub use health::{Health, OldestPin, TableUse};
pub use protocol::recorded as history;
pub use protocol::{GlobalLock, Occ, Protocol, Serial};
pub use record::{
    Buffer, Bytes, Column, ColumnKind, ColumnUpdate, Field, Free, Group, Hashed, IndexKind, IndexOf, IndexSpec,
    Indexed, Key, KeyColumn, KeyPrefix, KeyRange, Number, Ordered, Prefix, Projection, Record, Refused, Text,
    TextTooLong, Updatable, Update, Updater, Whole,
};
pub use scan::Scan;
pub use secondary::{Index, IndexOptions, IndexScan};
pub use session::Session;
pub use stats::Stats;
pub use stream::StreamError;
pub use table::{Row, Table};
pub use txn::{Conflict, RunOptions, Tx};

/// What code made by the derive macros uses. Not for use by hand.
#[doc(hidden)]
pub mod derived {
    pub use crate::record::packing::{ColumnType, Packing, join, no_variant};
    pub use crate::record::{OneWord, Place, WordRange, schema_hash};
}

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct ReadmeExamples;
