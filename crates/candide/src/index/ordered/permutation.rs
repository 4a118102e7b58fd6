//! The order of a leaf's slots, in one word.

use crate::sync::MODELLED;

/// The number of slots of a leaf. The number is small under a model, so that the model reaches
/// splits.
pub(super) const WIDTH: usize = if MODELLED { 3 } else { 14 };

/// Bits of the count and of each slot number.
const NIBBLE: u32 = 4;

/// The order of a leaf's slots: a count of live slots in the lowest four bits, then the numbers of
/// the live slots in the order of their slices, then the numbers of the free slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Permutation(pub(super) u64);

const _: () = assert!(WIDTH < 16 && (WIDTH + 1) * NIBBLE as usize <= u64::BITS as usize);

impl Permutation {
    /// Returns the order in which the first `count` slots are live, in the order of their numbers.
    pub(super) fn first(count: usize) -> Permutation {
        const SLOTS: u64 = {
            let (mut word, mut slot) = (0, 0);
            while slot < WIDTH {
                word |= (slot as u64) << shift(slot);
                slot += 1;
            }
            word
        };
        Permutation(SLOTS | count as u64)
    }

    /// Returns the number of live slots. The result is never above the number of slots, even if the
    /// word had another meaning when it was loaded.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn count(self) -> usize {
        (self.0 as usize & 15).min(WIDTH)
    }

    /// Returns the slot at `rank`; for a rank not below the count, a free one. The result is in
    /// bounds for every value of the word.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn slot(self, rank: usize) -> usize {
        ((self.0 >> shift(rank)) as usize & 15).min(WIDTH - 1)
    }

    /// Returns the slots from `rank` on, live or free, without end. The results are in bounds for
    /// every value of the word.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn slots(self, rank: usize) -> impl Iterator<Item = usize> {
        let mut rest = Permutation(self.0 >> (NIBBLE * rank as u32));
        std::iter::repeat_with(move || {
            let slot = rest.slot(0);
            rest.0 >>= NIBBLE;
            slot
        })
    }

    /// Returns the live slots in order.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn live(self) -> impl Iterator<Item = usize> {
        self.slots(0).take(self.count())
    }

    /// Makes the first free slot live at `rank`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn insert(self, rank: usize) -> Permutation {
        let count = self.count();
        debug_assert!(rank <= count && count < WIDTH);
        let slot = self.slot(count) as u64;
        let moved = self.0 & below(count) & !below(rank);
        let kept = self.0 & (below(rank) | !below(count + 1));
        Permutation((kept | moved << NIBBLE | slot << shift(rank)) + 1)
    }

    /// Makes the first free slot live, as the last in order. The slot's number is at that position
    /// already, so only the count changes.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn append(self) -> Permutation {
        debug_assert!(self.count() < WIDTH);
        Permutation(self.0 + 1)
    }

    /// Makes the slot at `rank` the first free one.
    pub(super) fn remove(self, rank: usize) -> Permutation {
        let count = self.count();
        debug_assert!(rank < count);
        let slot = self.slot(rank) as u64;
        let moved = self.0 & below(count) & !below(rank + 1);
        let kept = self.0 & (below(rank) | !below(count));
        Permutation((kept | moved >> NIBBLE | slot << shift(count - 1)) - 1)
    }

    /// Keeps only the first `count` live slots live.
    pub(super) fn truncate(self, count: usize) -> Permutation {
        debug_assert!(count <= self.count());
        Permutation(self.0 & !15 | count as u64)
    }
}

#[cfg_attr(not(debug_assertions), inline(always))]
const fn shift(rank: usize) -> u32 {
    NIBBLE + NIBBLE * rank as u32
}

/// Returns the bits of the count and of the slots below `rank`.
#[cfg_attr(not(debug_assertions), inline(always))]
fn below(rank: usize) -> u64 {
    (1 << shift(rank)) - 1
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn live(permutation: Permutation) -> Vec<usize> {
        permutation.live().collect()
    }

    #[test]
    fn slots_of_a_permutation_are_inserted_and_removed_in_order() {
        let three = Permutation::first(0).insert(0).insert(0).insert(1);
        assert_eq!(live(three), [1, 2, 0]);
        let two = three.remove(1);
        assert_eq!(live(two), [1, 0]);
        assert_eq!(live(two.insert(2)), [1, 0, 2], "the slot freed last is taken first");
        assert_eq!(live(three.truncate(1)), [1]);
        assert_eq!(two.append(), two.insert(2));
    }

    #[test]
    fn a_full_leaf_has_every_slot_once() {
        let full = (0..WIDTH)
            .fold(Permutation::first(0), |permutation, count| permutation.insert(count / 2));
        let mut slots = live(full);
        slots.sort_unstable();
        assert_eq!(slots, (0..WIDTH).collect::<Vec<_>>());
        assert_eq!((0..WIDTH).fold(full, |permutation, _| permutation.remove(0)).count(), 0);
        assert_eq!(live(Permutation::first(WIDTH)), slots);
    }
}
