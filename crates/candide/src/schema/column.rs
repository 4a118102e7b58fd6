//! Columns, and projections, which are values that name the columns of a read.

#![forbid(unsafe_code)]

use super::codec::Undecoded;
use super::field::{Buffer, Field};
use super::field::{mask_of, place_of_element};
use super::group::Group;
use super::group::{GROUPS_MAX, image_words, start_of, starts_of};
use super::key::Key;
use super::operation::Sink;
use super::packing::Packing;
use super::place::{LongColumn, Place};
use super::record::Record;
use super::record::RowMeta;
use super::record::store_in;
use super::row_words::{Pinned, RowReader, RowWriter};
use super::unit::Unit;
use super::words::Words;
use crate::error::Abort;
use std::marker::PhantomData;

/// The kind of a column, [`Free`] or [`Indexed`]. The kind determines whether the column can be
/// updated without being read.
pub trait ColumnKind: private::SealedKind + 'static {
    #[doc(hidden)]
    const INDEXED: bool;
    #[doc(hidden)]
    const READ_ONLY: bool = false;
}

/// A kind of column that can be updated at commit time.
#[diagnostic::on_unimplemented(
    message = "the column is indexed, or the tag of an enum; change it, or the whole enum, by `modify` or `put`",
    label = "an update of an indexed column, or of a tag",
    note = "an update does not look at the row, so it could not tell the index which entry to move"
)]
pub trait Updatable: ColumnKind {}

/// The kind of a column that no index contains.
#[derive(Debug, Clone, Copy)]
pub enum Free {}

/// The kind of a column that an index contains. Such a column has no commit-time updates. The
/// column is changed by [`modify`](crate::Table::modify) or [`put`](crate::Table::put), which read
/// the row.
#[derive(Debug, Clone, Copy)]
pub enum Indexed {}

/// The kind of a column that is read and indexed, and changes only with the whole that it is a part
/// of: the [tag](Column::tag) of an enum.
#[derive(Debug, Clone, Copy)]
pub enum ReadOnly {}

impl ColumnKind for Free {
    const INDEXED: bool = false;
}

impl Updatable for Free {}

impl ColumnKind for Indexed {
    const INDEXED: bool = true;
}

impl ColumnKind for ReadOnly {
    const INDEXED: bool = true;
    const READ_ONLY: bool = true;
}

/// The place of a column of `R` with values of type `T`.
///
/// A program names a column by a constant of this type. The constant is a projection, makes updates
/// ([`Column::set`], [`Column::add`], …) unless the column is [`Indexed`], and puts values into
/// rows.
pub struct Column<R, T, A = Free> {
    pub(crate) group: u8,
    pub(crate) word: u16,
    pub(crate) shift: u8,
    name: &'static str,
    types: PhantomData<fn(R, A) -> T>,
}

impl<R, T, A> Clone for Column<R, T, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R, T, A> Copy for Column<R, T, A> {}

impl<R, T, A> std::fmt::Debug for Column<R, T, A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { group, word, shift, name, .. } = self;
        write!(f, "{name} (group {group}, word {word}, bit {shift})")
    }
}

impl<R: Record, T: Field, A: ColumnKind> Column<R, T, A> {
    /// Returns the column that begins at word `word` of group number `group`.
    pub const fn new(group: usize, word: usize, name: &'static str) -> Column<R, T, A> {
        Column::packed(group, word, 0, name)
    }

