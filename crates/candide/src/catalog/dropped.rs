//! Tables by name, for calls that change them: dropping, renaming.

#![forbid(unsafe_code)]

use super::sequences::is_reserved;
use super::{Catalog, KnownRow, Names};
use crate::engine::{Common, TableCore};
use crate::error::Error;
use crate::sync::lock;
use std::sync::{Arc, PoisonError};

impl Names {
    /// Returns the error of a name that no table has.
    pub(super) fn unknown(&self, name: &str) -> Error {
        let tables = self.known.keys().filter(|name| !is_reserved(name));
        let mut tables: Vec<_> = tables.map(|name| name.to_string()).collect();
        tables.sort_unstable();
        Error::NoTable { table: name.to_owned(), tables }
    }
}

impl Catalog {
    /// Returns the table called `name`.
    ///
    /// # Errors
    /// [`Error::NoTable`].
    pub(crate) fn named(&self, common: &Common, name: &str) -> Result<Arc<TableCore>, Error> {
        let names = lock(&self.tables);
        let known = names.known.get(name).ok_or_else(|| names.unknown(name))?;
        let tables = common.tables.read().unwrap_or_else(PoisonError::into_inner);
        Ok(tables[known.number].clone())
    }

    /// Returns whether `name` is the name of this table, whose row type the program has not named.
    pub(crate) fn is_recovered(&self, name: &str, core: &TableCore) -> bool {
        lock(&self.tables).known.get(name).is_some_and(|known| {
            known.number == usize::from(core.number) && matches!(known.row, KnownRow::Recovered(_))
        })
    }

    /// Forgets the name of a table.
    pub(crate) fn forget(&self, name: &str) {
        let names = &mut *lock(&self.tables);
        if names.known.remove(name).is_some() {
            names.of_program -= usize::from(!is_reserved(name));
        }
    }
}
