//! Tables of text.

use std::ops::Range;

use comfy_table::{CellAlignment, Table, presets};

/// Returns an empty table whose columns in `numbers` are aligned to the right, as numbers are.
pub(crate) fn table(header: &[&str], numbers: Range<usize>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    for index in numbers {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}