    /// Returns the column of less than a word that begins at bit `shift` of word `word` of group
    /// number `group`.
    ///
    /// # Panics
    /// If the column reaches beyond its word or its group; in a constant, that is an error of
    /// compilation.
    pub const fn packed(
        group: usize,
        word: usize,
        shift: u32,
        name: &'static str,
    ) -> Column<R, T, A> {
        assert!(group < R::GROUPS.len(), "the column's group does not exist");
        assert!(
            T::WORDS == T::BITS.div_ceil(64) as usize,
            "a field has as many words as its bits need"
        );
        let words = R::GROUPS[group].words;
        assert!(word <= words && T::WORDS <= words - word, "the column reaches beyond its group");
        assert!(
            shift == 0 || shift < 64 && T::BITS <= 64 - shift,
            "the column reaches beyond its word"
        );
        R::LONG_COLUMNS.assert_apart(start_of(R::GROUPS, group) + word, T::WORDS);
        Column {
            group: group as u8,
            word: word as u16,
            shift: shift as u8,
            name,
            types: PhantomData,
        }
    }

    /// Returns the column's name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// For a column of less than a word, the bits that belong to the column, unshifted.
    pub(crate) const MASK: u64 = mask_of::<T>();

    /// The number of the first word of each group, among the words of a row.
    const STARTS: &'static [u16; GROUPS_MAX] = &starts_of(R::GROUPS);

    /// Returns the number of the column's first word, among the words of a row.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn word_in_row(&self) -> usize {
        let start = if R::GROUPS.len() > 1 {
            Self::STARTS[usize::from(self.group) % GROUPS_MAX]
        } else {
            0
        };
        usize::from(start) + usize::from(self.word)
    }

    /// Writes a value into a row.
    #[inline]
    pub fn put(&self, row: &mut RowWriter<'_>, value: &T) {
        let (words, first) = (row.words(), self.word_in_row());
        if T::BITS < 64 {
            let mask = Self::MASK << self.shift;
            words[first] = words[first] & !mask | value.word(0) << self.shift & mask;
        } else {
            for (index, word) in words[first..first + T::WORDS].iter_mut().enumerate() {
                *word = value.word(index);
            }
        }
    }

    /// Reads the value from a row.
    #[inline]
    pub fn take(&self, row: &RowReader<'_>) -> T {
        let first = self.word_in_row();
        let mut buffer = T::Buffer::ZERO;
        self.copy_from(Words::Own(row.words()), first, &mut buffer);
        T::from_buffer(&buffer)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn copy_from(&self, from: Words<'_>, first: usize, into: &mut T::Buffer) {
        if T::BITS < 64 {
            into.set(0, from.get(first) >> self.shift & Self::MASK);
        } else {
            from.copy(first, T::WORDS, |index, word| into.set(index, word));
        }
    }
}

impl<R: Record, T, A> Column<R, T, A> {
    /// Returns the column's name.
    pub(crate) const fn called(&self) -> &'static str {
        self.name
    }

    /// Returns the number of the column's first word, among the words of a row.
    pub(crate) const fn first_word(&self) -> usize {
        start_of(R::GROUPS, self.group as usize) + self.word as usize
    }

    /// Returns the column, of any length, among those of the row.
    pub(crate) const fn as_long(&self) -> LongColumn {
        LongColumn { word: self.first_word(), name: self.name }
    }

    /// Returns the place of the word of a column of any length.
    ///
    /// # Panics
    /// If the row type has no such column there; in a constant, that is an error of compilation.
    pub(crate) const fn long_place(&self) -> Place {
        R::LONG_COLUMNS.assert_has(self.first_word());
        Place { group: self.group, word: self.word, words: 1, shift: 0, mask: u64::MAX }
    }
}

impl<R, T, A> Column<R, T, A> {
    /// Returns the column that begins this far within this one.
    pub(super) const fn inner<U, B>(
        &self,
        word: u16,
        shift: u8,
        name: &'static str,
    ) -> Column<R, U, B> {
        let (word, shift) = (self.word + word, self.shift + shift);
        Column { group: self.group, word, shift, name, types: PhantomData }
    }
}

