//! Secondary indexes: rows by other columns than their key.

#![forbid(unsafe_code)]

use crate::epoch::Epochs;
use crate::error::{Abort, Error};
use crate::index::{Direction, Found};
use crate::protocol::{DefaultProtocol, IndexCore, IndexPlan, Indexes, KeyOrigin, Missing, Protocol, Stage, TableCore};
use crate::record::{
    Hashed, IndexKind, IndexOf, Key, KeyRange, KeyWords, Ordered, Place, Projection, Record, RecordAt, Unit, WordRange,
    Words,
};
use crate::scan::Way;
use crate::session::Session;
use crate::sync::{Mutant, Ordering, lock, mutant};
use crate::table::{Row, Table};
use crate::txn::{Mark, State, Tx};
use std::any::TypeId;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A secondary index of a table: finds rows of type `R` by keys of type `K` that are made of other columns.
///
/// Transactions keep it along with the table; what it finds is what a search through all rows would. A row type that has
/// indexes names them ([`Table::index`]); others are made while transactions run ([`Table::create_index`]).
///
/// A handle: clones are the same index. After [`Table::drop_index`] every operation fails with [`Abort::NoIndex`]; should an
/// index of the same name, columns and kind be made again, that one is meant. Its other errors are [those of every
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
        f.debug_struct("Index").field("table", &self.table).field("name", &self.core().name).finish_non_exhaustive()
    }
}

impl<R: Record, K, I, P: Protocol> Index<R, K, I, P> {
    fn core(&self) -> &IndexCore {
        self.table.core().indexes.get(self.number).expect("a handle is made for an index that was added")
    }

    #[cfg(test)]
    pub(crate) fn entries_for_tests(&self) -> &TableCore {
        &self.core().entries
    }
}

impl<R: Record, P: Protocol> Table<R, P> {
    /// An index that the row type names: `accounts.index(Account::BY_OWNER)`.
    pub fn index<K: Key, I: IndexKind>(&self, index: IndexOf<R, K, I>) -> Index<R, K, I, P> {
        Index { table: self.clone(), number: index.number, types: PhantomData }
    }
}

impl<R: Record, K: Key, I: IndexKind, P: Protocol> Index<R, K, I, P> {
    pub(crate) fn new(table: Table<R, P>, number: usize) -> Index<R, K, I, P> {
        Index { table, number, types: PhantomData }
    }

    /// The index's name.
    pub fn name(&self) -> &str {
        &self.core().name
    }

    /// Whether no two rows may have the same key in it.
    pub fn is_unique(&self) -> bool {
        self.core().unique
    }

