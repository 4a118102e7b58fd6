//! Cells: values that objects find by their numbers, in tables that the objects share.

#![forbid(unsafe_code)]

use super::cell::Cell;
use super::owner::Owner;
use super::stored::Stored;
use crate::api::{Row, Table};
use crate::engine::{Protocol, TableCore};
use crate::error::Abort;
use crate::handle::Handle;
use crate::txn::Tx;
use std::sync::Arc;

/// Consecutive cells that belong to one object: what the handles of a box, a counter or an array
/// have in common.
pub(super) struct Cells<V, P: Protocol> {
    pub(super) table: Table<Cell<V>, P>,
    pub(super) first: u64,
    pub(super) count: u64,
    /// What gives the cells back with the last handle; `None` if the object has a name.
    owner: Option<Arc<Owner<P>>>,
}

impl<V, P: Protocol> Clone for Cells<V, P> {
    fn clone(&self) -> Self {
        let Cells { first, count, .. } = *self;
        Cells { table: self.table.clone(), first, count, owner: self.owner.clone() }
    }
}

impl<V: Stored, P: Protocol> Cells<V, P> {
    pub(super) fn new(
        inner: &Handle<P>,
        core: Arc<TableCore>,
        (first, count): (u64, u64),
        owner: Option<Owner<P>>,
    ) -> Cells<V, P> {
        let table = Table::new(inner.clone(), core);
        Cells { table, first, count, owner: owner.map(Arc::new) }
    }

    /// Returns a handle on a cell's record. The caller has checked `index`.
    #[inline]
    pub(super) fn row<'t>(
        &'t self,
        tx: &'t Tx<'_, P>,
        index: u64,
    ) -> Result<Row<'t, Cell<V>, P>, Abort> {
        self.table.find(tx, self.first + index)
    }

    /// Stages the first values of all cells.
    pub(super) fn fill(
        table: &Table<Cell<V>, P>,
        tx: &Tx<'_, P>,
        first: u64,
        values: impl IntoIterator<Item = V>,
    ) -> Result<(), Abort> {
        let cells = values.into_iter().zip(first..);
        table.insert_many(tx, cells.map(|(value, number)| Cell { number, value }))
    }
}
