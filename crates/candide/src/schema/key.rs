//! The encoding of keys as words, which is injective and keeps the order.

#![forbid(unsafe_code)]

use super::field::{Bytes, Field, Text};
use super::field_type::FieldType;
use super::hash::{HASH_SEED, hash_numbers, mix};
use super::key_joint::{Before, ZeroWords};
use super::key_text::{MORE, Shown, show_bytes, show_components};
use super::key_words::{KEY_WORDS_MAX, KeyWords};
use super::packing::join;
use std::borrow::Borrow;
use std::fmt::{self, Debug, Formatter};

/// A type that a primary key, or the key of a secondary index, can have.
///
/// A key is encoded as a fixed number of words. Comparing keys word by word gives the order of the
/// keys. Each component of a composite key begins a word of its own. `#[derive(Key)]` implements
/// this trait for enums without fields, and for structs, whose components may have any number of
/// words; a hand-written implementation comes with one of [`AsKey<Self>`](AsKey), with `Given =
/// Self`.
#[diagnostic::on_unimplemented(
    message = "the trait `Key` is not implemented for `{Self}`: a key cannot have this type",
    label = "not a type for keys",
    note = "keys have the integers, `f32`, `f64`, `bool`, `char`, `candide::Bytes<N>`, `candide::Text<N>`, times and addresses of the \
            standard library, options and tuples of these, or types that derive `candide::Key`",
    note = "a primary key has a fixed number of words: use `candide::Text<N>` for `String` and `candide::Bytes<N>` for `Vec<u8>`, of up to 248 bytes; \
            an index of a column of type `String` or `Vec<u8>` keeps so many bytes of it: `#[index(bytes = 64)]`",
    note = "for a type of another crate use a struct of one field, such as an integer or bytes, that derives `candide::Key`; features of `candide` have \
            the types of `uuid`, `jiff`, `chrono` and `rust_decimal`"
)]
pub trait Key: AsKey<Self> + Copy + Send + Sync + 'static {
    /// The key as words.
    type Words: AsRef<[u64]> + Copy;
    /// The number of words.
    const WORDS: usize = Self::WIDTHS.len();
    /// The number of bits used in each word, at most 64. The other bits are zero. A table that
    /// packs components of its keys into common words packs only the used bits.
    const WIDTHS: &'static [u32];

    /// A number that differs between types whose keys lie in words differently, even if the widths
    /// are the same. The number is a part of [`RowMeta::SCHEMA`](crate::schema::RowMeta::SCHEMA).
    #[doc(hidden)]
    const KEY_LAYOUT: u64 = layout_of_widths(Self::WIDTHS);

    /// The description of the type, as a part of a key.
    #[doc(hidden)]
    const KEY_TYPE: &'static FieldType =
        &FieldType::Opaque { bits: 0, key_words: Self::WORDS, layout: Self::KEY_LAYOUT };

    /// Returns the key as words.
    fn words(&self) -> Self::Words;

    /// Returns the key that is encoded as `words`.
    fn from_words(words: &[u64]) -> Self;

    /// Writes the key that is encoded as `words`, as reports show it. The default implementation
    /// writes the words. Derived implementations, and those of this crate, write the value. The
    /// last words of the key may be missing from `words`, since a
    /// [`Conflict`](crate::report::Conflict) contains only the first words of a long key.
    ///
    /// # Errors
    /// The errors of the formatter.
    fn show(words: &[u64], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show_words::<Self>(words, f)
    }
}

/// The argument of a lookup for a key of type `K`: the key itself or a reference to it.
///
/// A key of type [`Text`] is also given as `&str` or `String`, and a key of type [`Bytes`] as an
/// array or a slice of `u8`. So are the components of a tuple: `(7, "Porto")`. An option of a text
/// is also given as `Option<&str>`. No row can have a text that is longer than the key's type
/// allows, or a slice of another length than the key's. A lookup of such a key finds no row, and
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
///     assert_eq!(cities.get(tx, &porto.name, Whole)?, Some(porto));
///     assert!(!cities.contains(tx, "Llanfairpwllgwyngyll")?, "20 bytes do not fit into 16");
///     Ok(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A type of the program's own can be given as a key, too:
///
/// ```
/// use candide::schema::AsKey;
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
pub trait AsKey<K> {
    /// `K`, or a reference to it.
    type Given: Borrow<K>;

