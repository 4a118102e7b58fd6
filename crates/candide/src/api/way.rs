//! The position of a scan in an index, and the steps from one row to the next.

#![forbid(unsafe_code)]

use crate::engine::{Missing, Protocol, TableCore, Versions};
use crate::error::Abort;
use crate::index::{Advance, Cursor, Direction};
use crate::record::{PlacedUnits, RecordAt};
use crate::schema::{Edge, Unit, Units, WordRange, Words};
use crate::txn::{Mark, State, Tx};

/// The end of its range at which a scan takes records, until it has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Course {
    /// The first records of the range, or any records of an index without order.
    Forward,
    /// The last records of the range.
    Reverse,
    Over,
}

impl Course {
    const fn of(forward: bool) -> Course {
        if forward { Course::Forward } else { Course::Reverse }
    }
}

/// The position of a scan.
///
/// A scan can take records from both ends of its range: each step chooses the end. The cursor
/// stands at one end. If a step wants a record from the other end, the scan *turns*: it begins
/// again at that end, with the part of the range that it has not passed yet. So it returns each
/// record once, and observes the records passed from either end, and none between.
#[derive(Debug)]
pub(crate) struct Way {
    /// The position in the index; `None` after the end of the scan.
    cursor: Option<Cursor>,
    course: Course,
    mark: Mark,
    /// The number of this scan among the attempt's scans. Each turn gives the scan a
    /// new number.
    number: usize,
    /// The record that the scan has returned last, if the scan may read at a mark in the past.
    last: Option<RecordAt>,
    /// The records that a scan that reads at a mark in the past has found and not returned yet.
    past: Option<Box<Past>>,
    /// The error of the scan, until the caller has received it.
    failed: Option<Abort>,
}

/// Records that a scan at a mark in the past has found and not returned yet.
#[derive(Debug, Default)]
struct Past {
    /// The next records of the index and of the index of deleted records. The records are in
    /// reverse order, so the record to be returned next is the last in the vector.
    merged: Vec<RecordAt>,
    /// The records of the index that follow those of `merged`, in reverse order.
    waiting: Vec<RecordAt>,
}

