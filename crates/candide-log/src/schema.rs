//! The description of a table without its row type.

#![forbid(unsafe_code)]

/// The largest number of a table.
pub const TABLE_NUMBER_MAX: u32 = u16::MAX as u32;
/// The largest number of words of a key.
pub const KEY_WORDS_MAX: usize = u8::MAX as usize;
/// The largest number of words of a row, its key not included.
pub const ROW_WORDS_MAX: usize = u16::MAX as usize;
/// The largest number of bytes of a name.
pub const NAME_BYTES_MAX: usize = u16::MAX as usize;
/// The largest number of groups, of indexes, and of entries of the key widths of a table.
pub const PARTS_MAX: usize = u16::MAX as usize;

/// A table as MANIFEST describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSchema {
    /// The number by which commit records name the table, at most [`TABLE_NUMBER_MAX`].
    pub number: u32,
    /// The name by which programs open the table.
    pub name: String,
    /// The name of the row type, for messages.
    pub row_type: String,
    /// A hash of the row type. The hash shows whether the type has changed.
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
}

/// A secondary index of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexSchema {
    /// The name of the index.
    pub name: String,
    /// Whether two rows must not have the same key of this index.
    pub unique: bool,
}

impl TableSchema {
    /// Returns the number of words of a row: the sum of the groups' words.
    pub fn row_words(&self) -> usize {
        self.groups.iter().map(|(_, words)| *words as usize).fold(0, usize::saturating_add)
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
        let counts = [
            ("key components", self.key_widths.len()),
            ("groups", self.groups.len()),
            ("indexes", self.indexes.len()),
        ];
        if let Some((of, count)) = counts.into_iter().find(|(_, count)| *count > PARTS_MAX) {
            return Err(format!("table {name:?} has {count} {of}; {PARTS_MAX} are the most"));
        }
        let names = [name, &self.row_type].into_iter().chain(&self.policy);
        let mut names = names
            .chain(self.groups.iter().map(|(name, _)| name))
            .chain(self.indexes.iter().map(|index| &index.name));
        match names.find(|name| name.len() > NAME_BYTES_MAX) {
            Some(long) => {
                let (bytes, number) = (long.len(), self.number);
                Err(format!(
                    "table {number} has a name of {bytes} bytes; {NAME_BYTES_MAX} are the most"
                ))
            }
            None => Ok(()),
        }
    }
}
