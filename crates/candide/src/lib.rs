//! Serializable main-memory transactions for Rust programs: closures over typed tables, run on
//! every core.
//!
//! A program opens a [`Database`], defines tables of plain rows, and runs closures on these tables
//! from any number of threads. Each closure takes effect completely or not at all, as if the
//! closures ran one after another. A database is in memory. If it has been [opened](Database::open)
//! in a directory, every change is logged there too, and the next `open` finds all that was
//! durable.
//!
//! [The guide](guide) explains [keys](guide#keys), [rows and groups](guide#rows-and-groups),
//! [reading](guide#reading), [writing](guide#writing), [updates and
//! guards](guide#updates-and-guards), [when to defer](guide#when-to-defer),
//! [numbers for new rows](guide#numbers-for-new-rows),
//! [errors](guide#errors), [scans](guide#scans), [secondary indexes](guide#secondary-indexes),
//! [files](guide#files), [threads and sessions](guide#threads-and-sessions), [waiting for a
//! change](guide#waiting-for-a-change), [objects](guide#objects), [bulk load, export and
//! import](guide#bulk-load-export-and-import), [watching a database](guide#watching-it) and
//! [costs](guide#costs). Whole programs are in the folder `examples` of the crate, among them a
//! ledger, an auction, an inventory, a shop in files.
//!
//! # A first program
//! ```
//! use candide::{Abort, Database, Record, Whole};
//!
//! /// The balance has a version of its own: reading the owner never conflicts with a transfer.
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
//!         // Updates read nothing, so other transfers do not disturb them.
//!         accounts.update(tx, 1, Account::CENTS.sub(cents).at_least(0))?;
//!         accounts.update(tx, 2, Account::CENTS.add(cents))?;
//!         accounts.read(tx, 2, (Account::OWNER, Account::CENTS)) // sees the pending update
//!     })
//! };
//! assert_eq!(transfer(300), Ok((20, 300)));
//! assert_eq!(transfer(300), Err(Abort::Guard)); // and nothing has happened
//! let first = db.run(|tx| accounts.read(tx, 1, Whole));
//! assert_eq!(first, Ok(Account { id: 1, owner: 10, cents: 200 }));
//! # Ok::<(), candide::Error>(())
//! ```
//!
//! [`Database::run`] runs a closure as a transaction, **again after every conflict**, until the
//! transaction commits. So a closure must have no effects outside the database; an effect that must
//! happen once goes into [`Tx::on_commit`]. The closure returns an [`Abort`] if it fails;
//! [`Database::try_run`] takes a closure with an error type of its own. [`Database::read_view`]
//! runs a closure that only reads, and [`Database::with`] takes options. A [`Session`] has the same
//! functions. Calls outside of transactions return an [`Error`], to which all errors of the crate
//! convert.
//!
//! # Protocols
//! `Database::<Mvcc>::default()` has another protocol than [`Occ`], and so has its
//! [`builder`](Database::builder); an [`AnyDatabase`](any::AnyDatabase) has one chosen at run time.
//! [The list](protocols) says what each guarantees and which programs it suits. No attempt ever
//! sees half of a write; under [`TicToc`] and [`Mvto`], and under `Occ` [if so
//! configured](Builder::opaque), an attempt that will be repeated may see values of different
//! times, which [`Tx::validate`] finds out. [`Mvcc`] and `Mvto` have [snapshots](Snapshot).
//!
//! # Limits
//! <details><summary>What a row, a key, a table and a database can have at most</summary>
//!
#![doc = include_str!("limits.txt")]
//!
//! </details>
//!
//! Columns of other types than `String`, `Vec<u8>` and JSON have a fixed size. All rows are in
//! memory, also those of a database that lies in files. Forking a process with open databases is
//! not supported. With `panic = "abort"` a panic ends the process, even a panic of an attempt that
//! is doomed.

#![warn(missing_docs)]
// Tests that are left out under sanitizers are the only users of some functions.
#![cfg_attr(all(test, sanitized), allow(dead_code, unused_imports))]

// Declared first, so that the test modules below can use its macros.
#[cfg(all(test, not(any(loom, shuttle))))]
#[macro_use]
#[path = "tests/protocol_tests.rs"]
mod protocol_tests;

// Layers, lowest first: sync, timestamps, factor, unknown_name, policy, error, stats, memory,
// log, epoch, schema, record, index, access, engine, locks, protocols, gc, txn, catalog,
// durable, shared, handle, api, objects, serde.
mod access;
mod api;
mod catalog;
mod durable;
mod engine;
mod epoch;
mod error;
mod factor;
mod gc;
mod handle;
mod index;
mod locks;
mod log;
mod memory;
pub mod objects;
pub mod policy;
pub mod protocols;
mod record;
pub mod schema;
#[cfg(feature = "serde")]
mod serde;
mod shared;
mod stats;
mod sync;
#[cfg(test)]
mod tests;
mod timestamps;
mod txn;
mod unknown_name;

