//! The contents of an opened database.

use super::write::Contents;
use crate::disk::SimDisk;
use candide_log::{LogWriter, OpenError, Rows, Store, StoreOptions, TableSchema};
use std::sync::Arc;

/// The contents that were found when a database was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// The last generation that was recovered, and the cut up to which it was recovered.
    pub(super) generation: u64,
    pub(super) cut: u64,
    /// The generation that the opening has begun.
    pub(super) begun: u64,
    pub(super) tables: Vec<TableSchema>,
    pub(super) rows: Contents,
}

impl Found {
    /// Opens the database on a disk, and closes it again without a further operation.
    pub(super) fn recover(disk: &SimDisk, options: &StoreOptions) -> Result<Found, OpenError> {
        open(disk, options).map(|(_, _, found)| found)
    }

    /// Returns whether the database is the same as it was, for a reader of its rows.
    pub(super) fn is_same(&self, other: &Found) -> bool {
        (self.generation, self.cut) == (other.generation, other.cut)
            && self.tables == other.tables
            && self.rows == other.rows
    }
}

/// Opens the database on a disk.
pub(super) fn open(
    disk: &SimDisk,
    options: &StoreOptions,
) -> Result<(Store, LogWriter, Found), OpenError> {
    let target = Rows::new();
    let (store, log, recovered) = Store::open(Arc::new(disk.clone()), options, &target, &|_| {})?;
    let found = Found {
        generation: recovered.last_generation,
        cut: recovered.cut,
        begun: recovered.generation,
        tables: store.tables(),
        rows: target.into_map(),
    };
    Ok((store, log, found))
}
