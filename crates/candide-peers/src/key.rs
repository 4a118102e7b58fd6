//! The keys that are measured.

use std::fmt::Debug;
use std::hash::Hash;

/// A key of 24 bytes.
pub type Wide = (u64, u64, u64);

/// A key as every map wants it.
pub trait Key: candide::Key + Ord + Hash + Debug + Default {
    /// How many bytes it has.
    const SIZE: usize;
    /// The key as bytes.
    type Bytes: AsRef<[u8]>;

    /// The key number `index`: different for each index, and in no particular order.
    fn nth(index: u64) -> Self;

    /// What the key maps to.
    fn value(&self) -> u64;

    /// Bytes in the same order as the keys.
    fn to_bytes(&self) -> Self::Bytes;

    /// The key whose bytes these are.
    ///
    /// # Panics
    /// If there are too many or too few.
    fn from_bytes(bytes: &[u8]) -> Self;
}

impl Key for u64 {
    const SIZE: usize = 8;
    type Bytes = [u8; 8];

    fn nth(index: u64) -> u64 {
        mix(index)
    }

    #[inline]
    fn value(&self) -> u64 {
        self.rotate_left(17) ^ 0x5bd1_e995
    }

    #[inline]
    fn to_bytes(&self) -> [u8; 8] {
        self.to_be_bytes()
    }

    #[inline]
    fn from_bytes(bytes: &[u8]) -> u64 {
        u64::from_be_bytes(bytes.try_into().expect("eight bytes"))
    }
}

impl Key for Wide {
    const SIZE: usize = 24;
    type Bytes = [u8; 24];

    /// 64 first words, and a thousand second ones below each.
    fn nth(index: u64) -> Wide {
        let mixed = mix(index);
        (mixed % 64, mixed / 64 % 1000, mixed)
    }

    #[inline]
    fn value(&self) -> u64 {
        self.2.value()
    }

    #[inline]
    fn to_bytes(&self) -> [u8; 24] {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&self.0.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.1.to_be_bytes());
        bytes[16..].copy_from_slice(&self.2.to_be_bytes());
        bytes
    }

    #[inline]
    fn from_bytes(bytes: &[u8]) -> Wide {
        assert_eq!(bytes.len(), 24);
        (
            u64::from_bytes(&bytes[..8]),
            u64::from_bytes(&bytes[8..16]),
            u64::from_bytes(&bytes[16..]),
        )
    }
}

/// The finalizer of SplitMix64: a permutation of all numbers.
fn mix(index: u64) -> u64 {
    let mut word = index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keeps_order<K: Key>() {
        let keys: Vec<K> = (0..100).map(K::nth).collect();
        for a in &keys {
            assert_eq!(K::from_bytes(a.to_bytes().as_ref()), *a);
            for b in &keys {
                assert_eq!(a.to_bytes().as_ref().cmp(b.to_bytes().as_ref()), a.cmp(b));
            }
        }
    }

    #[test]
    fn bytes_have_the_order_of_their_keys() {
        keeps_order::<u64>();
        keeps_order::<Wide>();
    }
}
