//! Rows as JSON and as comma-separated values, under the feature `text`.

#![forbid(unsafe_code)]

use super::row_values::for_each_long_row;
use super::session::Session;
use super::stream::InsertWords;
use super::table::Table;
use crate::catalog::schema_of;
use crate::engine::{Protocol, TableCore};
use crate::error::{Abort, Error, StreamError};
use crate::handle::Handle;
use crate::schema::{FieldInfo, Key, Record, RowType};
use crate::shared::Inner;
use crate::txn::Tx;
use candide_log::format::long_row::LongRow;
use candide_log::schema::{TableSchema, TypeSchema};
use candide_log::text::{Fault, TextError, TextFormat, TextReader, TextWriter};
use std::io::{self, BufReader, Read, Write};

/// The number of rows that one transaction inserts, and the number of their words from which on
/// fewer are inserted.
const ROWS_AT_ONCE: usize = 256;
const WORDS_AT_ONCE: usize = 1 << 17;

impl<R: Record, P: Protocol> Table<R, P> {
    /// Writes all rows as JSON, an object in a line for each, in no particular order; returns their
    /// number. No transaction may run meanwhile. The command `candide dump` writes the same. With
    /// the cargo feature `text`.
    ///
    /// Members have the names of fields. Numbers from 2<sup>53</sup> on are strings, since many
    /// programs read numbers as `f64`, and so are bytes (hexadecimal digits), dates and addresses.
    ///
    /// ```
    /// # use candide::{Database, Record, Text};
    /// #[derive(Record, Clone, Copy)]
    /// struct Person { #[key] id: u32, name: Text<16>, phone: Option<Text<12>> }
    ///
    /// # let db = Database::new();
    /// let people = db.table::<Person>("people")?;
    /// db.run(|tx| people.insert(tx, Person { id: 1, name: Text::new("Ann")?, phone: None }))?;
    /// let mut text = Vec::new();
    /// people.export_json(&mut text)?;
    /// assert_eq!(text, b"{\"id\":1,\"name\":\"Ann\",\"phone\":null}\n");
    /// # let db = Database::new();
    /// # let people = db.table::<Person>("people")?;
    /// assert_eq!(people.import_json(&mut &text[..])?, 1);
    ///
    /// let wrong = b"{\"id\":2,\"name\":\"Bob\",\"phone\":null}\n{\"id\":-1,\"name\":\"\",\"phone\":null}\n";
    /// let error = people.import_json(&mut &wrong[..]).unwrap_err().to_string();
    /// assert_eq!(error, "line 2, column 7: `-1` is no value of `id: u32`, which is a number from 0 to \
    ///     4294967295; the row before it has been inserted, and none from it on");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotQuiescent`] if transactions were running or have run meanwhile, and errors of
    /// writing. What has been written so far is then not all.
    pub fn export_json(&self, to: &mut impl Write) -> Result<u64, StreamError> {
        self.export_text(TextFormat::Json, to)
    }

    /// Writes all rows as comma-separated values, the names of the fields in the first line, as
    /// [`Table::export_json`] writes JSON. The absence of an optional value is an empty cell, an
    /// empty text is `""`, and an array or a value with several parts is JSON. With the cargo
    /// feature `text`.
    ///
    /// # Errors
    /// As [`Table::export_json`].
    pub fn export_csv(&self, to: &mut impl Write) -> Result<u64, StreamError> {
        self.export_text(TextFormat::Csv, to)
    }

    /// Inserts the rows of a text as [`Table::export_json`] writes it; returns their number. Every
    /// row has every field, in any order. Texts of columns of `Json` are checked. Some hundred rows
    /// at a time are inserted in a transaction. With the cargo feature `text`.
    ///
    /// # Errors
    /// [`StreamError::Text`] if a line is no row of the table, or if a row cannot be inserted (see
    /// [`Table::insert`]): it names the line, and all rows before that line have been inserted.
    /// Errors of reading: rows before the error have been inserted. [`Error::SecondSession`].
    ///
    /// # Panics
    /// If words of a field whose type does not describe itself are no value of it.
    pub fn import_json(&self, from: &mut impl Read) -> Result<u64, StreamError> {
        self.import_text(TextFormat::Json, from)
    }

    /// Inserts the rows of a text as [`Table::export_csv`] writes it, as [`Table::import_json`]
    /// does. The first line names the fields, in any order. The last line has an end, since it
    /// would not show otherwise that a text is cut off. With the cargo feature `text`.
    ///
    /// # Errors
    /// As [`Table::import_json`].
    pub fn import_csv(&self, from: &mut impl Read) -> Result<u64, StreamError> {
        self.import_text(TextFormat::Csv, from)
    }

    fn export_text(&self, format: TextFormat, to: &mut dyn Write) -> Result<u64, StreamError> {
        let table = schema_of(&self.core().name, &RowType::of::<R>());
        export(self.inner(), self.core(), TextWriter::new(&table, format), to)
    }

