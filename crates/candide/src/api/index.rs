//! Secondary indexes, which find rows by other columns than the primary key.

#![forbid(unsafe_code)]

use super::index_changes::{Asked, create, drop_made};
use super::index_turn::IndexTurn;
use super::table::Table;
#[cfg(test)]
use crate::engine::TableCore;
use crate::engine::{IndexCore, IndexKey, IndexPlan, KeyOrigin, Protocol};
use crate::error::Error;
use crate::protocols::DefaultProtocol;
use crate::schema::RowMeta;
use crate::schema::{
    Hashed, IndexColumns, IndexKind, IndexOf, Key, Ordered, Place, Record, RowReader, WordRange,
};
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
/// operation fails with [`Abort::NoIndex`](crate::Abort::NoIndex); if an index of the same name,
/// columns and kind is created again, the handle refers to the new index. Further errors are [those
/// of every operation](Table#errors-of-every-operation) of a table.
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
    pub(super) fn table(&self) -> &Table<R, P> {
        &self.table
    }

    pub(super) fn number(&self) -> usize {
        self.number
    }

    pub(super) fn core(&self) -> &IndexCore {
        index_of(&self.table, self.number)
    }

    #[cfg(test)]
    pub(crate) fn entries_for_tests(&self) -> &TableCore {
        &self.core().entries
    }
}

/// Returns the index of a table with this number.
#[inline]
pub(super) fn index_of<R: Record, P: Protocol>(table: &Table<R, P>, number: usize) -> &IndexCore {
    table.core().indexes.get(number).expect("a handle is made for an index that was added")
}

impl<R: Record, P: Protocol> Table<R, P> {
    /// Returns an index that the row type declares: `accounts.index(Account::BY_OWNER)`.
    pub fn index<K: Key, I: IndexKind>(&self, index: IndexOf<R, K, I>) -> Index<R, K, I, P> {
        let number = self.core().indexes.declared(index.number);
        Index { table: self.clone(), number, types: PhantomData }
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

    /// Returns the range of entry keys for a range of index keys. In a unique index, an entry key
    /// has the words of the index key. In another index, it begins with these words, and the
    /// primary key follows.
    pub(crate) fn entry_range(&self, range: &WordRange) -> WordRange {
        range.expect_words(K::WORDS);
        range.of_longer_keys(self.core().entries.layout.key_words())
    }
}

/// The properties of an index that is made while the database is in use.
#[derive(Debug, Clone, Copy)]
pub struct IndexOptions<I> {
    unique: bool,
    if_missing: bool,
    kind: PhantomData<fn() -> I>,
}

impl IndexOptions<Ordered> {
    /// Returns the options of an ordered index.
    pub fn ordered() -> IndexOptions<Ordered> {
        IndexOptions { unique: false, if_missing: false, kind: PhantomData }
    }
}

impl IndexOptions<Hashed> {
    /// Returns the options of a hash index. A hash index finds rows by their whole key only, and
    /// suits keys that few rows share.
    pub fn hashed() -> IndexOptions<Hashed> {
        IndexOptions { unique: false, if_missing: false, kind: PhantomData }
    }
}

impl<I> IndexOptions<I> {
    /// Makes the index unique: no two rows may have the same key in it.
    #[must_use]
    pub fn unique(self) -> IndexOptions<I> {
        IndexOptions { unique: true, ..self }
    }

