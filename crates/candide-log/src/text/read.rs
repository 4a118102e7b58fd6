//! Text becomes rows.

use super::TextFormat;
use super::csv::{self, Cell};
use super::fault::{Fault, FaultAt, TextError, fault};
use super::fields::{names, with_fields};
use super::json::{self, Json, JsonKind};
use super::json_value::{Named, members_of};
use crate::schema::{FieldSchema, TableSchema, Value};
use std::fmt::{self, Debug, Formatter};
use std::io::{BufRead, Read};

/// The largest number of bytes of a line, or of the lines of one record.
const LINE_BYTES_MAX: u64 = 1 << 26;

/// A reader of rows of a table from text. Every row has every field; the order of members, or of
/// the names in the first line, does not matter.
pub struct TextReader<'a> {
    table: TableSchema,
    format: TextFormat,
    from: &'a mut dyn BufRead,
    /// The line or record that was read last.
    text: Vec<u8>,
    /// The number of its first line, from 1; and that of the line behind it.
    line: u64,
    next_line: u64,
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
        let (text, columns) = (Vec::new(), Vec::new());
        TextReader { table: with_fields(table), format, from, text, line: 0, next_line: 1, columns }
    }

    /// Returns the number of the line in which the last row begins, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Reads the next row: replaces `key` by the words of its key, and `words` by those of all
    /// groups. Returns whether there is a row; if not, the text has ended.
    ///
    /// # Errors
    /// The text cannot be read, is not UTF-8, or is no row of the table; the error names line,
    /// column and field. Nothing is known of the text behind it.
    pub fn next(&mut self, key: &mut Vec<u64>, words: &mut Vec<u64>) -> Result<bool, TextError> {
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
            let values = match self.format {
                TextFormat::Json => self.values_of_json(text),
                TextFormat::Csv => self.values_of_csv(text),
            };
            let values = values.map_err(|fault| self.at(text, fault))?;
            key.clear();
            words.clear();
            words.resize(self.table.row_words(), 0);
            for (field, value) in values.iter().enumerate() {
                self.table
                    .store(field, value, key, words)
                    .map_err(|what| self.at(text, FaultAt { at: 0, what }))?;
            }
            return Ok(true);
        }
        Ok(false)
    }

    /// Reads the next line; in CSV, the next record, which may have several lines. Returns whether
    /// there is one.
    fn read_text(&mut self) -> Result<bool, TextError> {
        self.text.clear();
        self.line = self.next_line;
        let mut is_open = false;
        loop {
            let start = self.text.len();
            let left = (LINE_BYTES_MAX + 1).saturating_sub(start as u64);
            let read = (&mut *self.from).take(left).read_until(b'\n', &mut self.text);
            read.map_err(TextError::Io)?;
            if self.text.len() as u64 > LINE_BYTES_MAX {
                let what = format!(
                    "the line, or a text in quotes, has more than {LINE_BYTES_MAX} bytes: is a \
                     quote not closed?"
                );
                return Err(self.at("", FaultAt { at: 0, what }));
            }
            if self.text.is_empty() {
                return Ok(false);
            }
            let is_whole = self.text.len() > start && self.text.ends_with(b"\n");
            self.next_line += u64::from(is_whole);
            if self.format == TextFormat::Json {
                self.text.truncate(self.text.trim_ascii_end().len());
                return Ok(true);
            }
            is_open = csv::ends_in_quotes(&self.text[start..], is_open);
            if is_whole && is_open {
                continue;
            }
            if !is_whole {
                return Err(self.cut_off(is_open));
            }
            self.text.pop();
            if self.text.ends_with(b"\r") {
                self.text.pop();
            }
            return Ok(true);
        }
    }

    /// Returns the fault of a last record without an end, or of one in which a quote is not closed.
    fn cut_off(&self, is_open: bool) -> TextError {
        let text = match self.utf8() {
            Ok(text) => text,
            Err(error) => return error,
        };
        match csv::split(text) {
            Err(fault) if is_open => self.at(text, fault),
            _ => {
                let what = "the last line has no end: the text may be cut off; add a line break \
                            if it is whole";
                self.at("", FaultAt { at: 0, what: what.to_owned() })
            }
        }
    }

    /// Returns the line or record as text. The first one may begin with a mark of its encoding.
    fn utf8(&self) -> Result<&str, TextError> {
        match str::from_utf8(&self.text) {
            Ok(text) if self.line == 1 => Ok(text.strip_prefix('\u{feff}').unwrap_or(text)),
            Ok(text) => Ok(text),
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
            return Err(TextError::Fault(Fault { line: 1, column: 1, what }));
        }
        let text = self.utf8()?;
        let cells = csv::split(text);
        let columns = cells.and_then(|cells| columns(&self.table.fields, &cells, text.len()));
        self.columns = columns.map_err(|fault| self.at(text, fault))?;
        Ok(())
    }

    fn values_of_json(&self, text: &str) -> Result<Vec<Value>, FaultAt> {
        let fields = &self.table.fields;
        if text.trim_start().starts_with('[') {
            return fault(0, "a row is an object in a line of its own, not an array");
        }
        let Json { at, kind: JsonKind::Object(members) } = json::parse(text)? else {
            return fault(0, "a row is an object in a line of its own");
        };
        let names = fields.iter().map(|field| &field.name[..]);
        let in_order = members_of("the row", at, &members, names)?;
        let both = fields.iter().zip(in_order);
        both.map(|(field, json)| named(field).of_json(json)).collect()
    }

    fn values_of_csv(&self, text: &str) -> Result<Vec<Value>, FaultAt> {
        let fields = &self.table.fields;
        let cells = csv::split(text)?;
        let (count, wanted) = (cells.len(), fields.len());
        if let Some(surplus) = cells.get(wanted) {
            return fault(
                surplus.at,
                format!("the row has {count} cells, and only {wanted} fields"),
            );
        }
        if count < wanted {
            let missing = names(self.columns[count..].iter().map(|field| &fields[*field]));
            return fault(text.len(), format!("the row has {count} cells; {missing} are missing"));
        }
        let mut values = vec![Value::None; wanted];
        for (cell, field) in cells.iter().zip(&self.columns) {
            values[*field] = csv::value_of(named(&fields[*field]), cell)?;
        }
        Ok(values)
    }
}

fn named(field: &FieldSchema) -> Named<'_> {
    Named { name: &field.name, ty: &field.ty }
}

/// Returns the places of the fields that the cells of the first line name.
fn columns(fields: &[FieldSchema], cells: &[Cell], end: usize) -> Result<Vec<usize>, FaultAt> {
    let mut columns = Vec::with_capacity(cells.len());
    for Cell { at, text, .. } in cells {
        match fields.iter().position(|field| field.name == *text) {
            Some(field) if columns.contains(&field) => {
                return fault(*at, format!("the name `{text}` is there twice"));
            }
            Some(field) => columns.push(field),
            None => {
                let there = names(fields);
                return fault(*at, format!("the table has no field `{text}`; it has {there}"));
            }
        }
    }
    let missing = (0..fields.len()).filter(|field| !columns.contains(field));
    let missing: Vec<_> = missing.map(|field| &fields[field]).collect();
    if missing.is_empty() {
        return Ok(columns);
    }
    fault(end, format!("the first line does not name {}", names(missing)))
}
