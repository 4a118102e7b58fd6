//! Reads of several units of a row.

#![forbid(unsafe_code)]

use super::{Mark, State};
use crate::engine::{Context, Engine, Protocol, TableCore};
use crate::error::Abort;
use crate::record::{CellAt, RecordAt};
use crate::schema::{Unit, Units, Words};
use crate::sync::{Mutant, mutant};

impl<P: Protocol> State<P> {
    /// Calls [`State::read_at_once`] for one unit after another, and removes each from `units`.
    /// Returns `None` at the first unit that needs the slow path; that unit stays in `units`.
    /// Otherwise returns whether the row exists.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn read_units_at_once(
        &mut self,
        table: &TableCore,
        record: RecordAt,
        units: &mut Units,
        mut copy: impl FnMut(Unit, Words<'_>),
    ) -> Option<bool> {
        loop {
            let left = *units;
            let Some(unit) = units.next() else { return Some(true) };
            match self.read_at_once(table.layout.at(record, unit), |from| copy(unit, from)) {
                Some(true) => {}
                Some(false) => return Some(false),
                None => {
                    *units = left;
                    return None;
                }
            }
        }
    }

    /// Appends `count` bytes of a unit, from its word `first` on, to `to`. Returns whether the row
    /// exists; if not, or if the read fails, `to` stays the same.
    pub(crate) fn append_bytes(
        &mut self,
        engine: &Engine<P>,
        at: CellAt,
        (first, count): (usize, usize),
        to: &mut Vec<u8>,
    ) -> Result<bool, Abort> {
        let before = to.len();
        to.resize(before + count, 0);
        let mut copy = |from: Words<'_>| from.copy_bytes(first, &mut to[before..]);
        let is_there = match self.read_at_once(at, &mut copy) {
            Some(is_there) => Ok(is_there),
            None => self.read(engine, at, copy),
        };
        if is_there != Ok(true) {
            to.truncate(before);
        }
        is_there
    }

    /// Reads units of a record as [`State::read`] does. Calls `copy` with each unit and its words,
    /// perhaps several times; the words of the last call are consistent.
    #[inline(never)]
    pub(crate) fn read_units(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        (record, units): (RecordAt, Units),
        copy: &mut dyn FnMut(Unit, Words<'_>),
    ) -> Result<bool, Abort> {
        for unit in units {
            if !self.read(engine, table.layout.at(record, unit), |from| copy(unit, from))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads units as [`State::read_units`] does, and locks them as [`State::read_for_update`]
    /// does.
    pub(crate) fn read_units_for_update(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        (record, units): (RecordAt, Units),
        copy: &mut dyn FnMut(Unit, Words<'_>),
    ) -> Result<bool, Abort> {
        for unit in units {
            if !self
                .read_for_update(engine, table.layout.at(record, unit), |from| copy(unit, from))?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads units of a record as [`State::read_at_mark`] does, and calls `copy` as
    /// [`State::read_units`] does.
    #[inline]
    pub(crate) fn read_units_at_mark(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        (record, units): (RecordAt, Units),
        mark: Mark,
        copy: &mut dyn FnMut(Unit, Words<'_>),
    ) -> Result<bool, Abort> {
        let mark = self.mark_of_scan(mark);
        for unit in units {
            let at = table.layout.at(record, unit);
            if !self.is_observed_by_scan(at)
                || !self.read_at_mark(engine, at, mark, |from| copy(unit, from))?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the mark at which a scan reads: its own mark, `mark`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn mark_of_scan(&mut self, mark: Mark) -> Mark {
        if mutant(Mutant::MarkIgnored) { self.mark() } else { mark }
    }

    /// Returns whether a scan observes a unit even if its row is absent: always `true`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn is_observed_by_scan(&self, at: CellAt) -> bool {
        let is_skipped = || self.writes.find(at).is_none() && !P::is_present(&self.attempt, at);
        !(mutant(Mutant::AbsentSkippedByScan) && is_skipped())
    }

    /// Notes the position of a scan.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn scanned(
        &mut self,
        engine: &Engine<P>,
        scan: usize,
        to: impl FnOnce() -> Option<CellAt>,
    ) {
        P::scanned(&Context::new(engine, &mut self.worker), &mut self.attempt, scan, to);
    }
}
