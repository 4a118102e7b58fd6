//! The write set of a transaction.

mod by_address;
mod change;
mod filter;
mod item;
mod late_row;
mod late_rows;
mod operations;
mod savepoint;
pub(crate) mod steps;
mod unit_steps;
mod write_set;

pub(crate) use by_address::{AddressMap, ByAddress};
pub(crate) use change::ChangeKind;
pub use change::{Change, ChangeSink};
pub use item::Intent;
pub(crate) use item::{Mark, WriteItem};
pub(crate) use late_row::LateRow;
pub(crate) use operations::Sums;
#[cfg(test)]
pub(crate) use operations::VISITS;
pub(crate) use savepoint::Savepoint;
pub(crate) use steps::Steps;
pub use write_set::{Failure, WriteSet};
