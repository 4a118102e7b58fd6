//! What clients know of a run: what they asked for and what they were told.

/// One transaction as its client saw it, with operations on lists ([`ListOp`]) or on registers
/// ([`RegisterOp`]).
///
/// Times are of one clock of all clients. A transaction `completed` before another was `invoked`
/// only if it did so in real time; equal times say nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(
    feature = "formats",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct Transaction<O> {
    /// Its session, which runs one transaction at a time.
    pub session: u64,
    /// Before the client sent the first of it.
    pub invoked: u64,
    /// After the client was told the outcome, or when it stopped waiting.
    pub completed: u64,
    /// What the client was told in the end.
    pub outcome: Outcome,
    /// What it did, in order. What reads returned counts only if the transaction committed.
    pub operations: Vec<O>,
}

/// How a transaction ended, as far as its client knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "formats",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "lowercase")
)]
pub enum Outcome {
    /// It took effect, between `invoked` and `completed`.
    Committed,
    /// It had no effect and never will.
    Aborted,
    /// It is not known: it took effect at some time after it was invoked, also after the client
    /// stopped waiting, or never.
    Unknown,
}

/// An operation on lists, one for each key, all empty in the beginning.
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
        /// All that was in it.
        values: Vec<u64>,
    },
}

/// An operation on registers, one for each key, all without a value in the beginning.
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
        /// Its new value.
        value: u64,
    },
    /// Reads the value.
    Read {
        /// The register.
        key: u64,
        /// What it held; `None` if nothing had been written yet.
        value: Option<u64>,
    },
}
