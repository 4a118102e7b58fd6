//! Rows become text.

use super::TextFormat;
use super::csv::{push_cell, push_quoted};
use super::fields::with_fields;
use super::json::push_string;
use super::json_value::push;
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
        self.line.clear();
        if self.format == TextFormat::Csv {
            for (place, field) in self.table.fields.iter().enumerate() {
                if place > 0 {
                    self.line.push(',');
                }
                push_quoted(&field.name, &mut self.line);
            }
            self.line.push('\n');
        }
        &self.line
    }

    /// Returns a row as text, with the end of its line.
    ///
    /// # Errors
    /// The words are no row of the table; the text says why.
    pub fn row(&mut self, key: &[u64], words: &[u64]) -> Result<&str, String> {
        self.line.clear();
        if self.format == TextFormat::Json {
            self.line.push('{');
        }
        for (place, field) in self.table.fields.iter().enumerate() {
            let value = self.table.value_of(field, key, words)?;
            if place > 0 {
                self.line.push(',');
            }
            match self.format {
                TextFormat::Json => {
                    push_string(&field.name, &mut self.line);
                    self.line.push(':');
                    push(&field.ty, &value, &mut self.line);
                }
                TextFormat::Csv => push_cell(&field.ty, &value, &mut self.line),
            }
        }
        self.line.push_str(if self.format == TextFormat::Json { "}\n" } else { "\n" });
        Ok(&self.line)
    }
}