impl Way {
    /// Begins a scan of a range of an index, at the transaction's present mark.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn new<P: Protocol>(
        tx: &Tx<'_, P>,
        table: &TableCore,
        range: WordRange,
        direction: Direction,
    ) -> Way {
        let state = &mut *tx.state.borrow_mut();
        let number = P::scan(
            &mut state.attempt,
            table.number,
            &range,
            table.index.is_ordered().then_some(direction),
        );
        let cursor = Some(table.index.cursor(range, direction));
        Way::at(cursor, Course::of(direction == Direction::Forward), state.mark(), number)
    }

    /// Begins a scan of no keys.
    #[cold]
    #[inline(never)]
    pub(crate) fn nowhere<P: Protocol>(tx: &Tx<'_, P>, table: &TableCore) -> Way {
        let state = &mut *tx.state.borrow_mut();
        let range = WordRange::nothing(table.layout.key_words());
        let number = P::scan(&mut state.attempt, table.number, &range, None);
        Way::at(None, Course::Forward, state.mark(), number)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn at(cursor: Option<Cursor>, course: Course, mark: Mark, number: usize) -> Way {
        Way { cursor, course, mark, number, last: None, past: None, failed: None }
    }

    /// Returns the place that the scan has reached ([`Cursor::place`]); zero at its end.
    pub(crate) fn place(&self) -> usize {
        self.cursor.as_ref().map_or(0, Cursor::place)
    }

    /// Lets a fresh scan begin at a place.
    pub(crate) fn begin_at(&mut self, place: usize) {
        self.cursor.iter_mut().for_each(|cursor| cursor.begin_at(place));
    }

    pub(crate) fn mark(&self) -> Mark {
        self.mark
    }

    /// Ends the scan. Returns the scan's error; `None` if the scan has not failed. Afterwards the
    /// scan returns nothing, so a loop that skips errors ends.
    #[cold]
    #[inline(never)]
    pub(crate) fn end(&mut self) -> Option<Abort> {
        self.cursor = None;
        self.course = Course::Over;
        self.failed.take()
    }

    /// Notes the error with which the scan has failed.
    #[cold]
    pub(crate) fn fail(&mut self, abort: Abort) {
        self.failed = Some(abort);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.course == Course::Over
    }

    /// Returns the next record, which may be absent.
    #[inline]
    pub(crate) fn next<const FORWARD: bool, P: Protocol>(
        &mut self,
        tx: &Tx<'_, P>,
        state: &mut State<P>,
        table: &TableCore,
    ) -> Result<Option<RecordAt>, Abort> {
        match self.step::<FORWARD, P>(tx, state, table, false) {
            None => self.failed.take().map_or(Ok(None), Err),
            record => Ok(record),
        }
    }

    /// Does the work of [`Way::next`], but notes an error instead of returning it, so that the
    /// result is one word. If `is_ordered`, the index is known to be ordered.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn step<const FORWARD: bool, P: Protocol>(
        &mut self,
        tx: &Tx<'_, P>,
        state: &mut State<P>,
        table: &TableCore,
        is_ordered: bool,
    ) -> Option<RecordAt> {
        // A scan that has ended has nothing at hand.
        let Some(record) = Cursor::at_hand::<FORWARD>(&mut self.cursor, is_ordered) else {
            return self.look_for_next::<FORWARD, P>(tx, state, table);
        };
        if let Err(abort) = state.enter(tx.engine) {
            self.failed = Some(abort);
            return None;
        }
        self.note(tx, state, table, record);
        Some(record)
    }

    /// Notes a record that the scan returns.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn note<P: Protocol>(
        &mut self,
        tx: &Tx<'_, P>,
        state: &mut State<P>,
        table: &TableCore,
        record: RecordAt,
    ) {
        if P::Versions::KEEPS_DELETED_INDEX {
            self.last = Some(record);
        }
        state.scanned(tx.engine, self.number, || Some(table.layout.first_of(record)));
    }

    /// Takes records at hand, and notes them as returned, until `wanted` returns `false` for one.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn give_while<const FORWARD: bool, P: Protocol>(
        &mut self,
        tx: &Tx<'_, P>,
        state: &mut State<P>,
        table: &TableCore,
        mut wanted: impl FnMut(&mut State<P>, RecordAt) -> bool,
    ) {
        let Way { cursor: Some(cursor), last, number, .. } = self else { return };
        cursor.give_while::<FORWARD>(|record| {
            let is_wanted = wanted(state, record);
            if is_wanted {
                if P::Versions::KEEPS_DELETED_INDEX {
                    *last = Some(record);
                }
                state.scanned(tx.engine, *number, || Some(table.layout.first_of(record)));
            }
            is_wanted
        });
    }

    /// Goes on to the next row, and calls `copy` with the words of that row. Begins with the record
    /// in `begun`, of which only the given units are still to be read; if `begun` is `None`, with
    /// the next record. Returns `None` at the end, or if the scan has failed. Out of line, so that
    /// a simple step to a row is short.
    #[inline(never)]
    pub(super) fn go_on<const FORWARD: bool, P: Protocol>(
        &mut self,
        tx: &Tx<'_, P>,
        table: &TableCore,
        units: &PlacedUnits,
        mut begun: Option<(RecordAt, Units)>,
        copy: &mut dyn FnMut(Unit, Words<'_>),
    ) -> Option<RecordAt> {
        let state = &mut *tx.state.borrow_mut();
        loop {
            if begun.is_none() {
                self.skip_absent::<FORWARD, P>(tx, state, table, units);
            }
            let next = begun.take().or_else(|| {
                self.step::<FORWARD, P>(tx, state, table, false).map(|record| (record, units.all))
            })?;
            match state.read_units_at_mark(tx.engine, table, next, self.mark, copy) {
                Ok(true) => return Some(next.0),
                Ok(false) => {}
                Err(abort) => {
                    self.fail(abort);
                    return None;
                }
            }
        }
    }

    /// Skips the next records at hand that hold no row, up to the first record that needs the slow
    /// path. If rows are inserted at one end of a range and deleted at the other, many such records
    /// lie together: a deleted record stays as long as a transaction can see its row.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn skip_absent<const FORWARD: bool, P: Protocol>(
        &mut self,
        tx: &Tx<'_, P>,
        state: &mut State<P>,
        table: &TableCore,
        units: &PlacedUnits,
    ) {
        let Some(placed) = units.only else { return };
        self.give_while::<FORWARD, P>(tx, state, table, |state, record| {
            let at = placed.of(record);
            !P::is_present(&state.attempt, at) && state.read_at_once(at, |_| {}) == Some(false)
        });
    }

    /// Moves on to the next row, as [`Scan`] does, and calls `copy` with the words of `units` of
    /// that row.
    pub(crate) fn next_row<const FORWARD: bool, P: Protocol>(
        &mut self,
        tx: &Tx<'_, P>,
        table: &TableCore,
        units: &PlacedUnits,
        copy: &mut dyn FnMut(Unit, Words<'_>),
    ) -> Result<Option<RecordAt>, Abort> {
        let mut begun = None;
        if let Some(placed) = &units.only {
            let state = &mut *tx.state.borrow_mut();
            let Some(record) = self.step::<FORWARD, P>(tx, state, table, false) else {
                return self.over();
            };
            let copy_only = |from: Words<'_>| units.all.for_each(|unit| copy(unit, from));
            match state.read_at_once(placed.of(record), copy_only) {
                Some(true) => return Ok(Some(record)),
                Some(false) => {}
                None => begun = Some((record, units.all)),
            }
        }
        match self.go_on::<FORWARD, P>(tx, table, units, begun, copy) {
            None => self.over(),
            record => Ok(record),
        }
    }

    /// Ends the scan. Returns the scan's error, or `None` as the next row.
    fn over(&mut self) -> Result<Option<RecordAt>, Abort> {
        self.end().map_or(Ok(None), Err)
    }

    #[inline(never)]
    fn look_for_next<const FORWARD: bool, P: Protocol>(
        &mut self,
        tx: &Tx<'_, P>,
        state: &mut State<P>,
        table: &TableCore,
    ) -> Option<RecordAt> {
        self.find_next::<FORWARD, P>(tx, state, table).unwrap_or_else(|abort| {
            self.failed = Some(abort);
            None
        })
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn find_next<const FORWARD: bool, P: Protocol>(
        &mut self,
        tx: &Tx<'_, P>,
        state: &mut State<P>,
        table: &TableCore,
    ) -> Result<Option<RecordAt>, Abort> {
        if self.course != Course::of(FORWARD) && !self.turn(state, table) {
            return Ok(None);
        }
        state.admit(tx.engine, table)?;
        if P::Versions::KEEPS_DELETED_INDEX
            && let Some(record) = self.past.as_mut().and_then(|past| past.merged.pop())
        {
            self.note(tx, state, table, record);
            return Ok(Some(record));
        }
        let waiting = self.past.as_mut().and_then(|past| past.waiting.pop());
        let mut advance = match waiting {
            Some(record) => Advance::Next(record),
            None => self.advance(tx, state, table)?,
        };
        if state.needs_deleted_index() {
            advance = self.merge(table, advance, &|record| state.is_older(table, record));
        }
        match advance {
            Advance::Next(record) => {
                self.note(tx, state, table, record);
                Ok(Some(record))
            }
            Advance::End => {
                state.scanned(tx.engine, self.number, || None);
                Ok(None)
            }
            Advance::Doomed => Err(state.phantom(tx.engine, table.number)),
        }
    }

    /// Begins again at the other end of the range, with the part of the range that has not been
    /// passed yet. Returns `false` if the scan has ended. A scan that has taken no record yet has
    /// observed nothing, so to it this only gives the direction.
    #[cold]
    #[inline(never)]
    fn turn<P: Protocol>(&mut self, state: &mut State<P>, table: &TableCore) -> bool {
        let Some(cursor) = self.cursor.as_ref().and_then(Cursor::ordered) else { return false };
        let (range, direction) = cursor.range();
        let direction = match direction {
            Direction::Forward => Direction::Reverse,
            Direction::Reverse => Direction::Forward,
        };
        self.course = Course::of(direction == Direction::Forward);
        if cursor.is_fresh() {
            self.number = P::scan(&mut state.attempt, table.number, range, Some(direction));
            self.cursor = self.cursor.take().map(Cursor::reversed);
            return true;
        }
        let mut range = range.clone();
        // A scan that reads at a mark in the past may have returned a record that is not of the
        // cursor's index.
        let last =
            if P::Versions::KEEPS_DELETED_INDEX { self.last } else { cursor.last_returned() };
        if let Some(last) = last {
            let last = last.key_words(table.layout.key_words());
            match direction {
                Direction::Forward => range.end_before(last.as_slice()),
                Direction::Reverse => range.begin_after(last.as_slice()),
            }
        }
        (self.last, self.past) = (None, None);
        self.number = P::scan(&mut state.attempt, table.number, &range, Some(direction));
        self.cursor = Some(table.index.cursor(range, direction));
        true
    }

    /// Moves the cursor to the next record of the index, and observes the leaves on the way.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn advance<P: Protocol>(
        &mut self,
        tx: &Tx<'_, P>,
        state: &mut State<P>,
        table: &TableCore,
    ) -> Result<Advance, Abort> {
        let Some(cursor) = &mut self.cursor else { return Ok(Advance::End) };
        let mut observed = Ok(());
        let advance = loop {
            let advance = table.index.advance(cursor, &mut |node, version| {
                if observed.is_ok() {
                    observed = state.absent(
                        tx.engine,
                        Missing { table: table.number, key: None, node, version },
                    );
                }
            });
            if advance != Advance::Doomed || !state.is_looking_back(tx.engine) {
                break advance;
            }
        };
        observed.map(|()| advance)
    }

    /// For a scan that reads at a mark in the past, merges the records at hand with records of the
    /// index of deleted records for which `is_older` returns `true`. Records of the index of
    /// deleted records lie between the last record returned and the last record at hand; their
    /// number is limited. Called when the scan has reached a record of the index, or the end of the
    /// index. Returns the first record of the result.
    #[cold]
    #[inline(never)]
    fn merge(
        &mut self,
        table: &TableCore,
        advance: Advance,
        is_older: &dyn Fn(RecordAt) -> bool,
    ) -> Advance {
        let Some(deleted_index) =
            table.deleted_index().filter(|deleted_index| !deleted_index.is_empty())
        else {
            return advance;
        };
        let Some(cursor) = self.cursor.as_ref().and_then(Cursor::ordered) else { return advance };
        let (range, direction) = cursor.range();
        let last_at_hand = cursor.last_at_hand();
        let count = table.layout.key_words();
        let edge =
            |at: RecordAt, included| Edge::at(at.key_words(count).as_slice(), count, 0, included);
        let order = |one: RecordAt, other: RecordAt| {
            let order = one.key_words(count).as_slice().cmp(other.key_words(count).as_slice());
            if direction == Direction::Forward { order } else { order.reverse() }
        };
        let first = if let Advance::Next(first) = advance { Some(first) } else { None };
        let mut range = range.clone();
        let (near, far) = match direction {
            Direction::Forward => (&mut range.lower, &mut range.upper),
            Direction::Reverse => (&mut range.upper, &mut range.lower),
        };
        if let Some(last) = self.last {
            *near = edge(last, false);
        }
        // The records in `waiting` were at hand at an earlier call.
        let past = self.past.get_or_insert_default();
        let at_hand = past.waiting.first().copied().or(last_at_hand);
        if let Some(last) = at_hand.or(first) {
            *far = edge(last, true);
        }
        let is_whole = deleted_index.list(range, direction, &mut past.merged, is_older);
        let Some(&until) = past.merged.last() else { return advance };
        let cursor = &mut self.cursor;
        let at_hand = std::iter::from_fn(|| match direction {
            Direction::Forward => Cursor::at_hand::<true>(cursor, true),
            Direction::Reverse => Cursor::at_hand::<false>(cursor, true),
        });
        let place = past.waiting.len();
        past.waiting.extend(at_hand);
        past.waiting[place..].reverse();
        past.waiting.extend(first);
        while let Some(next) =
            past.waiting.pop_if(|&mut next| is_whole || order(next, until).is_le())
        {
            past.merged.push(next);
        }
        past.merged.sort_by(|&one, &other| order(other, one));
        // Of two records with the same key, the one from the index of deleted records stays. The
        // one from the main index is younger, or is the same record while it moves to the index of
        // deleted records.
        past.merged.dedup_by(|one, before| order(*one, *before).is_eq());
        past.merged.pop().map_or(Advance::End, Advance::Next)
    }
}
