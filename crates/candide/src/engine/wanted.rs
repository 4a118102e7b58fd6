//! The data that a failed attempt leaves to the transaction's next attempt: the unit on whose lock
//! it has failed, the units that it wanted to lock, its retrospective lock list, its age, and its
//! ticket. The next attempt locks the units *ahead*: before its closure runs.
//!
//! Attempts that lock rows in opposite orders fail repeatedly. So an attempt that fails at a read
//! for update notes the units that it held and the unit for which it waited. The next attempt finds
//! the cells of these units before its closure runs, and locks the cells in the order of their
//! addresses, as a read for update locks a cell. All such attempts wait for one another in the same
//! order, so they can sleep. Locking ahead is a hint: the locks are released at the end of the
//! attempt, and a unit that is not found, or cannot be locked in time, is left out. Units are noted
//! by their keys, since a record may be freed while no session is pinned.
//!
//! The *retrospective lock list* [WK16] has the locks by policy that would have spared the attempt
//! its conflict. Policies that learn from conflicts make this list. The list is noted and locked
//! ahead like the units, with a mode for each lock.
//!
//! The closure may run a transaction of another session. This inner transaction must not fail
//! because of a row that the closure has not accessed. If it does, the outer attempt ends in a
//! conflict, whatever its closure does about the failure. The outer transaction then locks nothing
//! ahead any more.

#![forbid(unsafe_code)]

use super::common::Common;
use super::table_core::TableCore;
use crate::index::Found;
use crate::record::CellAt;
use crate::schema::KeyWords;
use crate::sync::Instant;
use std::sync::Arc;

/// The largest number of units noted; further units are ignored.
const UNITS_MAX: usize = 64;

/// A unit: the number of the table, the unit within the row, and the row's key.
type Unit = (u16, usize, KeyWords);

/// The units that a transaction's next attempt locks ahead, and the transaction's age and ticket.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    /// The units that reads for update have wanted.
    units: Vec<Unit>,
    /// The retrospective lock list: units, and whether each is locked for writing.
    retrospective: Vec<(Unit, bool)>,
    /// The unit on whose lock an attempt has failed, if the transaction has not waited for that
    /// lock since.
    awaited: Option<Unit>,
    /// Whether the transaction takes no locks ahead, in bit 63; whether units are noted, in either
    /// list, in bit 62; whether a unit has been awaited, in bit 61; whether the closure computes
    /// keys, in bit 60; and its age, or zero.
    marks: u64,
    /// The ticket that the transaction has drawn; zero if it has drawn none, or has no age.
    ticket: u64,
    /// The number of transactions that have failed and try again at the same time, if the
    /// transaction has an age.
    most_at_once: u64,
    /// The number of locks by policy for which attempts have aborted. A wait asleep counts as
    /// [`SLEEP_WEIGHT`].
    failures: u32,
    /// The transaction's deadline, if it is known.
    deadline: Option<Option<Instant>>,
}

/// The weight of an abort after a wait asleep, among aborts because of locks by policy.
const SLEEP_WEIGHT: u32 = 8;
/// The number of aborts because of locks by policy after which a transaction does without these
/// locks.
const FAILURES_MAX: u32 = 32;

/// The bit of `marks` that is set if the transaction takes no locks ahead.
const OFF: u64 = 1 << 63;
/// The bit of `marks` that is set if units are noted.
const NOTED: u64 = 1 << 62;
/// The bit of `marks` that is set if an attempt has failed on a lock.
const AWAITED: u64 = 1 << 61;
/// The bit of `marks` that is set if the closure computes keys, since a commit could not.
const KEYS_AT_ONCE: u64 = 1 << 60;
/// The bits of `marks` that do not belong to the age.
const NO_AGE: u64 = OFF | NOTED | AWAITED | KEYS_AT_ONCE;

impl Wanted {
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn is_empty(&self) -> bool {
        self.marks & NOTED == 0
    }

    /// Returns whether no units are noted, locking ahead is not turned off, no attempt has failed
    /// on a lock, and the transaction has no age.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn is_as_new(&self) -> bool {
        self.marks == 0
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn clear(&mut self) {
        self.units.clear();
        self.retrospective.clear();
        self.awaited = None;
        self.marks = 0;
        self.ticket = 0;
        self.failures = 0;
        self.deadline = None;
    }

    /// Makes the transaction lock nothing ahead from now on.
    pub(crate) fn turn_off(&mut self) {
        self.units.clear();
        self.retrospective.clear();
        self.marks = self.marks & !NOTED | OFF;
    }

    /// Returns the transaction's age, which is the age of its first attempt that locked a row by
    /// policy. If the transaction has no age yet, it gets `first`, which is above zero and below
    /// [`KEYS_AT_ONCE`]. Of the transactions that get their age in this way and have failed, `most`
    /// try again at the same time.
    pub(crate) fn age(&mut self, most: usize, first: impl FnOnce() -> u64) -> u64 {
        if self.marks & !NO_AGE == 0 {
            self.most_at_once = most as u64;
            let first = first();
            debug_assert!(
                (1..KEYS_AT_ONCE).contains(&first),
                "an age is not zero, and leaves four bits"
            );
            self.marks |= first;
        }
        self.marks & !NO_AGE
    }

    /// Returns how many transactions that have failed try again at the same time, if an attempt of
    /// this one has locked rows by policy.
    pub(crate) fn most_at_once(&self) -> Option<u64> {
        (self.marks & !NO_AGE != 0).then_some(self.most_at_once)
    }

    /// Lets the closure compute keys from now on, which a commit could not.
    pub(crate) fn find_keys_at_once(&mut self) {
        self.marks |= KEYS_AT_ONCE;
    }

