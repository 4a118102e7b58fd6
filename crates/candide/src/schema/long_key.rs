//! Columns of any length in the keys of secondary indexes, which keep a copy of at most so many
//! bytes of each value.

#![forbid(unsafe_code)]

use super::column::{Column, ColumnKind};
use super::column_type::ColumnType;
use super::key::Key;
use super::record::Record;
use super::row_words::RowReader;

/// The most bytes of a column of any length that an index can keep.
const INDEX_BYTES_MAX: usize = 240;

/// A type of columns of any length of which an index keeps at most `N` bytes.
#[diagnostic::on_unimplemented(
    message = "an index keeps a value of type `{Self}` whole, and not at most so many `bytes` of it",
    label = "a type of a fixed length",
    note = "`bytes` is the most that an index keeps of a column of type `String`, `Vec<u8>`, or an option of one"
)]
pub trait LongKey<const N: usize>: ColumnType {
    /// The column's part of the index's key: [`Text<N>`](crate::Text) for `String`,
    /// [`BytesUpTo<N>`](super::BytesUpTo) for `Vec<u8>`, and an option of one for an option.
    type Key: Key;

    /// Returns the key of a row, of which the column has at most `N` bytes.
    #[doc(hidden)]
    fn key<R: Record, A: ColumnKind>(column: Column<R, Self, A>, row: &RowReader<'_>) -> Self::Key;
}

/// A column of any length in the key of an index, which keeps at most `N` bytes of it:
/// [`Column::bytes`].
pub struct Bounded<R, T, A, const N: usize>(Column<R, T, A>);

impl<R, T, A, const N: usize> Clone for Bounded<R, T, A, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R, T, A, const N: usize> Copy for Bounded<R, T, A, N> {}

impl<R, T, A, const N: usize> std::fmt::Debug for Bounded<R, T, A, N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}, at most {N} bytes", self.0)
    }
}

impl<R, T, A, const N: usize> Bounded<R, T, A, N> {
    /// Returns the column.
    pub(super) fn column(&self) -> Column<R, T, A> {
        self.0
    }
}

impl<R: Record, T, A: ColumnKind> Column<R, T, A> {
    /// Returns this column of any length for an index that keeps at most `N` bytes of it, from 1 to
    /// 240. The index then refuses longer values
    /// ([`Abort::KeyTooLong`](crate::Abort::KeyTooLong)).
    ///
    /// ```
    /// use candide::{Abort, Database, IndexOptions, Record};
    ///
    /// #[derive(Record, Clone)]
    /// struct Page {
    ///     #[key]
    ///     id: u64,
    ///     title: String,
    /// }
    ///
    /// let db = Database::new();
    /// let pages = db.table::<Page>("pages")?;
    /// let title = Page::TITLE.bytes::<80>();
    /// let by_title = pages.create_index("by_title", title, IndexOptions::ordered())?;
    /// db.run(|tx| {
    ///     pages.insert(tx, Page { id: 1, title: "Candide".to_string() })?;
    ///     assert_eq!(by_title.get(tx, "Candide", Page::ID)?, Some(1));
    ///     assert_eq!(by_title.scan(tx, "C".."D", ()).count()?, 1);
    ///     let long = Page { id: 2, title: "x".repeat(81) };
    ///     assert_eq!(pages.insert(tx, long), Err(Abort::KeyTooLong));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), candide::Error>(())
    /// ```
    pub const fn bytes<const N: usize>(self) -> Bounded<R, T, A, N>
    where
        T: LongKey<N>,
    {
        const { assert!(N > 0 && N <= INDEX_BYTES_MAX, "an index keeps 1 to 240 bytes of a column") }
        Bounded(self)
    }
}
