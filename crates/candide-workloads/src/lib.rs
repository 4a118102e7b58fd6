//! Standard workloads for Candide, each written once and generic over the protocol that runs it.
//!
//! A [`Workload`] is a set of knobs. Loading it into a database gives a [`Loaded`]. A [`Loaded`]
//! makes one [`Worker`] per thread. Afterwards it can check that the tables hold what the committed
//! transactions wrote. Nothing here measures: a driver calls [`Worker::step`] in a loop and keeps
//! the time.
//!
//! | workload | tables | transactions |
//! |---|---|---|
//! | [`ycsb::Ycsb`] | one of 10 columns of 100 bytes, or of 10 | point reads and writes of single columns |
//! | [`micro::Ranges`] | one of 10 columns of 10 bytes, in order | scans of up to 99 rows, and modifications of one |
//! | [`micro::Predicate`] | balances | a look whether one is above ten, and what follows from it |
//! | [`two_tables::LongScan`] | a row that all want, and a million | a read, a scan, a write |
//! | [`two_tables::Shifting`] | the same | by turns a read and a write of that row, before 20 reads |
//! | [`smallbank::SmallBank`] | accounts, names, savings, checking | the six of SmallBank |
//! | [`rubis::Rubis`] | items, bids, purchases | bidding, buying and looking at an item of an auction site |
//! | [`tpcc::Tpcc`] | the nine of TPC-C | new-order, payment, order-status, delivery, stock-level |
//! | [`wikipedia::Wikipedia`] | ten: users, pages, revisions, texts, watched pages | looking at pages, listing, editing, watching |
//! | [`tpcb::TpcB`] | branches, tellers, accounts, history | small deposits, of which a branch sees many |
//! | [`voter::Voter`] | contestants, area codes, votes, two counts of them | votes by telephone |
//! | [`random::Random`] | two small ones, one with indexes | everything the engine can do, drawn at random |
//!
//! [`clients`] are for checking only: they record their requests and the answers.
//!
//! If one row is accessed more often than others, [`Workload::hottest`] names it, and workers give
//! a [`Probe`] of it.
//!
//! Inputs are drawn before a transaction's first attempt. Every retry uses the same inputs, so a
//! retry repeats the same work.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod causes;
pub mod clients;
mod consistency;
mod counter;
mod hottest;
mod load;
pub mod micro;
pub mod random;
mod read_back;
mod replay;
mod rng;
pub mod rubis;
pub mod smallbank;
pub mod tpcb;
pub mod tpcc;
pub mod two_tables;
pub mod voter;
pub mod wikipedia;
mod workload;
pub mod ycsb;
mod zipf;

pub use causes::{Cause, Causes};
pub use consistency::Consistency;
pub use hottest::Probe;
pub use load::Loading;
pub use replay::Stopped;
pub use rng::stream;
pub use workload::{Failure, Loaded, Size, Step, Timeline, Worker, Workload};
pub use zipf::{THETA_MAX, Zipf};
