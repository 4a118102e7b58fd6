//! The log of a durable database: the turn of a commit to log, the buffers of sessions, the logger,
//! and waiting for a level of durability.
//!
//! A commit takes its session's *turn* to log between its last lock and its stamp, and leaves its
//! record in the session's buffer (`turn.rs` has the invariants). The logger collects the buffers
//! in rounds (`logger.rs`). The crate `candide-log` writes the files and recovers them.
//!
//! # Stamps and cuts
//! A commit has a *stamp*, a number that its record carries. A *cut* is a number such that all
//! commits with stamps up to it have left their records. *Prefix(c)* are the commits with stamps up
//! to the cut c: recovery restores exactly these. Each protocol's page defines its stamps and cuts,
//! and proves three properties:
//! * W: if a transaction has read or replaced what a commit wrote, its own stamp is no smaller. So
//!   Prefix(c) contains everything on which its commits rest, and its state is that of these
//!   commits alone, in the serial order of all. (A commit that is lost may have read what a commit
//!   of Prefix(c) replaces. It is then as if it had never run.)
//! * S: if a commit had ended when a transaction began, the transaction's stamp is no smaller. So
//!   all commits of a program up to some moment survive, without gaps.
//! * R: there is a serial order of *all* transactions, those that only read included, of which each
//!   Prefix(c) is a beginning. So a copy of Prefix(c) may be read, by a backup for example, while
//!   the database continues. Under a protocol without R, only recovery may use Prefix(c).
//!
//! The result of a transaction without a stamp of its own, a value that it has read or an error,
//! rests on the stamps of the commits that it has seen, and is acknowledged no earlier than these.

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
pub(crate) use progress::{Awaited, Progress};
pub use turn::LogTurn;
