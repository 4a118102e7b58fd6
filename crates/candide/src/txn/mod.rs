//! Transactions: the meaning of an operation after earlier operations of the same transaction,
//! under any protocol.

#![forbid(unsafe_code)]

mod ahead;
mod conflict;
mod deferred;
mod ends;
#[cfg(feature = "tracing")]
mod events;
mod index_entries;
mod index_scratch;
mod keyed;
mod late_rows;
mod limit_updates;
mod limits;
mod lookup;
#[cfg(any(feature = "histograms", feature = "tracing"))]
mod observed;
#[cfg(not(any(feature = "histograms", feature = "tracing")))]
#[path = "unobserved.rs"]
mod observed;
mod options;
mod outcome;
mod registration;
mod run;
mod savepoint;
mod session_log;
mod staging;
mod state;
mod step_list;
mod steps;
mod tx;
mod units;
mod values;

pub use conflict::Conflict;
pub(crate) use lookup::InsertTarget;
pub use options::RunOptions;
pub use outcome::Outcome;
pub(crate) use run::{SessionShared, TxnRunner};
pub(crate) use staging::{FreeColumnsOnly, KeptImage, SoleStager, Stager};
pub(crate) use state::{Mark, State};
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) use step_list::OwnedList;
pub(crate) use step_list::{Entry, Phase, StepList};
pub(crate) use tx::Effects;
pub use tx::Tx;
