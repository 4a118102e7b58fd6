//! Micro-benchmarks of one kind of operation.

mod array;
mod beside;
mod predicate;
mod range;

pub use array::{Array, ArrayTable, ArrayWorker, Number};
pub use beside::{Beside, BesideTable, BesideWorker, Holding};
pub use predicate::{Balance, Predicate, PredicateTables, PredicateWorker};
pub use range::{Ranges, RangesTables, RangesWorker};
