//! Tables by name, for calls that change them: dropping, renaming.

#![forbid(unsafe_code)]

use super::sequences::is_reserved;
use super::{Catalog, FormerTable, Known, KnownRow, Names};
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

impl Known {
    /// Returns what later tables can get of a table that is dropped, whose indexes are still kept.
    /// `None` if another table cannot have the same layout, as far as is known.
    pub(super) fn former(&self, core: &Arc<TableCore>) -> Option<Vec<FormerTable>> {
        let (KnownRow::Typed { id: row, .. }, Some(options)) = (&self.row, self.options) else {
            return None;
        };
        // In the order of the row type: an earlier attempt to adopt a table from the files may have
        // made some of the indexes, or others.
        let mut cores = vec![core.clone()];
        for spec in self.indexes {
            let index = core.indexes.kept().find(|index| *index.name == *spec.name)?;
            cores.push(index.entries.clone());
        }
        let is_declared = |entries: &TableCore| cores.iter().any(|of| of.number == entries.number);
        let others = core.indexes.all().map(|index| &index.entries);
        let others = others.filter(|entries| !is_declared(entries));
        let others: Vec<_> =
            others.map(|entries| FormerTable { of: None, cores: vec![entries.clone()] }).collect();
        let table = FormerTable { of: Some((*row, options)), cores };
        Some([table].into_iter().chain(others).collect())
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

    /// Forgets the name of a table, whose indexes are still kept. Returns what later tables can get
    /// of it; `None` if another table cannot have the same layout, as far as is known.
    pub(crate) fn forget(&self, name: &str, core: &Arc<TableCore>) -> Option<Vec<FormerTable>> {
        let names = &mut *lock(&self.tables);
        let known = names.known.remove(name)?;
        names.of_program -= usize::from(!is_reserved(name));
        known.former(core)
    }

    /// Notes dropped tables without rows.
    pub(crate) fn retire(&self, former: Vec<FormerTable>) {
        self.former.add(former);
    }

    /// Returns whether there are dropped tables that garbage may still name.
    pub(crate) fn has_waiting(&self) -> bool {
        self.former.has_waiting()
    }

    /// Frees the dropped tables that `is_unnamed` allows: neither garbage nor a session that sleeps
    /// names the numbers of these.
    pub(crate) fn free_former(&self, is_unnamed: impl Fn(&TableCore) -> bool) {
        self.former.free(is_unnamed);
    }
}
