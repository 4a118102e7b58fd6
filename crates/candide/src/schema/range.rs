//! Ranges of keys, as words.

#![forbid(unsafe_code)]

use super::field::{Bytes, Text};
use super::key::{AsKey, Key, words_of_bytes};
use super::key_packing::KeyPacking;
use super::key_words::KEY_WORDS_MAX;
use std::borrow::Borrow;
use std::ops::{
    Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive,
};

/// The number of words of a key that an edge holds inline. The number is small, because scans
/// contain edges and are moved.
const FEW: usize = 8;

/// One end of a range of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    few: [u64; FEW],
    /// All words of the key if they do not fit into `few`, otherwise empty.
    many: Box<[u64]>,
    count: usize,
    /// Whether the key itself is in the range.
    included: bool,
}

impl Edge {
    /// Returns an edge at a key of `count` words that begins with `words`. All further words are
    /// `rest`.
    #[inline]
    pub(crate) fn at(words: &[u64], count: usize, rest: u64, included: bool) -> Edge {
        let mut edge = Edge { few: [rest; FEW], many: Box::default(), count, included };
        if count > FEW {
            edge.many = vec![rest; count].into();
        }
        let known = words.len().min(count);
        edge.words_mut()[..known].copy_from_slice(&words[..known]);
        edge
    }

    /// Returns the key, in words.
    #[inline]
    pub(crate) fn words(&self) -> &[u64] {
        if self.count > FEW { &self.many } else { &self.few[..self.count] }
    }

    fn words_mut(&mut self) -> &mut [u64] {
        if self.count > FEW { &mut self.many } else { &mut self.few[..self.count] }
    }

    #[inline]
    pub(crate) fn is_included(&self) -> bool {
        self.included
    }
}

/// The range of keys between two edges. Keys are compared word by word; both edges have as many
/// words as the keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordRange {
    pub(crate) lower: Edge,
    pub(crate) upper: Edge,
}

impl WordRange {
    /// Returns all keys of `count` words that begin with `words`.
    #[doc(hidden)]
    pub fn beginning_with(words: &[u64], count: usize) -> WordRange {
        WordRange {
            lower: Edge::at(words, count, 0, true),
            upper: Edge::at(words, count, u64::MAX, true),
        }
    }

    /// Removes `key`, which is in the range, and all keys before it.
    pub(crate) fn begin_after(&mut self, key: &[u64]) {
        self.lower = Edge::at(key, key.len(), 0, false);
    }

    /// Removes `key`, which is in the range, and all keys after it.
    pub(crate) fn end_before(&mut self, key: &[u64]) {
        self.upper = Edge::at(key, key.len(), u64::MAX, false);
    }

    /// Returns the keys between two bounds.
    #[inline]
    fn between<K: Key>(lower: Bound<&K>, upper: Bound<&K>) -> WordRange {
        let edge = |bound: Bound<&K>, rest| match bound {
            Bound::Included(key) => Edge::at(key.words().as_ref(), K::WORDS, rest, true),
            Bound::Excluded(key) => Edge::at(key.words().as_ref(), K::WORDS, rest, false),
            Bound::Unbounded => Edge::at(&[], K::WORDS, rest, true),
        };
        WordRange { lower: edge(lower, 0), upper: edge(upper, u64::MAX) }
    }

    /// Returns no keys, as a range of keys of `count` words.
    pub(crate) fn nothing(count: usize) -> WordRange {
        let edge = |included| Edge::at(&[], count, 0, included);
        WordRange { lower: edge(true), upper: edge(false) }
    }

    /// Returns the keys of `count` words between two bounds.
    pub(crate) fn between_words(
        lower: Bound<&[u64]>,
        upper: Bound<&[u64]>,
        count: usize,
    ) -> WordRange {
        let edge = |bound, rest| match bound {
            Bound::Included(words) => Edge::at(words, count, rest, true),
            Bound::Excluded(words) => Edge::at(words, count, rest, false),
            Bound::Unbounded => Edge::at(&[], count, rest, true),
        };
        WordRange { lower: edge(lower, 0), upper: edge(upper, u64::MAX) }
    }

