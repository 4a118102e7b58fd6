//! Steps that several protocols share.

pub(crate) mod cell_lock;
pub(crate) mod late_rows;
pub(crate) mod node_set;
pub(crate) mod parked;
pub(crate) mod read_set;
pub(crate) mod snapshot_list;
pub(crate) mod version_blocks;
pub(crate) mod version_reservation;
