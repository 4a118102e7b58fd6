//! Keys of bytes of any length up to a limit.

#![forbid(unsafe_code)]

use super::hash::hash_numbers;
use super::key::{
    AsKey, Key, WHOLE_WORDS, byte_words, bytes_of_words, show_padded, words_of_bytes,
};
use super::key_words::KeyWords;
use super::prefix::{Begins, PrefixEnd};
use super::range::{
    Beginning, KeyPrefix, KeyRange, WordRange, beginning_of_limited, range_of_limited,
};
use std::fmt::{self, Formatter};
use std::ops::{Bound, Range, RangeBounds, RangeFrom, RangeInclusive, RangeTo, RangeToInclusive};

/// At most `N` bytes: the key of an index of a column of type `Vec<u8>`, as [`Text`](crate::Text)
/// is that of one of type `String`.
///
/// Keys are compared byte by byte, and one that another begins with comes before it. Lookups and
/// ranges take `&[u8]`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct BytesUpTo<const N: usize> {
    /// The bytes, followed by zeros.
    padded: [u8; N],
    length: u16,
}

impl<const N: usize> BytesUpTo<N> {
    /// Returns these bytes as a key; `None` if there are more than `N`.
    pub fn new(bytes: &[u8]) -> Option<BytesUpTo<N>> {
        let mut padded = [0; N];
        padded.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(BytesUpTo { padded, length: u16::try_from(bytes.len()).ok()? })
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.padded[..usize::from(self.length)]
    }
}

impl<const N: usize> fmt::Debug for BytesUpTo<N> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.as_bytes().escape_ascii())
    }
}

impl<const N: usize> Key for BytesUpTo<N> {
    type Words = KeyWords;
    const WIDTHS: &'static [u32] = WHOLE_WORDS.split_at(byte_words(N) + 1).0;
    const KEY_LAYOUT: u64 = hash_numbers(&[N as u64, u64::MAX]);

    fn words(&self) -> KeyWords {
        words_of_bytes(&self.padded, Some(self.length))
    }

    fn from_words(words: &[u64]) -> BytesUpTo<N> {
        BytesUpTo { padded: bytes_of_words(words), length: words[Self::WORDS - 1] as u16 }
    }

    fn show(words: &[u64], f: &mut Formatter<'_>) -> fmt::Result {
        show_padded::<N>(words, false, f)
    }
}

#[diagnostic::do_not_recommend]
impl<const N: usize> AsKey<BytesUpTo<N>> for BytesUpTo<N> {
    type Given = BytesUpTo<N>;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn into_key(self) -> Option<BytesUpTo<N>> {
        Some(self)
    }
}

macro_rules! bytes_as_keys {
    ($([$($length:ident)?] $bytes:ty),*) => {$(
        #[diagnostic::do_not_recommend]
        impl<const N: usize $(, const $length: usize)?> AsKey<BytesUpTo<N>> for $bytes {
            type Given = BytesUpTo<N>;

            #[inline]
            fn into_key(self) -> Option<BytesUpTo<N>> {
                BytesUpTo::new(self.as_ref())
            }
        }
    )*};
}

bytes_as_keys!([] &[u8], [] &&[u8], [M] [u8; M], [M] &[u8; M], [] Vec<u8>, [] &Vec<u8>);

#[diagnostic::do_not_recommend]
impl<const N: usize> AsKey<Option<BytesUpTo<N>>> for Option<&[u8]> {
    type Given = Option<BytesUpTo<N>>;

    #[inline]
    fn into_key(self) -> Option<Option<BytesUpTo<N>>> {
        match self {
            None => Some(None),
            Some(bytes) => BytesUpTo::new(bytes).map(Some),
        }
    }
}

macro_rules! ranges_of_bytes {
    ($($range:ty),*) => {$(
        #[diagnostic::do_not_recommend]
        impl<const N: usize> KeyRange<BytesUpTo<N>> for $range {
            fn word_range(&self) -> WordRange {
                range_of_limited::<N>(self.start_bound().cloned(), self.end_bound().cloned())
            }
        }
    )*};
}

