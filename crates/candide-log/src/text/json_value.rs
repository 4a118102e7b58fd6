//! Values of fields as JSON.

use super::fault::{FaultAt, fault};
use super::json::{Json, JsonKind, push_string};
use crate::schema::{EnumSchema, PartSchema, TypeSchema, Value, is_known, text_of};
use std::fmt::Write;

/// The least number that many programs, which read numbers as `f64`, cannot tell from its
/// neighbours.
const LARGE: u128 = 1 << 53;

/// Returns a value of a type as JSON.
pub fn json_of(ty: &TypeSchema, value: &Value) -> String {
    let mut text = String::new();
    push(ty, value, &mut text);
    text
}

/// Appends a value of a type.
pub(super) fn push(ty: &TypeSchema, value: &Value, to: &mut String) {
    // Strings take everything.
    let _ = match (ty, value) {
        (_, Value::Bool(value)) => write!(to, "{value}"),
        (_, Value::Unsigned(value)) if *value < LARGE => write!(to, "{value}"),
        (_, Value::Unsigned(value)) => write!(to, "\"{value}\""),
        (_, Value::Signed(value)) if value.unsigned_abs() < LARGE => write!(to, "{value}"),
        (_, Value::Signed(value)) => write!(to, "\"{value}\""),
        (_, Value::Float32(value)) if value.is_finite() => write!(to, "{value:?}"),
        (_, Value::Float32(value)) => write!(to, "\"{value}\""),
        (_, Value::Float64(value)) if value.is_finite() => write!(to, "{value:?}"),
        (_, Value::Float64(value)) => write!(to, "\"{value}\""),
        (_, Value::Char(value)) => {
            push_string(value.encode_utf8(&mut [0; 4]), to);
            Ok(())
        }
        (_, Value::Text(value)) => {
            push_string(value, to);
            Ok(())
        }
        (_, Value::Bytes(value)) => {
            to.push('"');
            value
                .iter()
                .for_each(|byte| write!(to, "{byte:02x}").expect("strings take everything"));
            write!(to, "\"")
        }
        (_, Value::None) => write!(to, "null"),
        (TypeSchema::Option(inner), Value::Some(value)) => {
            if can_be_null(inner) {
                push_array([(&**inner, &**value)].into_iter(), to);
            } else {
                push(inner, value, to);
            }
            Ok(())
        }
        (TypeSchema::Array(inner, _), Value::List(values)) => {
            push_array(values.iter().map(|value| (&**inner, value)), to);
            Ok(())
        }
        (TypeSchema::Enum(of), Value::Parts(name, values)) if !values.is_empty() => {
            to.push('{');
            push_string(name, to);
            to.push(':');
            push_parts(parts_of(of, name), values, to);
            write!(to, "}}")
        }
        (TypeSchema::Enum(_), Value::Parts(name, _)) => {
            push_string(name, to);
            Ok(())
        }
        (TypeSchema::Struct(of), Value::Parts(_, values)) => {
            match text_of(&of.name, values).filter(|_| is_known(of)) {
                Some(text) => push_string(&text, to),
                None => push_parts(&of.parts, values, to),
            }
            Ok(())
        }
        (_, Value::Words(words)) => match &words[..] {
            [word] => write!(to, "\"{word:#018x}\""),
            words => {
                let words: Vec<_> = words.iter().map(|word| format!("\"{word:#018x}\"")).collect();
                write!(to, "[{}]", words.join(","))
            }
        },
        // The value is of another type.
        (_, value) => {
            push_string(&value.to_string(), to);
            Ok(())
        }
    };
}

/// Returns whether a value of a type can be `null`.
pub(super) fn can_be_null(ty: &TypeSchema) -> bool {
    match ty {
        TypeSchema::Option(_) => true,
        TypeSchema::Struct(of) => match &of.parts[..] {
            [part] => part.name == "0" && can_be_null(&part.ty),
            _ => false,
        },
        _ => false,
    }
}

/// Returns whether parts have places instead of names.
fn have_places(parts: &[PartSchema]) -> bool {
    parts.first().is_some_and(|part| part.name == "0")
}

fn parts_of<'a>(of: &'a EnumSchema, name: &str) -> &'a [PartSchema] {
    let found = of.variants.iter().find(|variant| variant.name == name);
    found.map_or(&[], |variant| &variant.parts)
}

fn push_array<'a>(values: impl Iterator<Item = (&'a TypeSchema, &'a Value)>, to: &mut String) {
    to.push('[');
    for (place, (ty, value)) in values.enumerate() {
        if place > 0 {
            to.push(',');
        }
        push(ty, value, to);
    }
    to.push(']');
}

