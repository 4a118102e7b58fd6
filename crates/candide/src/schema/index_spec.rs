//! Secondary indexes that every table of a row type has.

#![forbid(unsafe_code)]

use super::key_limit::KeyLimit;
use super::key_text::Show;
use super::place::Place;
use super::row_words::RowReader;

/// The kind of an index: hashed or ordered.
pub trait IndexKind: private::Sealed + 'static {
    /// Whether the index keeps its keys in order.
    #[doc(hidden)]
    const ORDERED: bool;
}

/// The kind of an index that can be scanned: an ordered one.
#[diagnostic::on_unimplemented(
    message = "keys that are found by their hash lie in no order, so ranges of them cannot be scanned",
    label = "a scan of hashed keys",
    note = "`#[record(ordered)]` on the row type has its tables keep their keys in order; `iter` goes through all rows of any table",
    note = "an index keeps its own keys in order by `#[index(ordered)]` or `IndexOptions::ordered`"
)]
pub trait InOrder: IndexKind {}

impl InOrder for Ordered {}

/// The kind of an index that finds keys by their hash. Such an index is the fastest for equality,
/// and has no order.
#[derive(Debug, Clone, Copy)]
pub enum Hashed {}

/// The kind of an index that keeps keys in order. Such an index finds keys by equality, and scans
/// ranges of keys in both directions.
#[derive(Debug, Clone, Copy)]
pub enum Ordered {}

impl IndexKind for Hashed {
    const ORDERED: bool = false;
}

impl IndexKind for Ordered {
    const ORDERED: bool = true;
}

/// A secondary index that every table of a row type has:
/// [`RowMeta::INDEXES`](crate::schema::RowMeta::INDEXES) lists them.
#[derive(Debug, Clone, Copy)]
pub struct IndexSpec {
    pub(crate) name: &'static str,
    pub(crate) unique: bool,
    pub(crate) ordered: bool,
    pub(crate) columns: &'static [Place],
    /// The places of its columns in the list of the row type's fields; empty if they are not known.
    pub(crate) fields: &'static [u16],
    pub(crate) key_words: usize,
    pub(crate) show_key: Show,
    /// The limits of its columns of any length.
    pub(crate) limits: &'static [KeyLimit],
    /// Appends the words of a row's index key to the vector, given the words of the row's primary
    /// key and the row.
    pub(crate) key: fn(&[u64], &RowReader<'_>, &mut Vec<u64>),
}

impl IndexSpec {
    /// Returns an index on `columns`, and perhaps on parts of the primary key, whose keys have
    /// `key_words` words. `key` appends the words of a row's index key to a vector, given the words
    /// of the row's primary key and the row. `show_key` is
    /// [`Key::show`](crate::Key::show) of the index key's type.
    pub const fn new<I: IndexKind>(
        name: &'static str,
        unique: bool,
        columns: &'static [Place],
        key_words: usize,
        show_key: Show,
        key: fn(&[u64], &RowReader<'_>, &mut Vec<u64>),
    ) -> IndexSpec {
        IndexSpec {
            name,
            unique,
            ordered: I::ORDERED,
            columns,
            fields: &[],
            key_words,
            show_key,
            limits: &[],
            key,
        }
    }

    /// Returns the index with the places of its columns in
    /// [`RowMeta::FIELDS`](crate::schema::RowMeta::FIELDS), which files and messages have.
    #[must_use]
    pub const fn with_fields(self, fields: &'static [u16]) -> IndexSpec {
        IndexSpec { fields, ..self }
    }

    /// Returns the index with the most bytes that it keeps of its columns of any length. `key` is
    /// called for no row with a longer value.
    #[doc(hidden)]
    #[must_use]
    pub const fn with_limits(self, limits: &'static [KeyLimit]) -> IndexSpec {
        IndexSpec { limits, ..self }
    }
}

mod private {
    pub trait Sealed {}
    impl Sealed for super::Hashed {}
    impl Sealed for super::Ordered {}
}
