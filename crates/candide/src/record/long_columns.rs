//! Strings and bytes of any length as columns.

#![forbid(unsafe_code)]

use super::long;
use crate::error::Abort;
use crate::schema::codec::Undecoded;
use crate::schema::column_type::ColumnType;
use crate::schema::field_type::LongCheck;
use crate::schema::hash::hash_numbers;
use crate::schema::packing::Size;
use crate::schema::{
    Column, ColumnKind, FieldType, LongColumn, LongSink, LongUpdate, LongWord, Pinned, Place,
    Projection, Record, RowMeta, RowReader, RowWriter, Sink, Unit, Updatable, Words,
};
use std::borrow::Cow;

/// The bytes of a value; `None` of the empty one, and of none of an option.
pub type Bytes<'v> = Option<Cow<'v, [u8]>>;

/// A type of columns of any length.
pub trait Long: Sized {
    /// The value as a closure gets it.
    type View<'v>;

    /// Whether the column may have bytes that are none of a value of this type.
    const CODED: bool = false;

    /// Returns the bytes of the value. If none are `wanted`, others stand for them.
    ///
    /// # Errors
    /// The reason why the value has none.
    fn bytes(&self, wanted: bool) -> Result<Bytes<'_>, String>;

    /// Returns the value with these bytes.
    ///
    /// # Errors
    /// The reason why there is none.
    fn of_bytes(bytes: Option<&[u8]>) -> Result<Self, String>;

    /// Returns the value with these bytes, as a closure gets it.
    fn view(bytes: Option<&[u8]>) -> Self::View<'_>;

    /// Writes the value into a row.
    fn put(&self, column: LongColumn, row: &mut RowWriter<'_>) {
        match self.bytes(row.wants_bytes(column)) {
            Ok(bytes) => row.put_long(column, bytes.as_deref()),
            Err(problem) => row.refuse_long(column, problem),
        }
    }

    /// Keeps the value's bytes, and returns the word for them.
    fn keep(&self, column: LongColumn, sink: &mut impl LongSink) -> Result<u64, Abort> {
        match self.bytes(sink.wants_bytes()) {
            Ok(None) => Ok(long::NOTHING),
            Ok(Some(bytes)) => sink.keep(column, &bytes),
            Err(problem) => Err(sink.refuse(column, problem)),
        }
    }

    /// Returns the value that a word has or names. The word is that of a row which is present, and
    /// has been read in this pin.
    ///
    /// # Errors
    /// As [`Long::of_bytes`].
    fn of_word(word: u64, pin: Pinned<'_>) -> Result<Self, String> {
        match word {
            long::NOTHING => Self::of_bytes(None),
            word => long::with_bytes(word, &pin, |bytes| Self::of_bytes(Some(bytes))),
        }
    }

    /// Returns the value that a word has or names, as a closure gets it. The word is that of a row
    /// which is present, and has been read in this pin.
    fn view_of<'v>(word: &'v LongWord, pin: Pinned<'v>) -> Self::View<'v> {
        Self::view((word.get() != long::NOTHING).then(|| long::bytes(word, pin)))
    }

    /// Returns the value of a column in a row, or the reason why it has none.
    fn of_row(word: usize, name: &str, row: &RowReader<'_>) -> Result<Self, String> {
        Self::of_word(row.long_word(word, name), Pinned::by(row))
    }

    /// Panics, since a column has bytes that are none of a value.
    fn refused(name: &str, problem: &str) -> Self {
        panic!("column `{name}` has a value that its type refuses: {problem}")
    }
}

/// Returns the text that a column's bytes are.
///
/// # Panics
/// If they are none, which only a row type can bring about that has columns of two types over one
/// word.
pub(super) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("made of a str, read back whole")
}

fn unless_empty(bytes: &[u8]) -> Option<&[u8]> {
    if bytes.is_empty() { None } else { Some(bytes) }
}

