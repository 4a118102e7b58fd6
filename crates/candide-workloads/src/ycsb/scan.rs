//! Scans that check that they find every key.

use std::hint::black_box;
use std::ops::Range;

use candide::{Abort, Ordered, Protocol, Table, Tx, Whole};

use super::layout::Layout;
use super::row::UserRow;

/// Scans the whole rows of a range of keys. Returns whether the scan found each key of the range
/// once and in order. In a table from which no row is ever deleted, every scan must do so.
pub(crate) fn scan_all<L: Layout<Index = Ordered>, P: Protocol>(
    table: &Table<UserRow<L>, P>,
    tx: &Tx<'_, P>,
    range: Range<u64>,
) -> Result<bool, Abort> {
    let (mut next, end) = (range.start, range.end);
    let mut in_order = true;
    for row in table.scan(tx, range, Whole) {
        let (key, row) = row?;
        black_box(row);
        in_order &= key == next;
        next += 1;
    }
    Ok(in_order && next == end)
}
