//! Tables that are made from other ones, which they replace.

#![forbid(unsafe_code)]

use super::migrations::Rewrite;
use super::{Catalog, FormerTable, Known, TableOptions, stored};
use crate::engine::{Common, TableCore};
use crate::error::Error;
use crate::policy::Policy;
use crate::schema::RowType;
use crate::sync::lock;
use candide_log::Store;
use candide_log::schema::{TableSchema, TableState};
use std::str::FromStr;
use std::sync::{Arc, PoisonError};

/// A table without a name that is being made from another one.
pub(crate) struct TableCopy {
    pub(crate) core: Arc<TableCore>,
    known: Known,
}

impl Catalog {
    /// Makes a table of rows of a program's type, which is to replace the recovered table of
    /// `rewrite`; in the files it is unfinished, and durable.
    ///
    /// # Errors
    /// As [`Catalog::table`].
    pub(crate) fn begin_copy(
        &self,
        (common, store): (&Common, &Store),
        options: TableOptions,
        row: &RowType,
        rewrite: &Rewrite,
    ) -> Result<TableCopy, Error> {
        let Rewrite { schema, .. } = rewrite;
        let policy = || schema.policy.as_deref().and_then(|name| Policy::from_str(name).ok());
        let has_policies = self.locks().is_some();
        let mut options = options;
        options.ordered |= schema.ordered;
        options.splitting = options.splitting.or(schema.splitting);
        options.policy = options.policy.or_else(|| policy().filter(|_| has_policies));
        let names = lock(&self.tables);
        let mut tables = common.tables.write().unwrap_or_else(PoisonError::into_inner);
        let place = names.of_program - 1;
        let cores = self.new_table(common, (&schema.name, place), options, row, &tables)?;
        let copy = TableSchema {
            name: String::new(),
            state: TableState::Unfinished { from: schema.number },
            ordered: options.ordered || row.ordered,
            splitting: options.splitting,
            policy: options.policy.map(|policy| policy.name().to_owned()),
            ..stored::schema_of(&schema.name, row)
        };
        let number = stored::add(store, copy)?;
        cores[0].log_number.set(number);
        let core = cores[0].clone();
        let policy = self.policy_of(&core);
        let known = Known::of(row, &core, (&options, common, policy));
        self.former.replace(common, &mut tables, cores);
        Ok(TableCopy { core, known })
    }

    /// Gives a copy the name of the table from which it was made. The files have done so.
    pub(crate) fn finish_copy(&self, copy: TableCopy) {
        let name: Box<str> = (*copy.core.name).into();
        lock(&self.tables).known.insert(name, copy.known);
    }
}

impl TableCopy {
    /// Returns what later tables can get of a copy that is given up. Its indexes are still kept.
    pub(crate) fn former(&self) -> Option<Vec<FormerTable>> {
        self.known.former(&self.core)
    }
}
