//! The versions that a session has met, for models. In a hashed table, two cells might share a
//! place in one execution and not in the next. A model takes such a difference for an error.

#![forbid(unsafe_code)]

use crate::record::{CellAt, Tid};

/// Cells by their addresses, with the last version of each that was met.
#[derive(Debug, Default)]
pub(super) struct Met(Vec<(u64, Tid)>);

impl Met {
    /// Does nothing.
    pub(super) fn reserve(&mut self) {}

    /// Notes that the version `tid` of a cell was met.
    pub(super) fn note(&mut self, at: CellAt, tid: Tid) {
        self.0.retain(|&(address, _)| address != at.address());
        self.0.push((at.address(), tid));
    }

    /// Returns whether the version `tid` of a cell was met.
    pub(super) fn has(&self, at: CellAt, tid: Tid) -> bool {
        let is_it = |&(address, met): &(u64, Tid)| address == at.address() && met.same_version(tid);
        !tid.has(Tid::DEAD) && self.0.iter().any(is_it)
    }
}
