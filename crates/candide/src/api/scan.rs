//! Scans: rows one after another, as the transaction sees them when the scan is made.

#![forbid(unsafe_code)]

use super::aggregate::{count_rest, sum};
use super::table::Table;
use super::values_of::ValuesOf;
use super::way::Way;
use crate::engine::Protocol;
use crate::error::Abort;
use crate::index::Direction;
use crate::record::{PlacedUnits, RecordAt};
use crate::schema::{
    InOrder, IndexKind, KeyRange, Pinned, Projection, Record, Summand, Units, WordRange, Words,
};
use crate::txn::Tx;
use std::iter::{FusedIterator, Rev};

/// The rows of a range of keys, or of a whole table, with some of their columns.
///
/// A scan returns `Ok((key, columns))` for every row that exists when the scan is made. The
/// transaction's own inserts, updates and deletes before that moment show. Its later writes do not
/// show, even in rows that the scan has not reached. The errors are [those of every
/// operation](Table#errors-of-every-operation); after an error the scan returns nothing more.
///
/// A scan searches a row when the caller requests that row. So a scan that is dropped after some
/// rows has observed the table up to the last of these rows and no further. These rows and the gaps
/// between them belong to the read set of the transaction: at its place in the serial order, these
/// gaps contain no row.
///
/// The scan does not borrow the transaction: rows of any table can be read and written between two
/// rows of the scan.
///
/// A scan of an ordered table is a [`DoubleEndedIterator`]: `scan(..).rev()` begins with the last
/// row, and [`next`](Iterator::next) and [`next_back`](DoubleEndedIterator::next_back) can be
/// mixed. The two ends meet in the middle, and return each row once; rows between the ends have not
/// been observed. A step looks its place up again if the step before was at the other end.
///
/// The methods [`count`](Scan::count), [`sum`](Scan::sum), [`fold`](Scan::fold),
/// [`for_each`](Scan::for_each) and [`try_for_each`](Scan::try_for_each) take rows, not results,
/// and return the scan's error. They hide those of [`Iterator`], which adapters such as
/// [`map`](Iterator::map) and [`rev`](Iterator::rev) lead back to.
///
/// ```
/// # use candide::{Database, Record};
/// # #[derive(Record, Clone, Copy)]
/// # #[record(ordered)]
/// # struct Reading { #[key] time: u64, celsius: i16 }
/// # let db = Database::new();
/// # let readings = db.table::<Reading>("readings")?;
/// # db.run(|tx| (1..=9).try_for_each(|time| readings.insert(tx, Reading { time, celsius: 20 })))?;
/// db.run(|tx| {
///     assert_eq!(readings.scan(tx, 3..6, ()).count()?, 3);
///     assert_eq!(readings.scan(tx, .., Reading::CELSIUS).sum()?, 180);
///     let mut scan = readings.scan(tx, .., Reading::CELSIUS);
///     assert_eq!(scan.next().transpose()?, Some((1, 20)));
///     assert_eq!(scan.next_back().transpose()?, Some((9, 20)));
///     assert_eq!(scan.count()?, 7);
///     Ok(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Scan<'t, R: Record, P: Protocol, Pr> {
    pub(super) table: &'t Table<R, P>,
    pub(super) tx: &'t Tx<'t, P>,
    pub(super) projection: Pr,
    pub(super) units: PlacedUnits,
    pub(super) way: Way,
}

