//! The tables and rows of a database: `candide tables`, `candide dump` and `candide get`.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::ops::ControlFlow;
use std::path::Path;

use candide_log::OpenError;
use candide_log::schema::{FieldSchema, TableSchema, Value};
use candide_log::tools::{self, RowReader};

use super::values::{hexadecimal, json};
use super::{directory, failed};
use crate::failure::Failure;
use crate::output;
use crate::results::{Finding, grouped};

/// The form in which rows are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RowFormat {
    /// An object of JSON for each row, one in a line.
    #[default]
    Json,
    /// Comma-separated values, the names of the columns in the first line.
    Csv,
}

/// Prints the tables of a database: name, row type, number of rows, and the fields and indexes, if
/// the files describe them.
///
/// # Errors
/// The directory contains no database, the database is in use, or a file cannot be read or is
/// damaged.
pub fn tables(place: &Path) -> Result<Finding, Failure> {
    let disk = directory(place)?;
    let mut counter = Counter::default();
    tools::rows(&disk, &mut counter).map_err(|error| failed(place, error))?;
    let Counter { tables, rows } = counter;
    output::print(|out| {
        if tables.is_empty() {
            writeln!(out, "{} has no tables", place.display())?;
        }
        for table in &tables {
            let count = rows.get(&table.number).copied().unwrap_or(0);
            print_table(out, table, count)?;
        }
        Ok(())
    })?;
    Ok(Finding::Good)
}

/// The tables, and the number of rows of each.
#[derive(Default)]
struct Counter {
    tables: Vec<TableSchema>,
    rows: BTreeMap<u32, u64>,
}

impl RowReader for Counter {
    fn tables(&mut self, tables: &[TableSchema]) -> ControlFlow<()> {
        self.tables = tables.to_vec();
        ControlFlow::Continue(())
    }

    fn row(&mut self, table: &TableSchema, _: &[u64], _: &[u64]) -> ControlFlow<()> {
        *self.rows.entry(table.number).or_default() += 1;
        ControlFlow::Continue(())
    }
}

fn print_table(out: &mut dyn Write, table: &TableSchema, rows: u64) -> io::Result<()> {
    let TableSchema { name, row_type, fields, .. } = table;
    let rows_are =
        if rows == 1 { "1 row".to_owned() } else { format!("{} rows", grouped(rows as f64)) };
    writeln!(out, "{name} ({row_type}): {rows_are}")?;
    if fields.is_empty() {
        let (key, row) = (table.key_words, table.row_words());
        writeln!(
            out,
            "  keys of {key} words and rows of {row} words, which the files do not describe"
        )?;
    }
    for field in fields {
        let key = if field.is_key() { ", in the key" } else { "" };
        let default = if field.default.is_some() { ", with a default" } else { "" };
        writeln!(out, "  {}: {}{key}{default}", field.name, field.ty)?;
    }
    for index in &table.indexes {
        let columns = index.columns.iter().filter_map(|column| fields.get(usize::from(*column)));
        let columns: Vec<_> = columns.map(|column| &column.name[..]).collect();
        let of =
            if columns.is_empty() { String::new() } else { format!(" of {}", columns.join(", ")) };
        let unique = if index.unique { "unique " } else { "" };
        writeln!(out, "  {unique}index {}{of}", index.name)?;
    }
    Ok(())
}

/// Prints all rows of a table, in ascending order of the words of their keys.
///
/// # Errors
/// The directory contains no database or no such table, the database is in use, or a file cannot be
/// read or is damaged. The error says up to which row all have been printed.
pub fn dump(place: &Path, table: &str, format: RowFormat) -> Result<Finding, Failure> {
    print_rows(place, table, format, &Wanted::All)?;
    Ok(Finding::Good)
}

/// Prints the row of a table with a key, which is given as
/// [`key_of_text`](TableSchema::key_of_text) says, or as `@` and the name of a file that contains
/// the text.
///
/// # Errors
/// The directory contains no database or no such table, the text is no key of the table, there is
/// no such row, the database is in use, or a file cannot be read or is damaged.
pub fn get(place: &Path, table: &str, key: &str, format: RowFormat) -> Result<Finding, Failure> {
    let text = match key.strip_prefix('@') {
        None => key.to_owned(),
        Some(file) => {
            let text = fs::read_to_string(file).map_err(|error| {
                let what = match error.kind() {
                    ErrorKind::InvalidData => "the file is not UTF-8".to_owned(),
                    _ => error.to_string(),
                };
                Failure::Usage(format!("the key cannot be read from {file}: {what}"))
            })?;
            let line = text.strip_suffix('\n').unwrap_or(&text);
            line.strip_suffix('\r').unwrap_or(line).to_owned()
        }
    };
    match print_rows(place, table, format, &Wanted::Key(text))? {
        0 => {
            let what =
                format!("{}: table `{table}` has no row with the key {key}", place.display());
            Err(Failure::Run(what.into()))
        }
        _ => Ok(Finding::Good),
    }
}

