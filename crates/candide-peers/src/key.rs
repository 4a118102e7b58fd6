//! The keys that are measured.

use std::fmt::Debug;
use std::hash::Hash;

/// A key of 24 bytes.
pub type Wide = (u64, u64, u64);

/// A key, with the conversions that the maps need.
pub trait Key: candide::Key + Ord + Hash + Debug + Default {
    /// The number of bytes of a key.
    const SIZE: usize;
    /// The type of a key as bytes.
    type Bytes: AsRef<[u8]>;

    /// Returns key number `index`. Different numbers give different keys. The keys are in no
    /// particular order.
    fn nth(index: u64) -> Self;

    /// Returns the value to which the key maps.
    fn value(&self) -> u64;

    /// Returns the key as bytes. The order of such bytes is the order of the keys.
    fn to_bytes(&self) -> Self::Bytes;

    /// Returns the key whose bytes are `bytes`.
    ///
    /// # Panics
    /// If the length of `bytes` is not [`SIZE`](Self::SIZE).
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

    /// The keys have 64 first words, and a thousand second words for each first word.
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

/// Applies the finalizer of SplitMix64, which is a permutation of `u64`.
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
    fn encoded_keys_have_the_order_of_their_keys() {
        keeps_order::<u64>();
        keeps_order::<Wide>();
    }
}
