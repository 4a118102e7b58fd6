//! The end of objects without names.
//!
//! The last handle of an object may be dropped anywhere, also within a transaction, or by the drop
//! of a value. So what belonged to the object is only put aside then. It is deleted by transactions
//! of their own, after the transactions have ended that ran when the object was dropped: one of
//! them may have made the object, and not have committed yet. Two kinds of values that the engine
//! itself drops, [`Deletion`] and [`Emptying`], run these transactions. So they run when a thread
//! has ended a transaction and holds nothing. If there is more to do than one of them does, or if
//! it is too early, it is put back, for the next transaction.

#![forbid(unsafe_code)]

use super::cell::Cell;
use crate::api::{Database, Table, run_cached};
use crate::catalog::{Cells as DroppedCells, FreeTable};
use crate::engine::{Protocol, ReadView, TableCore};
use crate::epoch::Epoch;
use crate::error::Abort;
use crate::handle::Handle;
use crate::log::Level;
use crate::record::value::Value;
use crate::shared::Inner;
use crate::txn::{RunOptions, Tx};
use std::any::TypeId;
use std::sync::{Arc, Weak};

/// The number of rows of dropped objects that one transaction deletes.
pub(super) const ROWS_AT_ONCE: usize = 256;

/// The number of such transactions that run one after another. There are more if many cells were
/// dropped since the last ones, so that deletions keep up.
const DELETIONS_AT_ONCE: usize = 16;

/// What belongs to an object without a name. It is dropped with the last handle of the object.
pub(super) struct Owner<P: Protocol> {
    inner: Handle<P>,
    table: Arc<TableCore>,
    owned: Owned<P>,
}

/// The part of a table that an object has.
pub(super) enum Owned<P: Protocol> {
    /// This number of cells from the first on.
    Cells(u64, u64),
    /// The whole table, whose rows are of this type, and are deleted so.
    Table(TypeId, DeleteSome<P>),
}

