//! Comma-separated values (RFC 4180).

use super::fault::{FaultAt, fault};
use super::json;
use super::json_value::{Named, can_be_null, push};
use crate::schema::{TypeSchema, Value, is_known};

/// A cell of a record.
#[derive(Debug)]
pub(super) struct Cell {
    /// The byte at which the cell begins.
    pub(super) at: usize,
    pub(super) text: String,
    pub(super) is_quoted: bool,
}

/// Returns whether a text ends within quotes. `is_open` says whether it begins within quotes.
pub(super) fn ends_in_quotes(text: &[u8], is_open: bool) -> bool {
    text.iter().filter(|byte| **byte == b'"').count() % 2 == usize::from(!is_open)
}

/// Splits a record at the commas outside of quotes.
pub(super) fn split(record: &str) -> Result<Vec<Cell>, FaultAt> {
    let (mut cells, mut at) = (Vec::new(), 0);
    loop {
        let rest = &record[at..];
        let (cell, length) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (text, length) = quoted_text(at, quoted)?;
                (Cell { at, text, is_quoted: true }, length + 1)
            }
            None => {
                let length = rest.find(',').unwrap_or(rest.len());
                let text = &rest[..length];
                if let Some(quote) = text.find('"') {
                    let what = "a quote in a cell that does not begin with one; put the cell in \
                                quotes, and double those within";
                    return fault(at + quote, what);
                }
                (Cell { at, text: text.to_owned(), is_quoted: false }, length)
            }
        };
        cells.push(cell);
        at += length;
        match record[at..].chars().next() {
            None => return Ok(cells),
            Some(',') => at += 1,
            Some(next) => return fault(at, format!("{next:?} follows a closing quote")),
        }
    }
}

/// Returns the text whose opening quote is before `quoted`, and the bytes up to its closing quote,
/// that one included.
fn quoted_text(at: usize, quoted: &str) -> Result<(String, usize), FaultAt> {
    let (mut text, mut length) = (String::new(), 0);
    loop {
        let Some((before, behind)) = quoted[length..].split_once('"') else {
            return fault(at, "a quote is not closed: the text is cut off");
        };
        text.push_str(before);
        length += before.len() + 1;
        if !behind.starts_with('"') {
            return Ok((text, length));
        }
        text.push('"');
        length += 1;
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

/// Appends a value as a cell.
pub(super) fn push_cell(ty: &TypeSchema, value: &Value, to: &mut String) {
    match (ty, value) {
        (_, Value::None) if is_plain(ty) => return,
        (TypeSchema::Option(inner), Value::Some(value)) if is_plain(ty) => {
            return push_cell(inner, value, to);
        }
        (_, Value::Text(text)) => return push_quoted(text, to),
        (_, Value::Char(value)) => return push_quoted(value.encode_utf8(&mut [0; 4]), to),
        _ => {}
    }
    let mut json = String::new();
    push(ty, value, &mut json);
    // A string of what needs no quotes, such as a large number or the name of a variant; a text in
    // a struct has escapes.
    match json.strip_prefix('"').and_then(|json| json.strip_suffix('"')) {
        Some(_) if is_plain(ty) => match json::parse(&json).map(|json| json.kind) {
            Ok(json::JsonKind::String(text)) => push_quoted(&text, to),
            _ => push_quoted(&json, to),
        },
        _ => push_quoted(&json, to),
    }
}

/// Appends a text as a cell, in quotes if it needs them.
pub(super) fn push_quoted(text: &str, to: &mut String) {
    let needs_quotes = text.is_empty()
        || text.contains([',', '"', '\n', '\r'])
        || text.starts_with(char::is_whitespace)
        || text.ends_with(char::is_whitespace);
    if needs_quotes {
        to.push('"');
        to.push_str(&text.replace('"', "\"\""));
        to.push('"');
    } else {
        to.push_str(text);
    }
}

/// Returns the value that a cell is.
pub(super) fn value_of(of: Named<'_>, cell: &Cell) -> Result<Value, FaultAt> {
    let Cell { at, text, is_quoted } = cell;
    let is_json = match of.ty {
        ty if !is_plain(ty) => true,
        TypeSchema::Option(_) if text.is_empty() && !is_quoted => return Ok(Value::None),
        ty => text.starts_with('{') && can_be_object(ty),
    };
    if !is_json {
        return of.of_text(*at, text);
    }
    let parsed = json::parse(text).and_then(|json| of.of_json(&json));
    // The places in the JSON are not those in the record, which may have more quotes.
    parsed.map_err(|fault| FaultAt { at: *at, ..fault })
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