fn borrowed(bytes: Option<&[u8]>) -> Result<Bytes<'_>, String> {
    Ok(bytes.map(Cow::Borrowed))
}

impl Long for String {
    type View<'v> = &'v str;

    fn bytes(&self, _: bool) -> Result<Bytes<'_>, String> {
        borrowed(unless_empty(String::as_bytes(self)))
    }

    fn of_bytes(bytes: Option<&[u8]>) -> Result<String, String> {
        Ok(<String as Long>::view(bytes).to_owned())
    }

    fn view(bytes: Option<&[u8]>) -> &str {
        bytes.map_or("", text)
    }
}

impl Long for Vec<u8> {
    type View<'v> = &'v [u8];

    fn bytes(&self, _: bool) -> Result<Bytes<'_>, String> {
        borrowed(unless_empty(self))
    }

    fn of_bytes(bytes: Option<&[u8]>) -> Result<Vec<u8>, String> {
        Ok(bytes.unwrap_or_default().to_vec())
    }

    fn view(bytes: Option<&[u8]>) -> &[u8] {
        bytes.unwrap_or_default()
    }
}

impl Long for Option<String> {
    type View<'v> = Option<&'v str>;

    fn bytes(&self, _: bool) -> Result<Bytes<'_>, String> {
        borrowed(self.as_deref().map(str::as_bytes))
    }

    fn of_bytes(bytes: Option<&[u8]>) -> Result<Option<String>, String> {
        Ok(Self::view(bytes).map(str::to_owned))
    }

    fn view(bytes: Option<&[u8]>) -> Option<&str> {
        bytes.map(text)
    }
}

impl Long for Option<Vec<u8>> {
    type View<'v> = Option<&'v [u8]>;

    fn bytes(&self, _: bool) -> Result<Bytes<'_>, String> {
        borrowed(self.as_deref())
    }

    fn of_bytes(bytes: Option<&[u8]>) -> Result<Option<Vec<u8>>, String> {
        Ok(bytes.map(<[u8]>::to_vec))
    }

    fn view(bytes: Option<&[u8]>) -> Option<&[u8]> {
        bytes
    }
}

