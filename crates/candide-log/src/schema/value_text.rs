//! Values that are given as text.

use super::VALUE_BYTES_MAX;
use super::known::{self, is_known};
use super::types::{EnumSchema, TypeSchema};
use super::value::Value;

impl Value {
    /// Returns the value of a type that a text is: a number, `true` or `false`, a character, a
    /// text, pairs of hexadecimal digits for bytes, the name of a variant without parts. The only
    /// part of an identifier, and an optional value that is there, are given as such.
    ///
    /// # Errors
    /// The text is no such value. The error says what it can be, as the end of a sentence: `a
    /// number from 0 to 255`.
    pub fn of_text(ty: &TypeSchema, text: &str) -> Result<Value, String> {
        Ok(match ty {
            TypeSchema::Bool => match text {
                "true" => Value::Bool(true),
                "false" => Value::Bool(false),
                _ => return Err("`true` or `false`".to_owned()),
            },
            TypeSchema::Unsigned(bits) => {
                let most = u128::MAX >> (128 - u32::from(*bits));
                let number = text.parse::<u128>().ok().filter(|number| *number <= most);
                Value::Unsigned(number.ok_or_else(|| format!("a number from 0 to {most}"))?)
            }
            TypeSchema::Signed(bits) => {
                let most = i128::MAX >> (128 - u32::from(*bits));
                let range = -most - 1..=most;
                let number = text.parse::<i128>().ok().filter(|number| range.contains(number));
                let can_be = || format!("a number from {} to {most}", -most - 1);
                Value::Signed(number.ok_or_else(can_be)?)
            }
            TypeSchema::Float(32) => {
                let number = text.parse::<f32>().ok();
                Value::Float32(float(number, f32::is_infinite, text)?)
            }
            TypeSchema::Float(_) => {
                let number = text.parse::<f64>().ok();
                Value::Float64(float(number, f64::is_infinite, text)?)
            }
            TypeSchema::Char => {
                let mut characters = text.chars();
                match (characters.next(), characters.next()) {
                    (Some(one), None) => Value::Char(one),
                    _ => return Err("one character".to_owned()),
                }
            }
            TypeSchema::Text(most) if text.len() > *most as usize => {
                return Err(format!("at most {most} bytes, not {}", text.len()));
            }
            TypeSchema::Text(_) => Value::Text(text.to_owned()),
            TypeSchema::Bytes(count) => {
                let bytes = bytes_of_digits(text).filter(|bytes| bytes.len() == *count as usize);
                let digits = 2 * u64::from(*count);
                Value::Bytes(bytes.ok_or_else(|| format!("{digits} hexadecimal digits"))?)
            }
            TypeSchema::Enum(of) => {
                let found = of.variants.iter().find(|variant| variant.name == text);
                let found = found.filter(|variant| variant.parts.is_empty());
                Value::Parts(found.ok_or_else(|| one_of(of))?.name.clone(), Vec::new())
            }
            TypeSchema::Option(inner) => Value::Some(Box::new(Value::of_text(inner, text)?)),
            TypeSchema::Struct(of) if is_known(of) => match (known::parse(of, text), &of.parts[..])
            {
                (Err(can_be), [part]) => {
                    let value = Value::of_text(&part.ty, text).map_err(|_| can_be)?;
                    Value::Parts(of.name.clone(), vec![(part.name.clone(), value)])
                }
                (parsed, _) => parsed?,
            },
            TypeSchema::Struct(of) => match &of.parts[..] {
                [part] if part.name == "0" => {
                    let value = Value::of_text(&part.ty, text)?;
                    Value::Parts(of.name.clone(), vec![(part.name.clone(), value)])
                }
                _ => return Err("a value with parts".to_owned()),
            },
            TypeSchema::Opaque { .. } => match ty.words().or(ty.key_words()) {
                Some(1) => {
                    let can_be = || "a number of 64 bits, such as 7 or 0x1f".to_owned();
                    Value::Words(vec![word_of_text(text).ok_or_else(can_be)?])
                }
                words => return Err(format!("an array of {} words", words.unwrap_or(0))),
            },
            TypeSchema::Array(..) => return Err("a list of values".to_owned()),
            TypeSchema::LongText | TypeSchema::Json => {
                check_length(text.len())?;
                Value::Text(text.to_owned())
            }
            TypeSchema::LongBytes => {
                let bytes = bytes_of_digits(text);
                let bytes = bytes.ok_or_else(|| "pairs of hexadecimal digits".to_owned())?;
                check_length(bytes.len())?;
                Value::Bytes(bytes)
            }
        })
    }
}

/// Returns a number that is infinite only if its text says so.
fn float<T: Copy>(number: Option<T>, is_infinite: fn(T) -> bool, text: &str) -> Result<T, String> {
    let is_too_large = |number| is_infinite(number) && text.contains(|c: char| c.is_ascii_digit());
    match number {
        Some(number) if !is_too_large(number) => Ok(number),
        Some(_) => Err("a number that is not as large".to_owned()),
        None => Err("a number, such as -1.5e3, inf or NaN".to_owned()),
    }
}

/// Checks the number of bytes of a value of any length.
fn check_length(bytes: usize) -> Result<(), String> {
    match bytes {
        ..=VALUE_BYTES_MAX => Ok(()),
        _ => Err(format!("at most {VALUE_BYTES_MAX} bytes, not {bytes}")),
    }
}

/// Returns the names of the variants.
fn one_of(of: &EnumSchema) -> String {
    let names: Vec<_> = of.variants.iter().map(|variant| format!("`{}`", variant.name)).collect();
    format!("one of {}", names.join(", "))
}

/// Returns the bytes that pairs of hexadecimal digits stand for.
fn bytes_of_digits(text: &str) -> Option<Vec<u8>> {
    let digits = text.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8));
    let digits = digits.collect::<Option<Vec<u8>>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

/// Returns a word that is given as a number, which is hexadecimal behind `0x`.
pub(super) fn word_of_text(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}
