//! Descriptions of fields: what files, messages and tools know of a row type.

#![forbid(unsafe_code)]

use super::place::Place;
use super::row_words::{RowReader, RowWriter};

/// The type of a field, as a description.
///
/// ```
/// use candide::Text;
/// use candide::schema::{Field, FieldType};
///
/// assert_eq!(<Option<Text<8>>>::TYPE, &FieldType::Optional(&FieldType::ShortText { bytes: 8 }));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldType {
    /// A type of the program's own, of which only the size is known.
    Opaque {
        /// The bits of a column; 0 if the description is that of a part of a key.
        bits: u32,
        /// The words in a key; 0 if the description is that of a column.
        key_words: usize,
        /// A number that differs between types that lie in words differently.
        layout: u64,
    },
    /// `bool`.
    Bool,
    /// An integer without sign.
    Unsigned {
        /// Its bits: 8, 16, 32, 64 or 128.
        bits: u32,
    },
    /// An integer with a sign.
    Signed {
        /// Its bits: 8, 16, 32, 64 or 128.
        bits: u32,
    },
    /// A floating-point number.
    Float {
        /// Its bits: 32 or 64.
        bits: u32,
    },
    /// `char`.
    Char,
    /// [`Text<N>`](crate::Text).
    ShortText {
        /// The most bytes of a text.
        bytes: usize,
    },
    /// [`Bytes<N>`](crate::Bytes).
    FixedBytes {
        /// The number of bytes.
        bytes: usize,
    },
    /// `String`.
    LongText,
    /// `Vec<u8>`.
    LongBytes,
    /// An enum that derives [`Key`](crate::Key). The tag of a variant is its place.
    Enum {
        /// The name of the type.
        name: &'static str,
        /// Its bits.
        bits: u32,
        /// The names of the variants.
        variants: &'static [&'static str],
    },
    /// An option of a type.
    Optional(&'static FieldType),
    /// An array of this many values of a type.
    Array(&'static FieldType, usize),
    /// A struct that derives [`Key`](crate::Key), or a tuple.
    Struct {
        /// The name of the type; empty for a tuple.
        name: &'static str,
        /// Its bits; 0 if the description is that of a part of a key.
        bits: u32,
        /// The names and the types of its components. A struct with bits has one.
        parts: &'static [(&'static str, &'static FieldType)],
    },
    /// A struct that derives [`Field`](macro@crate::Field).
    Nested {
        /// The name of the type.
        name: &'static str,
        /// Its bits.
        bits: u32,
        /// Its parts.
        parts: &'static [PartType],
    },
    /// An enum that derives [`Field`](macro@crate::Field), with data. The tag of a variant is its
    /// place.
    Variants {
        /// The name of the type.
        name: &'static str,
        /// Its bits.
        bits: u32,
        /// The bits of the tag, which are the lowest ones.
        tag_bits: u32,
        /// The names of the variants, and their parts.
        variants: &'static [(&'static str, &'static [PartType])],
    },
}

impl FieldType {
    /// Returns whether values have any length.
    pub(crate) const fn is_long(&self) -> bool {
        let inner = match self {
            FieldType::Optional(inner) => inner,
            other => other,
        };
        matches!(inner, FieldType::LongText | FieldType::LongBytes)
    }
}

/// A part of a struct or of a variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartType {
    /// The name; in a tuple its place, from 0.
    pub name: &'static str,
    /// The first bit, counted from the first one of the whole.
    pub bit: u32,
    /// The type.
    pub ty: &'static FieldType,
}

/// A function that returns the reason why a codec refuses a stored value of a row.
pub(crate) type StoredCheck = fn(&RowReader<'_>) -> Result<(), String>;

/// A function that returns the reason why the value of any length that a row has in a word, the
/// number of which it gets, is none of its column's type.
pub type LongCheck = fn(&RowReader<'_>, usize) -> Result<(), String>;

/// A function that writes a column's default into a row.
pub(crate) type StoreDefault = fn(&mut RowWriter<'_>);

/// The description of a field of a row type: of a part of its key, or of a column.
#[derive(Debug, Clone, Copy)]
pub struct FieldInfo {
    pub(crate) name: &'static str,
    pub(crate) ty: &'static FieldType,
    /// The place of a column; `None` for a part of the key. The parts of the key follow one
    /// another.
    pub(crate) place: Option<Place>,
    /// Writes the column's default into a row.
    pub(crate) default: Option<StoreDefault>,
    /// The earlier names of the field.
    pub(crate) former: &'static [&'static str],
    /// Returns the reason why the column's codec refuses the stored value of a row.
    pub(crate) check: Option<StoredCheck>,
    /// The check of a column whose type stores values as another one of any length.
    pub(crate) long_check: Option<LongCheck>,
}

impl FieldInfo {
    /// Returns the description of a part of the key.
    pub const fn of_key(name: &'static str, ty: &'static FieldType) -> FieldInfo {
        FieldInfo {
            name,
            ty,
            place: None,
            default: None,
            former: &[],
            check: None,
            long_check: None,
        }
    }

    /// Returns the description of the column at a [place](crate::Column::place). `default` writes
    /// the column's default into a row, whose words are zeros there.
    pub const fn of_column(
        name: &'static str,
        ty: &'static FieldType,
        place: Place,
        default: Option<fn(&mut RowWriter<'_>)>,
    ) -> FieldInfo {
        let place = Some(place);
        FieldInfo { name, ty, place, default, former: &[], check: None, long_check: None }
    }

    /// Returns the description with earlier names of the field, by which a
    /// [migration](crate::Migration) finds it in the files.
    #[must_use]
    pub const fn renamed(self, former: &'static [&'static str]) -> FieldInfo {
        FieldInfo { former, ..self }
    }

    /// Returns the description of a column with a [codec](crate::Codec). `check` returns its reason
    /// for refusing the stored value of a row.
    #[must_use]
    pub const fn checked(self, check: fn(&RowReader<'_>) -> Result<(), String>) -> FieldInfo {
        FieldInfo { check: Some(check), ..self }
    }

    /// Returns the description with the check of the column's type.
    #[doc(hidden)]
    #[must_use]
    pub const fn of_type(self, long_check: Option<LongCheck>) -> FieldInfo {
        FieldInfo { long_check, ..self }
    }

    /// Returns the name of the field.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the type of the field.
    pub const fn ty(&self) -> &'static FieldType {
        self.ty
    }

    /// Returns whether the field is a part of the key.
    pub const fn is_key(&self) -> bool {
        self.place.is_none()
    }
}

/// Panics if `text`, the default of a column of type `ty`, is longer than the type allows.
#[doc(hidden)]
pub const fn check_default(ty: &FieldType, text: &str) {
    if let FieldType::ShortText { bytes } = ty {
        assert!(text.len() <= *bytes, "the default is longer than its type allows");
    }
}
