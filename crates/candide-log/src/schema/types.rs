//! The types of fields, and the room that their values take.

use super::{NAME_BYTES_MAX, PARTS_MAX};
use std::fmt::{self, Display, Formatter};

/// The largest number of types that are nested in one another, the outermost one included.
pub const TYPE_DEPTH_MAX: usize = 16;
/// The bits of a word.
const WORD_BITS: u64 = u64::BITS as u64;

/// The type of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypeSchema {
    /// A type that only the program knows.
    Opaque {
        /// The bits of a column; 0 if no column has the type.
        bits: u32,
        /// The words in a key; 0 if no key has the type.
        key_words: u8,
        /// A hash, which differs between types that lie in words differently.
        layout: u64,
    },
    /// `bool`.
    Bool,
    /// A number without sign, of 8, 16, 32, 64 or 128 bits.
    Unsigned(u8),
    /// A number with a sign, of as many bits.
    Signed(u8),
    /// A floating-point number of 32 or 64 bits.
    Float(u8),
    /// `char`.
    Char,
    /// A text of at most this many bytes, up to 65,535.
    Text(u32),
    /// This many bytes.
    Bytes(u32),
    /// One of several variants.
    Enum(Box<EnumSchema>),
    /// A value, or none.
    Option(Box<TypeSchema>),
    /// This many values of one type.
    Array(Box<TypeSchema>, u32),
    /// Several values, each with a name.
    Struct(Box<StructSchema>),
    /// A text of any length.
    LongText,
    /// Bytes of any length.
    LongBytes,
    /// A text of any length, which is JSON.
    Json,
}

/// A struct: the type of a composite key, of an identifier, or of a part of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StructSchema {
    /// The name of the type; empty for a tuple.
    pub name: String,
    /// The bits of a column; 0 if no column has the type.
    pub bits: u32,
    /// The parts, in order.
    pub parts: Vec<PartSchema>,
}

/// An enum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnumSchema {
    /// The name of the type.
    pub name: String,
    /// The bits of a column.
    pub bits: u32,
    /// The bits of the tag, which are the lowest ones.
    pub tag_bits: u8,
    /// The variants, in order.
    pub variants: Vec<VariantSchema>,
}

/// A variant of an enum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariantSchema {
    /// The name of the variant.
    pub name: String,
    /// The tag by which values name the variant.
    pub tag: u64,
    /// The parts that values of this variant have.
    pub parts: Vec<PartSchema>,
}

/// A part of a struct or of a variant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartSchema {
    /// The name of the part; in a tuple its place, from 0.
    pub name: String,
    /// The lowest bit of the part, counted from the lowest one of the whole. Keys have their parts
    /// one behind the other.
    pub bit: u32,
    /// The type.
    pub ty: TypeSchema,
}

/// Returns the words that these bits take.
fn words_of(bits: u64) -> u64 {
    bits.div_ceil(WORD_BITS)
}

impl TypeSchema {
    /// Returns the bits of a column of this type. `None` if no column has the type.
    ///
    /// The type must have been checked.
    pub fn bits(&self) -> Option<u64> {
        Some(match self {
            TypeSchema::Opaque { bits, .. } => (*bits).into(),
            TypeSchema::Bool => 1,
            TypeSchema::Unsigned(bits) | TypeSchema::Signed(bits) | TypeSchema::Float(bits) => {
                (*bits).into()
            }
            TypeSchema::Char => 21,
            TypeSchema::Text(bytes) => (words_of(8 * u64::from(*bytes)) + 1) * WORD_BITS,
            TypeSchema::Bytes(bytes) => (8 * u64::from(*bytes)).max(WORD_BITS),
            TypeSchema::Enum(of) => of.bits.into(),
            TypeSchema::Option(ty) if ty.is_long() => WORD_BITS,
            TypeSchema::Option(ty) => match ty.bits()? {
                bits if bits < WORD_BITS => bits + 1,
                bits => (words_of(bits) + 1).checked_mul(WORD_BITS)?,
            },
            TypeSchema::Array(ty, count) => {
                let (bits, count) = (ty.bits()?, u64::from(*count));
                let words = match bits {
                    1..WORD_BITS => count.div_ceil(WORD_BITS / bits),
                    bits => count.checked_mul(words_of(bits))?,
                };
                words.max(1).checked_mul(WORD_BITS)?
            }
            TypeSchema::Struct(of) => of.bits.into(),
            TypeSchema::LongText | TypeSchema::LongBytes | TypeSchema::Json => WORD_BITS,
        })
        .filter(|bits| *bits > 0)
    }

    /// Returns the words of a column of this type. `None` if no column has the type.
    pub fn words(&self) -> Option<u64> {
        self.bits().map(words_of)
    }

