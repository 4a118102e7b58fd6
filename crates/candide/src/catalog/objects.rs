//! The objects of a database that have no names: their numbers, and what dropped ones leave behind.

#![forbid(unsafe_code)]

use crate::engine::TableCore;
use crate::epoch::{Epoch, Moment};
use crate::sync::{AtomicU64, Mutex, Ordering, lock};
use std::any::TypeId;
use std::collections::VecDeque;
use std::sync::Arc;

/// The beginning of the names of all tables that hold objects. Programs cannot name them, but
/// they are locked as the program's tables are.
pub(crate) const OBJECT_TABLES: &str = "candide.object.";

/// The objects of a database that have no names.
#[derive(Debug, Default)]
pub(crate) struct Unnamed {
    cells: AtomicU64,
    tables: AtomicU64,
    dropped_cells: Mutex<DroppedCells>,
    free_tables: Mutex<Vec<FreeTable>>,
}

/// Cells of an object that was dropped: rows with consecutive numbers. They are not given away
/// again, since a transaction that runs may still write them.
#[derive(Debug)]
pub(crate) struct Cells {
    pub(crate) table: Arc<TableCore>,
    pub(crate) first: u64,
    pub(crate) count: u64,
    /// The epoch in which the object was dropped. A transaction that was pinned before may still
    /// make the cells, or write them.
    pub(crate) dropped: Epoch,
}

#[derive(Debug, Default)]
struct DroppedCells {
    /// The cells, nearly in the order of their epochs.
    cells: VecDeque<Cells>,
    /// The number of cells added since the last deletion began.
    added: u64,
    /// Whether a deletion is under way, or is to come.
    is_awaited: bool,
}

/// The empty table of an object that was dropped.
#[derive(Debug)]
pub(crate) struct FreeTable {
    pub(crate) row: TypeId,
    pub(crate) table: Arc<TableCore>,
    /// The epoch and the moment at which the table was found empty, after its last write.
    pub(crate) emptied: (Epoch, Moment),
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

    /// Takes the cells of a dropped object, for a later call of [`Unnamed::take_cells`]. Returns
    /// whether the caller has to arrange a deletion.
    pub(crate) fn drop_cells(&self, cells: Cells) -> bool {
        let mut dropped = lock(&self.dropped_cells);
        dropped.added += cells.count;
        dropped.cells.push_back(cells);
        !std::mem::replace(&mut dropped.is_awaited, true)
    }

    /// Returns the number of cells added since the last call.
    pub(crate) fn take_added(&self) -> u64 {
        std::mem::take(&mut lock(&self.dropped_cells).added)
    }

    /// Returns up to `most` cells of dropped objects for the caller to delete, but only those that
    /// no running transaction can write: `bound` is the epoch of the oldest pin.
    pub(crate) fn take_cells(&self, bound: Epoch, mut most: u64) -> Vec<Cells> {
        let dropped = &mut lock(&self.dropped_cells).cells;
        let mut taken = Vec::new();
        while most > 0
            && let Some(cells) = dropped.front_mut()
            && cells.dropped < bound
        {
            let count = cells.count.min(most);
            taken.push(Cells { table: cells.table.clone(), count, ..*cells });
            (cells.first, cells.count, most) =
                (cells.first + count, cells.count - count, most - count);
            if cells.count == 0 {
                dropped.pop_front();
            }
        }
        taken
    }

    /// Puts cells back that could not be deleted.
    pub(crate) fn put_back(&self, cells: Vec<Cells>) {
        let dropped = &mut *lock(&self.dropped_cells);
        cells.into_iter().rev().for_each(|cells| dropped.cells.push_front(cells));
    }

    /// Ends a deletion. Returns whether the caller has to arrange another one, since cells are
    /// left.
    pub(crate) fn end_deletion(&self) -> bool {
        let dropped = &mut *lock(&self.dropped_cells);
        dropped.is_awaited = !dropped.cells.is_empty();
        dropped.is_awaited
    }

    /// Takes the empty table of a dropped object, which no transaction writes.
    pub(crate) fn free_table(&self, free: FreeTable) {
        lock(&self.free_tables).push(free);
    }

    /// Returns the table of a dropped object with rows of this type, if there is one of which no
    /// transaction and no snapshot sees a row: `bound` is the epoch of the oldest pin, `oldest` the
    /// moment at which the oldest open snapshot was opened.
    pub(crate) fn take_table(
        &self,
        row: TypeId,
        bound: Epoch,
        oldest: Option<Moment>,
    ) -> Option<Arc<TableCore>> {
        let mut free = lock(&self.free_tables);
        let place = free.iter().position(|free| {
            let (epoch, moment) = free.emptied;
            free.row == row && epoch < bound && oldest.is_none_or(|oldest| moment < oldest)
        })?;
        Some(free.swap_remove(place).table)
    }
}
