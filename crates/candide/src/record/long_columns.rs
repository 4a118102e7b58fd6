//! Strings and bytes of any length as columns.

#![forbid(unsafe_code)]

use super::long;
use crate::error::Abort;
use crate::schema::column_type::ColumnType;
use crate::schema::hash::hash_numbers;
use crate::schema::packing::Size;
use crate::schema::{
    Column, ColumnKind, FieldType, LongUpdate, LongWord, Pinned, Place, Projection, Record,
    RowMeta, RowReader, RowWriter, Sink, Unit, Updatable, Words,
};

/// A type of columns of any length.
trait Long: Sized {
    /// Returns the bytes of the value; `None` of the empty one, and of none of an option.
    fn bytes(&self) -> Option<&[u8]>;

    /// Returns the value with these bytes.
    fn of_bytes(bytes: Option<Vec<u8>>) -> Self;

    /// Returns the value that a word has or names. The word is that of a row which is present, and
    /// has been read in this pin.
    fn of_word(word: u64, pin: Pinned<'_>) -> Self {
        Self::of_bytes((word != long::NOTHING).then(|| {
            let mut bytes = Vec::with_capacity(long::len(word, &pin));
            long::append(word, &pin, &mut bytes);
            bytes
        }))
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("made of a str, read back whole")
}

fn unless_empty(bytes: &[u8]) -> Option<&[u8]> {
    if bytes.is_empty() { None } else { Some(bytes) }
}

impl Long for String {
    fn bytes(&self) -> Option<&[u8]> {
        unless_empty(self.as_bytes())
    }

    fn of_bytes(bytes: Option<Vec<u8>>) -> String {
        bytes.map(text).unwrap_or_default()
    }
}

impl Long for Vec<u8> {
    fn bytes(&self) -> Option<&[u8]> {
        unless_empty(self)
    }

    fn of_bytes(bytes: Option<Vec<u8>>) -> Vec<u8> {
        bytes.unwrap_or_default()
    }
}

impl Long for Option<String> {
    fn bytes(&self) -> Option<&[u8]> {
        self.as_deref().map(str::as_bytes)
    }

    fn of_bytes(bytes: Option<Vec<u8>>) -> Option<String> {
        bytes.map(text)
    }
}

impl Long for Option<Vec<u8>> {
    fn bytes(&self) -> Option<&[u8]> {
        self.as_deref()
    }

