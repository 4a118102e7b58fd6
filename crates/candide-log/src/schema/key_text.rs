//! Keys that are given as text.

use super::TableSchema;
use super::types::{EnumSchema, TypeSchema};
use std::fmt::Display;
use std::vec::IntoIter;

/// A component of a key as text.
struct Component {
    text: String,
    /// Whether the text was in quotes: then it is a text, whatever it says.
    is_quoted: bool,
}

impl TableSchema {
    /// Returns the words of the key that `text` describes: its components with commas between them,
    /// those of composite parts one after another, such as `7`, `7,2` or `"a,b",7`. A text is in
    /// quotes if it has a comma or a quote, which is doubled, or space at an end. Bytes are pairs
    /// of hexadecimal digits, variants have their names, and the absence of an optional part is
    /// `None`. A part of an unknown type, or the key of a table without fields, is given as words:
    /// numbers, which are hexadecimal behind `0x`.
    ///
    /// # Errors
    /// The text is no key of the table. The error names the part, its type, and what it can be.
    pub fn key_of_text(&self, text: &str) -> Result<Vec<u64>, String> {
        let mut words = Vec::new();
        let mut components = split(text)?.into_iter();
        if self.key_words == 0 {
            return if text.is_empty() {
                Ok(words)
            } else {
                Err("the key has no parts".to_owned())
            };
        }
        let taken = match self.fields.is_empty() {
            true => put_words(self.key_words.into(), "the key", &mut components, &mut words),
            false => {
                let mut parts = self.fields.iter().filter(|field| field.is_key());
                parts.try_for_each(|part| put(&part.ty, &part.name, &mut components, &mut words))
            }
        };
        taken.map_err(|what| format!("{what}; {}", self.describe_key()))?;
        match components.count() {
            0 => Ok(words),
            left => Err(format!("components left over: {left}; {}", self.describe_key())),
        }
    }

    /// Returns a sentence about the parts of the key.
    fn describe_key(&self) -> String {
        let parts = self.fields.iter().filter(|field| field.is_key());
        let parts: Vec<_> = parts.map(|part| format!("{}: {}", part.name, part.ty)).collect();
        match &parts[..] {
            [] => format!("a key is {} words", self.key_words),
            parts => format!("a key is `{}`", parts.join(", ")),
        }
    }
}

/// Splits a text at the commas outside quotes.
fn split(text: &str) -> Result<Vec<Component>, String> {
    let mut components = Vec::new();
    let mut rest = text;
    loop {
        let (component, behind) = match rest.trim_start().strip_prefix('"') {
            Some(quoted) => take_quoted(quoted)?,
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                let text = rest[..end].trim().to_owned();
                (Component { text, is_quoted: false }, &rest[end..])
            }
        };
        components.push(component);
        match behind.strip_prefix(',') {
            Some(behind) => rest = behind,
            None => return Ok(components),
        }
    }
}

/// Takes a component whose opening quote is before `text`.
fn take_quoted(text: &str) -> Result<(Component, &str), String> {
    let (mut taken, mut rest) = (String::new(), text);
    loop {
        let (before, behind) =
            rest.split_once('"').ok_or_else(|| format!("a quote before `{text}` is not closed"))?;
        taken.push_str(before);
        match behind.strip_prefix('"') {
            Some(behind) => {
                taken.push('"');
                rest = behind;
            }
            None => {
                let behind = behind.trim_start();
                if !behind.is_empty() && !behind.starts_with(',') {
                    return Err(format!(
                        "there is no comma between a closing quote and `{behind}`"
                    ));
                }
                return Ok((Component { text: taken, is_quoted: true }, behind));
            }
        }
    }
}

/// Takes the next component, which belongs to the part `name`.
fn next(name: &str, components: &mut IntoIter<Component>) -> Result<Component, String> {
    components.next().ok_or_else(|| format!("there is no component for `{name}`"))
}

/// Returns the error of a component.
fn wrong<T>(name: &str, ty: &TypeSchema, text: &str, can_be: impl Display) -> Result<T, String> {
    Err(format!("`{text}` is no value of `{name}: {ty}`, which is {can_be}"))
}

/// Appends the words of a part of the key.
fn put(
    ty: &TypeSchema,
    name: &str,
    components: &mut IntoIter<Component>,
    to: &mut Vec<u64>,
) -> Result<(), String> {
    match ty {
        TypeSchema::Struct(of) => {
            return of.parts.iter().try_for_each(|part| {
                // The only part of an identifier has no name of its own.
                let name = if part.name == "0" { name } else { &part.name[..] };
                put(&part.ty, name, components, to)
            });
        }
        TypeSchema::Option(inner) => {
            let is_none = |next: &Component| !next.is_quoted && next.text == "None";
            if components.as_slice().first().is_some_and(is_none) {
                components.next();
                let words = ty.key_words().unwrap_or(0) as usize;
                to.resize(to.len() + words, 0);
                return Ok(());
            }
            to.push(1);
            return put(inner, name, components, to);
        }
        TypeSchema::Opaque { key_words, .. } => {
            return put_words((*key_words).into(), name, components, to);
        }
        _ => {}
    }
    put_one(ty, name, &next(name, components)?, to)
}

