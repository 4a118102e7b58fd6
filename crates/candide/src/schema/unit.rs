//! Units: the parts of a row that are observed and written as a whole.

#![forbid(unsafe_code)]

use super::group::Group;
use super::group::start_of;

/// One of the units of a record type: one group, or all groups together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    /// Whether each group is a unit of its own.
    pub(crate) split: bool,
    pub(crate) index: u8,
}

impl Unit {
    /// The unit of a row that is not split.
    pub(crate) const ROW: Unit = Unit { split: false, index: 0 };

    #[inline]
    pub(crate) fn index(self) -> usize {
        usize::from(self.index)
    }

    /// Returns whether each group of the table is a unit of its own.
    #[inline]
    pub(crate) fn is_split(self) -> bool {
        self.split
    }

    /// Returns whether this unit guards `group`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn holds(self, group: u8) -> bool {
        !self.split || self.index == group
    }

    /// Returns the position at which `group`, a group of this unit, begins among the unit's words.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn offset_of(self, groups: &[Group], group: u8) -> usize {
        if self.split { 0 } else { start_of(groups, usize::from(group)) }
    }

    /// Returns the position at which the unit's words begin among all words of the row, and the
    /// number of the unit's words.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn image_range(self, groups: &[Group]) -> (usize, usize) {
        if self.split {
            (start_of(groups, self.index()), groups[self.index()].words)
        } else {
            (0, start_of(groups, groups.len()))
        }
    }
}

/// An iterator over a set of units.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Units {
    pub(crate) split: bool,
    pub(crate) left: u64,
}

impl Iterator for Units {
    type Item = Unit;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn next(&mut self) -> Option<Unit> {
        if self.left == 0 {
            return None;
        }
        let index = self.left.trailing_zeros() as u8;
        self.left &= self.left - 1;
        Some(Unit { split: self.split, index })
    }
}
