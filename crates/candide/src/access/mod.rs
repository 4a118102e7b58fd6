//! The write set of a transaction.

#![forbid(unsafe_code)]

mod filter;
mod operations;
mod write_set;

pub(crate) use write_set::{Failure, Mark, WriteItem};
pub use write_set::{Intent, WriteSet};
