//! Keys whose components share words.

#![forbid(unsafe_code)]

use super::key::Key;
use super::key_words::KeyWords;

/// The packing of a key's words into fewer words, for a table whose key components may share words.
/// The bits of the components follow one another, so that the order stays the same.
///
/// A component that begins a word of its own begins a layer of its own in an ordered index. Packed
/// components share leaves, so transactions on neighbouring keys may conflict.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyPacking {
    widths: &'static [u32],
    words: usize,
}

impl KeyPacking {
    /// Returns the packing of words with `widths` used bits; `None` if packing would save no word.
    pub(crate) fn new(widths: &'static [u32]) -> Option<KeyPacking> {
        let words = packed_words(widths);
        (words < widths.len()).then_some(KeyPacking { widths, words })
    }

    /// Returns whether a table may pack keys of type `K`. Only builds for experiments pack keys, so
    /// other builds need not check at run time.
    pub(crate) const fn exists_for<K: Key>() -> bool {
        cfg!(any(test, feature = "experiments")) && packed_words(K::WIDTHS) < K::WIDTHS.len()
    }

    /// Returns the number of words of a packed key.
    pub(crate) fn words(&self) -> usize {
        self.words
    }

    pub(crate) fn pack(&self, words: &[u64]) -> KeyWords {
        assert!(
            words.len() == self.widths.len(),
            "`Key::words` gives another number of words than `Key::WIDTHS`"
        );
        let mut packed = KeyWords::zeros(self.words);
        let mut begin = 0;
        for (&word, &width) in words.iter().zip(self.widths) {
            // A component lies within two words at most, and fills them from the left. The shift
            // drops bits beyond the width; only a bound behind every key has such bits.
            let shifted = (u128::from(word) << (128 - width)) >> (begin % 64);
            let at = (begin / 64) as usize;
            packed.as_mut_slice()[at] |= (shifted >> 64) as u64;
            if shifted as u64 != 0 {
                packed.as_mut_slice()[at + 1] |= shifted as u64;
            }
            begin += width;
        }
        packed
    }

    pub(crate) fn unpack(&self, packed: &[u64]) -> KeyWords {
        let mut words = KeyWords::zeros(self.widths.len());
        let mut begin = 0;
        for (word, &width) in words.as_mut_slice().iter_mut().zip(self.widths) {
            let at = (begin / 64) as usize;
            let next = packed.get(at + 1).copied().unwrap_or(0);
            let both = u128::from(packed[at]) << 64 | u128::from(next);
            *word = ((both << (begin % 64)) >> (128 - width)) as u64;
            begin += width;
        }
        words
    }

    /// Returns the first components of a key: those that lie entirely within `packed`, the first
    /// words of the packed key.
    pub(crate) fn unpack_prefix(&self, packed: &[u64]) -> Vec<u64> {
        let bits = packed.len() as u32 * u64::BITS;
        let mut all = KeyWords::zeros(self.words);
        all.as_mut_slice().iter_mut().zip(packed).for_each(|(word, known)| *word = *known);
        let ends = self.widths.iter().scan(0, |end, width| {
            *end += width;
            Some(*end)
        });
        let whole = ends.take_while(|&end| end <= bits).count();
        self.unpack(all.as_slice()).as_slice()[..whole].to_vec()
    }

    /// Returns the number of components, which are the words of keys that are not packed.
    pub(crate) fn components(&self) -> usize {
        self.widths.len()
    }
}

/// Returns the number of words that components of `widths` bits take, one after another.
const fn packed_words(widths: &[u32]) -> usize {
    let (mut bits, mut index) = (0, 0);
    while index < widths.len() {
        bits += widths[index];
        index += 1;
    }
    bits.div_ceil(u64::BITS) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;

    type Compound = (u16, i8, u64, i32);

    #[test]
    fn packed_keys_keep_their_order_and_are_unpacked_unchanged() {
        let packing = KeyPacking::new(Compound::WIDTHS).unwrap();
        assert_eq!(packing.words(), 2);
        let mut keys = Vec::new();
        for a in [0, 1, u16::MAX] {
            for b in [i8::MIN, -1, 0, i8::MAX] {
                for c in [0, 1 << 63, u64::MAX] {
                    keys.extend([i32::MIN, -1, 7].map(|d| (a, b, c, d)));
                }
            }
        }
        let packed: Vec<_> = keys.iter().map(|key| packing.pack(&key.words())).collect();
        assert!(packed.windows(2).all(|two| two[0].as_slice() < two[1].as_slice()));
        for (key, packed) in keys.iter().zip(&packed) {
            assert_eq!(Compound::from_words(packing.unpack(packed.as_slice()).as_slice()), *key);
            // The components of 16 and 8 bits lie in the first word. The one of 64 bits ends in the
            // second word.
            assert_eq!(packing.unpack_prefix(&packed.as_slice()[..1]), key.words()[..2]);
            assert_eq!(packing.unpack_prefix(packed.as_slice()), key.words());
        }
    }

    #[test]
    fn keys_that_packing_would_not_shrink_are_not_packed() {
        assert!(
            KeyPacking::new(<(u64, u64)>::WIDTHS).is_none()
                && KeyPacking::new(u8::WIDTHS).is_none()
        );
        assert_eq!(KeyPacking::new(<(u32, u32)>::WIDTHS).unwrap().words(), 1);
    }
}
