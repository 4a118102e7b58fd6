//! Ways of damaging bytes, each of which a decoder must notice.

use candide_log::format::Malformed;
use std::fmt::Debug;

/// Checks that bytes are refused after any single bit has been flipped.
pub fn every_flip_is_refused<T: Debug>(
    bytes: &[u8],
    decode: impl Fn(&[u8]) -> Result<T, Malformed>,
) {
    let mut damaged = bytes.to_vec();
    for bit in 0..8 * bytes.len() {
        damaged[bit / 8] ^= 1 << (bit % 8);
        if let Ok(decoded) = decode(&damaged) {
            panic!("bit {} of byte {} is flipped, and yet: {decoded:?}", bit % 8, bit / 8);
        }
        damaged[bit / 8] ^= 1 << (bit % 8);
    }
    decode(&damaged).expect("all bits are as they were");
}

/// Checks that bytes are refused when any number of bytes is missing at their end.
pub fn every_truncation_is_refused<T: Debug>(
    bytes: &[u8],
    decode: impl Fn(&[u8]) -> Result<T, Malformed>,
) {
    for length in 0..bytes.len() {
        match decode(&bytes[..length]) {
            Ok(decoded) => panic!("{length} bytes of {} are {decoded:?}", bytes.len()),
            Err(error) => assert!(error.offset <= bytes.len() as u64, "{length}: {error}"),
        }
    }
}

/// Writes the checksum of the bytes before into the last 4.
pub fn seal_again(bytes: &mut [u8]) {
    let (contents, crc) = bytes.split_at_mut(bytes.len() - 4);
    crc.copy_from_slice(&crc32c::crc32c(contents).to_le_bytes());
}

/// Stores a number in some bytes.
pub fn store(bytes: &mut [u8], offset: usize, size: usize, value: u64) {
    bytes[offset..offset + size].copy_from_slice(&value.to_le_bytes()[..size]);
}

/// Checks the place and the text of an error.
#[track_caller]
pub fn expect<T: Debug>(result: Result<T, Malformed>, offset: u64, what: &str) {
    let error = result.expect_err(what);
    assert_eq!((error.offset, error.what.as_ref()), (offset, what));
}
