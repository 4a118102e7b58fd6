//! The log of a durable database: the turn of a commit to log, the buffers of sessions, the logger,
//! and waiting for a level of durability.
//!
//! A commit takes its session's *turn* to log between its last lock and its stamp, and leaves its
//! record in the session's buffer (`turn.rs` has the invariants). The logger collects the buffers
//! in rounds (`logger.rs`). Files, and what recovery makes of them, are the business of the crate
//! `candide-log`.

#![forbid(unsafe_code)]

mod blocks;
mod buffer;
mod level;
mod logger;
mod notifier;
mod progress;
mod turn;

pub(crate) use blocks::{BlockError, Blocks};
pub use level::Level;
#[cfg(test)]
pub(crate) use logger::Round;
pub(crate) use logger::{Cuts, Log, Outbox};
#[cfg(all(test, loom))]
pub(crate) use progress::Progress;
pub use turn::LogTurn;
