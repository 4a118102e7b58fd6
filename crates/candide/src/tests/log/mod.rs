//! Tests of the log without files: stamps, cuts, rounds, and acknowledgements. The blocks of the
//! log stay in memory.
//!
//! The properties W, S and R, and Prefix(c), are those of `log/mod.rs`.

#[cfg(not(any(loom, shuttle)))]
mod acknowledgements;
#[cfg(not(any(loom, shuttle)))]
mod changes;
#[cfg(not(any(loom, shuttle)))]
mod cuts;
mod disk;
#[cfg(not(any(loom, shuttle)))]
mod last_epoch;
#[cfg(loom)]
mod loom;
#[cfg(not(any(loom, shuttle)))]
mod prefixes;
#[cfg(not(loom))]
mod replay;
#[cfg(not(any(loom, shuttle)))]
mod rounds;
#[cfg(not(any(loom, shuttle)))]
mod sequences;
#[cfg(not(loom))]
mod story;
#[cfg(not(any(loom, shuttle)))]
mod turns;
#[cfg(not(any(loom, shuttle)))]
mod visits;

#[cfg(shuttle)]
pub(crate) use disk::{Logged, Told};
#[cfg(shuttle)]
pub(crate) use story::{Story, Witness};
