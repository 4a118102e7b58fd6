//! Histories of transactions, and checkers that say whether they are serializable.
//!
//! A [`History`](Event) is what somebody noted of the transactions of a database: what each read, went through and wrote, in
//! which versions, and when. A [black-box history](black) says only what clients asked for and were told. Both can be kept in
//! files, by [`json`] and [`edn`].

#![forbid(unsafe_code)]

mod anomaly;
pub mod black;
pub mod edn;
mod format;
mod graph;
mod history;
#[cfg(feature = "formats")]
pub mod json;
mod white;

pub use anomaly::{About, Anomaly, Evidence, Party, Step, Violation};
pub use format::FormatError;
pub use graph::{Edge, Graph, Kind, Kinds};
pub use history::{Access, Event, Forgotten, Key, Scan, Transaction};
pub use white::{Checker, Options, Summary, Verdict};