    /// The rows with this key, with some of their columns; of a unique index, one or none. As with [`Table::scan`], they are
    /// those there were when the call was made.
    ///
    /// In an ordered index they come in the order of their primary keys.
    pub fn rows<'t, Pr: Projection<R>>(
        &'t self,
        tx: &'t Tx<'_, P>,
        key: &K,
        projection: Pr,
    ) -> IndexScan<'t, R, K, I, P, Pr> {
        self.scan_words(tx, WordRange::beginning_with(key.words().as_ref(), K::WORDS), Direction::Forward, projection)
    }

    /// A handle on the row with this key in a unique index, or on the first one that is found; `None` if there is none,
    /// which is part of what the transaction has observed.
    ///
    /// # Errors
    /// [`Abort::NoIndex`] if the index has been dropped.
    pub fn find<'t>(&'t self, tx: &'t Tx<'_, P>, key: &K) -> Result<Option<Row<'t, R, P>>, Abort> {
        let range = WordRange::beginning_with(key.words().as_ref(), K::WORDS);
        let mut way = self.begin(tx, range, Direction::Forward);
        let state = &mut *tx.state.borrow_mut();
        let Some(Met { record, .. }) = self.next_row(tx, state, &mut way)? else { return Ok(None) };
        let key = self.table.core().layout.key_of(record);
        Ok(Some(self.table.row_of(tx, key, record)))
    }

    /// Reads columns of the row with this key in a unique index, or of the first one that is found; `None` if there is none.
    ///
    /// # Errors
    /// [`Abort::NoIndex`] if the index has been dropped.
    pub fn get<Pr: Projection<R>>(&self, tx: &Tx<'_, P>, key: &K, projection: Pr) -> Result<Option<Pr::Value>, Abort> {
        self.rows(tx, key, projection).next().transpose().map(|row| row.map(|(_, columns)| columns))
    }

    /// As [`Index::get`], for a row that must be there.
    ///
    /// # Errors
    /// [`Abort::NotFound`] if there is no row with this key, [`Abort::NoIndex`] if the index has been dropped.
    pub fn read<Pr: Projection<R>>(&self, tx: &Tx<'_, P>, key: &K, projection: Pr) -> Result<Pr::Value, Abort> {
        self.get(tx, key, projection)?.ok_or(Abort::NotFound)
    }

    fn begin(&self, tx: &Tx<'_, P>, range: WordRange, direction: Direction) -> Way {
        Way::new(tx, &self.core().entries, self.entry_range(&range), direction)
    }

    /// The entries of a range of keys, whose words a unique index's entries have, and others' begin with.
    pub(crate) fn entry_range(&self, range: &WordRange) -> WordRange {
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

    /// The rows of a range of entries.
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

    /// The next row on the way.
    fn next_row(&self, tx: &Tx<'_, P>, state: &mut State<P>, way: &mut Way) -> Result<Option<Met>, Abort> {
        let (table, index) = (self.table.core(), self.core());
        if way.is_over() {
            return Ok(None);
        }
        if !table.indexes.is_at(index, Stage::Readable) {
            return Err(Abort::NoIndex);
        }
        state.admit(tx.engine, table)?;
        // Relaxed: it was written before the index became readable (E18).
        state.reach(tx.engine, table, index.since.load(Ordering::Relaxed))?;
        while let Some(entry) = way.next(tx, state, &index.entries)? {
            let Some(primary) = primary_key(tx, state, table, index, entry, way.mark())? else { continue };
            return match state.find(tx.engine, table, primary.as_slice())? {
                Found::Record(record) => Ok(Some(Met { entry, record })),
                // Entry and row come and go together, so the transaction has seen two different times.
                Found::Nothing { node, version } => {
                    let missing = Missing { table: table.number, key: Some(primary.as_slice()), node, version };
                    state.absent(tx.engine, missing)?;
                    Err(state.torn(tx.engine, index.entries.layout.at(entry, Unit::ROW)))
                }
            };
        }
        Ok(None)
    }
}

/// A row that is met through an index.
struct Met {
    entry: RecordAt,
    record: RecordAt,
}

/// The primary key that an entry stands for, if it was there at the mark.
fn primary_key<P: Protocol>(
    tx: &Tx<'_, P>,
    state: &mut State<P>,
    table: &TableCore,
    index: &IndexCore,
    entry: RecordAt,
    mark: Mark,
) -> Result<Option<KeyWords>, Abort> {
    let mut primary = KeyWords::zeros(table.layout.key_words());
    let at = index.entries.layout.at(entry, Unit::ROW);
    let words = primary.as_mut_slice();
    let mut copy = |from: Words<'_>| {
        if index.unique {
            from.copy(0, words.len(), |word, value| words[word] = value);
        }
    };
    if mutant(Mutant::EntryUnvalidated) && P::peek(&state.attempt, at) {
        copy(Words::Shared(at.payload()));
    } else if !state.read_at_mark(tx.engine, at, mark, copy)? {
        return Ok(None);
    }
    if !index.unique {
        let words = primary.as_mut_slice().iter_mut().enumerate();
        words.for_each(|(word, value)| *value = entry.key_word(index.key_words + word));
    }
    Ok(Some(primary))
}

impl<R: Record, K: Key, P: Protocol> Index<R, K, Ordered, P> {
    /// The rows whose keys in this index lie in a range, in their order, and with equal keys in the order of their primary
    /// keys. As with [`Table::scan`], they are those there were when the call was made.
    pub fn scan<'t, Pr: Projection<R>>(
        &'t self,
        tx: &'t Tx<'_, P>,
        range: impl KeyRange<K>,
        projection: Pr,
    ) -> IndexScan<'t, R, K, Ordered, P, Pr> {
        self.scan_words(tx, range.word_range(), Direction::Forward, projection)
    }

    /// As [`Index::scan`], from the last to the first.
    pub fn scan_rev<'t, Pr: Projection<R>>(
        &'t self,
        tx: &'t Tx<'_, P>,
        range: impl KeyRange<K>,
        projection: Pr,
    ) -> IndexScan<'t, R, K, Ordered, P, Pr> {
        self.scan_words(tx, range.word_range(), Direction::Reverse, projection)
    }
}

