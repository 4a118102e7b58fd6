//! `masstree::MassTree`, a trie of B+trees.

use masstree::{MassTree, RangeBound};

use crate::{Handle, Key, Kind, Map, Role, sum_of};

/// The map.
pub(super) struct Masstree(MassTree<u64>);

impl<K: Key> Map<K> for Masstree {
    const NAME: &'static str = "masstree";
    const KIND: Kind = Kind::Ordered;
    const ROLE: Role = Role::Peer;
    type Handle<'m> = &'m Masstree;

    fn new() -> Self {
        Masstree(MassTree::new())
    }

    fn handle(&self) -> &Self {
        self
    }
}

/// Returns a closure that gives the return values of a visitor. The closure returns `true`, which
/// lets the map call the visitor again, and `false` from call number `count` on.
#[inline]
fn counting(count: usize) -> impl FnMut() -> bool {
    let mut left = count;
    move || {
        left -= 1;
        left > 0
    }
}

impl<K: Key> Handle<K> for &Masstree {
    #[inline]
    fn insert(&mut self, keys: &[K]) {
        let guard = self.0.guard();
        for key in keys {
            self.0.insert_with_guard(key.to_bytes().as_ref(), key.value(), &guard);
        }
    }

    #[inline]
    fn lookup(&mut self, keys: &[K]) -> Option<u64> {
        let guard = self.0.guard();
        sum_of(keys, |key| self.0.get_with_guard(key.to_bytes().as_ref(), &guard))
    }

    #[inline]
    fn scan<A: Default>(&mut self, from: &K, count: usize, step: impl Fn(&mut A, &K, u64)) -> A {
        let (mut state, mut more) = (A::default(), counting(count));
        let visit = |key: &[u8], value| {
            step(&mut state, &K::from_bytes(key), value);
            more()
        };
        let from = from.to_bytes();
        self.0.scan_intra_leaf_batch(
            RangeBound::Included(from.as_ref()),
            RangeBound::Unbounded,
            visit,
            &self.0.guard(),
        );
        state
    }

    #[inline]
    fn scan_values(&mut self, from: &K, count: usize) -> u64 {
        let (mut sum, mut more) = (0u64, counting(count));
        let visit = |value| {
            sum = sum.wrapping_add(value);
            more()
        };
        let from = from.to_bytes();
        self.0.scan_values(
            RangeBound::Included(from.as_ref()),
            RangeBound::Unbounded,
            visit,
            &self.0.guard(),
        );
        sum
    }
}
