//! Standard workloads for Candide, each written once and generic over the protocol that runs it.
//!
//! A [`Workload`] is a set of knobs. Loading a workload into a database gives a [`Loaded`]. A
//! [`Loaded`] makes one [`Worker`] per thread. After the workers have finished, the [`Loaded`] can
//! check that the tables hold what the committed transactions wrote. Nothing here measures: a
//! driver calls [`Worker::step`] in a loop and keeps the time.
//!
//! | workload | tables | transactions |
//! |---|---|---|
//! | [`ycsb::Ycsb`] | one of 10 columns of 100 bytes, or of 10 | point reads and writes of single columns |
//! | [`micro::Ranges`] | one of 10 columns of 10 bytes, ordered | scans of up to 99 rows, and modifications of a single row |
//! | [`micro::Predicate`] | balances | subtracting one from a balance above ten, or refilling the balance |
//! | [`micro::Array`] | numbers | increments, each thread in a shard of its own |
//! | [`micro::Beside`] | balances | some threads read all of them, the others move amounts between two |
//! | [`two_tables::LongScan`] | one row that all transactions use, and a million rows | a read, a scan, a write |
//! | [`two_tables::Shifting`] | the same | a read or, in alternate phases, a write of the one row, and then 20 reads |
//! | [`smallbank::SmallBank`] | accounts, names, savings, checking | the six of SmallBank |
//! | [`rubis::Rubis`] | items, bids, purchases | bidding on, buying and viewing an item of an auction site |
//! | [`tpcc::Tpcc`] | the nine of TPC-C | new-order, payment, order-status, delivery, stock-level |
//! | [`wikipedia::Wikipedia`] | ten: users, pages, revisions, texts, watched pages | viewing, listing, editing and watching pages |
//! | [`tpcb::TpcB`] | branches, tellers, accounts, history | small deposits, many of them at the same branch |
//! | [`stamp::kmeans::Kmeans`] | centres, two counters | adding points to the nearest centre, claiming points |
//! | [`stamp::vacation::Vacation`] | cars, flights, rooms, customers, reservations | reserving, cancelling, adding and removing |
//! | [`stamp::labyrinth::Labyrinth`] | a grid, a queue, a list | connecting pairs of cells by paths that do not meet |
//! | [`stamp::intruder::Intruder`] | two queues, a set | putting packets together, taking texts to be searched for attacks |
//! | [`stamp::genome::Genome`] | two sets, a table of entries | inserting segments, linking those that overlap |
//! | [`stamp::bayes::Bayes`] | a network, a sorted list | changing edges of the network, looking for better ones |
//! | [`random::Random`] | two small ones, one with indexes | random operations of every kind |
//!
//! [`clients`] are for checking only: they record their requests and the answers.
//!
//! If one row is accessed more often than others, [`Workload::hottest`] names this row, and workers
//! give a [`Probe`] of it.
//!
//! [`Think`] is work that the transactions of some workloads do after each of their operations.
//!
//! Inputs are drawn before a transaction's first attempt. Every retry uses the same inputs, so a
//! retry repeats the same work.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

// Layers, lowest first: causes, consistency, counter, failure, replay, rng, think, zipf, load,
// read_back, hottest, workload, clients, random, rubis, smallbank, stamp, tpcb, tpcc, wikipedia,
// ycsb, micro, two_tables.
mod causes;
pub mod clients;
mod consistency;
mod counter;
mod failure;
mod hottest;
mod load;
pub mod micro;
pub mod random;
mod read_back;
mod replay;
mod rng;
pub mod rubis;
pub mod smallbank;
pub mod stamp;
mod think;
pub mod tpcb;
pub mod tpcc;
pub mod two_tables;
pub mod wikipedia;
mod workload;
pub mod ycsb;
mod zipf;

pub use causes::{Cause, Causes};
pub use consistency::Consistency;
pub use failure::Failure;
pub use hottest::Probe;
pub use load::Loading;
pub use replay::Stopped;
pub use rng::stream;
pub use think::Think;
pub use workload::{Loaded, Size, Step, Timeline, Worker, Workload};
pub use zipf::{THETA_MAX, Zipf};

/// The README's programs, which no published package can include.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct ReadmeExamples;