macro_rules! long_columns {
    ($([$($generic:tt)*] $long:ty, $number:literal, $ty:expr;)*) => {$(
        impl<$($generic)*> ColumnType for $long {
            const SIZE: Size = Size::WORD;
            const LAYOUT: u64 = hash_numbers(&[u64::BITS as u64, u64::MAX, $number]);
            const TYPE: &'static FieldType = $ty;
            const CHECK: Option<LongCheck> = match <$long as Long>::CODED {
                true => Some(|row, word| {
                    <$long as Long>::of_row(word, "of JSON", row).map(drop)
                }),
                false => None,
            };

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

        impl<R: Record, A: ColumnKind, $($generic)*> Column<R, $long, A> {
            /// Returns the column's name.
            pub const fn name(&self) -> &'static str {
                self.called()
            }

            /// Writes a value into a row.
            ///
            /// # Panics
            /// If the row type has no such column.
            pub fn put(&self, row: &mut RowWriter<'_>, value: &$long) {
                Long::put(value, self.as_long(), row);
            }

            /// Reads the value from a row.
            ///
            /// # Panics
            /// If the row type has no such column, or the row is none that a table reads; of JSON,
            /// if the stored text is none of a value of the type.
            pub fn take(&self, row: &RowReader<'_>) -> $long {
                let value = <$long as Long>::of_row(self.first_word(), self.called(), row);
                value.unwrap_or_else(|problem| <$long as Long>::refused(self.called(), &problem))
            }
        }

        impl<R: Record, A: ColumnKind, $($generic)*> Projection<R> for Column<R, $long, A> {
            type Value = $long;
            type View<'v> = <$long as Long>::View<'v>;
            type Words = LongWord;
            const EMPTY: LongWord = LongWord::new(long::NOTHING);
            const INDEXED: bool = A::INDEXED;
            const CODED: bool = <$long as Long>::CODED;
            const LONG: bool = true;
            const COLUMNS: usize = 1;
            const ONE_GROUP: bool = true;

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn column_groups(&self) -> u64 {
                1 << self.group
            }

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn copy(&self, unit: Unit, from: Words<'_>, into: &mut LongWord) {
                if unit.holds(self.group) {
                    let start = unit.offset_of(R::GROUPS, self.group);
                    *into = LongWord::new(from.get(start + usize::from(self.word)));
                }
            }

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn copy_all(&self, start: usize, from: Words<'_>, into: &mut LongWord) {
                *into = LongWord::new(from.get(self.first_word() - start));
            }

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn runs(&self, unit: Unit, each: &mut impl FnMut(usize, usize)) {
                if unit.holds(self.group) {
                    each(unit.offset_of(R::GROUPS, self.group) + usize::from(self.word), 1);
                }
            }

            fn places(&self, each: &mut impl FnMut(Place)) {
                each(self.long_place());
            }

            fn long_words(&self, words: &LongWord, each: &mut impl FnMut(LongColumn, u64)) {
                // The word is one of such a column.
                self.long_place();
                each(self.as_long(), words.get());
            }

            fn value(&self, key: &R::Key, words: &LongWord, pin: Pinned<'_>) -> $long {
                self.decode(key, words, pin).unwrap_or_else(|undecoded| {
                    <$long as Long>::refused(undecoded.column, &undecoded.problem)
                })
            }

            fn decode(
                &self,
                _key: &R::Key,
                words: &LongWord,
                pin: Pinned<'_>,
            ) -> Result<$long, Undecoded> {
                // The word is one of such a column.
                self.long_place();
                let column = self.called();
                <$long as Long>::of_word(words.get(), pin)
                    .map_err(|problem| Undecoded { column, problem })
            }

            #[inline]
            fn view<'v>(
                &self,
                _key: &R::Key,
                words: &'v LongWord,
                pin: Pinned<'v>,
            ) -> Result<Self::View<'v>, Undecoded> {
                // The word is one of such a column.
                self.long_place();
                Ok(<$long as Long>::view_of(words, pin))
            }

            fn assign(
                &self,
                _key: &R::Key,
                value: &$long,
                sink: &mut impl Sink,
            ) -> Result<(), Abort> {
                let word = Long::keep(value, self.as_long(), sink)?;
                sink.set(self.long_place(), |_| word)
            }
        }
    )*};
}
#[cfg(feature = "json")]
pub(super) use long_columns;

long_columns! {
    [] String, 1, &FieldType::LongText;
    [] Vec<u8>, 2, &FieldType::LongBytes;
    [] Option<String>, 3, &FieldType::Optional(&FieldType::LongText);
    [] Option<Vec<u8>>, 4, &FieldType::Optional(&FieldType::LongBytes);
}

impl<R: Record, A: ColumnKind> Column<R, String, A> {
    fn update<V: AsRef<str>>(self, value: V) -> LongUpdate<R, V> {
        LongUpdate::new((self.long_place(), self.called()), value, |value| {
            Ok(unless_empty(value.as_ref().as_bytes()))
        })
    }

    /// Sets the column to a copy of a text. If it has more than 16 MiB, the operation that takes
    /// the update fails with [`Abort::TextTooLong`].
    pub fn set<V: AsRef<str>>(self, value: V) -> LongUpdate<R, V>
    where
        A: Updatable,
    {
        self.update(value)
    }