    /// Returns the key; `None` if no row can have this key.
    fn into_key(self) -> Option<Self::Given>;
}

impl<'a> Shown<'a> {
    /// Returns the key that is encoded as `words`, to be shown by its type.
    pub(crate) fn of<K: Key>(words: &'a K::Words) -> Shown<'a> {
        Shown { words: words.as_ref(), show: K::show }
    }
}

const fn layout_of_widths(widths: &[u32]) -> u64 {
    let (mut hash, mut index) = (HASH_SEED, 0);
    while index < widths.len() {
        hash = mix(hash, widths[index] as u64);
        index += 1;
    }
    hash
}

/// Writes the words of a key whose type does not implement [`Key::show`].
fn show_words<K: Key>(words: &[u64], f: &mut Formatter<'_>) -> fmt::Result {
    let mut list = f.debug_list();
    list.entries(words.iter().take(K::WORDS));
    if words.len() < K::WORDS { list.finish_non_exhaustive() } else { list.finish() }
}

/// Writes the value of a key as `Debug` does.
fn show_value<K: Key + Debug>(words: &[u64], f: &mut Formatter<'_>) -> fmt::Result {
    if words.len() < K::WORDS { f.write_str(MORE) } else { K::from_words(words).fmt(f) }
}

/// Writes a key that is an option.
fn show_option<K: Key>(words: &[u64], f: &mut Formatter<'_>) -> fmt::Result {
    match words.split_first() {
        None => f.write_str(MORE),
        Some((0, _)) => f.write_str("None"),
        Some((_, value)) => show_components("Some", &[(K::WORDS, K::show)], value, f),
    }
}

macro_rules! integer_keys {
    ($($int:ident as $unsigned:ident ^ $sign:literal;)*) => {$(
        impl Key for $int {
            type Words = [u64; 1];
            const WIDTHS: &'static [u32] = &[$unsigned::BITS];
            const KEY_TYPE: &'static FieldType = <$int as Field>::TYPE;

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn words(&self) -> [u64; 1] {
                // Flipping the sign bit puts negative numbers before the others.
                [(*self as $unsigned ^ $sign) as u64]
            }

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn from_words(words: &[u64]) -> $int {
                (words[0] as $unsigned ^ $sign) as $int
            }

            fn show(words: &[u64], f: &mut fmt::Formatter<'_>) -> fmt::Result {
                show_value::<Self>(words, f)
            }
        }
    )*};
}

integer_keys! {
    u8 as u8 ^ 0;
    u16 as u16 ^ 0;
    u32 as u32 ^ 0;
    u64 as u64 ^ 0;
    usize as u64 ^ 0;
    i8 as u8 ^ 0x80;
    i16 as u16 ^ 0x8000;
    i32 as u32 ^ 0x8000_0000;
    i64 as u64 ^ 0x8000_0000_0000_0000;
    isize as u64 ^ 0x8000_0000_0000_0000;
}

macro_rules! wide_integer_keys {
    ($($int:ident ^ $sign:literal;)*) => {$(
        impl Key for $int {
            type Words = [u64; 2];
            const WIDTHS: &'static [u32] = &[64, 64];
            const KEY_TYPE: &'static FieldType = <$int as Field>::TYPE;

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn words(&self) -> [u64; 2] {
                let number = *self as u128;
                [(number >> 64) as u64 ^ $sign, number as u64]
            }

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn from_words(words: &[u64]) -> $int {
                (u128::from(words[0] ^ $sign) << 64 | u128::from(words[1])) as $int
            }

            fn show(words: &[u64], f: &mut fmt::Formatter<'_>) -> fmt::Result {
                show_value::<Self>(words, f)
            }
        }
    )*};
}

wide_integer_keys! {
    u128 ^ 0;
    i128 ^ 0x8000_0000_0000_0000;
}

impl Key for bool {
    type Words = [u64; 1];
    const WIDTHS: &'static [u32] = &[1];
    const KEY_TYPE: &'static FieldType = <bool as Field>::TYPE;