    fn import_text(&self, format: TextFormat, from: &mut dyn Read) -> Result<u64, StreamError> {
        let row = RowType::of::<R>();
        let mut table = schema_of(&self.core().name, &row);
        mark_json(&mut table, row.fields);
        let row_words = R::Key::WORDS + table.row_words();
        let insert = &mut |tx: &Tx<'_, P>, rows: &[u64]| self.insert_words(tx, rows, row_words);
        import(self.inner(), &table, format, from, insert)
    }
}

/// Writes all rows of a table.
fn export<P: Protocol>(
    inner: &Inner<P>,
    table: &TableCore,
    mut writer: TextWriter,
    to: &mut dyn Write,
) -> Result<u64, StreamError> {
    const PIECE_BYTES: usize = 1 << 16;
    let mut piece = writer.head().to_owned();
    let (mut total, mut written) = (0, Ok(()));
    let commits = inner.stats().commits;
    for_each_long_row(inner, table, &mut |row| {
        if written.is_err() {
            return;
        }
        match writer.row(row) {
            Ok(row) => piece.push_str(row),
            Err(what) => written = Err(io::Error::new(io::ErrorKind::InvalidData, what)),
        }
        total += 1;
        if piece.len() >= PIECE_BYTES {
            written = to.write_all(piece.as_bytes());
            piece.clear();
        }
    })?;
    written?;
    if !inner.is_quiescent() || inner.stats().commits != commits {
        return Err(Error::NotQuiescent.into());
    }
    to.write_all(piece.as_bytes())?;
    to.flush()?;
    Ok(total)
}

/// Gives columns of JSON, which files have as those of strings, the type of JSON, so that the
/// reader checks their texts. `fields` are those of the table.
fn mark_json(table: &mut TableSchema, fields: &[FieldInfo]) {
    for (field, info) in table.fields.iter_mut().zip(fields) {
        field.ty = match &field.ty {
            _ if info.long_check.is_none() => continue,
            TypeSchema::Option(_) => TypeSchema::Option(Box::new(TypeSchema::Json)),
            _ => TypeSchema::Json,
        };
    }
}

/// Inserts the rows of a text.
fn import<P: Protocol>(
    inner: &Handle<P>,
    table: &TableSchema,
    format: TextFormat,
    from: &mut dyn Read,
    insert: &mut InsertWords<'_, P>,
) -> Result<u64, StreamError> {
    let mut from = BufReader::new(from);
    let mut reader = TextReader::new(table, format, &mut from);
    let mut import =
        Import { session: Session::new(inner)?, rows: Vec::new(), lines: Vec::new(), total: 0 };
    let has_values = table.fields.iter().any(|field| field.ty.is_value());
    let (mut key, mut words, mut values) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        let read = reader.next(&mut key, &mut words, &mut values);
        if let Ok(true) = read {
            if has_values {
                let row = LongRow::of(&key, &words, &values).expect("the reader makes rows");
                row.append_to(&mut import.rows);
            } else {
                import.rows.extend_from_slice(&key);
                import.rows.extend_from_slice(&words);
            }
            import.lines.push((reader.line(), import.rows.len()));
            if import.lines.len() < ROWS_AT_ONCE && import.rows.len() < WORDS_AT_ONCE {
                continue;
            }
        }
        import.insert(insert)?;
        let rows = import.total;
        match read {
            Ok(true) => {}
            Ok(false) => return Ok(rows),
            Err(TextError::Io(error)) => return Err(StreamError::Io(error)),
            Err(TextError::Fault(fault)) => return Err(StreamError::Text { fault, rows }),
        }
    }
}

/// An import that is going on.
struct Import<P: Protocol> {
    session: Session<P>,
    /// The words of the rows that have been read and not inserted, and the line of each of these
    /// rows and the end of its words.
    rows: Vec<u64>,
    lines: Vec<(u64, usize)>,
    /// The number of rows that have been inserted.
    total: u64,
}

impl<P: Protocol> Import<P> {
    /// Inserts the rows that have been read: all of them at once, or else one by one up to the
    /// first that is refused.
    fn insert(&mut self, insert: &mut InsertWords<'_, P>) -> Result<(), StreamError> {
        let Import { session, rows, lines, total } = self;
        if lines.is_empty() {
            return Ok(());
        }
        if session.run_body(&mut |tx| insert(tx, rows)).is_err() {
            let mut begin = 0;
            for (line, end) in &*lines {
                let row = &rows[begin..*end];
                begin = *end;
                session.run_body(&mut |tx| insert(tx, row)).map_err(|cause| {
                    let refused = session
                        .last_outcome()
                        .filter(|_| matches!(cause, Abort::Undecodable | Abort::KeyTooLong));
                    let what =
                        refused.map_or_else(|| cause.to_string(), |outcome| outcome.to_string());
                    let fault = Fault { line: *line, column: 1, what };
                    StreamError::Text { fault, rows: *total }
                })?;
                *total += 1;
            }
        } else {
            *total += lines.len() as u64;
        }
        rows.clear();
        lines.clear();
        Ok(())
    }
}
