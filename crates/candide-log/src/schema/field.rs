//! The fields of rows.

use super::VALUE_BYTES_MAX;
use super::types::TypeSchema;

/// A field of a row: a part of its key, or a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldSchema {
    /// The name of the field.
    pub name: String,
    /// The place of its words.
    pub place: FieldPlace,
    /// The type.
    pub ty: TypeSchema,
    /// The value of a column in rows that were made without it: its words, the lowest bit first; or
    /// its bytes, if it can have any length.
    pub default: Option<Vec<u8>>,
}

/// The place of a field in the words of a key or of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldPlace {
    /// The field is a part of the key.
    Key {
        /// The first of its words.
        word: u8,
    },
    /// The field is a column.
    Column {
        /// The number of its group.
        group: u16,
        /// The first of its words in the group.
        word: u16,
        /// The lowest of its bits in the word; 0 for a column of a word or more.
        shift: u8,
    },
}

impl FieldSchema {
    /// Returns whether the field is a part of the key.
    pub fn is_key(&self) -> bool {
        matches!(self.place, FieldPlace::Key { .. })
    }

    /// Checks the field of a row with these groups, each with its words. `key` is the number of
    /// words of the fields of the key before it, to which those of this field are added.
    pub(super) fn check(&self, groups: &[(String, u32)], key: &mut u64) -> Result<(), String> {
        let FieldSchema { name, place, ty, default } = self;
        ty.check().map_err(|what| format!("of field {name:?}: {what}"))?;
        let fits = match *place {
            FieldPlace::Key { word } => {
                let words = ty.key_words();
                let follows = u64::from(word) == *key && default.is_none();
                *key = key.saturating_add(words.unwrap_or(0));
                follows && words.is_some()
            }
            FieldPlace::Column { group, word, shift } => {
                let room = groups.get(usize::from(group)).map_or(0, |(_, words)| *words);
                ty.bits().is_some_and(|bits| {
                    let lies_in_word = match bits {
                        0..64 => u64::from(shift) + bits <= 64,
                        _ => shift == 0,
                    };
                    lies_in_word && u64::from(word) + bits.div_ceil(64) <= room.into()
                })
            }
        };
        if !fits {
            return Err(format!("field {name:?} of type {ty} does not lie in its place"));
        }
        match default {
            Some(bytes) if bytes.len() > VALUE_BYTES_MAX => {
                let bytes = bytes.len();
                Err(format!(
                    "the default of field {name:?} has {bytes} bytes; {VALUE_BYTES_MAX} are the most"
                ))
            }
            Some(bytes) if !ty.is_value() && ty.words() != Some(bytes.len() as u64 / 8) => {
                Err(format!("the default of field {name:?} has {} bytes", bytes.len()))
            }
            Some(bytes) if !ty.is_value() && !bytes.len().is_multiple_of(8) => {
                Err(format!("the default of field {name:?} is not whole words"))
            }
            Some(bytes) if ty.is_text() && str::from_utf8(bytes).is_err() => {
                Err(format!("the default of field {name:?} is not UTF-8"))
            }
            _ => Ok(()),
        }
    }
}
