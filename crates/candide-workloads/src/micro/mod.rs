//! Micro-benchmarks of one kind of operation.

mod predicate;
mod range;

pub use predicate::{Balance, Predicate, PredicateTables, PredicateWorker};
pub use range::{Ranges, RangesTables, RangesWorker};
