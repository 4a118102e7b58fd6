//! Numbers and texts as bytes of MANIFEST.

use crate::format::Malformed;
use crate::format::bytes::Reader;

/// Writes a number of `size` bytes.
pub(super) fn put(to: &mut Vec<u8>, size: usize, value: u64) {
    to.extend_from_slice(&value.to_le_bytes()[..size]);
}

/// Writes a text of at most 65,535 bytes.
pub(super) fn put_text(to: &mut Vec<u8>, text: &str) {
    put(to, 2, text.len() as u64);
    to.extend_from_slice(text.as_bytes());
}

/// Reads a text.
pub(super) fn take_text(from: &mut Reader<'_>, what: &str) -> Result<String, Malformed> {
    let length = from.number(2, what)? as usize;
    let at = from.offset();
    let bytes = from.take(length, what)?;
    match str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_string()),
        Err(error) => {
            let at = at + error.valid_up_to() as u64;
            Err(Malformed::new(at, format!("{what} is not UTF-8")))
        }
    }
}
