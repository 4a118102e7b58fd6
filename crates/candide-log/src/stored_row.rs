//! Rows with values of any length, in memory.

use crate::format::commit::{Change, ChangeKind};
use crate::format::long_row::LongRow;
use crate::format::value::{self, Values};
use crate::schema::{FieldSchema, TableSchema};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The columns of a table whose values have any length.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LongColumns {
    columns: Vec<LongColumn>,
}

/// A column whose values have any length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LongColumn {
    /// The place of its word in the row.
    pub place: u16,
    /// The name of the column.
    pub name: String,
    /// Whether a value may be absent.
    pub is_optional: bool,
    is_text: bool,
}

impl LongColumns {
    /// Returns those of a table.
    pub fn of(table: &TableSchema) -> LongColumns {
        let fields = table.fields.iter().filter(|field| field.ty.is_value());
        let column = |field: &FieldSchema| {
            let place = u16::try_from(table.place_in_row(field)?).ok()?;
            let (is_optional, is_text) = (!field.ty.is_long(), field.ty.is_text());
            Some(LongColumn { place, name: field.name.clone(), is_optional, is_text })
        };
        let mut columns: Vec<LongColumn> = fields.filter_map(column).collect();
        columns.sort_by_key(|column| column.place);
        LongColumns { columns }
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Returns the places of their words, in ascending order.
    pub fn places(&self) -> impl Iterator<Item = u16> {
        self.columns.iter().map(|column| column.place)
    }

    /// Returns the column whose word has this place.
    pub fn at(&self, place: u16) -> Option<&LongColumn> {
        let found = self.columns.binary_search_by_key(&place, |column| column.place);
        found.ok().map(|number| &self.columns[number])
    }

    /// Returns whether rows with these columns are rows with the columns `other`, whatever their
    /// names.
    pub fn have_rows_of(&self, other: &LongColumns) -> bool {
        let of = |column: &LongColumn| (column.place, column.is_optional, column.is_text);
        self.columns.iter().map(of).eq(other.columns.iter().map(of))
    }

    /// Checks words of a row, from word `first` on, and values that are stored with them: the words
    /// of these columns are 0, and each value is one of such a column.
    ///
    /// # Errors
    /// Returns what is wrong.
    pub fn check(&self, first: u16, words: &[u64], values: Values<'_>) -> Result<(), String> {
        for LongColumn { place, name, .. } in &self.columns {
            let word = place.checked_sub(first).and_then(|place| words.get(usize::from(place)));
            if word.is_some_and(|word| *word != 0) {
                return Err(format!("the word of column {name:?} is not 0"));
            }
        }
        for value in values {
            let Some(column) = self.at(value.place) else {
                return Err(format!("a value of word {}, which has none", value.place));
            };
            let bytes = value.bytes().filter(|_| column.is_text);
            if bytes.is_some_and(|bytes| str::from_utf8(&bytes).is_err()) {
                return Err(format!("the text of column {:?} is not UTF-8", column.name));
            }
        }
        Ok(())
    }
}

/// The words of a row, and its values by the places of their words. A column without a value is
/// empty, or has the `None` of an option.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StoredRow {
    words: Vec<u64>,
    values: BTreeMap<u16, Vec<u8>>,
}

impl StoredRow {
    /// Returns a row of zeros, without values.
    pub(crate) fn zeros(words: usize) -> StoredRow {
        StoredRow { words: vec![0; words], values: BTreeMap::new() }
    }

    /// Returns a copy of a row.
    pub(crate) fn of(row: LongRow<'_>) -> StoredRow {
        let mut copy = StoredRow { words: row.words.to_vec(), values: BTreeMap::new() };
        copy.store_values(row.values());
        copy
    }

    /// Makes a change, which fits the row.
    pub(crate) fn store(&mut self, change: &Change<'_>) {
        let first = usize::from(change.first);
        let range = first..first + change.words.len();
        self.words[range.clone()].copy_from_slice(change.words);
        if change.kind == ChangeKind::Put && !self.values.is_empty() {
            self.values.retain(|place, _| !range.contains(&usize::from(*place)));
        }
        self.store_values(change.values());
    }

    fn store_values(&mut self, values: Values<'_>) {
        for value in values {
            match value.bytes() {
                Some(bytes) => _ = self.values.insert(value.place, bytes.into_owned()),
                None => _ = self.values.remove(&value.place),
            }
        }
    }

    /// Returns the row's words. Those of its values follow, as files have them.
    pub(crate) fn all_words(&self) -> Cow<'_, [u64]> {
        if self.values.is_empty() {
            return Cow::Borrowed(&self.words);
        }
        let mut all = self.words.clone();
        for (number, (place, bytes)) in self.values.iter().enumerate() {
            let at = all.len();
            all.resize(at + value::words(Some(bytes)), 0);
            value::write(&mut all[at..], *place, Some(bytes), number + 1 == self.values.len());
        }
        Cow::Owned(all)
    }

    /// Returns the number of words without those of values.
    pub(crate) fn row_words(&self) -> usize {
        self.words.len()
    }
}