/// Rows found through a secondary index, with some of their columns: see [`Scan`](crate::Scan), which goes for this too.
pub struct IndexScan<'t, R: Record, K, I, P: Protocol, Pr> {
    index: &'t Index<R, K, I, P>,
    tx: &'t Tx<'t, P>,
    projection: Pr,
    way: Way,
    /// The entry of the row that it has given last.
    last: Option<RecordAt>,
}

impl<R: Record, K: Key, I: IndexKind, P: Protocol, Pr> IndexScan<'_, R, K, I, P, Pr> {
    /// The key of the entry of the row that it has given last.
    pub(crate) fn last_entry(&self) -> Option<KeyWords> {
        self.last.map(|entry| entry.key_words(self.index.core().entries.layout.key_words()))
    }
}

impl<R: Record, K: Key, I: IndexKind, P: Protocol, Pr: Projection<R>> Iterator for IndexScan<'_, R, K, I, P, Pr> {
    type Item = Result<(R::Key, Pr::Value), Abort>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.way.is_over() {
            return None;
        }
        let (tx, table) = (self.tx, &self.index.table);
        let state = &mut *tx.state.borrow_mut();
        let row = self.index.next_row(tx, state, &mut self.way).and_then(|met| {
            let Some(Met { entry, record }) = met else { return Ok(None) };
            self.last = Some(entry);
            let key = table.core().layout.key_of(record);
            let units = table.core().layout.units_of(self.projection.groups());
            match table.read_at_mark(tx, state, (&key, record), self.way.mark(), units, &self.projection)? {
                Some(columns) => Ok(Some((key, columns))),
                // As in `next_row`.
                None => Err(state.torn(tx.engine, table.core().layout.first_of(record))),
            }
        });
        if !matches!(row, Ok(Some(_))) {
            self.way.end();
        }
        row.transpose()
    }
}

impl<R: Record, K: Key, I: IndexKind, P: Protocol, Pr: Projection<R>> std::iter::FusedIterator
    for IndexScan<'_, R, K, I, P, Pr>
{
}

impl<R: Record, K, I, P: Protocol, Pr> std::fmt::Debug for IndexScan<'_, R, K, I, P, Pr> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IndexScan").field("index", &self.index).field("way", &self.way).finish_non_exhaustive()
    }
}

/// What an index that is made while the database is in use shall be.
#[derive(Debug, Clone, Copy)]
pub struct IndexOptions<I> {
    unique: bool,
    kind: PhantomData<fn() -> I>,
}

impl IndexOptions<Ordered> {
    /// An ordered index.
    pub fn ordered() -> IndexOptions<Ordered> {
        IndexOptions { unique: false, kind: PhantomData }
    }
}

impl IndexOptions<Hashed> {
    /// A hash index. It finds rows by their whole key only; meant for keys that few rows have in common.
    pub fn hashed() -> IndexOptions<Hashed> {
        IndexOptions { unique: false, kind: PhantomData }
    }
}

impl<I> IndexOptions<I> {
    /// Lets no two rows have the same key.
    #[must_use]
    pub fn unique(self) -> IndexOptions<I> {
        IndexOptions { unique: true, ..self }
    }
}

/// Rows entered into a new index in one transaction: long enough to be worth it, short enough not to be in anybody's way.
const ROWS_AT_ONCE: usize = 64;

/// An index that is being built. If that ends early, by an error or by a panic of a row type's code, nobody keeps it any more; but
/// as long as somebody may be at work whom it has refused it is kept, since who takes away the reason has to disturb him.
struct Unfinished<'a> {
    indexes: &'a Indexes,
    index: &'a IndexCore,
    epochs: &'a Epochs,
    finished: bool,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        let may_have_refused = self.indexes.is_at(self.index, Stage::Enforced);
        self.indexes.set(self.index, Stage::Enforced, false);
        if !may_have_refused || mutant(Mutant::DroppedAtOnce) || self.epochs.wait_for_others().is_ok() {
            self.indexes.set(self.index, Stage::Kept, false);
        }
    }
}

