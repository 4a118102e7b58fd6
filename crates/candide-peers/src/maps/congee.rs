//! `congee::U64Congee`, an adaptive radix tree.

use congee::{U64Congee, epoch};

use crate::{Handle, Key, Kind, Map, Role, sum_of};

/// The map.
pub(super) struct Congee(U64Congee<usize>);

/// A thread's buffer for scanned rows.
pub(super) struct Buffered<'m> {
    map: &'m U64Congee<usize>,
    rows: Vec<([u8; 8], usize)>,
}

impl Map<u64> for Congee {
    const NAME: &'static str = "congee";
    const KIND: Kind = Kind::Ordered;
    const ROLE: Role = Role::Peer;
    type Handle<'m> = Buffered<'m>;

    fn new() -> Self {
        Congee(U64Congee::new())
    }

    fn handle(&self) -> Buffered<'_> {
        Buffered { map: &self.0, rows: Vec::new() }
    }
}

impl Buffered<'_> {
    #[inline]
    fn fetch(&mut self, from: u64, count: usize) -> &[([u8; 8], usize)] {
        if self.rows.len() < count {
            self.rows.resize(count, Default::default());
        }
        let found = self.map.range(from, u64::MAX, &mut self.rows[..count], &epoch::pin());
        &self.rows[..found]
    }
}

impl Handle<u64> for Buffered<'_> {
    #[inline]
    fn insert(&mut self, keys: &[u64]) {
        let guard = epoch::pin();
        for &key in keys {
            self.map.insert(key, key.value() as usize, &guard).expect("there is memory");
        }
    }

    #[inline]
    fn lookup(&mut self, keys: &[u64]) -> Option<u64> {
        let guard = epoch::pin();
        sum_of(keys, |&key| self.map.get(key, &guard).map(|value| value as u64))
    }

    #[inline]
    fn scan<A: Default>(
        &mut self,
        from: &u64,
        count: usize,
        step: impl Fn(&mut A, &u64, u64),
    ) -> A {
        let mut state = A::default();
        for (key, value) in self.fetch(*from, count) {
            step(&mut state, &u64::from_be_bytes(*key), *value as u64);
        }
        state
    }
}
