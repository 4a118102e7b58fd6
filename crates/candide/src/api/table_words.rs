//! Rows as words: reads of tables for callers without the row type.

#![forbid(unsafe_code)]

use super::database::Database;
use super::quiescent::{copy_unit, for_each_row};
use super::row_values::{for_each_long_row, insert_row};
use super::session::Session;
use super::table::Table;
use super::way::Way;
use crate::engine::{Missing, Protocol, TableCore};
use crate::error::{Abort, Error};
use crate::index::{Direction, Found, Place};
use crate::schema::{Record, Unit, Words, image_words};
use crate::shared::Inner;
use crate::txn::Tx;
use candide_log::LongColumns;
use candide_log::format::long_row::LongRow;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// A function that a scan calls with the words of a key and the other words of the row. The
/// function returns whether the scan continues.
type Visit<'a> = dyn FnMut(&[u64], &[u64]) -> ControlFlow<()> + 'a;

/// The rows of a table, as words. Its code is compiled once for each protocol, and not for each row
/// type. So it suits checks, which take less time to run than to compile.
///
/// A row consists of the words of its key, as [`Key::words`](crate::Key::words) returns them, and
/// of the words that [`Record::store`] writes. Reads take the same steps as those of the
/// [`Table`], and have the same errors.
pub struct TableWords<'a, P: Protocol> {
    inner: &'a Arc<Inner<P>>,
    core: &'a TableCore,
    /// The columns of any length; `None` if they are not known.
    long: Option<&'a LongColumns>,
}

impl<P: Protocol> Clone for TableWords<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Protocol> Copy for TableWords<'_, P> {}

impl<P: Protocol> std::fmt::Debug for TableWords<'_, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableWords").field("table", &self.core.name).finish_non_exhaustive()
    }
}

impl<R: Record, P: Protocol> Table<R, P> {
    /// Returns the table's rows as words.
    pub fn as_words(&self) -> TableWords<'_, P> {
        TableWords { inner: self.inner(), core: self.core(), long: None }
    }
}

impl<P: Protocol> Database<P> {
    /// Calls `work` with the rows of the table called `name` as words; returns `None` if there is
    /// no such table. The program need not have named the row type of a table that was recovered.
    pub fn with_words<T>(
        &self,
        name: &str,
        work: impl FnOnce(TableWords<'_, P>) -> T,
    ) -> Option<T> {
        let core = self.inner.catalog.find(&self.inner.engine.common, name)?;
        let number = core.log_number.get().map(u32::from);
        let mut tables = self.inner.store().into_iter().flat_map(|store| store.tables());
        let long = tables.find(|table| Some(table.number) == number);
        let long = long.map(|table| LongColumns::of(&table));
        Some(work(TableWords { inner: &self.inner, core: &core, long: long.as_ref() }))
    }
}

impl<P: Protocol> TableWords<'_, P> {
    /// Panics if words of the rows name values outside of them.
    fn assert_fixed(&self) {
        assert!(
            self.core.layout.named().is_empty(),
            "the words of a row have not all of its bytes"
        );
    }

    /// Inserts a row unless a row with its key exists; returns whether the row was inserted. If the
    /// program has not named the table's row type yet, indexes that the type declares are made from
    /// all rows when it does: the caller has checked the unique ones.
    ///
    /// # Errors
    /// Those of [every operation](Table#errors-of-every-operation), and
    /// [`Abort::MemoryLimit`].
    ///
    /// # Panics
    /// If the key or the row has another number of words than those of the table.
    pub fn insert(&self, tx: &Tx<'_, P>, key: &[u64], row: &[u64]) -> Result<bool, Abort> {
        self.assert_fixed();
        self.insert_row(tx, LongRow::fixed(key, row))
    }

    /// As [`TableWords::insert`], for a row that may have values of any length.
    ///
    /// # Errors
    /// As [`TableWords::insert`].
    ///
    /// # Panics
    /// As [`TableWords::insert`]. If a value is not one of a column of the table, or the files do
    /// not have the table.
    pub fn insert_row(&self, tx: &Tx<'_, P>, row: LongRow<'_>) -> Result<bool, Abort> {
        let core = self.core;
        assert!(
            row.key.len() == core.layout.unpacked_key_words()
                && row.words.len() == image_words(core.groups),
            "the words are those of a row of the table"
        );
        let none = LongColumns::default();
        let long = self.long.unwrap_or(&none);
        assert!(long.places().eq(core.layout.named_places()), "the files describe the values");
        long.check(0, row.words, row.values()).expect("the values are those of the row");
        insert_row(tx, (core, long), row, &mut Place::default())
    }

