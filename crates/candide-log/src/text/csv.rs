//! Comma-separated values (RFC 4180).

use super::fault::{FaultAt, fault};
use super::json::Json;
use super::of_json::Named;
use super::to_json::{can_be_null, json_of, text_of};
use crate::schema::{TypeSchema, Value, is_known, known_text};
use csv_core::{ReadFieldResult, Reader};
use std::ops::Range;

const UNQUOTED: &str = "a quote, or a carriage return, in a cell that does not begin with a quote; \
                        put the cell in quotes, and double those within";

/// A cell of a record.
pub(super) struct Cell<'a> {
    /// The byte at which the cell begins.
    pub(super) at: usize,
    pub(super) text: &'a str,
    is_quoted: bool,
}

/// The cells of a record, which is split while it is read.
#[derive(Debug)]
pub(super) struct Cells {
    reader: Reader,
    /// The places of each cell in the record, and in the texts of all.
    places: Vec<(Range<usize>, Range<usize>)>,
    /// The texts of all cells, and zeros behind them.
    texts: Vec<u8>,
    /// The end of what has been split of the record, and of the texts.
    end: (usize, usize),
}

impl Cells {
    pub(super) fn new() -> Cells {
        // The default of a reader has no tables, and takes each byte for the end of a record.
        let reader = Reader::new();
        Cells { reader, places: Vec::new(), texts: Vec::new(), end: (0, 0) }
    }

    /// Begins a record.
    pub(super) fn clear(&mut self) {
        (self.places, self.end) = (Vec::new(), (0, 0));
    }

    /// Splits what is new of a record, to which a line has been appended. Returns whether it is
    /// whole.
    pub(super) fn split(&mut self, record: &[u8]) -> bool {
        // An empty line, which the reader would skip, is an empty cell.
        if matches!(record, b"\n" | b"\r\n") {
            self.places.push((0..0, 0..0));
            self.end.0 = record.len();
            return true;
        }
        self.texts.resize(record.len(), 0);
        while self.end.0 < record.len() {
            let (read, written) = self.end;
            let (result, more, longer) =
                self.reader.read_field(&record[read..], &mut self.texts[written..]);
            self.end = (read + more, written + longer);
            let open = self.open();
            if let ReadFieldResult::Field { record_end } = result {
                self.places.push((open.0..self.end.0 - 1, open.1..self.end.1));
                if record_end {
                    return true;
                }
            }
        }
        false
    }

    /// Returns the places at which the cell begins that has not ended.
    pub(super) fn open(&self) -> (usize, usize) {
        self.places.last().map_or((0, 0), |(place, text)| (place.end + 1, text.end))
    }

    /// Returns the cells of the record, which is whole, and given without the end of its line.
    pub(super) fn of<'a>(&'a self, record: &'a str) -> Result<Vec<Cell<'a>>, FaultAt> {
        let cell = |(place, text): &(Range<usize>, Range<usize>)| {
            let (at, raw) = (place.start, &record[place.clone()]);
            let text = str::from_utf8(&self.texts[text.clone()]).unwrap_or_default();
            let is_quoted = raw.starts_with('"');
            let quotes = text.matches('"').count();
            if is_quoted && !(raw.ends_with('"') && raw.len() == text.len() + quotes + 2) {
                return fault(at, "something follows the closing quote of this cell");
            }
            if !is_quoted && (quotes > 0 || raw != text) {
                return fault(at + raw.find(['"', '\r']).unwrap_or(0), UNQUOTED);
            }
            Ok(Cell { at, text, is_quoted })
        };
        let cells = self.places.iter().map(cell).collect::<Result<_, _>>()?;
        if self.end.0 <= record.len() {
            return fault(self.end.0 - 1, UNQUOTED);
        }
        Ok(cells)
    }
}

/// Returns whether values of a type are cells as they are, without JSON.
fn is_plain(ty: &TypeSchema) -> bool {
    match ty {
        TypeSchema::Option(inner) => !can_be_null(inner) && is_plain(inner),
        TypeSchema::Struct(of) if is_known(of) => true,
        TypeSchema::Struct(of) => match &of.parts[..] {
            [part] => part.name == "0" && !can_be_null(&part.ty) && is_plain(&part.ty),
            _ => false,
        },
        TypeSchema::Array(..) => false,
        TypeSchema::Opaque { .. } => ty.words().or(ty.key_words()) == Some(1),
        _ => true,
    }
}

/// Returns whether a plain value of a type can be an object: a variant with parts, or a struct
/// whose value has no text of its own.
fn can_be_object(ty: &TypeSchema) -> bool {
    match ty {
        TypeSchema::Option(inner) => can_be_object(inner),
        TypeSchema::Struct(of) => {
            of.parts.len() > 1 || of.parts.iter().any(|part| can_be_object(&part.ty))
        }
        ty => matches!(ty, TypeSchema::Enum(_)),
    }
}

/// Returns a value as a cell.
pub(super) fn cell_of(ty: &TypeSchema, value: &Value) -> String {
    match (ty, value) {
        _ if !is_plain(ty) => quoted(&json_of(ty, value)),
        (_, Value::None) => String::new(),
        (TypeSchema::Option(inner), Value::Some(value)) => cell_of(inner, value),
        (TypeSchema::Struct(of), Value::Parts(_, parts)) => match known_text(ty, value) {
            Some(text) => quoted(&text),
            None if parts.len() > 1 => quoted(&json_of(ty, value)),
            None => cell_of(&of.parts[0].ty, &parts[0].1),
        },
        (_, Value::Parts(_, parts)) if !parts.is_empty() => quoted(&json_of(ty, value)),
        _ => quoted(&text_of(value)),
    }
}

/// Returns a text as a cell, in quotes if it needs them.
pub(super) fn quoted(text: &str) -> String {
    let needs_quotes = text.is_empty()
        || text.contains([',', '"', '\n', '\r'])
        || text.starts_with(char::is_whitespace)
        || text.ends_with(char::is_whitespace);
    if needs_quotes { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

/// Returns the value that a cell is.
pub(super) fn value_of(of: Named<'_>, cell: &Cell<'_>) -> Result<Value, FaultAt> {
    let Cell { at, text, is_quoted } = *cell;
    let value = match of.ty {
        ty if !is_plain(ty) || text.starts_with('{') && can_be_object(ty) => {
            Json::parse(text).and_then(|json| of.of_json(json))
        }
        TypeSchema::Option(_) if text.is_empty() && !is_quoted => return Ok(Value::None),
        _ => of.of_text(at, text),
    };
    // The places in JSON are not those in the record, which may have more quotes.
    value.map_err(|fault| FaultAt { at, ..fault })
}