impl<R: Record, T: Field, A: ColumnKind, const N: usize> Column<R, [T; N], A> {
    /// Returns element `index` of the array, as a column.
    ///
    /// # Panics
    /// If there is no such element; in a constant, that is an error of compilation.
    pub const fn at(&self, index: usize) -> Column<R, T, A> {
        assert!(index < N, "the array has fewer elements");
        let (word, shift) = place_of_element::<T>(index);
        let Column { group, name, types: _, .. } = *self;
        Column {
            group,
            word: self.word + word as u16,
            shift: shift as u8,
            name,
            types: PhantomData,
        }
    }
}

/// A component of the primary key of `R`, or the whole key. As a projection it reads no words of
/// the row.
///
/// A read of key columns alone observes the row's first group. So such a read, too, returns whether
/// the row exists.
pub struct KeyColumn<R: Record, K> {
    name: &'static str,
    component: fn(&R::Key) -> K,
}

impl<R: Record, K> Clone for KeyColumn<R, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: Record, K> Copy for KeyColumn<R, K> {}

impl<R: Record, K> std::fmt::Debug for KeyColumn<R, K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (key)", self.name)
    }
}

impl<R: Record, K> KeyColumn<R, K> {
    /// Returns the key column whose value is `component(key)`.
    pub const fn new(name: &'static str, component: fn(&R::Key) -> K) -> KeyColumn<R, K> {
        KeyColumn { name, component }
    }

    /// Returns the component's name.
    pub const fn name(&self) -> &'static str {
        self.name
    }
}

/// A column made by derived code: the column with number `number` in a packed group.
impl<R, T, A> Column<R, T, A> {
    #[doc(hidden)]
    pub const fn derived<const N: usize>(
        group: usize,
        packing: Packing<N>,
        number: usize,
        name: &'static str,
    ) -> Column<R, T, A> {
        let (word, shift) = packing.places[number];
        assert!(word <= u16::MAX as usize, "a row has at most 65,535 words");
        Column {
            group: group as u8,
            word: word as u16,
            shift: shift as u8,
            name,
            types: PhantomData,
        }
    }
}

/// The whole row.
#[derive(Debug, Clone, Copy)]
pub struct Whole;

/// The columns that a read returns: a column, a part of the key, a tuple of projections, or
/// [`Whole`] rows.
///
/// The groups of a projection are known before anything is loaded, and a read observes exactly
/// these groups. The trait cannot be implemented outside this crate: through its hidden methods a
/// table copies words and makes values from them.
pub trait Projection<R: Record>: Copy + private::Sealed {
    /// The value that the read returns.
    type Value;

    /// The value as a closure gets it ([`Table::read_with`](crate::Table::read_with)): strings and
    /// bytes of any length are `&str` and `&[u8]`, other columns as in `Value`.
    type View<'v>;

    #[doc(hidden)]
    type Words: Copy;
    #[doc(hidden)]
    const EMPTY: Self::Words;

    /// Whether an index contains any of the columns.
    #[doc(hidden)]
    const INDEXED: bool;

    /// Whether a codec may refuse words of the projection ([`Codec`](crate::Codec)).
    #[doc(hidden)]
    const CODED: bool = false;

    /// Whether the projection may have a column of any length.
    #[doc(hidden)]
    const LONG: bool = false;

    /// The number of columns that the projection names. A whole row counts as one, and key columns
    /// do not count.
    #[doc(hidden)]
    const COLUMNS: usize;

    /// Whether every value of this type names columns of at most one group.
    #[doc(hidden)]
    const ONE_GROUP: bool;

    /// Returns the set of groups that contain the projection's columns; empty if all of them belong
    /// to the key.
    #[doc(hidden)]
    fn column_groups(&self) -> u64;

