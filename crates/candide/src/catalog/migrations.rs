//! Migrations: how the rows of a table in the files become rows of a program's type.

#![forbid(unsafe_code)]

use super::sequences::is_reserved;
use super::stored::{self, schema_of};
use crate::error::Error;
use crate::record::KeptBytes;
use crate::schema::{FieldInfo, RowType};
use candide_log::format::long_row::LongRow;
use candide_log::schema::{Conversion, TableSchema};
use std::any::TypeId;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

/// What happens when a program names a table whose rows in the files are of another type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Migration {
    /// The table is refused by [`Error::Schema`], which has the plan of a migration if there is
    /// one.
    #[default]
    Refuse,
    /// The rows are migrated: by a function ([`Builder::migrate`](crate::Builder::migrate)), or by
    /// the names of their fields.
    Apply,
}

/// A row as files have it: the words of its key, of its columns, and of its values.
#[derive(Debug, Default)]
pub(crate) struct NewRow {
    pub(crate) key: Vec<u64>,
    pub(crate) words: Vec<u64>,
    pub(crate) values: Vec<u64>,
}

/// A function from an old row to the new one, which is empty before. Values are kept until the
/// function has returned. Its error is what does not fit.
type Convert =
    dyn Fn(LongRow<'_>, &mut KeptBytes<'_>, &mut NewRow) -> Result<(), String> + Send + Sync;

/// The migrations that a program asks for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Migrations {
    pub(crate) wanted: Migration,
    functions: Vec<Arc<Function>>,
}

/// The function that migrates the rows of one table.
pub(crate) struct Function {
    table: Box<str>,
    old: RowType,
    new: TypeId,
    pub(crate) convert: Box<Convert>,
}

impl Debug for Function {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function").field("table", &self.table).finish_non_exhaustive()
    }
}

/// The way in which rows of a table in the files become rows of a program's type.
#[derive(Debug)]
pub(crate) struct Rewrite {
    /// What the files have.
    pub(crate) schema: TableSchema,
    pub(crate) how: How,
}

#[derive(Debug)]
pub(crate) enum How {
    ByNames(Conversion),
    By(Arc<Function>),
}

impl Migrations {
    /// Adds a function for rows of the type `old` of a table, which become rows of the type `new`.
    pub(crate) fn add(&mut self, table: &str, old: RowType, new: TypeId, convert: Box<Convert>) {
        let function = Function { table: table.into(), old, new, convert };
        self.functions.push(Arc::new(function));
    }

    /// Returns how a table becomes one of a program's type, which differs as `difference` says. The
    /// table has `rows` rows.
    ///
    /// # Errors
    /// [`Error::Schema`] if there is no way, or migration was not asked for.
    pub(super) fn rewrite(
        &self,
        schema: &TableSchema,
        row: &RowType,
        difference: String,
        rows: u64,
    ) -> Result<Rewrite, Error> {
        let how = self.how(schema, row);
        let advice = match &how {
            Ok(_) if self.wanted == Migration::Apply => None,
            Ok(how) => Some(format!(
                "a migration would {}, rewrite {} rows; `Builder::migration(Migration::Apply)` asks for it",
                how.plan(),
                with_commas(rows)
            )),
            Err(advice) => Some(advice.clone()),
        };
        match (how, advice) {
            (Ok(how), None) => Ok(Rewrite { schema: schema.clone(), how }),
            (_, advice) => Err(Error::Schema {
                table: schema.name.clone(),
                row: row.name,
                difference,
                advice: advice.unwrap_or_default(),
            }),
        }
    }

    /// Returns how a table becomes one of a program's type, or what to do instead.
    fn how(&self, schema: &TableSchema, row: &RowType) -> Result<How, String> {
        let mut of_table =
            self.functions.iter().filter(|of| *of.table == *schema.name && of.new == row.id);
        if let Some(function) = of_table.find(|of| stored::difference(schema, &of.old).is_none()) {
            return Ok(How::By(function.clone()));
        }
        if is_reserved(&schema.name) {
            return Err("name the type that the object was made with".to_owned());
        }
        let program = schema_of(&schema.name, row);
        if schema.fields.is_empty() || program.fields.is_empty() {
            return Err("name the type that the table was made with, or give that as `Old` to \
                        `Builder::migrate`"
                .to_owned());
        }
        let former = |name: &str| {
            let of_name = |field: &&FieldInfo| field.name == name;
            let found = row.fields.iter().find(of_name).map_or(&[][..], |field| field.former);
            found.iter().map(|name| (*name).to_owned()).collect()
        };
        schema.conversion(&program, &former).map(How::ByNames).map_err(|what| {
            format!(
                "rows cannot be migrated by the names of their fields: {what}; give a default, or a \
                 function to `Builder::migrate`, or name the type that the table was made with"
            )
        })
    }
}

impl How {
    fn plan(&self) -> String {
        match self {
            How::ByNames(conversion) => conversion.changes().join(", "),
            How::By(_) => "call the function that was given for the table".to_owned(),
        }
    }
}

/// Writes a number with a comma before each three digits.
fn with_commas(number: u64) -> String {
    let digits = number.to_string();
    let comma = |(place, digit): (usize, char)| {
        let is_first = place == 0 || !(digits.len() - place).is_multiple_of(3);
        (!is_first).then_some(',').into_iter().chain([digit])
    };
    digits.chars().enumerate().flat_map(comma).collect()
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    #[test]
    fn numbers_have_commas() {
        let shown = [0, 12, 123, 1_234, 123_456, 1_204_000].map(super::with_commas);
        assert_eq!(shown, ["0", "12", "123", "1,234", "123,456", "1,204,000"]);
    }
}
