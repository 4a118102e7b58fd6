//! Texts and bytes as strings and slices: conversions and comparisons.

#![forbid(unsafe_code)]

use super::field::{Bytes, Text, TextTooLong};
use std::array::TryFromSliceError;
use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::str::FromStr;

impl<const N: usize> Deref for Text<N> {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl<const N: usize> Borrow<str> for Text<N> {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

/// The hash is that of the `str`, so that maps with keys of this type are searched by `&str`.
impl<const N: usize> Hash for Text<N> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl<const N: usize> FromStr for Text<N> {
    type Err = TextTooLong;

    fn from_str(text: &str) -> Result<Text<N>, TextTooLong> {
        Text::new(text)
    }
}

impl<const N: usize> TryFrom<&String> for Text<N> {
    type Error = TextTooLong;

    fn try_from(text: &String) -> Result<Text<N>, TextTooLong> {
        Text::new(text)
    }
}

impl<const N: usize> TryFrom<String> for Text<N> {
    type Error = TextTooLong;

    fn try_from(text: String) -> Result<Text<N>, TextTooLong> {
        Text::new(&text)
    }
}

impl<const N: usize> From<Text<N>> for String {
    fn from(text: Text<N>) -> String {
        text.as_str().to_owned()
    }
}

impl<const N: usize> From<&Text<N>> for String {
    fn from(text: &Text<N>) -> String {
        text.as_str().to_owned()
    }
}

macro_rules! equal_texts {
    ($($other:ty),*) => {$(
        impl<const N: usize> PartialEq<Text<N>> for $other {
            fn eq(&self, other: &Text<N>) -> bool {
                *other == **self
            }
        }
    )*};
}

equal_texts!(&str, String);

impl<const N: usize> PartialEq<Text<N>> for str {
    fn eq(&self, other: &Text<N>) -> bool {
        other == self
    }
}

impl<const N: usize> PartialEq<String> for Text<N> {
    fn eq(&self, other: &String) -> bool {
        *self == **other
    }
}

impl<const N: usize> Deref for Bytes<N> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.as_bytes()
    }
}

/// The hash of [`Bytes`] is that of the slice, so that maps with keys of this type are searched by
/// `&[u8]`.
impl<const N: usize> Borrow<[u8]> for Bytes<N> {
    fn borrow(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl<const N: usize> From<&[u8; N]> for Bytes<N> {
    fn from(bytes: &[u8; N]) -> Bytes<N> {
        Bytes::new(*bytes)
    }
}

/// From a slice of exactly `N` bytes; [`Bytes::padded`] takes shorter ones.
impl<const N: usize> TryFrom<&[u8]> for Bytes<N> {
    type Error = TryFromSliceError;

    fn try_from(bytes: &[u8]) -> Result<Bytes<N>, TryFromSliceError> {
        bytes.try_into().map(Bytes::new)
    }
}

impl<const N: usize> TryFrom<Vec<u8>> for Bytes<N> {
    type Error = TryFromSliceError;

    fn try_from(bytes: Vec<u8>) -> Result<Bytes<N>, TryFromSliceError> {
        bytes[..].try_into()
    }
}

impl<const N: usize> From<Bytes<N>> for [u8; N] {
    fn from(bytes: Bytes<N>) -> [u8; N] {
        *bytes.as_bytes()
    }
}

impl<const N: usize> From<Bytes<N>> for Vec<u8> {
    fn from(bytes: Bytes<N>) -> Vec<u8> {
        bytes.to_vec()
    }
}

macro_rules! equal_bytes {
    ($($other:ty),*) => {$(
        impl<const N: usize> PartialEq<$other> for Bytes<N> {
            fn eq(&self, other: &$other) -> bool {
                **self == other[..]
            }
        }

        impl<const N: usize> PartialEq<Bytes<N>> for $other {
            fn eq(&self, other: &Bytes<N>) -> bool {
                self[..] == **other
            }
        }
    )*};
}

equal_bytes!([u8], &[u8], [u8; N], &[u8; N], Vec<u8>);

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, HashMap, HashSet};

    fn text<const N: usize>(text: &str) -> Text<N> {
        text.parse().expect("it fits")
    }

    #[test]
    fn maps_of_texts_are_searched_by_strings() {
        let texts = ["", "a", "a\0", "äöü", "abcdefgh", "abcdefghi"];
        let map: HashMap<Text<9>, usize> = texts.iter().map(|t| (text(t), t.len())).collect();
        for one in texts {
            assert_eq!(map.get(one), Some(&one.len()), "{one:?}");
        }
        assert_eq!((map.get("b"), map.get("longer than nine bytes")), (None, None));
        let ordered: BTreeMap<Text<9>, usize> = map.into_iter().collect();
        let mut sorted = texts;
        sorted.sort_unstable();
        assert!(ordered.keys().zip(sorted).all(|(one, other)| *one == other));
        assert_eq!(ordered.get("äöü"), Some(&6));
        let bytes: HashSet<Bytes<3>> = HashSet::from([Bytes::new(*b"abc")]);
        assert!(bytes.contains(&b"abc"[..]) && !bytes.contains(&b"ab"[..]));
    }

    #[test]
    fn texts_convert_from_strings_and_back() {
        let long = TextTooLong { length: 4, length_max: 3 };
        assert_eq!("abc".parse::<Text<3>>(), Ok(text("abc")));
        assert_eq!(Text::<3>::try_from(String::from("abcd")), Err(long));
        assert_eq!(Text::<3>::try_from(&String::from("abc")), Ok(text("abc")));
        assert_eq!((String::from(text::<3>("abc")), String::from(&text::<3>(""))), {
            (String::from("abc"), String::new())
        });
        let (one, owned) = (text::<3>("abc"), String::from("abc"));
        assert_eq!(
            [("abc" == one, one == "abc"), (*"abc" == one, one == *"abc")],
            [(true, true); 2]
        );
        assert_eq!((owned == one, one == owned, "ab" != one, one != "abc\0"), {
            (true, true, true, true)
        });
        assert_eq!((one.to_uppercase(), one.starts_with("ab"), one.chars().count()), {
            ("ABC".into(), true, 3)
        });
    }

    #[test]
    fn bytes_convert_from_slices_of_their_length_and_back() {
        let bytes = Bytes::from(b"abc");
        assert_eq!(Bytes::<3>::try_from(&b"abc"[..]).ok(), Some(bytes));
        assert!(Bytes::<3>::try_from(&b"ab"[..]).is_err());
        assert!(Bytes::<3>::try_from(b"abcd".to_vec()).is_err());
        assert_eq!((<[u8; 3]>::from(bytes), Vec::from(bytes)), (*b"abc", b"abc".to_vec()));
        assert!(bytes == *b"abc" && bytes == b"abc" && bytes == b"abc"[..]);
        assert!(*b"abc" == bytes && b"abc" == bytes && b"abd"[..] != bytes && bytes != b"ab"[..]);
        assert!(b"abc".to_vec() == bytes && bytes == b"abc".to_vec());
        assert_eq!((bytes.len(), bytes.first(), &bytes[1..]), (3, Some(&b'a'), &b"bc"[..]));
    }
}
