//! Scans: rows one after another, as the transaction sees them when the scan is made.

#![forbid(unsafe_code)]

use super::table::Table;
use crate::engine::{Missing, Protocol, TableCore, Versions};
use crate::error::Abort;
use crate::index::{Advance, Cursor, Direction};
use crate::record::{PlacedUnits, RecordAt};
use crate::schema::{Edge, InOrder, KeyRange, Projection, Record, Unit, Units, WordRange, Words};
use crate::txn::{Mark, State, Tx};

/// The rows of a range of keys, or of a whole table, with some of their columns.
///
/// A scan returns `Ok((key, columns))` for every row that exists when the scan is made. The
/// transaction's own inserts, updates and deletes before that moment show. Its later writes do not
/// show, even in rows that the scan has not reached. The errors are [those of every
/// operation](Table#errors-of-every-operation); after an error the scan returns nothing more.
///
/// A scan looks for a row when the caller asks for that row. So a scan that is dropped after some
/// rows has observed the table up to the last of these rows and no further. These rows and the gaps
/// between them belong to the read set of the transaction: at its place in the serial order, these
/// gaps contain no row.
///
/// The scan does not borrow the transaction: rows of any table can be read and written between two
/// rows of the scan.
pub struct Scan<'t, R: Record, P: Protocol, Pr> {
    table: &'t Table<R, P>,
    tx: &'t Tx<'t, P>,
    projection: Pr,
    units: PlacedUnits,
    way: Way,
}

/// The position of a scan.
#[derive(Debug)]
pub(crate) struct Way {
    /// The position in the index; `None` at the end of the range.
    cursor: Option<Cursor>,
    mark: Mark,
    /// The number of this scan among the attempt's scans.
    number: usize,
    /// The record that the scan has returned last, if the scan may read at a mark in the past.
    last: Option<RecordAt>,
    /// If the scan reads at a mark in the past: the next records of the index and of the index of
    /// deleted records. They are in reverse order, so the record to be returned next is the last in
    /// the vector.
    merged: Vec<RecordAt>,
    /// The records of the index that follow those of `merged`, in reverse order.
    waiting: Vec<RecordAt>,
    is_over: bool,
    /// The error of the scan, until the caller has received it.
    failed: Option<Abort>,
}

