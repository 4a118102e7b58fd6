//! The write set of a transaction.

mod bases;
mod by_address;
mod change;
mod checkpoints;
mod ends;
mod failures;
mod filter;
mod item;
mod keyed;
mod keyed_op;
mod late_row;
mod late_rows;
mod operations;
mod outcome_note;
mod savepoint;
pub(crate) mod steps;
mod sums;
mod unit_steps;
mod user_codes;
#[cfg(test)]
mod visits;
mod write_set;

pub(crate) use by_address::{AddressMap, ByAddress};
pub(crate) use change::ChangeKind;
pub use change::{Change, ChangeSink};
pub use item::Intent;
pub(crate) use item::{Mark, WriteItem};
pub(crate) use keyed_op::KeyedOp;
pub(crate) use late_row::LateRow;
pub(crate) use outcome_note::{OutcomeNote, Outcomes};
pub(crate) use savepoint::Savepoint;
pub(crate) use steps::Steps;
pub(crate) use sums::Sums;
#[cfg(test)]
pub(crate) use visits::VISITS;
pub use write_set::{Failure, WriteSet};
