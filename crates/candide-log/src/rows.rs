//! A target that keeps rows in maps: for tools and tests.

use crate::error::{LoadError, OpenError};
use crate::format::commit::{Change, ChangeKind};
use crate::format::long_row::LongRow;
use crate::schema::TableSchema;
use crate::stored_row::{LongColumns, StoredRow};
use crate::target::{Loader, Target};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Tables and rows in maps.
#[derive(Debug, Default)]
pub struct Rows(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    tables: BTreeMap<u32, Table>,
}

#[derive(Debug)]
struct Table {
    schema: TableSchema,
    long: LongColumns,
    rows: BTreeMap<Vec<u64>, StoredRow>,
}

impl Rows {
    /// Returns a target without tables.
    pub fn new() -> Rows {
        Rows::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the words of a row, and behind them those of its values, as files have them. `None`
    /// if there is no such row.
    pub fn get(&self, table: u32, key: &[u64]) -> Option<Vec<u64>> {
        self.state().tables.get(&table)?.rows.get(key).map(|row| row.all_words().into_owned())
    }

    /// Returns the number of rows of all tables.
    pub fn len(&self) -> usize {
        self.state().tables.values().map(|table| table.rows.len()).sum()
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns all rows by table and key: what [`Rows::get`] returns of each.
    pub fn to_map(&self) -> BTreeMap<(u32, Vec<u64>), Vec<u64>> {
        let state = self.state();
        let rows = state.tables.iter().flat_map(|(number, table)| {
            table
                .rows
                .iter()
                .map(|(key, row)| ((*number, key.clone()), row.all_words().into_owned()))
        });
        rows.collect()
    }

    /// Returns all rows by table and key, as [`Rows::to_map`] does, and drops the tables.
    pub fn into_map(self) -> BTreeMap<(u32, Vec<u64>), Vec<u64>> {
        let state = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        let rows = state.tables.into_iter().flat_map(|(number, table)| {
            table
                .rows
                .into_iter()
                .map(move |(key, row)| ((number, key), row.all_words().into_owned()))
        });
        rows.collect()
    }
}

impl Target for Rows {
    fn table(&self, schema: &TableSchema) -> Result<(), OpenError> {
        let (schema, long) = (schema.clone(), LongColumns::of(schema));
        let number = schema.number;
        let table = Table { schema, long, rows: BTreeMap::new() };
        self.state().tables.insert(number, table);
        Ok(())
    }

    fn loader(&self) -> Box<dyn Loader + '_> {
        Box::new(RowsLoader(self))
    }
}

struct RowsLoader<'a>(&'a Rows);

impl Loader for RowsLoader<'_> {
    fn row(&mut self, table: u32, row: LongRow<'_>) -> Result<(), LoadError> {
        let mut state = self.0.state();
        let Some(table) = state.tables.get_mut(&table) else { return Err(no_table(table)) };
        check_row(&table.schema, &table.long, row)?;
        table.rows.insert(row.key.to_vec(), StoredRow::of(row));
        Ok(())
    }

    fn apply(&mut self, change: &Change<'_>) -> Result<(), LoadError> {
        let mut state = self.0.state();
        let number = change.table.into();
        let Some(table) = state.tables.get_mut(&number) else { return Err(no_table(number)) };
        check(&table.schema, &table.long, change)?;
        match table.rows.get_mut(change.key) {
            Some(row) if change.kind != ChangeKind::Delete => row.store(change),
            Some(_) => {
                table.rows.remove(change.key);
            }
            None if change.kind == ChangeKind::Put => {
                let mut row = StoredRow::zeros(table.schema.row_words());
                row.store(change);
                table.rows.insert(change.key.to_vec(), row);
            }
            None => ghost(&table.schema, change)?,
        }
        Ok(())
    }
}

fn no_table(number: u32) -> LoadError {
    LoadError::Ghost(format!("a row of table {number}, but there is no such table"))
}

/// Checks that the values of a row are those of columns of its table.
pub(crate) fn check_row(
    schema: &TableSchema,
    long: &LongColumns,
    row: LongRow<'_>,
) -> Result<(), LoadError> {
    let checked = long.check(0, row.words, row.values());
    checked.map_err(|what| LoadError::Ghost(format!("table {:?}: {what}", schema.name)))
}

/// Checks that a change fits its table, which has these columns of any length.
pub(crate) fn check(
    schema: &TableSchema,
    long: &LongColumns,
    change: &Change<'_>,
) -> Result<(), LoadError> {
    let (key, row) = (change.key.len(), usize::from(change.first) + change.words.len());
    if key != usize::from(schema.key_words) {
        let (name, words) = (&schema.name, schema.key_words);
        let what = format!("a key of {key} words, where keys of {name} have {words}");
        return Err(LoadError::Ghost(what));
    }
    if row > schema.row_words() {
        let (name, words) = (&schema.name, schema.row_words());
        let what = format!("a change of word {}, where rows of {name} have {words} words", row - 1);
        return Err(LoadError::Ghost(what));
    }
    let checked = long.check(change.first, change.words, change.values());
    checked.map_err(|what| LoadError::Ghost(format!("table {:?}: {what}", schema.name)))
}

/// Returns the error of a change of a row that is not there.
pub(crate) fn ghost(schema: &TableSchema, change: &Change<'_>) -> Result<(), LoadError> {
    let kind = if change.kind == ChangeKind::Delete { "a delete" } else { "an update" };
    let (name, key) = (&schema.name, change.key);
    Err(LoadError::Ghost(format!("{kind} of a row that is not there: {name} {key:?}")))
}
