//! Loading rows into a table: `candide load`.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use candide::any::Erased;
use candide::experiments::TableWords;
use candide::{Abort, Database, Level, LogOptions, Session};
use candide_log::format::long_row::LongRow;
use candide_log::schema::TableSchema;
use candide_log::text::{Fault, TextError, TextFormat, TextReader};
use candide_log::tools::{self, RowReader};

use super::contents::{find, show_key};
use super::{directory, failed};
use crate::failure::Failure;
use crate::results::{Finding, grouped};
use crate::{interrupt, output, progress};

/// The path of standard input.
const STANDARD: &str = "-";
/// The number of rows that one transaction inserts.
const ROWS_AT_ONCE: usize = 256;
/// The number of words of rows from which on a transaction inserts no more of them.
const WORDS_AT_ONCE: usize = 1 << 17;
/// The beginning of the names of the engine's own tables.
const RESERVED: &str = "candide.";

/// The order to load rows.
#[derive(Debug)]
pub struct Loading {
    /// The name of the table.
    pub table: String,
    /// The file of the rows; `-` for standard input.
    pub from: PathBuf,
    /// The form of the rows.
    pub format: TextFormat,
}

/// Inserts the rows of a text into a table of a database that is not in use, and makes them
/// durable. Prints their number.
///
/// # Errors
/// The directory contains no database or no such table, the database is in use or damaged, or the
/// text cannot be read; nothing has changed then. A line is no row of the table, or there is a row
/// with its key, also in a unique index that the row type declares; the error says up to which row
/// all have been loaded.
pub fn load(place: &Path, order: &Loading) -> Result<Finding, Failure> {
    let table = table_of(place, &order.table)?;
    let mut from = open(&order.from)?;
    interrupt::listen()?;
    let options = LogOptions::new().acknowledge(Level::Memory);
    let builder = Database::<Erased>::builder();
    let db = builder.open(place, options).map_err(|error| failed(place, error))?;
    let reader = TextReader::new(&table, order.format, &mut *from);
    let mut session = db.session().map_err(|error| Failure::Run(Box::new(error)))?;
    let work = |words: TableWords<'_, Erased>| {
        let unique = Unique::of(&table, words)?;
        let mut load = Load { table: &table, words, unique, count: 0, last: Vec::new() };
        let ended = load.all(&mut session, reader);
        Ok::<_, Failure>((ended, load.count, load.last))
    };
    let done = db.with_words(&order.table, work);
    let (ended, count, last) = done
        .unwrap_or_else(|| Err(Failure::Run(format!("table `{}` has gone", order.table).into())))?;
    drop(session);
    let shown = match order.from.as_os_str() == STANDARD {
        true => "standard input".to_owned(),
        false => order.from.display().to_string(),
    };
    let loaded = match count {
        0 => "no row has been loaded".to_owned(),
        count => format!(
            "all rows up to the key {} have been loaded, {} in all, and none behind it",
            show_key(&table, &last),
            grouped(count as f64)
        ),
    };
    db.sync().map_err(|error| {
        let place = place.display();
        Failure::Run(
            format!("{place}: {error}; rows may be missing from one on that is not known").into(),
        )
    })?;
    match ended {
        Err(end) => Err(end.failure(&shown, &loaded)),
        Ok(()) => {
            warn(&table);
            output::print(|out| {
                let rows = if count == 1 { "row" } else { "rows" };
                let count = grouped(count as f64);
                writeln!(out, "{count} {rows} of {shown} are now in table `{}`", order.table)
            })?;
            Ok(Finding::Good)
        }
    }
}

