//! How much is explored: a slice that a seed chooses.

use std::env;

/// Returns whether less is to be tried: unless `CANDIDE_FULL` is set.
pub fn is_short() -> bool {
    env::var_os("CANDIDE_FULL").is_none()
}

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok()?.parse().ok()
}

/// Returns one in so many of the items, or `n` times as many if `CANDIDE_STRESS=n` is set. Which
/// ones, says a seed, which is printed: that of `CANDIDE_SEED=n`, or a new one.
pub fn one_in<T>(times: u64, items: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    let stress = number("CANDIDE_STRESS").unwrap_or(1).max(1);
    let times = (times / stress).max(1);
    let seed = number("CANDIDE_SEED").unwrap_or_else(|| fastrand::u64(..1_000_000_000));
    println!("one in {times}, by CANDIDE_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    items.filter(move |_| random.u64(..times) == 0)
}