/// Appends the parts of a struct or variant: as the value of the only one, as an array if they have
/// no names, or as an object.
fn push_parts(parts: &[PartSchema], values: &[(String, Value)], to: &mut String) {
    let both = parts.iter().zip(values).map(|(part, (_, value))| (&part.ty, value));
    match (parts, have_places(parts)) {
        ([part], true) => push(&part.ty, &values[0].1, to),
        (_, true) => push_array(both, to),
        (parts, false) => {
            to.push('{');
            for (place, (part, (ty, value))) in parts.iter().zip(both).enumerate() {
                if place > 0 {
                    to.push(',');
                }
                push_string(&part.name, to);
                to.push(':');
                push(ty, value, to);
            }
            to.push('}');
        }
    }
}

/// A type, and the name of the field or part that has it, for messages.
#[derive(Clone, Copy)]
pub(super) struct Named<'a> {
    pub(super) name: &'a str,
    pub(super) ty: &'a TypeSchema,
}

impl Named<'_> {
    /// Returns that a text is no value.
    pub(super) fn wrong<T>(self, at: usize, text: &str, can_be: &str) -> Result<T, FaultAt> {
        let Named { name, ty } = self;
        fault(at, format!("`{}` is no value of `{name}: {ty}`, which is {can_be}", short(text)))
    }

    /// Returns the value of a text.
    pub(super) fn of_text(self, at: usize, text: &str) -> Result<Value, FaultAt> {
        Value::of_text(self.ty, text).or_else(|can_be| self.wrong(at, text, &can_be))
    }

    /// Returns the value that JSON is.
    pub(super) fn of_json(self, json: &Json) -> Result<Value, FaultAt> {
        let Named { name, ty } = self;
        match (ty, &json.kind) {
            (TypeSchema::Option(_), JsonKind::Null) => Ok(Value::None),
            (TypeSchema::Option(inner), kind) => {
                let json = match kind {
                    JsonKind::Array(one) if can_be_null(inner) && one.len() == 1 => &one[0],
                    _ if can_be_null(inner) => {
                        return self.wrong(
                            json.at,
                            &json.shown(),
                            "null, or an array of one value",
                        );
                    }
                    _ => json,
                };
                let value = Named { name, ty: inner }.of_json(json)?;
                Ok(Value::Some(Box::new(value)))
            }
            (TypeSchema::Struct(of), JsonKind::String(text)) if is_known(of) => {
                self.of_text(json.at, text)
            }
            (TypeSchema::Struct(of), _) => {
                let parts = self.parts(&of.parts, json)?;
                Ok(Value::Parts(of.name.clone(), parts))
            }
            (TypeSchema::Enum(of), JsonKind::Object(members)) => self.variant(of, json, members),
            (TypeSchema::Array(inner, count), JsonKind::Array(elements)) if !are_words(ty) => {
                if elements.len() != *count as usize {
                    let can_be = format!("an array of {count} values, not {}", elements.len());
                    return self.wrong(json.at, "[..]", &can_be);
                }
                let element = |json| Named { name, ty: inner }.of_json(json);
                Ok(Value::List(elements.iter().map(element).collect::<Result<_, _>>()?))
            }
            (TypeSchema::Opaque { .. } | TypeSchema::Array(..), JsonKind::Array(elements)) => {
                self.words(elements)
            }
            (TypeSchema::Bool, JsonKind::Bool(value)) => Ok(Value::Bool(*value)),
            (
                TypeSchema::Unsigned(_) | TypeSchema::Signed(_) | TypeSchema::Float(_),
                JsonKind::Number(text),
            ) => self.of_text(json.at, text),
            (TypeSchema::Opaque { .. }, JsonKind::Number(text)) => self.of_text(json.at, text),
            (TypeSchema::Bool, _) => self.wrong(json.at, &json.shown(), "`true` or `false`"),
            (_, JsonKind::String(text)) => self.of_text(json.at, text),
            (TypeSchema::Text(_) | TypeSchema::Char, _) => {
                self.wrong(json.at, &json.shown(), "a string")
            }
            // No value of these types is an empty text.
            (ty, _) => {
                let can_be = Value::of_text(ty, "").err().unwrap_or_default();
                self.wrong(json.at, &json.shown(), &can_be)
            }
        }
    }

    /// Returns a variant with parts.
    fn variant(
        self,
        of: &EnumSchema,
        json: &Json,
        members: &[(usize, String, Json)],
    ) -> Result<Value, FaultAt> {
        let [(at, name, value)] = members else {
            return self.wrong(
                json.at,
                "{..}",
                "an object with one member, whose name is a variant",
            );
        };
        let parts = parts_of(of, name);
        if parts.is_empty() {
            let can_be = Value::of_text(self.ty, "").err().unwrap_or_default();
            return self.wrong(*at, name, &format!("{can_be}, in an object only if it has parts"));
        }
        Ok(Value::Parts(name.clone(), self.parts(parts, value)?))
    }

    /// Returns the values of parts.
    fn parts(self, parts: &[PartSchema], json: &Json) -> Result<Vec<(String, Value)>, FaultAt> {
        let named = |part: &PartSchema, json: &Json| {
            let name = if part.name == "0" { self.name } else { &part.name };
            Ok((part.name.clone(), Named { name, ty: &part.ty }.of_json(json)?))
        };
        match (parts, &json.kind) {
            ([part], _) if have_places(parts) => Ok(vec![named(part, json)?]),
            (parts, JsonKind::Array(values))
                if have_places(parts) && values.len() == parts.len() =>
            {
                parts.iter().zip(values).map(|(part, json)| named(part, json)).collect()
            }
            (parts, JsonKind::Object(members)) if !have_places(parts) => {
                let in_order = members_of(
                    self.name,
                    json.at,
                    members,
                    parts.iter().map(|part| &part.name[..]),
                )?;
                parts.iter().zip(in_order).map(|(part, json)| named(part, json)).collect()
            }
            _ => {
                let count = parts.len();
                let can_be = match have_places(parts) {
                    true => format!("an array of {count} values"),
                    false => format!("an object with {count} members"),
                };
                self.wrong(json.at, &json.shown(), &can_be)
            }
        }
    }

    /// Returns words that are given one by one.
    fn words(self, elements: &[Json]) -> Result<Value, FaultAt> {
        let word = TypeSchema::Opaque { bits: 64, key_words: 0, layout: 0 };
        let of_word = |json: &Json| match (Named { ty: &word, ..self }).of_json(json)? {
            Value::Words(words) if words.len() == 1 => Ok(words[0]),
            _ => self.wrong(json.at, &json.shown(), "an array of numbers of 64 bits"),
        };
        let words: Vec<u64> = elements.iter().map(of_word).collect::<Result<_, _>>()?;
        let at = elements.first().map_or(0, |first| first.at);
        let wanted = self.ty.words().or(self.ty.key_words()).unwrap_or(0);
        if words.len() as u64 != wanted {
            return self.wrong(at, "[..]", &format!("{wanted} words, not {}", words.len()));
        }
        Ok(Value::Words(words))
    }
}

