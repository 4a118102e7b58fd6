//! Micro-benchmarks of one kind of operation.

mod array;
mod predicate;
mod range;

pub use array::{Array, ArrayTable, ArrayWorker, Number};
pub use predicate::{Balance, Predicate, PredicateTables, PredicateWorker};
pub use range::{Ranges, RangesTables, RangesWorker};
