//! How much the tests do that take longest.

/// How many times as long as usual: `n` of `CANDIDE_STRESS=n`, and 1 without.
pub(crate) fn stress() -> u64 {
    std::env::var("CANDIDE_STRESS").ok().and_then(|times| times.parse().ok()).unwrap_or(1)
}

/// Whether `CANDIDE_SHORT` is set: what is tried exhaustively goes a step or two less far, and what takes samples takes fewer, where they are
/// most of what all tests take together. For who runs them after every change.
pub(crate) fn is_short() -> bool {
    std::env::var_os("CANDIDE_SHORT").is_some()
}