    /// Returns the words that the type takes in a key. `None` if no key has the type.
    pub fn key_words(&self) -> Option<u64> {
        Some(match self {
            TypeSchema::Opaque { key_words: 0, .. } => return None,
            TypeSchema::Opaque { key_words, .. } => (*key_words).into(),
            TypeSchema::Unsigned(bits) | TypeSchema::Signed(bits) => words_of((*bits).into()),
            TypeSchema::Bool | TypeSchema::Char | TypeSchema::Float(_) => 1,
            TypeSchema::Enum(of) if of.variants.iter().all(|of| of.parts.is_empty()) => 1,
            TypeSchema::Text(bytes) => words_of(8 * u64::from(*bytes)) + 1,
            TypeSchema::Bytes(bytes) => words_of(8 * u64::from(*bytes)),
            TypeSchema::Option(ty) => ty.key_words()? + 1,
            TypeSchema::Struct(of) => {
                let words = of.parts.iter().map(|part| part.ty.key_words());
                words.sum::<Option<u64>>()?
            }
            TypeSchema::Enum(_)
            | TypeSchema::Array(..)
            | TypeSchema::LongText
            | TypeSchema::LongBytes
            | TypeSchema::Json => return None,
        })
    }

    /// Returns the lowest bit of a value of the type in an optional value.
    pub(super) fn begin_in_option(&self) -> u64 {
        if self.bits().is_some_and(|bits| bits < WORD_BITS) { 1 } else { WORD_BITS }
    }

    /// Returns the lowest bit of an element of an array of the type.
    pub(super) fn begin_in_array(&self, element: u64) -> u64 {
        match self.bits().unwrap_or(WORD_BITS) {
            bits @ 1..WORD_BITS => {
                let in_word = WORD_BITS / bits;
                element / in_word * WORD_BITS + element % in_word * bits
            }
            bits => element * words_of(bits) * WORD_BITS,
        }
    }

    /// Returns whether values of the type can have any length, and lie outside the words of rows.
    pub fn is_long(&self) -> bool {
        matches!(self, TypeSchema::LongText | TypeSchema::LongBytes | TypeSchema::Json)
    }

    /// Returns whether values of a column of this type lie outside the words of rows.
    pub fn is_value(&self) -> bool {
        match self {
            TypeSchema::Option(ty) => ty.is_long(),
            ty => ty.is_long(),
        }
    }

    /// Returns whether values of a column of this type are texts of any length.
    pub(crate) fn is_text(&self) -> bool {
        match self {
            TypeSchema::LongText | TypeSchema::Json => true,
            TypeSchema::Option(ty) => matches!(**ty, TypeSchema::LongText | TypeSchema::Json),
            _ => false,
        }
    }

    /// Checks that the type is one that a field can have.
    ///
    /// # Errors
    /// Returns a sentence about the first fault.
    pub fn check(&self) -> Result<(), String> {
        match self {
            TypeSchema::Option(ty) if ty.is_long() => Ok(()),
            ty if ty.is_long() => Ok(()),
            ty => ty.check_at(1),
        }
    }

    /// Checks a type that `depth - 1` types contain.
    fn check_at(&self, depth: usize) -> Result<(), String> {
        if depth > TYPE_DEPTH_MAX {
            return Err(format!("a type is nested more than {TYPE_DEPTH_MAX} deep"));
        }
        let wrong = |bits: &u8, of| Err(format!("{of} has {bits} bits"));
        match self {
            TypeSchema::Unsigned(bits) | TypeSchema::Signed(bits) => match bits {
                8 | 16 | 32 | 64 | 128 => Ok(()),
                bits => wrong(bits, "a whole number"),
            },
            TypeSchema::Float(32 | 64)
            | TypeSchema::Opaque { .. }
            | TypeSchema::Bool
            | TypeSchema::Char
            | TypeSchema::Bytes(_) => Ok(()),
            TypeSchema::Float(bits) => wrong(bits, "a floating-point number"),
            TypeSchema::Text(bytes) if *bytes > u16::MAX.into() => {
                Err(format!("a text has {bytes} bytes; 65,535 are the most"))
            }
            TypeSchema::Text(_) => Ok(()),
            TypeSchema::Option(ty) => ty.check_at(depth + 1),
            TypeSchema::Array(ty, _) => {
                ty.check_at(depth + 1)?;
                self.bits().map(|_| ()).ok_or_else(|| format!("{self} cannot be a column"))
            }
            TypeSchema::Struct(of) => {
                check_names(&of.name, &of.parts)?;
                of.parts.iter().try_for_each(|part| part.check(&of.name, of.bits, 0, depth))
            }
            TypeSchema::Enum(of) => of.check(depth),
            TypeSchema::LongText | TypeSchema::LongBytes | TypeSchema::Json => {
                Err(format!("{self} is a part of another type"))
            }
        }
    }
}

