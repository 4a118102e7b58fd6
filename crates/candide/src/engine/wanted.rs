//! What the attempts of a transaction wanted to lock, for the next one to lock it first.
//!
//! Attempts that lock rows in opposite orders fail again and again. So an attempt that fails at a
//! read for update leaves behind which units it has held, and which one it has waited for; the next
//! one looks them up, before its closure runs, and holds them in the order of their addresses, as a
//! read for update does. All attempts that do so wait for one another in one order, so they can
//! sleep. What is locked ahead is a hint: it is given back at the end of the attempt, and a unit
//! that is not found, or not locked in time, is left out. Units are remembered by their keys, since
//! a record may be gone when its session is not pinned.
//!
//! A transaction of another session that runs in the closure must not be refused for a row that the
//! closure has not asked for. Where that happens, the attempt ends in a conflict whatever its
//! closure makes of the refusal, and the transaction locks nothing ahead from then on.

#![forbid(unsafe_code)]

use super::common::Common;
use crate::index::Found;
use crate::record::CellAt;
use crate::schema::KeyWords;

/// The most units that are remembered; of more, the first ones are.
const UNITS_MAX: usize = 64;

/// The units that a transaction's next attempt locks.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    /// Tables, units of their rows, and the rows' keys.
    units: Vec<(u16, usize, KeyWords)>,
    /// Whether the transaction takes no locks ahead.
    is_off: bool,
}

impl Wanted {
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// Returns whether earlier transactions of the session have left nothing in it.
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

    /// Lets the transaction take no locks ahead from now on.
    pub(crate) fn turn_off(&mut self) {
        self.units.clear();
        self.is_off = true;
    }

    /// Remembers a unit. The session is pinned.
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

    /// Finds the units that are still there, in the order of their addresses. The session is
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
