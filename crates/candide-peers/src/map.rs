//! Maps under measurement.

use serde::Serialize;

use crate::{Key, Role};

/// The number of lookups or inserts that an adaptor gets at once.
pub const BATCH: usize = 10;

/// The way in which a map finds its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The map finds keys by their hash. Such a map cannot scan.
    Hash,
    /// The map finds keys by their order.
    Ordered,
}

/// A map under measurement, from keys to values of one word.
pub trait Map<K: Key>: Sync + Sized + 'static {
    /// The map's name, as in `--only`.
    const NAME: &'static str;
    /// The way in which the map finds its rows.
    const KIND: Kind;
    /// The map's role in the comparison.
    const ROLE: Role;

    /// A thread's handle to the map.
    type Handle<'m>: Handle<K>
    where
        Self: 'm;

    /// Creates an empty map without a size given in advance.
    fn new() -> Self;

    /// Returns a handle for the calling thread.
    fn handle(&self) -> Self::Handle<'_>;
}

/// One thread's handle to a map.
pub trait Handle<K: Key> {
    /// Inserts keys that are not present yet, each with its [value](Key::value).
    fn insert(&mut self, keys: &[K]);

    /// Looks the keys up. Returns the sum of their values; `None` if a key is missing.
    fn lookup(&mut self, keys: &[K]) -> Option<u64>;

    /// Passes at most `count` rows to `step` in ascending order, beginning with the first row
    /// whose key is not below `from`. Only called on ordered maps.
    ///
    /// If the map repeats the scan, each repetition begins with `A::default()`.
    #[allow(unused_variables, reason = "a map without an order has no scans")]
    fn scan<A: Default>(&mut self, from: &K, count: usize, step: impl Fn(&mut A, &K, u64)) -> A {
        unreachable!("it has no order")
    }

    /// Returns the sum of the values that a scan visits. The measurement of scans calls this
    /// method. Maps that can scan without building keys override it.
    #[inline]
    fn scan_values(&mut self, from: &K, count: usize) -> u64 {
        self.scan(from, count, |sum: &mut u64, _, value| *sum = sum.wrapping_add(value))
    }
}

/// Returns the sum of the values that `get` finds for `keys`; `None` if a key is missing.
#[inline]
pub fn sum_of<K>(keys: &[K], mut get: impl FnMut(&K) -> Option<u64>) -> Option<u64> {
    keys.iter().try_fold(0u64, |sum, key| Some(sum.wrapping_add(get(key)?)))
}

/// Passes at most `count` of `rows` to `step`.
#[inline]
pub fn fold_rows<K, A: Default>(
    rows: impl Iterator<Item = (K, u64)>,
    count: usize,
    step: impl Fn(&mut A, &K, u64),
) -> A {
    let mut state = A::default();
    for (key, value) in rows.take(count) {
        step(&mut state, &key, value);
    }
    state
}
