//! The types that a column can have.

#![forbid(unsafe_code)]

use super::field_type::FieldType;
use super::hash::hash_numbers;
use crate::error::{Abort, Error};
use std::fmt;

/// Words copied from a record, from which a value is made. A buffer may contain anything, even
/// words of different versions. A value is made only after the protocol has found that the words
/// belong together.
pub trait Buffer: Copy {
    /// A buffer of zeros.
    const ZERO: Self;

    /// Stores word `index`, one of the words of the buffer's type. May panic at another `index`.
    fn set(&mut self, index: usize, word: u64);

    /// Returns the buffer as words; an empty slice if the buffer does not consist of words.
    fn words(&mut self) -> &mut [u64] {
        &mut []
    }

    /// Returns whether the buffer is an array of words. Only this crate can say so of a type, since
    /// other crates cannot name the type of the argument.
    #[doc(hidden)]
    fn is_plain(_: Private) -> bool {
        false
    }
}

/// An argument of functions that other crates can neither call nor implement.
#[derive(Debug)]
pub struct Private;

impl<const N: usize> Buffer for [u64; N] {
    const ZERO: Self = [0; N];

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn set(&mut self, index: usize, word: u64) {
        self[index] = word;
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn words(&mut self) -> &mut [u64] {
        self
    }

    fn is_plain(_: Private) -> bool {
        true
    }
}

/// A type that a column can have: plain data of a fixed size. Columns can also be `String`,
/// `Vec<u8>`, `Option<String>` and `Option<Vec<u8>>`, which have any length.
///
/// A field of a word or more begins at the first bit of a word. A smaller field lies within one
/// word, at the place of its column.
///
/// | type | bits | |
/// |---|---:|---|
/// | `bool`, integers, `f32`, `f64` | their own | `usize` and `isize` have 64 |
/// | `char` | 21 | |
/// | [`Bytes<N>`](Bytes) | whole words | |
/// | [`Text<N>`](Text) | whole words | one of them for the length |
/// | an enum that derives `Key` | as few as its variants need | |
/// | a struct of one field that derives `Key` | as many as its field has | |
/// | a struct that derives [`Field`](macro@crate::Field) | the sum of its parts | in whole words if that exceeds one |
/// | an enum with data that derives it | its tag and its largest variant | likewise |
/// | `Duration`, `SystemTime` | 128 | seconds and nanoseconds |
/// | `Ipv4Addr`, `Ipv6Addr` | 32, 128 | |
/// | `Option<T>` | one bit more than `T`, or one word more if `T` has 64 bits or more | |
/// | `[T; N]` | whole words | as many elements in a word as fit; see [`Column::at`](super::column::Column::at) |
#[diagnostic::on_unimplemented(
    message = "the trait `Field` is not implemented for `{Self}`: a column cannot have this type",
    label = "not a type for columns",
    note = "columns have the integers, `f32`, `f64`, `bool`, `char`, `candide::Bytes<N>`, `candide::Text<N>`, times and addresses of \
            the standard library, types that derive `candide::Key` or `candide::Field`, and options and arrays of these; also `String` \
            and `Vec<u8>`, and options of them, but not within another type",
    note = "for a struct or enum of your own use `#[derive(candide::Field)]`, and for a type of another crate a struct of one field, such as \
            an integer or bytes, that derives `candide::Key`, or `#[record(with = ..)]` and a `candide::Codec`; features of `candide` have \
            the types of `uuid`, `jiff`, `chrono` and `rust_decimal`"
)]
pub trait Field: Copy + Send + Sync + 'static {
    /// The size in bits. A field of fewer than 64 bits can share its word with other fields.
    const BITS: u32;
    /// The size in words.
    const WORDS: usize = Self::BITS.div_ceil(64) as usize;
    /// Whether the type is a number type with negative values.
    const SIGNED: bool = false;
    /// A number that differs between types with different layouts in words, even if they have the
    /// same number of bits. The number is a part of
    /// [`RowMeta::SCHEMA`](super::record::RowMeta::SCHEMA).
    #[doc(hidden)]
    const LAYOUT: u64 = Self::BITS as u64;
    /// The description of the type, which files and messages have.
    const TYPE: &'static FieldType =
        &FieldType::Opaque { bits: Self::BITS, key_words: 0, layout: Self::LAYOUT };
    /// The buffer for the field's words until they are known to be of one version.
    type Buffer: Buffer;

    /// Returns word `index` of the value; bits beyond [`Field::BITS`] are zero.
    fn word(&self, index: usize) -> u64;

    /// Returns the value whose words the buffer holds.
    fn from_buffer(buffer: &Self::Buffer) -> Self;
}