/// Returns the description of a table of a database that is not in use.
fn table_of(place: &Path, name: &str) -> Result<TableSchema, Failure> {
    struct Tables(Vec<TableSchema>);
    impl RowReader for Tables {
        fn tables(&mut self, tables: &[TableSchema]) -> ControlFlow<()> {
            self.0 = tables.to_vec();
            ControlFlow::Break(())
        }

        fn row(&mut self, _: &TableSchema, _: LongRow<'_>) -> ControlFlow<()> {
            ControlFlow::Break(())
        }
    }
    let disk = directory(place)?;
    let mut tables = Tables(Vec::new());
    tools::rows(&disk, &mut tables).map_err(|error| failed(place, error))?;
    let refused = |what: String| Failure::Usage(format!("{}: {what}", place.display()));
    if name.starts_with(RESERVED) {
        return Err(refused(format!(
            "`{name}` is a table of the engine's own, which has its rows"
        )));
    }
    find(&tables.0, name).cloned().map_err(refused)
}

/// Opens the text from its beginning.
fn open(from: &Path) -> Result<Box<dyn BufRead>, Failure> {
    if from.as_os_str() == STANDARD {
        return Ok(Box::new(BufReader::new(progress::reading(io::stdin(), None))));
    }
    let opened = File::open(from).and_then(|file| {
        let about = file.metadata()?;
        match about.is_dir() {
            true => Err(io::ErrorKind::IsADirectory.into()),
            false => Ok((file, about.is_file().then_some(about.len()))),
        }
    });
    match opened {
        Ok((file, length)) => Ok(Box::new(BufReader::new(progress::reading(file, length)))),
        Err(error) => {
            let shown = from.display();
            Err(Failure::Usage(format!("the rows cannot be read from {shown}: {error}")))
        }
    }
}

/// Says which indexes have not been checked.
fn warn(table: &TableSchema) {
    let unknown = table.indexes.iter().filter(|index| index.unique && index.columns.is_empty());
    let unknown: Vec<_> = unknown.map(|index| format!("`{}`", index.name)).collect();
    if !unknown.is_empty() {
        output::say(&format!(
            "warning: the files do not have the columns of the unique index {}; the program \
             checks it when it opens the database and makes the index",
            unknown.join(", ")
        ));
    }
}

/// The name of an index, its columns, and the keys that rows have in it.
type Keys<'a> = (&'a str, &'a [u16], HashSet<Vec<u64>>);

/// The keys that rows have in the unique indexes whose columns the files describe.
struct Unique<'a> {
    indexes: Vec<Keys<'a>>,
}

impl<'a> Unique<'a> {
    /// Collects the keys of the rows that are there.
    fn of(table: &'a TableSchema, words: TableWords<'_, Erased>) -> Result<Unique<'a>, Failure> {
        let indexes = table.indexes.iter();
        let indexes = indexes.filter(|index| index.unique && !index.columns.is_empty());
        let indexes = indexes.map(|index| (&index.name[..], &index.columns[..], HashSet::new()));
        let mut unique = Unique { indexes: indexes.collect() };
        if unique.indexes.is_empty() {
            return Ok(unique);
        }
        let mut fault = None;
        words.for_each_row(&mut |row| {
            fault = fault.take().or(unique.add(table, row.key, row.words).err());
        })?;
        match fault {
            None => Ok(unique),
            Some(what) => {
                Err(Failure::Run(format!("table `{}` is not sound: {what}", table.name).into()))
            }
        }
    }

    /// Adds the keys of a row, all of them or none.
    fn add(&mut self, table: &TableSchema, key: &[u64], words: &[u64]) -> Result<(), String> {
        let mut keys = Vec::with_capacity(self.indexes.len());
        for (name, columns, known) in &self.indexes {
            let index_key = table.index_key(columns, key, words)?;
            if known.contains(&index_key) {
                let fields = columns.iter().map(|column| &table.fields[usize::from(*column)]);
                let values = fields.map(|field| {
                    let value = table.value_of(field, key, words)?;
                    Ok(format!("{}: {value}", field.name))
                });
                let values = values.collect::<Result<Vec<_>, String>>()?.join(", ");
                return Err(format!("another row has the key {values} in unique index `{name}`"));
            }
            keys.push(index_key);
        }
        for ((_, _, known), key) in self.indexes.iter_mut().zip(keys) {
            known.insert(key);
        }
        Ok(())
    }
}

