//! The target of recovery.

use crate::error::{LoadError, OpenError};
use crate::format::commit::Change;
use crate::format::long_row::LongRow;
use crate::schema::TableSchema;

/// A target, into which recovery loads the rows of a database.
pub trait Target: Sync {
    /// Prepares a table. The function is called once for each table, before the first row is
    /// loaded.
    fn table(&self, schema: &TableSchema) -> Result<(), OpenError>;

    /// Returns a loader. Each thread of recovery uses a loader of its own. All rows of the
    /// checkpoint are put before the first change is made. All changes of a row are made by one
    /// loader, which need not be the loader that has put the row.
    fn loader(&self) -> Box<dyn Loader + '_>;
}

/// Puts rows into a [`Target`].
pub trait Loader: Send {
    /// Puts a row of a checkpoint. Within a part of the checkpoint, rows come in ascending order of
    /// table and key. Each row comes once.
    fn row(&mut self, table: u32, row: LongRow<'_>) -> Result<(), LoadError>;

    /// Makes a change that the log contains. The changes of each row come in their order.
    fn apply(&mut self, change: &Change<'_>) -> Result<(), LoadError>;

    /// Completes the changes that the loader has collected. The function is called after the rows
    /// of each part of a checkpoint, and after the last change.
    fn finish(&mut self) -> Result<(), LoadError> {
        Ok(())
    }
}