    /// Returns the keys of `count` words that begin with a key of this range.
    pub(crate) fn of_longer_keys(&self, count: usize) -> WordRange {
        let longer = |edge: &Edge, rest| Edge::at(edge.words(), count, rest, edge.included);
        // Longer keys that begin with an included key are included. Those that begin with an
        // excluded key are excluded.
        let (behind, before) = (u64::MAX, 0);
        WordRange {
            lower: longer(&self.lower, if self.lower.included { before } else { behind }),
            upper: longer(&self.upper, if self.upper.included { behind } else { before }),
        }
    }

    /// Returns this range in the words of packed keys.
    pub(crate) fn packed(&self, packing: &KeyPacking) -> WordRange {
        let pack = |edge: &Edge, rest| {
            Edge::at(packing.pack(edge.words()).as_slice(), packing.words(), rest, edge.included)
        };
        WordRange { lower: pack(&self.lower, 0), upper: pack(&self.upper, u64::MAX) }
    }

    /// Checks that both edges have `count` words, the number of words of an index's keys. The index
    /// compares the edges with `count` words of each record.
    ///
    /// # Panics
    /// If an edge has another number of words: a hand-written implementation of [`KeyRange`] or
    /// [`KeyPrefix`] has made a range of keys of another type.
    #[inline]
    pub(crate) fn expect_words(&self, count: usize) {
        if self.lower.count != count || self.upper.count != count {
            refuse_words(self, count);
        }
    }

    /// Returns whether the range can contain no key at all.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        let mut pairs = self.lower.words().iter().zip(self.upper.words());
        match pairs.find(|(lower, upper)| lower != upper) {
            Some((lower, upper)) => lower > upper,
            None => !(self.lower.included && self.upper.included),
        }
    }

    /// Returns whether the key with these words lies in the range.
    #[cfg(test)]
    pub(crate) fn contains(&self, words: &[u64]) -> bool {
        let (lower, upper) = (self.lower.words(), self.upper.words());
        (words > lower || words == lower && self.lower.included)
            && (words < upper || words == upper && self.upper.included)
    }
}

#[cold]
fn refuse_words(range: &WordRange, count: usize) -> ! {
    let (lower, upper) = (range.lower.count, range.upper.count);
    panic!(
        "`word_range` gives edges of {lower} and {upper} words for keys of {count}; both have `Key::WORDS` words"
    )
}

/// A range of keys of type `K`, as scans take it.
///
/// Implemented by the ranges of the standard library (`a..b`, `a..=b`, `..`, a pair of bounds, …)
/// and by [`Prefix`]. Keys of type [`Text`] also have ranges of `&str`, such as `"a".."n"`. A bound
/// can be longer than the keys: the range contains the keys that come behind, or before, this text.
#[diagnostic::on_unimplemented(
    message = "the keys have the type `{K}`, and `{Self}` is not a range of them",
    label = "expected a range of keys of type `{K}`",
    note = "ranges are `a..b`, `a..=b`, `a..`, `..b`, `..`, a pair of `Bound`s, and `Prefix(..)` of a composite or a text",
    note = "keys of type `Text<N>` also have ranges of `&str`; in a range of tuples, texts are `Text<N>`"
)]
pub trait KeyRange<K: Key> {
    /// Returns the range in words.
    #[doc(hidden)]
    fn word_range(&self) -> WordRange;
}

/// The range of all keys that begin with a given prefix: `Prefix((warehouse, district))` for keys
/// `(warehouse, district, order)`, or `Prefix("smi")` for keys of type `Text<16>`.
#[derive(Debug, Clone, Copy)]
pub struct Prefix<P>(pub P);

/// A prefix of keys of type `K`: a tuple of the first components of a composite key, or the first
/// bytes of a text.
#[diagnostic::on_unimplemented(
    message = "the keys have the type `{K}`, and do not begin with `{Self}`",
    label = "expected the beginning of a key of type `{K}`",
    note = "a prefix of a composite is a tuple of its first components, such as `Prefix((7,))`; a prefix of a `Text<N>` is a `&str`, \
            one of `Bytes<N>` a `&[u8]`"
)]
pub trait KeyPrefix<K: Key> {
    /// Returns the range of all keys that begin with this prefix.
    #[doc(hidden)]
    fn word_range(&self) -> WordRange;
}

