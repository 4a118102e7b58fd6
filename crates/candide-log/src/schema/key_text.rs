//! Keys that are given as text.

use super::TableSchema;
use super::encode::push_key;
use super::known::is_known;
use super::types::TypeSchema;
use super::value::Value;
use super::value_text::word_of_text;
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
        TypeSchema::Struct(of) if !is_known(of) => {
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
    if ty.key_words().is_none() {
        return Err(format!("`{name}: {ty}` is no part of a key"));
    }
    match Value::of_text(ty, text) {
        Ok(value) => push_key(ty, &value, to),
        Err(can_be) => wrong(name, ty, text, can_be),
    }
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
        match word_of_text(&text) {
            Some(word) => to.push(word),
            None => {
                return Err(format!(
                    "`{text}` is no word of `{name}`, which is a number of 64 bits, such as 7 or \
                     0x1f"
                ));
            }
        }
    }
    Ok(())
}