macro_rules! integer_fields {
    ($($int:ident as $unsigned:ident, $bits:literal, $signed:literal;)*) => {$(
        impl Field for $int {
            const BITS: u32 = $bits;
            const SIGNED: bool = $signed;
            const TYPE: &'static FieldType = match $signed {
                true => &FieldType::Signed { bits: $bits },
                false => &FieldType::Unsigned { bits: $bits },
            };
            type Buffer = [u64; 1];

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn word(&self, _index: usize) -> u64 {
                *self as $unsigned as u64
            }

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn from_buffer(buffer: &[u64; 1]) -> $int {
                buffer[0] as $int
            }
        }

    )*};
}

// This is a macro, because the ten types differ only in name, and a trait cannot abstract over
// `as`.
integer_fields! {
    u8 as u8, 8, false;
    u16 as u16, 16, false;
    u32 as u32, 32, false;
    u64 as u64, 64, false;
    usize as u64, 64, false;
    i8 as u8, 8, true;
    i16 as u16, 16, true;
    i32 as u32, 32, true;
    i64 as u64, 64, true;
    isize as u64, 64, true;
}

macro_rules! wide_integer_fields {
    ($($int:ident: $ty:ident, $signed:literal;)*) => {$(
        /// Two words, the low one first. Not a [`Number`](super::Number), which has one word.
        impl Field for $int {
            const BITS: u32 = 128;
            const SIGNED: bool = $signed;
            const TYPE: &'static FieldType = &FieldType::$ty { bits: 128 };
            type Buffer = [u64; 2];

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn word(&self, index: usize) -> u64 {
                (*self >> (index * 64)) as u64
            }

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn from_buffer(buffer: &[u64; 2]) -> $int {
                $int::from(buffer[0]) | $int::from(buffer[1]) << 64
            }
        }
    )*};
}

wide_integer_fields! {
    u128: Unsigned, false;
    i128: Signed, true;
}

impl Field for bool {
    const BITS: u32 = 1;
    const TYPE: &'static FieldType = &FieldType::Bool;
    type Buffer = [u64; 1];

    fn word(&self, _index: usize) -> u64 {
        u64::from(*self)
    }

    fn from_buffer(buffer: &[u64; 1]) -> bool {
        buffer[0] != 0
    }
}

impl Field for f32 {
    const BITS: u32 = 32;
    const TYPE: &'static FieldType = &FieldType::Float { bits: 32 };
    type Buffer = [u64; 1];

    fn word(&self, _index: usize) -> u64 {
        u64::from(self.to_bits())
    }

    fn from_buffer(buffer: &[u64; 1]) -> f32 {
        f32::from_bits(buffer[0] as u32)
    }
}

impl Field for f64 {
    const BITS: u32 = 64;
    const TYPE: &'static FieldType = &FieldType::Float { bits: 64 };
    type Buffer = [u64; 1];

    fn word(&self, _index: usize) -> u64 {
        self.to_bits()
    }

    fn from_buffer(buffer: &[u64; 1]) -> f64 {
        f64::from_bits(buffer[0])
    }
}

impl Field for char {
    const BITS: u32 = 21;
    const TYPE: &'static FieldType = &FieldType::Char;
    type Buffer = [u64; 1];

    fn word(&self, _index: usize) -> u64 {
        u64::from(*self)
    }

    fn from_buffer(buffer: &[u64; 1]) -> char {
        char::from_u32(buffer[0] as u32).expect("made of a char, read back whole")
    }
}