    /// Guards the transaction: if the column has another text when the transaction commits, after
    /// the updates before this one, the transaction fails with [`Abort::Guard`] and has no effect.
    /// The text is compared under the lock, so a change of it before does not make the transaction
    /// run again.
    ///
    /// ```
    /// use candide::{Abort, Database, Record};
    ///
    /// #[derive(Record, Clone)]
    /// struct Page { #[key] id: u64, title: String }
    ///
    /// let db = Database::new();
    /// let pages = db.table::<Page>("pages")?;
    /// db.run(|tx| pages.insert(tx, Page { id: 1, title: "Candid".to_string() }))?;
    /// let correct = || {
    ///     let change = (Page::TITLE.equals("Candid"), Page::TITLE.set("Candide"));
    ///     db.run(|tx| pages.update(tx, 1, change))
    /// };
    /// assert_eq!((correct(), correct()), (Ok(()), Err(Abort::Guard)));
    /// # Ok::<(), candide::Error>(())
    /// ```
    pub fn equals<V: AsRef<str>>(self, value: V) -> LongUpdate<R, V> {
        self.update(value).guard()
    }

    /// Guards the transaction as [`equals`](Self::equals) does: the text must be empty.
    pub fn is_empty(self) -> LongUpdate<R, &'static str> {
        self.equals("")
    }
}

impl<R: Record, A: ColumnKind> Column<R, Vec<u8>, A> {
    fn update<V: AsRef<[u8]>>(self, value: V) -> LongUpdate<R, V> {
        LongUpdate::new((self.long_place(), self.called()), value, |value| {
            Ok(unless_empty(value.as_ref()))
        })
    }

    /// Sets the column to a copy of bytes. If they are more than 16 MiB, the operation that takes
    /// the update fails with [`Abort::TextTooLong`].
    pub fn set<V: AsRef<[u8]>>(self, value: V) -> LongUpdate<R, V>
    where
        A: Updatable,
    {
        self.update(value)
    }

    /// Guards the transaction: if the column has other bytes when the transaction commits, the
    /// transaction fails with [`Abort::Guard`]. As the guard of a [`String`] column.
    pub fn equals<V: AsRef<[u8]>>(self, value: V) -> LongUpdate<R, V> {
        self.update(value).guard()
    }

    /// Guards the transaction as [`equals`](Self::equals) does: there must be no bytes.
    pub fn is_empty(self) -> LongUpdate<R, &'static [u8]> {
        self.equals(&[])
    }
}

impl<R: Record, A: ColumnKind> Column<R, Option<String>, A> {
    fn update(self, value: Option<&str>) -> LongUpdate<R, Option<&str>> {
        LongUpdate::new((self.long_place(), self.called()), value, |value| {
            Ok(value.map(str::as_bytes))
        })
    }

    /// Sets the column to a copy of a text, or to none. If the text has more than 16 MiB, the
    /// operation that takes the update fails with [`Abort::TextTooLong`].
    pub fn set(self, value: Option<&str>) -> LongUpdate<R, Option<&str>>
    where
        A: Updatable,
    {
        self.update(value)
    }

    /// Guards the transaction: if the column has another text when the transaction commits, or one
    /// where `value` is none, or none where `value` is one, the transaction fails with
    /// [`Abort::Guard`]. As the guard of a [`String`] column.
    pub fn equals(self, value: Option<&str>) -> LongUpdate<R, Option<&str>> {
        self.update(value).guard()
    }
}

impl<R: Record, A: ColumnKind> Column<R, Option<Vec<u8>>, A> {
    fn update(self, value: Option<&[u8]>) -> LongUpdate<R, Option<&[u8]>> {
        LongUpdate::new((self.long_place(), self.called()), value, |value| Ok(*value))
    }

    /// Sets the column to a copy of bytes, or to none. If they are more than 16 MiB, the operation
    /// that takes the update fails with [`Abort::TextTooLong`].
    pub fn set(self, value: Option<&[u8]>) -> LongUpdate<R, Option<&[u8]>>
    where
        A: Updatable,
    {
        self.update(value)
    }

    /// Guards the transaction: if the column has other bytes when the transaction commits, or some
    /// where `value` is none, or none where `value` has some, the transaction fails with
    /// [`Abort::Guard`]. As the guard of a [`String`] column.
    pub fn equals(self, value: Option<&[u8]>) -> LongUpdate<R, Option<&[u8]>> {
        self.update(value).guard()
    }
}
