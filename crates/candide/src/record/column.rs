//! Columns, and projections: what a read asks for, as a value.

#![forbid(unsafe_code)]

use super::schema::start_of;
use super::{Buffer, Field, Group, Key, Record, Sink, Unit, Words};
use crate::error::Abort;
use std::marker::PhantomData;

/// Where a column of `R` with values of type `T` lies.
///
/// A constant of this type is the way to name a column: it is a projection, makes updates ([`Column::set`],
/// [`Column::add`], …), and puts values into rows.
#[derive(Debug)]
pub struct Column<R, T> {
    pub(crate) group: u8,
    pub(crate) word: u16,
    pub(crate) shift: u8,
    name: &'static str,
    types: PhantomData<fn(R) -> T>,
}

impl<R, T> Clone for Column<R, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R, T> Copy for Column<R, T> {}

impl<R: Record, T: Field> Column<R, T> {
    /// The column that begins at word `word` of group number `group`.
    pub const fn new(group: usize, word: usize, name: &'static str) -> Column<R, T> {
        Column::packed(group, word, 0, name)
    }

    /// The column of less than a word that begins at bit `shift` of word `word` of group number `group`.
    ///
    /// # Panics
    /// If the column reaches beyond its word or its group; in a constant, that is an error of compilation.
    pub const fn packed(group: usize, word: usize, shift: u32, name: &'static str) -> Column<R, T> {
        assert!(group < R::GROUPS.len(), "the column's group does not exist");
        assert!(word + T::WORDS <= R::GROUPS[group].words, "the column reaches beyond its group");
        assert!(shift == 0 || shift + T::BITS <= 64, "the column reaches beyond its word");
        Column { group: group as u8, word: word as u16, shift: shift as u8, name, types: PhantomData }
    }

    /// The column's name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The bits of its word that belong to a column of less than a word.
    pub(crate) const MASK: u64 = if T::BITS < 64 { (1 << T::BITS) - 1 } else { u64::MAX };

    /// Writes a value into the words of a row.
    #[inline]
    pub fn put(&self, words: &mut [u64], value: &T) {
        let first = start_of(R::GROUPS, usize::from(self.group)) + usize::from(self.word);
        if T::BITS < 64 {
            let mask = Self::MASK << self.shift;
            words[first] = words[first] & !mask | value.word(0) << self.shift & mask;
        } else {
            for (index, word) in words[first..first + T::WORDS].iter_mut().enumerate() {
                *word = value.word(index);
            }
        }
    }

    /// Reads the value from the words of a row.
    #[inline]
    pub fn take(&self, words: &[u64]) -> T {
        let first = start_of(R::GROUPS, usize::from(self.group)) + usize::from(self.word);
        let mut buffer = T::Buffer::ZERO;
        self.copy_from(Words::Own(words), first, &mut buffer);
        T::from_buffer(&buffer)
    }

    #[inline(always)]
    fn copy_from(&self, from: Words<'_>, first: usize, into: &mut T::Buffer) {
        if T::BITS < 64 {
            into.set(0, from.get(first) >> self.shift & Self::MASK);
        } else {
            from.copy(first, T::WORDS, |index, word| into.set(index, word));
        }
    }
}

/// The whole row.
#[derive(Debug, Clone, Copy)]
pub struct Whole;

/// Where a column's words go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub(crate) group: u8,
    pub(crate) word: u16,
    pub(crate) words: u16,
    /// Of a column of less than a word.
    pub(crate) shift: u8,
    /// Unshifted.
    pub(crate) mask: u64,
}

impl Place {
    /// Whether two places have a bit in common.
    pub(crate) fn overlaps(self, other: Place) -> bool {
        let apart = self.group != other.group
            || self.word + self.words <= other.word
            || other.word + other.words <= self.word
            || (self.mask << self.shift) & (other.mask << other.shift) == 0;
        !apart
    }
}

/// What a read asks for: a column, a tuple of projections, or [`Whole`] rows.
///
/// Which groups it touches is known before anything is loaded; exactly those are observed. The trait cannot be implemented
/// outside this crate; its hidden methods are how a table copies words and makes values of them.
pub trait Projection<R: Record>: Copy + private::Sealed {
    /// What the read gives.
    type Value;

    #[doc(hidden)]
    type Words: Copy;
    #[doc(hidden)]
    const EMPTY: Self::Words;

    /// The set of groups.
    #[doc(hidden)]
    fn groups(&self) -> u64;

    /// Copies those of its words that lie in `unit`.
    #[doc(hidden)]
    fn copy(&self, unit: Unit, from: Words<'_>, into: &mut Self::Words);

    /// Calls `each` with the position within `unit` and the number of every run of words in it.
    #[doc(hidden)]
    fn runs(&self, unit: Unit, each: &mut impl FnMut(usize, usize));

    /// Calls `each` with the place of every column.
    #[doc(hidden)]
    fn places(&self, each: &mut impl FnMut(Place));

    /// The value, once the words are known to belong together.
    #[doc(hidden)]
    fn value(&self, key: &R::Key, words: &Self::Words) -> Self::Value;

    /// Sets every column to its part of `value`.
    #[doc(hidden)]
    fn assign(&self, key: &R::Key, value: &Self::Value, sink: &mut impl Sink) -> Result<(), Abort>;
}

mod private {
    use super::{Column, Whole};

