//! `crossbeam_skiplist::SkipMap`.

use crossbeam_epoch as epoch;

use crate::{Handle, Key, Kind, Map, Role, fold_rows, sum_of};

/// The map.
pub(super) struct SkipMap<K>(crossbeam_skiplist::SkipMap<K, u64>);

impl<K: Key> Map<K> for SkipMap<K> {
    const NAME: &'static str = "skipmap";
    const KIND: Kind = Kind::Ordered;
    const ROLE: Role = Role::Peer;
    type Handle<'m> = &'m SkipMap<K>;

    fn new() -> Self {
        SkipMap(crossbeam_skiplist::SkipMap::new())
    }

    fn handle(&self) -> &Self {
        self
    }
}

// The map pins an epoch in each operation. Pinning is quick if the thread has already pinned an
// epoch.
impl<K: Key> Handle<K> for &SkipMap<K> {
    #[inline]
    fn insert(&mut self, keys: &[K]) {
        let _pinned = epoch::pin();
        for key in keys {
            self.0.insert(*key, key.value());
        }
    }

    #[inline]
    fn lookup(&mut self, keys: &[K]) -> Option<u64> {
        let _pinned = epoch::pin();
        sum_of(keys, |key| self.0.get(key).map(|entry| *entry.value()))
    }

    #[inline]
    fn scan<A: Default>(&mut self, from: &K, count: usize, step: impl Fn(&mut A, &K, u64)) -> A {
        let _pinned = epoch::pin();
        fold_rows(self.0.range(from..).map(|entry| (*entry.key(), *entry.value())), count, step)
    }
}
