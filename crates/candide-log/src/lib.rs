//! The log, checkpoints and recovery of a main-memory database, in terms of tables, keys and words.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod disk;
mod error;
pub mod format;
pub mod schema;
mod stub;
mod target;
pub use error::*;
pub use stub::*;
pub use target::*;
