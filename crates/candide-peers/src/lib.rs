//! Measurements of Candide beside other libraries, in one process. The command `maps` compares
//! Candide's tables with the concurrent maps of the Rust ecosystem. This page is about `maps`. The
//! command `stores` compares whole transactions with those of other stores, of SQL, of software
//! transactional memory and of hand-written locking: see [`stores`]. The command `stamp` compares
//! two whole programs: see [`mod@stamp`]. The command `objects` compares maps and queues within
//! transactions: see [`objects`].
//!
//! ```text
//! cd crates/candide-peers
//! cargo run --release --bin maps                                 # ten minutes and more
//! cargo run --release --bin maps -- --rows 100000 --duration 100ms --only candide,papaya
//! cargo run --release --bin maps -- --misses --plot lookups.svg
//! ```
//!
//! The crate is a workspace of its own, so that a build of Candide does not compile the other
//! projects. To add a map, write one file in `src/maps` that implements [`Map`] and [`Handle`], and
//! one line in the list of `src/maps`.
//!
//! # What is compared
//! The comparison covers lookups of present keys, inserts, and scans of ten and of a thousand rows
//! from a present key. Keys are drawn uniformly before the clock starts. The value is one word, and
//! scans sum up only the values. All maps are measured in one process. In each run the maps take
//! turns, and medians are compared. No lookup waits for the result of another lookup, so the
//! processor overlaps as many lookups as fit into its instruction window: the fewer instructions a
//! lookup needs, the more lookups overlap. Keys of 8 bytes are spread over all of `u64`. Keys of 24
//! bytes are three words. Many rows share the first two words, as in composite keys of tables.
//!
//! *Inserts* fill an empty map in random order. The map is not told its final size, so the figure
//! contains all growth of the map and all first touches of memory. `malloc` can reuse memory that
//! an earlier map has freed. Candide maps its memory anew each time.
//!
//! # What is not comparable
//! - **The maps give no atomicity beyond one key.** Each of their operations is independent, and a
//!   scan may see all, some or none of the concurrent writes. A Candide transaction is serializable
//!   with all others, however many rows it reads and writes. The figures show the cost of this
//!   guarantee to a program that does not need it.
//! - A closure of one read is not the usual form of a transaction. So there are several lines.
//!   `candide` has one operation per transaction. `candide-now` looks up by `get_now`, which is a
//!   transaction without a closure. `candide-10` has ten operations per transaction. `candide-many`
//!   looks up the ten rows with `find_many`, which overlaps their cache misses. No peer has such an
//!   operation.
//! - Doubtful choices favour the peers. If a map requires an epoch's guard or a lock, the guard or
//!   lock is taken once for ten lookups or inserts. The maps are then treated like `candide-10`,
//!   and have an advantage beside `candide` and `candide-now`. `dashmap` and `scc::HashMap` require
//!   neither a guard nor a lock. Each scan takes its own guard or lock.
//! - Candide hashes with a multiplication per word. The hash maps use `foldhash`, which is similar.
//!   With `--hasher sip` these maps use the standard library's hash. That hash is their default,
//!   and protects better against chosen keys.
//! - Candide requests huge pages. If the system gives huge pages only on request, the other maps
//!   get them only with `GLIBC_TUNABLES=glibc.malloc.hugetlb=1` in the environment. Huge pages
//!   change the figures of maps with millions of rows.
//! - A row of Candide contains a version, and its payload may be longer than one word. Rows of one
//!   word are the worst case for Candide.
//! - `congee` has only keys of 8 bytes. `masstree` has keys of bytes, so keys are converted in the
//!   measured time. `masstree` offers scans that return only values and build no keys. The
//!   measurement uses these scans. Version 0.9.5 skips rows if a scan begins at a key that shares
//!   its first eight bytes with more than fifteen other keys. A peer with wrong scans is left out
//!   of the scans, and the output says so.
//! - `SkipMap::range` of crossbeam-skiplist 0.1.3 leaks a reference to each node that it visits, so
//!   a node that is removed later is never freed. The scans are measured with this defect.
//! - `btreemap` is the standard library's map behind an `RwLock`. `btreemap` is not a peer but a
//!   yardstick: it shows the cost of concurrency.

// Unsafe code is used only for peers that cannot be used without it.
#![deny(unsafe_code)]

// Layers, lowest first: role, key, map, input, counters, chase, threads, command, cli, contender,
// maps, figures, report, table, plot, suite, timed, stores,
// stamp, objects.

mod chase;
pub mod cli;
mod command;
mod contender;
mod counters;
mod figures;
mod input;
mod key;
mod map;
mod maps;
pub mod objects;
mod plot;
mod report;
mod role;
pub mod stamp;
pub mod stores;
mod suite;
mod table;
mod threads;
mod timed;

pub use command::execute;
pub use key::{Key, Wide};
pub use map::{BATCH, Handle, Kind, Map, fold_rows, sum_of};
pub use role::Role;
pub use suite::{check, run};
