//! Tests of version chains in the order of timestamps.

pub(crate) mod chains;
pub(crate) mod deltas;
mod linking;
mod merging;
