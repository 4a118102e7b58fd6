//! Keys as lookups take them: by value or by reference, texts and bytes as slices.

#![forbid(unsafe_code)]

use super::field::{Bytes, Text};
use super::key::Key;
use std::borrow::Borrow;

/// What a lookup takes as a key of type `K`: the key itself or a reference to it.
///
/// A key of type [`Text`] is also given as `&str` or `String`, and a key of type [`Bytes`] as `[u8;
/// N]` or `&[u8]`. In a pair, in an option, and once in a tuple of three, a text is given as
/// `&str`, too: `(7, "Porto")`. A text that is longer than the key's type allows, and a slice of
/// another length than the key's, are keys that no row can have: a lookup finds no row, and
/// observes nothing, since no transaction can ever insert one.
///
/// ```
/// use candide::{Database, Record, Text, Whole};
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
///     assert_eq!(cities.get(tx, porto.name, Whole)?, Some(porto));
///     assert!(!cities.contains(tx, "Llanfairpwllgwyngyll")?, "20 bytes do not fit into 16");
///     Ok(())
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

/// Where a key is an option or a tuple, its texts are given as `&str`.
macro_rules! keys_with_texts {
    ($(<$($name:ident),*; $($size:ident),+> $key:ty = $given:ty: |$from:pat_param| $into:expr;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<$($name: Key,)* $(const $size: usize),+> AsKey<$key> for $given
        where
            $key: Key,
        {
            type Given = $key;

            #[inline]
            fn into_key(self) -> Option<$key> {
                let $from = self;
                Some($into)
            }
        }
    )*};
}

keys_with_texts! {
    <; N> Option<Text<N>> = Option<&str>: |text| text.map(Text::new).transpose().ok()?;
    <A; N> (A, Text<N>) = (A, &str): |(a, text)| (a, Text::new(text).ok()?);
    <B; N> (Text<N>, B) = (&str, B): |(text, b)| (Text::new(text).ok()?, b);
    <; N, M> (Text<N>, Text<M>) = (&str, &str):
        |(one, other)| (Text::new(one).ok()?, Text::new(other).ok()?);
    <A, B; N> (A, B, Text<N>) = (A, B, &str): |(a, b, text)| (a, b, Text::new(text).ok()?);
    <A, C; N> (A, Text<N>, C) = (A, &str, C): |(a, text, c)| (a, Text::new(text).ok()?, c);
    <B, C; N> (Text<N>, B, C) = (&str, B, C): |(text, b, c)| (Text::new(text).ok()?, b, c);
}

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
    fn texts_in_tuples_are_given_as_slices() {
        let text = Text::<3>::new("abc").unwrap();
        assert_eq!(key::<(u8, Text<3>)>((7, "abc")), Some((7, text)));
        assert_eq!(key::<(Text<3>, u8)>(("abc", 7)), Some((text, 7)));
        assert_eq!(key::<(Text<3>, Text<3>)>(("abc", "abc")), Some((text, text)));
        assert_eq!(key::<(u8, u8, Text<3>)>((7, 8, "abc")), Some((7, 8, text)));
        assert_eq!(key::<(u8, Text<3>, u8)>((7, "abc", 8)), Some((7, text, 8)));
        assert_eq!(key::<(Text<3>, u8, u8)>(("abc", 7, 8)), Some((text, 7, 8)));
        assert_eq!(key::<(u8, Text<3>)>((7, text)), Some((7, text)));
        assert_eq!(key::<Option<Text<3>>>(Some("abc")), Some(Some(text)));
        assert_eq!(key::<Option<Text<3>>>(None::<&str>), Some(None));
        assert_eq!(key::<Option<Text<3>>>(Some("abcd")), None);
        assert_eq!(key::<(u8, Text<3>)>((7, "abcd")), None);
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
