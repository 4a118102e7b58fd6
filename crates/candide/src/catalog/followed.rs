//! The tables of a database that follows another one.

#![forbid(unsafe_code)]

use super::Catalog;
use crate::engine::{Common, TableCore};
use crate::sync::lock;
use std::sync::{Arc, PoisonError};

impl Catalog {
    /// Returns the tables that are in the files.
    pub(crate) fn logged_tables(&self, common: &Common) -> Vec<Arc<TableCore>> {
        let names = lock(&self.tables);
        let tables = common.tables.read().unwrap_or_else(PoisonError::into_inner);
        let cores = names.known.values().map(|known| tables[known.number].clone());
        cores.filter(|core| core.log_number.get().is_some()).collect()
    }
}