impl Way {
    /// Begins a scan of a range of an index, at the transaction's present mark.
    #[inline(always)]
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
        Way {
            cursor,
            mark: state.mark(),
            number,
            last: None,
            merged: Vec::new(),
            waiting: Vec::new(),
            is_over: false,
            failed: None,
        }
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
        self.is_over = true;
        self.failed.take()
    }

    /// Notes the error with which the scan has failed.
    #[cold]
    pub(crate) fn fail(&mut self, abort: Abort) {
        self.failed = Some(abort);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns the next record, which may be absent.
    #[inline]
    pub(crate) fn next<P: Protocol>(
        &mut self,
        tx: &Tx<'_, P>,
        state: &mut State<P>,
        table: &TableCore,
    ) -> Result<Option<RecordAt>, Abort> {
        match self.step(tx, state, table) {
            None => self.failed.take().map_or(Ok(None), Err),
            record => Ok(record),
        }
    }

    /// Does the work of [`Way::next`], but notes an error instead of returning it, so that the
    /// result is one word.
    #[inline(always)]
    fn step<P: Protocol>(
        &mut self,
        tx: &Tx<'_, P>,
        state: &mut State<P>,
        table: &TableCore,
    ) -> Option<RecordAt> {
        // A scan that has ended has nothing at hand.
        let Some(record) = Cursor::at_hand(&mut self.cursor) else {
            return self.look_for_next(tx, state, table);
        };
        if let Err(abort) = state.enter(tx.engine) {
            self.failed = Some(abort);
            return None;
        }
        self.note(tx, state, table, record);
        Some(record)
    }

    /// Notes a record that the scan returns.
    #[inline(always)]
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
    #[inline(always)]
    fn give_while<P: Protocol>(
        &mut self,
        tx: &Tx<'_, P>,
        state: &mut State<P>,
        table: &TableCore,
        mut wanted: impl FnMut(&mut State<P>, RecordAt) -> bool,
    ) {
        let Way { cursor: Some(cursor), last, number, .. } = self else { return };
        cursor.give_while(|record| {
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
    fn go_on<P: Protocol>(
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
                self.skip_absent(tx, state, table, units);
            }
            let next = begun
                .take()
                .or_else(|| self.step(tx, state, table).map(|record| (record, units.all)))?;
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
    #[inline(always)]
    fn skip_absent<P: Protocol>(
        &mut self,
        tx: &Tx<'_, P>,
        state: &mut State<P>,
        table: &TableCore,
        units: &PlacedUnits,
    ) {
        let Some(placed) = units.only else { return };
        self.give_while(tx, state, table, |state, record| {
            let at = placed.of(record);
            !P::is_present(&state.attempt, at) && state.read_at_once(at, |_| {}) == Some(false)
        });
    }

    /// Moves on to the next row, as [`Scan`] does, and calls `copy` with the words of `units` of
    /// that row.
    pub(crate) fn next_row<P: Protocol>(
        &mut self,
        tx: &Tx<'_, P>,
        table: &TableCore,
        units: &PlacedUnits,
        copy: &mut dyn FnMut(Unit, Words<'_>),
    ) -> Result<Option<RecordAt>, Abort> {
        let mut begun = None;
        if let Some(placed) = &units.only {
            let state = &mut *tx.state.borrow_mut();
            let Some(record) = self.step(tx, state, table) else { return self.over() };
            let copy_only = |from: Words<'_>| units.all.for_each(|unit| copy(unit, from));
            match state.read_at_once(placed.of(record), copy_only) {
                Some(true) => return Ok(Some(record)),
                Some(false) => {}
                None => begun = Some((record, units.all)),
            }
        }
        match self.go_on(tx, table, units, begun, copy) {
            None => self.over(),
            record => Ok(record),
        }
    }

    /// Ends the scan. Returns the scan's error, or `None` as the next row.
    fn over(&mut self) -> Result<Option<RecordAt>, Abort> {
        self.end().map_or(Ok(None), Err)
    }

    #[inline(never)]
    fn look_for_next<P: Protocol>(
        &mut self,
        tx: &Tx<'_, P>,
        state: &mut State<P>,
        table: &TableCore,
    ) -> Option<RecordAt> {
        self.find_next(tx, state, table).unwrap_or_else(|abort| {
            self.failed = Some(abort);
            None
        })
    }

    #[inline(always)]
    fn find_next<P: Protocol>(
        &mut self,
        tx: &Tx<'_, P>,
        state: &mut State<P>,
        table: &TableCore,
    ) -> Result<Option<RecordAt>, Abort> {
        if self.is_over {
            return Ok(None);
        }
        state.admit(tx.engine, table)?;
        if P::Versions::KEEPS_DELETED_INDEX
            && let Some(record) = self.merged.pop()
        {
            self.note(tx, state, table, record);
            return Ok(Some(record));
        }
        let mut advance = match self.waiting.pop() {
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

    /// Moves the cursor to the next record of the index, and observes the leaves on the way.
    #[inline(always)]
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
    /// index of deleted records for which `is_older` returns `true`. The latter lie between the
    /// last record returned and the last record at hand; their number is limited. Called when the
    /// scan has reached a record of the index, or the end of the index. Returns the first record of
    /// the result.
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
        let Some((range, direction)) = self.cursor.as_ref().and_then(Cursor::ordered_range) else {
            return advance;
        };
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
        let at_hand = self.waiting.first().copied().or_else(|| Cursor::last_at_hand(&self.cursor));
        if let Some(last) = at_hand.or(first) {
            *far = edge(last, true);
        }
        let is_whole = deleted_index.list(range, direction, &mut self.merged, is_older);
        let Some(&until) = self.merged.last() else { return advance };
        let at_hand = std::iter::from_fn(|| Cursor::at_hand(&mut self.cursor));
        let place = self.waiting.len();
        self.waiting.extend(at_hand);
        self.waiting[place..].reverse();
        self.waiting.extend(first);
        while let Some(next) =
            self.waiting.pop_if(|&mut next| is_whole || order(next, until).is_le())
        {
            self.merged.push(next);
        }
        self.merged.sort_by(|&one, &other| order(other, one));
        // Of two records with the same key, the one from the index of deleted records stays. The
        // one from the main index is younger, or is the same record while it moves to the index of
        // deleted records.
        self.merged.dedup_by(|one, before| order(*one, *before).is_eq());
        self.merged.pop().map_or(Advance::End, Advance::Next)
    }
}

impl<R: Record, P: Protocol> Table<R, P> {
    /// Returns all rows: in the order of their keys if the table is ordered, otherwise in no
    /// particular order.
    ///
    /// The transaction commits only if no row of the table has been changed or inserted meanwhile.
    /// So this does not suit a large table that other transactions write.
    ///
    /// ```
    /// # use candide::{Abort, Database, Record};
    /// # #[derive(Record, Clone, Copy)]
    /// # struct Account { #[key] id: u64, cents: i64 }
    /// # let db = Database::new();
    /// # let accounts = db.table::<Account>("accounts")?;
    /// # db.run(|tx| (1..=3).try_for_each(|id| accounts.insert(tx, Account { id, cents: 10 })))?;
    /// let total = db.run(|tx| {
    ///     accounts.iter(tx, Account::CENTS).map(|row| Ok(row?.1)).sum::<Result<i64, Abort>>()
    /// })?;
    /// assert_eq!(total, 30);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn iter<'t, Pr: Projection<R>>(
        &'t self,
        tx: &'t Tx<'_, P>,
        projection: Pr,
    ) -> Scan<'t, R, P, Pr> {
        let words = self.core().layout.key_words();
        self.scan_words(tx, WordRange::beginning_with(&[], words), Direction::Forward, projection)
    }

    #[inline(always)]
    pub(crate) fn scan_words<'t, Pr: Projection<R>>(
        &'t self,
        tx: &'t Tx<'_, P>,
        range: WordRange,
        direction: Direction,
        projection: Pr,
    ) -> Scan<'t, R, P, Pr> {
        let units = self.core().layout.placed_units_of(projection.groups());
        Scan {
            table: self,
            tx,
            projection,
            units,
            way: Way::new(tx, self.core(), range, direction),
        }
    }
}

impl<R: Record, P: Protocol> Table<R, P> {
    /// Returns the rows of a range of keys in their order: `scan(tx, 10..20, …)`, `scan(tx, ..,
    /// …)`, `scan(tx, Prefix((warehouse, district)), …)`.
    ///
    /// A range whose end is before its beginning is empty.
    #[inline]
    pub fn scan<'t, Pr: Projection<R>>(
        &'t self,
        tx: &'t Tx<'_, P>,
        range: impl KeyRange<R::Key>,
        projection: Pr,
    ) -> Scan<'t, R, P, Pr>
    where
        R::Index: InOrder,
    {
        self.scan_words(tx, self.kept_range(&range), Direction::Forward, projection)
    }

    /// As [`Table::scan`], from the last key to the first.
    #[inline]
    pub fn scan_rev<'t, Pr: Projection<R>>(
        &'t self,
        tx: &'t Tx<'_, P>,
        range: impl KeyRange<R::Key>,
        projection: Pr,
    ) -> Scan<'t, R, P, Pr>
    where
        R::Index: InOrder,
    {
        self.scan_words(tx, self.kept_range(&range), Direction::Reverse, projection)
    }

    /// Returns `range` in the words of keys as the table keeps them, packed or not.
    #[inline]
    fn kept_range(&self, range: &impl KeyRange<R::Key>) -> WordRange {
        let range = range.word_range();
        match self.core().layout.packing::<R::Key>() {
            None => range,
            Some(packing) => range.packed(&packing),
        }
    }
}