    /// Returns the set of groups that a read observes. The set has at least one group, since the
    /// cell of each group shows whether the row exists.
    #[doc(hidden)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn groups(&self) -> u64 {
        match self.column_groups() {
            0 => 1,
            groups => groups,
        }
    }

    /// Copies the projection's words that are in `unit`.
    #[doc(hidden)]
    fn copy(&self, unit: Unit, from: Words<'_>, into: &mut Self::Words);

    /// Copies all of the projection's words from a unit that contains them all. The unit's words
    /// begin at word `start` of the row.
    #[doc(hidden)]
    fn copy_all(&self, start: usize, from: Words<'_>, into: &mut Self::Words);

    /// Calls `each` for every run of the projection's words in `unit`, with the position of the run
    /// within `unit` and its number of words.
    #[doc(hidden)]
    fn runs(&self, unit: Unit, each: &mut impl FnMut(usize, usize));

    /// Calls `each` with the place of every column.
    #[doc(hidden)]
    fn places(&self, each: &mut impl FnMut(Place));

    /// Calls `each` with the address of every function that takes a part from the key.
    #[doc(hidden)]
    fn key_parts(&self, _each: &mut impl FnMut(usize)) {}

    /// Calls `each` with every column of any length, and its word.
    #[doc(hidden)]
    fn long_words(&self, _words: &Self::Words, _each: &mut impl FnMut(LongColumn, u64)) {}

    /// Returns the value, once the words are known to belong together. `pin` is the pin, or the
    /// attempt, in which the words have been read from a row that is present.
    ///
    /// # Panics
    /// If a codec refuses the words.
    #[doc(hidden)]
    fn value(&self, key: &R::Key, words: &Self::Words, pin: Pinned<'_>) -> Self::Value;

    /// Returns the value, as [`Self::value`] does, or the first column whose codec refuses its
    /// words.
    #[doc(hidden)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn decode(
        &self,
        key: &R::Key,
        words: &Self::Words,
        pin: Pinned<'_>,
    ) -> Result<Self::Value, Undecoded> {
        Ok(self.value(key, words, pin))
    }

    /// Returns the value with strings and bytes that are borrowed; otherwise as [`Self::decode`].
    #[doc(hidden)]
    fn view<'v>(
        &self,
        key: &R::Key,
        words: &'v Self::Words,
        pin: Pinned<'v>,
    ) -> Result<Self::View<'v>, Undecoded>;

    /// Sets every column to its part of `value`.
    #[doc(hidden)]
    fn assign(&self, key: &R::Key, value: &Self::Value, sink: &mut impl Sink) -> Result<(), Abort>;
}

pub(super) mod private {
    use super::{Column, Free, Indexed, KeyColumn, ReadOnly, Record, Whole};

    pub trait Sealed {}
    impl<R, T, A> Sealed for Column<R, T, A> {}
    impl<R: Record, K> Sealed for KeyColumn<R, K> {}
    impl Sealed for Whole {}
    impl Sealed for () {}

    pub trait SealedKind {}
    impl SealedKind for Free {}
    impl SealedKind for Indexed {}
    impl SealedKind for ReadOnly {}
}

impl<R: Record, T: Field, A: ColumnKind> Column<R, T, A> {
    /// Returns the place of the column's words.
    #[doc(hidden)]
    pub const fn place(&self) -> Place {
        // Derived code packs columns without a check that they lie in a group of the row.
        let (group, end) = (self.group as usize, self.word as usize + T::WORDS);
        assert!(
            group < R::GROUPS.len() && end <= R::GROUPS[group].words,
            "the column reaches beyond its group"
        );
        R::LONG_COLUMNS.assert_apart(start_of(R::GROUPS, group) + self.word as usize, T::WORDS);
        Place {
            group: self.group,
            word: self.word,
            words: T::WORDS as u16,
            shift: self.shift,
            mask: Self::MASK,
        }
    }
}

