//! The tables and rows of a database: `candide tables`, `candide dump` and `candide get`.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::ops::ControlFlow;
use std::path::Path;

use candide_log::OpenError;
use candide_log::format::long_row::LongRow;
use candide_log::schema::TableSchema;
use candide_log::text::{TextFormat, TextWriter};
use candide_log::tools::{self, RowReader};

use super::{directory, failed};
use crate::failure::Failure;
use crate::output;
use crate::results::{Finding, grouped};

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

    fn row(&mut self, table: &TableSchema, _: LongRow<'_>) -> ControlFlow<()> {
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
pub fn dump(place: &Path, table: &str, format: TextFormat) -> Result<Finding, Failure> {
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
pub fn get(place: &Path, table: &str, key: &str, format: TextFormat) -> Result<Finding, Failure> {
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
    format: TextFormat,
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
        Some((table, key)) => {
            let last = show_key(&table, &key);
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
    format: TextFormat,
    wanted: &'a Wanted,
    /// The number of the table, and the writer of its rows, once it has been found.
    number: Option<u32>,
    writer: Option<TextWriter>,
    /// The words of the key that is wanted.
    key: Option<Vec<u64>>,
    count: u64,
    /// The table and the key of the last row that was printed.
    last: Option<(TableSchema, Vec<u64>)>,
    stop: Option<Stop>,
}

impl<'a> Printer<'a> {
    fn new(
        out: &'a mut dyn Write,
        table: &'a str,
        format: TextFormat,
        wanted: &'a Wanted,
    ) -> Printer<'a> {
        let (number, writer, key, last, stop) = (None, None, None, None, None);
        Printer { out, table, format, wanted, number, writer, key, count: 0, last, stop }
    }

    /// Finds the table, and the words of the key.
    fn begin(&mut self, tables: &[TableSchema]) -> Result<(), Stop> {
        let table = find(tables, self.table).map_err(Stop::Refused)?;
        self.number = Some(table.number);
        if let Wanted::Key(text) = self.wanted {
            let key = table.key_of_text(text);
            self.key = Some(key.map_err(|what| {
                Stop::Refused(format!("`{text}` is no key of table `{}`: {what}", table.name))
            })?);
        }
        let writer = self.writer.insert(TextWriter::new(table, self.format));
        // The names are printed with the row that is wanted, if it is there.
        match self.key {
            None => self.out.write_all(writer.head().as_bytes()).map_err(Stop::Io),
            Some(_) => Ok(()),
        }
    }

    fn print(&mut self, table: &TableSchema, row: LongRow<'_>) -> Result<(), Stop> {
        let key = row.key;
        let Some(writer) = &mut self.writer else { return Ok(()) };
        if self.number.is_some_and(|number| number < table.number) {
            return Err(Stop::Done);
        }
        if self.number != Some(table.number) || self.key.as_ref().is_some_and(|own| own != key) {
            return Ok(());
        }
        if self.key.is_some() {
            self.out.write_all(writer.head().as_bytes()).map_err(Stop::Io)?;
        }
        let line = writer.row(row).map_err(|what| {
            Stop::Fault(format!("the row with the key {}: {what}", show_key(table, key)))
        })?;
        self.out.write_all(line.as_bytes()).map_err(Stop::Io)?;
        self.count += 1;
        let (_, last) = self.last.get_or_insert_with(|| (table.clone(), Vec::new()));
        last.clear();
        last.extend_from_slice(key);
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

    fn row(&mut self, table: &TableSchema, row: LongRow<'_>) -> ControlFlow<()> {
        let printed = self.print(table, row);
        self.goes_on(printed)
    }
}

/// Returns the table with a name; or, if there is none, the names that there are.
pub(super) fn find<'a>(tables: &'a [TableSchema], name: &str) -> Result<&'a TableSchema, String> {
    tables.iter().find(|table| table.name == name).ok_or_else(|| {
        let names: Vec<_> = tables.iter().map(|table| &table.name[..]).collect();
        let there = match &names[..] {
            [] => "there are none".to_owned(),
            names => format!("its tables are {}", names.join(", ")),
        };
        format!("there is no table `{name}`; {there}")
    })
}

/// Returns a key for a message.
pub(super) fn show_key(table: &TableSchema, key: &[u64]) -> String {
    match table.key_values(key) {
        Ok(values) if !values.is_empty() => {
            let values = values.iter().map(|(name, value)| format!("{name}: {value}"));
            values.collect::<Vec<_>>().join(", ")
        }
        _ => key.iter().map(|word| format!("{word:#018x}")).collect::<Vec<_>>().join(","),
    }
}