    /// Returns whether the closure computes keys.
    pub(crate) fn finds_keys_at_once(&self) -> bool {
        self.marks & KEYS_AT_ONCE != 0
    }

    /// Notes that an attempt aborts because of a lock by policy, after a wait asleep or not. The
    /// transaction has an age.
    pub(crate) fn note_failure(&mut self, has_slept: bool) {
        self.failures += if has_slept { SLEEP_WEIGHT } else { 1 };
    }

    /// Returns whether the transaction has failed to get locks so often that it does without.
    pub(crate) fn gives_up_locks(&self) -> bool {
        self.failures >= FAILURES_MAX
    }

    #[cfg(test)]
    pub(crate) fn failures_for_tests(&self) -> u32 {
        self.failures
    }

    /// Notes the transaction's deadline for its next attempts, if the transaction has an age.
    pub(crate) fn note_deadline(&mut self, deadline: Option<Instant>) {
        if self.marks & !NO_AGE != 0 {
            self.deadline = Some(deadline);
        }
    }

    /// Returns the transaction's deadline, if it is known.
    pub(crate) fn deadline(&self) -> Option<Option<Instant>> {
        self.deadline
    }

    /// Returns the ticket that the transaction has drawn; zero if it has drawn none.
    pub(crate) fn ticket(&self) -> u64 {
        self.ticket
    }

    pub(crate) fn set_ticket(&mut self, ticket: u64) {
        self.ticket = ticket;
    }

    /// Notes the unit `at`. The session is pinned.
    #[cold]
    pub(crate) fn add(&mut self, engine: &Common, at: CellAt) {
        let new = unit_of(&mut Tables::of(engine), at);
        let is_new = |&(table, unit, ref key): &Unit| {
            (table, unit, key.as_slice()) != (new.0, new.1, new.2.as_slice())
        };
        if self.marks & OFF == 0 && self.units.len() < UNITS_MAX && self.units.iter().all(is_new) {
            self.units.push(new);
            self.marks |= NOTED;
        }
    }

    /// Notes the unit `at`, on whose lock the attempt has failed. The session is pinned.
    #[cold]
    pub(crate) fn note_awaited(&mut self, engine: &Common, at: CellAt) {
        self.awaited = Some(unit_of(&mut Tables::of(engine), at));
        self.marks |= AWAITED;
    }

    /// Returns the cell of the unit on whose lock an attempt has failed, if the transaction has not
    /// waited for it since and its record still exists. The session is pinned.
    pub(crate) fn take_awaited(&mut self, engine: &Common) -> Option<CellAt> {
        find(&mut Tables::of(engine), &self.awaited.take()?)
    }

    /// Makes `locks` the retrospective lock list: cells, and whether each is locked for writing.
    /// The session is pinned.
    #[cold]
    pub(crate) fn set_retrospective(&mut self, engine: &Common, locks: &[(CellAt, bool)]) {
        self.retrospective.clear();
        if self.marks & OFF == 0 {
            let mut tables = Tables::of(engine);
            let noted = locks.iter().map(|&(at, writes)| (unit_of(&mut tables, at), writes));
            self.retrospective.extend(noted);
        }
        let is_noted = !self.units.is_empty() || !self.retrospective.is_empty();
        self.marks = self.marks & !NOTED | if is_noted { NOTED } else { 0 };
    }

    /// Returns the units whose records still exist, in the order of their addresses. The session is
    /// pinned.
    pub(crate) fn cells(&self, engine: &Common) -> Vec<CellAt> {
        let mut tables = Tables::of(engine);
        let mut cells: Vec<CellAt> =
            self.units.iter().filter_map(|unit| find(&mut tables, unit)).collect();
        cells.sort_unstable_by_key(|at| at.address());
        cells
    }

    /// Returns the cells of the retrospective lock list whose records still exist, in the order of
    /// their addresses, and whether each is locked for writing. The session is pinned.
    pub(crate) fn retrospective(&self, engine: &Common) -> Vec<(CellAt, bool)> {
        let (locks, mut tables) = (self.retrospective.iter(), Tables::of(engine));
        let mut locks: Vec<(CellAt, bool)> =
            locks.filter_map(|(unit, writes)| Some((find(&mut tables, unit)?, *writes))).collect();
        locks.sort_unstable_by_key(|(at, _)| at.address());
        locks
    }
}

/// The tables of a database, with the table that was requested last.
struct Tables<'a> {
    engine: &'a Common,
    last: Option<Arc<TableCore>>,
}

impl<'a> Tables<'a> {
    fn of(engine: &'a Common) -> Tables<'a> {
        Tables { engine, last: None }
    }

    fn get(&mut self, number: u16) -> &TableCore {
        if self.last.as_ref().is_none_or(|last| last.number != number) {
            self.last = None;
        }
        self.last.get_or_insert_with(|| self.engine.table(number))
    }
}

/// Returns the unit of a cell. The session is pinned.
fn unit_of(tables: &mut Tables<'_>, at: CellAt) -> Unit {
    let key = at.record().key_words(tables.get(at.table()).layout.key_words());
    (at.table(), at.unit(), key)
}

/// Returns the cell of a unit, if the unit's record still exists. The session is pinned.
fn find(tables: &mut Tables<'_>, &(number, unit, ref key): &Unit) -> Option<CellAt> {
    let table = tables.get(number);
    // Another table may have got the number since.
    if key.as_slice().len() != table.layout.key_words() {
        return None;
    }
    match table.index.find(key.as_slice()) {
        Found::Record(record) => table.layout.cells(record).nth(unit),
        Found::Nothing { .. } => None,
    }
}
