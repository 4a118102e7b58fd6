//! The description of a table without its row type.

#![forbid(unsafe_code)]

// Layers, lowest first: types, field, value, known, value_shown, encode, value_text, difference,
// conversion_step, conversion_long, conversion, key_text.
mod conversion;
mod conversion_long;
mod conversion_step;
mod difference;
mod encode;
mod field;
mod key_text;
mod known;
mod types;
mod value;
mod value_shown;
mod value_text;

pub use conversion::Conversion;
pub use difference::Sides;
pub use field::{FieldPlace, FieldSchema};
#[cfg(feature = "text")]
pub(crate) use known::{is_known, known_text};
pub use types::{EnumSchema, PartSchema, StructSchema, TYPE_DEPTH_MAX, TypeSchema, VariantSchema};
pub use value::{ELEMENTS_MAX, Value};

use std::collections::HashSet;

/// The largest number of a table.
pub const TABLE_NUMBER_MAX: u32 = u16::MAX as u32;
/// The largest number of words of a key.
pub const KEY_WORDS_MAX: usize = u8::MAX as usize;
/// The largest number of words of a row, its key not included.
pub const ROW_WORDS_MAX: usize = u16::MAX as usize;
/// The largest number of bytes of a name.
pub const NAME_BYTES_MAX: usize = u16::MAX as usize;
/// The largest number of groups, of indexes, of fields, and of entries of the key widths of a
/// table.
pub const PARTS_MAX: usize = u16::MAX as usize;

/// The largest number of bytes of a value of a column of any length, and of a default.
pub const VALUE_BYTES_MAX: usize = 1 << 24;

/// A table as MANIFEST describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSchema {
    /// The number by which commit records name the table, at most [`TABLE_NUMBER_MAX`].
    pub number: u32,
    /// The name by which programs open the table.
    pub name: String,
    /// The name of the row type, for messages.
    pub row_type: String,
    /// A hash that shows whether the row type has changed: that of the fields
    /// ([`fields_hash`](crate::format::manifest::fields_hash)); or, of a table without fields, the
    /// hash that the row type states.
    pub schema: u64,
    /// The number of words of a key, at most [`KEY_WORDS_MAX`].
    pub key_words: u16,
    /// The number of bits used in each component of the key, each at most 64.
    pub key_widths: Vec<u32>,
    /// The column groups, each with its name and number of words. A row is the words of all groups,
    /// one group after another.
    pub groups: Vec<(String, u32)>,
    /// Whether the table keeps its rows in the order of their keys.
    pub ordered: bool,
    /// Whether each group has a separate version; `None` if the program did not choose.
    pub splitting: Option<bool>,
    /// The name of the policy by which transactions lock rows, if the program named one.
    pub policy: Option<String>,
    /// The secondary indexes. Their entries are not logged; recovery makes them from the rows.
    pub indexes: Vec<IndexSchema>,
    /// The parts of the key and the columns; empty if the row type does not describe them.
    pub fields: Vec<FieldSchema>,
    /// Whether the table is in use.
    pub state: TableState,
}

/// Whether a table is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TableState {
    /// The table is in use, and has a name.
    #[default]
    InUse,
    /// The table has been dropped, and has no name. Its rows and records are skipped.
    Dropped,
    /// The table is being made from another one, and has no name yet. An opening drops it.
    Unfinished {
        /// The number of the other table.
        from: u32,
    },
}

/// A secondary index of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexSchema {
    /// The name of the index.
    pub name: String,
    /// Whether two rows must not have the same key of this index.
    pub unique: bool,
    /// Whether the index keeps its keys in order.
    pub ordered: bool,
    /// The places of its columns in the list of the table's fields; empty if they are not
    /// described.
    pub columns: Vec<u16>,
}

impl TableSchema {
    /// Returns the number of words of a row: the sum of the groups' words.
    pub fn row_words(&self) -> usize {
        self.groups.iter().map(|(_, words)| *words as usize).fold(0, usize::saturating_add)
    }

    /// Returns whether the table is in use.
    pub fn is_in_use(&self) -> bool {
        self.state == TableState::InUse
    }

    /// Returns what stays known of the table after it has been dropped.
    #[must_use]
    pub fn dropped(&self) -> TableSchema {
        TableSchema {
            name: String::new(),
            state: TableState::Dropped,
            policy: None,
            indexes: Vec::new(),
            fields: Vec::new(),
            ..self.clone()
        }
    }