/// Checks the name of a type or of a variant, the number of its parts, and their names.
fn check_names(name: &str, parts: &[PartSchema]) -> Result<(), String> {
    let count = parts.len();
    let names = parts.iter().map(|part| &*part.name).chain([name]);
    match names.map(str::len).find(|bytes| *bytes > NAME_BYTES_MAX) {
        Some(bytes) => {
            Err(format!("a type has a name of {bytes} bytes; {NAME_BYTES_MAX} are the most"))
        }
        None if count > PARTS_MAX => {
            Err(format!("{name:?} has {count} parts; {PARTS_MAX} are the most"))
        }
        None => Ok(()),
    }
}

impl PartSchema {
    /// Checks a part of a type with this many bits, the lowest `before` of which it does not have.
    fn check(&self, of: &str, bits: u32, before: u8, depth: usize) -> Result<(), String> {
        self.ty.check_at(depth + 1)?;
        let wrong = || Err(format!("part {:?} of {of:?} does not lie in it", self.name));
        let (bit, all) = (u64::from(self.bit), u64::from(bits));
        match self.ty.bits() {
            _ if bits == 0 => {
                if bit == 0 {
                    Ok(())
                } else {
                    wrong()
                }
            }
            Some(part) if bit >= before.into() && lies_in(bit, part, all) => Ok(()),
            _ => wrong(),
        }
    }
}

impl EnumSchema {
    fn check(&self, depth: usize) -> Result<(), String> {
        let name = &self.name;
        let (bits, tag) = (self.bits, self.tag_bits);
        if !(1..=u64::BITS as u8).contains(&tag) || bits < tag.into() {
            return Err(format!("enum {name:?} has {bits} bits and a tag of {tag}"));
        }
        let mut tags: Vec<u64> = self.variants.iter().map(|variant| variant.tag).collect();
        tags.sort_unstable();
        if tags.windows(2).any(|two| two[0] == two[1]) {
            return Err(format!("two variants of enum {name:?} have one tag"));
        }
        if tags.last().is_some_and(|last| *last > u64::MAX >> (u64::BITS - u32::from(tag))) {
            return Err(format!("a variant of enum {name:?} has a tag of more than {tag} bits"));
        }
        check_names(name, &[])?;
        for variant in &self.variants {
            check_names(&variant.name, &variant.parts)?;
            variant.parts.iter().try_for_each(|part| part.check(name, bits, tag, depth))?;
        }
        Ok(())
    }
}

/// Returns whether `bits` bits from `bit` on lie in `all` bits, and within a word if they are fewer
/// than a word has.
fn lies_in(bit: u64, bits: u64, all: u64) -> bool {
    let room = if all < WORD_BITS { all } else { words_of(all) * WORD_BITS };
    let is_aligned = match bits {
        0..WORD_BITS => bit % WORD_BITS + bits <= WORD_BITS,
        _ => bit.is_multiple_of(WORD_BITS),
    };
    is_aligned && bit.checked_add(bits).is_some_and(|end| end <= room)
}

/// Writes the type as a program does.
impl Display for TypeSchema {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            TypeSchema::Opaque { bits: 0, key_words, .. } => {
                write!(f, "a type with {key_words} words in a key")
            }
            TypeSchema::Opaque { bits, .. } => write!(f, "a type of {bits} bits"),
            TypeSchema::Bool => f.write_str("bool"),
            TypeSchema::Unsigned(bits) => write!(f, "u{bits}"),
            TypeSchema::Signed(bits) => write!(f, "i{bits}"),
            TypeSchema::Float(bits) => write!(f, "f{bits}"),
            TypeSchema::Char => f.write_str("char"),
            TypeSchema::Text(bytes) => write!(f, "Text<{bytes}>"),
            TypeSchema::Bytes(bytes) => write!(f, "Bytes<{bytes}>"),
            TypeSchema::Enum(of) => f.write_str(&of.name),
            TypeSchema::Option(ty) => write!(f, "Option<{ty}>"),
            TypeSchema::Array(ty, count) => write!(f, "[{ty}; {count}]"),
            TypeSchema::Struct(of) if of.name.is_empty() => {
                f.write_str("(")?;
                for (place, part) in of.parts.iter().enumerate() {
                    let comma = if place > 0 { ", " } else { "" };
                    write!(f, "{comma}{}", part.ty)?;
                }
                f.write_str(")")
            }
            TypeSchema::Struct(of) => f.write_str(&of.name),
            TypeSchema::LongText => f.write_str("String"),
            TypeSchema::LongBytes => f.write_str("Vec<u8>"),
            TypeSchema::Json => f.write_str("Json"),
        }
    }
}