pub use api::{Arithmetic, Inputs, Later, Settle};
pub use api::{Builder, CloseError, Database, Durability, LoadOptions, LogOptions};
pub use api::{Index, IndexOptions, IndexScan, Row, Scan, Sequence, Table, TableHandle, ValuesOf};
pub use api::{Pending, Position};
pub use api::{Runner, Session, Snapshot};
#[cfg(feature = "derive")]
pub use candide_derive::{Field, Key, Record, Tables};
#[doc(no_inline)]
pub use candide_log::OpenError;
pub use catalog::{Migration, TableOptions};
pub use engine::{Protocol, Versioned};
pub use error::{Abort, Error, StreamError};
pub use log::Level;
pub use protocols::list::*;
#[cfg(any(test, feature = "history"))]
pub use protocols::recorded as history;
#[cfg(feature = "json")]
pub use record::Json;
pub use schema::codec::Codec;
pub use schema::column::{Column, Whole};
pub use schema::field::{Bytes, Text};
pub use schema::group::Group;
pub use schema::index_spec::{Hashed, Ordered};
pub use schema::key::Key;
pub use schema::prefix::{Begins, Equals};
pub use schema::range::Prefix;
pub use schema::record::Record;
pub use txn::{RunOptions, Tx};
pub use unknown_name::UnknownName;

/// Copies of the log of a database elsewhere: what a crate implements that makes them.
pub mod remote {
    #[doc(no_inline)]
    pub use candide_log::store::{CheckpointParts, PartRows};
    pub use candide_log::store::{Feed, LocalBlock, LocalBlocks, LogPlace, Run, Unopened};
    #[doc(no_inline)]
    pub use candide_log::store::{Remote, Replies};
}

/// Databases whose protocol is chosen at run time.
pub mod any {
    pub use crate::api::{AnyDatabase, AnyIndex, AnySequence, AnySession, AnyTable, AnyTx};
    pub use crate::protocols::erased::{Chosen, Erased};
}

/// Deferred operations: the traits of what goes into a step ([`Table::defer`]), and of what comes
/// out of a transaction with steps ([`Database::run_deferred`]).
pub mod deferred {
    pub use crate::api::{Arithmetic, Inputs, Settle, Values};
}

/// The reports of a database: counts, its health, the memory that it uses, the conflicts of a
/// transaction, and the progress of its log.
pub mod report {
    pub use crate::api::{Health, MemoryUse, OldestPin, OldestSnapshot, TableUse};
    #[cfg(feature = "histograms")]
    pub use crate::stats::{Latency, NamedAborts};
    pub use crate::stats::{LockStats, NamedStats, Stats};
    pub use crate::txn::{Conflict, Outcome};
    #[doc(no_inline)]
    pub use candide_log::Progress;
    #[doc(no_inline)]
    pub use candide_log::store::{BackedUp, Checkpointed};
    #[cfg(feature = "text")]
    #[doc(no_inline)]
    pub use candide_log::text::Fault;
}

/// Choices that benchmarks compare: basis factors and sources of timestamps; the free memory, by
/// which benchmarks choose their sizes; and rows as words, which their checks read. These names
/// exist only in builds with the cargo feature `experiments`. By default no bad factor is chosen.
/// No choice changes the guarantees. [`Builder::factors`], [`Builder::timestamps`] and
/// [`TableOptions::contention_aware_keys`] take these choices.
///
/// ```
/// use candide::experiments::{Factor, Timestamps};
/// use candide::{Database, Error, Mvto, Occ};
///
/// let by_clock = Database::<Mvto>::builder().timestamps(Timestamps::Clock);
/// let db = by_clock.factors([Factor::NoBackoff]).build()?;
/// # let _ = db;
/// let none = Database::<Occ>::builder().timestamps(Timestamps::Clock).build();
/// assert!(matches!(none, Err(Error::Timestamps { protocol: "occ", .. })));
/// # Ok::<(), Error>(())
/// ```
#[cfg(any(test, feature = "experiments"))]
pub mod experiments {
    pub use crate::api::TableWords;
    pub use crate::factor::Factor;
    pub use crate::memory::free_memory;
    pub use crate::timestamps::Timestamps;
}

pub mod guide {
    #![doc = include_str!("../GUIDE.md")]
    //!
    //! # Limits
    #![doc = include_str!("limits.txt")]
    #[expect(unused_imports, reason = "the guide names them")]
    use crate::{any::*, policy::*, report::*, schema::*, *};
}

/// Databases that follow another one: what applies its commits to a database that the program only
/// reads. `candide-reach` makes a standby of it.
pub mod replica {
    pub use crate::api::{ChangedElsewhere, NOTE_WORDS, Note, Replica, ReplicaError, is_own_table};
    pub use crate::engine::Replicable;
}

/// Items that code made by the derive macros uses. Hand-written code must not use them.
#[doc(hidden)]
pub mod derived {
    pub use crate::schema::codec::decode;
    pub use crate::schema::column_type::{ColumnType, FieldPart};
    pub use crate::schema::field_type::{LongCheck, check_default};
    pub use crate::schema::key_limit::KeyLimit;
    pub use crate::schema::key_text::{Show, show_components, show_variant};
    pub use crate::schema::long_key::LongKey;
    pub use crate::schema::nested::{Parts, most_bits, no_tag};
    pub use crate::schema::packing::{Packing, join, no_variant};
    pub use crate::schema::place::Place;
    pub use crate::schema::range::{Beginning, WordRange};
    pub use crate::schema::record::{key_layout, schema_hash};
    pub use crate::schema::summand::Newtype;
}
