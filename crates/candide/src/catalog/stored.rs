//! Tables in the files of a database: their schemas, and the difference between a schema and the
//! row type of a program.

#![forbid(unsafe_code)]

use super::described::fields_of;
use crate::error::{Abort, Error};
use crate::schema::{Group, RowType};
use crate::sync::process;
use candide_log::format::manifest::fields_hash;
use candide_log::schema::{IndexSchema, Sides, TableSchema, TableState};
use candide_log::{Store, StoreError, WriteError};
use std::collections::HashSet;
use std::fmt::{self, Formatter};
use std::sync::LazyLock;

/// Adds a table to the files, and returns its number in the log. The table is durable then.
pub(super) fn add(store: &Store, schema: TableSchema) -> Result<u16, Error> {
    store.add_table(schema).map(|number| number as u16).map_err(files_error)
}

/// Returns the schema of a table with rows of a program's type, without options.
pub(crate) fn schema_of(name: &str, row: &RowType) -> TableSchema {
    let fields = fields_of(row);
    TableSchema {
        number: 0,
        name: name.to_owned(),
        row_type: row.name.to_owned(),
        schema: if fields.is_empty() { row.schema } else { fields_hash(&fields) },
        key_words: row.key_words as u16,
        key_widths: row.key_widths.to_vec(),
        groups: row.groups.iter().map(|group| (group.name.into(), group.words as u32)).collect(),
        ordered: row.ordered,
        splitting: None,
        policy: None,
        indexes: row
            .indexes
            .iter()
            .map(|spec| IndexSchema {
                name: spec.name.to_owned(),
                unique: spec.unique,
                ordered: spec.ordered,
                columns: spec.fields.to_vec(),
            })
            .collect(),
        fields,
        state: TableState::InUse,
    }
}

/// Writes the description of a program's row type into the files, unless they have it. `known` is
/// what they have, and rows of the type are rows of that. Indexes that the program makes by calls
/// stay there.
pub(super) fn describe(store: &Store, known: &TableSchema, row: &RowType) -> Result<(), Error> {
    let TableSchema { row_type, schema, groups, mut indexes, fields, .. } = schema_of("", row);
    if !known.fields.is_empty() {
        let is_declared = |name: &str| row.indexes.iter().any(|spec| *spec.name == *name);
        let made = known.indexes.iter().filter(|index| index.columns.is_empty());
        indexes.extend(made.filter(|index| !is_declared(&index.name)).cloned());
    }
    let is_same = known.fields == fields
        && known.indexes == indexes
        && known.row_type == row_type
        && known.schema == schema;
    if is_same {
        return Ok(());
    }
    let change = |known: &mut TableSchema| {
        (known.row_type, known.schema, known.groups) = (row_type, schema, groups);
        (known.indexes, known.fields) = (indexes, fields);
    };
    store.change_table(known.number, change).map_err(files_error)
}

/// Writes into the files that a table has an index which the program makes by a call. So tools know
/// that they cannot check it. Returns whether the files did not have that.
pub(crate) fn note_index(
    store: &Store,
    table: u16,
    (name, unique, ordered): (&str, bool, bool),
) -> Result<bool, Error> {
    let index = IndexSchema { name: name.to_owned(), unique, ordered, columns: Vec::new() };
    if indexes_of(store, table).contains(&index) {
        return Ok(false);
    }
    let change = |schema: &mut TableSchema| {
        schema.indexes.retain(|known| known.name != index.name);
        schema.indexes.push(index);
    };
    store.change_table(table.into(), change).map(|()| true).map_err(files_error)
}

/// Removes an index that the program has made by a call from the files. Returns whether they had
/// it.
pub(crate) fn forget_index(store: &Store, table: u16, name: &str) -> Result<bool, Error> {
    if !indexes_of(store, table).iter().any(|index| index.name == name) {
        return Ok(false);
    }
    let change = |schema: &mut TableSchema| schema.indexes.retain(|index| index.name != name);
    store.change_table(table.into(), change).map(|()| true).map_err(files_error)
}

