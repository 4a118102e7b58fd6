//! Candide measured beside others, in one process. The command `maps` compares its tables with the
//! concurrent maps of the Rust ecosystem; this page is about that command. The command `stores`
//! compares whole transactions with those of other stores, of SQL, of software transactional memory
//! and of locks by hand: see [`stores`].
//!
//! ```text
//! cd crates/candide-peers
//! cargo run --release --bin maps                                 # ten minutes and more
//! cargo run --release --bin maps -- --rows 100000 --duration 100ms --only candide,papaya
//! cargo run --release --bin maps -- --misses --plot lookups.svg
//! ```
//!
//! The crate is a workspace of its own, so that the other projects are not compiled by accident. A
//! map is one file in `src/maps` that implements [`Map`] and [`Handle`], and one line in the list
//! there.
//!
//! # What is compared
//! The comparison covers lookups of present keys, inserts, and scans of ten and of a thousand rows
//! from a present key. Keys are drawn uniformly before the clock starts. The value is one word, and
//! scans sum up only the values. Everything is measured in one process. In each run the maps take
//! turns, and medians are compared. No lookup waits for the result of another, so the processor
//! overlaps as many lookups as it has room for: the fewer instructions a lookup needs, the more of
//! them overlap. Keys of 8 bytes are spread over all of `u64`. Keys of 24 bytes are three words.
//! Many rows share the first two words, as in composite keys of tables.
//!
//! *Inserts* fill an empty map in random order. The map is not told its final size, so the figure
//! contains all growing and all first touches of memory. `malloc` need not request memory again
//! that it got back from an earlier map; Candide maps its memory anew each time.
//!
//! # What is not comparable
//! - **The maps give no atomicity beyond one key.** Each of their operations is independent, and a
//!   scan may see all, some or none of the concurrent writes. A Candide transaction is serializable
//!   with all others, however many rows it reads and writes. The figures show what this costs where
//!   it is not needed.
//! - A closure of one read is not the usual form of a transaction. So there are several lines:
//!   `candide` with one operation per transaction, `candide-now` with lookups by `get_now`, a
//!   transaction without a closure, and `candide-10` with ten operations per transaction.
//!   `candide-many` looks up the ten rows with `find_many`, which overlaps their cache misses; no
//!   peer has such an operation.
//! - Peers get the benefit of the doubt. An epoch's guard or a lock that a map requires is taken
//!   once for ten lookups or inserts. This is fair beside `candide-10` and generous beside
//!   `candide` and `candide-now`. `dashmap` and `scc::HashMap` require neither. Each scan takes its
//!   own.
//! - Candide hashes with a multiplication per word. The hash maps use `foldhash`, which is similar.
//!   With `--hasher sip` they use the standard library's hash, which is their default and protects
//!   better against chosen keys.
//! - Candide requests huge pages. If the system gives huge pages only on request, the other maps
//!   get them with `GLIBC_TUNABLES=glibc.malloc.hugetlb=1` in the environment. With millions of
//!   rows, this matters.
//! - A row of Candide carries a version and may be longer than one word. A table of one word is the
//!   worst case for Candide.
//! - `congee` has only keys of 8 bytes. `masstree` has keys of bytes, so keys are converted in the
//!   measured time. It offers scans that return only values and build no keys; these are used.
//!   Version 0.9.5 skips rows if a scan begins at a key that shares its first eight bytes with more
//!   than fifteen others. A peer with wrong scans is left out of the scans, and the output says so.
//! - `SkipMap::range` of crossbeam-skiplist 0.1.3 leaks a reference to each node that it visits, so
//!   a node that is removed later is never freed. Scans are measured as they are.
//! - `btreemap` is the standard library's map behind an `RwLock`. It is not a peer but a yardstick
//!   for the cost of concurrency.

// Unsafe code is used only for peers that cannot be used otherwise.
#![deny(unsafe_code)]

pub mod cli;
mod contender;
mod cores;
mod counters;
mod figures;
mod input;
mod key;
mod maps;
mod plot;
mod report;
pub mod stores;
mod suite;
mod table;

pub use key::{Key, Wide};
pub use suite::{check, run};

/// The number of lookups or inserts that an adaptor gets at once.
pub const BATCH: usize = 10;

/// How a map finds its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// By hash. Such a map cannot scan.
    Hash,
    /// In order.
    Ordered,
}

/// The role of a map in the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Candide, used in some way.
    Candide,
    /// A peer. Candide is compared with the best of the peers.
    Peer,
    /// A yardstick, for orientation only.
    Yardstick,
}

/// A map under measurement, from keys to values of one word.
pub trait Map<K: Key>: Sync + Sized + 'static {
    /// The map's name, as in `--only`.
    const NAME: &'static str;
    /// How the map finds its rows.
    const KIND: Kind;
    /// The map's role in the comparison.
    const ROLE: Role;

    /// A thread's handle to the map.
    type Handle<'m>: Handle<K>
    where
        Self: 'm;

    /// Creates an empty map of no particular size.
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

    /// Passes at most `count` rows to `step` in ascending order, beginning with the first row whose
    /// key is not below `from`. Only called on ordered maps.
    ///
    /// If the map repeats the scan, each repetition begins with `A::default()`.
    fn scan<A: Default>(&mut self, from: &K, count: usize, step: impl Fn(&mut A, &K, u64)) -> A;

    /// Returns the sum of the values that a scan visits. This is what is measured. Maps that can
    /// scan without building keys override this method.
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
