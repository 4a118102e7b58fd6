//! Secondary indexes, which find rows by other columns than the primary key.

#![forbid(unsafe_code)]

use super::index_changes::{create, drop_made};
use super::index_entry::primary_key;
use super::scan::Way;
use super::table::{Row, Table};
use crate::engine::{IndexCore, IndexPlan, KeyOrigin, Missing, Protocol, Stage, TableCore};
use crate::error::{Abort, Error};
use crate::index::{Direction, Found};
use crate::protocols::DefaultProtocol;
use crate::record::RecordAt;
use crate::schema::{
    Hashed, InOrder, IndexKind, IndexOf, Key, KeyRange, KeyWords, Ordered, Place, Projection,
    Record, Unit, Units, WordRange, Words,
};
use crate::sync::Ordering;
use crate::txn::{State, Tx};
use std::any::TypeId;
use std::marker::PhantomData;

/// A secondary index of a table: finds rows of type `R` by keys of type `K` that are made of other
/// columns.
///
/// Transactions maintain an index together with its table, so a lookup finds the same rows as a
/// search through all rows. A row type declares indexes ([`Table::index`]); other indexes are
/// created while transactions run ([`Table::create_index`]).
///
/// An `Index` is a handle: its clones refer to the same index. After [`Table::drop_index`] every
/// operation fails with [`Abort::NoIndex`]; if an index of the same name, columns and kind is
/// created again, the handle refers to the new index. The other errors are [those of every
/// operation](Table#errors-of-every-operation) of a table.
pub struct Index<R, K, I, P: Protocol = DefaultProtocol> {
    table: Table<R, P>,
    number: usize,
    types: PhantomData<fn(K) -> I>,
}

impl<R, K, I, P: Protocol> Clone for Index<R, K, I, P> {
    fn clone(&self) -> Self {
        Index { table: self.table.clone(), number: self.number, types: PhantomData }
    }
}

impl<R: Record, K, I, P: Protocol> std::fmt::Debug for Index<R, K, I, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Index")
            .field("table", &self.table)
            .field("name", &self.core().name)
            .finish_non_exhaustive()
    }
}

impl<R: Record, K, I, P: Protocol> Index<R, K, I, P> {
    fn core(&self) -> &IndexCore {
        self.table
            .core()
            .indexes
            .get(self.number)
            .expect("a handle is made for an index that was added")
    }

    #[cfg(test)]
    pub(crate) fn entries_for_tests(&self) -> &TableCore {
        &self.core().entries
    }
}

impl<R: Record, P: Protocol> Table<R, P> {
    /// Returns an index that the row type declares: `accounts.index(Account::BY_OWNER)`.
    pub fn index<K: Key, I: IndexKind>(&self, index: IndexOf<R, K, I>) -> Index<R, K, I, P> {
        Index { table: self.clone(), number: index.number, types: PhantomData }
    }
}

impl<R: Record, K: Key, I: IndexKind, P: Protocol> Index<R, K, I, P> {
    pub(crate) fn new(table: Table<R, P>, number: usize) -> Index<R, K, I, P> {
        Index { table, number, types: PhantomData }
    }

    /// Returns the index's name.
    pub fn name(&self) -> &str {
        &self.core().name
    }

    /// Returns whether the index is unique: no two rows may have the same key in it.
    pub fn is_unique(&self) -> bool {
        self.core().unique
    }

    /// Returns the rows with this key, with some of their columns. A unique index has at most one
    /// such row. As with [`Table::scan`], these are the rows that exist when the call is made.
    ///
    /// An ordered index returns the rows in the order of their primary keys.
    pub fn rows<'t, Pr: Projection<R>>(
        &'t self,
        tx: &'t Tx<'_, P>,
        key: &K,
        projection: Pr,
    ) -> IndexScan<'t, R, K, I, P, Pr> {
        self.scan_words(
            tx,
            WordRange::beginning_with(key.words().as_ref(), K::WORDS),
            Direction::Forward,
            projection,
        )
    }

    /// Returns a handle on the row with this key. If the index is not unique, the row is the first
    /// one found with this key. `None` if there is no such row; the transaction has then observed
    /// the absence.
    ///
    /// # Errors
    /// [`Abort::NoIndex`] if the index has been dropped.
    pub fn find<'t>(&'t self, tx: &'t Tx<'_, P>, key: &K) -> Result<Option<Row<'t, R, P>>, Abort> {
        let range = WordRange::beginning_with(key.words().as_ref(), K::WORDS);
        let mut way = self.begin(tx, range, Direction::Forward);
        let state = &mut *tx.state.borrow_mut();
        let met = next_row(tx, state, self.table.core(), self.core(), &mut way)?;
        let Some(Met { record, .. }) = met else { return Ok(None) };
        let key = self.table.core().layout.key_of(record);
        Ok(Some(self.table.row_of(tx, key, record)))
    }

    /// Reads columns of the row with this key. If the index is not unique, the row is the first one
    /// found with this key. `None` if there is no such row.
    ///
    /// # Errors
    /// [`Abort::NoIndex`] if the index has been dropped.
    pub fn get<Pr: Projection<R>>(
        &self,
        tx: &Tx<'_, P>,
        key: &K,
        projection: Pr,
    ) -> Result<Option<Pr::Value>, Abort> {
        self.rows(tx, key, projection).next().transpose().map(|row| row.map(|(_, columns)| columns))
    }

    /// As [`Index::get`], for a row that must exist.
    ///
    /// # Errors
    /// [`Abort::NotFound`] if there is no row with this key, [`Abort::NoIndex`] if the index has
    /// been dropped.
    pub fn read<Pr: Projection<R>>(
        &self,
        tx: &Tx<'_, P>,
        key: &K,
        projection: Pr,
    ) -> Result<Pr::Value, Abort> {
        self.get(tx, key, projection)?.ok_or(Abort::NotFound)
    }

    fn begin(&self, tx: &Tx<'_, P>, range: WordRange, direction: Direction) -> Way {
        Way::new(tx, &self.core().entries, self.entry_range(&range), direction)
    }

    /// Returns the range of entry keys for a range of index keys. In a unique index, an entry key
    /// has the words of the index key. In another index, it begins with these words, and the
    /// primary key follows.
    pub(crate) fn entry_range(&self, range: &WordRange) -> WordRange {
        range.expect_words(K::WORDS);
        range.of_longer_keys(self.core().entries.layout.key_words())
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
        IndexScan { index: self, tx, projection, way, last: None }
    }
}

