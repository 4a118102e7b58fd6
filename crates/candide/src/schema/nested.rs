//! Fields that consist of parts: structs, and enums whose variants have data.

#![forbid(unsafe_code)]

use super::column::{Column, ColumnKind, ReadOnly};
use super::field::{Buffer, Field, mask_of};
use super::field_type::FieldType;
use super::key::{AsKey, Key};
use super::packing::Size;
use super::place::Place;
use super::record::Record;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

/// The bits of a word.
const WORD_BITS: u32 = u64::BITS;

/// The places of the parts of a struct, or of a variant behind the tag of its enum.
///
/// If all of them fit into one word, they lie one behind the other. Otherwise those of a word or
/// more come first, in order, behind the word of the tag if there is one; smaller ones follow, each
/// in the first word that has room for it.
#[derive(Debug, Clone, Copy)]
pub struct Parts<const N: usize> {
    /// The bits of the whole.
    pub bits: u32,
    /// The words of the whole.
    pub words: usize,
    places: [(usize, u32); N],
}

impl<const N: usize> Parts<N> {
    /// Places parts of these sizes behind a tag, which has no bits in a struct.
    pub const fn new(tag_bits: u32, sizes: [Size; N]) -> Parts<N> {
        let (mut bits, mut index) = (tag_bits, 0);
        let mut places = [(0, 0); N];
        while index < N && bits <= WORD_BITS {
            places[index] = (0, bits);
            bits += if sizes[index].bits < WORD_BITS { sizes[index].bits } else { WORD_BITS };
            // A part of several words makes the whole one of several words.
            if sizes[index].words > 1 {
                bits = WORD_BITS + 1;
            }
            index += 1;
        }
        if bits <= WORD_BITS {
            assert!(bits > 0, "a field has at least one bit");
            return Parts { bits, words: 1, places };
        }
        Parts::of_words(tag_bits, sizes)
    }

    /// Places parts that do not fit into one word.
    const fn of_words(tag_bits: u32, sizes: [Size; N]) -> Parts<N> {
        let mut places = [(0, 0); N];
        let mut words = if tag_bits > 0 { 1 } else { 0 };
        let mut index = 0;
        while index < N {
            let Size { bits, words: its } = sizes[index];
            assert!(its == bits.div_ceil(64) as usize, "a field has as many words as it needs");
            if bits >= WORD_BITS {
                places[index] = (words, 0);
                words += its;
            }
            index += 1;
        }
        let first = words;
        // The tag's word may have room; further words follow the large parts.
        let (mut in_tag, mut in_word, mut word) =
            (if tag_bits > 0 { tag_bits } else { WORD_BITS }, 0, first);
        index = 0;
        while index < N {
            let bits = sizes[index].bits;
            if bits < WORD_BITS {
                if in_tag + bits <= WORD_BITS {
                    places[index] = (0, in_tag);
                    in_tag += bits;
                } else {
                    if in_word + bits > WORD_BITS {
                        (in_word, word) = (0, word + 1);
                    }
                    places[index] = (word, in_word);
                    in_word += bits;
                    words = word + 1;
                }
            }
            index += 1;
        }
        assert!(words * 64 <= u32::MAX as usize, "a field has fewer than 2^32 bits");
        Parts { bits: words as u32 * WORD_BITS, words, places }
    }

    /// Returns the word and the bit in it where part `number` begins.
    pub const fn at(&self, number: usize) -> (usize, u32) {
        self.places[number]
    }

    /// Returns the bit where part `number` begins, counted from the first one of the whole.
    pub const fn bit(&self, number: usize) -> u32 {
        self.places[number].0 as u32 * WORD_BITS + self.places[number].1
    }
}

/// Returns the largest of the bits of an enum's variants.
pub const fn most_bits(bits: &[u32]) -> u32 {
    let (mut most, mut index) = (0, 0);
    while index < bits.len() {
        if bits[index] > most {
            most = bits[index];
        }
        index += 1;
    }
    most
}

/// Returns what a part at `(word, shift)` has in word `index` of the whole.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn part_word<T: Field>(value: &T, (word, shift): (usize, u32), index: usize) -> u64 {
    if T::BITS < WORD_BITS {
        if word == index { (value.word(0) & mask_of::<T>()) << shift } else { 0 }
    } else if (word..word + T::WORDS).contains(&index) {
        value.word(index - word)
    } else {
        0
    }
}

/// Returns the part at `(word, shift)` of the whole that `words` hold.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn take_part<T: Field>(words: &[u64], (word, shift): (usize, u32)) -> T {
    let mut buffer = T::Buffer::ZERO;
    if T::BITS < WORD_BITS {
        buffer.set(0, words[word] >> shift & mask_of::<T>());
    } else {
        for (index, word) in words[word..][..T::WORDS].iter().enumerate() {
            buffer.set(index, *word);
        }
    }
    T::from_buffer(&buffer)
}

/// Panics because the enum called `name` has no variant with the tag `tag`.
pub fn no_tag(name: &str, tag: u64) -> ! {
    unreachable!("{name} has no variant with tag {tag}; the words of a value were read back whole")
}

