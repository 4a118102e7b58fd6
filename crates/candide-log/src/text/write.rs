//! Rows become text.

use super::TextFormat;
use super::csv::{cell_of, quoted};
use super::fields::with_fields;
use super::to_json::{Shown, object};
use crate::format::long_row::LongRow;
use crate::schema::TableSchema;

/// A writer of the rows of a table as text.
#[derive(Debug)]
pub struct TextWriter {
    table: TableSchema,
    format: TextFormat,
    line: String,
}

impl TextWriter {
    /// Returns a writer of rows of this table.
    pub fn new(table: &TableSchema, format: TextFormat) -> TextWriter {
        TextWriter { table: with_fields(table), format, line: String::new() }
    }

    /// Returns the text before the first row: the names of the fields, and the end of the line.
    /// Empty in JSON.
    pub fn head(&mut self) -> &str {
        let names = self.table.fields.iter().map(|field| quoted(&field.name));
        self.line = match self.format {
            TextFormat::Json => String::new(),
            TextFormat::Csv => names.collect::<Vec<_>>().join(",") + "\n",
        };
        &self.line
    }

    /// Returns a row as text, with the end of its line.
    ///
    /// # Errors
    /// The words are no row of the table; the text says why.
    pub fn row(&mut self, row: LongRow<'_>) -> Result<&str, String> {
        let fields = &self.table.fields;
        let values = fields.iter().map(|field| row.value_of(&self.table, field));
        let values = values.collect::<Result<Vec<_>, _>>()?;
        let both = fields.iter().zip(&values);
        self.line = match self.format {
            TextFormat::Json => {
                object(both.map(|(field, value)| (&field.name, Shown(&field.ty, value))))
            }
            TextFormat::Csv => {
                both.map(|(field, value)| cell_of(&field.ty, value)).collect::<Vec<_>>().join(",")
            }
        };
        self.line.push('\n');
        Ok(&self.line)
    }
}