/// A loading that is going on.
struct Load<'a> {
    table: &'a TableSchema,
    words: TableWords<'a, Erased>,
    unique: Unique<'a>,
    /// The number of the rows that have been committed, and the key of the last one.
    count: u64,
    last: Vec<u64>,
}

/// The reason why a loading has ended early.
enum End {
    Io(io::Error),
    Fault(Fault),
    Refused { line: u64, cause: Abort },
    Interrupted,
}

/// A row that has been read, with its values as files have them, and the line in which it begins.
struct Read {
    line: u64,
    key: Vec<u64>,
    words: Vec<u64>,
    values: Vec<u64>,
}

impl Load<'_> {
    /// Inserts all rows, or those before the first that is refused.
    fn all(
        &mut self,
        session: &mut Session<Erased>,
        mut reader: TextReader<'_>,
    ) -> Result<(), End> {
        let (mut rows, mut words): (Vec<Read>, usize) = (Vec::new(), 0);
        loop {
            let next = self.next(&mut reader);
            let is_last = !matches!(next, Ok(Some(_)));
            let end = match next {
                Ok(row) => {
                    rows.extend(row);
                    Ok(())
                }
                Err(end) => Err(end),
            };
            words += rows.last().map_or(0, |row| row.words.len() + row.values.len());
            if is_last || rows.len() == ROWS_AT_ONCE || words >= WORDS_AT_ONCE {
                self.commit(session, &rows)?;
                rows.clear();
                words = 0;
            }
            end?;
            if is_last {
                return Ok(());
            }
            if interrupt::is_pressed() {
                return Err(End::Interrupted);
            }
        }
    }

    /// Reads a row, and notes its keys in the unique indexes.
    fn next(&mut self, reader: &mut TextReader<'_>) -> Result<Option<Read>, End> {
        let (mut key, mut words, mut values) = (Vec::new(), Vec::new(), Vec::new());
        match reader.next(&mut key, &mut words, &mut values) {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(TextError::Io(error)) => return Err(End::Io(error)),
            Err(TextError::Fault(fault)) => return Err(End::Fault(fault)),
        }
        let line = reader.line();
        match self.unique.add(self.table, &key, &words) {
            Ok(()) => Ok(Some(Read { line, key, words, values })),
            Err(what) => Err(End::Fault(Fault { line, column: 1, what })),
        }
    }

    /// Inserts rows in one transaction, up to the first whose key is there.
    fn commit(&mut self, session: &mut Session<Erased>, rows: &[Read]) -> Result<(), End> {
        let Some(first) = rows.first() else { return Ok(()) };
        let inserted = session.run(|tx| {
            for (count, Read { key, words, values, .. }) in rows.iter().enumerate() {
                let row = LongRow::of(key, words, values).expect("the reader makes rows");
                if !self.words.insert_row(tx, row)? {
                    return Ok(count);
                }
            }
            Ok::<_, Abort>(rows.len())
        });
        let inserted = inserted.map_err(|cause| End::Refused { line: first.line, cause })?;
        self.count += inserted as u64;
        if let Some(last) = inserted.checked_sub(1) {
            self.last.clone_from(&rows[last].key);
        }
        match rows.get(inserted) {
            None => Ok(()),
            Some(Read { line, key, .. }) => {
                let what = format!("a row has the key {} already", show_key(self.table, key));
                Err(End::Fault(Fault { line: *line, column: 1, what }))
            }
        }
    }
}

impl End {
    /// Returns the failure of the command.
    fn failure(self, from: &str, loaded: &str) -> Failure {
        let what = match self {
            End::Io(error) => format!("the rows cannot be read: {error}"),
            End::Fault(fault) => fault.to_string(),
            End::Refused { line, cause } => format!("line {line}: {cause}"),
            End::Interrupted => "interrupted".to_owned(),
        };
        Failure::Run(format!("{from}: {what}; {loaded}").into())
    }
}
