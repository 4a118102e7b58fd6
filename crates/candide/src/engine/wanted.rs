//! The units that a failed attempt wanted to lock. The transaction's next attempt locks these units
//! *ahead*: before its closure runs.
//!
//! Attempts that lock rows in opposite orders fail again and again. So an attempt that fails at a
//! read for update notes the units that it held and the unit for which it waited. The next attempt
//! finds the cells of these units before its closure runs, and locks the cells in the order of
//! their addresses, as a read for update locks a cell. All such attempts wait for one another in
//! the same order, so they can sleep. Locking ahead is a hint: the locks are released at the end of
//! the attempt, and a unit that is not found, or cannot be locked in time, is left out. Units are
//! noted by their keys, since a record may be freed while no session is pinned.
//!
//! The closure may run a transaction of another session. This inner transaction must not fail
//! because of a row for which the closure has not asked. If it does, the outer attempt ends in a
//! conflict, whatever its closure does about the failure. The outer transaction then locks nothing
//! ahead any more.

#![forbid(unsafe_code)]

use super::common::Common;
use crate::index::Found;
use crate::record::CellAt;
use crate::schema::KeyWords;

/// The largest number of units noted; further units are ignored.
const UNITS_MAX: usize = 64;

/// The units that a transaction's next attempt locks ahead.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    /// For each unit: the number of the table, the unit within the row, and the row's key.
    units: Vec<(u16, usize, KeyWords)>,
    /// Whether the transaction takes no locks ahead.
    is_off: bool,
}

impl Wanted {
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// Returns whether no units are noted and locking ahead is not turned off.
    #[inline(always)]
    pub(crate) fn is_as_new(&self) -> bool {
        self.units.is_empty() && !self.is_off
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn clear(&mut self) {
        self.units.clear();
        self.is_off = false;
    }

    /// Makes the transaction lock nothing ahead from now on.
    pub(crate) fn turn_off(&mut self) {
        self.units.clear();
        self.is_off = true;
    }

    /// Notes the unit `at`. The session is pinned.
    #[cold]
    pub(crate) fn add(&mut self, engine: &Common, at: CellAt) {
        let key = at.record().key_words(engine.table(at.table()).layout.key_words());
        let is_same = |&(table, unit, ref other): &(u16, usize, KeyWords)| {
            (table, unit, other.as_slice()) == (at.table(), at.unit(), key.as_slice())
        };
        if !self.is_off && self.units.len() < UNITS_MAX && !self.units.iter().any(is_same) {
            self.units.push((at.table(), at.unit(), key));
        }
    }

    /// Returns the units whose records still exist, in the order of their addresses. The session is
    /// pinned.
    pub(crate) fn cells(&self, engine: &Common) -> Vec<CellAt> {
        let find = |&(number, unit, ref key): &(u16, usize, KeyWords)| {
            let table = engine.table(number);
            match table.index.find(key.as_slice()) {
                Found::Record(record) => table.layout.cells(record).nth(unit),
                Found::Nothing { .. } => None,
            }
        };
        let mut cells: Vec<CellAt> = self.units.iter().filter_map(find).collect();
        cells.sort_unstable_by_key(|at| at.address());
        cells
    }
}
