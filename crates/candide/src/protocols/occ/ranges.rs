//! Observations of ranges: the closure has learned only that a number of a unit lies in a range, so
//! the unit may change as long as that stays true.
//!
//! Such an observation is a read of the read set, of one version, like any other. Only when a
//! validation finds another version is the number read again ([`Ranges::refresh`]): if it is still
//! in the range, the version that it was read in takes the place of the old one in the read set,
//! and the validation is repeated for all reads. So each observation of a range is tested on a
//! version which is then validated, and all observations of an attempt hold at one moment. (With
//! one test, and no validation behind it, two observations could hold at two moments only.)

#![forbid(unsafe_code)]

use crate::locks::ROUNDS_HELD;
use crate::protocols::shared::read_set::is_locked_by_another;
use crate::record::{CellAt, Tid};
use crate::schema::{NumberRange, Words};
use crate::sync::{Ordering, Point, Spin, pass};

/// The flag of a read of a range. It is set in words of read sets, and never in a cell.
const RANGE: u64 = Tid::own_flag(4);

/// The ranges that belong to reads of the read set.
///
/// Nothing is done at the beginning of an attempt, so attempts without ranges pay nothing: whether
/// the ranges are of an earlier attempt shows in the read set, where RANGE is set for all reads
/// that belong to ranges, and for no other.
#[derive(Debug, Default)]
pub(super) struct Ranges(Vec<(usize, NumberRange)>);

impl Ranges {
    /// Lets the last read, which is of the unit `at`, hold as long as the number is in `range`.
    pub(super) fn loosen(&mut self, reads: &mut [(CellAt, Tid)], at: CellAt, range: NumberRange) {
        let Some(last) = reads.len().checked_sub(1) else { return };
        debug_assert!(reads[last].0.address() == at.address(), "the unit has just been read");
        if !self.are_of(reads) {
            self.0.clear();
        }
        reads[last].1.0 |= RANGE;
        self.0.push((last, range));
    }

    /// Returns whether the ranges are of the attempt that has this read set.
    fn are_of(&self, reads: &[(CellAt, Tid)]) -> bool {
        let last = self.0.last().and_then(|&(read, _)| reads.get(read));
        last.is_some_and(|(_, tid)| tid.has(RANGE))
    }

    /// Reads all numbers again whose units have another version than the one in the read set. If
    /// a number is still in its range, the new version takes the place of the old one. Returns
    /// whether a version has been replaced, so that a validation may have another result.
    /// `is_own` returns whether the caller has locked a unit.
    #[cold]
    #[inline(never)]
    pub(super) fn refresh(
        &self,
        reads: &mut [(CellAt, Tid)],
        is_own: &dyn Fn(CellAt) -> bool,
    ) -> bool {
        if !self.are_of(reads) {
            return false;
        }
        let mut has_replaced = false;
        for (read, range) in &self.0 {
            let (at, seen) = reads[*read];
            if let Some(now) = look(at, range, is_own)
                && !now.same_version(seen)
            {
                reads[*read].1 = Tid(now.0 | RANGE);
                has_replaced = true;
            }
            pass(Point::Ranged);
        }
        has_replaced
    }
}

/// Returns the TID word of a cell with a version whose number is in `range`; `None` if the cell has
/// no such version, or if another commit to it is not over in time.
fn look(at: CellAt, range: &NumberRange, is_own: &dyn Fn(CellAt) -> bool) -> Option<Tid> {
    let mut spin = Spin::default();
    loop {
        let before = Tid(at.cell_word(0).load(Ordering::Acquire)); // E3
        if before.has(Tid::ABSENT | Tid::DEAD) {
            return None;
        }
        if !is_locked_by_another(before, || is_own(at)) {
            let number = range.number(Words::Shared(at.payload()));
            // Relaxed, as in `reading::look`.
            let after = Tid(at.cell_word(0).load(Ordering::Relaxed));
            if after.same_version(before) && !is_locked_by_another(after, || is_own(at)) {
                return range.has(number).then_some(before);
            }
        }
        if !spin.wait_at_most(ROUNDS_HELD) {
            return None;
        }
    }
}