/// A part of type `T` of a struct `S` that derives [`Field`](macro@crate::Field):
/// [`Column::part`] makes a column of it.
pub struct Part<S, T> {
    word: u16,
    shift: u8,
    name: &'static str,
    types: PhantomData<fn(S) -> T>,
}

impl<S, T> Part<S, T> {
    /// Returns the part at `(word, shift)` of the struct.
    #[doc(hidden)]
    pub const fn derived((word, shift): (usize, u32), name: &'static str) -> Part<S, T> {
        assert!(word <= u16::MAX as usize, "a row has at most 65,535 words");
        Part { word: word as u16, shift: shift as u8, name, types: PhantomData }
    }

    /// Returns the part's name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the place of the part in a whole at a place, for derived code.
    #[doc(hidden)]
    pub const fn place_in(&self, whole: Place) -> Place
    where
        T: Field,
    {
        let (word, shift) = (whole.word + self.word, whole.shift + self.shift);
        Place { group: whole.group, word, words: T::WORDS as u16, shift, mask: mask_of::<T>() }
    }

    /// Returns a part of this part.
    pub const fn part<U>(&self, part: Part<T, U>) -> Part<S, U> {
        // A struct of less than a word lies within one, and so do its parts.
        let (word, shift) = (self.word + part.word, self.shift + part.shift);
        Part { word, shift, name: part.name, types: PhantomData }
    }
}

impl<S, T> Clone for Part<S, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S, T> Copy for Part<S, T> {}

impl<S, T> fmt::Debug for Part<S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (word {}, bit {})", self.name, self.word, self.shift)
    }
}

impl<R: Record, S: Field, A: ColumnKind> Column<R, S, A> {
    /// Returns a part of a struct that derives [`Field`](macro@crate::Field), as a column. A part
    /// of an indexed column is indexed, too.
    ///
    /// ```
    /// use candide::{Column, Database, Field, Record};
    ///
    /// #[derive(Field, Clone, Copy, Debug, PartialEq)]
    /// struct Point {
    ///     x: i32,
    ///     y: i32,
    /// }
    ///
    /// #[derive(Record, Clone, Copy)]
    /// struct Player {
    ///     #[key]
    ///     id: u64,
    ///     at: Point,
    /// }
    ///
    /// const X: Column<Player, i32> = Player::AT.part(Point::X);
    ///
    /// let db = Database::new();
    /// let players = db.table::<Player>("players")?;
    /// db.run(|tx| {
    ///     players.insert(tx, Player { id: 1, at: Point { x: 3, y: -4 } })?;
    ///     players.update(tx, 1, X.add(10).at_most(100))?;
    ///     assert_eq!(players.read(tx, 1, Player::AT)?, Point { x: 13, y: -4 });
    ///     players.update(tx, 1, Player::AT.set(Point { x: 0, y: 1 }))?;
    ///     assert_eq!(players.read(tx, 1, (X, Player::AT.part(Point::Y)))?, (0, 1));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn part<T: Field>(&self, part: Part<S, T>) -> Column<R, T, A> {
        self.inner(part.word, part.shift, part.name)
    }
}

impl<R: Record, E: Tagged, A: ColumnKind> Column<R, E, A> {
    /// Returns the tag of an enum that derives [`Field`](macro@crate::Field), as a column: which
    /// variant the value is. A tag is read, and an index can have it. It changes with the whole
    /// value only: [`modify`](crate::Table::modify) panics if its projection has a tag.
    ///
    /// ```
    /// use candide::{Database, Field, IndexOptions, Record};
    ///
    /// #[derive(Field, Clone, Copy, Debug, PartialEq)]
    /// enum Work {
    ///     Idle,
    ///     Mail { to: u64 },
    ///     Resize(u32, u32),
    /// }
    ///
    /// #[derive(Record, Clone, Copy)]
    /// struct Job {
    ///     #[key]
    ///     id: u64,
    ///     work: Work,
    /// }
    ///
    /// let db = Database::new();
    /// let jobs = db.table::<Job>("jobs")?;
    /// let by_kind = jobs.create_index("by_kind", Job::WORK.tag(), IndexOptions::ordered())?;
    /// db.run(|tx| {
    ///     jobs.insert(tx, Job { id: 1, work: Work::Idle })?;
    ///     jobs.insert(tx, Job { id: 2, work: Work::Mail { to: 7 } })?;
    ///     jobs.insert(tx, Job { id: 3, work: Work::Resize(640, 480) })?;
    ///     assert_eq!(jobs.read(tx, 2, Job::WORK.tag())?, Work::MAIL);
    ///     assert_eq!(jobs.read(tx, 3, Job::WORK)?, Work::Resize(640, 480));
    ///     let idle = by_kind.rows(tx, Work::IDLE, Job::ID).collect_rows()?;
    ///     assert_eq!(idle, [1]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn tag(&self) -> Column<R, Tag<E>, ReadOnly> {
        self.inner(0, 0, self.name())
    }
}

