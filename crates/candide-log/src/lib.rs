//! The log, checkpoints and recovery of a main-memory database, in terms of tables, keys and words.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod disk;
pub mod format;
pub mod schema;
