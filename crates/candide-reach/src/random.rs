//! Random numbers, which name claims, probes and temporary files.

#![forbid(unsafe_code)]

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// Returns a random number other than 0. The keys of the hasher are random, and differ from call
/// to call.
pub fn number() -> u64 {
    RandomState::new().build_hasher().finish().max(1)
}
