//! Independent random streams from one seed, and weighted draws.

use fastrand::Rng;

/// Returns the random stream number `stream` of `seed`.
///
/// If two seeds differ in only one bit, the streams of a small generator begin alike. So the pair
/// of numbers is mixed first (the finalizer of SplitMix64).
pub fn stream(seed: u64, stream: u64) -> Rng {
    let mut word = seed.wrapping_add(stream.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    Rng::with_seed(word ^ (word >> 31))
}

/// Draws an index into `weights`, with a probability proportional to the weight. At least one
/// weight must be more than 0.
pub(crate) fn draw_kind(weights: &[u32], rng: &mut Rng) -> usize {
    let total: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
    let mut lot = rng.u64(..total);
    let mut kind = 0;
    while lot >= u64::from(weights[kind]) {
        lot -= u64::from(weights[kind]);
        kind += 1;
    }
    kind
}
