//! Printing the commit records of a database.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::str::FromStr;

use candide_log::format::commit::{Change, ChangeKind, CommitRecord};
use candide_log::format::manifest::Manifest;
use candide_log::schema::{TableSchema, Value as Field};
use candide_log::text::json_of;
use candide_log::tools::{self, Item};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{directory, failed};
use crate::failure::Failure;
use crate::output;
use crate::results::Finding;

/// The smallest stamp whose commit records are printed, in one generation and all later ones, or in
/// every generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct From {
    generation: Option<u64>,
    cut: u64,
}

impl FromStr for From {
    type Err = String;

    /// Parses `CUT` or `GENERATION:CUT`.
    fn from_str(text: &str) -> Result<From, String> {
        let (generation, cut) = match text.split_once(':') {
            Some((generation, cut)) => (Some(generation), cut),
            None => (None, text),
        };
        let number = |text: &str| {
            text.parse().map_err(|_| {
                "expected a stamp, such as 17, or a generation and a stamp, such as 2:17"
                    .to_string()
            })
        };
        Ok(From { generation: generation.map(number).transpose()?, cut: number(cut)? })
    }
}

impl From {
    fn includes(self, generation: u64, stamp: u64) -> bool {
        match self.generation {
            None => stamp >= self.cut,
            Some(first) => (generation, stamp) >= (first, self.cut),
        }
    }
}

/// The choice of the commit records that are printed, and the form in which they are.
#[derive(Debug, Default)]
pub struct Inspection {
    /// The table whose changes are printed; `None` for all tables.
    pub table: Option<String>,
    /// The place to begin at; `None` for the beginning.
    pub from: Option<From>,
    /// Whether to print an object of JSON for each commit record, one in a line.
    pub json: bool,
}

/// Prints the commit records that the files of a database contain, in the order in which they lie
/// there: those that the checkpoint keeps, and those of the log. Keys and columns have their names
/// and values, if the files describe them; words are in hexadecimal.
///
/// # Errors
/// The directory contains no database or no such table, the database is in use, or a file cannot be
/// read or is damaged. Everything before the damage has been printed.
pub fn inspect(place: &Path, inspection: &Inspection) -> Result<Finding, Failure> {
    let disk = directory(place)?;
    let mut looked = Ok(());
    let mut unknown = None;
    output::print(|out| {
        let mut printer =
            Printer { inspection, out, tables: Vec::new(), table: None, generation: 0 };
        let mut printed = Ok(());
        looked = tools::inspect(&disk, &mut |item| {
            match printer.item(item) {
                Ok(()) => return ControlFlow::Continue(()),
                Err(Stop::Unknown(what)) => unknown = Some(what),
                Err(Stop::Io(error)) => printed = Err(error),
            }
            ControlFlow::Break(())
        });
        printed
    })?;
    if let Some(what) = unknown {
        return Err(Failure::Usage(format!("{} {what}", place.display())));
    }
    looked.map_err(|error| failed(place, error))?;
    Ok(Finding::Good)
}

/// The reason why nothing more is printed.
enum Stop {
    /// The database has no table of this name.
    Unknown(String),
    Io(io::Error),
}

struct Printer<'a> {
    inspection: &'a Inspection,
    out: &'a mut dyn Write,
    /// The tables, by number.
    tables: Vec<TableSchema>,
    /// The number of the table that is wanted.
    table: Option<u32>,
    generation: u64,
}

/// A commit record as JSON.
#[derive(Serialize)]
struct RecordJson<'a> {
    file: &'a str,
    offset: u64,
    generation: u64,
    stamp: u64,
    version: u64,
    changes: Vec<ChangeJson<'a>>,
}

/// A change as JSON. Numbers of 64 bits are hexadecimal, since many programs cannot read them.
#[derive(Serialize)]
struct ChangeJson<'a> {
    kind: &'static str,
    table: &'a str,
    key: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    words: Vec<String>,
    /// The place in the row of the first of `words`.
    first: u16,
    /// The parts of the key and the columns by name, if the files describe them: the key's first.
    #[serde(skip_serializing_if = "Map::is_empty")]
    values: Map<String, Value>,
    /// Why the words are no values of the columns.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
    /// The values as text.
    #[serde(skip)]
    text: Option<String>,
}

