//! Checkpoints: how their parts are read and written, and how the log is merged into the next one.

pub(crate) mod merge;
pub(crate) mod order;
pub(crate) mod pace;
pub(crate) mod read;
pub(crate) mod write;