    fn words(&self) -> [u64; 1] {
        [u64::from(*self)]
    }

    fn from_words(words: &[u64]) -> bool {
        words[0] != 0
    }

    fn show(words: &[u64], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show_value::<Self>(words, f)
    }
}

impl Key for char {
    type Words = [u64; 1];
    const WIDTHS: &'static [u32] = &[21];
    const KEY_TYPE: &'static FieldType = <char as Field>::TYPE;

    fn words(&self) -> [u64; 1] {
        [u64::from(*self)]
    }

    fn from_words(words: &[u64]) -> char {
        char::from_u32(words[0] as u32).expect("made of a char")
    }

    fn show(words: &[u64], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show_value::<Self>(words, f)
    }
}

/// The widths of the words of two keys, one behind the other.
struct Widths<A, B>(A, B);

impl<A: Key, B: Key> Widths<A, B> {
    const ALL: &'static [u32; KEY_WORDS_MAX] = &{
        assert!(A::WORDS + B::WORDS <= KEY_WORDS_MAX, "a key has at most 32 words");
        join(0, [A::WIDTHS, B::WIDTHS])
    };
}

/// Returns the widths of the words of two keys, one behind the other.
pub(super) const fn joined_widths<A: Key, B: Key>() -> &'static [u32] {
    Widths::<A, B>::ALL.split_at(A::WORDS + B::WORDS).0
}

/// `None` comes before all values. The first word is 1 if there is a value.
impl<K: Key> Key for Option<K>
where
    [u64; 1]: Before<K::Words>,
{
    type Words = <[u64; 1] as Before<K::Words>>::Both;
    const WIDTHS: &'static [u32] = joined_widths::<bool, K>();
    const KEY_LAYOUT: u64 = hash_numbers(&[bool::KEY_LAYOUT, K::KEY_LAYOUT]);
    const KEY_TYPE: &'static FieldType = &FieldType::Optional(K::KEY_TYPE);

    fn words(&self) -> Self::Words {
        match self {
            Some(key) => [1].before(key.words()),
            None => Self::Words::zeros(Self::WORDS),
        }
    }

    fn from_words(words: &[u64]) -> Option<K> {
        (words[0] != 0).then(|| K::from_words(&words[1..]))
    }

    fn show(words: &[u64], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show_option::<K>(words, f)
    }
}

/// The widths of as many words as a key can have.
pub(super) const WHOLE_WORDS: &[u32] = &[u64::BITS; KEY_WORDS_MAX];

/// Returns the number of words that `bytes` bytes take in a key. A text takes one more, for its
/// length.
pub(super) const fn byte_words(bytes: usize) -> usize {
    assert!(bytes <= (KEY_WORDS_MAX - 1) * 8, "a key of bytes or text has at most 248 bytes");
    bytes.div_ceil(8)
}

/// Returns the words of bytes, or of a padded text of this length.
pub(super) fn words_of_bytes<const N: usize>(bytes: &[u8; N], length: Option<u16>) -> KeyWords {
    let count = const { byte_words(N) };
    let mut words = KeyWords::zeros(count + usize::from(length.is_some()));
    let value = Bytes::new(*bytes);
    for (index, word) in words.as_mut_slice().iter_mut().enumerate().take(count) {
        // Big-endian, so that comparing words compares bytes.
        *word = value.word(index).swap_bytes();
    }
    if let Some(length) = length {
        // The length follows the padding: "x" and "x\0" have the same padded bytes but different
        // lengths.
        words.as_mut_slice()[count] = length.into();
    }
    words
}

pub(super) fn bytes_of_words<const N: usize>(words: &[u64]) -> [u8; N] {
    let mut bytes = [0; N];
    for (bytes, word) in bytes.chunks_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_be_bytes()[..bytes.len()]);
    }
    bytes
}

