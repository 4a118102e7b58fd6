//! A small random generator for each session. The generator serves for backoff, which needs no
//! random numbers of high quality.

use std::hash::{BuildHasher, RandomState};

/// Xorshift64*: each number costs one multiplication and three shifts. One thread owns the
/// generator.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Returns a generator whose sequence depends on `seed` alone.
    pub(crate) fn seeded(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a seed that differs from process to process.
    pub(crate) fn process_seed() -> u64 {
        if super::MODELLED { 0x243f_6a88_85a3_08d3 } else { RandomState::new().hash_one(0u64) }
    }

    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Draws a number uniformly from `0..bound` (`bound > 0`). The number is the high half of a
    /// product.
    #[inline]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_stay_below_their_bound_and_reach_every_value() {
        let mut random = Random::seeded(1);
        let mut seen = [0u32; 7];
        for _ in 0..7_000 {
            seen[random.below(7) as usize] += 1;
        }
        assert!(seen.iter().all(|&count| (800..1_200).contains(&count)), "{seen:?}");
    }
}
