//! Functions that derived code evaluates at compile time: places of columns, words of keys.

#![forbid(unsafe_code)]

use super::key_words::KEY_WORDS_MAX;
use super::place::Place;

/// The size of a column.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    pub(super) bits: u32,
    pub(super) words: usize,
}

impl Size {
    /// One word.
    pub(crate) const WORD: Size = Size { bits: u64::BITS, words: 1 };
}

/// The places of the columns of a group: first the columns of a word or more, in order; then the
/// smaller ones, by descending size, each in the first word that has room for it.
#[derive(Debug, Clone, Copy)]
pub struct Packing<const N: usize> {
    /// The number of words of the group.
    pub words: usize,
    /// The word and the bit at which each column begins.
    pub(crate) places: [(usize, u32); N],
    sizes: [Size; N],
}

impl<const N: usize> Packing<N> {
    /// Packs columns of these sizes.
    pub const fn new(sizes: [Size; N]) -> Packing<N> {
        let mut places = [(0, 0); N];
        let (mut words, mut index) = (0, 0);
        while index < N {
            let Size { bits, words: needed } = sizes[index];
            assert!(
                needed == bits.div_ceil(64) as usize,
                "a field has as many words as its bits need"
            );
            if bits >= 64 {
                places[index] = (words, 0);
                words += needed;
            }
            index += 1;
        }
        let first_shared = words;
        let mut used = [0; N];
        let mut bits = 63;
        while bits > 0 {
            // Earlier words have no room for a column of this size.
            let mut word = 0;
            index = 0;
            while index < N {
                if sizes[index].bits == bits {
                    while used[word] + bits > 64 {
                        word += 1;
                    }
                    places[index] = (first_shared + word, used[word]);
                    used[word] += bits;
                    if words <= first_shared + word {
                        words = first_shared + word + 1;
                    }
                }
                index += 1;
            }
            bits -= 1;
        }
        Packing { words, places, sizes }
    }

    /// Returns the place of column `number` of the group `group`.
    pub const fn place(&self, group: usize, number: usize) -> Place {
        let ((word, shift), Size { bits, words }) = (self.places[number], self.sizes[number]);
        let mask = if bits < 64 { (1 << bits) - 1 } else { u64::MAX };
        Place {
            group: group as u8,
            word: word as u16,
            words: words as u16,
            shift: shift as u8,
            mask,
        }
    }
}

/// Returns the elements of all `parts`, one after another: words of a key's components, or their
/// widths.
pub const fn join<T: Copy, const N: usize, const M: usize>(zero: T, parts: [&[T]; M]) -> [T; N] {
    assert!(N <= KEY_WORDS_MAX, "a key has at most 32 words");
    let (mut all, mut count, mut part) = ([zero; N], 0, 0);
    while part < M {
        let (_, rest) = all.split_at_mut(count);
        let (place, _) = rest.split_at_mut(parts[part].len());
        place.copy_from_slice(parts[part]);
        count += parts[part].len();
        part += 1;
    }
    all
}

/// Panics because the enum called `name` has no variant at `position`, the word of a value.
pub fn no_variant(name: &str, position: u64) -> ! {
    unreachable!(
        "{name} has no variant number {position}; the words of a value were read back whole"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Text;
    use crate::schema::column_type::ColumnType;

    #[test]
    fn large_columns_come_first_and_small_ones_fill_words() {
        let packing = Packing::new([
            <bool>::SIZE,
            <u32>::SIZE,
            <Text<9>>::SIZE,
            <u16>::SIZE,
            <u32>::SIZE,
            <u64>::SIZE,
            <char>::SIZE,
        ]);
        assert_eq!(packing.places, [(5, 37), (4, 0), (0, 0), (5, 21), (4, 32), (3, 0), (5, 0)]);
        assert_eq!(packing.words, 6);
    }

    #[test]
    fn small_columns_fill_the_padding_of_large_ones() {
        let sizes = [<Option<u32>>::SIZE, <Option<u32>>::SIZE, <u16>::SIZE, <u16>::SIZE];
        let packing = Packing::new(sizes);
        assert_eq!(packing.places, [(0, 0), (1, 0), (0, 33), (1, 33)]);
        assert_eq!(Packing::new([<bool>::SIZE; 64]).words, 1);
        assert_eq!(Packing::new([<bool>::SIZE; 65]).words, 2);
    }
}
