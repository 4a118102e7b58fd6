//! The end of objects without names.

#![forbid(unsafe_code)]

use super::cell::Cell;
use crate::api::{Table, run_cached};
use crate::catalog::Cells as DroppedCells;
use crate::engine::{Protocol, ReadView, TableCore};
use crate::error::Abort;
use crate::handle::Handle;
use crate::log::Level;
use crate::txn::{RunOptions, Tx};
use std::any::TypeId;
use std::sync::Arc;

/// The largest number of cells of dropped objects that one transaction deletes.
const DELETED_AT_ONCE: u64 = 64;

/// What belongs to an object without a name. It is dropped with the last handle of the object,
/// perhaps within a transaction. Therefore it is only put aside here, for later objects.
pub(super) struct Owner<P: Protocol> {
    inner: Handle<P>,
    table: Arc<TableCore>,
    owned: Owned,
}

/// The part of a table that an object has.
pub(super) enum Owned {
    /// This number of cells from the first on.
    Cells(u64, u64),
    /// The whole table, whose rows are of this type.
    Table(TypeId),
}

impl<P: Protocol> Owner<P> {
    pub(super) fn new(inner: &Handle<P>, table: &Arc<TableCore>, owned: Owned) -> Owner<P> {
        Owner { inner: inner.clone(), table: table.clone(), owned }
    }
}

impl<P: Protocol> Drop for Owner<P> {
    fn drop(&mut self) {
        let unnamed = &self.inner.catalog.unnamed;
        match self.owned {
            Owned::Cells(first, count) => {
                unnamed.drop_cells(DroppedCells { table: self.table.clone(), first, count });
            }
            Owned::Table(row) => {
                let epoch = self.inner.engine.epochs.now();
                unnamed.drop_table(row, self.table.clone(), epoch);
            }
        }
    }
}

/// Runs a transaction of the engine's own. It need not be durable when this returns: the commit of
/// each transaction that uses what it has made rests on it.
pub(super) fn run_internal<T, P: Protocol>(
    inner: &Handle<P>,
    body: impl FnMut(&Tx<'_, P>) -> Result<T, Abort>,
) -> Result<T, Abort> {
    let options = RunOptions::new().acknowledge(Level::Memory);
    run_cached(inner, &options, ReadView::Current, body)
}

/// Deletes some cells of objects that were dropped, in a transaction of its own. If that fails,
/// leaves the cells for a later call.
pub(super) fn delete_dropped<P: Protocol>(inner: &Handle<P>) -> Result<(), Abort> {
    let dropped = inner.catalog.unnamed.take_cells(DELETED_AT_ONCE);
    if dropped.is_empty() {
        return Ok(());
    }
    let deleted = run_internal(inner, |tx| {
        for DroppedCells { table, first, count } in &dropped {
            // A delete looks at no value, so the type of the values does not matter.
            let cells = Table::<Cell<u64>, P>::new(inner.clone(), table.clone());
            for number in *first..first + count {
                if table.has_values {
                    tx.state.borrow_mut().note_value_write(tx.engine, table)?;
                }
                cells.delete_if_present(tx, number)?;
            }
        }
        Ok(())
    });
    if deleted.is_err() {
        dropped.into_iter().for_each(|cells| inner.catalog.unnamed.drop_cells(cells));
    }
    deleted
}
