//! Checks of the results that clients saw. These checks rely on nothing that the database reports
//! about itself.
//!
//! Clients append values to lists and read whole lists ([`check_lists`]), or write and read
//! registers ([`check_registers`]). No value is written to a key twice, so each value that is read
//! identifies the transaction that wrote it. The method is that of Elle (K. Kingsbury and P.
//! Alvaro, "Elle: Inferring Isolation Anomalies from Experimental Observations", PVLDB 14(3),
//! 2020).
//!
//! ```
//! use candide_check::Anomaly;
//! use candide_check::black::{ListOp::{Append, Read}, Options, Outcome, Transaction, check_lists};
//!
//! let committed = |session, operations| {
//!     Transaction { session, invoked: 10 * session, completed: 10 * session + 15, outcome: Outcome::Committed, operations }
//! };
//! // Two doctors see each other on call, and both go home.
//! let history = [
//!     committed(1, vec![Read { key: 7, values: vec![] }, Append { key: 8, value: 1 }]),
//!     committed(2, vec![Read { key: 8, values: vec![] }, Append { key: 7, value: 1 }]),
//!     committed(3, vec![Read { key: 7, values: vec![1] }, Read { key: 8, values: vec![1] }]),
//! ];
//! let violation = check_lists(&history, Options::default()).unwrap_err();
//! assert_eq!(violation.anomaly, Anomaly::WriteSkew);
//! println!("{violation}");
//!
//! assert!(check_lists(&history[..1], Options::default()).is_ok());
//! ```
//!
//! # What is refused, and what is not
//!
//! *Lists.* The longest read of a list by a committed transaction gives the order of the list's
//! elements. Every other read must be a prefix of that order. Elements that committed transactions
//! appended and no transaction read come after the longest read, in any order. The order of
//! elements implies the order of transactions. A history is refused if and only if no serial order
//! explains everything that its committed transactions read. If [`Options`] require it, the serial
//! order must also respect the order of sessions or of real time.
//!
//! *Registers.* The order of values is known only in part. These rules give edges between
//! transactions:
//! 1. A transaction that read a value comes after the transaction that wrote the value.
//! 2. A register has no value before its first write. So a transaction that read no value comes
//!    before all transactions that wrote the register.
//! 3. A transaction that read a value and then wrote the register wrote the next value. So it comes
//!    after the writer of the value that it read, and after all other readers of that value.
//! 4. With the order of sessions, the later of two writes in a session wrote a later value. With
//!    real time, a transaction that was invoked after another had completed wrote a later value.
//! 5. Let R have read the value of W, and let V be another writer of the register. If V comes
//!    before R, V comes before W; if W comes before V, R comes before V. This rule is applied until
//!    it gives no further edge.
//!
//! A cycle refuses the history. If there is none, the order of some writes may still be open, and
//! to decide whether they have one is NP-complete. A search places one transaction after another,
//! and turns back where none can follow. If it finds an order, the order is played through, and the
//! history is accepted. If all orders of some transactions were tried, the history is refused. The
//! search ends after a number of steps; then the verdict is
//! [`Inconclusive`](crate::Verdict::Inconclusive). This verdict has been seen only for thousands of
//! transactions, in checks that regard no sessions and no real time. So lists are preferable.
//!
//! ```
//! use candide_check::{Anomaly, Verdict};
//! use candide_check::black::{Options, Outcome, RegisterOp::{Read, Write}, Transaction, check_registers};
//!
//! let committed = |session, invoked, operations| {
//!     Transaction { session, invoked, completed: invoked + 5, outcome: Outcome::Committed, operations }
//! };
//! let history = [
//!     committed(1, 10, vec![Write { key: 7, value: 100 }]),
//!     committed(2, 20, vec![Read { key: 7, value: None }]),
//!     committed(3, 30, vec![Read { key: 7, value: Some(100) }]),
//! ];
//! // The second may come first, but not if real time counts.
//! assert_eq!(check_registers(&history, Options::default()), Verdict::Serializable);
//! let Verdict::Violated(violation) = check_registers(&history, Options { real_time: true, ..Options::default() })
//!     else { panic!("this has no serial order in real time") };
//! assert_eq!(violation.anomaly, Anomaly::RealTime);
//! ```
//!
//! A transaction with an unknown outcome counts as committed if a committed transaction read one of
//! its writes, and otherwise as aborted. Reads of transactions that did not commit are not
//! examined.
//!
//! # What these checks cannot see
//!
//! * Writes that are never read. A lost append is not noticed if no later transaction reads its
//!   list. So end a run with a read of all keys.
//! * Phantoms, deletes, and indexes: a black-box history has only single keys, which always exist.
//! * Values that doomed transactions saw (opacity), and events within a database that no client
//!   saw.
//! * A lack of conflicts. An accepted history shows nothing about conflicts that did not happen in
//!   the run.
//! * Wrong clocks. If times are not from one clock, do not set [`Options::real_time`].

mod accesses;
mod decision;
mod fixpoint;
mod history;
mod inference;
mod lists;
mod registers;
mod search;

pub use history::{ListOp, Outcome, RegisterOp, Transaction};
pub use lists::check_lists;
pub use registers::check_registers;

/// The further orders that a serial order has to respect, besides the order of reads and writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether the serial order has to respect the order of transactions in each session.
    pub sessions: bool,
    /// Whether a transaction has to come before all transactions that were invoked after it had
    /// completed (strict serializability).
    pub real_time: bool,
}
