//! A picture of one task in Candide, redb, fjall, and maps behind a mutex, without durability and
//! with it, and the table of its figures.
//!
//! ```text
//! cd crates/candide-peers
//! cargo run --release --no-default-features --features fjall,redb --bin beside -- DIRECTORY --picture beside.svg --page beside.md
//! ```
//!
//! The task is `transfer` of [`stores`](super): a transaction moves money between two of 100,000
//! accounts. In memory, it is measured as there; with each commit synced, as in
//! [`durable`](super::durable), in a new folder of the given directory. In each round, all stores
//! take their turns, for each number of threads. After each turn, the accounts are checked.
//!
//! The picture compares a store with Candide at the same number of threads. A ratio is the median
//! of those of the rounds, by the rule of the reports ([`Doubt`](candide_harness::results::Doubt)):
//! none is given if the rounds differ more from each other than the stores do, and nothing is drawn
//! if a thread had less than 0.8 of a core.
//!
//! The page must have two lines, `<!-- figures -->` and `<!-- end of figures -->`, between which
//! the command puts the table.

mod cli;
mod figures;
mod page;
mod picture;
mod suite;

#[cfg(test)]
mod tests;

pub use cli::Options;
pub use suite::run;