impl<K: Key, P: KeyPrefix<K>> KeyRange<K> for Prefix<P> {
    fn word_range(&self) -> WordRange {
        self.0.word_range()
    }
}

/// The range of all keys that begin with some components, given one after another.
#[doc(hidden)]
#[derive(Debug)]
pub struct Beginning {
    range: WordRange,
    /// The number of words of the components.
    words: usize,
    /// Whether a row can have these components.
    is_possible: bool,
}

impl Beginning {
    /// Returns the range of all keys of `count` words: no component is given yet.
    #[inline]
    pub fn of_words(count: usize) -> Beginning {
        Beginning { range: WordRange::beginning_with(&[], count), words: 0, is_possible: true }
    }

    /// Adds a component of type `K`.
    #[inline]
    pub fn and<K: Key, G: AsKey<K>>(mut self, component: G) -> Beginning {
        let Some(component) = component.into_key() else {
            return Beginning { is_possible: false, ..self };
        };
        let words = component.borrow().words();
        let words = words.as_ref();
        for edge in [&mut self.range.lower, &mut self.range.upper] {
            edge.words_mut()[self.words..][..words.len()].copy_from_slice(words);
        }
        self.words += K::WORDS;
        self
    }

    /// Adds a component that lies in a range of keys of its type.
    pub(super) fn and_range(mut self, component: &WordRange) -> Beginning {
        let edges =
            [(&mut self.range.lower, &component.lower), (&mut self.range.upper, &component.upper)];
        for (edge, its) in edges {
            edge.words_mut()[self.words..][..its.count].copy_from_slice(its.words());
        }
        self.words += component.lower.count;
        self.is_possible &= !component.is_empty();
        self
    }

    /// Returns the range.
    #[inline]
    pub fn range(self) -> WordRange {
        if self.is_possible { self.range } else { WordRange::nothing(self.range.lower.count) }
    }
}

// A blanket implementation over `RangeBounds` would exclude `Prefix`.
macro_rules! standard_ranges {
    ($($range:ty),*) => {$(
        impl<K: Key> KeyRange<K> for $range {
            fn word_range(&self) -> WordRange {
                WordRange::between(self.start_bound(), self.end_bound())
            }
        }
    )*};
}

standard_ranges!(
    Range<K>,
    RangeInclusive<K>,
    RangeFrom<K>,
    RangeTo<K>,
    RangeToInclusive<K>,
    (Bound<K>, Bound<K>)
);

macro_rules! text_ranges {
    ($($range:ty),*) => {$(
        #[diagnostic::do_not_recommend]
        impl<const N: usize> KeyRange<Text<N>> for $range {
            fn word_range(&self) -> WordRange {
                range_of_limited::<N>(in_bytes(self.start_bound()), in_bytes(self.end_bound()))
            }
        }
    )*};
}

text_ranges!(
    Range<&str>,
    RangeInclusive<&str>,
    RangeFrom<&str>,
    RangeTo<&str>,
    RangeToInclusive<&str>,
    (Bound<&str>, Bound<&str>)
);

fn in_bytes<'a>(bound: Bound<&&'a str>) -> Bound<&'a [u8]> {
    bound.map(|text| text.as_bytes())
}

/// Returns the texts, or bytes, of at most `N` bytes between two bounds of any length.
pub(super) fn range_of_limited<const N: usize>(
    lower: Bound<&[u8]>,
    upper: Bound<&[u8]>,
) -> WordRange {
    WordRange { lower: limited_edge::<N>(lower, true), upper: limited_edge::<N>(upper, false) }
}

/// Returns the number of words of a key that is a text, or bytes, of at most `N` bytes.
const fn limited_words<const N: usize>() -> usize {
    <Text<N> as Key>::WORDS
}

