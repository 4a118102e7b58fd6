//! Transactions: the meaning of an operation after earlier operations of the same transaction,
//! under any protocol.

#![forbid(unsafe_code)]

mod conflict;
mod deferred;
#[cfg(feature = "tracing")]
mod events;
mod index_entries;
mod index_scratch;
mod limit_updates;
mod limits;
mod options;
mod run;
mod savepoint;
mod session_log;
mod staging;
mod state;
mod tx;

pub use conflict::Conflict;
pub use options::RunOptions;
pub(crate) use run::{SessionShared, TxnRunner};
pub(crate) use staging::{FreeColumnsOnly, Stager};
pub(crate) use state::{InsertTarget, Mark, State};
pub(crate) use tx::Effects;
pub use tx::Tx;
