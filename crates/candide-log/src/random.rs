//! Random numbers for identities and salts.

use crate::format::Uuid;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// Returns a random number. The keys of the hasher are random, and differ from call to call.
pub(crate) fn word() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Returns the identity of a new database.
pub(crate) fn uuid() -> Uuid {
    let mut uuid = Uuid::default();
    uuid[..8].copy_from_slice(&word().to_le_bytes());
    uuid[8..].copy_from_slice(&word().to_le_bytes());
    uuid
}

#[cfg(test)]
mod tests {
    #[test]
    fn random_words_and_identities_differ() {
        assert_ne!(super::word(), super::word());
        assert_ne!(super::uuid(), super::uuid());
    }
}
