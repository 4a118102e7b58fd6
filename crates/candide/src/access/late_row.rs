//! A row whose key the commit computes.

#![forbid(unsafe_code)]

use crate::record::CellAt;

/// A row whose key the commit computes (`late_rows.rs`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct LateRow {
    /// The unit whose first word is the number of the next row.
    pub(crate) base: CellAt,
    /// What the transaction has added to that number before it appended this row.
    pub(crate) before: i64,
    /// The number of the row's table.
    pub(crate) table: u16,
    /// The position of the row's words among the operands.
    pub(super) image: u32,
    /// The number of the late row of the same base before this one, or `NONE`.
    pub(super) older: u32,
    /// Whether the row has been staged with its key.
    pub(super) is_settled: bool,
}

impl LateRow {
    /// Returns the row's key. `number` is the number in the base without what the transaction adds.
    pub(crate) fn key_after(&self, number: u64) -> u64 {
        number.wrapping_add_signed(self.before)
    }
}