/// Returns whether values of an array are words.
fn are_words(ty: &TypeSchema) -> bool {
    matches!(ty, TypeSchema::Array(_, count) if *count >= crate::schema::ELEMENTS_MAX)
}

/// Returns the values of members in the order of `names`, each of which has one.
pub(super) fn members_of<'j, 'n>(
    of: &str,
    at: usize,
    members: &'j [(usize, String, Json)],
    names: impl ExactSizeIterator<Item = &'n str> + Clone,
) -> Result<Vec<&'j Json>, FaultAt> {
    let mut found = Vec::with_capacity(names.len());
    // Members usually come in this order.
    for (place, name) in names.clone().enumerate() {
        let own = members.get(place).filter(|(_, its, _)| its == name);
        match own.or_else(|| members.iter().find(|(_, its, _)| its == name)) {
            Some((_, _, json)) => found.push(json),
            None => return fault(at, format!("{of} has no member `{name}`")),
        }
    }
    if members.len() == found.len() {
        return Ok(found);
    }
    for (place, (at, name, _)) in members.iter().enumerate() {
        if names.clone().all(|own| own != name) {
            let there = names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            return fault(*at, format!("{of} has a member `{}`, and only {there}", short(name)));
        }
        if members[..place].iter().any(|(_, other, _)| other == name) {
            return fault(*at, format!("{of} has the member `{name}` twice"));
        }
    }
    fault(at, format!("{of} has a member twice"))
}

impl Json {
    /// Returns the value for a message.
    fn shown(&self) -> String {
        match &self.kind {
            JsonKind::Null => "null".to_owned(),
            JsonKind::Bool(value) => value.to_string(),
            JsonKind::Number(text) => text.clone(),
            JsonKind::String(text) => format!("{text:?}"),
            JsonKind::Array(_) => "[..]".to_owned(),
            JsonKind::Object(_) => "{..}".to_owned(),
        }
    }
}

/// Returns the beginning of a text, for messages.
fn short(text: &str) -> String {
    const CHARACTERS_MAX: usize = 60;
    match text.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}..", &text[..end]),
        None => text.to_owned(),
    }
}
