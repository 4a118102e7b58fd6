//! The tables of a database that follows another one.

#![forbid(unsafe_code)]

use super::error::ReplicaError;
use super::made::make;
use super::notes::{Found, NOTES, TableNote, name_hash};
use crate::api::changes::ChangedTable;
use crate::api::session::Session;
use crate::api::table_names::{drop_named, rename_named};
use crate::engine::Protocol;
use crate::error::Error;
use crate::handle::Handle;
use crate::schema::image_words;
use candide_log::LongColumns;
use candide_log::schema::{TableSchema, TableState};
use candide_log::sum::table_sum;
use std::collections::{BTreeMap, BTreeSet};

/// The number in the notes of a table whose changes are left out. No table has it.
pub(super) const SKIPPED: u16 = 0;

/// What the names of tables begin with that have no name in the other database, or are about to get
/// another one.
const NAMELESS: &str = "candide.replica.";

/// The tables by their numbers in the other database.
#[derive(Debug)]
pub(super) struct Tables {
    known: BTreeMap<u32, Followed>,
    /// Tables whose changes are left out. They are noted, so that changes which come behind a drop
    /// are left out after a restart, too.
    skipped: BTreeSet<u32>,
    /// Tables whose notes the next transaction writes.
    pub(super) unnoted: BTreeSet<u32>,
}

/// A table of the other database.
#[derive(Debug)]
pub(super) struct Followed {
    pub(super) table: ChangedTable,
    /// The sum of the hashes of the rows.
    pub(super) sum: u64,
}

impl Followed {
    /// Returns what the table of notes says of the table if its rows have this sum.
    pub(super) fn note(&self, sum: u64) -> TableNote {
        let core = &self.table.core;
        let log_number = core.log_number.get().expect("the table is logged");
        TableNote { log_number, sum, name: name_hash(&core.name) }
    }
}

impl Tables {
    /// Returns the tables that the notes name. Drops those that no note names: they had been made
    /// for an object of which nothing was recovered.
    pub(super) fn find<P: Protocol>(
        inner: &Handle<P>,
        session: &mut Session<P>,
        found: &Found,
    ) -> Result<Tables, Error> {
        let schemas = inner.store().map(|store| store.tables()).unwrap_or_default();
        let mut known = BTreeMap::new();
        let is_skipped = |(_, note): &(&u32, &TableNote)| note.log_number == SKIPPED;
        let noted = found.tables.iter().filter(is_skipped);
        let skipped: BTreeSet<_> = noted.map(|(number, _)| *number).collect();
        for core in inner.catalog.logged_tables(&inner.engine.common) {
            let log_number = core.log_number.get();
            let is_it = |note: &TableNote| Some(note.log_number) == log_number;
            match found.tables.iter().find(|(_, note)| is_it(note)) {
                _ if *core.name == *NOTES => {}
                Some((number, note)) => {
                    let of_files =
                        schemas.iter().find(|of| of.number == u32::from(note.log_number));
                    let table = match of_files {
                        Some(schema) => ChangedTable::new(core, schema),
                        None => ChangedTable::plain(core),
                    };
                    known.insert(*number, Followed { table, sum: note.sum });
                }
                None => drop_named(inner, session, &core.name)?,
            }
        }
        let is_gone = |number: &&u32| !known.contains_key(*number) && !skipped.contains(*number);
        let unnoted = found.tables.keys().filter(is_gone).copied().collect();
        Ok(Tables { known, skipped, unnoted })
    }

    /// Returns the table with this number; `None` if its changes are left out.
    pub(super) fn get(&self, number: u32) -> Result<Option<&Followed>, ReplicaError> {
        match self.known.get(&number) {
            None if !self.skipped.contains(&number) => {
                Err(ReplicaError::Damaged(format!("there is no table with number {number}")))
            }
            known => Ok(known),
        }
    }

    /// Returns what the table of notes says of the table with this number, whose rows have this
    /// sum, or the sum that is known; `None` if there is none.
    pub(super) fn note(&self, number: u32, sum: Option<u64>) -> Option<TableNote> {
        match self.known.get(&number) {
            Some(known) => Some(known.note(sum.unwrap_or(known.sum))),
            None if self.skipped.contains(&number) => {
                Some(TableNote { log_number: SKIPPED, sum: 0, name: 0 })
            }
            None => None,
        }
    }

    /// Returns all tables that are followed.
    pub(super) fn all(&self) -> impl Iterator<Item = (u32, &Followed)> {
        self.known.iter().map(|(number, followed)| (*number, followed))
    }

    /// Notes the sums that a transaction has changed, which has written all notes.
    pub(super) fn commit(&mut self, sums: &BTreeMap<u32, u64>) {
        for (number, sum) in sums {
            if let Some(followed) = self.known.get_mut(number) {
                followed.sum = *sum;
            }
        }
        self.unnoted.clear();
    }

