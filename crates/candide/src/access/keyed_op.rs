//! An operation on a row whose key the commit computes.

#![forbid(unsafe_code)]

use super::item::Intent;

/// An operation on a row whose key the commit computes (`keyed.rs`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyedOp {
    /// The number of the row's table.
    pub(crate) table: u16,
    pub(crate) intent: Intent,
    /// The units that the operation changes, one bit each.
    pub(crate) units: u64,
    /// The number of the key in the list of steps.
    pub(crate) key: u32,
    /// The number of the first step, and that of its code. Each unit has a step, but for a delete.
    pub(crate) step: u32,
    pub(super) code: u32,
    /// The number of words of all units.
    pub(crate) words: usize,
}
