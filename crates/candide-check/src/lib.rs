//! Histories of transactions, and checkers that say whether they are serializable.
//!
//! A history is a record of the transactions of a database, line by line: an [`Event`]
//! says what one transaction read, went through and wrote, in which versions, and when, or that a
//! deleted row has left no trace. A [`Checker`] takes the lines as they come, on one core some
//! hundred thousand transactions a second, and forgets what can no longer matter, so that it can
//! run beside a load for as long as that runs. Its verdict is about the whole history all the same:
//! a cycle is found whatever time it spans. Where it forgot too much to say, it says so. A
//! [`Violation`] prints as a report: the anomaly by its name, and a smallest cycle with the
//! transactions, keys and versions that make each step of it.
//!
//! A [black-box history](black) says only what clients asked for and were told; its checker trusts
//! nothing the database says of versions. Both kinds can be kept in files, by `json` (with the
//! feature `formats`, on by default) and [`edn`].
//!
//! The crate knows nothing of the database that is checked, so whatever can note versions can be
//! checked. What it cannot see is what was not noted: it is as honest as the history.
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
//! A long history is fed in windows. Between them, [`Checker::advance`] says how far it is
//! complete:
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
//! Where the lines are in no order of time, as in a file, [`Windows`] says how far they are
//! complete.
//!
//! How it works, what each dependency is and why linear time suffices is told where the checker is,
//! in `white`; cycles are found in `graph` and named in `anomaly`.

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
pub use white::{Checker, Options, Summary, Verdict, Windows};
