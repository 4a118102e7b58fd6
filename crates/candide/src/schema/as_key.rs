//! Keys as lookups take them: by value or by reference, texts and bytes as slices.

#![forbid(unsafe_code)]

use super::field::{Bytes, Text};
use super::key::{AsKey, Key};
use super::key_joint::Before;
use std::borrow::Borrow;

macro_rules! own_keys {
    ($($key:ty),*) => {$(
        #[diagnostic::do_not_recommend]
        impl AsKey<$key> for $key {
            type Given = $key;

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn into_key(self) -> Option<$key> {
                Some(self)
            }
        }
    )*};
}

own_keys!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, bool, char);

#[diagnostic::do_not_recommend]
impl<const N: usize> AsKey<Text<N>> for Text<N> {
    type Given = Text<N>;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn into_key(self) -> Option<Text<N>> {
        Some(self)
    }
}

#[diagnostic::do_not_recommend]
impl<const N: usize> AsKey<Bytes<N>> for Bytes<N> {
    type Given = Bytes<N>;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn into_key(self) -> Option<Bytes<N>> {
        Some(self)
    }
}

// This is not implemented for every `Option<X>` with `X: AsKey<K>`, since the type of a mere `None`
// would be unknown.
#[diagnostic::do_not_recommend]
impl<K: Key> AsKey<Option<K>> for Option<K>
where
    [u64; 1]: Before<K::Words>,
{
    type Given = Option<K>;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn into_key(self) -> Option<Option<K>> {
        Some(self)
    }
}

#[diagnostic::do_not_recommend]
impl<const N: usize> AsKey<Option<Text<N>>> for Option<&str> {
    type Given = Option<Text<N>>;

    #[inline]
    fn into_key(self) -> Option<Option<Text<N>>> {
        self.map(Text::new).transpose().ok()
    }
}

macro_rules! tuples_as_keys {
    ($($($given:ident as $name:ident $index:tt),+;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<$($name: Key,)+ $($given: AsKey<$name>),+> AsKey<($($name,)+)> for ($($given,)+)
        where
            ($($name,)+): Key,
        {
            type Given = ($($name,)+);

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn into_key(self) -> Option<($($name,)+)> {
                Some(($(*self.$index.into_key()?.borrow(),)+))
            }
        }
    )*};
}

tuples_as_keys! {
    X as A 0, Y as B 1;
    X as A 0, Y as B 1, Z as C 2;
    X as A 0, Y as B 1, Z as C 2, W as D 3;
}

impl<'a, K: Key> AsKey<K> for &'a K {
    type Given = &'a K;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn into_key(self) -> Option<&'a K> {
        Some(self)
    }
}

/// For the items of iterators over references.
#[diagnostic::do_not_recommend]
impl<'a, K: Key> AsKey<K> for &&'a K {
    type Given = &'a K;

    #[cfg_attr(not(debug_assertions), inline(always))]
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

/// The argument of [`Table::find_many`](crate::Table::find_many) for `N` keys of type `K`: an array
/// of keys or a reference to an array. Keys of type [`Text`] are also given as an array of `&str`.
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

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn into_keys(self) -> Option<[K; N]> {
        Some(self)
    }
}

impl<'a, K: Key, const N: usize> AsKeys<K, N> for &'a [K; N] {
    type Given = &'a [K; N];

    #[cfg_attr(not(debug_assertions), inline(always))]
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
    fn keys_are_accepted_by_value_and_by_reference() {
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
    fn components_of_keys_are_accepted_in_the_forms_of_keys() {
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
        assert_eq!(key::<(u8, Option<Text<3>>)>((&7, Some("abc"))), Some((7, Some(text))));
        assert_eq!(
            key::<((u8, Text<3>), Bytes<2>)>(((7, "abc".to_string()), b"ab")),
            Some(((7, text), Bytes::new(*b"ab")))
        );
        assert_eq!(key::<(u8, Option<u16>)>((7, None)), Some((7, None)));
    }

    #[test]
    fn slices_of_another_length_are_no_keys() {
        let bytes = Bytes::new(*b"ab");
        assert_eq!(
            (key(*b"ab"), key(b"ab"), key(&b"ab"[..])),
            (Some(bytes), Some(bytes), Some(bytes))
        );
        assert_eq!((key(&b"a"[..]), key(&b"abc"[..])), (None::<Bytes<2>>, None::<Bytes<2>>));
    }
}
