//! A set of units that forgets which they were, but not that one was not among them.

#![forbid(unsafe_code)]

/// Bits of a filter, as a power of two: a cache line, so that the write set of an order of ten
/// lines leaves most of them free.
const BITS: u32 = 9;

/// One bit for each unit; some share one.
#[derive(Debug, Default)]
pub(super) struct Filter([u64; 1 << (BITS - 6)]);

impl Filter {
    #[inline(always)]
    pub(super) fn add(&mut self, address: u64) {
        let (word, bit) = place(address);
        self.0[word] |= bit;
    }

    /// Returns whether the unit may have been added; false is certain.
    #[inline(always)]
    pub(super) fn may_have(&self, address: u64) -> bool {
        let (word, bit) = place(address);
        self.0[word] & bit != 0
    }
}

#[inline(always)]
fn place(address: u64) -> (usize, u64) {
    let number = mix(address) >> (u64::BITS - BITS);
    ((number >> 6) as usize, 1 << (number & 63))
}

/// Spreads an address over all bits, by a multiplication.
#[inline(always)]
pub(super) fn mix(address: u64) -> u64 {
    address.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
