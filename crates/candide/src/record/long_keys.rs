//! Strings and bytes of any length in the keys of indexes, as copies.

#![forbid(unsafe_code)]

use super::long;
use crate::schema::{BytesUpTo, Column, ColumnKind, LongKey, Pinned, Record, RowReader, Text};

/// Calls `with` with the bytes of a column; `None` if it is the empty value, or none of an option.
fn with_value<R: Record, T, A: ColumnKind, V>(
    column: Column<R, T, A>,
    row: &RowReader<'_>,
    with: impl FnOnce(Option<&[u8]>) -> V,
) -> V {
    match row.long_word(column.first_word(), column.called()) {
        long::NOTHING => with(None),
        // The reader's words have been read in its pin.
        word => long::with_bytes(word, &Pinned::by(row), |bytes| with(Some(bytes))),
    }
}

/// Returns the key of bytes that an index has found to be within its limit.
fn bytes_key<const N: usize>(bytes: &[u8]) -> BytesUpTo<N> {
    BytesUpTo::new(bytes).expect("an index makes keys of what is within its limit")
}

/// Returns the key of a text that an index has found to be within its limit.
fn text_key<const N: usize>(text: &[u8]) -> Text<N> {
    let mut padded = [0; N];
    padded[..text.len()].copy_from_slice(text);
    Text::from_parts(padded, text.len() as u16)
}

macro_rules! long_keys {
    ($($long:ty => $key:ty, $of:expr;)*) => {$(
        impl<const N: usize> LongKey<N> for $long {
            type Key = $key;

            fn key<R: Record, A: ColumnKind>(
                column: Column<R, $long, A>,
                row: &RowReader<'_>,
            ) -> $key {
                with_value(column, row, $of)
            }
        }
    )*};
}

long_keys! {
    String => Text<N>, |text| text_key(text.unwrap_or_default());
    Vec<u8> => BytesUpTo<N>, |bytes| bytes_key(bytes.unwrap_or_default());
    Option<String> => Option<Text<N>>, |text| text.map(text_key);
    Option<Vec<u8>> => Option<BytesUpTo<N>>, |bytes| bytes.map(bytes_key);
}
