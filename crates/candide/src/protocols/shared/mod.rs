//! Steps that several protocols share.

pub(crate) mod cell_lock;
pub(crate) mod met;
pub(crate) mod node_set;
pub(crate) mod snapshot_list;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
pub(crate) mod version_blocks;
pub(crate) mod version_reservation;
pub(crate) mod view;
