//! What rows hold.

use candide::{Buffer, Bytes, Field};

/// Bytes in a column of YCSB.
pub(crate) const COLUMN_BYTES: usize = 100;

/// A column of YCSB.
pub(crate) type Column = Bytes<COLUMN_BYTES>;

/// What a row holds besides its key, in the forms that peers want.
pub trait Value: Field + PartialEq + std::fmt::Debug {
    /// As bytes.
    type Bytes: AsRef<[u8]>;
    /// As words: Candide's.
    type Image: Buffer;

    /// Its bytes, as many for all values of the type.
    fn to_bytes(&self) -> Self::Bytes;

    /// The value whose bytes these are.
    ///
    /// # Panics
    /// If there are too many or too few.
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