/// A row found through an index: the entry and the record.
#[derive(Clone, Copy)]
struct Met {
    entry: RecordAt,
    record: RecordAt,
}

/// Returns the next row of a table on the way through an index; `None` after the last row.
fn next_row<P: Protocol>(
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
    while let Some(entry) = way.next(tx, state, &index.entries)? {
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
fn read_next<P: Protocol>(
    tx: &Tx<'_, P>,
    (table, index): (&TableCore, &IndexCore),
    way: &mut Way,
    units: Units,
    copy: &mut dyn FnMut(Unit, Words<'_>),
) -> Result<Option<Met>, Abort> {
    let state = &mut *tx.state.borrow_mut();
    let met = next_row(tx, state, table, index, way).and_then(|met| {
        let Some(Met { record, .. }) = met else { return Ok(None) };
        let is_there =
            state.read_units_at_mark(tx.engine, table, (record, units), way.mark(), copy)?;
        // For the same reason as in `next_row`.
        if is_there { Ok(met) } else { Err(state.torn(tx.engine, table.layout.first_of(record))) }
    });
    if !matches!(met, Ok(Some(_))) {
        way.end();
    }
    met
}

impl<R: Record, K: Key, I: IndexKind, P: Protocol> Index<R, K, I, P> {
    /// Returns the rows whose keys in this index lie in `range`, in the order of these keys. Rows
    /// with equal keys come in the order of their primary keys. As with [`Table::scan`], these are
    /// the rows that exist when the call is made.
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

    /// As [`Index::scan`], from the last row to the first.
    pub fn scan_rev<'t, Pr: Projection<R>>(
        &'t self,
        tx: &'t Tx<'_, P>,
        range: impl KeyRange<K>,
        projection: Pr,
    ) -> IndexScan<'t, R, K, I, P, Pr>
    where
        I: InOrder,
    {
        self.scan_words(tx, range.word_range(), Direction::Reverse, projection)
    }
}

/// Rows found through a secondary index, with some of their columns. All that [`Scan`](crate::Scan)
/// says applies here too.
pub struct IndexScan<'t, R: Record, K, I, P: Protocol, Pr> {
    index: &'t Index<R, K, I, P>,
    tx: &'t Tx<'t, P>,
    projection: Pr,
    way: Way,
    /// The entry of the row that the scan has returned last.
    last: Option<RecordAt>,
}

impl<R: Record, K: Key, I: IndexKind, P: Protocol, Pr> IndexScan<'_, R, K, I, P, Pr> {
    /// Returns the entry key of the row that the scan has returned last.
    pub(crate) fn last_entry(&self) -> Option<KeyWords> {
        self.last.map(|entry| entry.key_words(self.index.core().entries.layout.key_words()))
    }
}

impl<R: Record, K: Key, I: IndexKind, P: Protocol, Pr: Projection<R>> Iterator
    for IndexScan<'_, R, K, I, P, Pr>
{
    type Item = Result<(R::Key, Pr::Value), Abort>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.way.is_over() {
            return None;
        }
        let (core, projection) = (self.index.table.core(), &self.projection);
        let mut words = Pr::EMPTY;
        let units = core.layout.units_of(projection.groups());
        let copy = &mut |unit, from: Words<'_>| projection.copy(unit, from, &mut words);
        let met = read_next(self.tx, (core, self.index.core()), &mut self.way, units, copy)
            .transpose()?;
        Some(met.map(|Met { entry, record }| {
            self.last = Some(entry);
            let key = core.layout.key_of(record);
            let columns = projection.value(&key, &words);
            (key, columns)
        }))
    }
}

