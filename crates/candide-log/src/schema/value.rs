//! Values of fields, made from the words that files contain.

use super::TableSchema;
use super::field::{FieldPlace, FieldSchema};
use super::types::{EnumSchema, PartSchema, TypeSchema};

/// The value of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A truth value.
    Bool(bool),
    /// A number without sign.
    Unsigned(u128),
    /// A number with a sign.
    Signed(i128),
    /// A floating-point number of 32 bits.
    Float32(f32),
    /// A floating-point number of 64 bits.
    Float64(f64),
    /// A character.
    Char(char),
    /// A text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// The absence of an optional value.
    None,
    /// An optional value that is there.
    Some(Box<Value>),
    /// The elements of an array.
    List(Vec<Value>),
    /// A struct or a variant: its name, and its parts with their names.
    Parts(String, Vec<(String, Value)>),
    /// Words whose meaning only the program knows.
    Words(Vec<u64>),
}

impl TableSchema {
    /// Returns the fields of the key with their values. The key has as many words as the table's
    /// keys. Empty if the table has no fields.
    ///
    /// # Errors
    /// The words are no key of the table; the text names the field.
    pub fn key_values(&self, key: &[u64]) -> Result<Vec<(&str, Value)>, String> {
        let fields = self.fields.iter().filter(|field| field.is_key());
        fields.map(|field| Ok((&*field.name, field.of_key(key)?))).collect()
    }

    /// Returns the columns that lie entirely in `words` with their values. `first` is the place of
    /// the first of these words in the row. Columns of any length are left out, since words do not
    /// have their values.
    ///
    /// # Errors
    /// The words are no values of a column; the text names it.
    pub fn column_values(&self, first: u16, words: &[u64]) -> Result<Vec<(&str, Value)>, String> {
        let mut values = Vec::new();
        for field in self.fields.iter().filter(|field| !field.ty.is_value()) {
            let (Some(place), Some(count)) = (self.place_in_row(field), field.ty.words()) else {
                continue;
            };
            let FieldPlace::Column { shift, .. } = field.place else { continue };
            let Some(begin) = place.checked_sub(first.into()) else { continue };
            let own = words.get(begin..).and_then(|words| words.get(..count as usize));
            if let Some(own) = own {
                values.push((&*field.name, field.of_words(own, shift)?));
            }
        }
        Ok(values)
    }

    /// Returns the value that a row has of a field. `words` has the words of all groups.
    ///
    /// # Errors
    /// The words are no value of the field; the text names it.
    pub fn value_of(
        &self,
        field: &FieldSchema,
        key: &[u64],
        words: &[u64],
    ) -> Result<Value, String> {
        match (field.place, self.place_in_row(field)) {
            (FieldPlace::Key { .. }, _) => field.of_key(key),
            (FieldPlace::Column { shift, .. }, place) => {
                field.of_words(words.get(place.unwrap_or(0)..).unwrap_or_default(), shift)
            }
        }
    }

    /// Returns the place in the row of the first word of a column. `None` for a part of the key.
    pub fn place_in_row(&self, field: &FieldSchema) -> Option<usize> {
        let FieldPlace::Column { group, word, .. } = field.place else { return None };
        let before = self.groups.iter().take(group.into());
        Some(before.map(|(_, words)| *words as usize).sum::<usize>() + usize::from(word))
    }

    /// Returns the column of any length whose word has this place in the row.
    pub fn long_column(&self, place: u16) -> Option<&FieldSchema> {
        let mut long = self.fields.iter().filter(|field| field.ty.is_value());
        long.find(|field| self.place_in_row(field) == Some(place.into()))
    }
}

impl FieldSchema {
    /// Returns the value of a part of the key, from the words of the whole key.
    ///
    /// # Errors
    /// The field is no part of the key, or the words are no value of its type.
    pub fn of_key(&self, key: &[u64]) -> Result<Value, String> {
        let FieldPlace::Key { word } = self.place else {
            return Err(self.wrong("no part of the key"));
        };
        let word = usize::from(word);
        let mut words = key.get(word..).unwrap_or_default();
        take_key(&self.ty, &mut words).map_err(|what| self.wrong(&what))
    }

    /// Returns the value of a column from its words.
    fn of_words(&self, words: &[u64], shift: u8) -> Result<Value, String> {
        read(&self.ty, words, shift.into()).map_err(|what| self.wrong(&what))
    }

