//! The tables of maps.

#![forbid(unsafe_code)]

use super::boxed::Boxed;
use super::entry::Entry;
use super::owner::ROWS_AT_ONCE;
use crate::api::{Database, Table, ValueTable, find_table};
use crate::catalog::TableOptions;
use crate::engine::{Protocol, TableCore};
use crate::error::{Abort, Error};
use crate::handle::Handle;
use crate::schema::{Field, IndexKind, Key, RowType};
use crate::txn::Tx;
use std::any::TypeId;
use std::fmt::Debug;
use std::sync::Arc;

/// The table of a map.
pub trait MapTable<P: Protocol>: Clone + Debug {
    /// Whether the table is in memory only.
    const VOLATILE: bool;

    /// Returns a number that differs between tables of different rows.
    fn row() -> TypeId;

    /// Returns the table of this name, or makes it.
    fn open(db: &Database<P>, name: &str, options: TableOptions) -> Result<Self, Error>;

    /// Returns a handle on a table that exists and has these rows.
    #[doc(hidden)]
    fn over(db: &Database<P>, core: Arc<TableCore>) -> Self;

    #[doc(hidden)]
    fn shared_core(&self) -> &Arc<TableCore>;

    /// Deletes some rows from a place on; returns the place that this has reached, or `None` if
    /// there were no rows.
    fn delete_some(&self, tx: &Tx<'_, P>, place: usize) -> Result<Option<usize>, Abort>;
}

impl<K: Key, V: Field, I: IndexKind, P: Protocol> MapTable<P> for Table<Entry<K, V, I>, P> {
    const VOLATILE: bool = false;

    fn row() -> TypeId {
        TypeId::of::<Entry<K, V, I>>()
    }

    fn open(db: &Database<P>, name: &str, options: TableOptions) -> Result<Self, Error> {
        let core = find_table(&db.inner, name, options, &RowType::of::<Entry<K, V, I>>())?;
        Ok(Self::over(db, core))
    }

    fn over(db: &Database<P>, core: Arc<TableCore>) -> Self {
        Table::new(Handle::of_memory(&db.inner), core)
    }

    fn shared_core(&self) -> &Arc<TableCore> {
        self.shared_core()
    }

    fn delete_some(&self, tx: &Tx<'_, P>, place: usize) -> Result<Option<usize>, Abort> {
        let mut scan = self.iter(tx, ()).beginning_at(place);
        let rows = scan.by_ref().take(ROWS_AT_ONCE).collect::<Result<Vec<_>, _>>()?;
        for (key, ()) in &rows {
            self.find_key(tx, key)?.delete()?;
        }
        Ok((!rows.is_empty()).then(|| scan.place()))
    }
}

impl<K: Key, T: Send + Sync + 'static, I: IndexKind, P: Protocol> MapTable<P>
    for ValueTable<K, T, I, P>
{
    const VOLATILE: bool = true;

    fn row() -> TypeId {
        TypeId::of::<(Boxed<T>, K, I)>()
    }

    fn open(db: &Database<P>, name: &str, options: TableOptions) -> Result<Self, Error> {
        let table = ValueTable::<K, T, I, P>::open(db, name, options)?;
        Ok(ValueTable::over(&Handle::of_memory(&db.inner), table.shared_core().clone()))
    }

    fn over(db: &Database<P>, core: Arc<TableCore>) -> Self {
        ValueTable::over(&Handle::of_memory(&db.inner), core)
    }

    fn shared_core(&self) -> &Arc<TableCore> {
        self.shared_core()
    }

    fn delete_some(&self, tx: &Tx<'_, P>, place: usize) -> Result<Option<usize>, Abort> {
        let mut scan = self.keys(tx).beginning_at(place);
        let rows = scan.by_ref().take(ROWS_AT_ONCE).collect::<Result<Vec<_>, _>>()?;
        for (key, ()) in &rows {
            self.delete(tx, *key)?;
        }
        Ok((!rows.is_empty()).then(|| scan.place()))
    }
}
