//! A disk in memory that computes which states a crash could leave, and that fails on request.
//!
//! A running program sees all of its changes at once. Only synced changes are durable. The disk
//! notes each operation that changes something or syncs, so it can go through the states that a
//! crash after any number of operations could leave: see [`CrashOptions`].
//!
//! * A sync of a file makes its data and its size durable. Until then each sector of 512 bytes of
//!   each write may survive or not. The same is true of the size, whatever becomes of the data: a
//!   file may be larger and contain zeros, or be as small as before.
//! * A sync of the directory makes entries durable. Until then each creation, rename and removal
//!   may survive or not, whatever becomes of the files' data.
//!
//! The changes that survive are applied in their original order.

mod contents;
mod crash;
mod data;
mod fault;
mod file;
mod inner;
mod moment;
mod operation;
mod pieces;
mod sim_disk;
mod state_id;
mod unsynced;

pub use crash::{CrashOptions, CrashState, CrashStates};
pub use fault::Fault;
pub use sim_disk::SimDisk;
pub use state_id::{Grain, Kept, StateId, StateIdError};
