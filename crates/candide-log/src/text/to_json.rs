//! Values of fields become JSON.

use crate::schema::{EnumSchema, PartSchema, TypeSchema, Value, known_text};
use serde_core::{Serialize, Serializer};

/// The least number that many programs, which read numbers as `f64`, cannot tell from its
/// neighbours.
const LARGE: u128 = 1 << 53;

/// Returns a value of a type as JSON.
pub fn json_of(ty: &TypeSchema, value: &Value) -> String {
    serde_json::to_string(&Shown(ty, value)).expect("all names are strings")
}

/// Returns an object with these members.
pub(super) fn object<'a>(members: impl Iterator<Item = (&'a String, Shown<'a>)>) -> String {
    let mut text = Vec::new();
    let written = serde_json::Serializer::new(&mut text).collect_map(members);
    written.expect("all names are strings");
    String::from_utf8(text).expect("JSON is UTF-8")
}

/// A value of a type.
pub(super) struct Shown<'a>(pub(super) &'a TypeSchema, pub(super) &'a Value);

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Shown(ty, value) = *self;
        match (ty, value) {
            (_, Value::Bool(value)) => to.serialize_bool(*value),
            (_, Value::Unsigned(value)) if *value < LARGE => to.serialize_u64(*value as u64),
            (_, Value::Signed(value)) if value.unsigned_abs() < LARGE => {
                to.serialize_i64(*value as i64)
            }
            (_, Value::Float32(value)) if value.is_finite() => to.serialize_f32(*value),
            (_, Value::Float64(value)) if value.is_finite() => to.serialize_f64(*value),
            (_, Value::None) => to.serialize_none(),
            (TypeSchema::Option(inner), Value::Some(value)) if can_be_null(inner) => {
                to.collect_seq([Shown(inner, value)])
            }
            (TypeSchema::Option(inner), Value::Some(value)) => Shown(inner, value).serialize(to),
            (TypeSchema::Array(inner, _), Value::List(values)) => {
                to.collect_seq(values.iter().map(|value| Shown(inner, value)))
            }
            (TypeSchema::Enum(of), Value::Parts(name, values)) if !values.is_empty() => {
                to.collect_map([(name, Parts(parts_of(of, name), values))])
            }
            (TypeSchema::Struct(of), Value::Parts(_, values)) => match known_text(ty, value) {
                Some(text) => to.serialize_str(&text),
                None => Parts(&of.parts, values).serialize(to),
            },
            (_, Value::Words(words)) if words.len() != 1 => {
                to.collect_seq(words.iter().map(|word| format!("{word:#018x}")))
            }
            (_, value) => to.serialize_str(&text_of(value)),
        }
    }
}

/// The parts of a struct or variant: the value of the only one, an array if they have no names, or
/// an object.
struct Parts<'a>(&'a [PartSchema], &'a [(String, Value)]);

impl Serialize for Parts<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Parts(parts, values) = *self;
        let shown = parts.iter().zip(values).map(|(part, (_, value))| Shown(&part.ty, value));
        match (have_places(parts), parts) {
            (true, [part]) => Shown(&part.ty, &values[0].1).serialize(to),
            (true, _) => to.collect_seq(shown),
            (false, _) => to.collect_map(parts.iter().map(|part| &part.name).zip(shown)),
        }
    }
}

/// Returns a value without quotes: a cell, or what a string has.
pub(super) fn text_of(value: &Value) -> String {
    match value {
        Value::Char(value) => value.to_string(),
        Value::Text(value) => value.clone(),
        Value::Bytes(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        Value::Words(words) => words.iter().map(|word| format!("{word:#018x}")).collect(),
        value => value.to_string(),
    }
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
pub(super) fn have_places(parts: &[PartSchema]) -> bool {
    parts.first().is_some_and(|part| part.name == "0")
}

pub(super) fn parts_of<'a>(of: &'a EnumSchema, name: &str) -> &'a [PartSchema] {
    let found = of.variants.iter().find(|variant| variant.name == name);
    found.map_or(&[], |variant| &variant.parts)
}
