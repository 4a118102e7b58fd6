//! The knobs.

use serde::Serialize;

/// The knobs.
#[derive(Debug, Clone, Serialize)]
pub struct Random {
    /// The number of keys of each table, from 0. Half of the keys have a row at first.
    pub keys: u32,
    /// The largest number of operations in a transaction.
    pub operations: usize,
}

impl Default for Random {
    /// Returns a number of keys that is small enough for most transactions to conflict with others.
    fn default() -> Random {
        Random { keys: 24, operations: 8 }
    }
}
