//! Keys as lookups take them: by value or by reference, texts and bytes as slices.

#![forbid(unsafe_code)]

use super::field::{Bytes, Text};
use super::key::Key;
use std::borrow::Borrow;

/// What a lookup takes as a key of type `K`: the key itself or a reference to it.
///
/// A key of type [`Text`] is also given as `&str` or `String`, and a key of type [`Bytes`] as
/// `[u8; N]` or `&[u8]`. A text that is longer than the key's type allows, and a slice of another
/// length than the key's, are keys that no row can have: a lookup finds no row, and observes
/// nothing, since no transaction can ever insert one.
///
/// ```
/// use candide::{Abort, Database, Record, Text, Whole};
///
/// #[derive(Record, Clone, Copy, Debug, PartialEq)]
/// struct City {
///     #[key]
///     name: Text<16>,
///     inhabitants: u64,
/// }
///
/// let db = Database::new();
/// let cities = db.table::<City>("cities")?;
/// let porto = City { name: Text::new("Porto")?, inhabitants: 231_800 };
/// db.run(|tx| {
///     cities.insert(tx, porto)?;
///     assert_eq!(cities.get(tx, "Porto", City::INHABITANTS)?, Some(231_800));
///     assert_eq!(cities.get(tx, porto.name, Whole)?, Some(porto));
///     assert_eq!(cities.get(tx, &porto.name, Whole)?, Some(porto));
///     assert!(!cities.contains(tx, "Llanfairpwllgwyngyll")?, "20 bytes do not fit into 16");
///     Ok::<_, Abort>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A type of the program's own can be given as a key, too:
///
/// ```
/// use candide::AsKey;
///
/// struct AccountNumber(u64);
///
/// impl AsKey<u64> for AccountNumber {
///     type Given = u64;
///
///     fn into_key(self) -> Option<u64> {
///         Some(self.0)
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "the key has the type `{K}`, and `{Self}` cannot stand for it",
    label = "expected a key of type `{K}`, by value or by reference",
    note = "a key is given by value or by reference: `get(tx, 7, ..)`, `get(tx, &7, ..)`, `get(tx, (1, 2), ..)`",
    note = "a key of type `Text<N>` is also given as `&str` or `String`, a key of type `Bytes<N>` as `[u8; N]` or `&[u8]`"
)]
pub trait AsKey<K: Key> {
    /// `K`, or a reference to it.
    type Given: Borrow<K>;

    /// Returns the key; `None` if no row can have this key.
    fn into_key(self) -> Option<Self::Given>;
}

impl<K: Key> AsKey<K> for K {
    type Given = K;

    #[inline(always)]
    fn into_key(self) -> Option<K> {
        Some(self)
    }
}

impl<'a, K: Key> AsKey<K> for &'a K {
    type Given = &'a K;

    #[inline(always)]
    fn into_key(self) -> Option<&'a K> {
        Some(self)
    }
}

/// For the items of iterators over references.
#[diagnostic::do_not_recommend]
impl<'a, K: Key> AsKey<K> for &&'a K {
    type Given = &'a K;

    #[inline(always)]
    fn into_key(self) -> Option<&'a K> {
        Some(self)
    }
}

macro_rules! text_keys {
    ($($text:ty),*) => {$(
        #[diagnostic::do_not_recommend]
        impl<const N: usize> AsKey<Text<N>> for $text {
            type Given = Text<N>;

            #[inline]
            fn into_key(self) -> Option<Text<N>> {
                Text::new(self.as_ref()).ok()
            }
        }
    )*};
}

text_keys!(&str, &&str, String, &String);

#[diagnostic::do_not_recommend]
impl<const N: usize> AsKey<Bytes<N>> for [u8; N] {
    type Given = Bytes<N>;

    #[inline]
    fn into_key(self) -> Option<Bytes<N>> {
        Some(Bytes::new(self))
    }
}

#[diagnostic::do_not_recommend]
impl<const N: usize> AsKey<Bytes<N>> for &[u8; N] {
    type Given = Bytes<N>;

