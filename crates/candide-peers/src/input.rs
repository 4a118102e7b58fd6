//! The keys of a measurement, drawn before the clock starts.

use crate::{BATCH, Key};

/// The numbers of rows of a short and of a long scan.
pub(crate) const SHORT: usize = 10;
pub(crate) const LONG: usize = 1000;

/// The keys of a map with a given number of rows, and the keys of the operations on the map.
pub(crate) struct Input<K> {
    /// The keys in the order in which they are inserted, which is random.
    pub(crate) keys: Vec<K>,
    /// The keys in ascending order.
    pub(crate) sorted: Vec<K>,
    /// Present keys that are looked up, for each thread.
    pub(crate) lookups: Vec<Vec<K>>,
    /// Present keys at which scans start, for each thread. If the map has enough rows for a long
    /// scan, then enough rows for a long scan follow each of these keys.
    pub(crate) starts: Vec<Vec<K>>,
}

impl<K: Key> Input<K> {
    pub(crate) fn draw(rows: usize, threads: usize, seed: u64) -> Input<K> {
        let keys: Vec<K> = (0..rows as u64).map(K::nth).collect();
        let mut sorted = keys.clone();
        sorted.sort_unstable();
        let mut random = fastrand::Rng::with_seed(seed);
        // There are at least twice as many draws as rows (within limits), so that no part of the
        // rows is favoured.
        let draws = (2 * rows).clamp(1 << 14, 1 << 22).next_multiple_of(BATCH);
        let lookups = (0..threads)
            .map(|_| (0..draws).map(|_| keys[random.usize(..rows)]).collect())
            .collect();
        let last = rows.saturating_sub(LONG).max(1);
        let starts = (0..threads)
            .map(|_| (0..draws.min(1 << 18)).map(|_| sorted[random.usize(..last)]).collect())
            .collect();
        Input { keys, sorted, lookups, starts }
    }
}
