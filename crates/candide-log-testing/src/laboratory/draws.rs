//! Numbers that look random, and are the same for the same seed.

/// A source of numbers.
#[derive(Debug, Clone)]
pub(super) struct Draws(u64);

impl Draws {
    /// Returns the source of a seed.
    pub(super) fn new(seed: u64) -> Draws {
        Draws(seed.wrapping_mul(0xd134_2543_de82_ef95))
    }

    /// Returns any number.
    pub(super) fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `bound`, which is not 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.any()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns true in this share of the calls, from 0 to 1.
    pub(super) fn share(&mut self, share: f64) -> bool {
        (self.any() >> 11) as f64 / ((1u64 << 53) as f64) < share
    }

    /// Returns true in this number of calls out of a hundred.
    pub(super) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

#[cfg(test)]
mod tests {
    use super::Draws;

    #[test]
    fn draws_of_a_seed_repeat_and_cover_their_range() {
        let numbers = |seed| {
            let mut draws = Draws::new(seed);
            (0..1000).map(|_| draws.below(10)).collect::<Vec<_>>()
        };
        assert_eq!(numbers(3), numbers(3));
        assert_ne!(numbers(3), numbers(4));
        let count = |wanted| numbers(3).iter().filter(|number| **number == wanted).count();
        assert!((0..10).all(|number| (60..140).contains(&count(number))));
        let mut draws = Draws::new(1);
        let shares = [0.0, 0.25, 1.0].map(|share| (0..4000).filter(|_| draws.share(share)).count());
        assert!(shares[0] == 0 && (850..1150).contains(&shares[1]) && shares[2] == 4000);
    }
}