/// An enum that derives [`Field`](macro@crate::Field) and has variants with data.
pub trait Tagged: Field {
    /// The bits of the tag.
    #[doc(hidden)]
    const TAG_BITS: u32;
    /// The names of the variants, and the description of the tag.
    #[doc(hidden)]
    const TAGS: &'static [&'static str];
    #[doc(hidden)]
    const TAG_TYPE: &'static FieldType;
}

/// The variant of an enum `E` that derives [`Field`](macro@crate::Field), without its data.
///
/// The derive makes a constant of each variant, named like it in capitals.
pub struct Tag<E> {
    number: u64,
    of: PhantomData<fn() -> E>,
}

impl<E: Tagged> Tag<E> {
    /// Returns the variant that `value` is.
    pub fn of(value: &E) -> Tag<E> {
        Tag::derived(value.word(0) & mask_of::<Tag<E>>())
    }

    /// Returns the variant's name.
    pub fn name(self) -> &'static str {
        E::TAGS[self.number as usize]
    }
}

impl<E> Tag<E> {
    /// Returns the variant with this number.
    #[doc(hidden)]
    pub const fn derived(number: u64) -> Tag<E> {
        Tag { number, of: PhantomData }
    }
}

impl<E> Clone for Tag<E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Tag<E> {}

impl<E> PartialEq for Tag<E> {
    fn eq(&self, other: &Tag<E>) -> bool {
        self.number == other.number
    }
}

impl<E> Eq for Tag<E> {}

impl<E> PartialOrd for Tag<E> {
    fn partial_cmp(&self, other: &Tag<E>) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// The order of the declaration.
impl<E> Ord for Tag<E> {
    fn cmp(&self, other: &Tag<E>) -> std::cmp::Ordering {
        self.number.cmp(&other.number)
    }
}

impl<E> Hash for Tag<E> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

impl<E: Tagged> fmt::Debug for Tag<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl<E: Tagged> Field for Tag<E> {
    const BITS: u32 = E::TAG_BITS;
    const TYPE: &'static FieldType = E::TAG_TYPE;
    type Buffer = [u64; 1];

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn word(&self, _index: usize) -> u64 {
        self.number
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn from_buffer(buffer: &[u64; 1]) -> Tag<E> {
        if buffer[0] as usize >= E::TAGS.len() {
            no_tag("the enum", buffer[0]);
        }
        Tag::derived(buffer[0])
    }
}

#[diagnostic::do_not_recommend]
impl<E: Tagged> AsKey<Tag<E>> for Tag<E> {
    type Given = Tag<E>;

    fn into_key(self) -> Option<Tag<E>> {
        Some(self)
    }
}

impl<E: Tagged> Key for Tag<E> {
    type Words = [u64; 1];
    const WIDTHS: &'static [u32] = &[E::TAG_BITS];
    const KEY_TYPE: &'static FieldType = E::TAG_TYPE;

    fn words(&self) -> [u64; 1] {
        [self.number]
    }

    fn from_words(words: &[u64]) -> Tag<E> {
        Tag::derived(words[0])
    }

    fn show(words: &[u64], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        super::key_text::show_variant(E::TAGS, words, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Text;
    use crate::schema::column_type::ColumnType;

    #[test]
    fn parts_fill_a_word_or_begin_words() {
        let small = Parts::new(0, [<bool>::SIZE, <u32>::SIZE, <u16>::SIZE]);
        assert_eq!((small.bits, small.words, small.places), (49, 1, [(0, 0), (0, 1), (0, 33)]));
        let full = Parts::new(0, [<i32>::SIZE, <i32>::SIZE]);
        assert_eq!((full.bits, full.words, full.places), (64, 1, [(0, 0), (0, 32)]));
        let large = Parts::new(0, [<bool>::SIZE, <u64>::SIZE, <Text<9>>::SIZE, <u32>::SIZE]);
        assert_eq!((large.bits, large.words), (5 * 64, 5));
        assert_eq!(large.places, [(4, 0), (0, 0), (1, 0), (4, 1)]);
        let one = Parts::new(0, [<u64>::SIZE]);
        assert_eq!((one.bits, one.words, one.places), (64, 1, [(0, 0)]));
    }

    #[test]
    fn parts_of_variants_lie_behind_the_tag() {
        let small = Parts::new(2, [<u32>::SIZE, <u16>::SIZE]);
        assert_eq!((small.bits, small.words, small.places), (50, 1, [(0, 2), (0, 34)]));
        let large = Parts::new(2, [<u32>::SIZE, <u64>::SIZE, <u32>::SIZE, <u8>::SIZE]);
        assert_eq!((large.bits, large.words), (3 * 64, 3));
        assert_eq!(large.places, [(0, 2), (1, 0), (2, 0), (0, 34)]);
        let nothing = Parts::new(3, []);
        assert_eq!((nothing.bits, nothing.words), (3, 1));
        assert_eq!(most_bits(&[3, 192, 50]), 192);
    }
}