    /// Has [`Table::create_index`] return the index of the name, if the table has it already with
    /// the same columns and options. An index that differs is refused as before, with
    /// [`Error::IndexExists`].
    ///
    /// ```
    /// # use candide::{Database, Error, IndexOptions, Record};
    /// # #[derive(Record, Clone, Copy)]
    /// # struct City { #[key] id: u64, country: u32, name: u32 }
    /// # let db = Database::new();
    /// # let cities = db.table::<City>("cities")?;
    /// let ordered = IndexOptions::ordered();
    /// cities.create_index("by_country", City::COUNTRY, ordered)?;
    /// let again = cities.create_index("by_country", City::COUNTRY, ordered.if_missing())?;
    /// assert_eq!(again.name(), "by_country");
    /// let other = cities.create_index("by_country", City::NAME, ordered.if_missing());
    /// assert!(matches!(other, Err(Error::IndexExists { .. })));
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub fn if_missing(self) -> IndexOptions<I> {
        IndexOptions { if_missing: true, ..self }
    }
}

impl<R: Record, P: Protocol> Table<R, P> {
    /// Adds a secondary index on `columns`, while transactions run:
    /// `customers.create_index("by_city", Customer::CITY, IndexOptions::ordered())`. Returns when
    /// the index can be read.
    ///
    /// Soon after the call begins, all transactions maintain the index. From then on,
    /// [`Table::update`] of an indexed column is refused with
    /// [`Abort::Indexed`](crate::Abort::Indexed), and a value that is longer than the index keeps
    /// of its column, with [`Abort::KeyTooLong`](crate::Abort::KeyTooLong). Transactions of this
    /// thread enter the existing rows into the index, a few rows each. Before that, the call lists
    /// the keys of these rows; the memory limit does not count this list.
    ///
    /// In a database that is [open](crate::Database::open), the index is made again by each process
    /// that wants it. The files have its name, by which `candide load` warns that it has not
    /// checked a unique one.
    ///
    /// # Errors
    /// [`Error::IndexExists`] if the table has an index of this name (see
    /// [`IndexOptions::if_missing`]), [`Error::EmptyTableName`],
    /// [`Error::TooManyIndexes`], [`Error::TooManyTables`], [`Error::NotUnique`] if two rows have
    /// the same key in a unique index, [`Error::KeyTooLong`] if a row has a value that is longer
    /// than the index keeps of its column ([`Column::bytes`](crate::Column::bytes)),
    /// [`Error::MemoryLimit`], [`Error::RowType`] if the keys would be too long,
    /// [`Error::SecondSession`]; [`Error::Transaction`] with
    /// [`Abort::Nested`](crate::Abort::Nested) within a transaction of this thread; [`Error::Files`]
    /// or [`Error::Transaction`] if the files cannot be written. [`Error::Busy`] if running
    /// transactions do not end within ten seconds. The call waits for them up to three times: for
    /// all transactions of this process, also those of other databases.
    ///
    /// After an error there is no index, with one exception. A unique index may have refused a
    /// transaction that does not end within ten seconds. Transactions then maintain the index until
    /// [`Table::drop_index`], but it refuses no transaction, except for a value that is too long.
    ///
    /// # Panics
    /// With the panic of the code that makes the keys; there is no index then.
    pub fn create_index<C: IndexColumns<R>, I: IndexKind>(
        &self,
        name: &str,
        columns: C,
        options: IndexOptions<I>,
    ) -> Result<Index<R, C::Key, I, P>, Error> {
        let mut places: Vec<Place> = Vec::new();
        columns.places(&mut |place| places.push(place));
        let mut key_parts = Vec::new();
        columns.key_parts(&mut |function| key_parts.push(function));
        let mut limits = Vec::new();
        columns.limits(&mut |limit| limits.push(limit));
        let packing = self.core().layout.packing::<R::Key>();
        let key_of = move |primary: &[u64], row: &RowReader<'_>, key: &mut Vec<u64>| {
            let primary = match packing {
                None => R::Key::from_words(primary),
                Some(packing) => R::Key::from_words(packing.unpack(primary).as_slice()),
            };
            key.extend_from_slice(columns.key(&primary, row).words().as_ref());
        };
        let plan = IndexPlan {
            name: name.into(),
            unique: options.unique,
            ordered: I::ORDERED,
            columns: places.into(),
            key_words: <C::Key as Key>::WORDS,
            show_key: <C::Key as Key>::show,
            key: IndexKey::new(Box::new(key_of), &limits, (R::GROUPS, R::LONG)),
            origin: KeyOrigin { projection: TypeId::of::<C>(), key_parts: key_parts.into() },
        };
        let asked = if options.if_missing { Asked::IfMissing } else { Asked::ByProgram };
        let _turn = IndexTurn::wait(self.inner())?;
        let number = create(self.inner(), self.core(), plan, asked)?;
        Ok(Index::new(self.clone(), number))
    }

    /// Drops a secondary index that [`Table::create_index`] has created: operations on its handles
    /// fail from now on. The index's memory is kept for a new index of the same name, columns and
    /// kind. An index that only the files name, since the program has not made it, is forgotten.
    ///
    /// # Errors
    /// [`Error::NoIndex`] if the table has no such index or the row type declares it.
    /// [`Error::Files`] or [`Error::Transaction`] if the files cannot be written: then there is no
    /// index any more, and the files still name it.
    /// [`Error::Busy`] if a transaction that may have read the index, or that the index may have
    /// refused, does not end within ten seconds. The index cannot be read any more then, but
    /// transactions still maintain it, and a unique index may still refuse rows. Call this function
    /// again in this case. [`Error::SecondSession`]; [`Error::Transaction`] with
    /// [`Abort::Nested`](crate::Abort::Nested) within a transaction of this thread.
    pub fn drop_index(&self, name: &str) -> Result<(), Error> {
        let indexes = &self.core().indexes;
        let is_declared = |slot| indexes.is_declared(slot, R::INDEXES.len());
        let _turn = IndexTurn::wait(self.inner())?;
        drop_made(self.inner(), self.core(), name, &is_declared)
    }
}
