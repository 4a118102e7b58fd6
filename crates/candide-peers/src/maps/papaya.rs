//! `papaya::HashMap`.

use super::Hashing;
use crate::{Handle, Key, Kind, Map, Role, sum_of};

/// The map.
pub(super) struct Papaya<K, S>(papaya::HashMap<K, u64, S>);

impl<K: Key, S: Hashing> Map<K> for Papaya<K, S> {
    const NAME: &'static str = "papaya";
    const KIND: Kind = Kind::Hash;
    const ROLE: Role = Role::Peer;
    type Handle<'m> = &'m Papaya<K, S>;

    fn new() -> Self {
        Papaya(papaya::HashMap::with_hasher(S::default()))
    }

    fn handle(&self) -> &Self {
        self
    }
}

impl<K: Key, S: Hashing> Handle<K> for &Papaya<K, S> {
    #[inline]
    fn insert(&mut self, keys: &[K]) {
        let guard = self.0.guard();
        for key in keys {
            self.0.insert(*key, key.value(), &guard);
        }
    }

    #[inline]
    fn lookup(&mut self, keys: &[K]) -> Option<u64> {
        let guard = self.0.guard();
        sum_of(keys, |key| self.0.get(key, &guard).copied())
    }
}