/// Returns a mask of the lowest bits of a word: the bits of a field that is smaller than a word.
pub(crate) const fn mask_of<T: Field>() -> u64 {
    if T::BITS < 64 { (1 << T::BITS) - 1 } else { u64::MAX }
}

/// The buffer of an option. A value is made from `value` only if the option is present.
#[derive(Clone, Copy)]
pub struct OptionBuffer<T: Field> {
    present: bool,
    value: T::Buffer,
}

impl<T: Field> Buffer for OptionBuffer<T> {
    const ZERO: Self = OptionBuffer { present: false, value: T::Buffer::ZERO };

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn set(&mut self, index: usize, word: u64) {
        if index == 0 {
            self.present = word & 1 != 0;
        }
        if T::BITS < 64 {
            self.value.set(index, word >> 1);
        } else if index > 0 {
            self.value.set(index - 1, word);
        }
    }
}

/// A value of less than a word is shifted up by one bit, and the lowest bit is set if there is a
/// value. A larger value follows a separate word that is 1 if there is a value. All bits of `None`
/// are zero.
impl<T: Field> Field for Option<T> {
    const BITS: u32 = if T::BITS < 64 { T::BITS + 1 } else { (T::WORDS as u32 + 1) * 64 };
    const LAYOUT: u64 = hash_numbers(&[Self::BITS as u64, T::LAYOUT]);
    const TYPE: &'static FieldType = &FieldType::Optional(T::TYPE);
    type Buffer = OptionBuffer<T>;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn word(&self, index: usize) -> u64 {
        match self {
            None => 0,
            Some(value) if T::BITS < 64 => value.word(0) << 1 | 1,
            Some(_) if index == 0 => 1,
            Some(value) => value.word(index - 1),
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn from_buffer(buffer: &OptionBuffer<T>) -> Option<T> {
        buffer.present.then(|| T::from_buffer(&buffer.value))
    }
}

/// Returns the number of elements of an array that share a word.
const fn elements_per_word<T: Field>() -> usize {
    if T::BITS < 64 { 64 / T::BITS as usize } else { 1 }
}

/// Returns the word of an array where an element begins, and the bit in it.
pub(crate) const fn place_of_element<T: Field>(index: usize) -> (usize, u32) {
    let per_word = elements_per_word::<T>();
    if T::BITS < 64 {
        (index / per_word, (index % per_word) as u32 * T::BITS)
    } else {
        (index * T::WORDS, 0)
    }
}

/// The buffer of an array: the buffers of its elements.
#[derive(Clone, Copy)]
pub struct ArrayBuffer<T: Field, const N: usize>([T::Buffer; N]);

impl<T: Field, const N: usize> Buffer for ArrayBuffer<T, N> {
    const ZERO: Self = ArrayBuffer([T::Buffer::ZERO; N]);

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn set(&mut self, index: usize, word: u64) {
        if T::BITS < 64 {
            let per_word = elements_per_word::<T>();
            for (place, element) in
                self.0.iter_mut().skip(index * per_word).take(per_word).enumerate()
            {
                element.set(0, word >> (place as u32 * T::BITS) & mask_of::<T>());
            }
        } else if let Some(element) = self.0.get_mut(index / T::WORDS) {
            element.set(index % T::WORDS, word);
        }
    }
}

/// Elements smaller than a word are packed, as many into a word as fit; no element straddles two
/// words. Larger elements are stored one after another. An array begins on a word boundary and
/// takes at least one word, even if it has no elements.
impl<T: Field, const N: usize> Field for [T; N] {
    const BITS: u32 = match place_of_element::<T>(N) {
        (0, 0) => 64,
        (words, 0) => words as u32 * 64,
        (words, _) => (words as u32 + 1) * 64,
    };
    const LAYOUT: u64 = hash_numbers(&[Self::BITS as u64, N as u64, T::LAYOUT]);
    const TYPE: &'static FieldType = &FieldType::Array(T::TYPE, N);
    type Buffer = ArrayBuffer<T, N>;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn word(&self, index: usize) -> u64 {
        if T::BITS < 64 {
            let per_word = elements_per_word::<T>();
            let elements = self.iter().skip(index * per_word).take(per_word);
            elements.enumerate().fold(0, |word, (place, element)| {
                word | element.word(0) << (place as u32 * T::BITS)
            })
        } else {
            self.get(index / T::WORDS).map_or(0, |element| element.word(index % T::WORDS))
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn from_buffer(buffer: &ArrayBuffer<T, N>) -> [T; N] {
        std::array::from_fn(|index| T::from_buffer(&buffer.0[index]))
    }
}

/// `N` bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes<const N: usize>([u8; N]);

impl<const N: usize> Bytes<N> {
    /// Returns `bytes` as a value of this type.
    pub const fn new(bytes: [u8; N]) -> Bytes<N> {
        Bytes(bytes)
    }

    /// Returns `bytes`, followed by zeros; `None` if there are more than `N` bytes.
    ///
    /// ```
    /// # use candide::Bytes;
    /// assert_eq!(Bytes::<4>::padded(b"ab"), Some(Bytes::new(*b"ab\0\0")));
    /// assert_eq!(Bytes::<4>::padded(b"abcde"), None);
    /// ```
    pub fn padded(bytes: &[u8]) -> Option<Bytes<N>> {
        let mut padded = Bytes::default();
        padded.0.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(padded)
    }

    /// Returns the bytes `f(0)`, `f(1)`, …
    pub fn from_fn(f: impl FnMut(usize) -> u8) -> Bytes<N> {
        Bytes(std::array::from_fn(f))
    }

    /// Returns the bytes.
    pub const fn as_bytes(&self) -> &[u8; N] {
        &self.0
    }
}

/// `N` zeros.
impl<const N: usize> Default for Bytes<N> {
    fn default() -> Bytes<N> {
        Bytes([0; N])
    }
}

impl<const N: usize> From<[u8; N]> for Bytes<N> {
    fn from(bytes: [u8; N]) -> Bytes<N> {
        Bytes(bytes)
    }
}

impl<const N: usize> AsRef<[u8]> for Bytes<N> {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl<const N: usize> fmt::Debug for Bytes<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

/// Copies word `index` into its place among `bytes`, as far as it fits.
#[cfg_attr(not(debug_assertions), inline(always))]
fn put_bytes(bytes: &mut [u8], index: usize, word: u64) {
    if let Some(rest) = bytes.get_mut(index * 8..) {
        let word = word.to_le_bytes();
        match rest.first_chunk_mut::<8>() {
            Some(whole) => *whole = word,
            None => rest.copy_from_slice(&word[..rest.len()]),
        }
    }
}

/// Returns word `index` of `bytes`, with zeros beyond their end.
#[cfg_attr(not(debug_assertions), inline(always))]
fn take_bytes(bytes: &[u8], index: usize) -> u64 {
    let rest = bytes.get(index * 8..).unwrap_or(&[]);
    match rest.first_chunk::<8>() {
        Some(whole) => u64::from_le_bytes(*whole),
        None => {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            u64::from_le_bytes(word)
        }
    }
}

impl<const N: usize> Buffer for Bytes<N> {
    const ZERO: Self = Bytes([0; N]);

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn set(&mut self, index: usize, word: u64) {
        put_bytes(&mut self.0, index, word);
    }
}

impl<const N: usize> Field for Bytes<N> {
    // Fewer than eight bytes take a whole word, too, so that columns never need to shift bytes.
    const BITS: u32 = if N < 8 { 64 } else { N as u32 * 8 };
    const LAYOUT: u64 = hash_numbers(&[Self::BITS as u64, N as u64]);
    const TYPE: &'static FieldType = &FieldType::FixedBytes { bytes: N };
    type Buffer = Bytes<N>;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn word(&self, index: usize) -> u64 {
        take_bytes(&self.0, index)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn from_buffer(buffer: &Bytes<N>) -> Bytes<N> {
        *buffer
    }
}

/// Text of at most `N` bytes of UTF-8, kept inline. Equal texts have equal bytes; `"x"` and `"x\0"`
/// differ.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Text<const N: usize> {
    bytes: [u8; N],
    length: u16,
}

/// The error for a text that is longer than its type allows. Texts are never truncated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextTooLong {
    /// The length of the text in bytes.
    pub length: usize,
    /// The largest number of bytes that the type can hold.
    pub length_max: usize,
}

impl fmt::Display for TextTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a text of {} bytes does not fit into Text<{}>", self.length, self.length_max)
    }
}

impl std::error::Error for TextTooLong {}

impl From<TextTooLong> for Abort {
    fn from(_: TextTooLong) -> Abort {
        Abort::TextTooLong
    }
}

impl From<TextTooLong> for Error {
    fn from(TextTooLong { length, length_max }: TextTooLong) -> Error {
        Error::TextTooLong { length, length_max }
    }
}

impl<const N: usize> Text<N> {
    /// Returns `text` as a value of this type, if it fits.
    ///
    /// # Errors
    /// [`TextTooLong`] if `text` has more than `N` bytes (or more than 65,535).
    pub fn new(text: &str) -> Result<Text<N>, TextTooLong> {
        let length = u16::try_from(text.len()).ok().filter(|&length| usize::from(length) <= N);
        let length = length.ok_or(TextTooLong { length: text.len(), length_max: N })?;
        let mut bytes = [0; N];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Ok(Text { bytes, length })
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.length)])
            .expect("made of a str, read back whole")
    }

    /// Returns the length of the text in bytes.
    pub fn len(&self) -> usize {
        usize::from(self.length)
    }

    /// Returns whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns the bytes of the text, followed by zeros up to `N` bytes.
    pub(crate) fn padded(&self) -> &[u8; N] {
        &self.bytes
    }

    pub(crate) fn length(&self) -> u16 {
        self.length
    }

    /// Returns the text with these padded bytes and this length, which a key has kept.
    pub(crate) fn from_parts(bytes: [u8; N], length: u16) -> Text<N> {
        Text { bytes, length }
    }
}

