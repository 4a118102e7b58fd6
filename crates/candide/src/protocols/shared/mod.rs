//! Steps that several protocols share.

pub(crate) mod cell_lock;
#[cfg(not(any(loom, shuttle)))]
pub(crate) mod met;
#[cfg(any(loom, shuttle))]
#[path = "met_modelled.rs"]
pub(crate) mod met;
pub(crate) mod node_set;
pub(crate) mod parked;
pub(crate) mod snapshot_list;
#[cfg(all(test, not(any(loom, shuttle, sanitized))))]
mod tests;
pub(crate) mod version_blocks;
pub(crate) mod version_reservation;
pub(crate) mod view;
