//! `scc::TreeIndex`.

use scc::Guard;

use crate::{Handle, Key, Kind, Map, Role, fold_rows, sum_of};

/// The map.
pub(super) struct TreeIndex<K>(scc::TreeIndex<K, u64>);

impl<K: Key> Map<K> for TreeIndex<K> {
    const NAME: &'static str = "scc-treeindex";
    const KIND: Kind = Kind::Ordered;
    const ROLE: Role = Role::Peer;
    type Handle<'m> = &'m TreeIndex<K>;

    fn new() -> Self {
        TreeIndex(scc::TreeIndex::new())
    }

    fn handle(&self) -> &Self {
        self
    }
}

impl<K: Key> Handle<K> for &TreeIndex<K> {
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

    #[inline]
    fn scan<A: Default>(&mut self, from: &K, count: usize, step: impl Fn(&mut A, &K, u64)) -> A {
        let guard = Guard::new();
        fold_rows(self.0.range(*from.., &guard).map(|(key, value)| (*key, *value)), count, step)
    }
}