    /// Returns the value of a column of any length. Without bytes it is the absence of an optional
    /// value, or the empty value of another column.
    ///
    /// # Errors
    /// The bytes are no value of the type.
    pub fn of_bytes(&self, bytes: Option<&[u8]>) -> Result<Value, String> {
        let value = match (&self.ty, bytes) {
            (TypeSchema::Option(_), None) => Ok(Value::None),
            (TypeSchema::Option(ty), Some(bytes)) => {
                long(ty, bytes).map(|value| Value::Some(Box::new(value)))
            }
            (ty, bytes) => long(ty, bytes.unwrap_or_default()),
        };
        value.map_err(|what| self.wrong(&what))
    }

    fn wrong(&self, what: &str) -> String {
        format!("field {:?}: {what}", self.name)
    }
}

fn long(ty: &TypeSchema, bytes: &[u8]) -> Result<Value, String> {
    match ty {
        TypeSchema::LongBytes => Ok(Value::Bytes(bytes.to_vec())),
        _ => text(bytes),
    }
}

fn text(bytes: &[u8]) -> Result<Value, String> {
    match str::from_utf8(bytes) {
        Ok(text) => Ok(Value::Text(text.to_owned())),
        Err(_) => Err("the text is not UTF-8".to_owned()),
    }
}

fn character(word: u64) -> Result<Value, String> {
    let found = u32::try_from(word).ok().and_then(char::from_u32);
    found.map(Value::Char).ok_or_else(|| format!("{word:#x} is no character"))
}

fn cut_off() -> String {
    "there are not enough words".to_owned()
}

/// Returns the number of `bits` bits, at most 64, from `bit` on.
fn number(words: &[u64], bit: u64, bits: u64) -> Result<u64, String> {
    let word = *words.get((bit / 64) as usize).ok_or_else(cut_off)?;
    Ok(word >> (bit % 64) & (u64::MAX >> (64 - bits)))
}

/// Returns a number of 128 bits, whose low word is the first one.
fn wide(words: &[u64], bit: u64) -> Result<u128, String> {
    Ok(u128::from(number(words, bit + 64, 64)?) << 64 | u128::from(number(words, bit, 64)?))
}

/// Returns `count` bytes of words from `bit` on, as `to_bytes` has them.
fn bytes_of(words: &[u64], count: usize, to_bytes: fn(u64) -> [u8; 8]) -> Result<Vec<u8>, String> {
    let words = words.get(..count.div_ceil(8)).ok_or_else(cut_off)?;
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| to_bytes(*word)).collect();
    bytes.truncate(count);
    Ok(bytes)
}

/// Returns the number with a sign whose lowest `bits` bits are those of `number`.
fn signed(number: u128, bits: u8) -> i128 {
    let unused = 128 - u32::from(bits);
    (number << unused) as i128 >> unused
}

/// The least number of elements of an array whose value is its words.
pub const ELEMENTS_MAX: u32 = 1 << 16;

/// Reads a value of a column from `bit` on.
fn read(ty: &TypeSchema, words: &[u64], bit: u64) -> Result<Value, String> {
    let whole = || words.get((bit / 64) as usize..).ok_or_else(cut_off);
    let bits = ty.bits().ok_or_else(|| format!("no column has the type {ty}"))?;
    Ok(match ty {
        TypeSchema::Opaque { .. } if bits < 64 => Value::Words(vec![number(words, bit, bits)?]),
        // Values take more memory than the words that they are made from.
        TypeSchema::Array(_, ELEMENTS_MAX..) | TypeSchema::Opaque { .. } => {
            let own = whole()?.get(..bits.div_ceil(64) as usize).ok_or_else(cut_off)?;
            Value::Words(own.to_vec())
        }
        TypeSchema::Bool => Value::Bool(number(words, bit, 1)? != 0),
        TypeSchema::Unsigned(128) => Value::Unsigned(wide(words, bit)?),
        TypeSchema::Unsigned(_) => Value::Unsigned(number(words, bit, bits)?.into()),
        TypeSchema::Signed(128) => Value::Signed(wide(words, bit)? as i128),
        TypeSchema::Signed(of) => Value::Signed(signed(number(words, bit, bits)?.into(), *of)),
        TypeSchema::Float(32) => Value::Float32(f32::from_bits(number(words, bit, 32)? as u32)),
        TypeSchema::Float(_) => Value::Float64(f64::from_bits(number(words, bit, 64)?)),
        TypeSchema::Char => character(number(words, bit, 21)?)?,
        TypeSchema::Text(most) => {
            let own = whole()?;
            let length = *own.get((*most as usize).div_ceil(8)).ok_or_else(cut_off)?;
            padded_text(own, (*most).into(), length, u64::to_le_bytes)?
        }
        TypeSchema::Bytes(count) => {
            Value::Bytes(bytes_of(whole()?, *count as usize, u64::to_le_bytes)?)
        }
        TypeSchema::Enum(of) => {
            let tag = number(words, bit, of.tag_bits.into())?;
            variant(of, tag, |part| read(&part.ty, words, bit + u64::from(part.bit)))?
        }
        TypeSchema::Option(inner) => match number(words, bit, 1)? {
            0 => Value::None,
            _ => Value::Some(Box::new(read(inner, words, bit + inner.begin_in_option())?)),
        },
        TypeSchema::Array(inner, count) => {
            let elements = (0..u64::from(*count))
                .map(|number| read(inner, words, bit + inner.begin_in_array(number)));
            Value::List(elements.collect::<Result<_, _>>()?)
        }
        TypeSchema::Struct(of) => {
            let value = |part: &PartSchema| read(&part.ty, words, bit + u64::from(part.bit));
            parts(&of.name, &of.parts, value)?
        }
        TypeSchema::LongText | TypeSchema::LongBytes | TypeSchema::Json => {
            return Err("words do not have the value".to_owned());
        }
    })
}

