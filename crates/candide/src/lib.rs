//! Main-memory transactions for Rust programs: closures over typed tables, serializable, from every core.

#![warn(missing_docs)]

mod access;
mod db;
mod epoch;
mod error;
mod index;
mod memory;
mod protocol;
mod record;
mod session;
mod stats;
mod sync;
mod table;
#[cfg(test)]
mod tests;
mod txn;

pub use db::{Builder, Database, MemoryUse, TableOptions};
pub use error::{Abort, Error};
pub use protocol::recorded as history;
pub use protocol::{GlobalLock, Occ, Protocol, Serial};
pub use record::{
    Buffer, Bytes, Column, ColumnUpdate, Field, Group, Key, Number, Projection, Record, Refused, Text, TextTooLong,
    Update, Updater, Whole,
};
pub use session::{Conflict, Session};
pub use stats::Stats;
pub use table::{Row, Table};
pub use txn::{RunOptions, Tx};