impl<R: Record, P: Protocol> Table<R, P> {
    /// Adds a secondary index over the columns of a projection, while transactions run: `customers.create_index("by_city",
    /// Customer::CITY, IndexOptions::ordered())`. Returns when the index can be read.
    ///
    /// From early on all transactions keep the index; one that changes an indexed column by [`Table::update`] is refused with
    /// [`Abort::Indexed`] from then on. Rows that are there are entered a few at a time, by transactions of this thread; their keys
    /// are listed before that, which takes memory beside the limit.
    ///
    /// # Errors
    /// [`Error::IndexExists`] if the table has an index of this name, [`Error::EmptyTableName`], [`Error::TooManyIndexes`],
    /// [`Error::TooManyTables`], [`Error::NotUnique`] if two rows have the same key in a unique index, [`Error::Busy`] if transactions of
    /// this process, of other databases too, that began before do not end within ten seconds, for which it waits up to three times (this
    /// thread may be in one), [`Error::MemoryLimit`], [`Error::RowType`] if the keys would be too long, [`Error::SecondSession`]. In every
    /// case there is no index afterwards; but for a unique one that may have refused a transaction which does not end within ten seconds:
    /// that is kept until [`Table::drop_index`], and refuses nobody.
    ///
    /// # Panics
    /// With the panic of what makes the keys; there is no index then.
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
        let mut session = Session::new(self.inner())?;
        let _one_at_a_time = lock(&self.inner().index_changes);
        let index = self.inner().add_index(self.core(), plan)?;
        let (indexes, epochs) = (&self.core().indexes, &*self.inner().engine.epochs);
        let mut unfinished = Unfinished { indexes, index, epochs, finished: false };
        // Keys are made by the user's code.
        let built = catch_unwind(AssertUnwindSafe(|| self.build(&mut session, index)));
        let is_built = matches!(built, Ok(Ok(())));
        let may_have_refused = indexes.is_at(index, Stage::Enforced) && !mutant(Mutant::DroppedAtOnce);
        // If nobody can part from it, it is kept.
        let stays = |session: &mut Session<P>| {
            indexes.set(index, Stage::Enforced, false);
            epochs.wait_for_others().and_then(|()| self.part_from(session, index)).is_err()
        };
        unfinished.finished = is_built || may_have_refused && stays(&mut session);
        drop(unfinished);
        if !is_built && !indexes.is_at(index, Stage::Kept) {
            self.forget_entries(&mut session, index);
        }
        match built {
            Ok(built) => built.map(|()| Index::new(self.clone(), index.number)),
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Drops a secondary index that was made by [`Table::create_index`]: its handles are refused from now on. Its memory is
    /// kept for an index of the same name.
    ///
    /// # Errors
    /// [`Error::NoIndex`] if the table has no such index or the row type names it, [`Error::Busy`] if transactions that may have read
    /// it, or been refused by it, do not end within ten seconds; the index cannot be read then, but is still kept, and a unique one may
    /// still refuse: drop it again. [`Error::SecondSession`].
    pub fn drop_index(&self, name: &str) -> Result<(), Error> {
        let mut session = Session::new(self.inner())?;
        let _one_at_a_time = lock(&self.inner().index_changes);
        let indexes = &self.core().indexes;
        let made = |index: &&IndexCore| index.number >= R::INDEXES.len();
        let Some(index) = indexes.kept().find(|index| *index.name == *name).filter(made) else {
            return Err(Error::NoIndex { table: self.name().into(), index: name.into() });
        };
        indexes.set(index, Stage::Readable, false);
        // Whoever has read it must still be disturbed by what would have changed what it read.
        self.inner().engine.epochs.wait_for_others()?;
        indexes.set(index, Stage::Enforced, false);
        if !mutant(Mutant::DroppedAtOnce) {
            // And whoever has been refused by it, by whoever takes away the reason.
            self.inner().engine.epochs.wait_for_others()?;
        }
        self.part_from(&mut session, index)?;
        indexes.set(index, Stage::Kept, false);
        self.forget_entries(&mut session, index);
        Ok(())
    }

    /// Fills a new index and takes it from stage to stage.
    fn build(&self, session: &mut Session<P>, index: &IndexCore) -> Result<(), Error> {
        let core = self.core();
        core.indexes.set(index, Stage::Kept, true);
        self.inner().engine.epochs.wait_for_others()?;
        // Whoever knew of the index and whoever did not may have changed the same rows, so an entry may be wrong.
        self.each_batch(session, index, &index.entries, |tx, state, entry| {
            let at = index.entries.layout.at(entry, Unit::ROW);
            let mark = state.mark();
            let Some(primary) = primary_key(tx, state, core, index, entry, mark)? else { return Ok(()) };
            let found = state.find(tx.engine, core, primary.as_slice())?;
            let is_right = match found {
                Found::Record(record) => state.has_entry(tx.engine, core, index, record, entry)?,
                Found::Nothing { .. } => false,
            };
            if is_right { Ok(()) } else { state.delete_unit(tx.engine, at) }
        })?;
        if index.unique {
            // What is there from now on is right, so who meets it is right to refuse.
            index.right_since.store(self.time_of(session, index), Ordering::Relaxed);
            core.indexes.set(index, Stage::Enforced, true);
            self.inner().engine.epochs.wait_for_others()?;
        }
        self.each_batch(session, index, core, |tx, state, record| state.enter_record(tx.engine, core, index, record))?;
        index.since.store(self.time_of(session, index), Ordering::Relaxed);
        core.indexes.set(index, Stage::Readable, true);
        Ok(())
    }

    /// The protocol's time at which what has been done to an index has happened. Where time is in the data: who changed a row whose
    /// entry was missing has observed that, in a node or in a unit of the index; all that comes later finds the entry. Who
    /// deleted a row and did not know of the index has left its time in the table.
    fn time_of(&self, session: &mut Session<P>, index: &IndexCore) -> u64 {
        let seen = session.seen_until(&index.entries).max(session.seen_until(self.core()));
        seen.max(P::time(&self.inner().engine.clock))
    }

    /// Where time is in the data, sees to it that who will not keep an index any more comes after all that it has told anybody: all
    /// rows, and all keys without one, are seen up to then.
    fn part_from(&self, session: &mut Session<P>, index: &IndexCore) -> Result<(), Error> {
        let (core, time) = (self.core(), session.seen_until(&index.entries));
        if time == 0 || mutant(Mutant::PartedAtOnce) {
            return Ok(());
        }
        // Nodes first: what is linked afterwards inherits it. Those that were divided meanwhile are met again.
        while session.see_nodes_until(core, time) {}
        self.each_batch(session, index, core, |tx, state, record| {
            state.reach(tx.engine, core, time)?;
            state.observe_indexed(tx.engine, core, record)
        })
    }

    /// Removes all entries of an index that nobody keeps any more, as far as that is possible.
    fn forget_entries(&self, session: &mut Session<P>, index: &IndexCore) {
        if self.inner().engine.epochs.wait_for_others().is_ok() {
            // What is left would be looked over, and removed, if an index of this name were made again.
            let _ = self.each_batch(session, index, &index.entries, |tx, state, entry| {
                state.delete_unit(tx.engine, index.entries.layout.at(entry, Unit::ROW))
            });
        }
    }

    /// Calls `each` with every record of the table, or of the index, that was linked in the beginning, a few in each transaction.
    fn each_batch(
        &self,
        session: &mut Session<P>,
        index: &IndexCore,
        table: &TableCore,
        each: impl Fn(&Tx<'_, P>, &mut State<P>, RecordAt) -> Result<(), Abort>,
    ) -> Result<(), Error> {
        let key_words = table.layout.key_words();
        let keys = session.linked_keys(table);
        for keys in keys.chunks(ROWS_AT_ONCE * key_words) {
            let batch = session.run(|tx| {
                keys.chunks(key_words).try_for_each(|key| {
                    let state = &mut *tx.state.borrow_mut();
                    match state.find(tx.engine, table, key)? {
                        Found::Record(record) => each(tx, state, record),
                        Found::Nothing { .. } => Ok(()),
                    }
                })
            });
            batch.map_err(|abort| match abort {
                Abort::NotUnique => Error::NotUnique { table: self.name().into(), index: (*index.name).into() },
                Abort::MemoryLimit => self.inner().memory_limit_error(),
                other => Error::Refused(other),
            })?;
        }
        Ok(())
    }
}
