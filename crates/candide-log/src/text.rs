//! Rows as text: JSON and comma-separated values, written and read by the description of a table.
//!
//! In JSON, a row is an object in a line of its own, with a member for each field. In
//! comma-separated values (RFC 4180), the first line has the names of the fields, and each further
//! record is a row.
//!
//! | type | in JSON | in a cell |
//! |---|---|---|
//! | `bool` | `true`, `false` | the same |
//! | whole numbers | a number; a string from 2<sup>53</sup> on, since many programs read numbers as `f64` | digits |
//! | floating-point numbers | a number, or `"inf"`, `"-inf"`, `"NaN"` | the same, without quotes |
//! | `char`, texts | a string | the text |
//! | bytes | a string of hexadecimal digits | the digits |
//! | a variant | `"Name"`; `{"Name": value}` if it has parts | the name, or as in JSON |
//! | an optional value | `null`, or the value; of an optional value in another one, `[value]` | nothing, or the value; an empty text is `""` |
//! | a struct with one part without a name | the part | the part |
//! | another struct, an array | an object, or an array | as in JSON |
//! | words that only the program knows | `"0x"` and digits, or an array of such strings | as in JSON |
//!
//! A table without a description has its words as fields: `key0`, `key1`, .., `word0`, ..

#![forbid(unsafe_code)]

// Layers, lowest first: fault, fields, to_json, json, of_json, csv, write, read.
mod csv;
mod fault;
mod fields;
mod json;
mod of_json;
mod read;
mod to_json;
mod write;

pub use fault::{Fault, TextError};
pub use read::TextReader;
pub use to_json::json_of;
pub use write::TextWriter;

/// The form of rows as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TextFormat {
    /// An object of JSON for each row, one in a line.
    #[default]
    Json,
    /// Comma-separated values, the names of the fields in the first line.
    Csv,
}
