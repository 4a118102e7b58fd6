//! The layout of a table: the number of columns, their width, and the columns that share a
//! timestamp.

use std::fmt;

use candide::schema::{Buffer, Field, IndexKind};
use candide::{Bytes, Group, Hashed, Ordered};
use serde::Serializer;

/// The largest number of columns that a layout can have.
pub const COLUMNS_MAX: usize = 10;

/// The value of a column: at least eight bytes, so that a counter fits at its head.
pub trait Value: Clone + Eq + fmt::Debug + Send + Sync + 'static {
    /// The number of bytes.
    const BYTES: usize;

    /// Returns the value whose byte number `index` is `byte(index)`.
    fn from_fn(byte: impl FnMut(usize) -> u8) -> Self;

    /// Returns the bytes of the value.
    fn bytes(&self) -> &[u8];

    /// Returns the counter in the first eight bytes.
    fn head(&self) -> u64 {
        head(self.bytes())
    }
}

/// Returns the counter in the first eight bytes.
pub(super) fn head(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |head| u64::from_le_bytes(*head))
}

impl<const N: usize> Value for Bytes<N> {
    const BYTES: usize = N;

    fn from_fn(byte: impl FnMut(usize) -> u8) -> Self {
        Bytes::from_fn(byte)
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        self.as_bytes()
    }
}

/// A text of 100 bytes.
impl Value for String {
    const BYTES: usize = 100;

    /// # Panics
    /// If the bytes are no text.
    fn from_fn(byte: impl FnMut(usize) -> u8) -> Self {
        String::from_utf8((0..Self::BYTES).map(byte).collect()).expect("characters, or a tag")
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        self.as_bytes()
    }
}

/// The values of a row, one for each column.
pub trait Values<V>: AsRef<[V]> + Copy + Eq + fmt::Debug + Send + Sync + 'static {
    /// The number of values.
    const COUNT: usize;

    /// Builds a row from the results of `value`, which is called with each index below
    /// [`COUNT`](Values::COUNT).
    fn from_fn(value: impl FnMut(usize) -> V) -> Self;
}

impl<V: Value + Copy, const N: usize> Values<V> for [V; N] {
    const COUNT: usize = N;

    fn from_fn(value: impl FnMut(usize) -> V) -> Self {
        std::array::from_fn(value)
    }
}

/// The columns of a table. Columns are assigned to the groups in rotation.
pub trait Layout: Copy + Eq + fmt::Debug + Send + Sync + 'static {
    /// The type of a column's value.
    type Value: Value + Field;
    /// The array of a row's values.
    type Values: Values<Self::Value>;
    /// The kind of index of a table, unless the table's options request an ordered index.
    type Index: IndexKind;
    /// The buffer of a row's words.
    type Image: Buffer;

    /// The row type's name.
    const NAME: &'static str;
    /// The column groups, each with a timestamp.
    const GROUPS: &'static [Group];
}

/// Makes layouts. Each has a name, a number of columns, their type, the kind of index, the number
/// of words of a row, the row type's name, and the column groups.
macro_rules! layouts {
    ($($(#[$doc:meta])* $layout:ident: $columns:literal of $value:ty, $index:ty,
        $words:literal words, $name:literal $groups:expr;)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $layout;

        impl Layout for $layout {
            type Value = $value;
            type Values = [$value; $columns];
            type Index = $index;
            type Image = [u64; $words];
            const NAME: &'static str = $name;
            const GROUPS: &'static [Group] = $groups;
        }
    )+};
}

layouts! {
    /// Ten columns of 100 bytes, the even ones under one timestamp and the odd ones under another.
    Wide: 10 of Bytes<100>, Hashed, 130 words,
        "UserRow" &[Group::new("even", 65), Group::new("odd", 65)];
    /// Ten columns of 100 bytes under three timestamps.
    WideInThirds: 10 of Bytes<100>, Hashed, 130 words,
        "ThirdsRow" &[Group::new("first", 52), Group::new("second", 39), Group::new("third", 39)];
    /// Ten columns of 10 bytes, the even ones under one timestamp and the odd ones under another.
    Narrow: 10 of Bytes<10>, Hashed, 20 words,
        "NarrowRow" &[Group::new("even", 10), Group::new("odd", 10)];
    /// Ten columns of 10 bytes under one timestamp.
    Joint: 10 of Bytes<10>, Hashed, 20 words,
        "JointRow" &[Group::new("all", 20)];
    /// The columns of [`Joint`] with an ordered index, so that keys can be scanned.
    JointInOrder: 10 of Bytes<10>, Ordered, 20 words,
        "JointInOrderRow" Joint::GROUPS;
    /// One column of 100 bytes.
    Single: 1 of Bytes<100>, Hashed, 13 words,
        "SingleRow" &[Group::new("all", 13)];
    /// One column of eight bytes, a word.
    Word: 1 of Bytes<8>, Hashed, 1 words,
        "WordRow" &[Group::new("all", 1)];
}

/// Describes a layout in a report.
pub(super) fn describe<L: Layout, S: Serializer>(_: &L, serializer: S) -> Result<S::Ok, S::Error> {
    let (columns, bytes, timestamps) = (L::Values::COUNT, L::Value::BYTES, L::GROUPS.len());
    let row = size_of::<L::Image>();
    serializer.collect_str(&format_args!(
        "{columns} columns of {bytes} bytes in {row}, {timestamps} timestamps"
    ))
}