/// The result of a step of a scan.
enum Step<K, V> {
    Row(K, V),
    /// A record that holds no row, as the transaction sees it.
    Absent,
    /// A record that needs the slow path.
    Intricate(RecordAt),
    /// The end of the scan, or its failure.
    Over,
}

impl<R: Record, P: Protocol, Pr: Projection<R>> Scan<'_, R, P, Pr> {
    #[inline(always)]
    fn step(&mut self) -> Step<R::Key, Pr::Value> {
        let state = &mut *self.tx.state.borrow_mut();
        let core = self.table.core();
        let Some(record) = self.way.step(self.tx, state, core) else { return Step::Over };
        let Some(placed) = &self.units.only else { return Step::Intricate(record) };
        let mut words = Pr::EMPTY;
        match state.read_at_once(placed.of(record), |from| {
            self.projection.copy_all(placed.start(), from, &mut words)
        }) {
            Some(true) => {
                let key = core.layout.key_of(record);
                let columns = self.projection.value(&key, &words);
                Step::Row(key, columns)
            }
            Some(false) => Step::Absent,
            None => Step::Intricate(record),
        }
    }

    /// Goes on with `record`, which has several units or needs the slow path; if `record` is
    /// `None`, with the next record. Takes no arguments that a simple step does not need, so that a
    /// simple step is short.
    #[inline(never)]
    fn go_on(&mut self, record: Option<RecordAt>) -> Option<<Self as Iterator>::Item> {
        let core = self.table.core();
        let (mut units, mut words) = (self.units.all, Pr::EMPTY);
        let Some(record) = record else { return self.go_on_with(None, words) };
        if Pr::ONE_GROUP || self.units.only.is_some() {
            return self.go_on_with(Some((record, units)), words);
        }
        let copy = |unit, from: Words<'_>| self.projection.copy(unit, from, &mut words);
        let is_there =
            self.tx.state.borrow_mut().read_units_at_once(core, record, &mut units, copy);
        match is_there {
            Some(true) => {
                let key = core.layout.key_of(record);
                let columns = self.projection.value(&key, &words);
                Some(Ok((key, columns)))
            }
            Some(false) => self.go_on_with(None, words),
            None => self.go_on_with(Some((record, units)), words),
        }
    }

    /// Does the work of [`Way::go_on`]. If some units of the record in `begun` have already been
    /// read, `words` contains their words.
    #[inline(never)]
    fn go_on_with(
        &mut self,
        begun: Option<(RecordAt, Units)>,
        mut words: Pr::Words,
    ) -> Option<<Self as Iterator>::Item> {
        let (core, projection) = (self.table.core(), &self.projection);
        let copy = &mut |unit, from: Words<'_>| projection.copy(unit, from, &mut words);
        let Some(record) = self.way.go_on(self.tx, core, &self.units, begun, copy) else {
            return self.way.end().map(Err);
        };
        let key = core.layout.key_of(record);
        let columns = projection.value(&key, &words);
        Some(Ok((key, columns)))
    }
}

impl<R: Record, P: Protocol, Pr: Projection<R>> Iterator for Scan<'_, R, P, Pr> {
    type Item = Result<(R::Key, Pr::Value), Abort>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        match self.step() {
            Step::Row(key, columns) => Some(Ok((key, columns))),
            Step::Absent => self.go_on(None),
            Step::Intricate(record) => self.go_on(Some(record)),
            Step::Over => self.way.end().map(Err),
        }
    }
}

impl<R: Record, P: Protocol, Pr: Projection<R>> std::iter::FusedIterator for Scan<'_, R, P, Pr> {}

impl<R: Record, P: Protocol, Pr> std::fmt::Debug for Scan<'_, R, P, Pr> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scan").field("table", &self.table).finish_non_exhaustive()
    }
}