    /// Returns whether each table has the number here that it has in the other database.
    pub(super) fn have_same_numbers(&self) -> bool {
        self.all().all(|(number, known)| u32::from(known.note(known.sum).log_number) == number)
    }

    /// Returns the sum of all tables that have a name in the other database.
    pub(super) fn sum(&self) -> u64 {
        let named =
            self.known.values().filter(|known| !known.table.core.name.starts_with(NAMELESS));
        named.fold(0, |sum, known| sum.wrapping_add(table_sum(&known.table.core.name, known.sum)))
    }

    /// Returns whether [`set`](Tables::set) may give other names to tables that are here, or drop
    /// some.
    pub(super) fn may_change(&self, tables: &[TableSchema], are_all: bool) -> bool {
        let is_among = |(number, known): (u32, &Followed)| {
            let name = &*known.table.core.name;
            tables.iter().any(|table| table.number == number || table.name == *name)
        };
        are_all && !self.known.is_empty() || !tables.is_empty() && self.all().any(is_among)
    }

    /// Changes the tables to these, which are all that have changed, in order; or all that there
    /// are, if `are_all`.
    pub(super) fn set<P: Protocol>(
        &mut self,
        inner: &Handle<P>,
        session: &mut Session<P>,
        tables: &[TableSchema],
        are_all: bool,
    ) -> Result<(), Error> {
        if are_all {
            let listed: BTreeSet<_> = tables.iter().map(|table| table.number).collect();
            let is_gone = |number: &&u32| !listed.contains(*number);
            let gone: Vec<_> = self.known.keys().filter(is_gone).copied().collect();
            for number in gone {
                self.drop(inner, session, number)?;
            }
            let (kept, gone) = std::mem::take(&mut self.skipped)
                .into_iter()
                .partition(|number| listed.contains(number));
            self.skipped = kept;
            self.unnoted.extend::<BTreeSet<_>>(gone);
        }
        for table in tables {
            if table.is_dropped() {
                self.drop(inner, session, table.number)?;
                // Records before the drop may come behind it.
                self.skip(table.number);
            } else {
                self.set_one(inner, session, table)?;
            }
        }
        Ok(())
    }

    fn set_one<P: Protocol>(
        &mut self,
        inner: &Handle<P>,
        session: &mut Session<P>,
        table: &TableSchema,
    ) -> Result<(), Error> {
        let number = table.number;
        if table.name == NOTES {
            // The other database has followed one, too.
            self.skip(number);
            return Ok(());
        }
        let name = match table.state {
            TableState::InUse => table.name.clone(),
            _ => nameless(number),
        };
        if self.known.get(&number).is_some_and(|known| !has_rows_of(&known.table, table)) {
            self.drop(inner, session, number)?;
        }
        let other =
            self.known.iter().find(|(of, known)| **of != number && *known.table.core.name == *name);
        if let Some((other, known)) = other {
            rename_named(inner, &known.table.core.name.to_string(), &nameless(*other))?;
            self.unnoted.insert(*other);
        }
        match self.known.get(&number) {
            Some(known) if *known.table.core.name == *name => {}
            Some(known) => {
                rename_named(inner, &known.table.core.name.to_string(), &name)?;
                self.unnoted.insert(number);
            }
            None => {
                let table = TableSchema { name, state: TableState::InUse, ..table.clone() };
                let made = ChangedTable::new(make(inner, table.clone())?, &table);
                self.skipped.remove(&number);
                self.known.insert(number, Followed { table: made, sum: 0 });
                self.unnoted.insert(number);
            }
        }
        Ok(())
    }

    /// Leaves out the changes of a table from now on.
    fn skip(&mut self, number: u32) {
        if self.skipped.insert(number) {
            self.unnoted.insert(number);
        }
    }

    fn drop<P: Protocol>(
        &mut self,
        inner: &Handle<P>,
        session: &mut Session<P>,
        number: u32,
    ) -> Result<(), Error> {
        if let Some(known) = self.known.get(&number) {
            let name = known.table.core.name.to_string();
            // Transactions that read the table end before.
            while let Err(error) = drop_named(inner, session, &name) {
                if !matches!(error, Error::Busy { .. }) {
                    return Err(error);
                }
            }
            self.known.remove(&number);
            self.unnoted.insert(number);
        }
        Ok(())
    }
}

/// Returns whether a database that follows another one has a table of this name for itself, so that
/// it adds nothing to the [sum](super::Replica::sum).
pub fn is_own_table(name: &str) -> bool {
    name == NOTES || name.starts_with(NAMELESS)
}

/// Returns the name here of a table that has none in the other database.
fn nameless(number: u32) -> String {
    format!("{NAMELESS}{number}")
}

/// Returns whether rows of a table have the words that a schema describes.
fn has_rows_of(known: &ChangedTable, table: &TableSchema) -> bool {
    let core = &known.core;
    core.layout.unpacked_key_words() == usize::from(table.key_words)
        && image_words(core.groups) == table.row_words()
        && known.long().have_rows_of(&LongColumns::of(table))
}
