//! Observations of ranges: the closure has learned only that a number of a unit lies in a range, so
//! the unit may change as long as that stays true.
//!
//! Such an observation is a read of the read set, of one version, like any other. Only when a
//! validation finds another version is the number read again ([`Ranges::refresh`]): if it is still
//! in the range, the version that it was read in takes the place of the old one in the read set,
//! and the validation is repeated for all reads. So each observation of a range is tested on a
//! version which is then validated, and all observations of an attempt hold at one moment. (With
//! one test, and no validation behind it, two observations could hold at two moments only.)
//!
//! The caller of `refresh` ends with [`Ranges::end_refresh`]: if no validation has succeeded, the
//! old versions return. So outside of these functions the read set has only versions that belong
//! together.

#![forbid(unsafe_code)]

use crate::locks::{RANGE, ROUNDS_HELD};
use crate::protocols::shared::read_set::{has_changed, is_locked_by_another};
use crate::record::{CellAt, Tid};
use crate::schema::{NumberRange, Words};
use crate::sync::{Ordering, Point, Spin, pass};

/// The ranges that belong to reads of the read set.
///
/// Nothing is done at the beginning of an attempt, so attempts without ranges pay nothing: whether
/// the ranges are of an earlier attempt shows in the read set, where RANGE is set for all reads
/// that belong to ranges, and for no other.
#[derive(Debug, Default)]
pub(super) struct Ranges(Vec<RangeRead>);

/// A read of a range.
#[derive(Debug)]
struct RangeRead {
    /// The place in the read set.
    read: usize,
    range: NumberRange,
    /// The last version, with RANGE, in which the number was found in the range and that was then
    /// validated together with all other reads.
    kept: Tid,
}

impl Ranges {
    /// Lets the last read, which is of the unit `at`, hold as long as the number is in `range`.
    pub(super) fn loosen(&mut self, reads: &mut [(CellAt, Tid)], at: CellAt, range: NumberRange) {
        let last = reads.len() - 1;
        debug_assert!(reads[last].0.address() == at.address(), "the unit has just been read");
        if !self.are_of(reads) {
            self.0.clear();
        }
        reads[last].1.0 |= RANGE;
        self.0.push(RangeRead { read: last, range, kept: reads[last].1 });
    }

    /// Returns whether the ranges are of the attempt that has this read set.
    fn are_of(&self, reads: &[(CellAt, Tid)]) -> bool {
        let last = self.0.last().and_then(|last| reads.get(last.read));
        last.is_some_and(|(_, tid)| tid.has(RANGE))
    }

    /// Calls `each` with the unit of each range, and the version in which the number is in the
    /// range.
    pub(super) fn for_each(&self, reads: &[(CellAt, Tid)], each: &mut dyn FnMut(CellAt, u64)) {
        if self.are_of(reads) {
            let reads = self.0.iter().map(|of| reads[of.read]);
            reads.for_each(|(at, tid)| each(at, tid.version()));
        }
    }

    /// Reads all numbers again whose units have another version than the one in the read set, or
    /// are being written. If a number is still in its range, the new version takes the place of the
    /// old one. Returns whether a validation may now have another result. `is_own` returns whether
    /// the caller has locked a unit. Waits a few rounds in all for other commits.
    ///
    /// # Errors
    /// The unit of the first number that is no longer in its range, or is being written for longer.
    /// No validation can succeed.
    #[cold]
    #[inline(never)]
    pub(super) fn refresh(
        &self,
        reads: &mut [(CellAt, Tid)],
        is_own: &dyn Fn(CellAt) -> bool,
    ) -> Result<bool, CellAt> {
        if !self.are_of(reads) {
            return Ok(false);
        }
        let mut spin = Spin::default();
        let mut has_looked = false;
        for RangeRead { read, range, .. } in &self.0 {
            let (at, seen) = reads[*read];
            if has_changed(at, seen, || is_own(at)) {
                let now = look(at, range, is_own, &mut spin).ok_or(at)?;
                reads[*read].1 = Tid(now.0 | RANGE);
                has_looked = true;
            }
            pass(Point::Ranged);
        }
        Ok(has_looked)
    }

    /// Ends a series of calls of [`Ranges::refresh`]. If the last validation has succeeded
    /// (`is_valid`), the new versions stay in the read set, and otherwise the old ones return.
    #[cold]
    pub(super) fn end_refresh(&mut self, reads: &mut [(CellAt, Tid)], is_valid: bool) {
        if !self.are_of(reads) {
            return;
        }
        for RangeRead { read, kept, .. } in &mut self.0 {
            match is_valid {
                true => *kept = reads[*read].1,
                false => reads[*read].1 = *kept,
            }
        }
    }
}

/// Returns the TID word of a cell with a version whose number is in `range`; `None` if the cell has
/// no such version, or if another commit to it is not over in time.
fn look(
    at: CellAt,
    range: &NumberRange,
    is_own: &dyn Fn(CellAt) -> bool,
    spin: &mut Spin,
) -> Option<Tid> {
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