/// Writes a key of at most `N` bytes, as a text or as bytes.
pub(super) fn show_padded<const N: usize>(
    words: &[u64],
    text: bool,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let count = const { byte_words(N) };
    let length = words.get(count);
    show_bytes(&words[..words.len().min(count)], length.map(|&length| length as usize), text, f)
}

impl<const N: usize> Key for Bytes<N> {
    type Words = KeyWords;
    const WIDTHS: &'static [u32] = WHOLE_WORDS.split_at(byte_words(N)).0;
    const KEY_LAYOUT: u64 = <Bytes<N> as Field>::LAYOUT;
    const KEY_TYPE: &'static FieldType = <Bytes<N> as Field>::TYPE;

    fn words(&self) -> KeyWords {
        words_of_bytes(self.as_bytes(), None)
    }

    fn from_words(words: &[u64]) -> Bytes<N> {
        Bytes::new(bytes_of_words(words))
    }

    fn show(words: &[u64], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = const { byte_words(N) };
        let is_whole = words.len() >= count;
        show_bytes(&words[..words.len().min(count)], is_whole.then_some(N), false, f)
    }
}

impl<const N: usize> Key for Text<N> {
    type Words = KeyWords;
    const WIDTHS: &'static [u32] = WHOLE_WORDS.split_at(byte_words(N) + 1).0;
    const KEY_LAYOUT: u64 = <Text<N> as Field>::LAYOUT;
    const KEY_TYPE: &'static FieldType = <Text<N> as Field>::TYPE;

    fn words(&self) -> KeyWords {
        words_of_bytes(self.padded(), Some(self.length()))
    }

    fn from_words(words: &[u64]) -> Text<N> {
        Text::from_parts(bytes_of_words(words), words[<Self as Key>::WORDS - 1] as u16)
    }

    fn show(words: &[u64], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show_padded::<N>(words, true, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keeps_order<K: Key + PartialOrd + std::fmt::Debug>(keys: &[K]) {
        for a in keys {
            assert_eq!(
                K::from_words(a.words().as_ref()).partial_cmp(a),
                Some(std::cmp::Ordering::Equal)
            );
            assert_eq!(a.words().as_ref().len(), K::WORDS);
            for b in keys {
                assert_eq!(
                    a.words().as_ref().cmp(b.words().as_ref()),
                    a.partial_cmp(b).unwrap(),
                    "{a:?} {b:?}"
                );
            }
        }
    }

    #[test]
    fn encoded_words_have_the_order_of_their_keys() {
        keeps_order(&[u64::MAX, 0, 1, 1 << 63]);
        keeps_order(&[i64::MIN, -1, 0, 1, i64::MAX]);
        keeps_order(&[-128i8, -1, 0, 127]);
        keeps_order(&[isize::MIN, -1, 0, isize::MAX]);
        keeps_order(&[0, 1, usize::MAX]);
        keeps_order(&[0, 1, u128::from(u64::MAX), u128::from(u64::MAX) + 1, u128::MAX]);
        keeps_order(&[
            i128::MIN,
            i128::from(i64::MIN) - 1,
            -1,
            0,
            i128::from(u64::MAX) + 1,
            i128::MAX,
        ]);
        keeps_order(&['\0', 'a', 'ä', '\u{d7ff}', '\u{e000}', char::MAX]);
        keeps_order(&[false, true]);
        keeps_order(&[None, Some(i64::MIN), Some(-1), Some(0), Some(i64::MAX)]);
        keeps_order(&[None, Some(false), Some(true)]);
        keeps_order(&[(1u32, -1i64), (1, 0), (0, 5), (2, -7)]);
        keeps_order(
            &["", "x", "x\0", "x\0\0", "xy", "abcdefgh", "abcdefghi"]
                .map(|t| Text::<9>::new(t).unwrap()),
        );
        keeps_order(&[*b"abcdefghi", *b"abcdefghj", *b"\0bcdefghj"].map(Bytes::<9>::new));
    }
}