    fn of_bytes(bytes: Option<Vec<u8>>) -> Option<Vec<u8>> {
        bytes
    }
}

macro_rules! long_columns {
    ($($long:ty, $number:literal, $ty:expr;)*) => {$(
        impl ColumnType for $long {
            const SIZE: Size = Size::WORD;
            const LAYOUT: u64 = hash_numbers(&[u64::BITS as u64, u64::MAX, $number]);
            const TYPE: &'static FieldType = $ty;

            #[inline]
            fn put<R: Record, A: ColumnKind>(
                &self,
                column: Column<R, Self, A>,
                row: &mut RowWriter<'_>,
            ) {
                column.put(row, self);
            }

            #[inline]
            fn take<R: Record, A: ColumnKind>(
                column: Column<R, Self, A>,
                row: &RowReader<'_>,
            ) -> Self {
                column.take(row)
            }
        }

        impl<R: Record, A: ColumnKind> Column<R, $long, A> {
            /// Returns the column's name.
            pub const fn name(&self) -> &'static str {
                self.called()
            }

            /// Writes a value into a row.
            ///
            /// # Panics
            /// If the row type has no such column.
            pub fn put(&self, row: &mut RowWriter<'_>, value: &$long) {
                row.put_long(self.first_word(), self.called(), Long::bytes(value));
            }

            /// Reads the value from a row.
            ///
            /// # Panics
            /// If the row type has no such column, or the row is none that a table reads.
            pub fn take(&self, row: &RowReader<'_>) -> $long {
                Long::of_word(row.long_word(self.first_word(), self.called()), Pinned::by(row))
            }
        }

        impl<R: Record, A: ColumnKind> Projection<R> for Column<R, $long, A> {
            type Value = $long;
            type Words = LongWord;
            const EMPTY: LongWord = LongWord(long::NOTHING);
            const INDEXED: bool = A::INDEXED;
            const LONG: bool = true;
            const COLUMNS: usize = 1;
            const ONE_GROUP: bool = true;

            #[inline(always)]
            fn column_groups(&self) -> u64 {
                1 << self.group
            }

            #[inline(always)]
            fn copy(&self, unit: Unit, from: Words<'_>, into: &mut LongWord) {
                if unit.holds(self.group) {
                    into.0 =
                        from.get(unit.offset_of(R::GROUPS, self.group) + usize::from(self.word));
                }
            }

            #[inline(always)]
            fn copy_all(&self, start: usize, from: Words<'_>, into: &mut LongWord) {
                into.0 = from.get(self.first_word() - start);
            }

            #[inline(always)]
            fn runs(&self, unit: Unit, each: &mut impl FnMut(usize, usize)) {
                if unit.holds(self.group) {
                    each(unit.offset_of(R::GROUPS, self.group) + usize::from(self.word), 1);
                }
            }

            fn places(&self, each: &mut impl FnMut(Place)) {
                each(self.long_place());
            }

            fn value(&self, _key: &R::Key, words: &LongWord, pin: Pinned<'_>) -> $long {
                // The word is one of such a column.
                self.long_place();
                Long::of_word(words.0, pin)
            }

            fn assign(
                &self,
                _key: &R::Key,
                value: &$long,
                sink: &mut impl Sink,
            ) -> Result<(), Abort> {
                let bytes = Long::bytes(value);
                let word = bytes.map_or(Ok(long::NOTHING), |bytes| sink.keep(self.called(), bytes));
                let word = word?;
                sink.set(self.long_place(), |_| word)
            }
        }

        impl<R: Record, A: ColumnKind> Column<R, $long, A> {
            fn long_update<V>(self, value: V, bytes: fn(&V) -> Option<&[u8]>) -> LongUpdate<R, V> {
                LongUpdate::new((self.long_place(), self.called()), value, bytes)
            }
        }
    )*};
}

long_columns! {
    String, 1, &FieldType::LongText;
    Vec<u8>, 2, &FieldType::LongBytes;
    Option<String>, 3, &FieldType::Optional(&FieldType::LongText);
    Option<Vec<u8>>, 4, &FieldType::Optional(&FieldType::LongBytes);
}

impl<R: Record, A: Updatable> Column<R, String, A> {
    /// Sets the column to a copy of a text. If it has more than 16 MiB, the operation that takes
    /// the update fails with [`Abort::TextTooLong`].
    pub fn set<V: AsRef<str>>(self, value: V) -> LongUpdate<R, V> {
        self.long_update(value, |value| unless_empty(value.as_ref().as_bytes()))
    }
}

impl<R: Record, A: Updatable> Column<R, Vec<u8>, A> {
    /// Sets the column to a copy of bytes. If they are more than 16 MiB, the operation that takes
    /// the update fails with [`Abort::TextTooLong`].
    pub fn set<V: AsRef<[u8]>>(self, value: V) -> LongUpdate<R, V> {
        self.long_update(value, |value| unless_empty(value.as_ref()))
    }
}

impl<R: Record, A: Updatable> Column<R, Option<String>, A> {
    /// Sets the column to a copy of a text, or to none. If the text has more than 16 MiB, the
    /// operation that takes the update fails with [`Abort::TextTooLong`].
    pub fn set(self, value: Option<&str>) -> LongUpdate<R, Option<&str>> {
        self.long_update(value, |value| value.map(str::as_bytes))
    }
}

impl<R: Record, A: Updatable> Column<R, Option<Vec<u8>>, A> {
    /// Sets the column to a copy of bytes, or to none. If they are more than 16 MiB, the operation
    /// that takes the update fails with [`Abort::TextTooLong`].
    pub fn set(self, value: Option<&[u8]>) -> LongUpdate<R, Option<&[u8]>> {
        self.long_update(value, |value| *value)
    }
}