/// Returns the indexes of a table in the files.
fn indexes_of(store: &Store, table: u16) -> Vec<IndexSchema> {
    let mut tables = store.tables().into_iter();
    tables
        .find(|known| known.number == u32::from(table))
        .map_or_else(Vec::new, |known| known.indexes)
}

/// Returns the error of work on files.
pub(crate) fn files_error(error: StoreError) -> Error {
    match error {
        StoreError::Log(WriteError::Failed(_)) => Error::Transaction(Abort::LogFailed),
        StoreError::Full { .. } | StoreError::Log(WriteError::Full(_)) => {
            Error::Transaction(Abort::DiskFull)
        }
        StoreError::TooManyTables => Error::TooManyTables,
        other => Error::Files { problem: other.to_string() },
    }
}

/// Returns how a program's type differs from the rows of a table in the files; `None` if they can
/// be rows of that type.
pub(super) fn difference(schema: &TableSchema, row: &RowType) -> Option<String> {
    let program = schema_of(&schema.name, row);
    let difference = match (schema.fields.is_empty(), program.fields.is_empty()) {
        (false, false) => {
            let differences = schema.differences(&program, Sides::FILES);
            (!differences.is_empty()).then(|| differences.join("; "))
        }
        (false, true) => Some("the files describe the columns, and the type does not".to_owned()),
        // Recovery has not read the values of columns that the files do not describe.
        (true, _) if !row.long.is_empty() => {
            Some("the files do not describe the columns, some of which have any length".to_owned())
        }
        // The files have no description yet, or neither has one.
        (true, _) => of_words(schema, row).map(|difference| {
            let advice = "; open the database once with the type that the table was made with, so \
                          that its files describe the columns";
            format!("{difference}{}", if program.fields.is_empty() { "" } else { advice })
        }),
    };
    let not_ordered = || {
        let is_lost = row.ordered && !schema.ordered;
        is_lost.then(|| "the program wants keys in order, and the files do not".to_owned())
    };
    difference.or_else(not_ordered)
}

/// Returns how the words of rows differ, or the hash by which earlier versions recognise the type.
fn of_words(schema: &TableSchema, row: &RowType) -> Option<String> {
    let differs = |what: &str, there: &dyn fmt::Debug, here: &dyn fmt::Debug| {
        Some(format!("{what} {there:?} in the files and {here:?} in the program"))
    };
    let groups: Vec<(String, u32)> =
        row.groups.iter().map(|group| (group.name.to_owned(), group.words as u32)).collect();
    if schema.key_words != row.key_words as u16 || schema.key_widths != row.key_widths {
        return differs(
            "the bits of the key's components are",
            &schema.key_widths,
            &row.key_widths,
        );
    }
    if schema.groups != groups {
        return differs("the column groups and their words are", &schema.groups, &groups);
    }
    if schema.schema != row.schema {
        return differs("the hash of all fields is", &schema.schema, &row.schema);
    }
    None
}

/// Returns the column groups of a schema.
pub(super) fn groups(schema: &TableSchema) -> &'static [Group] {
    static KNOWN: LazyLock<process::Mutex<HashSet<&'static [Group]>>> =
        LazyLock::new(Default::default);
    let groups = schema.groups.iter();
    let groups: Vec<Group> =
        groups.map(|(name, words)| Group::new(intern(name), *words as usize)).collect();
    let mut known = process::lock(&KNOWN);
    if let Some(known) = known.get(&*groups) {
        return known;
    }
    let groups: &'static [Group] = groups.leak();
    known.insert(groups);
    groups
}

/// Returns a text for the life of the process. Each text is kept once, however often a database is
/// opened.
pub(super) fn intern(text: &str) -> &'static str {
    static KNOWN: LazyLock<process::Mutex<HashSet<&'static str>>> = LazyLock::new(Default::default);
    let mut known = process::lock(&KNOWN);
    if let Some(known) = known.get(text) {
        return known;
    }
    let text: &'static str = text.to_owned().leak();
    known.insert(text);
    text
}

/// Writes the words of a key whose type is not known yet.
pub(super) fn show_words(words: &[u64], f: &mut Formatter<'_>) -> fmt::Result {
    write!(f, "{words:x?}")
}
