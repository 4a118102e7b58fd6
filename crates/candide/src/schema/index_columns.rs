//! The columns of an index that is made while the database is in use.

#![forbid(unsafe_code)]

use super::codec::Codec;
use super::coded::Coded;
use super::column::{Column, ColumnKind, KeyColumn, Projection};
use super::field::Field;
use super::key::Key;
use super::key_limit::KeyLimit;
use super::long_key::{Bounded, LongKey};
use super::place::Place;
use super::record::Record;
use super::row_words::{Pinned, RowReader};
use super::unit::Unit;
use super::words::Words;

/// The columns of an index that [`Table::create_index`](crate::Table::create_index) makes: a column
/// or a part of the primary key, whose type is a [`Key`]; a column of any length with the most
/// [bytes](Column::bytes) that the index keeps of it; or a tuple of two to four of these.
#[diagnostic::on_unimplemented(
    message = "an index cannot have `{Self}`",
    label = "not the columns of an index",
    note = "an index has columns and parts of the primary key whose types implement `candide::Key`, and tuples of them",
    note = "of a column of type `String` or `Vec<u8>` it keeps so many bytes: `User::NAME.bytes::<64>()`"
)]
pub trait IndexColumns<R: Record>: Copy + Send + Sync + 'static {
    /// The type of the index's keys.
    type Key: Key;

    /// Calls `each` with the place of every column.
    #[doc(hidden)]
    fn places(&self, each: &mut dyn FnMut(Place));

    /// Calls `each` with the address of every function that takes a part from the primary key.
    #[doc(hidden)]
    fn key_parts(&self, _each: &mut dyn FnMut(usize)) {}

    /// Calls `each` with the limit of every column of any length.
    #[doc(hidden)]
    fn limits(&self, _each: &mut dyn FnMut(KeyLimit)) {}

    /// Returns the index key of a row whose columns of any length are within the limits.
    #[doc(hidden)]
    fn key(&self, primary: &R::Key, row: &RowReader<'_>) -> Self::Key;
}

/// Returns the value of a projection in a row.
fn value<R: Record, Pr: Projection<R>>(
    projection: Pr,
    primary: &R::Key,
    row: &RowReader<'_>,
) -> Pr::Value {
    let mut words = Pr::EMPTY;
    projection.copy(Unit::ROW, Words::Own(row.words()), &mut words);
    projection.value(primary, &words, Pinned::by(row))
}

impl<R: Record, T: Field + Key, A: ColumnKind> IndexColumns<R> for Column<R, T, A> {
    type Key = T;

    fn places(&self, each: &mut dyn FnMut(Place)) {
        each(self.place());
    }

    fn key(&self, primary: &R::Key, row: &RowReader<'_>) -> T {
        value(*self, primary, row)
    }
}

impl<R: Record, C: Codec<Value: Key>, A: ColumnKind> IndexColumns<R> for Coded<R, C, A> {
    type Key = C::Value;

    fn places(&self, each: &mut dyn FnMut(Place)) {
        each(self.stored().place());
    }

    fn key(&self, primary: &R::Key, row: &RowReader<'_>) -> C::Value {
        value(*self, primary, row)
    }
}

impl<R: Record, K: Key> IndexColumns<R> for KeyColumn<R, K> {
    type Key = K;

    fn places(&self, _each: &mut dyn FnMut(Place)) {}

    fn key_parts(&self, each: &mut dyn FnMut(usize)) {
        Projection::key_parts(self, &mut |part| each(part));
    }

    fn key(&self, primary: &R::Key, row: &RowReader<'_>) -> K {
        value(*self, primary, row)
    }
}

impl<R, T, A, const N: usize> IndexColumns<R> for Bounded<R, T, A, N>
where
    R: Record,
    T: LongKey<N> + 'static,
    A: ColumnKind,
{
    type Key = T::Key;

    fn places(&self, each: &mut dyn FnMut(Place)) {
        each(self.column().long_place());
    }

    fn limits(&self, each: &mut dyn FnMut(KeyLimit)) {
        each(KeyLimit::new(self.column().long_place(), self.column().called(), N));
    }

    fn key(&self, _primary: &R::Key, row: &RowReader<'_>) -> T::Key {
        T::key(self.column(), row)
    }
}

macro_rules! tuples_of_columns {
    ($($($name:ident $index:tt),+;)*) => {$(
        impl<R: Record, $($name: IndexColumns<R>),+> IndexColumns<R> for ($($name,)+)
        where
            ($($name::Key,)+): Key,
        {
            type Key = ($($name::Key,)+);

            fn places(&self, each: &mut dyn FnMut(Place)) {
                $(self.$index.places(each);)+
            }

            fn key_parts(&self, each: &mut dyn FnMut(usize)) {
                $(self.$index.key_parts(each);)+
            }

            fn limits(&self, each: &mut dyn FnMut(KeyLimit)) {
                $(self.$index.limits(each);)+
            }

            fn key(&self, primary: &R::Key, row: &RowReader<'_>) -> Self::Key {
                ($(self.$index.key(primary, row),)+)
            }
        }
    )*};
}

tuples_of_columns! {
    A 0, B 1;
    A 0, B 1, C 2;
    A 0, B 1, C 2, D 3;
}