/// The rows that are printed.
enum Wanted {
    All,
    /// The row with the key of this text.
    Key(String),
}

/// Prints rows of a table, and returns their number.
fn print_rows(
    place: &Path,
    table: &str,
    format: RowFormat,
    wanted: &Wanted,
) -> Result<u64, Failure> {
    let disk = directory(place)?;
    let (mut read, mut stop, mut count, mut last) = (Ok(()), None, 0, None);
    output::print(|out| {
        let mut printer = Printer::new(out, table, format, wanted);
        read = tools::rows(&disk, &mut printer);
        (stop, count, last) = (printer.stop.take(), printer.count, printer.last.take());
        match stop.take() {
            Some(Stop::Io(error)) => Err(error),
            other => {
                stop = other;
                Ok(())
            }
        }
    })?;
    let shown = place.display();
    let printed = match last {
        Some(last) => {
            format!("all rows up to the key {last} have been printed, and none behind it")
        }
        None => "no row has been printed".to_owned(),
    };
    match (stop, read) {
        (Some(Stop::Refused(what)), _) => Err(Failure::Usage(format!("{shown}: {what}"))),
        (Some(Stop::Fault(what)), _) => {
            Err(Failure::Run(format!("{shown}: {what}; {printed}").into()))
        }
        (_, Ok(())) => Ok(count),
        (_, Err(error @ OpenError::Corrupt { .. })) => {
            Err(Failure::Run(format!("{shown}: {error}; {printed}").into()))
        }
        (_, Err(error)) => Err(failed(place, error)),
    }
}

/// The reason why no more rows are read.
enum Stop {
    /// The database has no such table, or the table no such key.
    Refused(String),
    /// The words of a row are no values of its columns.
    Fault(String),
    Io(io::Error),
    /// The row that is wanted has been printed, or is not there.
    Done,
}

struct Printer<'a> {
    out: &'a mut dyn Write,
    table: &'a str,
    format: RowFormat,
    wanted: &'a Wanted,
    number: Option<u32>,
    /// The words of the key that is wanted.
    key: Option<Vec<u64>>,
    count: u64,
    /// The key of the last row that was printed.
    last: Option<String>,
    stop: Option<Stop>,
}

impl<'a> Printer<'a> {
    fn new(
        out: &'a mut dyn Write,
        table: &'a str,
        format: RowFormat,
        wanted: &'a Wanted,
    ) -> Printer<'a> {
        let (number, key, count, last, stop) = (None, None, 0, None, None);
        Printer { out, table, format, wanted, number, key, count, last, stop }
    }

    /// Finds the table, and the words of the key.
    fn begin(&mut self, tables: &[TableSchema]) -> Result<(), Stop> {
        let Some(table) = tables.iter().find(|table| table.name == self.table) else {
            let names: Vec<_> = tables.iter().map(|table| &table.name[..]).collect();
            let there = match &names[..] {
                [] => "there are none".to_owned(),
                names => format!("its tables are {}", names.join(", ")),
            };
            return Err(Stop::Refused(format!("there is no table `{}`; {there}", self.table)));
        };
        self.number = Some(table.number);
        if let Wanted::Key(text) = self.wanted {
            let key = table.key_of_text(text);
            self.key = Some(key.map_err(|what| {
                Stop::Refused(format!("`{text}` is no key of table `{}`: {what}", table.name))
            })?);
        }
        // The names are printed with the row that is wanted, if it is there.
        if self.key.is_none() { self.print_names(table) } else { Ok(()) }
    }

    /// Prints the names of the columns, if the format has them.
    fn print_names(&mut self, table: &TableSchema) -> Result<(), Stop> {
        if self.format == RowFormat::Csv {
            let names: Vec<_> = names_of(table).map(|name| quoted(&name)).collect();
            writeln!(self.out, "{}", names.join(",")).map_err(Stop::Io)?;
        }
        Ok(())
    }

    fn print(&mut self, table: &TableSchema, key: &[u64], words: &[u64]) -> Result<(), Stop> {
        if self.number.is_some_and(|number| number < table.number) {
            return Err(Stop::Done);
        }
        if self.number != Some(table.number) || self.key.as_ref().is_some_and(|own| own != key) {
            return Ok(());
        }
        let line = match self.format {
            RowFormat::Json => line_of_json(table, key, words),
            RowFormat::Csv => line_of_csv(table, key, words),
        };
        let line = line.map_err(|what| {
            Stop::Fault(format!("the row with the key {}: {what}", show_key(table, key)))
        })?;
        if self.key.is_some() {
            self.print_names(table)?;
        }
        writeln!(self.out, "{line}").map_err(Stop::Io)?;
        self.count += 1;
        self.last = Some(show_key(table, key));
        if self.key.is_some() { Err(Stop::Done) } else { Ok(()) }
    }

    fn goes_on(&mut self, done: Result<(), Stop>) -> ControlFlow<()> {
        match done {
            Ok(()) => ControlFlow::Continue(()),
            Err(stop) => {
                self.stop = Some(stop);
                ControlFlow::Break(())
            }
        }
    }
}

