//! The cells that an attempt has read, with what the attempt has seen in each, and the search for
//! one that has changed.

#![forbid(unsafe_code)]

use crate::engine::{Unwatched, Watch};
use crate::record::{CellAt, Tid};
use crate::sync::Ordering;
use std::ops::{Deref, DerefMut};

/// A read set. `S` identifies the version that was read.
#[derive(Debug)]
pub(crate) struct ReadSet<S> {
    reads: Vec<(CellAt, S)>,
}

impl<S> Default for ReadSet<S> {
    fn default() -> ReadSet<S> {
        ReadSet { reads: Vec::new() }
    }
}

impl<S> Deref for ReadSet<S> {
    type Target = [(CellAt, S)];

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn deref(&self) -> &[(CellAt, S)] {
        &self.reads
    }
}

impl<S> DerefMut for ReadSet<S> {
    fn deref_mut(&mut self) -> &mut [(CellAt, S)] {
        &mut self.reads
    }
}

impl<S: Copy> ReadSet<S> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn push(&mut self, at: CellAt, seen: S) {
        self.reads.push((at, seen));
    }

    /// Makes room for `more` reads.
    pub(crate) fn reserve(&mut self, more: usize) {
        self.reads.reserve(more);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn clear(&mut self) {
        self.reads.clear();
    }

    /// Returns the first cell that `has_changed`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn first_with(&self, has_changed: impl Fn(CellAt, S) -> bool) -> Option<CellAt> {
        self.reads.iter().find(|&&(at, seen)| has_changed(at, seen)).map(|&(at, _)| at)
    }
}

impl ReadSet<Tid> {
    /// Watches the cells.
    pub(crate) fn watch(&self, watch: &mut Watch<'_>) -> Result<(), Unwatched> {
        let mut reads = self.reads.iter();
        reads.try_for_each(|&(at, seen)| watch.add_lockable(at, |tid| tid.same_version(seen)))
    }
}

/// Returns the first cell that no longer has the version that was read, or in which a commit has
/// set INSTALL. `is_own` returns whether that commit is the attempt's own.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn first_changed(
    reads: &[(CellAt, Tid)],
    is_own: impl Fn(CellAt) -> bool,
) -> Option<CellAt> {
    // Most cells are unchanged, so four are compared at a time.
    let (fours, rest) = reads.as_chunks::<4>();
    for reads in fours {
        if reads.iter().any(says_otherwise)
            && let Some(at) = first_changed_of_few(reads, &is_own)
        {
            return Some(at);
        }
    }
    if rest.iter().any(says_otherwise) { first_changed_of_few(rest, &is_own) } else { None }
}

/// Does the work of [`first_changed`]. Out of line, so that the loop over unchanged cells is short.
#[inline(never)]
fn first_changed_of_few(
    reads: &[(CellAt, Tid)],
    is_own: &impl Fn(CellAt) -> bool,
) -> Option<CellAt> {
    reads.iter().find(|&&(at, seen)| has_changed(at, seen, || is_own(at))).map(|&(at, _)| at)
}

/// Returns whether a cell's TID word differs from the word that was read.
#[cfg_attr(not(debug_assertions), inline(always))]
fn says_otherwise(&(at, seen): &(CellAt, Tid)) -> bool {
    at.cell_word(0).load(Ordering::Relaxed) != seen.0
}

/// Returns whether a cell no longer has the version that was read, or a commit has set INSTALL in
/// it. `is_own` returns whether that commit is the attempt's own.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn has_changed(at: CellAt, seen: Tid, is_own: impl FnOnce() -> bool) -> bool {
    let tid = Tid(at.cell_word(0).load(Ordering::Relaxed));
    tid.0 != seen.0 && (!tid.same_version(seen) || is_locked_by_another(tid, is_own))
}

/// Returns whether another commit has locked a cell, whose word is `tid`, to replace the cell's
/// version.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn is_locked_by_another(tid: Tid, is_own: impl FnOnce() -> bool) -> bool {
    tid.has(Tid::INSTALL) && !is_own()
}