impl<R: Record, K: Key, I: IndexKind, P: Protocol, Pr: Projection<R>> std::iter::FusedIterator
    for IndexScan<'_, R, K, I, P, Pr>
{
}

impl<R: Record, K, I, P: Protocol, Pr> std::fmt::Debug for IndexScan<'_, R, K, I, P, Pr> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IndexScan").field("index", &self.index).finish_non_exhaustive()
    }
}

/// The properties of an index that is made while the database is in use.
#[derive(Debug, Clone, Copy)]
pub struct IndexOptions<I> {
    unique: bool,
    kind: PhantomData<fn() -> I>,
}

impl IndexOptions<Ordered> {
    /// Returns the options of an ordered index.
    pub fn ordered() -> IndexOptions<Ordered> {
        IndexOptions { unique: false, kind: PhantomData }
    }
}

impl IndexOptions<Hashed> {
    /// Returns the options of a hash index. A hash index finds rows by their whole key only, and
    /// suits keys that few rows share.
    pub fn hashed() -> IndexOptions<Hashed> {
        IndexOptions { unique: false, kind: PhantomData }
    }
}

impl<I> IndexOptions<I> {
    /// Makes the index unique: no two rows may have the same key in it.
    #[must_use]
    pub fn unique(self) -> IndexOptions<I> {
        IndexOptions { unique: true, ..self }
    }
}

impl<R: Record, P: Protocol> Table<R, P> {
    /// Adds a secondary index on the columns of `projection`, while transactions run:
    /// `customers.create_index("by_city", Customer::CITY, IndexOptions::ordered())`. Returns when
    /// the index can be read.
    ///
    /// Soon after the call begins, all transactions maintain the index. From then on,
    /// [`Table::update`] of an indexed column is refused with [`Abort::Indexed`]. Transactions of
    /// this thread enter the existing rows into the index, a few rows each. Before that, the call
    /// lists the keys of these rows; the memory limit does not count this list.
    ///
    /// # Errors
    /// [`Error::IndexExists`] if the table has an index of this name, [`Error::EmptyTableName`],
    /// [`Error::TooManyIndexes`], [`Error::TooManyTables`], [`Error::NotUnique`] if two rows have
    /// the same key in a unique index, [`Error::MemoryLimit`], [`Error::RowType`] if the keys would
    /// be too long, [`Error::SecondSession`]. [`Error::Busy`] if running transactions do not end
    /// within ten seconds. The call waits for them up to three times: for all transactions of this
    /// process, also those of other databases and of this thread.
    ///
    /// After an error there is no index, with one exception. A unique index may have refused a
    /// transaction that does not end within ten seconds. Transactions then maintain the index until
    /// [`Table::drop_index`], but it refuses no transaction.
    ///
    /// # Panics
    /// With the panic of the code that makes the keys; there is no index then.
    pub fn create_index<Pr, I: IndexKind>(
        &self,
        name: &str,
        projection: Pr,
        options: IndexOptions<I>,
    ) -> Result<Index<R, Pr::Value, I, P>, Error>
    where
        Pr: Projection<R, Value: Key> + Send + Sync + 'static,
    {
        let mut columns: Vec<Place> = Vec::new();
        projection.places(&mut |place| columns.push(place));
        let mut key_parts = Vec::new();
        projection.key_parts(&mut |function| key_parts.push(function));
        let packing = self.core().layout.packing::<R::Key>();
        let key_of = move |primary: &[u64], row: &[u64], key: &mut Vec<u64>| {
            let mut words = Pr::EMPTY;
            projection.copy(Unit::ROW, Words::Own(row), &mut words);
            let primary = match packing {
                None => R::Key::from_words(primary),
                Some(packing) => R::Key::from_words(packing.unpack(primary).as_slice()),
            };
            key.extend_from_slice(projection.value(&primary, &words).words().as_ref());
        };
        let plan = IndexPlan {
            name: name.into(),
            unique: options.unique,
            ordered: I::ORDERED,
            columns: columns.into(),
            key_words: <Pr::Value as Key>::WORDS,
            show_key: <Pr::Value as Key>::show,
            key_of: Box::new(key_of),
            origin: KeyOrigin { projection: TypeId::of::<Pr>(), key_parts: key_parts.into() },
        };
        let number = create(self.inner(), self.core(), plan)?;
        Ok(Index::new(self.clone(), number))
    }

    /// Drops a secondary index that [`Table::create_index`] has created: operations on its handles
    /// fail from now on. The index's memory is kept for a new index of the same name, columns and
    /// kind.
    ///
    /// # Errors
    /// [`Error::NoIndex`] if the table has no such index or the row type declares it.
    /// [`Error::Busy`] if a transaction that may have read the index, or that the index may have
    /// refused, does not end within ten seconds. The index cannot be read any more then, but
    /// transactions still maintain it, and a unique index may still refuse rows. Call this function
    /// again in this case. [`Error::SecondSession`].
    pub fn drop_index(&self, name: &str) -> Result<(), Error> {
        drop_made(self.inner(), self.core(), name, R::INDEXES.len())
    }
}
