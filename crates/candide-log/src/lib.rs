//! The log, checkpoints and recovery of a main-memory database, in terms of tables, keys and words.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod checkpoint;
mod directory;
pub mod disk;
pub mod error;
pub mod format;
#[cfg(feature = "simulation")]
pub mod laboratory;
mod log;
pub mod mutants;
mod names;
mod random;
pub mod rows;
pub mod schema;
pub mod store;
pub mod target;
pub mod tools;

pub use error::{OpenError, StoreError, WriteError};
pub use rows::Rows;
pub use schema::{IndexSchema, TableSchema};
pub use store::{LogWriter, Progress, Recovered, Store, StoreOptions};
pub use target::{LoadError, Loader, Target};