ranges_of_bytes!(
    Range<&[u8]>,
    RangeInclusive<&[u8]>,
    RangeFrom<&[u8]>,
    RangeTo<&[u8]>,
    RangeToInclusive<&[u8]>,
    (Bound<&[u8]>, Bound<&[u8]>)
);

impl<const N: usize> KeyPrefix<BytesUpTo<N>> for &[u8] {
    fn word_range(&self) -> WordRange {
        beginning_of_limited::<N>(self)
    }
}

#[diagnostic::do_not_recommend]
impl<const N: usize> PrefixEnd<BytesUpTo<N>> for Begins<&[u8]> {
    fn add_to(self, beginning: Beginning) -> Beginning {
        beginning.and_range(&beginning_of_limited::<N>(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::key_text::Shown;
    use crate::{Equals, Prefix};

    type Short = BytesUpTo<9>;

    const ALL: [&[u8]; 10] = [
        b"",
        b"\0",
        b"\0\0",
        b"a",
        b"a\0",
        b"a\0b",
        b"ab",
        b"abcdefgh",
        b"abcdefgh\0",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    ];

    /// Bytes that no key has.
    const LONG: [&[u8]; 5] = [
        b"\0\0\0\0\0\0\0\0\0\0",
        b"a\0\0\0\0\0\0\0\0\0",
        b"abcdefgh\0\0",
        b"abcdefghij",
        &[0xff; 10],
    ];

    fn key(bytes: &[u8]) -> Short {
        Short::new(bytes).expect("it fits")
    }

    fn holds<K: Key>(range: impl KeyRange<K>, key: K) -> bool {
        range.word_range().contains(key.words().as_ref())
    }

    #[test]
    fn keys_have_the_order_of_their_bytes_and_come_back() {
        for one in ALL {
            assert_eq!(Short::from_words(key(one).words().as_ref()).as_bytes(), one);
            for other in ALL {
                let order = key(one).words().as_ref().cmp(key(other).words().as_ref());
                assert_eq!(order, one.cmp(other), "{one:?} {other:?}");
            }
        }
        assert!(LONG.iter().all(|long| Short::new(long).is_none()));
        let shown = Shown::of::<Short>(&key(b"a\0").words()).to_string();
        assert_eq!(
            (shown, format!("{:?}", key(b"a\0"))),
            ("b\"a\\x00\"".into(), "b\"a\\x00\"".into())
        );
    }

    #[test]
    fn ranges_hold_what_lies_between_their_bounds_however_long_these_are() {
        for bytes in ALL {
            for bound in ALL.into_iter().chain(LONG) {
                assert_eq!(holds::<Short>(bound.., key(bytes)), bytes >= bound);
                assert_eq!(holds::<Short>(..bound, key(bytes)), bytes < bound);
                assert_eq!(holds::<Short>(..=bound, key(bytes)), bytes <= bound);
                let begins = bytes.starts_with(bound);
                assert_eq!(holds(Prefix(bound), key(bytes)), begins, "{bytes:?} {bound:?}");
                let key = (7u8, key(bytes), 3u64);
                assert_eq!(holds(Prefix((7, Begins(bound))), key), begins);
                assert_eq!(holds(Prefix((7, Equals(bound))), key), bytes == bound);
            }
        }
    }

    #[test]
    fn lookups_take_slices_arrays_and_vectors() {
        fn found(given: impl AsKey<Short>) -> bool {
            given.into_key().is_some_and(|found| *std::borrow::Borrow::borrow(&found) == key(b"ab"))
        }
        assert!(found(b"ab") && found(*b"ab") && found(&b"ab"[..]) && found(key(b"ab")));
        assert!(found(b"ab".to_vec()) && found(&b"ab".to_vec()) && !found(&[0; 10]));
        let option: Option<Short> = Some(&b"ab"[..]).into_key().unwrap();
        assert_eq!(option, Some(key(b"ab")));
        assert_eq!(AsKey::<Option<Short>>::into_key(None::<&[u8]>), Some(None));
        assert_eq!(AsKey::<Option<Short>>::into_key(Some(&[0; 10][..])), None);
    }
}