/// The empty text.
impl<const N: usize> Default for Text<N> {
    fn default() -> Text<N> {
        Text { bytes: [0; N], length: 0 }
    }
}

impl<const N: usize> AsRef<str> for Text<N> {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl<const N: usize> PartialEq<str> for Text<N> {
    fn eq(&self, other: &str) -> bool {
        self.bytes[..self.len()] == *other.as_bytes()
    }
}

impl<const N: usize> PartialEq<&str> for Text<N> {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

impl<const N: usize> TryFrom<&str> for Text<N> {
    type Error = TextTooLong;

    fn try_from(text: &str) -> Result<Text<N>, TextTooLong> {
        Text::new(text)
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl<const N: usize> fmt::Display for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl<const N: usize> PartialOrd for Text<N> {
    fn partial_cmp(&self, other: &Text<N>) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<const N: usize> Ord for Text<N> {
    fn cmp(&self, other: &Text<N>) -> std::cmp::Ordering {
        self.bytes.cmp(&other.bytes).then(self.length.cmp(&other.length))
    }
}

/// The words of a text: its bytes, then a word for its length.
impl<const N: usize> Buffer for Text<N> {
    const ZERO: Self = Text { bytes: [0; N], length: 0 };

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn set(&mut self, index: usize, word: u64) {
        if index < N.div_ceil(8) {
            put_bytes(&mut self.bytes, index, word);
        } else {
            self.length = word as u16;
        }
    }
}

impl<const N: usize> Field for Text<N> {
    const BITS: u32 = (N.div_ceil(8) as u32 + 1) * 64;
    const LAYOUT: u64 = hash_numbers(&[Self::BITS as u64, N as u64]);
    const TYPE: &'static FieldType = &FieldType::ShortText { bytes: N };
    type Buffer = Text<N>;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn word(&self, index: usize) -> u64 {
        if index < N.div_ceil(8) { take_bytes(&self.bytes, index) } else { u64::from(self.length) }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn from_buffer(buffer: &Text<N>) -> Text<N> {
        *buffer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip<T: Field + PartialEq + fmt::Debug>(value: T) {
        // A buffer may have contained anything before, even torn words of another value.
        let mut buffer = T::Buffer::ZERO;
        for index in 0..T::WORDS {
            buffer.set(index, mask_of::<T>());
        }
        for index in 0..T::WORDS {
            let word = value.word(index);
            assert_eq!(word & !mask_of::<T>(), 0, "bits beyond the field's are zero");
            buffer.set(index, word);
        }
        assert_eq!(T::from_buffer(&buffer), value);
    }

    #[test]
    fn texts_and_bytes_return_their_contents() {
        let text = Text::<5>::new("äbc").unwrap();
        assert_eq!((text.len(), text.is_empty(), text.as_ref()), (4, false, "äbc"));
        assert!(text == "äbc" && text != "äb" && text != "äbc\0");
        assert_eq!(format!("{text:>4}|{text:-<5}|{text:.2}"), " äbc|äbc--|äb");
        assert!(Text::<5>::default().is_empty() && Text::<5>::default() == Text::new("").unwrap());
        assert_eq!(Bytes::<2>::default(), Bytes::from([0, 0]));
        assert_eq!(Bytes::from(*b"ab").as_ref(), b"ab");
    }

    #[test]
    fn values_are_unchanged_by_encoding_in_words() {
        round_trip(i64::MIN);
        round_trip(-1i8);
        round_trip(u32::MAX);
        round_trip(usize::MAX);
        round_trip(isize::MIN);
        round_trip(u128::MAX - 1);
        round_trip(i128::MIN + 1);
        round_trip(true);
        round_trip(-0.5f64);
        round_trip(f32::MIN_POSITIVE);
        round_trip(char::MAX);
        round_trip(Bytes::<100>::from_fn(|i| i as u8));
        round_trip(Bytes::<3>::new(*b"abc"));
        round_trip(Text::<10>::new("0123456789").unwrap());
        round_trip(Text::<9>::new("").unwrap());
    }

    #[test]
    fn options_and_arrays_are_unchanged_by_encoding_in_words() {
        round_trip(None::<bool>);
        round_trip(Some(false));
        round_trip(Some(Some(None::<u16>)));
        round_trip(Some(-1i8));
        round_trip(Some(u64::MAX));
        round_trip(None::<u64>);
        round_trip(Some('\u{10ffff}'));
        round_trip(Some(Text::<9>::new("ninebytes").unwrap()));
        round_trip([1u64, 2, 3]);
        round_trip([true; 65]);
        round_trip(['a', 'b', 'c', 'd']);
        round_trip([Some(-1i32), None, Some(0)]);
        round_trip([[1u8, 2, 3], [4, 5, 6]]);
        round_trip([Some([7u16; 5]), None]);
        round_trip([0u8; 0]);
        round_trip([Text::<3>::new("abc").unwrap(); 2]);
    }

    #[test]
    fn sizes_of_field_types_are_the_documented_ones() {
        assert_eq!((<Option<bool>>::BITS, <Option<u32>>::BITS, <Option<char>>::BITS), (2, 33, 22));
        assert_eq!((<Option<u64>>::BITS, <Option<[u8; 9]>>::BITS), (128, 192));
        assert_eq!((<[bool; 64]>::WORDS, <[bool; 65]>::WORDS, <[u8; 0]>::WORDS), (1, 2, 1));
        // Three characters of 21 bits fill 63; three options of 33 bits have a word each.
        assert_eq!((<[char; 3]>::WORDS, <[char; 4]>::WORDS, <[Option<u32>; 3]>::WORDS), (1, 2, 3));
        assert_eq!((<[u128; 3]>::WORDS, <[Bytes<9>; 2]>::WORDS, <[[u8; 3]; 2]>::WORDS), (6, 4, 2));
    }

    #[test]
    fn text_is_never_truncated_and_zeros_count() {
        assert_eq!(Text::<2>::new("abc"), Err(TextTooLong { length: 3, length_max: 2 }));
        assert_ne!(Text::<2>::new("x"), Text::<2>::new("x\0"));
        assert!(Text::<4>::new("ab").unwrap() < Text::<4>::new("b").unwrap());
        assert_eq!(Text::<4>::new("ab").unwrap().as_str(), "ab");
    }
}