    /// Returns whether the rows and records of the table are skipped.
    pub fn is_dropped(&self) -> bool {
        self.state == TableState::Dropped
    }

    /// Checks that the schema can be written in MANIFEST, and its rows in commit records.
    ///
    /// # Errors
    /// Returns a sentence that names the first limit that the schema does not keep.
    pub fn check(&self) -> Result<(), String> {
        let name = &self.name;
        if self.number > TABLE_NUMBER_MAX {
            let number = self.number;
            return Err(format!("table {number} has a number above {TABLE_NUMBER_MAX}"));
        }
        if usize::from(self.key_words) > KEY_WORDS_MAX {
            let words = self.key_words;
            return Err(format!(
                "table {name:?} has keys of {words} words; {KEY_WORDS_MAX} are the most"
            ));
        }
        if let Some(width) = self.key_widths.iter().find(|width| **width > u64::BITS) {
            return Err(format!(
                "table {name:?} has a key component of {width} bits; 64 are the most"
            ));
        }
        if self.row_words() > ROW_WORDS_MAX {
            let words = self.row_words();
            return Err(format!(
                "table {name:?} has rows of {words} words; {ROW_WORDS_MAX} are the most"
            ));
        }
        if self.key_words == 0 && self.row_words() == 0 {
            return Err(format!("neither the keys nor the rows of table {name:?} have a word"));
        }
        self.check_counts()?;
        self.check_names()?;
        self.check_fields()
    }

    /// Checks how many parts the table has.
    fn check_counts(&self) -> Result<(), String> {
        let name = &self.name;
        let counts = [
            ("key components", self.key_widths.len()),
            ("groups", self.groups.len()),
            ("indexes", self.indexes.len()),
            ("fields", self.fields.len()),
        ];
        if let Some((of, count)) = counts.into_iter().find(|(_, count)| *count > PARTS_MAX) {
            return Err(format!("table {name:?} has {count} {of}; {PARTS_MAX} are the most"));
        }
        match self.indexes.iter().find(|index| index.columns.len() > PARTS_MAX) {
            Some(IndexSchema { name: index, columns, .. }) => {
                let count = columns.len();
                Err(format!("index {index:?} has {count} fields; {PARTS_MAX} are the most"))
            }
            None => Ok(()),
        }
    }

    /// Checks how long names are.
    fn check_names(&self) -> Result<(), String> {
        let names = [("it", &self.name), ("its row type", &self.row_type)].into_iter();
        let mut names = names
            .chain(self.policy.iter().map(|name| ("its policy", name)))
            .chain(self.groups.iter().map(|(name, _)| ("a group", name)))
            .chain(self.indexes.iter().map(|index| ("an index", &index.name)))
            .chain(self.fields.iter().map(|field| ("a field", &field.name)));
        match names.find(|(_, name)| name.len() > NAME_BYTES_MAX) {
            Some((of, long)) => {
                let (bytes, most, number) = (long.len(), NAME_BYTES_MAX, self.number);
                Err(format!(
                    "table {number}: {of} has a name of {bytes} bytes; {most} are the most"
                ))
            }
            None => Ok(()),
        }
    }

    /// Checks the fields, the fields that indexes name, and whether the table has a name.
    fn check_fields(&self) -> Result<(), String> {
        let (name, number) = (&self.name, self.number);
        if !self.is_in_use() && !name.is_empty() {
            return Err(format!("table {number} is not in use, and has the name {name:?}"));
        }
        let of_table = |what| format!("table {number}: {what}");
        let (mut key, mut names) = (0, HashSet::new());
        for field in &self.fields {
            field.check(&self.groups, &mut key).map_err(of_table)?;
            if !names.insert(&field.name) {
                return Err(of_table(format!("two fields have the name {:?}", field.name)));
            }
        }
        if !self.fields.is_empty() && key != u64::from(self.key_words) {
            let words = self.key_words;
            return Err(of_table(format!("its key has {words} words, and those of fields {key}")));
        }
        let mut of_indexes = self.indexes.iter().flat_map(|index| &index.columns);
        match of_indexes.find(|column| usize::from(**column) >= self.fields.len()) {
            Some(column) => Err(of_table(format!("an index has field {column}"))),
            None => Ok(()),
        }
    }
}
