//! `scc::HashMap`, whose lookups lock, and `scc::HashIndex`, whose lookups do not.

use scc::Guard;

use super::Hashing;
use crate::{Handle, Key, Kind, Map, Role, sum_of};

/// The map whose lookups lock.
pub(super) struct HashMap<K, S: Hashing>(scc::HashMap<K, u64, S>);

impl<K: Key, S: Hashing> Map<K> for HashMap<K, S> {
    const NAME: &'static str = "scc-hashmap";
    const KIND: Kind = Kind::Hash;
    const ROLE: Role = Role::Peer;
    type Handle<'m> = &'m HashMap<K, S>;

    fn new() -> Self {
        HashMap(scc::HashMap::with_hasher(S::default()))
    }

    fn handle(&self) -> &Self {
        self
    }
}

impl<K: Key, S: Hashing> Handle<K> for &HashMap<K, S> {
    #[inline]
    fn insert(&mut self, keys: &[K]) {
        for key in keys {
            let _ = self.0.insert_sync(*key, key.value());
        }
    }

    #[inline]
    fn lookup(&mut self, keys: &[K]) -> Option<u64> {
        sum_of(keys, |key| self.0.read_sync(key, |_, value| *value))
    }
}

/// The map whose lookups do not lock.
pub(super) struct HashIndex<K, S: Hashing>(scc::HashIndex<K, u64, S>)
where
    K: 'static;

impl<K: Key, S: Hashing> Map<K> for HashIndex<K, S> {
    const NAME: &'static str = "scc-hashindex";
    const KIND: Kind = Kind::Hash;
    const ROLE: Role = Role::Peer;
    type Handle<'m> = &'m HashIndex<K, S>;

    fn new() -> Self {
        HashIndex(scc::HashIndex::with_hasher(S::default()))
    }

    fn handle(&self) -> &Self {
        self
    }
}

impl<K: Key, S: Hashing> Handle<K> for &HashIndex<K, S> {
    #[inline]
    fn insert(&mut self, keys: &[K]) {
        let _guard = Guard::new();
        for key in keys {
            let _ = self.0.insert_sync(*key, key.value());
        }
    }

    #[inline]
    fn lookup(&mut self, keys: &[K]) -> Option<u64> {
        let guard = Guard::new();
        sum_of(keys, |key| self.0.peek(key, &guard).copied())
    }
}