/// Returns the lower, or upper, end of a range of texts or bytes of at most `N` bytes.
fn limited_edge<const N: usize>(bound: Bound<&[u8]>, is_lower: bool) -> Edge {
    let count = limited_words::<N>();
    let (bytes, included) = match bound {
        Bound::Included(bytes) => (bytes, true),
        Bound::Excluded(bytes) => (bytes, false),
        Bound::Unbounded => return Edge::at(&[], count, if is_lower { 0 } else { u64::MAX }, true),
    };
    let mut padded = [0; N];
    if let Some(begin) = padded.get_mut(..bytes.len()) {
        begin.copy_from_slice(bytes);
        let words = words_of_bytes(&padded, Some(bytes.len() as u16));
        return Edge::at(words.as_ref(), count, 0, included);
    }
    // The bound is longer than every key. So it comes directly behind all keys that have its first
    // `N` bytes, with zeros as padding or not, and any length.
    let first = bytes.first_chunk().expect("at most `N` bytes would fit");
    Edge::at(words_of_bytes::<N>(first, None).as_ref(), count, u64::MAX, !is_lower)
}

impl<K: Key> KeyRange<K> for RangeFull {
    fn word_range(&self) -> WordRange {
        WordRange::between::<K>(Bound::Unbounded, Bound::Unbounded)
    }
}

/// Returns the keys of bytes or text that begin with `bytes`, and have `count` words.
///
/// `lowest` is the smallest value of the last word of such a key.
fn beginning_with_bytes(bytes: &[u8], capacity: usize, count: usize, lowest: u64) -> WordRange {
    if bytes.len() > capacity {
        // No key has this many bytes. The range returned is empty for every table.
        return WordRange::nothing(count);
    }
    let edge = |filler: u8, rest: u64| {
        let mut padded = [filler; KEY_WORDS_MAX * 8];
        padded[..bytes.len()].copy_from_slice(bytes);
        let words: Vec<u64> =
            padded.chunks_exact(8).take(bytes.len().div_ceil(8)).map(big_endian).collect();
        Edge::at(&words, count, rest, true)
    };
    let mut lower = edge(0, 0);
    if let Some(last) = lower.words_mut().last_mut() {
        *last = lowest.max(*last);
    }
    WordRange { lower, upper: edge(u8::MAX, u64::MAX) }
}

fn big_endian(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes.try_into().expect("chunks of eight"))
}

/// Returns the texts, or bytes, of at most `N` bytes that begin with `bytes`.
pub(super) fn beginning_of_limited<const N: usize>(bytes: &[u8]) -> WordRange {
    // The last word is the length. Without this bound, a shorter key could seem to begin with these
    // bytes, because keys are padded with zeros.
    beginning_with_bytes(bytes, N, limited_words::<N>(), bytes.len() as u64)
}

/// Returns the keys of type `Bytes<N>` that begin with `bytes`.
pub(super) fn beginning_of_bytes<const N: usize>(bytes: &[u8]) -> WordRange {
    beginning_with_bytes(bytes, N, <Bytes<N> as Key>::WORDS, 0)
}

impl<const N: usize> KeyPrefix<Text<N>> for &str {
    fn word_range(&self) -> WordRange {
        beginning_of_limited::<N>(self.as_bytes())
    }
}

