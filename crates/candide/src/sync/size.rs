//! The size of the longest tests.

use super::Random;
use std::ops::Div;

/// Returns the factor by which tests run longer than usual: `n` if `CANDIDE_STRESS=n` is set, else
/// 1.
pub(crate) fn stress() -> u64 {
    std::env::var("CANDIDE_STRESS").ok().and_then(|times| times.parse().ok()).unwrap_or(1)
}

/// Returns `of`, or a third of `of` unless `CANDIDE_FULL` is set. `of` is a number of samples,
/// rounds or milliseconds.
pub(crate) fn share<T: Div<Output = T> + From<u8>>(of: T) -> T {
    if is_short() { of / 3.into() } else { of }
}

/// Returns whether less is to be tried: unless `CANDIDE_FULL` is set. Then the longest
/// exhaustive tests explore one or two steps less, and the longest sampling tests take fewer
/// samples.
pub(crate) fn is_short() -> bool {
    std::env::var_os("CANDIDE_FULL").is_none()
}

/// A sample of the cases of an exhaustive test: all of them if `CANDIDE_FULL` is set, else one in
/// `one_in`. The sample depends on a seed, which is printed: `n` if `CANDIDE_SEED=n` is set, else a
/// new seed in every process.
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

    /// Returns whether the next case is in the sample.
    pub(crate) fn has_next(&mut self) -> bool {
        self.random.below(self.one_in) == 0
    }
}
