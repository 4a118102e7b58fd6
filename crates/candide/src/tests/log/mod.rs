//! Tests of the log without files: stamps, cuts, rounds, and acknowledgements. The blocks of the log
//! stay in memory.
//!
//! *Prefix(c)* is the set of all commits with stamps up to the cut c. The tests call three
//! properties by letters:
//! * **W**: what a commit of Prefix(c) has read or replaced is of Prefix(c), too.
//! * **S**: if a commit had ended when another transaction began, it has no larger stamp.
//! * **R**: the state of Prefix(c), as what one more reader has seen, is serializable together with
//!   all transactions, those that only read included.

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
