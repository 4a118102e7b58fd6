//! The log: its segments, how they are read, and how they are written.

pub mod batches;
pub(crate) mod reader;
pub(crate) mod replay;
pub(crate) mod segments;
pub(crate) mod spares;
pub(crate) mod writer;
