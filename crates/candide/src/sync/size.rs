//! The size of the longest tests.

use super::Random;
use std::ops::Div;

/// Returns the factor by which tests run longer than usual: `n` of `CANDIDE_STRESS=n`, and 1
/// without.
pub(crate) fn stress() -> u64 {
    std::env::var("CANDIDE_STRESS").ok().and_then(|times| times.parse().ok()).unwrap_or(1)
}

/// Returns `of`, or a third of it if `CANDIDE_SHORT` is set: samples, rounds, milliseconds.
pub(crate) fn share<T: Div<Output = T> + From<u8>>(of: T) -> T {
    if is_short() { of / 3.into() } else { of }
}

/// Returns whether `CANDIDE_SHORT` is set, for runs after every change: the longest exhaustive
/// tests go a step or two less far, and the longest sampling ones take fewer samples.
pub(crate) fn is_short() -> bool {
    std::env::var_os("CANDIDE_SHORT").is_some()
}

/// A sample of the cases of an exhaustive test: all of them, or one in `one_in` if `CANDIDE_SHORT`
/// is set. The sample depends on a seed, which is printed: `n` of `CANDIDE_SEED=n`, or a new seed
/// in every process.
pub(crate) struct Sample {
    one_in: u64,
    random: Random,
}

impl Sample {
    pub(crate) fn one_in(times: u64) -> Sample {
        let one_in = if is_short() { times } else { 1 };
        let given = std::env::var("CANDIDE_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(|| Random::process_seed() % 1_000_000_000);
        eprintln!("one in {one_in}, by CANDIDE_SEED={seed}");
        Sample { one_in, random: Random::seeded(seed) }
    }

    /// Returns whether the next case is tried.
    pub(crate) fn has_next(&mut self) -> bool {
        self.random.below(self.one_in) == 0
    }
}
