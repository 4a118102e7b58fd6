//! The standard library's `BTreeMap` behind an `RwLock`.

use std::sync::{PoisonError, RwLock};

use crate::{Handle, Key, Kind, Map, Role, fold_rows, sum_of};

/// The map.
pub(super) struct BTreeMap<K>(RwLock<std::collections::BTreeMap<K, u64>>);

impl<K: Key> Map<K> for BTreeMap<K> {
    const NAME: &'static str = "btreemap";
    const KIND: Kind = Kind::Ordered;
    const ROLE: Role = Role::Yardstick;
    type Handle<'m> = &'m BTreeMap<K>;

    fn new() -> Self {
        BTreeMap(RwLock::default())
    }

    fn handle(&self) -> &Self {
        self
    }
}

impl<K: Key> Handle<K> for &BTreeMap<K> {
    #[inline]
    fn insert(&mut self, keys: &[K]) {
        let mut map = self.0.write().unwrap_or_else(PoisonError::into_inner);
        map.extend(keys.iter().map(|key| (*key, key.value())));
    }

    #[inline]
    fn lookup(&mut self, keys: &[K]) -> Option<u64> {
        let map = self.0.read().unwrap_or_else(PoisonError::into_inner);
        sum_of(keys, |key| map.get(key).copied())
    }

    #[inline]
    fn scan<A: Default>(&mut self, from: &K, count: usize, step: impl Fn(&mut A, &K, u64)) -> A {
        let map = self.0.read().unwrap_or_else(PoisonError::into_inner);
        fold_rows(map.range(from..).map(|(key, value)| (*key, *value)), count, step)
    }
}
