//! How much the tests do that take longest.

use std::ops::Div;

/// How many times as long as usual: `n` of `CANDIDE_STRESS=n`, and 1 without.
pub(crate) fn stress() -> u64 {
    std::env::var("CANDIDE_STRESS").ok().and_then(|times| times.parse().ok()).unwrap_or(1)
}

/// So many, or a third of them if `CANDIDE_SHORT` is set: samples, rounds, milliseconds.
pub(crate) fn share<T: Div<Output = T> + From<u8>>(of: T) -> T {
    if is_short() { of / 3.into() } else { of }
}

/// Whether `CANDIDE_SHORT` is set: what is tried exhaustively goes a step or two less far, and what takes samples takes fewer, where they are
/// most of what all tests take together. For who runs them after every change.
pub(crate) fn is_short() -> bool {
    std::env::var_os("CANDIDE_SHORT").is_some()
}
