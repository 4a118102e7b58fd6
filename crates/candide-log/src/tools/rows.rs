//! The rows of a database.

use super::{Source, Stretch};
use crate::checkpoint::merge::{Sink, merge};
use crate::checkpoint::read::read_pending;
use crate::checkpoint::write::PartError;
use crate::disk::Disk;
use crate::error::{OpenError, StoreError};
use crate::format::long_row::LongRow;
use crate::schema::TableSchema;
use std::io;
use std::ops::ControlFlow;

/// A reader of rows.
pub trait RowReader {
    /// Takes the tables that are in use, in the order of their numbers. Called once, before the
    /// first row.
    fn tables(&mut self, tables: &[TableSchema]) -> ControlFlow<()>;

    /// Takes the next row. Rows come in ascending order of the numbers of their tables and of the
    /// words of their keys.
    fn row(&mut self, table: &TableSchema, row: LongRow<'_>) -> ControlFlow<()>;
}

/// Gives the reader all rows that an opening of the database would find, until it breaks. The part
/// of the log that no checkpoint contains is kept in memory.
///
/// # Errors
/// The directory is in use or contains no database, or a file cannot be read or is damaged. If the
/// log is damaged, no row has been given; otherwise all rows before the damage have.
pub fn rows(disk: &dyn Disk, reader: &mut dyn RowReader) -> Result<(), OpenError> {
    let source = Source::open(disk)?;
    let manifest = &source.manifest;
    let in_use: Vec<TableSchema> =
        manifest.tables.iter().filter(|table| table.is_in_use()).cloned().collect();
    if reader.tables(&in_use).is_break() {
        return Ok(());
    }
    let pending = read_pending(disk, manifest)?;
    let Stretch { steps, damage, .. } = source.replay(pending, None)?;
    damage.map_or(Ok(()), Err)?;
    let mut sink = Reading { reader, is_over: false };
    match merge(disk, manifest, &steps, &mut sink) {
        Err(_) if sink.is_over => Ok(()),
        Ok(()) => Ok(()),
        Err(StoreError::Damaged(error)) => Err(error),
        Err(StoreError::Io { file, source } | StoreError::Full { file, source }) => {
            Err(OpenError::Io { file, source })
        }
        Err(error) => Err(OpenError::Target(Box::new(error))),
    }
}

/// A reader, and whether it has had enough.
struct Reading<'a> {
    reader: &'a mut dyn RowReader,
    is_over: bool,
}

impl Sink for Reading<'_> {
    fn row(&mut self, schema: &TableSchema, row: LongRow<'_>) -> Result<(), PartError> {
        // The next opening would drop an unfinished table.
        if !schema.is_in_use() || self.reader.row(schema, row).is_continue() {
            return Ok(());
        }
        self.is_over = true;
        Err(PartError { file: String::new(), source: io::ErrorKind::Interrupted.into() })
    }
}
