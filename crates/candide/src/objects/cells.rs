//! Cells: values that objects find by their numbers, in tables that the objects share.

#![forbid(unsafe_code)]

use super::boxed::Boxed;
use super::cell::Cell;
use super::owner::Owner;
use crate::api::{Database, Row, Table, ValueTable, find_table};
use crate::catalog::{OBJECT_TABLES, TableOptions};
use crate::engine::{Protocol, TableCore};
use crate::error::{Abort, Error};
use crate::handle::Handle;
use crate::schema::{Field, Hashed};
use crate::txn::Tx;
use std::any::type_name;
use std::sync::Arc;

/// A table of cells.
pub trait CellTable<P: Protocol>: Clone {
    /// The values of the cells.
    type Value;
    /// Whether the table is in memory only.
    const VOLATILE: bool;

    /// Returns the table that objects with names share, or the one for objects without names.
    fn open(db: &Database<P>, is_named: bool) -> Result<Self, Error>;

    #[doc(hidden)]
    fn shared_core(&self) -> &Arc<TableCore>;

    /// Stages a new cell.
    fn insert(&self, tx: &Tx<'_, P>, number: u64, value: Self::Value) -> Result<(), Abort>;
}

/// The table of boxed values of type `T`.
pub type BoxedCells<T, P> = ValueTable<u64, T, Hashed, P>;

impl<V: Field, P: Protocol> CellTable<P> for Table<Cell<V>, P> {
    type Value = V;
    const VOLATILE: bool = false;

    /// All values of the same number of words share a table.
    fn open(db: &Database<P>, is_named: bool) -> Result<Self, Error> {
        let row = Cell::<V>::row_type();
        let (kind, options) = match is_named {
            true => ("cells", TableOptions::default()),
            false => ("unnamed", TableOptions::default().volatile()),
        };
        let name = format!("{OBJECT_TABLES}{kind}.{}", row.image_words);
        let core = find_table(&db.inner, &name, options, &row)?;
        Ok(Table::new(Handle::of_memory(&db.inner), core))
    }

    fn shared_core(&self) -> &Arc<TableCore> {
        self.shared_core()
    }

    fn insert(&self, tx: &Tx<'_, P>, number: u64, value: V) -> Result<(), Abort> {
        self.insert(tx, Cell { number, value })
    }
}

impl<T: Send + Sync + 'static, P: Protocol> CellTable<P> for BoxedCells<T, P> {
    type Value = Boxed<T>;
    const VOLATILE: bool = true;

    /// All values of the same type share a table.
    fn open(db: &Database<P>, is_named: bool) -> Result<Self, Error> {
        let kind = if is_named { "boxed" } else { "unnamed" };
        // Types of the same name, such as those of two versions of a crate, have tables of their
        // own.
        let mut number = 0;
        loop {
            let name = format!("{OBJECT_TABLES}{kind}.{number}.{}", type_name::<T>());
            match ValueTable::<u64, T, Hashed, P>::open(db, &name, TableOptions::default()) {
                Err(Error::TableType { .. }) => number += 1,
                found => {
                    let core = found?.shared_core().clone();
                    return Ok(ValueTable::over(&Handle::of_memory(&db.inner), core));
                }
            }
        }
    }

    fn shared_core(&self) -> &Arc<TableCore> {
        self.shared_core()
    }

    fn insert(&self, tx: &Tx<'_, P>, number: u64, value: Boxed<T>) -> Result<(), Abort> {
        self.insert(tx, number, value.0)
    }
}

/// Consecutive cells that belong to one object: what the handles of a box, a counter or an array
/// have in common.
pub(super) struct Cells<C, P: Protocol> {
    pub(super) table: C,
    pub(super) first: u64,
    pub(super) count: u64,
    /// What gives the cells back with the last handle; `None` if the object has a name.
    owner: Option<Arc<Owner<P>>>,
}

impl<C: Clone, P: Protocol> Clone for Cells<C, P> {
    fn clone(&self) -> Self {
        let Cells { first, count, .. } = *self;
        Cells { table: self.table.clone(), first, count, owner: self.owner.clone() }
    }
}

impl<C: CellTable<P>, P: Protocol> Cells<C, P> {
    pub(super) fn new(
        table: C,
        (first, count): (u64, u64),
        owner: Option<Owner<P>>,
    ) -> Cells<C, P> {
        Cells { table, first, count, owner: owner.map(Arc::new) }
    }

    /// Stages new cells from number `first` on.
    pub(super) fn fill(
        table: &C,
        tx: &Tx<'_, P>,
        first: u64,
        values: impl IntoIterator<Item = C::Value>,
    ) -> Result<(), Abort> {
        let mut cells = values.into_iter().zip(first..);
        cells.try_for_each(|(value, number)| table.insert(tx, number, value))
    }
}

impl<V: Field, P: Protocol> Cells<Table<Cell<V>, P>, P> {
    /// Returns a handle on a cell's record. The caller has checked `index`.
    #[inline]
    pub(super) fn row<'t>(
        &'t self,
        tx: &'t Tx<'_, P>,
        index: u64,
    ) -> Result<Row<'t, Cell<V>, P>, Abort> {
        self.table.find(tx, self.first + index)
    }
}
