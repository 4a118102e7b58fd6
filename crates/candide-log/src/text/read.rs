//! Text becomes rows.

use super::TextFormat;
use super::csv::{Cells, value_of};
use super::fault::{FaultAt, TextError, fault};
use super::fields::{named, places, with_fields};
use super::json::Json;
use super::of_json::{Named, values_of};
use crate::format::long_row::append_value;
use crate::schema::{TableSchema, TypeSchema, VALUE_BYTES_MAX, Value};
use std::fmt::{self, Debug, Formatter};
use std::io::{BufRead, Read};

/// The largest number of bytes of a line, or of the lines of one record, without columns of any
/// length; and of the text of one such column, in which a byte may take six, as `\u0001`.
const LINE_BYTES_MAX: u64 = 1 << 26;
const VALUE_TEXT_BYTES_MAX: u64 = 6 * VALUE_BYTES_MAX as u64;
/// The mark of its encoding with which a text may begin.
const MARK: &[u8] = "\u{feff}".as_bytes();

/// A reader of rows of a table from text. Every row has every field; the order of members, or of
/// the names in the first line, does not matter.
pub struct TextReader<'a> {
    table: TableSchema,
    format: TextFormat,
    line_bytes_max: u64,
    from: &'a mut dyn BufRead,
    /// The line or record that was read last.
    text: Vec<u8>,
    /// The number of its first line, from 1; and that of the line behind it.
    line: u64,
    next_line: u64,
    /// The cells of the record.
    cells: Cells,
    /// The places of the fields that the cells of a record have; empty before the first line.
    columns: Vec<usize>,
}

impl Debug for TextReader<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let table = &self.table.name;
        f.debug_struct("TextReader").field("table", table).field("line", &self.line).finish()
    }
}