impl Printer<'_> {
    fn item(&mut self, item: Item<'_>) -> Result<(), Stop> {
        match item {
            Item::Manifest(manifest) => self.manifest(manifest),
            Item::Block { header, .. } => {
                self.generation = header.generation;
                Ok(())
            }
            Item::Record { file, offset, record } => {
                self.record(file, offset, &record).map_err(Stop::Io)
            }
            Item::Row { .. } | Item::Segment { .. } | Item::End { .. } => Ok(()),
        }
    }

    fn manifest(&mut self, manifest: &Manifest) -> Result<(), Stop> {
        self.tables = manifest.tables.clone();
        self.generation =
            manifest.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.generation);
        let Some(wanted) = &self.inspection.table else { return Ok(()) };
        self.table =
            self.tables.iter().find(|table| table.name == *wanted).map(|table| table.number);
        if self.table.is_some() {
            return Ok(());
        }
        let in_use = self.tables.iter().filter(|table| table.is_in_use());
        let names: Vec<_> = in_use.map(|table| &table.name[..]).collect();
        let names = names.join(", ");
        Err(Stop::Unknown(format!("has no table `{wanted}`; its tables are {names}")))
    }

    fn record(&mut self, file: &str, offset: u64, record: &CommitRecord<'_>) -> io::Result<()> {
        let (generation, stamp) = (self.generation, record.stamp);
        if self.inspection.from.is_some_and(|from| !from.includes(generation, stamp)) {
            return Ok(());
        }
        let is_wanted =
            |change: &Change<'_>| self.table.is_none_or(|number| number == u32::from(change.table));
        let changes: Vec<_> = record.entries().filter(is_wanted).collect();
        if changes.is_empty() && self.table.is_some() {
            return Ok(());
        }
        let Printer { inspection, out, tables, .. } = self;
        let tables: &[TableSchema] = tables;
        let changes = changes.iter().map(|change| {
            let number = u32::from(change.table);
            let table = tables.binary_search_by_key(&number, |table| table.number);
            ChangeJson::new(change, table.ok().map(|place| &tables[place]))
        });
        let changes = changes.collect();
        let version = record.version;
        let record = RecordJson { file, offset, generation, stamp, version, changes };
        if inspection.json {
            let text = serde_json::to_string(&record)?;
            return writeln!(out, "{text}");
        }
        writeln!(
            out,
            "{file} at byte {offset}: generation {generation}, stamp {stamp}, version {version}"
        )?;
        for ChangeJson { kind, table, key, words, first, text, fault, .. } in &record.changes {
            write!(out, "  {kind} {table} ")?;
            if let Some(text) = text {
                writeln!(out, "{text}")?;
                continue;
            }
            if let Some(fault) = fault {
                write!(out, "({fault}) ")?;
            }
            write!(out, "{}", key.join(" "))?;
            match &words[..] {
                [] => writeln!(out)?,
                words => writeln!(out, " from word {first}: {}", words.join(" "))?,
            }
        }
        Ok(())
    }
}

impl<'a> ChangeJson<'a> {
    /// Returns a change of a table, which is not known if the files are damaged.
    fn new(change: &Change<'_>, table: Option<&'a TableSchema>) -> ChangeJson<'a> {
        let mut shown = ChangeJson {
            kind: match change.kind {
                ChangeKind::Update => "update",
                ChangeKind::Put => "put",
                ChangeKind::Delete => "delete",
            },
            table: match table {
                None => "?",
                Some(table) if table.is_in_use() => &table.name,
                Some(_) => "(dropped)",
            },
            key: hexadecimal(change.key),
            words: hexadecimal(change.words),
            first: change.first,
            values: Map::new(),
            fault: None,
            text: None,
        };
        let Some(table) = table.filter(|table| !table.fields.is_empty()) else { return shown };
        let key = table.key_values(change.key);
        let columns = key.and_then(|key| {
            let mut columns = table.column_values(change.first, change.words)?;
            for value in change.values() {
                let Some(field) = table.long_column(value.place) else { continue };
                columns.push((&*field.name, field.of_bytes(value.bytes().as_deref())?));
            }
            Ok((key, columns))
        });
        match columns {
            Ok((key, columns)) => {
                let list = |values: &[(&str, Field)]| {
                    let each = values.iter().map(|(name, value)| format!("{name}: {value}"));
                    each.collect::<Vec<_>>().join(", ")
                };
                let arrow = if columns.is_empty() { "" } else { " -> " };
                shown.text = Some(format!("{}{arrow}{}", list(&key), list(&columns)));
                let named = key.into_iter().chain(columns);
                shown.values = named
                    .map(|(name, value)| (name.to_owned(), json(table, name, &value)))
                    .collect();
            }
            Err(fault) => shown.fault = Some(fault),
        }
        shown
    }
}

/// Returns the value of a field as JSON.
fn json(table: &TableSchema, name: &str, value: &Field) -> Value {
    let field = table.fields.iter().find(|field| field.name == name);
    let text = field.map(|field| json_of(&field.ty, value));
    text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

/// Returns words with sixteen hexadecimal digits each.
fn hexadecimal(words: &[u64]) -> Vec<String> {
    words.iter().map(|word| format!("{word:016x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn option_from_is_a_version_of_one_generation_or_of_all() {
        let every: From = "17".parse().unwrap();
        assert!(every.includes(1, 17) && every.includes(9, 18) && !every.includes(9, 16));
        let one: From = "2:17".parse().unwrap();
        assert!(one.includes(2, 17) && one.includes(3, 1));
        assert!(!one.includes(2, 16) && !one.includes(1, 99));
        for text in ["", "x", "2:", ":17", "1:2:3", "-1"] {
            assert!(text.parse::<From>().unwrap_err().contains("such as 2:17"), "{text}");
        }
    }
}
