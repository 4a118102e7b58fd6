//! Histories of transactions, and checkers that say whether they are serializable.
//!
//! A [`History`](Event) is what somebody noted of the transactions of a database: what each read, went through and wrote, in
//! which versions, and when.

#![forbid(unsafe_code)]

pub mod black;
pub mod edn;
mod format;
mod history;
#[cfg(feature = "formats")]
pub mod json;

pub use format::FormatError;
pub use history::{Access, Event, Forgotten, Key, Scan, Transaction};
