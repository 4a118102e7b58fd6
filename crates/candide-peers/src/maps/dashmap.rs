//! `dashmap::DashMap`.

use super::Hashing;
use crate::{Handle, Key, Kind, Map, Role, sum_of};

/// The map.
pub(super) struct DashMap<K, S>(dashmap::DashMap<K, u64, S>);

impl<K: Key, S: Hashing> Map<K> for DashMap<K, S> {
    const NAME: &'static str = "dashmap";
    const KIND: Kind = Kind::Hash;
    const ROLE: Role = Role::Peer;
    type Handle<'m> = &'m DashMap<K, S>;

    fn new() -> Self {
        DashMap(dashmap::DashMap::with_hasher(S::default()))
    }

    fn handle(&self) -> &Self {
        self
    }
}

impl<K: Key, S: Hashing> Handle<K> for &DashMap<K, S> {
    #[inline]
    fn insert(&mut self, keys: &[K]) {
        for key in keys {
            self.0.insert(*key, key.value());
        }
    }

    #[inline]
    fn lookup(&mut self, keys: &[K]) -> Option<u64> {
        sum_of(keys, |key| self.0.get(key).map(|value| *value))
    }
}
