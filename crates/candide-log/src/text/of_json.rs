//! JSON becomes values of fields.

use super::fault::{FaultAt, fault};
use super::fields::{places, short};
use super::json::{Json, JsonKind, Member};
use super::to_json::{can_be_null, have_places, parts_of};
use crate::schema::{ELEMENTS_MAX, PartSchema, TypeSchema, Value, is_known};

/// A type, and the name of the field or part that has it, for messages.
#[derive(Clone, Copy)]
pub(super) struct Named<'a> {
    pub(super) name: &'a str,
    pub(super) ty: &'a TypeSchema,
}

impl Named<'_> {
    /// Returns that a text is no value.
    fn wrong<T>(self, at: usize, text: &str, can_be: &str) -> Result<T, FaultAt> {
        let Named { name, ty } = self;
        fault(at, format!("`{}` is no value of `{name}: {ty}`, which is {can_be}", short(text)))
    }

    /// Returns the value of a text.
    pub(super) fn of_text(self, at: usize, text: &str) -> Result<Value, FaultAt> {
        let ty = if let TypeSchema::Option(inner) = self.ty { inner } else { self.ty };
        // Rows that were made without the column have an empty text, and go out with it.
        if *ty == TypeSchema::Json
            && !text.is_empty()
            && let Err(FaultAt { at: inside, what }) = Json::parse(text)
        {
            let is_before = |(at, c): &(usize, char)| at + c.len_utf8() <= inside;
            let character = 1 + text.char_indices().take_while(is_before).count();
            return self.wrong(at, text, &format!("JSON: at its character {character}, {what}"));
        }
        Value::of_text(self.ty, text).or_else(|can_be| self.wrong(at, text, &can_be))
    }

    /// Returns the value that JSON is.
    pub(super) fn of_json(self, json: Json<'_>) -> Result<Value, FaultAt> {
        let wrong = |can_be: &str| self.wrong(json.at, json.text, can_be);
        match (self.ty, json.kind()?) {
            (TypeSchema::Option(_), JsonKind::Plain) if json.text == "null" => Ok(Value::None),
            (TypeSchema::Option(inner), kind) => {
                let json = match kind {
                    _ if !can_be_null(inner) => json,
                    JsonKind::Array(one) if one.len() == 1 => one[0],
                    _ => return wrong("null, or an array of one value"),
                };
                Ok(Value::Some(Box::new(Named { ty: inner, ..self }.of_json(json)?)))
            }
            (TypeSchema::Struct(of), JsonKind::String(text)) if is_known(of) => {
                self.of_text(json.at, &text)
            }
            (TypeSchema::Struct(of), kind) => {
                Ok(Value::Parts(of.name.clone(), self.parts(&of.parts, json, kind)?))
            }
            (TypeSchema::Enum(of), JsonKind::Object(members)) => match &members[..] {
                [Member { name, value, .. }] => match parts_of(of, name) {
                    [] => wrong(&format!("{}, in an object only with parts", self.can_be())),
                    parts => {
                        let values = self.parts(parts, *value, value.kind()?)?;
                        Ok(Value::Parts(name.clone(), values))
                    }
                },
                _ => wrong("an object with one member, whose name is a variant"),
            },
            (TypeSchema::Array(inner, count), JsonKind::Array(elements))
                if *count < ELEMENTS_MAX =>
            {
                if elements.len() != *count as usize {
                    return wrong(&format!("an array of {count} values, not {}", elements.len()));
                }
                let of = Named { ty: inner, ..self };
                let values = elements.into_iter().map(|json| of.of_json(json));
                Ok(Value::List(values.collect::<Result<_, _>>()?))
            }
            (TypeSchema::Opaque { .. } | TypeSchema::Array(..), JsonKind::Array(elements)) => {
                let wanted = self.ty.words().or(self.ty.key_words()).unwrap_or(0);
                if elements.len() as u64 != wanted {
                    return wrong(&format!("an array of {wanted} words"));
                }
                let ty = &TypeSchema::Opaque { bits: 64, key_words: 0, layout: 0 };
                let mut words = Vec::with_capacity(elements.len());
                for json in elements {
                    match (Named { ty, ..self }).of_json(json)? {
                        Value::Words(word) => words.extend(word),
                        _ => return wrong("an array of numbers of 64 bits"),
                    }
                }
                Ok(Value::Words(words))
            }
            (
                TypeSchema::Text(_)
                | TypeSchema::Char
                | TypeSchema::Bytes(_)
                | TypeSchema::LongText
                | TypeSchema::LongBytes
                | TypeSchema::Json,
                JsonKind::Plain | JsonKind::Array(_) | JsonKind::Object(_),
            ) => wrong("a string"),
            (TypeSchema::Bool, JsonKind::String(_)) => wrong(&self.can_be()),
            (_, JsonKind::String(text)) => self.of_text(json.at, &text),
            (_, JsonKind::Plain) => self.of_text(json.at, json.text),
            _ => wrong(&self.can_be()),
        }
    }

    /// Returns the values of parts.
    fn parts(
        self,
        parts: &[PartSchema],
        json: Json<'_>,
        kind: JsonKind<'_>,
    ) -> Result<Vec<(String, Value)>, FaultAt> {
        let (count, have_places) = (parts.len(), have_places(parts));
        let named: Vec<_> = parts
            .iter()
            .map(|part| Named {
                name: if have_places { self.name } else { &part.name },
                ty: &part.ty,
            })
            .collect();
        let values = match kind {
            _ if have_places && count == 1 => vec![named[0].of_json(json)?],
            JsonKind::Array(values) if have_places && values.len() == count => {
                let values = named.iter().zip(values).map(|(of, json)| of.of_json(json));
                values.collect::<Result<_, _>>()?
            }
            JsonKind::Object(members) if !have_places => {
                values_of((self.name, json.at), &members, &named)?
            }
            _ if have_places => {
                return self.wrong(json.at, json.text, &format!("an array of {count} values"));
            }
            _ => return self.wrong(json.at, json.text, &format!("an object with {count} members")),
        };
        Ok(parts.iter().map(|part| part.name.clone()).zip(values).collect())
    }

    /// Returns what values are. No value of types that are not texts is an empty text.
    fn can_be(self) -> String {
        Value::of_text(self.ty, "").err().unwrap_or_default()
    }
}

/// Returns the values of members, in the order of `wanted`. `of` is what has them, and begins at a
/// byte.
pub(super) fn values_of(
    of: (&str, usize),
    members: &[Member<'_>],
    wanted: &[Named<'_>],
) -> Result<Vec<Value>, FaultAt> {
    let names: Vec<_> = wanted.iter().map(|of| of.name).collect();
    let given = members.iter().map(|member| (member.at, &member.name[..]));
    let mut values = vec![Value::None; wanted.len()];
    for (place, member) in places(of, given, &names)?.into_iter().zip(members) {
        values[place] = wanted[place].of_json(member.value)?;
    }
    Ok(values)
}
