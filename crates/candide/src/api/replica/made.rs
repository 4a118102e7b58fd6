//! Making the tables of a database that follows another one.

#![forbid(unsafe_code)]

use crate::catalog::files_error;
use crate::engine::{Protocol, TableCore};
use crate::error::Error;
use crate::handle::Handle;
use candide_log::schema::TableSchema;
use std::sync::Arc;

/// Makes a table, also in the files, with the number in `table` if that is free here.
pub(super) fn make<P: Protocol>(
    inner: &Handle<P>,
    table: TableSchema,
) -> Result<Arc<TableCore>, Error> {
    let store = inner.store().expect("a database that follows another one lies in files");
    let number = store.add_numbered_table(table.clone()).map_err(files_error)?;
    inner.catalog.recovered(&inner.engine.common, &TableSchema { number, ..table })
}
