//! Texts, bytes, tags, errors and conflicts for the crate `serde`.

#![forbid(unsafe_code)]

use crate::error::{self, Abort};
use crate::schema::{Bytes, Tag, Tagged, Text};
use crate::txn::{Conflict, Outcome};
use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeStruct, Serializer};
use std::fmt;

/// As a string.
impl<const N: usize> Serialize for Text<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

struct TextVisitor<const N: usize>;

impl<const N: usize> Visitor<'_> for TextVisitor<N> {
    type Value = Text<N>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a text of at most {N} bytes")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Text<N>, E> {
        Text::new(text).map_err(E::custom)
    }
}

impl<'de, const N: usize> Deserialize<'de> for Text<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text<N>, D::Error> {
        deserializer.deserialize_str(TextVisitor)
    }
}

/// As its value.
#[cfg(feature = "json")]
impl<T: Serialize> Serialize for crate::Json<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

#[cfg(feature = "json")]
impl<'de, T: Deserialize<'de>> Deserialize<'de> for crate::Json<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<crate::Json<T>, D::Error> {
        T::deserialize(deserializer).map(crate::Json)
    }
}

/// As bytes.
impl<const N: usize> Serialize for Bytes<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self)
    }
}

struct BytesVisitor<const N: usize>;

impl<'de, const N: usize> Visitor<'de> for BytesVisitor<N> {
    type Value = Bytes<N>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{N} bytes")
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Bytes<N>, E> {
        bytes.try_into().map_err(|_| E::invalid_length(bytes.len(), &self))
    }

    /// Formats without bytes have a list of numbers.
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Bytes<N>, A::Error> {
        let mut bytes = [0; N];
        for (place, byte) in bytes.iter_mut().enumerate() {
            *byte = list.next_element()?.ok_or_else(|| de::Error::invalid_length(place, &self))?;
        }
        match list.next_element::<u8>()? {
            Some(_) => Err(de::Error::invalid_length(N + 1, &self)),
            None => Ok(Bytes::new(bytes)),
        }
    }
}

impl<'de, const N: usize> Deserialize<'de> for Bytes<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bytes<N>, D::Error> {
        deserializer.deserialize_bytes(BytesVisitor)
    }
}

/// As the name of the variant.
impl<E: Tagged> Serialize for Tag<E> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// As the [name](Abort::name).
impl Serialize for Abort {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

struct AbortVisitor;

impl Visitor<'_> for AbortVisitor {
    type Value = Abort;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a reason of an abort")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Abort, E> {
        let found = Abort::ALL.into_iter().find(|abort| abort.name() == name);
        found.ok_or_else(|| E::invalid_value(de::Unexpected::Str(name), &self))
    }
}

impl<'de> Deserialize<'de> for Abort {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Abort, D::Error> {
        deserializer.deserialize_str(AbortVisitor)
    }
}

impl Serialize for Conflict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Conflict", 5)?;
        fields.serialize_field("cause", &self.cause)?;
        fields.serialize_field("transaction", &self.transaction)?;
        fields.serialize_field("table", &self.table.as_deref())?;
        fields.serialize_field("group", &self.group)?;
        fields.serialize_field("key", &self.key_text.as_deref())?;
        fields.end()
    }
}

/// As its text.
impl Serialize for error::Error {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Outcome", 5)?;
        fields.serialize_field("cause", &self.cause)?;
        fields.serialize_field("table", &self.table.as_deref())?;
        fields.serialize_field("column", &self.column)?;
        fields.serialize_field("key", &self.key_text.as_deref())?;
        fields.serialize_field("problem", &self.problem.as_deref())?;
        fields.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::value::{BytesDeserializer, Error, SeqDeserializer, StrDeserializer};

    /// Shows what is serialized as one text.
    struct Shown<T>(T);

    impl<T: Serialize> fmt::Display for Shown<T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.serialize(f)
        }
    }

    fn from_text<T: for<'a> Deserialize<'a>>(text: &str) -> Result<T, Error> {
        T::deserialize(StrDeserializer::new(text))
    }

    #[test]
    fn texts_are_strings_that_fit() {
        assert_eq!(from_text::<Text<3>>("abc").unwrap(), "abc");
        assert!(from_text::<Text<3>>("abcd").is_err());
        assert_eq!(Shown(Text::<3>::new("abc").unwrap()).to_string(), "abc");
    }

    #[test]
    fn bytes_are_bytes_or_a_list_of_their_length() {
        let bytes = |bytes| Bytes::<3>::deserialize(BytesDeserializer::<Error>::new(bytes)).ok();
        assert_eq!(
            [bytes(b"abc"), bytes(b"ab"), bytes(b"abcd")],
            [Some(Bytes::new(*b"abc")), None, None]
        );
        let list = |list: &[u8]| {
            Bytes::<3>::deserialize(SeqDeserializer::<_, Error>::new(list.iter().copied())).ok()
        };
        assert_eq!(
            [list(b"abc"), list(b"ab"), list(b"abcd")],
            [Some(Bytes::new(*b"abc")), None, None]
        );
    }

    #[test]
    fn reasons_of_aborts_are_their_names() {
        for abort in Abort::ALL {
            assert_eq!(Shown(abort).to_string(), abort.name());
            assert_eq!(from_text::<Abort>(abort.name()), Ok(abort));
        }
        assert!(from_text::<Abort>("unknown").is_err());
    }
}
