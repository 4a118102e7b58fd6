//! Hashes of schemas, the same in every build.

#![forbid(unsafe_code)]

/// The first value of hashes.
pub(crate) const HASH_SEED: u64 = 0xcbf2_9ce4_8422_2325;

/// Adds a byte to an FNV-1a hash, or a larger number in one step as if it were a byte.
pub(crate) const fn mix(hash: u64, number: u64) -> u64 {
    (hash ^ number).wrapping_mul(0x0000_0100_0000_01b3)
}

/// Adds the bytes of a text, and a zero byte after them, to a hash.
pub(crate) const fn mix_text(mut hash: u64, text: &str) -> u64 {
    let (bytes, mut index) = (text.as_bytes(), 0);
    while index < bytes.len() {
        hash = mix(hash, bytes[index] as u64);
        index += 1;
    }
    mix(hash, 0)
}

/// Returns a hash of numbers that is the same in every build.
pub(crate) const fn hash_numbers(numbers: &[u64]) -> u64 {
    let (mut hash, mut index) = (HASH_SEED, 0);
    while index < numbers.len() {
        hash = mix(hash, numbers[index]);
        index += 1;
    }
    hash
}
