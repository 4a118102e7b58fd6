//! What a transaction remembers.

mod write_set;

pub(crate) use write_set::{Failure, WriteItem};
pub use write_set::{Intent, WriteSet};
