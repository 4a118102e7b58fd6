//! The tables of a database by name.

#![forbid(unsafe_code)]

mod copies;
mod described;
mod dropped;
mod followed;
mod former;
mod migrations;
mod new_tables;
mod objects;
mod options;
mod renamed;
mod row_type;
mod sequences;
mod stored;

pub(crate) use copies::TableCopy;
pub(crate) use former::FormerTable;
pub use migrations::Migration;
pub(crate) use migrations::{How, Migrations, NewRow, Rewrite};
pub(crate) use objects::{Cells, FreeTable, OBJECT_TABLES, Unnamed};
pub use options::TableOptions;
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) use sequences::{BLOCK, NAMES_READ, NUMBER_MAX};
pub(crate) use sequences::{SEQUENCES, SequenceCore, check_name};
pub(crate) use stored::{files_error, forget_index, note_index, schema_of};

use crate::engine::{Common, TableCore};
use crate::error::Error;
use crate::index::HashIndex;
use crate::locks::SharedLocks;
use crate::memory::{Memory, Slab, SlabId};
use crate::policy::Policy;
use crate::schema::{IndexSpec, RowType};
use crate::sync::{AtomicU64, Mutex, lock};
use candide_log::Store;
use candide_log::schema::TableSchema;
use former::{Former, FormerOptions};
use options::Made;
use sequences::{Sequences, is_reserved};
use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

/// The tables of a database by name, and the parts from which new tables are made.
#[derive(Debug)]
pub(crate) struct Catalog {
    tables: Mutex<Names>,
    pub(crate) sequences: Sequences,
    pub(crate) unnamed: Unnamed,
    slabs_made: AtomicU64,
    /// The slab for the overflow lines of hash indexes.
    lines: Arc<Slab>,
    /// The locks by policy; `None` if the protocol has no policies of tables.
    locks: Option<Arc<SharedLocks>>,
    seed: u64,
    migrations: Migrations,
    former: Former,
}

/// The tables of a database by name, without the tables of index entries.
#[derive(Debug, Default)]
struct Names {
    known: HashMap<Box<str>, Known>,
    /// The number of the program's tables among them.
    of_program: usize,
}

impl Names {
    fn insert(&mut self, name: &str, known: Known) {
        self.of_program += usize::from(!is_reserved(name));
        self.known.insert(name.into(), known);
    }
}

/// An existing table: its number, its row type, and how it was made.
#[derive(Debug)]
struct Known {
    number: usize,
    row: KnownRow,
    made: Made,
    /// The options with which the program has made the table; `None` if it was recovered.
    options: Option<FormerOptions>,
    /// The indexes that the row type declares.
    indexes: &'static [IndexSpec],
}

impl Known {
    /// Returns what is known of a new table.
    fn of(
        row: &RowType,
        core: &TableCore,
        (options, common, policy): (&TableOptions, &Common, Policy),
    ) -> Known {
        Known {
            number: core.number.into(),
            row: KnownRow::of(row),
            made: options.made(common),
            options: Some(FormerOptions::of(options, common, policy)),
            indexes: row.indexes,
        }
    }
}

/// The row type of an existing table.
#[derive(Debug)]
enum KnownRow {
    Typed {
        id: TypeId,
        path: &'static str,
    },
    /// The table was recovered, and the program has not named its row type yet.
    Recovered(Box<TableSchema>),
}

impl KnownRow {
    fn of(row: &RowType) -> KnownRow {
        KnownRow::Typed { id: row.id, path: row.path }
    }
}

/// A table that the catalog has found or made.
pub(crate) enum FoundTable {
    Ready(Arc<TableCore>),
    /// The table was recovered, and has the rows of this row type, but not its indexes yet.
    /// [`Catalog::adopt`] makes it ready.
    Recovered(Arc<TableCore>),
    /// The table was recovered, and has rows of another type, which are to be migrated.
    Differs(Arc<TableCore>, Box<Rewrite>),
}

impl Catalog {
    pub(crate) fn new(
        memory: &Arc<Memory>,
        seed: u64,
        locks: Option<Arc<SharedLocks>>,
        migrations: Migrations,
    ) -> Catalog {
        let lines = Slab::new(SlabId(0), HashIndex::LINE_WORDS, memory);
        Catalog {
            tables: Mutex::default(),
            sequences: Sequences::default(),
            unnamed: Unnamed::default(),
            slabs_made: AtomicU64::new(1),
            lines,
            locks,
            seed,
            migrations,
            former: Former::default(),
        }
    }

    /// Returns the locks by policy; `None` if the protocol has no policies of tables.
    pub(crate) fn locks(&self) -> Option<&Arc<SharedLocks>> {
        self.locks.as_ref()
    }

    /// Returns the policy of a table.
    pub(crate) fn policy_of(&self, table: &TableCore) -> Policy {
        self.locks().map_or(Policy::Optimistic, |locks| locks.policies.of(table.number))
    }

    /// Returns the policy of a new table. The program has `place` tables before it. The engine's
    /// own tables are never locked before the commit, unless they hold objects.
    fn policy_for(
        &self,
        common: &Common,
        (name, place): (&str, usize),
        wanted: Option<Policy>,
    ) -> Result<Policy, Error> {
        match (self.locks(), wanted) {
            _ if is_reserved(name) && !name.starts_with(OBJECT_TABLES) => Ok(Policy::Optimistic),
            (Some(locks), wanted) => Ok(locks.policies.chosen.of_table(name, place, wanted)),
            (None, None) => Ok(Policy::Optimistic),
            (None, Some(_)) => {
                Err(Error::NoPolicies { table: name.to_owned(), protocol: common.properties.name })
            }
        }
    }

