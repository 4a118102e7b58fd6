//! The words of values, as rows and keys have them.

use super::TableSchema;
use super::field::FieldPlace;
use super::types::{EnumSchema, PartSchema, TypeSchema};
use super::value::Value;

impl TableSchema {
    /// Stores the value of a field in the words of a row. Appends the words of a part of the key to
    /// `key`, and writes those of a column to `words`, which has the words of all groups, and zeros
    /// where the column lies. The parts of a key come in their order.
    ///
    /// # Errors
    /// The value is no value of the field's type.
    ///
    /// # Panics
    /// If the table has no such field, or `words` has another length.
    pub fn store(
        &self,
        field: usize,
        value: &Value,
        key: &mut Vec<u64>,
        words: &mut [u64],
    ) -> Result<(), String> {
        let field = &self.fields[field];
        let stored = match (field.place, self.place_in_row(field)) {
            (FieldPlace::Column { shift, .. }, Some(place)) => {
                write(&field.ty, value, &mut words[place..], shift.into())
            }
            _ => push_key(&field.ty, value, key),
        };
        stored.map_err(|what| format!("field {:?}: {what}", field.name))
    }

    /// Returns the key that a row has in an index of these fields. Two rows have the same words if
    /// the fields have the same values.
    ///
    /// # Errors
    /// The words are no values of the fields, or no keys have their types.
    pub fn index_key(
        &self,
        fields: &[u16],
        key: &[u64],
        words: &[u64],
    ) -> Result<Vec<u64>, String> {
        let mut index_key = Vec::new();
        for field in fields.iter().filter_map(|field| self.fields.get(usize::from(*field))) {
            push_key(&field.ty, &self.value_of(field, key, words)?, &mut index_key)?;
        }
        Ok(index_key)
    }
}

fn wrong<T>(ty: &TypeSchema, value: &Value) -> Result<T, String> {
    Err(format!("{value} is no value of type {ty}"))
}

/// Returns whether a number without sign has at most this many bits.
fn is_unsigned(number: u128, bits: u8) -> bool {
    number <= u128::MAX >> (128 - u32::from(bits))
}

/// Returns whether a number has at most this many bits, its sign included.
fn is_signed(number: i128, bits: u8) -> bool {
    let most = i128::MAX >> (128 - u32::from(bits));
    (-most - 1..=most).contains(&number)
}

/// Returns the lowest bits of a number with a sign.
fn bits_of(number: i128, bits: u8) -> u128 {
    number as u128 & u128::MAX >> (128 - u32::from(bits))
}

/// Writes a number of at most 128 bits from `bit` on into zeros. One of less than 64 bits lies in
/// one word, and a larger one begins with a word.
fn put(words: &mut [u64], bit: u64, number: u128) {
    let word = (bit / 64) as usize;
    words[word] |= (number as u64) << (bit % 64);
    if number >> 64 != 0 {
        words[word + 1] |= (number >> 64) as u64;
    }
}

/// Writes bytes into zeros, from the word of `bit` on.
fn put_bytes(words: &mut [u64], bit: u64, bytes: &[u8]) {
    for (number, byte) in bytes.iter().enumerate() {
        words[(bit / 64) as usize + number / 8] |= u64::from(*byte) << (8 * (number % 8));
    }
}

/// Writes a value of a column from `bit` on into words that are zeros there.
fn write(ty: &TypeSchema, value: &Value, words: &mut [u64], bit: u64) -> Result<(), String> {
    match (ty, value) {
        (TypeSchema::Bool, Value::Bool(value)) => put(words, bit, (*value).into()),
        (TypeSchema::Unsigned(bits), Value::Unsigned(value)) if is_unsigned(*value, *bits) => {
            put(words, bit, *value);
        }
        (TypeSchema::Signed(bits), Value::Signed(value)) if is_signed(*value, *bits) => {
            put(words, bit, bits_of(*value, *bits));
        }
        (TypeSchema::Float(32), Value::Float32(value)) => put(words, bit, value.to_bits().into()),
        (TypeSchema::Float(64), Value::Float64(value)) => put(words, bit, value.to_bits().into()),
        (TypeSchema::Char, Value::Char(value)) => put(words, bit, u32::from(*value).into()),
        (TypeSchema::Text(most), Value::Text(text)) if text.len() <= *most as usize => {
            put_bytes(words, bit, text.as_bytes());
            let length = bit + 64 * (*most as u64).div_ceil(8);
            put(words, length, text.len() as u128);
        }
        (TypeSchema::Bytes(count), Value::Bytes(bytes)) if bytes.len() == *count as usize => {
            put_bytes(words, bit, bytes);
        }
        (TypeSchema::Enum(of), Value::Parts(name, values)) => {
            let Some(variant) = of.variants.iter().find(|variant| variant.name == *name) else {
                return wrong(ty, value);
            };
            put(words, bit, variant.tag.into());
            return write_parts((ty, value), &variant.parts, values, words, bit);
        }
        (TypeSchema::Option(_), Value::None) => {}
        (TypeSchema::Option(inner), Value::Some(value)) => {
            put(words, bit, 1);
            return write(inner, value, words, bit + inner.begin_in_option());
        }
        (TypeSchema::Array(inner, count), Value::List(values))
            if values.len() == *count as usize =>
        {
            return (0..).zip(values).try_for_each(|(number, value)| {
                write(inner, value, words, bit + inner.begin_in_array(number))
            });
        }
        (TypeSchema::Struct(of), Value::Parts(_, values)) => {
            return write_parts((ty, value), &of.parts, values, words, bit);
        }
        (TypeSchema::Opaque { .. } | TypeSchema::Array(..), Value::Words(own)) => {
            let bits = ty.bits().unwrap_or(0);
            let unused = bits.next_multiple_of(64) - bits;
            let fits = own.len() as u64 == bits.div_ceil(64)
                && own.last().is_some_and(|last| last.leading_zeros() as u64 >= unused);
            if !fits {
                return wrong(ty, value);
            }
            for (number, word) in (0..).zip(own) {
                put(words, bit + 64 * number, (*word).into());
            }
        }
        _ => return wrong(ty, value),
    }
    Ok(())
}

