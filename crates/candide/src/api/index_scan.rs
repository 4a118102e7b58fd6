//! Scans of secondary indexes.

#![forbid(unsafe_code)]

use super::aggregate::sum;
use super::index::{Index, index_of};
use super::index_entry::primary_key;
use super::scan::methods_that_take_rows;
use super::table::Table;
use super::values_of::ValuesOf;
use super::way::Way;
use crate::engine::{IndexCore, Missing, Protocol, Stage, TableCore};
use crate::error::Abort;
use crate::index::{Direction, Found};
use crate::record::RecordAt;
use crate::schema::{
    InOrder, IndexKind, Key, KeyRange, KeyWords, Projection, Record, Summand, Unit, Units,
    WordRange, Words,
};
use crate::sync::Ordering;
use crate::txn::{State, Tx};
use std::iter::{FusedIterator, Rev};
use std::marker::PhantomData;

impl<R: Record, K: Key, I: IndexKind, P: Protocol> Index<R, K, I, P> {
    /// Returns the rows whose keys in this index lie in `range`, in the order of these keys. Rows
    /// with equal keys come in the order of their primary keys. As with
    /// [`Table::scan`](crate::Table::scan), these are the rows that exist when the call is made.
    #[doc(alias = "range")]
    #[doc(alias = "between")]
    pub fn scan<'t, Pr: Projection<R>>(
        &'t self,
        tx: &'t Tx<'_, P>,
        range: impl KeyRange<K>,
        projection: Pr,
    ) -> IndexScan<'t, R, K, I, P, Pr>
    where
        I: InOrder,
    {
        self.scan_words(tx, range.word_range(), Direction::Forward, projection)
    }

    /// Returns `scan(tx, range, projection).rev()`: the rows from the last to the first. The call
    /// costs a little less than `rev`, since the scan gets its direction when it is made.
    pub fn scan_rev<'t, Pr: Projection<R>>(
        &'t self,
        tx: &'t Tx<'_, P>,
        range: impl KeyRange<K>,
        projection: Pr,
    ) -> Rev<IndexScan<'t, R, K, I, P, Pr>>
    where
        I: InOrder,
    {
        self.scan_words(tx, range.word_range(), Direction::Reverse, projection).rev()
    }

    fn scan_words<'t, Pr: Projection<R>>(
        &'t self,
        tx: &'t Tx<'_, P>,
        range: WordRange,
        direction: Direction,
        projection: Pr,
    ) -> IndexScan<'t, R, K, I, P, Pr> {
        self.scan_entries(tx, self.entry_range(&range), direction, projection)
    }

    /// Returns the rows of a range of entries.
    pub(crate) fn scan_entries<'t, Pr: Projection<R>>(
        &'t self,
        tx: &'t Tx<'_, P>,
        entries: WordRange,
        direction: Direction,
        projection: Pr,
    ) -> IndexScan<'t, R, K, I, P, Pr> {
        let way = Way::new(tx, &self.core().entries, entries, direction);
        IndexScan::new(self, tx, projection, way)
    }
}

/// Rows found through a secondary index, with some of their columns. The documentation of
/// [`Scan`](crate::Scan) applies here too; a scan of an ordered index is a [`DoubleEndedIterator`].
pub struct IndexScan<'t, R: Record, K, I, P: Protocol, Pr> {
    table: &'t Table<R, P>,
    /// The number of the index.
    number: usize,
    tx: &'t Tx<'t, P>,
    projection: Pr,
    way: Way,
    /// The entry of the row that the scan has returned last.
    last: Option<RecordAt>,
    index: PhantomData<fn(K) -> I>,
}

