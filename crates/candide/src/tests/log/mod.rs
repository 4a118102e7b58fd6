//! Tests of the log without files: stamps, cuts, rounds, and acknowledgements. The blocks of the
//! log stay in memory.
//!
//! The properties W, S and R, and Prefix(c), are those of `log/mod.rs`.

#[cfg(not(any(loom, shuttle, sanitized)))]
mod acknowledgements;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod changes;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod cuts;
mod disk;
#[cfg(not(any(loom, shuttle)))]
mod last_epoch;
#[cfg(loom)]
mod loom;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod prefixes;
#[cfg(not(loom))]
mod replay;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod rounds;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod sequences;
#[cfg(not(any(loom, sanitized)))]
mod story;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod turns;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod visits;

#[cfg(not(any(loom, sanitized)))]
pub(crate) use disk::Logged;
#[cfg(shuttle)]
pub(crate) use disk::Told;
#[cfg(not(any(loom, shuttle, sanitized)))]
pub(crate) use replay::Replay;
#[cfg(shuttle)]
pub(crate) use story::{Story, Witness};