    /// Returns the number of the program's tables.
    pub(crate) fn tables(&self) -> usize {
        lock(&self.tables).of_program
    }

    /// Returns the table called `name`. If there is no such table, makes it, also in the files of
    /// the database.
    pub(crate) fn table(
        &self,
        (common, store): (&Common, Option<&Store>),
        name: &str,
        options: TableOptions,
        row: &RowType,
    ) -> Result<FoundTable, Error> {
        let mut names = lock(&self.tables);
        let mut tables = common.tables.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = names.known.get(name) {
            let core = &tables[known.number];
            let found = self.existing(name, core, &known.row, row)?;
            // A policy by name takes precedence, so the number of tables does not matter.
            let policy_of = |wanted| self.policy_for(common, (name, 0), Some(wanted));
            let wanted_policy = options.policy.map(policy_of).transpose()?;
            let is_recovered = !matches!(found, FoundTable::Ready(_));
            let of_table = (&**core, known.made, is_recovered);
            options.check(common, of_table, (wanted_policy, self.policy_of(core)))?;
            return Ok(found);
        }
        if common.following().is_some() {
            return Err(Error::Follows { call: "a new table" });
        }
        let cores = self.new_table(common, (name, names.of_program), options, row, &tables)?;
        if let Some(store) = store.filter(|_| !options.volatile) {
            cores[0].log_number.set(store_table(store, name, options, row)?);
        }
        #[cfg(test)]
        if store.is_none() && common.log.get().is_some() && !options.volatile {
            cores[0].log_number.set(cores[0].number);
        }
        let core = cores[0].clone();
        let policy = self.policy_of(&core);
        let known = Known::of(row, &core, (&options, common, policy));
        names.insert(name, known);
        self.former.replace(common, &mut tables, cores);
        Ok(FoundTable::Ready(core))
    }

    /// Returns the table called `name`, if there is one.
    #[cfg(any(test, feature = "experiments"))]
    pub(crate) fn find(&self, common: &Common, name: &str) -> Option<Arc<TableCore>> {
        let number = lock(&self.tables).known.get(name)?.number;
        let tables = common.tables.read().unwrap_or_else(PoisonError::into_inner);
        Some(tables[number].clone())
    }

    /// Writes the description of a row type into the files, if they have another one of a recovered
    /// table, such as none.
    ///
    /// # Errors
    /// The errors of writing the files.
    pub(crate) fn describe(
        &self,
        store: &Store,
        core: &TableCore,
        row: &RowType,
    ) -> Result<(), Error> {
        let known = match lock(&self.tables).known.get(&*core.name).map(|known| &known.row) {
            Some(KnownRow::Recovered(schema)) => schema.clone(),
            _ => return Ok(()),
        };
        stored::describe(store, &known, row)
    }

    /// Notes the row type of a recovered table, whose indexes have been made.
    pub(crate) fn adopt(&self, common: &Common, core: &TableCore, row: &RowType) {
        core.show_key.set(row.show_key);
        // A table whose files had no description has none yet.
        let _ = core.key_parts.set(described::key_parts(&described::fields_of(row)));
        let _ = core.fields.set(row.fields);
        if let Some(known) = lock(&self.tables).known.get_mut(&*core.name)
            && let KnownRow::Recovered(schema) = &known.row
        {
            // The options by which a later table of the row type has the same layout.
            let mut options = TableOptions::default();
            options.ordered = schema.ordered && !row.ordered;
            options.splitting = schema.splitting;
            let made = known.made;
            *known = Known::of(row, core, (&options, common, self.policy_of(core)));
            known.made = made;
        }
    }
}

impl Catalog {
    /// Returns a table that exists, if its rows are of this type, or can become such rows.
    #[inline(never)]
    fn existing(
        &self,
        name: &str,
        core: &Arc<TableCore>,
        known: &KnownRow,
        row: &RowType,
    ) -> Result<FoundTable, Error> {
        match known {
            KnownRow::Typed { id, .. } if *id == row.id => Ok(FoundTable::Ready(core.clone())),
            KnownRow::Typed { path, .. } => {
                // If both types have the same name, the error shows their paths.
                let are_alike = core.row_type == row.name;
                let (wanted, existing) =
                    if are_alike { (row.path, *path) } else { (row.name, core.row_type) };
                Err(Error::TableType { table: name.to_owned(), wanted, existing })
            }
            KnownRow::Recovered(schema) => match stored::difference(schema, row) {
                None => Ok(FoundTable::Recovered(core.clone())),
                Some(difference) => {
                    let rows = core.linked.sum();
                    let rewrite = self.migrations.rewrite(schema, row, difference, rows)?;
                    Ok(FoundTable::Differs(core.clone(), Box::new(rewrite)))
                }
            },
        }
    }
}

/// Adds a table to the files, and returns its number in the log.
#[cold]
#[inline(never)]
fn store_table(
    store: &Store,
    name: &str,
    options: TableOptions,
    row: &RowType,
) -> Result<u16, Error> {
    let schema = stored::schema_of(name, row);
    stored::add(
        store,
        TableSchema {
            ordered: schema.ordered || options.ordered,
            splitting: options.splitting,
            policy: options.policy.map(|policy| policy.name().to_owned()),
            ..schema
        },
    )
}