impl RowReader for Printer<'_> {
    fn tables(&mut self, tables: &[TableSchema]) -> ControlFlow<()> {
        let begun = self.begin(tables);
        self.goes_on(begun)
    }

    fn row(&mut self, table: &TableSchema, key: &[u64], words: &[u64]) -> ControlFlow<()> {
        let printed = self.print(table, key, words);
        self.goes_on(printed)
    }
}

/// Returns the names of the columns of a printed table.
fn names_of(table: &TableSchema) -> impl Iterator<Item = String> {
    let words = |what: &'static str, count: usize| {
        let count = if table.fields.is_empty() { count } else { 0 };
        (0..count).map(move |number| format!("{what}{number}"))
    };
    let fields = table.fields.iter().map(|field: &FieldSchema| field.name.clone());
    fields.chain(words("key", table.key_words.into())).chain(words("word", table.row_words()))
}

/// Returns the values of a row by the names of its fields, in their order.
fn values_of<'t>(
    table: &'t TableSchema,
    key: &[u64],
    words: &[u64],
) -> Result<Vec<(&'t str, Value)>, String> {
    let mut values: BTreeMap<&str, Value> = table.key_values(key)?.into_iter().collect();
    values.extend(table.column_values(0, words)?);
    let fields = table.fields.iter().map(|field| &field.name[..]);
    Ok(fields.filter_map(|name| values.remove_entry(name)).collect())
}

/// Returns words as `key_of_text` takes them.
fn words_of(words: &[u64]) -> impl Iterator<Item = String> {
    hexadecimal(words).into_iter().map(|digits| format!("0x{digits}"))
}

fn line_of_json(table: &TableSchema, key: &[u64], words: &[u64]) -> Result<String, String> {
    let parts: Vec<(&str, serde_json::Value)> = match table.fields.is_empty() {
        true => {
            let list = |words: &[u64]| words_of(words).collect::<Vec<_>>().into();
            vec![("key", list(key)), ("words", list(words))]
        }
        false => {
            let values = values_of(table, key, words)?;
            values.into_iter().map(|(name, value)| (name, json(&value))).collect()
        }
    };
    let parts = parts.into_iter().map(|(name, value)| {
        let name = serde_json::Value::from(name);
        format!("{name}:{value}")
    });
    Ok(format!("{{{}}}", parts.collect::<Vec<_>>().join(",")))
}

fn line_of_csv(table: &TableSchema, key: &[u64], words: &[u64]) -> Result<String, String> {
    let cells: Vec<String> = match table.fields.is_empty() {
        true => words_of(key).chain(words_of(words)).collect(),
        false => values_of(table, key, words)?.iter().map(|(_, value)| cell(value)).collect(),
    };
    Ok(cells.join(","))
}

/// Returns a value as a cell: nothing is the absence of an optional value, and an empty text is two
/// quotes. A value with parts is written as JSON.
fn cell(value: &Value) -> String {
    match json(value) {
        serde_json::Value::Null => String::new(),
        serde_json::Value::String(text) if text.is_empty() => "\"\"".to_owned(),
        serde_json::Value::String(text) => quoted(&text),
        other => quoted(&other.to_string()),
    }
}

/// Returns a text as a cell, in quotes if it needs them.
fn quoted(text: &str) -> String {
    let needs_quotes = text.contains([',', '"', '\n', '\r'])
        || text.starts_with(char::is_whitespace)
        || text.ends_with(char::is_whitespace);
    match needs_quotes {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

/// Returns a key for a message.
fn show_key(table: &TableSchema, key: &[u64]) -> String {
    match table.key_values(key) {
        Ok(values) if !values.is_empty() => {
            let values = values.iter().map(|(name, value)| format!("{name}: {value}"));
            values.collect::<Vec<_>>().join(", ")
        }
        _ => words_of(key).collect::<Vec<_>>().join(","),
    }
}