/// Deletes some rows of a table from a place on; returns the place that this has reached, or `None`
/// if there were no rows.
pub(super) type DeleteSome<P> =
    fn(&Database<P>, &Arc<TableCore>, &Tx<'_, P>, usize) -> Result<Option<usize>, Abort>;

impl<P: Protocol> Owner<P> {
    pub(super) fn new(inner: &Handle<P>, table: &Arc<TableCore>, owned: Owned<P>) -> Owner<P> {
        Owner { inner: Handle::of_memory(inner), table: table.clone(), owned }
    }
}

impl<P: Protocol> Drop for Owner<P> {
    fn drop(&mut self) {
        let (inner, table) = (&*self.inner, self.table.clone());
        let dropped = inner.engine.epochs.now();
        match self.owned {
            Owned::Cells(first, count) => {
                let cells = DroppedCells { table, first, count, dropped };
                if inner.catalog.unnamed.drop_cells(cells) {
                    arrange(inner, Deletion { inner: Arc::downgrade(inner) });
                }
            }
            Owned::Table(row, delete_some) => {
                let inner = Arc::downgrade(inner);
                let place = 0;
                arrange(&self.inner, Emptying { inner, table, row, delete_some, dropped, place });
            }
        }
    }
}

/// Runs a transaction of the engine's own. It need not be durable when this returns: the commit of
/// each transaction that uses what it has made rests on it.
pub(super) fn run_internal<T, P: Protocol>(
    inner: &Arc<Inner<P>>,
    body: impl FnMut(&Tx<'_, P>) -> Result<T, Abort>,
) -> Result<T, Abort> {
    let options = RunOptions::new().acknowledge(Level::Memory);
    run_cached(inner, &options, ReadView::Current, body)
}

/// Has `deletion` dropped by a thread that has ended a transaction and holds nothing.
#[cold]
fn arrange<P: Protocol>(inner: &Inner<P>, deletion: impl Send + Sync + 'static) {
    inner.engine.shared_garbage.put_unwanted(&mut vec![Value::new(deletion)]);
}

/// Returns the memory of a database that is open.
fn opened<P: Protocol>(inner: &Weak<Inner<P>>) -> Option<Arc<Inner<P>>> {
    inner.upgrade().filter(|inner| !inner.has_given_values())
}

/// The deletion of cells of dropped objects, which happens when this is dropped.
struct Deletion<P: Protocol> {
    inner: Weak<Inner<P>>,
}

impl<P: Protocol> Drop for Deletion<P> {
    fn drop(&mut self) {
        let Some(inner) = opened(&self.inner) else { return };
        delete_dropped(&inner);
        if inner.catalog.unnamed.end_deletion() {
            arrange(&inner, Deletion { inner: self.inner.clone() });
        }
    }
}

/// Deletes cells of objects that were dropped, in transactions of its own. Cells that cannot be
/// deleted now are left for a later call.
fn delete_dropped<P: Protocol>(inner: &Arc<Inner<P>>) {
    let (unnamed, handle) = (&inner.catalog.unnamed, Handle::of_memory(inner));
    let deletions = DELETIONS_AT_ONCE as u64 + 2 * unnamed.take_added() / ROWS_AT_ONCE as u64;
    for _ in 0..deletions {
        let dropped = unnamed.take_cells(inner.engine.epochs.bound(), ROWS_AT_ONCE as u64);
        if dropped.is_empty() {
            return;
        }
        let deleted = run_internal(inner, |tx| {
            dropped.iter().try_for_each(|cells| delete_cells(&handle, cells, tx))
        });
        if deleted.is_err() {
            return unnamed.put_back(dropped);
        }
    }
}

fn delete_cells<P: Protocol>(
    inner: &Handle<P>,
    dropped: &DroppedCells,
    tx: &Tx<'_, P>,
) -> Result<(), Abort> {
    let table = &dropped.table;
    // A delete looks at no value, so the type of the values does not matter.
    let cells = Table::<Cell<u64>, P>::new(inner.clone(), table.clone());
    for number in dropped.first..dropped.first + dropped.count {
        if table.has_values {
            tx.state.borrow_mut().note_value_write(tx.engine, table)?;
        }
        cells.delete_if_present(tx, number)?;
    }
    Ok(())
}

/// The deletion of all rows of the table of a dropped object, which happens when this is dropped.
/// Later objects get the table then.
struct Emptying<P: Protocol> {
    inner: Weak<Inner<P>>,
    table: Arc<TableCore>,
    row: TypeId,
    delete_some: DeleteSome<P>,
    dropped: Epoch,
    /// The place where the next deletion begins: the ones before have deleted the rows before it.
    place: usize,
}

impl<P: Protocol> Drop for Emptying<P> {
    fn drop(&mut self) {
        let Some(inner) = opened(&self.inner) else { return };
        let Emptying { row, delete_some, dropped, .. } = *self;
        let (table, epochs) = (self.table.clone(), &inner.engine.epochs);
        if dropped < epochs.bound() && self.is_emptied(&inner) {
            let emptied = (epochs.now(), epochs.moment());
            return inner.catalog.unnamed.free_table(FreeTable { row, table, emptied });
        }
        let (inner_again, place) = (self.inner.clone(), self.place);
        let next = Emptying { inner: inner_again, table, row, delete_some, dropped, place };
        arrange(&inner, next);
    }
}

impl<P: Protocol> Emptying<P> {
    /// Deletes rows. Returns whether none is left.
    fn is_emptied(&mut self, inner: &Arc<Inner<P>>) -> bool {
        let db = Database { inner: Handle::of_memory(inner) };
        for _ in 0..DELETIONS_AT_ONCE {
            let begin = self.place;
            let delete = |tx: &Tx<'_, P>| (self.delete_some)(&db, &self.table, tx, begin);
            match run_internal(inner, delete) {
                Ok(Some(place)) => self.place = place,
                // A last look is at all places.
                Ok(None) if begin > 0 => self.place = 0,
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
        false
    }
}