/// Takes a value from the front of the words of a key.
fn take_key(ty: &TypeSchema, words: &mut &[u64]) -> Result<Value, String> {
    let count = ty.key_words().ok_or_else(|| format!("no key has the type {ty}"))?;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let (mut own, rest) = words.split_at_checked(count).ok_or_else(cut_off)?;
    *words = rest;
    let first = own.first().copied().unwrap_or(0);
    Ok(match ty {
        TypeSchema::Bool => Value::Bool(first != 0),
        TypeSchema::Char => character(first)?,
        TypeSchema::Unsigned(128) => Value::Unsigned(wide_key(own)),
        TypeSchema::Unsigned(_) => Value::Unsigned(first.into()),
        TypeSchema::Signed(128) => Value::Signed((wide_key(own) ^ 1 << 127) as i128),
        TypeSchema::Signed(bits) => {
            Value::Signed(signed(u128::from(first) ^ 1 << (bits - 1), *bits))
        }
        TypeSchema::Float(32) => Value::Float32(f32::from_bits(key_bits(first, 32) as u32)),
        TypeSchema::Float(_) => Value::Float64(f64::from_bits(key_bits(first, 64))),
        TypeSchema::Text(most) => {
            padded_text(own, (*most).into(), own[own.len() - 1], u64::to_be_bytes)?
        }
        TypeSchema::Bytes(count) => Value::Bytes(bytes_of(own, *count as usize, u64::to_be_bytes)?),
        TypeSchema::Enum(of) => variant(of, first, |_| Err(cut_off()))?,
        TypeSchema::Option(_) if first == 0 => Value::None,
        TypeSchema::Option(inner) => {
            own = &own[1..];
            Value::Some(Box::new(take_key(inner, &mut own)?))
        }
        TypeSchema::Struct(of) => parts(&of.name, &of.parts, |part| take_key(&part.ty, &mut own))?,
        _ => Value::Words(own.to_vec()),
    })
}

/// Returns the bits of a floating-point number from those of a key, which have its order.
fn key_bits(key: u64, bits: u32) -> u64 {
    let sign = 1 << (bits - 1);
    if key & sign == 0 { !key & (sign | (sign - 1)) } else { key & !sign }
}

/// Returns a number whose high word is the first one.
fn wide_key(words: &[u64]) -> u128 {
    words.iter().fold(0, |number, word| number << 64 | u128::from(*word))
}

/// Returns the text of `length` bytes of at most `most` that lies in words.
fn padded_text(
    words: &[u64],
    most: u64,
    length: u64,
    to_bytes: fn(u64) -> [u8; 8],
) -> Result<Value, String> {
    if length > most {
        return Err(format!("a text of {length} bytes, where {most} are the most"));
    }
    text(&bytes_of(words, length as usize, to_bytes)?)
}

fn variant(
    of: &EnumSchema,
    tag: u64,
    value: impl FnMut(&PartSchema) -> Result<Value, String>,
) -> Result<Value, String> {
    let found = of.variants.iter().find(|variant| variant.tag == tag);
    let found = found.ok_or_else(|| format!("{} has no variant with tag {tag}", of.name))?;
    parts(&found.name, &found.parts, value)
}

fn parts(
    name: &str,
    parts: &[PartSchema],
    mut value: impl FnMut(&PartSchema) -> Result<Value, String>,
) -> Result<Value, String> {
    let parts = parts.iter().map(|part| Ok((part.name.clone(), value(part)?)));
    Ok(Value::Parts(name.to_owned(), parts.collect::<Result<_, String>>()?))
}
