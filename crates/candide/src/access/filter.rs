//! A Bloom filter with one hash over the write set: false positives, no false negatives.

#![forbid(unsafe_code)]

/// The binary logarithm of the number of bits. 512 bits are one cache line; the write set of a
/// TPC-C order with ten lines sets few of these bits.
const BITS: u32 = 9;

/// A filter with one bit for each unit; units may share a bit.
#[derive(Debug, Default)]
pub(super) struct Filter([u64; 1 << (BITS - 6)]);

impl Filter {
    /// A filter that may have each unit.
    pub(super) const FULL: Filter = Filter([u64::MAX; 1 << (BITS - 6)]);

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn add(&mut self, address: u64) {
        let (word, bit) = place(address);
        self.0[word] |= bit;
    }

    /// Returns whether the unit may have been added. If `false`, the unit has not been added.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn may_have(&self, address: u64) -> bool {
        let (word, bit) = place(address);
        self.0[word] & bit != 0
    }
}

#[cfg_attr(not(debug_assertions), inline(always))]
fn place(address: u64) -> (usize, u64) {
    let number = mix(address) >> (u64::BITS - BITS);
    ((number >> 6) as usize, 1 << (number & 63))
}

/// Spreads an address over all bits, by a multiplication.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn mix(address: u64) -> u64 {
    address.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