impl<'a> TextReader<'a> {
    /// Returns a reader of rows of this table.
    pub fn new(
        table: &TableSchema,
        format: TextFormat,
        from: &'a mut dyn BufRead,
    ) -> TextReader<'a> {
        let long = table.fields.iter().filter(|field| field.ty.is_value()).count() as u64;
        TextReader {
            table: with_fields(table),
            format,
            line_bytes_max: LINE_BYTES_MAX + long * VALUE_TEXT_BYTES_MAX,
            from,
            text: Vec::new(),
            line: 0,
            next_line: 1,
            cells: Cells::new(),
            columns: Vec::new(),
        }
    }

    /// Returns the number of the line in which the last row begins, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Reads the next row: replaces `key` by the words of its key, `words` by those of all groups,
    /// and `values` by those of its values, as files have them. Returns whether there is a row; if
    /// not, the text has ended.
    ///
    /// # Errors
    /// The text cannot be read, is not UTF-8, or is no row of the table; the error names line,
    /// column and field. Nothing is known of the text behind it.
    pub fn next(
        &mut self,
        key: &mut Vec<u64>,
        words: &mut Vec<u64>,
        values: &mut Vec<u64>,
    ) -> Result<bool, TextError> {
        if self.format == TextFormat::Csv && self.columns.is_empty() {
            self.read_head()?;
        }
        // An empty line is a row only if it can be the only cell.
        let can_be_empty = self.format == TextFormat::Csv && self.table.fields.len() == 1;
        while self.read_text()? {
            let text = self.utf8()?;
            if text.trim().is_empty() && !(can_be_empty && text.is_empty()) {
                continue;
            }
            let at = |fault| self.at(text, fault);
            let read = self.values(text).map_err(at)?;
            key.clear();
            words.clear();
            words.resize(self.table.row_words(), 0);
            values.clear();
            let mut long = Vec::new();
            for (number, value) in read.iter().enumerate() {
                let field = &self.table.fields[number];
                if field.ty.is_value() {
                    long.extend(self.table.place_in_row(field).zip(bytes_of(&field.ty, value)));
                } else {
                    let stored = self.table.store(number, value, key, words);
                    stored.or_else(|what| fault(0, what)).map_err(at)?;
                }
            }
            long.sort_unstable();
            let mut last = None;
            for (place, bytes) in long {
                append_value(values, &mut last, place as u16, bytes);
            }
            return Ok(true);
        }
        Ok(false)
    }

    /// Reads the next line; in CSV, the next record, which may have several lines. Returns whether
    /// there is one.
    fn read_text(&mut self) -> Result<bool, TextError> {
        self.text.clear();
        self.cells.clear();
        self.line = self.next_line;
        loop {
            let left = self.line_bytes_max + 1 - self.text.len() as u64;
            let read = (&mut *self.from).take(left).read_until(b'\n', &mut self.text);
            let read = read.map_err(TextError::Io)?;
            if self.text.len() as u64 > self.line_bytes_max {
                let most = self.line_bytes_max;
                let what = format!(
                    "the line, or a text in quotes, has more than {most} bytes: is a quote not \
                     closed?"
                );
                return Err(self.at("", FaultAt { at: 0, what }));
            }
            if self.text.is_empty() {
                return Ok(false);
            }
            let is_whole = read > 0 && self.text.ends_with(b"\n");
            self.next_line += u64::from(is_whole);
            if self.line == 1 && self.text.starts_with(MARK) {
                self.text.drain(..MARK.len());
            }
            if self.format == TextFormat::Json || self.cells.split(&self.text) {
                return Ok(true);
            }
            if !is_whole {
                let what = "the text ends in this cell: it is cut off, or else a line break is \
                            missing behind the last line";
                let what = what.to_owned();
                return Err(self.at(self.utf8()?, FaultAt { at: self.cells.open().0, what }));
            }
        }
    }

    /// Returns the line or record as text, without the end of its line.
    fn utf8(&self) -> Result<&str, TextError> {
        match str::from_utf8(&self.text) {
            Ok(text) => {
                let text = text.strip_suffix('\n').unwrap_or(text);
                Ok(text.strip_suffix('\r').unwrap_or(text))
            }
            Err(error) => {
                let valid = str::from_utf8(&self.text[..error.valid_up_to()]).unwrap_or_default();
                let what = format!("byte {:#04x} is not UTF-8", self.text[valid.len()]);
                Err(self.at(valid, FaultAt { at: valid.len(), what }))
            }
        }
    }

    fn at(&self, text: &str, fault: FaultAt) -> TextError {
        TextError::Fault(fault.in_text(text, self.line))
    }

    /// Reads the names of the fields.
    fn read_head(&mut self) -> Result<(), TextError> {
        if !self.read_text()? {
            let what = "the first line, with the names of the fields, is missing".to_owned();
            return Err(self.at("", FaultAt { at: 0, what }));
        }
        let text = self.utf8()?;
        let names: Vec<_> = self.table.fields.iter().map(|field| &field.name[..]).collect();
        let columns = self.cells.of(text).and_then(|cells| {
            let given = cells.iter().map(|cell| (cell.at, cell.text));
            places(("the first line", text.len()), given, &names)
        });
        self.columns = columns.map_err(|fault| self.at(text, fault))?;
        Ok(())
    }

    /// Returns the values of the fields.
    fn values(&self, text: &str) -> Result<Vec<Value>, FaultAt> {
        let fields = self.table.fields.iter();
        let fields: Vec<_> =
            fields.map(|field| Named { name: &field.name, ty: &field.ty }).collect();
        if self.format == TextFormat::Json {
            if !text.trim_start().starts_with('{') {
                return fault(0, "a row is an object in a line of its own");
            }
            let row = Json::parse(text)?;
            return values_of(("the row", row.at), &row.members()?, &fields);
        }
        let cells = self.cells.of(text)?;
        let (count, wanted) = (cells.len(), fields.len());
        if let Some(surplus) = cells.get(wanted) {
            return fault(surplus.at, format!("the row has {count} cells, not {wanted}"));
        }
        if count < wanted {
            let missing = self.columns[count..].iter().map(|field| fields[*field].name);
            let missing = named(&missing.collect::<Vec<_>>());
            return fault(text.len(), format!("the row has {count} cells; it lacks {missing}"));
        }
        let mut values = vec![Value::None; wanted];
        for (cell, field) in cells.iter().zip(&self.columns) {
            values[*field] = value_of(fields[*field], cell)?;
        }
        Ok(values)
    }
}

/// Returns the bytes of a value of any length. `None` if it is the absence of an optional value, or
/// the empty value of a column that is not optional.
fn bytes_of<'a>(ty: &TypeSchema, value: &'a Value) -> Option<&'a [u8]> {
    match (ty, value) {
        (TypeSchema::Option(inner), Value::Some(value)) => {
            Some(bytes_of(inner, value).unwrap_or_default())
        }
        (_, Value::Text(text)) if !text.is_empty() => Some(text.as_bytes()),
        (_, Value::Bytes(bytes)) if !bytes.is_empty() => Some(bytes),
        _ => None,
    }
}
