//! Columns with codecs.

#![forbid(unsafe_code)]

use super::codec::{Codec, Undecoded, decode};
use super::column::{Column, ColumnKind, Free, Projection, Updatable, private};
use super::field::Field;
use super::operation::Sink;
use super::place::Place;
use super::record::Record;
use super::row_words::{Pinned, RowReader, RowWriter};
use super::unit::Unit;
use super::update::ColumnUpdate;
use super::words::Words;
use crate::error::Abort;
use std::fmt;

/// A column of `R` whose values a codec `C` encodes. The derive makes a constant of this type of a
/// field with `#[record(with = C)]`.
pub struct Coded<R, C: Codec, A = Free>(Column<R, C::Stored, A>);

impl<R, C: Codec, A> private::Sealed for Coded<R, C, A> {}

impl<R, C: Codec, A> Clone for Coded<R, C, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R, C: Codec, A> Copy for Coded<R, C, A> {}

impl<R, C: Codec, A> fmt::Debug for Coded<R, C, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<R, C: Codec, A> Coded<R, C, A> {
    /// Returns the column whose stored values are in `column`.
    pub const fn new(column: Column<R, C::Stored, A>) -> Coded<R, C, A> {
        Coded(column)
    }

    /// Returns the column of the stored values.
    pub const fn stored(&self) -> Column<R, C::Stored, A> {
        self.0
    }
}

impl<R: Record, C: Codec, A: ColumnKind> Coded<R, C, A> {
    /// Returns the column's name.
    pub const fn name(&self) -> &'static str {
        self.0.name()
    }

    /// Sets the column to `value`, as [`Column::set`] does.
    pub fn set(self, value: C::Value) -> ColumnUpdate<R, C::Stored>
    where
        A: Updatable,
    {
        self.0.set(C::encode(&value))
    }

    /// Writes a value into a row.
    pub fn put(&self, row: &mut RowWriter<'_>, value: &C::Value) {
        self.0.put(row, &C::encode(value));
    }

    /// Reads the value from a row.
    ///
    /// # Panics
    /// If the codec refuses it.
    pub fn take(&self, row: &RowReader<'_>) -> C::Value {
        decode::<C>(self.0.take(row), self.name())
    }
}

impl<R: Record, C: Codec, A: ColumnKind> Projection<R> for Coded<R, C, A> {
    type Value = C::Value;
    type View<'v> = C::Value;
    type Words = <C::Stored as Field>::Buffer;
    const EMPTY: Self::Words = <Column<R, C::Stored, A> as Projection<R>>::EMPTY;
    const INDEXED: bool = A::INDEXED;
    const COLUMNS: usize = 1;
    const ONE_GROUP: bool = true;
    const CODED: bool = true;

    fn column_groups(&self) -> u64 {
        self.0.column_groups()
    }

    fn copy(&self, unit: Unit, from: Words<'_>, into: &mut Self::Words) {
        self.0.copy(unit, from, into);
    }

    fn copy_all(&self, start: usize, from: Words<'_>, into: &mut Self::Words) {
        self.0.copy_all(start, from, into);
    }

    fn runs(&self, unit: Unit, each: &mut impl FnMut(usize, usize)) {
        self.0.runs(unit, each);
    }

    fn places(&self, each: &mut impl FnMut(Place)) {
        self.0.places(each);
    }

    fn value(&self, _key: &R::Key, words: &Self::Words, _: Pinned<'_>) -> C::Value {
        decode::<C>(C::Stored::from_buffer(words), self.name())
    }

    fn decode(
        &self,
        _key: &R::Key,
        words: &Self::Words,
        _: Pinned<'_>,
    ) -> Result<C::Value, Undecoded> {
        let column = self.name();
        C::decode(C::Stored::from_buffer(words)).map_err(|problem| Undecoded { column, problem })
    }

    fn view<'v>(
        &self,
        key: &R::Key,
        words: &'v Self::Words,
        pin: Pinned<'v>,
    ) -> Result<C::Value, Undecoded> {
        self.decode(key, words, pin)
    }

    fn assign(&self, key: &R::Key, value: &C::Value, sink: &mut impl Sink) -> Result<(), Abort> {
        self.0.assign(key, &C::encode(value), sink)
    }
}