impl<R: Record, T: Field, A: ColumnKind> Projection<R> for Column<R, T, A> {
    type Value = T;
    type View<'v> = T;
    type Words = T::Buffer;
    const EMPTY: T::Buffer = T::Buffer::ZERO;
    const INDEXED: bool = A::INDEXED;
    const COLUMNS: usize = 1;
    const ONE_GROUP: bool = true;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn column_groups(&self) -> u64 {
        1 << self.group
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn copy(&self, unit: Unit, from: Words<'_>, into: &mut T::Buffer) {
        if unit.holds(self.group) {
            self.copy_from(
                from,
                unit.offset_of(R::GROUPS, self.group) + usize::from(self.word),
                into,
            );
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn copy_all(&self, start: usize, from: Words<'_>, into: &mut T::Buffer) {
        self.copy_from(from, self.word_in_row() - start, into);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn runs(&self, unit: Unit, each: &mut impl FnMut(usize, usize)) {
        if unit.holds(self.group) {
            each(unit.offset_of(R::GROUPS, self.group) + usize::from(self.word), T::WORDS);
        }
    }

    fn places(&self, each: &mut impl FnMut(Place)) {
        each(self.place());
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn value(&self, _key: &R::Key, words: &T::Buffer, _: Pinned<'_>) -> T {
        T::from_buffer(words)
    }

    #[inline]
    fn view<'v>(
        &self,
        key: &R::Key,
        words: &'v Self::Words,
        pin: Pinned<'v>,
    ) -> Result<Self::View<'v>, Undecoded> {
        self.decode(key, words, pin)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn assign(&self, _key: &R::Key, value: &T, sink: &mut impl Sink) -> Result<(), Abort> {
        assert!(!A::READ_ONLY, "the tag of an enum changes with its data: modify the whole column");
        sink.set(self.place(), |index| value.word(index))
    }
}

impl<R: Record, K: Key> Projection<R> for KeyColumn<R, K> {
    type Value = K;
    type View<'v> = K;
    type Words = ();
    const EMPTY: () = ();
    const INDEXED: bool = false;
    const COLUMNS: usize = 0;
    const ONE_GROUP: bool = true;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn column_groups(&self) -> u64 {
        0
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn copy(&self, _unit: Unit, _from: Words<'_>, _into: &mut ()) {}

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn copy_all(&self, _start: usize, _from: Words<'_>, _into: &mut ()) {}

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn runs(&self, _unit: Unit, _each: &mut impl FnMut(usize, usize)) {}

    fn places(&self, _each: &mut impl FnMut(Place)) {}

    fn key_parts(&self, each: &mut impl FnMut(usize)) {
        each(self.component as usize);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn value(&self, key: &R::Key, _words: &(), _: Pinned<'_>) -> K {
        (self.component)(key)
    }

    #[inline]
    fn view<'v>(
        &self,
        key: &R::Key,
        words: &'v Self::Words,
        pin: Pinned<'v>,
    ) -> Result<Self::View<'v>, Undecoded> {
        self.decode(key, words, pin)
    }

    fn assign(&self, key: &R::Key, value: &K, _sink: &mut impl Sink) -> Result<(), Abort> {
        assert_same_key(value, &(self.component)(key));
        Ok(())
    }
}

fn assert_same_key<K: Key>(new: &K, old: &K) {
    let same = new.words().as_ref() == old.words().as_ref();
    assert!(same, "a row keeps its key; delete the row and insert another");
}

/// Returns the value of a projection.
///
/// # Errors
/// [`Abort::Undecodable`].
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn decoded<R: Record, Pr: Projection<R>>(
    projection: &Pr,
    key: &R::Key,
    words: &Pr::Words,
    pin: Pinned<'_>,
) -> Result<Pr::Value, Abort> {
    match Pr::CODED {
        true => projection.decode(key, words, pin).map_err(|_| Abort::Undecodable),
        false => Ok(projection.value(key, words, pin)),
    }
}

/// Returns the first column whose codec refuses its words in a row. `pin` is the pin in which the
/// words have been read.
pub(crate) fn undecoded_in<R: Record>(words: &[u64], pin: Pinned<'_>) -> Option<Undecoded> {
    let row = RowReader::pinned(words, R::LONG, pin);
    R::FIELDS.iter().find_map(|field| {
        let checked = match (field.check, field.place) {
            (Some(check), _) => check(&row),
            (None, Some(place)) => {
                let first = start_of(R::GROUPS, place.group.into());
                field.long_check?(&row, first + usize::from(place.word))
            }
            (None, None) => return None,
        };
        let problem = checked.err()?;
        Some(Undecoded { column: field.name, problem })
    })
}

impl<R: Record> Projection<R> for Whole {
    type Value = R;
    type View<'v> = R;
    type Words = R::Image;
    const EMPTY: R::Image = R::Image::ZERO;
    const INDEXED: bool = !R::INDEXES.is_empty();
    const COLUMNS: usize = 1;
    const ONE_GROUP: bool = R::GROUPS.len() == 1;
    const CODED: bool = R::CODED;
    const LONG: bool = !R::LONG.is_empty();

    fn column_groups(&self) -> u64 {
        u64::MAX >> (64 - R::GROUPS.len())
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn copy(&self, unit: Unit, from: Words<'_>, into: &mut R::Image) {
        let (start, count) = unit.image_range(R::GROUPS);
        from.copy(0, count, |index, word| into.set(start + index, word));
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn copy_all(&self, _start: usize, from: Words<'_>, into: &mut R::Image) {
        from.copy(0, image_words(R::GROUPS), |index, word| into.set(index, word));
    }

    fn runs(&self, unit: Unit, each: &mut impl FnMut(usize, usize)) {
        each(0, unit.image_range(R::GROUPS).1);
    }

    fn places(&self, each: &mut impl FnMut(Place)) {
        for (group, &Group { words, .. }) in R::GROUPS.iter().enumerate() {
            each(Place {
                group: group as u8,
                word: 0,
                words: words as u16,
                shift: 0,
                mask: u64::MAX,
            });
        }
    }

    fn long_words(&self, words: &R::Image, each: &mut impl FnMut(LongColumn, u64)) {
        let mut words = *words;
        let words = words.words();
        for &word in R::LONG {
            let word = usize::from(word);
            each(LongColumn { word, name: "" }, words[word]);
        }
    }

    #[inline]
    fn value(&self, key: &R::Key, words: &R::Image, pin: Pinned<'_>) -> R {
        let mut words = *words;
        R::load(key, &RowReader::pinned(words.words(), R::LONG, pin))
    }

    fn decode(&self, key: &R::Key, words: &R::Image, pin: Pinned<'_>) -> Result<R, Undecoded> {
        if R::CODED {
            let mut words = *words;
            if let Some(undecoded) = undecoded_in::<R>(words.words(), pin) {
                return Err(undecoded);
            }
        }
        Ok(self.value(key, words, pin))
    }

    #[inline]
    fn view<'v>(
        &self,
        key: &R::Key,
        words: &'v Self::Words,
        pin: Pinned<'v>,
    ) -> Result<Self::View<'v>, Undecoded> {
        self.decode(key, words, pin)
    }

    fn assign(&self, key: &R::Key, value: &R, sink: &mut impl Sink) -> Result<(), Abort> {
        assert_same_key(&value.key(), key);
        let mut image = R::Image::ZERO;
        let image = store_in(value, &mut image, sink)?;
        let mut start = 0;
        for (group, &Group { words, .. }) in R::GROUPS.iter().enumerate() {
            let place = Place {
                group: group as u8,
                word: 0,
                words: words as u16,
                shift: 0,
                mask: u64::MAX,
            };
            sink.set(place, |index| image[start + index])?;
            start += words;
        }
        Ok(())
    }
}

/// The empty projection: a read returns only whether the row exists. Scans that need only keys use
/// it.
impl<R: Record> Projection<R> for () {
    type Value = ();
    type View<'v> = ();
    type Words = ();
    const EMPTY: () = ();
    const INDEXED: bool = false;
    const COLUMNS: usize = 0;
    const ONE_GROUP: bool = true;

    fn column_groups(&self) -> u64 {
        0
    }

    fn copy(&self, _unit: Unit, _from: Words<'_>, _into: &mut ()) {}

    fn copy_all(&self, _start: usize, _from: Words<'_>, _into: &mut ()) {}

    fn runs(&self, _unit: Unit, _each: &mut impl FnMut(usize, usize)) {}

    fn places(&self, _each: &mut impl FnMut(Place)) {}

    fn value(&self, _key: &R::Key, _words: &(), _: Pinned<'_>) {}

    fn view(&self, _key: &R::Key, _words: &(), _: Pinned<'_>) -> Result<(), Undecoded> {
        Ok(())
    }

    fn assign(&self, _key: &R::Key, _value: &(), _sink: &mut impl Sink) -> Result<(), Abort> {
        Ok(())
    }
}

macro_rules! tuple_projections {
    ($($($name:ident $index:tt),+;)*) => {$(
        impl<$($name: private::Sealed),+> private::Sealed for ($($name,)+) {}

        impl<R: Record, $($name: Projection<R>),+> Projection<R> for ($($name,)+) {
            type Value = ($($name::Value,)+);
            type View<'v> = ($($name::View<'v>,)+);
            type Words = ($($name::Words,)+);
            const EMPTY: Self::Words = ($($name::EMPTY,)+);
            const INDEXED: bool = $($name::INDEXED)||+;
            const CODED: bool = $($name::CODED)||+;
            const LONG: bool = $($name::LONG)||+;
            const COLUMNS: usize = 0 $(+ $name::COLUMNS)+;
            const ONE_GROUP: bool = R::GROUPS.len() == 1 || Self::COLUMNS < 2 && $($name::ONE_GROUP)&&+;

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn column_groups(&self) -> u64 {
                $(self.$index.column_groups())|+
            }

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn copy(&self, unit: Unit, from: Words<'_>, into: &mut Self::Words) {
                $(self.$index.copy(unit, from, &mut into.$index);)+
            }

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn copy_all(&self, start: usize, from: Words<'_>, into: &mut Self::Words) {
                $(self.$index.copy_all(start, from, &mut into.$index);)+
            }

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn runs(&self, unit: Unit, each: &mut impl FnMut(usize, usize)) {
                $(self.$index.runs(unit, each);)+
            }

            fn places(&self, each: &mut impl FnMut(Place)) {
                $(self.$index.places(each);)+
            }

            fn key_parts(&self, each: &mut impl FnMut(usize)) {
                $(self.$index.key_parts(each);)+
            }

            fn long_words(&self, words: &Self::Words, each: &mut impl FnMut(LongColumn, u64)) {
                $(self.$index.long_words(&words.$index, each);)+
            }

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn value(&self, key: &R::Key, words: &Self::Words, pin: Pinned<'_>) -> Self::Value {
                ($(self.$index.value(key, &words.$index, pin),)+)
            }

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn decode(
                &self,
                key: &R::Key,
                words: &Self::Words,
                pin: Pinned<'_>,
            ) -> Result<Self::Value, Undecoded> {
                Ok(($(self.$index.decode(key, &words.$index, pin)?,)+))
            }

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn view<'v>(
                &self,
                key: &R::Key,
                words: &'v Self::Words,
                pin: Pinned<'v>,
            ) -> Result<Self::View<'v>, Undecoded> {
                Ok(($(self.$index.view(key, &words.$index, pin)?,)+))
            }

            #[inline]
            fn assign(&self, key: &R::Key, value: &Self::Value, sink: &mut impl Sink) -> Result<(), Abort> {
                $(self.$index.assign(key, &value.$index, sink)?;)+
                Ok(())
            }
        }
    )*};
}

tuple_projections! {
    A 0;
    A 0, B 1;
    A 0, B 1, C 2;
    A 0, B 1, C 2, D 3;
    A 0, B 1, C 2, D 3, E 4;
    A 0, B 1, C 2, D 3, E 4, F 5;
    A 0, B 1, C 2, D 3, E 4, F 5, G 6;
    A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7;
}