impl<'t, R: Record, K: Key, I: IndexKind, P: Protocol, Pr> IndexScan<'t, R, K, I, P, Pr> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn new(
        index: &'t Index<R, K, I, P>,
        tx: &'t Tx<'_, P>,
        projection: Pr,
        way: Way,
    ) -> IndexScan<'t, R, K, I, P, Pr> {
        let (table, number) = (index.table(), index.number());
        IndexScan { table, number, tx, projection, way, last: None, index: PhantomData }
    }

    /// Returns the rows of a range of entries of the index with this number.
    pub(super) fn of_table(
        table: &'t Table<R, P>,
        number: usize,
        tx: &'t Tx<'_, P>,
        entries: WordRange,
        direction: Direction,
        projection: Pr,
    ) -> IndexScan<'t, R, K, I, P, Pr> {
        let way = Way::new(tx, &index_of(table, number).entries, entries, direction);
        IndexScan { table, number, tx, projection, way, last: None, index: PhantomData }
    }

    /// Returns the table, the transaction, and the projection.
    pub(super) fn parts(&self) -> (&'t Table<R, P>, &'t Tx<'t, P>, &Pr) {
        (self.table, self.tx, &self.projection)
    }

    /// Returns the scan with another projection.
    pub(super) fn with<Other>(self, projection: Other) -> IndexScan<'t, R, K, I, P, Other> {
        let IndexScan { table, number, tx, way, last, index, .. } = self;
        IndexScan { table, number, tx, projection, way, last, index }
    }

    fn core(&self) -> &IndexCore {
        index_of(self.table, self.number)
    }

    /// Returns the entry key of the row that the scan has returned last.
    pub(crate) fn last_entry(&self) -> Option<KeyWords> {
        self.last.map(|entry| entry.key_words(self.core().entries.layout.key_words()))
    }
}

impl<R: Record, K: Key, I: IndexKind, P: Protocol, Pr: Projection<R>>
    IndexScan<'_, R, K, I, P, Pr>
{
    /// Returns the next row from one end.
    fn next_at<const FORWARD: bool>(&mut self) -> Option<<Self as Iterator>::Item> {
        if self.way.is_over() {
            return None;
        }
        let (core, projection) = (self.table.core(), &self.projection);
        let mut words = Pr::EMPTY;
        let units = core.layout.units_of(projection.groups());
        let copy = &mut |unit, from: Words<'_>| projection.copy(unit, from, &mut words);
        let cores = (core, index_of(self.table, self.number));
        let met =
            read_next::<FORWARD, P>(self.tx, cores, &mut self.way, units, copy).transpose()?;
        Some(met.and_then(|Met { entry, record }| {
            self.last = Some(entry);
            let key = core.layout.key_of(record);
            let state = &mut *self.tx.state.borrow_mut();
            let columns = state.value_of::<R, Pr>(core, &key, projection, &words)?;
            Ok((key, columns))
        }))
    }
}

/// Methods that take rows, in place of those of [`Iterator`] that would take results.
impl<R: Record, K: Key, I: IndexKind, P: Protocol, Pr: Projection<R>>
    IndexScan<'_, R, K, I, P, Pr>
{
    methods_that_take_rows! {
        self, I,
        {
            let (table, index) = (self.table.core(), index_of(self.table, self.number));
            count_rest(self.tx, (table, index), &mut self.way, self.projection.groups())
        }
    }
}

impl<R: Record, K: Key, I: IndexKind, P: Protocol, Pr: Projection<R>> Iterator
    for IndexScan<'_, R, K, I, P, Pr>
{
    type Item = Result<(R::Key, Pr::Value), Abort>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_at::<true>()
    }
}

impl<R: Record, K: Key, I: InOrder, P: Protocol, Pr: Projection<R>> DoubleEndedIterator
    for IndexScan<'_, R, K, I, P, Pr>
{
    fn next_back(&mut self) -> Option<Self::Item> {
        self.next_at::<false>()
    }
}

impl<R: Record, K: Key, I: IndexKind, P: Protocol, Pr: Projection<R>> FusedIterator
    for IndexScan<'_, R, K, I, P, Pr>
{
}