    /// Reads the row with `key` into `row`; returns whether there is such a row. If there is none,
    /// `row` contains anything.
    ///
    /// # Errors
    /// Those of [every operation](Table#errors-of-every-operation).
    #[inline(never)]
    pub fn get(&self, tx: &Tx<'_, P>, key: &[u64], row: &mut Vec<u64>) -> Result<bool, Abort> {
        self.assert_fixed();
        let (core, state) = (self.core, &mut *tx.state.borrow_mut());
        self.core.layout.in_kept_words(key, |key| {
            let record = match state.find(tx.engine, core, key)? {
                Found::Record(record) => record,
                Found::Nothing { node, version } => {
                    let missing = Missing { table: core.number, key: Some(key), node, version };
                    state.absent(tx.engine, missing)?;
                    return Ok(false);
                }
            };
            row.clear();
            row.resize(image_words(core.groups), 0);
            let mut units = core.layout.units();
            let copy = &mut |unit: Unit, from: Words<'_>| copy_unit(core, unit, from, row);
            match state.read_units_at_once(core, record, &mut units, &mut *copy) {
                Some(is_there) => Ok(is_there),
                None => state.read_units(tx.engine, core, (record, units), copy),
            }
        })
    }

    /// Passes the rows whose keys lie between `from` and `to` to `visit`, in the order of their
    /// keys, until `visit` returns [`ControlFlow::Break`]. The arguments of `visit` are the words
    /// of a key and the other words.
    ///
    /// # Errors
    /// Those of [every operation](Table#errors-of-every-operation).
    ///
    /// # Panics
    /// If the table is not ordered.
    #[inline(never)]
    pub fn scan(
        &self,
        tx: &Tx<'_, P>,
        (from, to): (Bound<&[u64]>, Bound<&[u64]>),
        visit: &mut Visit<'_>,
    ) -> Result<(), Abort> {
        self.assert_fixed();
        let core = self.core;
        assert!(core.index.is_ordered(), "a table without order has no ranges of keys");
        let units = core.layout.placed_units_of(u64::MAX >> (64 - core.groups.len()));
        let mut way = Way::new(tx, core, core.layout.kept_range(from, to), Direction::Forward);
        let mut row = vec![0; image_words(core.groups)];
        loop {
            let copy = &mut |unit: Unit, from: Words<'_>| copy_unit(core, unit, from, &mut row);
            let Some(record) = way.next_row::<true, P>(tx, core, &units, copy)? else {
                return Ok(());
            };
            if visit(core.layout.unpacked_key(record).as_slice(), &row).is_break() {
                return Ok(());
            }
        }
    }

    /// Calls `each` with every row, as [`Table::for_each_quiescent`] does; returns the number of
    /// rows. The arguments of `each` are the words of a key and the other words.
    ///
    /// # Errors
    /// [`Error::NotQuiescent`] if a transaction is running; [`Error::Transaction`] with
    /// [`Abort::LogFailed`] if the log of an [open](crate::Database::open) database has failed, and
    /// the rows may not be durable, and with [`Abort::Nested`] inside a step.
    pub fn for_each_quiescent(&self, each: &mut dyn FnMut(&[u64], &[u64])) -> Result<usize, Error> {
        self.assert_fixed();
        for_each_row(self.inner, self.core, each)
    }

    /// As [`TableWords::for_each_quiescent`], of rows that may have values of any length.
    ///
    /// # Errors
    /// As [`TableWords::for_each_quiescent`].
    pub fn for_each_row(&self, each: &mut dyn FnMut(LongRow<'_>)) -> Result<usize, Error> {
        for_each_long_row(self.inner, self.core, each)
    }

    /// Returns the number of versions of the row with `key`, as [`Table::versions_of`] does.
    ///
    /// # Errors
    /// As [`Table::versions_of`].
    pub fn versions_of(
        &self,
        session: &mut Session<P>,
        key: &[u64],
    ) -> Result<Option<usize>, Abort> {
        self.core.layout.in_kept_words(key, |key| session.versions_of(self.inner, self.core, key))
    }
}
