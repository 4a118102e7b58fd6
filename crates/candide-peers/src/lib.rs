//! Candide measured beside others, in one process. The command `maps` compares its tables with the
//! concurrent maps of the Rust ecosystem, which is what the rest of this page is about; the command
//! `stores` compares whole transactions with those of other stores, of SQL, of software
//! transactional memory and of locks by hand: see [`stores`].
//!
//! ```text
//! cd crates/candide-peers
//! cargo run --release --bin maps                                 # ten minutes and more
//! cargo run --release --bin maps -- --rows 100000 --duration 100ms --only candide,papaya
//! cargo run --release --bin maps -- --misses --plot lookups.svg
//! ```
//!
//! A workspace of its own, so that other projects are not compiled by accident. A map
//! is one file in `src/maps` that implements [`Map`] and [`Handle`], and one line in the list
//! there.
//!
//! # What is compared
//! Lookups of keys that are there, inserts, and scans of ten and of a thousand rows from a key that
//! is there. Keys are drawn uniformly, before the clock starts. The value is one word; of a scan,
//! only values are summed up. Everything is measured in one process; in each run the maps take
//! turns, and medians are compared. No lookup waits for another one's result, so the processor
//! overlaps as many as it has room for; the fewer instructions a map needs, the more. Keys of 8
//! bytes are spread over all of `u64`; keys of 24 bytes are three words, the first two of which
//! many rows share, as in composite keys of tables.
//!
//! *Inserts* fill an empty map, which is not told how large it will become, in random order. The
//! figure therefore contains all growing and all first touches of memory. Memory that `malloc` got
//! back from an earlier map it need not ask for again; Candide maps its memory anew each time.
//!
//! # What is not comparable
//! - **The maps give no atomicity beyond one key.** Each of their operations stands for itself, and
//!   a scan sees what is written meanwhile half or not at all. A Candide transaction is
//!   serializable with all others, whatever number of rows it reads and writes. What is measured
//!   here is what that costs where it is not needed.
//! - A closure of one read is not what transactions are for. There are therefore several lines:
//!   `candide` with one operation per transaction, `candide-now` whose lookups are by `get_now`, a
//!   transaction without a closure, and `candide-10` with ten operations in each. `candide-many`
//!   looks up the ten with `find_many`, which overlaps their cache misses; no peer has the like.
//! - Peers get the best of the doubt: what one must hold to use a map, an epoch's guard or a lock,
//!   is taken once for ten lookups or inserts, which is fair beside `candide-10` and generous
//!   beside `candide` and `candide-now`. `dashmap` and `scc::HashMap` have nothing to hold. A scan
//!   takes its own.
//! - Candide hashes with a multiplication per word. The hash maps are given `foldhash`, which is
//!   much the same; `--hasher sip` gives them the standard library's, which is what they use unless
//!   told otherwise, and which protects better against chosen keys.
//! - Candide asks for huge pages. Where the system gives them only to those who ask, the others get
//!   them if `GLIBC_TUNABLES=glibc.malloc.hugetlb=1` is in the environment: at millions of rows
//!   that matters.
//! - A row of Candide carries a version and may be longer than one word; a table of one word is its
//!   worst case.
//! - `congee` has keys of 8 bytes and nothing else. `masstree` takes bytes: keys are converted in
//!   the measured time. Its scans, when only values are wanted, do not build keys; it offers that,
//!   so it is used. Version 0.9.5 skips rows when a scan begins at a key that shares its first
//!   eight bytes with more than fifteen others. A peer whose scans are found to be wrong is left
//!   out of them, and the output says so.
//! - `SkipMap::range` of crossbeam-skiplist 0.1.3 leaks a reference to each node it visits: a node
//!   removed later is never freed. Scans are measured as they are.
//! - `btreemap` is the standard library's map behind an `RwLock`: a yardstick for what concurrency
//!   costs, not a peer.

// Only where a peer cannot be had otherwise.
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

/// Lookups or inserts that an adaptor is given at once.
pub const BATCH: usize = 10;

/// How a map finds its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// By hash: it cannot scan.
    Hash,
    /// In order.
    Ordered,
}

/// What a map does among the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// It is Candide, used in some way.
    Candide,
    /// Candide is compared with the best of these.
    Peer,
    /// It is there for orientation.
    Yardstick,
}

/// A map under measurement: from keys to one word.
pub trait Map<K: Key>: Sync + Sized + 'static {
    /// Its name, as in `--only`.
    const NAME: &'static str;
    /// How it finds its rows.
    const KIND: Kind;
    /// What it does among the others.
    const ROLE: Role;

    /// What a thread needs to use it.
    type Handle<'m>: Handle<K>
    where
        Self: 'm;

    /// An empty map of no particular size.
    fn new() -> Self;

    /// A handle for the calling thread.
    fn handle(&self) -> Self::Handle<'_>;
}

/// One thread's way into a map.
pub trait Handle<K: Key> {
    /// Inserts keys that are not there yet, each with its [value](Key::value).
    fn insert(&mut self, keys: &[K]);

    /// Looks the keys up; the sum of their values, or `None` if one is not there.
    fn lookup(&mut self, keys: &[K]) -> Option<u64>;

    /// Visits at most `count` rows in ascending order, beginning with the first whose key is not
    /// below `from`. Only called on ordered maps.
    ///
    /// It starts from `A::default()` whenever it starts again.
    fn scan<A: Default>(&mut self, from: &K, count: usize, step: impl Fn(&mut A, &K, u64)) -> A;

    /// The sum of the values that a scan visits: what is measured. For maps that can do without the
    /// keys.
    #[inline]
    fn scan_values(&mut self, from: &K, count: usize) -> u64 {
        self.scan(from, count, |sum: &mut u64, _, value| *sum = sum.wrapping_add(value))
    }
}

/// The sum of the values that `get` finds for `keys`; `None` if it misses one.
#[inline]
pub fn sum_of<K>(keys: &[K], mut get: impl FnMut(&K) -> Option<u64>) -> Option<u64> {
    keys.iter().try_fold(0u64, |sum, key| Some(sum.wrapping_add(get(key)?)))
}

/// Lets `step` see at most `count` of `rows`.
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