impl<R: Record, P: Protocol> Table<R, P> {
    /// Returns all rows: in the order of their keys if the table is ordered, otherwise in no
    /// particular order.
    ///
    /// The transaction commits only if no row of the table has been changed or inserted meanwhile.
    /// So this does not suit a large table that other transactions write.
    ///
    /// ```
    /// # use candide::{Database, Record};
    /// # #[derive(Record, Clone, Copy)]
    /// # struct Account { #[key] id: u64, cents: i64 }
    /// # let db = Database::new();
    /// # let accounts = db.table::<Account>("accounts")?;
    /// # db.run(|tx| (1..=3).try_for_each(|id| accounts.insert(tx, Account { id, cents: 10 })))?;
    /// db.run(|tx| {
    ///     for row in accounts.iter(tx, Account::CENTS) {
    ///         let (_id, cents) = row?;
    ///         assert_eq!(cents, 10);
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "keys")]
    #[doc(alias = "values")]
    #[doc(alias = "select")]
    pub fn iter<'t, Pr: Projection<R>>(
        &'t self,
        tx: &'t Tx<'_, P>,
        projection: Pr,
    ) -> Scan<'t, R, P, Pr> {
        let words = self.core().layout.key_words();
        self.scan_words(tx, WordRange::beginning_with(&[], words), Direction::Forward, projection)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
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
    /// …)`, `scan(tx, Prefix((warehouse, district)), …)`, `scan(tx, "a".."n", …)`.
    ///
    /// A range whose end is before its beginning is empty. `scan(..).rev()` begins with the last
    /// row.
    #[doc(alias = "range")]
    #[doc(alias = "between")]
    #[doc(alias = "select")]
    #[doc(alias = "where")]
    #[doc(alias = "order_by")]
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

    /// Returns `scan(tx, range, projection).rev()`: the rows from the last key to the first. The
    /// call costs a little less than `rev`, since the scan gets its direction when it is made.
    #[inline]
    #[doc(alias = "range_rev")]
    pub fn scan_rev<'t, Pr: Projection<R>>(
        &'t self,
        tx: &'t Tx<'_, P>,
        range: impl KeyRange<R::Key>,
        projection: Pr,
    ) -> Rev<Scan<'t, R, P, Pr>>
    where
        R::Index: InOrder,
    {
        self.scan_words(tx, self.kept_range(&range), Direction::Reverse, projection).rev()
    }

    /// Returns `range` in the words of keys as the table keeps them, packed or not.
    #[inline]
    pub(crate) fn kept_range(&self, range: &impl KeyRange<R::Key>) -> WordRange {
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
    /// Lets a fresh scan begin at a place that an earlier one has reached, in a table without
    /// order.
    pub(crate) fn beginning_at(mut self, place: usize) -> Self {
        self.way.begin_at(place);
        self
    }

    /// Returns the place that the scan has reached, in a table without order; zero at the end.
    pub(crate) fn place(&self) -> usize {
        self.way.place()
    }

    /// Takes the next record, and reads it if no slow path is needed.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn step<const FORWARD: bool>(&mut self) -> Step<R::Key, Pr::Value> {
        let state = &mut *self.tx.state.borrow_mut();
        let (core, is_ordered) = (self.table.core(), R::Index::ORDERED);
        let Some(record) = self.way.step::<FORWARD, P>(self.tx, state, core, is_ordered) else {
            return Step::Over;
        };
        let only = self.units.only.as_ref().filter(|_| !Pr::CODED);
        let Some(placed) = only else { return Step::Intricate(record) };
        let mut words = Pr::EMPTY;
        match state.read_at_once(placed.of(record), |from| {
            self.projection.copy_all(placed.start(), from, &mut words)
        }) {
            Some(true) => {
                let key = core.layout.key_of(record);
                let columns = self.projection.value(&key, &words, Pinned::by(state));
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
    fn go_on<const FORWARD: bool>(
        &mut self,
        record: Option<RecordAt>,
    ) -> Option<<Self as Iterator>::Item> {
        let core = self.table.core();
        let (mut units, mut words) = (self.units.all, Pr::EMPTY);
        let Some(record) = record else { return self.go_on_with::<FORWARD>(None, words) };
        if Pr::ONE_GROUP || self.units.only.is_some() {
            return self.go_on_with::<FORWARD>(Some((record, units)), words);
        }
        let copy = |unit, from: Words<'_>| self.projection.copy(unit, from, &mut words);
        let is_there =
            self.tx.state.borrow_mut().read_units_at_once(core, record, &mut units, copy);
        match is_there {
            Some(true) => {
                let key = core.layout.key_of(record);
                let state = &mut *self.tx.state.borrow_mut();
                let columns = state.value_of::<R, Pr>(core, &key, &self.projection, &words);
                Some(columns.map(|columns| (key, columns)))
            }
            Some(false) => self.go_on_with::<FORWARD>(None, words),
            None => self.go_on_with::<FORWARD>(Some((record, units)), words),
        }
    }

    /// Does the work of [`Way::go_on`]. If some units of the record in `begun` have already been
    /// read, `words` contains their words.
    #[inline(never)]
    fn go_on_with<const FORWARD: bool>(
        &mut self,
        begun: Option<(RecordAt, Units)>,
        mut words: Pr::Words,
    ) -> Option<<Self as Iterator>::Item> {
        let (core, projection) = (self.table.core(), &self.projection);
        let copy = &mut |unit, from: Words<'_>| projection.copy(unit, from, &mut words);
        let units = &self.units;
        let Some(record) = self.way.go_on::<FORWARD, P>(self.tx, core, units, begun, copy) else {
            return self.way.end().map(Err);
        };
        let key = core.layout.key_of(record);
        let state = &mut *self.tx.state.borrow_mut();
        let columns = state.value_of::<R, Pr>(core, &key, projection, &words);
        Some(columns.map(|columns| (key, columns)))
    }

    /// Returns the next row from one end.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn next_at<const FORWARD: bool>(&mut self) -> Option<<Self as Iterator>::Item> {
        match self.step::<FORWARD>() {
            Step::Row(key, columns) => Some(Ok((key, columns))),
            Step::Absent => self.go_on::<FORWARD>(None),
            Step::Intricate(record) => self.go_on::<FORWARD>(Some(record)),
            Step::Over => self.way.end().map(Err),
        }
    }
}

/// Defines the methods of a scan that take rows. The arguments are `self`, the kind of the index
/// that is scanned, and an expression that counts the rest of the rows.
macro_rules! methods_that_take_rows {
    ($self:ident, $index:ty, $count:expr) => {
        /// Returns the number of rows.
        ///
        /// # Errors
        /// [Those of every operation](crate::Table#errors-of-every-operation).
        pub fn count(mut $self) -> Result<usize, Abort> {
            $count
        }

        /// Returns the sum of a column: an `i64` if the column is signed, otherwise a `u64`; an
        /// `i128` or `u128` of a column of that type. The projection names this column alone.
        ///
        /// # Errors
        /// [`Abort::Overflow`] if the type of the sum cannot hold it.
        pub fn sum(self) -> Result<<Pr::Value as Summand>::Sum, Abort>
        where
            Pr::Value: Summand,
        {
            let (tx, table) = (self.tx, self.table.core());
            let overflow = || tx.state.borrow_mut().outcome_in(Abort::Overflow, table);
            sum(self)?.ok_or_else(overflow)
        }

        /// Calls `each` with the result so far, `init` at first, and each row; returns the last
        /// result.
        ///
        /// # Errors
        /// [Those of every operation](crate::Table#errors-of-every-operation).
        pub fn fold<T>(
            mut self,
            init: T,
            mut each: impl FnMut(T, (R::Key, Pr::Value)) -> T,
        ) -> Result<T, Abort> {
            self.try_fold(init, |result, row| Ok(each(result, row?)))
        }

        /// Calls `each` with each row.
        ///
        /// # Errors
        /// [Those of every operation](crate::Table#errors-of-every-operation).
        pub fn for_each(mut self, mut each: impl FnMut((R::Key, Pr::Value))) -> Result<(), Abort> {
            Iterator::try_for_each(&mut self, |row| row.map(&mut each))
        }

        /// Calls `each` with each row, until it returns an error.
        ///
        /// # Errors
        /// The error of `each`, and [those of every
        /// operation](crate::Table#errors-of-every-operation).
        pub fn try_for_each<E: From<Abort>>(
            &mut self,
            mut each: impl FnMut((R::Key, Pr::Value)) -> Result<(), E>,
        ) -> Result<(), E> {
            Iterator::try_for_each(self, |row| each(row?))
        }

        /// Returns the columns of the rows, without the keys.
        pub fn values(self) -> ValuesOf<Self> {
            ValuesOf::new(self)
        }

        /// Returns the columns of all rows, without the keys.
        ///
        /// # Errors
        /// [Those of every operation](crate::Table#errors-of-every-operation).
        pub fn collect_rows(self) -> Result<Vec<Pr::Value>, Abort> {
            self.values().collect_rows()
        }

        /// Returns the first row; `None` if there is none.
        ///
        /// # Errors
        /// [Those of every operation](crate::Table#errors-of-every-operation).
        #[doc(alias = "min")]
        pub fn first(mut self) -> Result<Option<(R::Key, Pr::Value)>, Abort> {
            self.next().transpose()
        }

        /// Returns the last row; `None` if there is none. The rows before it are not looked at.
        ///
        /// # Errors
        /// [Those of every operation](crate::Table#errors-of-every-operation).
        #[doc(alias = "max")]
        pub fn last(mut self) -> Result<Option<(R::Key, Pr::Value)>, Abort>
        where
            $index: InOrder,
        {
            self.next_back().transpose()
        }
    };
}
pub(super) use methods_that_take_rows;

/// Methods that take rows, in place of those of [`Iterator`] that would take results.
impl<R: Record, P: Protocol, Pr: Projection<R>> Scan<'_, R, P, Pr> {
    methods_that_take_rows! {
        self, R::Index,
        count_rest(self.tx, self.table.core(), &mut self.way, &self.units, usize::MAX)
    }
}

impl<R: Record, P: Protocol, Pr: Projection<R>> Iterator for Scan<'_, R, P, Pr> {
    type Item = Result<(R::Key, Pr::Value), Abort>;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn next(&mut self) -> Option<Self::Item> {
        self.next_at::<true>()
    }
}

impl<R: Record, P: Protocol, Pr: Projection<R>> DoubleEndedIterator for Scan<'_, R, P, Pr>
where
    R::Index: InOrder,
{
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn next_back(&mut self) -> Option<Self::Item> {
        self.next_at::<false>()
    }
}

impl<R: Record, P: Protocol, Pr: Projection<R>> FusedIterator for Scan<'_, R, P, Pr> {}

impl<R: Record, P: Protocol, Pr> std::fmt::Debug for Scan<'_, R, P, Pr> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scan").field("table", &self.table).finish_non_exhaustive()
    }
}
