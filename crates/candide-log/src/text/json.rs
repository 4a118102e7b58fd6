//! JSON (RFC 8259), read one level at a time.

use super::fault::FaultAt;
use serde_core::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt::{self, Formatter};

/// A value, and the byte at which it begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Json<'a> {
    pub(super) at: usize,
    pub(super) text: &'a str,
}

/// A value, whose elements or members have been read as JSON only.
pub(super) enum JsonKind<'a> {
    /// A number, `true`, `false` or `null`.
    Plain,
    String(String),
    Array(Vec<Json<'a>>),
    Object(Vec<Member<'a>>),
}

/// A member of an object, and the byte at which it begins.
pub(super) struct Member<'a> {
    pub(super) at: usize,
    pub(super) name: String,
    pub(super) value: Json<'a>,
}

impl<'a> Json<'a> {
    /// Returns the value that a text is.
    pub(super) fn parse(text: &'a str) -> Result<Json<'a>, FaultAt> {
        let text = Json { at: 0, text };
        Ok(text.part(text.read()?))
    }

    pub(super) fn kind(self) -> Result<JsonKind<'a>, FaultAt> {
        Ok(match self.text.as_bytes().first() {
            Some(b'"') => JsonKind::String(self.read()?),
            Some(b'[') => {
                let elements: Vec<_> = self.read()?;
                JsonKind::Array(elements.into_iter().map(|raw| self.part(raw)).collect())
            }
            Some(b'{') => JsonKind::Object(self.members()?),
            _ => JsonKind::Plain,
        })
    }

    /// Returns the members of an object, in their order.
    pub(super) fn members(self) -> Result<Vec<Member<'a>>, FaultAt> {
        let Members(members) = self.read()?;
        let members = members.into_iter().map(|(name, value)| {
            let name = self.part(name);
            Ok(Member { at: name.at, name: name.read()?, value: self.part(value) })
        });
        members.collect()
    }

    /// Returns a value of which this one consists.
    fn part(self, raw: &'a RawValue) -> Json<'a> {
        let text = raw.get();
        Json { at: self.at + (text.as_ptr().addr() - self.text.as_ptr().addr()), text }
    }

    fn read<T: Deserialize<'a>>(self) -> Result<T, FaultAt> {
        serde_json::from_str(self.text).map_err(|error| {
            let what = error.to_string();
            // Its end is the place.
            let what = what.rsplit_once(" at line ").map_or(&what[..], |(what, _)| what);
            match what.strip_prefix("EOF while parsing ") {
                Some(open) => FaultAt {
                    at: self.at + self.text.len(),
                    what: format!("{open} is cut off here"),
                },
                None => {
                    let lines = self.text.split_inclusive('\n').take(error.line() - 1);
                    let before = lines.map(str::len).sum::<usize>();
                    let at = self.at + before + error.column().saturating_sub(1);
                    FaultAt { at, what: what.to_owned() }
                }
            }
        })
    }
}

/// The members of an object, also those that have the same name.
struct Members<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Members<'a>, D::Error> {
        from.deserialize_map(Members(Vec::new()))
    }
}

impl<'de: 'a, 'a> Visitor<'de> for Members<'a> {
    type Value = Members<'a>;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Members<'a>, A::Error> {
        while let Some(member) = map.next_entry()? {
            self.0.push(member);
        }
        Ok(self)
    }
}