/// Appends the words of a part of the key that is one component.
fn put_one(
    ty: &TypeSchema,
    name: &str,
    component: &Component,
    to: &mut Vec<u64>,
) -> Result<(), String> {
    let Component { text, is_quoted } = component;
    if *is_quoted && !matches!(ty, TypeSchema::Text(_) | TypeSchema::Char) {
        return wrong(name, ty, &format!("\"{text}\""), "not in quotes");
    }
    match ty {
        TypeSchema::Bool => match &text[..] {
            "true" => to.push(1),
            "false" => to.push(0),
            _ => return wrong(name, ty, text, "`true` or `false`"),
        },
        TypeSchema::Unsigned(bits) => {
            let most = u128::MAX >> (128 - u32::from(*bits));
            match text.parse::<u128>() {
                Ok(number) if number <= most => put_number(number, *bits, to),
                _ => return wrong(name, ty, text, format!("a number from 0 to {most}")),
            }
        }
        TypeSchema::Signed(bits) => {
            let most = i128::MAX >> (128 - u32::from(*bits));
            match text.parse::<i128>() {
                Ok(number) if (-most - 1..=most).contains(&number) => {
                    // The highest bit is inverted, so that negative numbers come first.
                    let number = number as u128 ^ 1 << (bits - 1);
                    put_number(number & u128::MAX >> (128 - u32::from(*bits)), *bits, to);
                }
                _ => {
                    let least = -most - 1;
                    return wrong(name, ty, text, format!("a number from {least} to {most}"));
                }
            }
        }
        TypeSchema::Float(bits) => match text.parse::<f64>() {
            Ok(_) if *bits == 32 => {
                let number = text.parse::<f32>().map_or(0, f32::to_bits);
                to.push(ordered(number.into(), *bits));
            }
            Ok(number) => to.push(ordered(number.to_bits(), *bits)),
            Err(_) => return wrong(name, ty, text, "a floating-point number"),
        },
        TypeSchema::Char => {
            let mut characters = text.chars();
            match (characters.next(), characters.next()) {
                (Some(one), None) => to.push(one.into()),
                _ => return wrong(name, ty, text, "one character"),
            }
        }
        TypeSchema::Text(most) => {
            if text.len() > *most as usize {
                let bytes = text.len();
                return wrong(name, ty, text, format!("at most {most} bytes, not {bytes}"));
            }
            put_bytes(text.as_bytes(), *most as usize, to);
            to.push(text.len() as u64);
        }
        TypeSchema::Bytes(count) => match bytes_of_digits(text) {
            Some(bytes) if bytes.len() == *count as usize => {
                put_bytes(&bytes, *count as usize, to);
            }
            _ => {
                let digits = 2 * u64::from(*count);
                return wrong(name, ty, text, format!("{digits} hexadecimal digits"));
            }
        },
        TypeSchema::Enum(of) => match of.variants.iter().find(|variant| variant.name == *text) {
            Some(variant) => to.push(variant.tag),
            None => return wrong(name, ty, text, one_of(of)),
        },
        ty => return Err(format!("`{name}: {ty}` is no part of a key")),
    }
    Ok(())
}

/// Returns the names of the variants.
fn one_of(of: &EnumSchema) -> String {
    let names: Vec<_> = of.variants.iter().map(|variant| format!("`{}`", variant.name)).collect();
    format!("one of {}", names.join(", "))
}

/// Returns the word of a key for the bits of a floating-point number: words have the order of the
/// numbers.
fn ordered(number: u64, bits: u8) -> u64 {
    let sign = 1 << (bits - 1);
    if number & sign == 0 { number | sign } else { !number & (sign | (sign - 1)) }
}

/// Appends a number of this many bits, the high word first.
fn put_number(number: u128, bits: u8, to: &mut Vec<u64>) {
    if bits > 64 {
        to.push((number >> 64) as u64);
    }
    to.push(number as u64);
}

/// Appends bytes, and zeros up to `most` bytes and a whole word, each word with the first byte
/// highest.
fn put_bytes(bytes: &[u8], most: usize, to: &mut Vec<u64>) {
    let mut padded = bytes.to_vec();
    padded.resize(most.next_multiple_of(8), 0);
    to.extend(padded.as_chunks().0.iter().map(|word| u64::from_be_bytes(*word)));
}

/// Returns the bytes that pairs of hexadecimal digits stand for.
fn bytes_of_digits(text: &str) -> Option<Vec<u8>> {
    let digits = text.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8));
    let digits = digits.collect::<Option<Vec<u8>>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

/// Appends words that are given as numbers.
fn put_words(
    count: usize,
    name: &str,
    components: &mut IntoIter<Component>,
    to: &mut Vec<u64>,
) -> Result<(), String> {
    for _ in 0..count {
        let Component { text, .. } = next(name, components)?;
        let word = match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => text.parse(),
        };
        match word {
            Ok(word) => to.push(word),
            Err(_) => {
                return Err(format!(
                    "`{text}` is no word of `{name}`, which is a number of 64 bits, such as 7 or \
                     0x1f"
                ));
            }
        }
    }
    Ok(())
}