impl<R: Record, K, I, P: Protocol, Pr> std::fmt::Debug for IndexScan<'_, R, K, I, P, Pr> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IndexScan")
            .field("table", &self.table)
            .field("index", &index_of(self.table, self.number).name)
            .finish_non_exhaustive()
    }
}

/// A row found through an index: the entry and the record.
#[derive(Clone, Copy)]
struct Met {
    entry: RecordAt,
    record: RecordAt,
}

/// Returns the next row of a table on the way through an index; `None` after the last row.
fn next_row<const FORWARD: bool, P: Protocol>(
    tx: &Tx<'_, P>,
    state: &mut State<P>,
    table: &TableCore,
    index: &IndexCore,
    way: &mut Way,
) -> Result<Option<Met>, Abort> {
    if way.is_over() {
        return Ok(None);
    }
    if !table.indexes.is_at(index, Stage::Readable) {
        return Err(Abort::NoIndex);
    }
    state.admit(tx.engine, table)?;
    // Relaxed: `since` was written before the index became readable (E18).
    state.reach(tx.engine, table, index.since.load(Ordering::Relaxed))?;
    while let Some(entry) = way.next::<FORWARD, P>(tx, state, &index.entries)? {
        let Some(primary) = primary_key(tx, state, table, index, entry, way.mark())? else {
            continue;
        };
        return match state.find(tx.engine, table, primary.as_slice())? {
            Found::Record(record) => Ok(Some(Met { entry, record })),
            // A transaction changes an entry together with its row. So this attempt has read the
            // entry and the row at two different times.
            Found::Nothing { node, version } => {
                let missing =
                    Missing { table: table.number, key: Some(primary.as_slice()), node, version };
                state.absent(tx.engine, missing)?;
                Err(state.torn(tx.engine, index.entries.layout.at(entry, Unit::ROW)))
            }
        };
    }
    Ok(None)
}

/// Does the work of [`next_row`], and reads `units` of the row as it was when `way` began. Ends
/// `way` after the last row, or after an error.
fn read_next<const FORWARD: bool, P: Protocol>(
    tx: &Tx<'_, P>,
    (table, index): (&TableCore, &IndexCore),
    way: &mut Way,
    units: Units,
    copy: &mut dyn FnMut(Unit, Words<'_>),
) -> Result<Option<Met>, Abort> {
    let state = &mut *tx.state.borrow_mut();
    let met = next_row::<FORWARD, P>(tx, state, table, index, way).and_then(|met| {
        let Some(Met { record, .. }) = met else { return Ok(None) };
        let is_there =
            state.read_units_at_mark(tx.engine, table, (record, units), way.mark(), copy)?;
        // The row was found by its entry, which a transaction changes together with the row.
        if is_there { Ok(met) } else { Err(state.torn(tx.engine, table.layout.first_of(record))) }
    });
    if !matches!(met, Ok(Some(_))) {
        way.end();
    }
    met
}

/// Returns the record of the next row of a table on the way through an index; `None` after the last
/// row.
pub(super) fn next_record<P: Protocol>(
    tx: &Tx<'_, P>,
    table: &TableCore,
    index: &IndexCore,
    way: &mut Way,
) -> Result<Option<RecordAt>, Abort> {
    let state = &mut *tx.state.borrow_mut();
    Ok(next_row::<true, P>(tx, state, table, index, way)?.map(|met| met.record))
}

/// Returns the number of rows that a scan of an index would still return. Observes the groups of
/// these rows that the scan reads.
#[inline(never)]
fn count_rest<P: Protocol>(
    tx: &Tx<'_, P>,
    (table, index): (&TableCore, &IndexCore),
    way: &mut Way,
    groups: u64,
) -> Result<usize, Abort> {
    let units = table.layout.units_of(groups);
    let mut count = 0;
    while read_next::<true, P>(tx, (table, index), way, units, &mut |_, _| {})?.is_some() {
        count += 1;
    }
    Ok(count)
}
