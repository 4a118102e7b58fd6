//! The contents of rows.

use candide::Bytes;
use candide::schema::{Buffer, Field};

/// The number of bytes in a column of YCSB.
pub(crate) const COLUMN_BYTES: usize = 100;

/// A column of YCSB.
pub(crate) type Column = Bytes<COLUMN_BYTES>;

/// The contents of a row besides its key, in the forms that peers need.
pub trait Value: Field + PartialEq + std::fmt::Debug {
    /// The value as bytes.
    type Bytes: AsRef<[u8]>;
    /// The value as words, for Candide.
    type Image: Buffer;

    /// Returns the value's bytes. All values of a type have the same number of bytes.
    fn to_bytes(&self) -> Self::Bytes;

    /// Returns the value whose bytes are `bytes`.
    ///
    /// # Panics
    /// If the length of `bytes` is not that of the type's values.
    fn from_bytes(bytes: &[u8]) -> Self;
}

impl Value for i64 {
    type Bytes = [u8; 8];
    type Image = [u64; 1];

    #[inline]
    fn to_bytes(&self) -> [u8; 8] {
        self.to_le_bytes()
    }

    #[inline]
    fn from_bytes(bytes: &[u8]) -> i64 {
        i64::from_le_bytes(bytes.try_into().expect("eight bytes"))
    }
}

impl Value for Column {
    type Bytes = [u8; COLUMN_BYTES];
    type Image = [u64; COLUMN_BYTES.div_ceil(8)];

    #[inline]
    fn to_bytes(&self) -> [u8; COLUMN_BYTES] {
        *self.as_bytes()
    }

    #[inline]
    fn from_bytes(bytes: &[u8]) -> Column {
        Bytes::new(bytes.try_into().expect("a hundred bytes"))
    }
}
