//! The log, checkpoints and recovery of a main-memory database, in terms of tables, keys and words.
//!
//! An engine keeps its rows in memory and hands over *commit records*: which words of which rows a
//! commit has changed. This crate makes them durable, and puts the rows back when the database is
//! opened again. The crate has no notion of transactions or of types of rows.
//!
//! # A database's directory
//!
//! | file | contents |
//! |---|---|
//! | `MANIFEST`, `MANIFEST.copy` | the tables, the checkpoint in force, the first segment that recovery needs |
//! | `log-NNNNNNNNNN` | a segment of the log: blocks of commit records, each of which closes a *cut* |
//! | `checkpoint-NNNNNNNNNN-PPPP` | a part of a checkpoint: rows, and the records above its cut |
//! | `spare-NNNNNNNNNN` | a file that will become a segment |
//! | `REMOTE` | what a copy of the log elsewhere has noted |
//! | `LOCK` | what a process locks as long as it has the database open |
//!
//! Recovery loads the checkpoint in force and replays the log behind it up to the last cut: all
//! commits with stamps up to the cut, and no others. Each opening begins a new *generation* of the
//! log. `docs/file-format.md` describes every byte, `docs/durability.md` the guarantees.
//!
//! # Layers
//!
//! | module | what it has |
//! |---|---|
//! | [`tools`] | checking, repairing, copying and listing the files of a database that is not in use |
//! | [`store`] | a database that is open: opening, checkpoints beside the writer, backups |
//! | `checkpoint`, `log` | reading and writing parts, merging; segments, blocks, replay |
//! | [`rows`], [`target`] | what recovery loads: an engine's tables, or maps |
//! | [`error`] | what can go wrong |
//! | [`sum`] | sums over rows, by which copies are compared |
//! | [`disk`] | the door to the file system: [`RealDisk`](disk::RealDisk), or a disk of a test |
//! | `text` | rows as JSON and comma-separated values; with the cargo feature `text` |
//! | [`format`](mod@format), [`schema`] | the bytes of every file, as pure functions; what is known of a table |
//!
//! # Where to begin
//!
//! An engine calls [`Store::open`] with a [`Target`], then [`Store::add_table`] and
//! [`LogWriter::write`]; `examples/recovery.rs` is the shortest program that does. A reader of the
//! source begins with [`format`](mod@format), continues with `log/writer.rs` and `log/reader.rs`,
//! and then with `store/open.rs`. Tests run on the simulated disk of the crate
//! `candide-log-testing`, which can produce every state that a crash can leave.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

// Layers, lowest first: names, schema, format, text, random, sum, disk, error, target, stored_row,
// rows, directory, log, checkpoint, store, tools.
mod checkpoint;
mod directory;
pub mod disk;
pub mod error;
pub mod format;
mod log;
mod names;
mod random;
pub mod rows;
pub mod schema;
pub mod store;
mod stored_row;
pub mod sum;
pub mod target;
#[cfg(feature = "text")]
pub mod text;
pub mod tools;

pub use error::{LoadError, OpenError, StoreError, WriteError};
pub use log::batches;
pub use rows::Rows;
pub use schema::{IndexSchema, TableSchema};
pub use store::{LogWriter, Progress, Recovered, Store, StoreOptions};
pub use stored_row::{LongColumn, LongColumns};
pub use target::{Loader, Target};
