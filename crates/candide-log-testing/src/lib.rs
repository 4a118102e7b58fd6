//! The tools that tests of the log, of the engine and of the command share: a [simulated
//! disk](SimDisk), and a [laboratory] of crashes. [`play_seeds`] plays histories that
//! a seed decides.
//!
//! The simulated disk has the files of a database in memory. The disk computes which states a crash
//! could leave after each operation, fails on request, and can be full. The laboratory runs random
//! programs on such a disk and judges all states that crashes leave of them.

#![forbid(unsafe_code)]

// Layers, lowest first: disk, seeds, laboratory.

mod disk;
pub mod laboratory;
mod seeds;

pub use disk::{
    CrashOptions, CrashState, CrashStates, Fault, Grain, Kept, SimDisk, StateId, StateIdError,
};
pub use seeds::{Events, play_seeds};