    #[inline]
    fn into_key(self) -> Option<Bytes<N>> {
        Some(Bytes::new(*self))
    }
}

#[diagnostic::do_not_recommend]
impl<const N: usize> AsKey<Bytes<N>> for &[u8] {
    type Given = Bytes<N>;

    #[inline]
    fn into_key(self) -> Option<Bytes<N>> {
        self.try_into().ok().map(Bytes::new)
    }
}

/// What [`Table::find_many`](crate::Table::find_many) takes as `N` keys of type `K`: an array of
/// them or a reference to one. Keys of type [`Text`] are also given as an array of `&str`.
#[diagnostic::on_unimplemented(
    message = "the keys have the type `{K}`, and `{Self}` cannot stand for an array of them",
    label = "expected `[{K}; N]` or `&[{K}; N]`",
    note = "the number of keys is a part of the type; `find_many` takes a longer list a piece at a time"
)]
pub trait AsKeys<K: Key, const N: usize> {
    /// An array of keys, or a reference to one.
    type Given: Borrow<[K; N]>;

    /// Returns the keys; `None` if no row can have one of them.
    fn into_keys(self) -> Option<Self::Given>;
}

impl<K: Key, const N: usize> AsKeys<K, N> for [K; N] {
    type Given = [K; N];

    #[inline(always)]
    fn into_keys(self) -> Option<[K; N]> {
        Some(self)
    }
}

impl<'a, K: Key, const N: usize> AsKeys<K, N> for &'a [K; N] {
    type Given = &'a [K; N];

    #[inline(always)]
    fn into_keys(self) -> Option<&'a [K; N]> {
        Some(self)
    }
}

impl<const N: usize, const M: usize> AsKeys<Text<M>, N> for [&str; N] {
    type Given = [Text<M>; N];

    fn into_keys(self) -> Option<[Text<M>; N]> {
        let mut keys = [Text::default(); N];
        for (key, text) in keys.iter_mut().zip(self) {
            *key = Text::new(text).ok()?;
        }
        Some(keys)
    }
}

impl<const N: usize, const M: usize> AsKeys<Text<M>, N> for &[&str; N] {
    type Given = [Text<M>; N];

    fn into_keys(self) -> Option<[Text<M>; N]> {
        (*self).into_keys()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key<K: Key>(given: impl AsKey<K>) -> Option<K> {
        given.into_key().map(|key| *key.borrow())
    }

    #[test]
    fn keys_are_given_by_value_and_by_reference() {
        assert_eq!(key::<u64>(1), Some(1));
        assert_eq!(key::<i64>(-1), Some(-1));
        assert_eq!((key::<u32>(&1), key::<u8>(&&1)), (Some(1), Some(1)));
        assert_eq!(key::<(u32, i8)>((7, -1)), Some((7, -1)));
        assert_eq!(key::<(u32, i8)>(&(7, -1)), Some((7, -1)));
    }

    #[test]
    fn texts_that_are_too_long_are_no_keys() {
        let text = Text::<3>::new("abc").unwrap();
        assert_eq!((key("abc"), key("abcd")), (Some(text), None::<Text<3>>));
        assert_eq!((key("abc".to_string()), key("äbc".to_string())), (Some(text), None::<Text<3>>));
        assert_eq!(
            (key(&"abc".to_string()), key(&"abc"), key(text)),
            (Some(text), Some(text), Some(text))
        );
        assert_eq!(["abc", ""].into_keys(), Some([text, Text::default()]));
        assert_eq!(AsKeys::<Text<3>, 2>::into_keys(&["abc", "abcd"]), None);
    }

    #[test]
    fn bytes_of_another_number_are_no_keys() {
        let bytes = Bytes::new(*b"ab");
        assert_eq!(
            (key(*b"ab"), key(b"ab"), key(&b"ab"[..])),
            (Some(bytes), Some(bytes), Some(bytes))
        );
        assert_eq!((key(&b"a"[..]), key(&b"abc"[..])), (None::<Bytes<2>>, None::<Bytes<2>>));
    }
}
