//! A run as its clients know it: their requests and the answers.

/// One transaction as its client saw it, with operations on lists ([`ListOp`]) or on registers
/// ([`RegisterOp`]).
///
/// All clients take times from one clock. If one transaction `completed` before another was
/// `invoked`, the two also had this order in real time. Equal times do not order transactions.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(
    feature = "formats",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct Transaction<O> {
    /// The session of the transaction. A session runs one transaction at a time.
    pub session: u64,
    /// A time before the client sent the first operation.
    pub invoked: u64,
    /// A time after the client got the outcome. If the client got none, the time at which it
    /// stopped waiting.
    pub completed: u64,
    /// The outcome that the client got.
    pub outcome: Outcome,
    /// The operations of the transaction, in order. Results of reads count only if the transaction
    /// committed.
    pub operations: Vec<O>,
}

/// The outcome of a transaction, as far as its client knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "formats",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "lowercase")
)]
pub enum Outcome {
    /// The transaction took effect between `invoked` and `completed`.
    Committed,
    /// The transaction has had no effect and never will.
    Aborted,
    /// The client does not know the outcome. The transaction either never takes effect, or takes
    /// effect at some time after `invoked`, possibly after the client has stopped waiting.
    Unknown,
}

/// An operation on lists. Each key has a list, which is empty in the beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(
    feature = "formats",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "lowercase", deny_unknown_fields)
)]
pub enum ListOp {
    /// Adds a value at the end. No value may be appended to the same key twice in one history.
    Append {
        /// The list.
        key: u64,
        /// The new last element.
        value: u64,
    },
    /// Reads the whole list.
    Read {
        /// The list.
        key: u64,
        /// All elements of the list.
        values: Vec<u64>,
    },
}

/// An operation on registers. Each key has a register, which has no value in the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    feature = "formats",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "lowercase", deny_unknown_fields)
)]
pub enum RegisterOp {
    /// Replaces the value. No value may be written to the same key twice in one history.
    Write {
        /// The register.
        key: u64,
        /// The register's new value.
        value: u64,
    },
    /// Reads the value.
    Read {
        /// The register.
        key: u64,
        /// The value of the register; `None` if nothing had been written yet.
        value: Option<u64>,
    },
}