    pub trait Sealed {}
    impl<R, T> Sealed for Column<R, T> {}
    impl Sealed for Whole {}
    impl Sealed for () {}
}

impl<R: Record, T: Field> Column<R, T> {
    /// Where the column's words go.
    #[doc(hidden)]
    pub const fn place(&self) -> Place {
        Place { group: self.group, word: self.word, words: T::WORDS as u16, shift: self.shift, mask: Self::MASK }
    }
}

impl<R: Record, T: Field> Projection<R> for Column<R, T> {
    type Value = T;
    type Words = T::Buffer;
    const EMPTY: T::Buffer = T::Buffer::ZERO;

    #[inline(always)]
    fn groups(&self) -> u64 {
        1 << self.group
    }

    #[inline(always)]
    fn copy(&self, unit: Unit, from: Words<'_>, into: &mut T::Buffer) {
        if unit.holds(self.group) {
            self.copy_from(from, unit.offset_of(R::GROUPS, self.group) + usize::from(self.word), into);
        }
    }

    #[inline(always)]
    fn runs(&self, unit: Unit, each: &mut impl FnMut(usize, usize)) {
        if unit.holds(self.group) {
            each(unit.offset_of(R::GROUPS, self.group) + usize::from(self.word), T::WORDS);
        }
    }

    fn places(&self, each: &mut impl FnMut(Place)) {
        each(self.place());
    }

    #[inline(always)]
    fn value(&self, _key: &R::Key, words: &T::Buffer) -> T {
        T::from_buffer(words)
    }

    #[inline(always)]
    fn assign(&self, _key: &R::Key, value: &T, sink: &mut impl Sink) -> Result<(), Abort> {
        sink.set(self.place(), |index| value.word(index))
    }
}

impl<R: Record> Projection<R> for Whole {
    type Value = R;
    type Words = R::Image;
    const EMPTY: R::Image = R::Image::ZERO;

    fn groups(&self) -> u64 {
        u64::MAX >> (64 - R::GROUPS.len())
    }

    #[inline(always)]
    fn copy(&self, unit: Unit, from: Words<'_>, into: &mut R::Image) {
        let (start, count) = unit.image_range(R::GROUPS);
        from.copy(0, count, |index, word| into.set(start + index, word));
    }

    fn runs(&self, unit: Unit, each: &mut impl FnMut(usize, usize)) {
        each(0, unit.image_range(R::GROUPS).1);
    }

    fn places(&self, each: &mut impl FnMut(Place)) {
        for (group, &Group { words, .. }) in R::GROUPS.iter().enumerate() {
            each(Place { group: group as u8, word: 0, words: words as u16, shift: 0, mask: u64::MAX });
        }
    }

    #[inline]
    fn value(&self, key: &R::Key, words: &R::Image) -> R {
        let mut words = *words;
        R::load(key, words.words())
    }

    fn assign(&self, key: &R::Key, value: &R, sink: &mut impl Sink) -> Result<(), Abort> {
        let same_key = value.key().words().as_ref() == key.words().as_ref();
        assert!(same_key, "a row keeps its key; delete the row and insert another");
        let mut image = R::Image::ZERO;
        value.store(image.words());
        let image = image.words();
        let mut start = 0;
        for (group, &Group { words, .. }) in R::GROUPS.iter().enumerate() {
            let place = Place { group: group as u8, word: 0, words: words as u16, shift: 0, mask: u64::MAX };
            sink.set(place, |index| image[start + index])?;
            start += words;
        }
        Ok(())
    }
}

/// Nothing but whether the row exists; it observes the first group. Scans that want keys only ask for this.
impl<R: Record> Projection<R> for () {
    type Value = ();
    type Words = ();
    const EMPTY: () = ();

    fn groups(&self) -> u64 {
        1
    }

    fn copy(&self, _unit: Unit, _from: Words<'_>, _into: &mut ()) {}

    fn runs(&self, _unit: Unit, _each: &mut impl FnMut(usize, usize)) {}

    fn places(&self, _each: &mut impl FnMut(Place)) {}

    fn value(&self, _key: &R::Key, _words: &()) {}

    fn assign(&self, _key: &R::Key, _value: &(), _sink: &mut impl Sink) -> Result<(), Abort> {
        Ok(())
    }
}

macro_rules! tuple_projections {
    ($($($name:ident $index:tt),+;)*) => {$(
        impl<$($name: private::Sealed),+> private::Sealed for ($($name,)+) {}

        impl<R: Record, $($name: Projection<R>),+> Projection<R> for ($($name,)+) {
            type Value = ($($name::Value,)+);
            type Words = ($($name::Words,)+);
            const EMPTY: Self::Words = ($($name::EMPTY,)+);

            #[inline(always)]
            fn groups(&self) -> u64 {
                $(self.$index.groups())|+
            }

            #[inline(always)]
            fn copy(&self, unit: Unit, from: Words<'_>, into: &mut Self::Words) {
                $(self.$index.copy(unit, from, &mut into.$index);)+
            }

            #[inline(always)]
            fn runs(&self, unit: Unit, each: &mut impl FnMut(usize, usize)) {
                $(self.$index.runs(unit, each);)+
            }

            fn places(&self, each: &mut impl FnMut(Place)) {
                $(self.$index.places(each);)+
            }

            #[inline(always)]
            fn value(&self, key: &R::Key, words: &Self::Words) -> Self::Value {
                ($(self.$index.value(key, &words.$index),)+)
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
