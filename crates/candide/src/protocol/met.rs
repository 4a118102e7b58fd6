//! The versions that a session has met: installed by its own commits, or looked at when a view of an
//! earlier moment moved on.
//!
//! An attempt may take such a version as it is, though it is of a recent epoch (invariant V4 of
//! `protocol/view.rs`). Most recent versions that a transaction reads are of this kind: those of its
//! own thread's last transactions, and hot rows that it has just read.
//!
//! A table of the latest ones, in which each address has one place. What is pushed out costs a look.

#![forbid(unsafe_code)]

use crate::record::{CellAt, Tid};
use crate::sync::{Mutant, mutant};

/// Enough for most writes of a session between two passes of the advancer, in 8 KiB.
const PLACES: usize = 1 << PLACES_LOG2;
const PLACES_LOG2: u32 = 9;

/// Cells by their addresses, with the last version of each that was met.
#[derive(Debug)]
pub(super) struct Met(Box<[(u64, Tid)]>);

impl Met {
    pub(super) fn new() -> Met {
        Met(vec![(0, Tid(0)); PLACES].into())
    }

    fn address(at: CellAt) -> u64 {
        if mutant(Mutant::MetElsewhere) { 0 } else { at.address() }
    }

    fn place(at: CellAt) -> usize {
        // The first bits: neighbours in memory get places far from one another.
        (Met::address(at).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - PLACES_LOG2)) as usize
    }

    /// Notes a version that a cell has.
    #[inline]
    pub(super) fn note(&mut self, at: CellAt, tid: Tid) {
        self.0[Met::place(at)] = (Met::address(at), tid);
    }

    /// Whether a version of a cell was met. Versions of one cell only grow, so it is that one and no
    /// other; but two cells may have the same version, by commits of two sessions.
    pub(super) fn has(&self, at: CellAt, tid: Tid) -> bool {
        let (address, met) = self.0[Met::place(at)];
        address == Met::address(at) && met.same_version(tid)
    }
}
