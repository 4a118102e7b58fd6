//! Operations of derived code on columns.

#![forbid(unsafe_code)]

use super::column::{Column, ColumnKind};
use super::field::Field;
use super::field_type::{FieldType, LongCheck};
use super::nested::{part_word, take_part};
use super::packing::Size;
use super::record::Record;
use super::row_words::{RowReader, RowWriter};

/// The operations of derived code on columns of a type. Derived code calls each one as `<T as
/// ColumnType>::…`. So if columns cannot have the type `T`, the compiler reports this once, and not
/// at each operation.
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
pub trait ColumnType: Sized {
    /// The size of columns of this type.
    const SIZE: Size;
    /// [`Field::LAYOUT`], for what has a part of this type.
    const LAYOUT: u64;
    /// [`Field::TYPE`], for what has a part of this type.
    const TYPE: &'static FieldType;

    /// The check of stored values, of a type that stores them as another one of any length.
    const CHECK: Option<LongCheck> = None;

    /// Writes a value into a row.
    fn put<R: Record, A: ColumnKind>(&self, column: Column<R, Self, A>, row: &mut RowWriter<'_>);

    /// Reads the value from a row.
    fn take<R: Record, A: ColumnKind>(column: Column<R, Self, A>, row: &RowReader<'_>) -> Self;
}

impl<T: Field> ColumnType for T {
    const SIZE: Size = Size { bits: T::BITS, words: T::WORDS };
    const LAYOUT: u64 = T::LAYOUT;
    const TYPE: &'static FieldType = T::TYPE;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn put<R: Record, A: ColumnKind>(&self, column: Column<R, T, A>, row: &mut RowWriter<'_>) {
        column.put(row, self);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn take<R: Record, A: ColumnKind>(column: Column<R, T, A>, row: &RowReader<'_>) -> T {
        column.take(row)
    }
}

/// The operations of derived code on parts of structs and of variants, as [`ColumnType`] has those
/// on columns.
#[diagnostic::on_unimplemented(
    message = "the trait `Field` is not implemented for `{Self}`: a part cannot have this type",
    label = "not a type for parts of columns",
    note = "parts have the integers, `f32`, `f64`, `bool`, `char`, `candide::Bytes<N>`, `candide::Text<N>`, times and addresses of the \
            standard library, types that derive `candide::Key` or `candide::Field`, and options and arrays of these",
    note = "parts have a fixed size: use `candide::Text<N>` for `String` and `candide::Bytes<N>` for `Vec<u8>`, or make it a column of the row; \
            for a struct or enum of your own use `#[derive(candide::Field)]`, and for a type of another crate a struct of one field that \
            derives `candide::Key`; features of `candide` have the types of `uuid`, `jiff`, `chrono` and `rust_decimal`"
)]
pub trait FieldPart: Sized {
    /// The size of parts of this type.
    const SIZE: Size;
    /// [`Field::SIGNED`], for a struct of one part.
    const SIGNED: bool;
    /// [`Field::LAYOUT`], for what has a part of this type.
    const LAYOUT: u64;
    /// [`Field::TYPE`], for what has a part of this type.
    const TYPE: &'static FieldType;

    /// Returns what a part at `place` has in word `index` of the whole.
    fn part_word(&self, place: (usize, u32), index: usize) -> u64;

    /// Returns the part at `place` of the whole that `words` hold.
    fn take_part(words: &[u64], place: (usize, u32)) -> Self;
}

impl<T: Field> FieldPart for T {
    const SIZE: Size = Size { bits: T::BITS, words: T::WORDS };
    const SIGNED: bool = T::SIGNED;
    const LAYOUT: u64 = T::LAYOUT;
    const TYPE: &'static FieldType = T::TYPE;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn part_word(&self, place: (usize, u32), index: usize) -> u64 {
        part_word(self, place, index)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn take_part(words: &[u64], place: (usize, u32)) -> T {
        take_part(words, place)
    }
}