fn write_parts(
    (ty, value): (&TypeSchema, &Value),
    parts: &[PartSchema],
    values: &[(String, Value)],
    words: &mut [u64],
    bit: u64,
) -> Result<(), String> {
    if parts.len() != values.len() {
        return wrong(ty, value);
    }
    let mut both = parts.iter().zip(values);
    both.try_for_each(|(part, (_, value))| write(&part.ty, value, words, bit + u64::from(part.bit)))
}

/// Appends the words of a part of a key.
pub(super) fn push_key(ty: &TypeSchema, value: &Value, to: &mut Vec<u64>) -> Result<(), String> {
    match (ty, value) {
        (TypeSchema::Bool, Value::Bool(value)) => to.push((*value).into()),
        (TypeSchema::Unsigned(bits), Value::Unsigned(value)) if is_unsigned(*value, *bits) => {
            push_number(*value, *bits, to);
        }
        (TypeSchema::Signed(bits), Value::Signed(value)) if is_signed(*value, *bits) => {
            // The highest bit is inverted, so that negative numbers come first.
            push_number(bits_of(*value, *bits) ^ 1 << (bits - 1), *bits, to);
        }
        (TypeSchema::Float(32), Value::Float32(value)) => {
            to.push(ordered(value.to_bits().into(), 32));
        }
        (TypeSchema::Float(64), Value::Float64(value)) => to.push(ordered(value.to_bits(), 64)),
        (TypeSchema::Char, Value::Char(value)) => to.push((*value).into()),
        (TypeSchema::Text(most), Value::Text(text)) if text.len() <= *most as usize => {
            push_bytes(text.as_bytes(), *most as usize, to);
            to.push(text.len() as u64);
        }
        (TypeSchema::Bytes(count), Value::Bytes(bytes)) if bytes.len() == *count as usize => {
            push_bytes(bytes, bytes.len(), to);
        }
        (TypeSchema::Enum(of), Value::Parts(name, values)) if values.is_empty() => {
            match tag_of(of, name) {
                Some(tag) => to.push(tag),
                None => return wrong(ty, value),
            }
        }
        (TypeSchema::Option(_), Value::None) => {
            let words = ty.key_words().unwrap_or(0) as usize;
            to.resize(to.len() + words, 0);
        }
        (TypeSchema::Option(inner), Value::Some(value)) => {
            to.push(1);
            return push_key(inner, value, to);
        }
        (TypeSchema::Struct(of), Value::Parts(_, values)) if of.parts.len() == values.len() => {
            let mut both = of.parts.iter().zip(values);
            return both.try_for_each(|(part, (_, value))| push_key(&part.ty, value, to));
        }
        (TypeSchema::Opaque { key_words, .. }, Value::Words(own))
            if own.len() == usize::from(*key_words) =>
        {
            to.extend_from_slice(own);
        }
        _ => return wrong(ty, value),
    }
    Ok(())
}

/// Returns the word of a key for the bits of a floating-point number: words have the order of the
/// numbers.
fn ordered(number: u64, bits: u8) -> u64 {
    let sign = 1 << (bits - 1);
    if number & sign == 0 { number | sign } else { !number & (sign | (sign - 1)) }
}

/// Returns the tag of a variant without parts.
fn tag_of(of: &EnumSchema, name: &str) -> Option<u64> {
    let found = of.variants.iter().find(|variant| variant.name == name);
    found.filter(|variant| variant.parts.is_empty()).map(|variant| variant.tag)
}

/// Appends a number of this many bits, the high word first.
fn push_number(number: u128, bits: u8, to: &mut Vec<u64>) {
    if bits > 64 {
        to.push((number >> 64) as u64);
    }
    to.push(number as u64);
}

/// Appends bytes, and zeros up to `most` bytes and a whole word, each word with the first byte
/// highest.
fn push_bytes(bytes: &[u8], most: usize, to: &mut Vec<u64>) {
    let mut padded = bytes.to_vec();
    padded.resize(most.next_multiple_of(8), 0);
    to.extend(padded.as_chunks().0.iter().map(|word| u64::from_be_bytes(*word)));
}
