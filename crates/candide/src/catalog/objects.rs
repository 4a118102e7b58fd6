//! The objects of a database that have no names: their numbers, and what dropped ones leave behind
//! for new ones.

#![forbid(unsafe_code)]

use crate::engine::TableCore;
use crate::epoch::Epoch;
use crate::sync::{AtomicU64, Mutex, Ordering, lock};
use std::any::TypeId;
use std::sync::Arc;

/// The beginning of the names of all tables that hold objects. Programs cannot name them, but
/// they are locked as the program's tables are.
pub(crate) const OBJECT_TABLES: &str = "candide.object.";

/// The objects of a database that have no names.
#[derive(Debug, Default)]
pub(crate) struct Unnamed {
    cells: AtomicU64,
    tables: AtomicU64,
    dropped_cells: Mutex<Vec<Cells>>,
    free_tables: Mutex<Vec<FreeTable>>,
}

/// Cells of an object that was dropped: rows with consecutive numbers. They are not given away
/// again, since a transaction that runs may still write them.
#[derive(Debug)]
pub(crate) struct Cells {
    pub(crate) table: Arc<TableCore>,
    pub(crate) first: u64,
    pub(crate) count: u64,
}

/// The table of an object that was dropped.
#[derive(Debug)]
struct FreeTable {
    row: TypeId,
    table: Arc<TableCore>,
    dropped: Epoch,
}

impl Unnamed {
    /// Returns the first of `count` consecutive numbers, for cells of a new object.
    pub(crate) fn number_cells(&self, count: u64) -> u64 {
        // Relaxed: the counter carries no data.
        self.cells.fetch_add(count, Ordering::Relaxed)
    }

    /// Returns a number for a new table.
    pub(crate) fn number_table(&self) -> u64 {
        self.tables.fetch_add(1, Ordering::Relaxed)
    }

    /// Takes the cells of a dropped object. A later call of [`Unnamed::take_cells`] returns them.
    pub(crate) fn drop_cells(&self, cells: Cells) {
        lock(&self.dropped_cells).push(cells);
    }

    /// Returns up to `most` cells of dropped objects, for the caller to delete.
    pub(crate) fn take_cells(&self, mut most: u64) -> Vec<Cells> {
        let mut dropped = lock(&self.dropped_cells);
        let mut taken = Vec::new();
        while most > 0
            && let Some(cells) = dropped.last_mut()
        {
            let count = cells.count.min(most);
            (most, cells.count) = (most - count, cells.count - count);
            let first = cells.first + cells.count;
            taken.push(Cells { table: cells.table.clone(), first, count });
            if cells.count == 0 {
                dropped.pop();
            }
        }
        taken
    }

    /// Takes the table of a dropped object, in epoch `dropped`.
    pub(crate) fn drop_table(&self, row: TypeId, table: Arc<TableCore>, dropped: Epoch) {
        lock(&self.free_tables).push(FreeTable { row, table, dropped });
    }

    /// Returns the table of a dropped object with rows of this type, if all transactions that may
    /// have staged writes of it have ended: `bound` is the epoch of the oldest pin.
    pub(crate) fn take_table(&self, row: TypeId, bound: Epoch) -> Option<Arc<TableCore>> {
        let mut free = lock(&self.free_tables);
        let place = free.iter().position(|free| free.row == row && free.dropped < bound)?;
        Some(free.swap_remove(place).table)
    }
}