impl<const N: usize> KeyPrefix<Bytes<N>> for &[u8] {
    fn word_range(&self) -> WordRange {
        beginning_of_bytes::<N>(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds<K: Key>(range: impl KeyRange<K>, key: K) -> bool {
        range.word_range().contains(key.words().as_ref())
    }

    #[test]
    fn a_text_prefix_may_end_at_any_byte() {
        let text = |text: &str| Text::<16>::new(text).expect("it fits");
        let texts =
            ["", "\0", "abcdefg", "abcdefgh", "abcdefgh\0", "abcdefghi", "abcdefghijklmnop", "ü"];
        for one in texts.map(text) {
            for other in texts {
                // The last but one byte may be within a character.
                for end in (0..=other.len()).filter(|&end| other.is_char_boundary(end)) {
                    let prefix = &other[..end];
                    assert_eq!(holds(Prefix(prefix), one), one.as_str().starts_with(prefix));
                }
            }
        }
        for bytes in [[0u8; 9], [255; 9], *b"abcdefgh\0", *b"abcdefgh\xff"] {
            for other in [[0u8; 9], [255; 9], *b"abcdefgh\0", *b"abcdefgh\xff"] {
                for end in 0..=9 {
                    let prefix = &other[..end];
                    assert_eq!(holds(Prefix(prefix), Bytes::new(bytes)), bytes.starts_with(prefix));
                }
            }
        }
    }

    #[test]
    fn a_prefix_longer_than_a_text_does_not_match() {
        let text = |text: &str| Text::<12>::new(text).expect("it is short");
        for (prefix, is_longer) in [("x\0", "x"), ("\0", ""), ("abcdefgh\0", "abcdefgh")] {
            assert!(!holds(Prefix(prefix), text(is_longer)), "{prefix:?}");
            assert!(
                holds(Prefix(prefix), text(prefix))
                    && holds(Prefix(prefix), text(&format!("{prefix}\0")))
            );
            assert!(
                holds(Prefix(prefix), text(&format!("{prefix}a")))
                    && holds(Prefix(is_longer), text(prefix))
            );
        }
        assert!(
            holds(Prefix(""), text("")) && holds(Prefix(&b"x\0"[..]), Bytes::<4>::new(*b"x\0\0\0"))
        );
    }

    #[test]
    fn ranges_of_texts_have_the_order_of_the_texts() {
        let texts = ["", "a", "a\0", "ab", "ab\0", "abc", "abd", "b", "ä"];
        let bounds = ["", "\0", "a", "ab", "ab\0\0", "abc", "abca", "abcdefghijklm", "b", "äöü"];
        let edges = |text| [Bound::Included(text), Bound::Excluded(text), Bound::Unbounded];
        for (lower, upper) in bounds.iter().flat_map(|&a| bounds.iter().map(move |&b| (a, b))) {
            for (lower, upper) in edges(lower).iter().flat_map(|&a| edges(upper).map(|b| (a, b))) {
                for text in texts {
                    let key = Text::<3>::new(text).expect("it is short");
                    let is_in_range = RangeBounds::<&str>::contains(&(lower, upper), &text);
                    assert_eq!(
                        holds((lower, upper), key),
                        is_in_range,
                        "{text:?} {lower:?} {upper:?}"
                    );
                }
            }
        }
        let text = Text::<3>::new("abc").expect("it is short");
        assert!(holds("a".."b", text) && holds("abc"..="abc", text) && holds("abb".., text));
        assert!(!holds(.."abc", text) && holds(..="abc", text));
    }

    #[test]
    fn ranges_contain_exactly_the_keys_between_their_bounds() {
        assert!(holds(3u64..5, 3) && holds(3u64..5, 4) && !holds(3u64..5, 5) && !holds(3u64..5, 2));
        assert!(holds(-3i32..=5, 5) && holds(-3i32..=5, -3) && !holds(-3i32..=5, -4));
        assert!(
            holds(.., u64::MAX)
                && holds(7u64.., u64::MAX)
                && !holds(..7u64, 7)
                && holds(..=7u64, 7)
        );
        let after = (Bound::Excluded(7u8), Bound::Unbounded);
        assert!(!holds(after, 7) && holds(after, 8));
        let crossed = (Bound::Included(6u64), Bound::Included(5));
        assert!((5u64..5).word_range().is_empty() && crossed.word_range().is_empty());
        assert!(!(5u64..=5).word_range().is_empty());
    }

    #[test]
    fn prefixes_contain_all_keys_that_begin_with_them() {
        assert!(
            holds(Prefix((1u32, 2u8)), (1u32, 2u8, u64::MAX))
                && holds(Prefix((1u32, 2u8)), (1u32, 2u8, 0u64))
        );
        assert!(!holds(Prefix((1u32, 2u8)), (1u32, 3u8, 0u64)));
        let text = |text| Text::<12>::new(text).unwrap();
        assert!(holds(Prefix("smi"), text("smi")) && holds(Prefix("smi"), text("smithsonian")));
        assert!(!holds(Prefix("smi"), text("sm")) && !holds(Prefix("smi"), text("smj")));
        assert!(holds(Prefix("smithsonian"), text("smithsonians")) && holds(Prefix(""), text("")));
        assert!(
            Prefix("thirteen bytes").0.len() > 12
                && KeyRange::<Text<12>>::word_range(&Prefix("thirteen bytes")).is_empty()
        );
        assert!(
            holds(Prefix(&b"ab"[..]), Bytes::new(*b"abc"))
                && !holds(Prefix(&b"ab"[..]), Bytes::new(*b"acb"))
        );
    }
}
