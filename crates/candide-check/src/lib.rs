//! Histories of transactions, and checkers that decide whether a history is serializable.
//!
//! A history is a record of the transactions of a database, line by line. Each line is an
//! [`Event`]. An event states what one transaction read, scanned and wrote, in which versions, and
//! when; or it states that the record of a deleted row has been removed. A [`Checker`] accepts the
//! lines as they come, some hundred thousand transactions a second on one core. The checker forgets
//! facts that can no longer affect the verdict, so it can run beside a load for as long as the load
//! runs. Its verdict still covers the whole history: the checker finds a cycle over any span of
//! time. If it has forgotten too much to decide, the verdict says so. A [`Violation`] prints as a
//! report: the name of the anomaly, and a smallest cycle with the transactions, keys and versions
//! of each step.
//!
//! A [black-box history](black) contains only the requests of clients and the answers that they
//! got. Its checker does not rely on versions from the database. Both kinds of history can be kept
//! in files, by `json` (with the feature `formats`, on by default) and [`edn`].
//!
//! The crate depends on no particular database: every database that can record versions can be
//! checked. The checker cannot see events that were not recorded, so its verdict is only as
//! reliable as the history.
//!
//! ```
//! use candide_check::{Access, Anomaly, Checker, Event, Options, Transaction, Verdict};
//!
//! let account = |key: u64, version: u64| {
//!     Access { table: 0, key: [key].into(), group: 0, version: Some(version), present: true }
//! };
//! let transaction = |session, begun, reads: &[Access], writes: &[Access]| {
//!     Event::Transaction(Transaction {
//!         session,
//!         begun,
//!         ended: begun + 10,
//!         committed: true,
//!         reads: reads.to_vec(),
//!         scans: vec![],
//!         writes: writes.to_vec(),
//!         as_of: None,
//!     })
//! };
//!
//! // Two accounts, and two transactions at once that each look at both and take from one.
//! let history = [
//!     transaction(0, 1, &[], &[account(1, 1), account(2, 1)]),
//!     transaction(1, 20, &[account(1, 1), account(2, 1)], &[account(1, 2)]),
//!     transaction(2, 21, &[account(1, 1), account(2, 1)], &[account(2, 2)]),
//! ];
//! let mut checker = Checker::new(Options { strict: true, ..Options::default() });
//! history.iter().for_each(|event| checker.feed(event));
//! let Verdict::Violated(violation) = checker.finish().verdict else { panic!("this is not serializable") };
//! assert_eq!(violation.anomaly, Anomaly::WriteSkew);
//! println!("{violation}");
//! ```
//!
//! A long history is fed in windows. After each window, [`Checker::advance`] tells the checker up
//! to which time the history is complete:
//!
//! ```
//! # use candide_check::{Access, Checker, Event, Options, Transaction, Verdict};
//! // A counter that goes up a hundred thousand times; at most one window of it is held.
//! let mut checker = Checker::new(Options { strict: true, horizon: 0, ..Options::default() });
//! for count in 1..=100_000_u64 {
//!     let counter = |version| Access { table: 0, key: [0].into(), group: 0, version: Some(version), present: true };
//!     let reads = if count > 1 { vec![counter(count - 1)] } else { vec![] };
//!     let (begun, ended, writes) = (10 * count, 10 * count + 9, vec![counter(count)]);
//!     checker.feed(&Event::Transaction(Transaction {
//!         session: 0, begun, ended, committed: true, reads, scans: vec![], writes,
//!         as_of: None,
//!     }));
//!     if count % 1_000 == 0 {
//!         checker.advance(ended);
//!         assert!(checker.live() < 2_000 && checker.violation().is_none());
//!     }
//! }
//! assert_eq!(checker.finish().verdict, Verdict::Serializable);
//! ```
//!
//! The lines of a file need not be in order of time. For such a history, [`Windows`] computes the
//! time up to which the history is complete after each window.
//!
//! The module `white` explains how the checker works, defines the dependencies, and shows why
//! linear time suffices. The module `graph` finds cycles, and `anomaly` names them.

#![forbid(unsafe_code)]

// Layers, lowest first: history, graph, anomaly, format, white, black, edn, json.
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
pub use white::{Checker, Options, Summary, Verdict, Windows};
