//! Other names for tables.

#![forbid(unsafe_code)]

use super::stored::files_error;
use super::{Catalog, KnownRow};
use crate::engine::Common;
use crate::error::Error;
use crate::sync::lock;
use candide_log::Store;
use std::sync::PoisonError;

impl Catalog {
    /// Gives the table called `name` another name, also in the files of the database. The caller
    /// prevents indexes from being added to the table meanwhile.
    pub(crate) fn rename(
        &self,
        (common, store): (&Common, Option<&Store>),
        name: &str,
        new: &str,
    ) -> Result<(), Error> {
        if new.is_empty() {
            return Err(Error::EmptyTableName);
        }
        let mut names = lock(&self.tables);
        let Some(known) = names.known.get(name) else {
            return Err(names.unknown(name));
        };
        if name == new {
            return Ok(());
        }
        if names.known.contains_key(new) {
            return Err(Error::TableExists { table: new.to_owned() });
        }
        let core = {
            let tables = common.tables.read().unwrap_or_else(PoisonError::into_inner);
            tables[known.number].clone()
        };
        if let (Some(store), Some(number)) = (store, core.log_number.get()) {
            let change = store.change_table(number.into(), |table| new.clone_into(&mut table.name));
            change.map_err(files_error)?;
        }
        let mut known = names.known.remove(name).expect("it has been found");
        if let KnownRow::Recovered(schema) = &mut known.row {
            new.clone_into(&mut schema.name);
        }
        names.known.insert(new.into(), known);
        core.name.change(new);
        for index in core.indexes.all() {
            index.entries.name.change(&format!("{new}.{}", index.name));
        }
        Ok(())
    }
}
