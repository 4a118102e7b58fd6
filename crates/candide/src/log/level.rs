//! Levels of durability.

#![forbid(unsafe_code)]

/// The level up to which a transaction's effects survive.
///
/// The levels are ordered: each includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Level {
    /// Other transactions see the effects. The effects do not survive the end of the process, but
    /// will be durable within [`LogOptions::flush_every`](crate::LogOptions::flush_every) and the
    /// time of a write.
    Memory,
    /// The operating system has the effects: they survive the end of the process, even by
    /// `kill -9`, but not the end of the machine.
    Written,
    /// The disk has the effects: they survive a crash of the machine and a loss of power.
    #[default]
    Durable,
    /// A copy of the log elsewhere has the effects, too ([`LogOptions::remote`]): they survive the
    /// loss of this machine. A transaction that only reads, or ends in an outcome, is acknowledged
    /// after the copy has been written to since: what it has seen was not overwritten elsewhere.
    /// In a database without such a copy, asking for this level is an error.
    ///
    /// [`LogOptions::remote`]: crate::LogOptions::remote
    Replicated,
}
