//! Lookups of rows by the keys of secondary indexes.

#![forbid(unsafe_code)]

use super::index::Index;
use super::index_scan::{IndexScan, next_record};
use super::row::Row;
use super::way::Way;
use crate::engine::Protocol;
use crate::error::Abort;
use crate::index::Direction;
use crate::schema::{AsKey, IndexKind, Key, Projection, Record, WordRange};
use crate::txn::Tx;
use std::borrow::Borrow;

impl<R: Record, K: Key, I: IndexKind, P: Protocol> Index<R, K, I, P> {
    /// Returns the rows with this key, with some of their columns. A unique index has at most one
    /// such row. As with [`Table::scan`](crate::Table::scan), these are the rows that exist when
    /// the call is made.
    ///
    /// An ordered index returns the rows in the order of their primary keys.
    pub fn rows<'t, Pr: Projection<R>>(
        &'t self,
        tx: &'t Tx<'_, P>,
        key: impl AsKey<K>,
        projection: Pr,
    ) -> IndexScan<'t, R, K, I, P, Pr> {
        IndexScan::new(self, tx, projection, self.way_to(tx, key))
    }

    /// Begins a scan of the entries with this key.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn way_to(&self, tx: &Tx<'_, P>, key: impl AsKey<K>) -> Way {
        let entries = &self.core().entries;
        let Some(key) = key.into_key() else { return Way::nowhere(tx, entries) };
        let range = WordRange::beginning_with(key.borrow().words().as_ref(), K::WORDS);
        Way::new(tx, entries, self.entry_range(&range), Direction::Forward)
    }

    /// Returns a handle on the row with this key. If the index is not unique, the row is the first
    /// one found with this key. `None` if there is no such row; the transaction has then observed
    /// the absence.
    ///
    /// # Errors
    /// [`Abort::NoIndex`] if the index has been dropped.
    pub fn find<'t>(
        &'t self,
        tx: &'t Tx<'_, P>,
        key: impl AsKey<K>,
    ) -> Result<Option<Row<'t, R, P>>, Abort> {
        let way = &mut self.way_to(tx, key);
        let record = next_record(tx, self.table().core(), self.core(), way)?;
        Ok(record.map(|record| {
            let key = self.table().core().layout.key_of(record);
            self.table().row_of(tx, key, record)
        }))
    }

    /// Reads columns of the row with this key. If the index is not unique, the row is the first one
    /// found with this key. `None` if there is no such row.
    ///
    /// # Errors
    /// [`Abort::NoIndex`] if the index has been dropped.
    pub fn get<Pr: Projection<R>>(
        &self,
        tx: &Tx<'_, P>,
        key: impl AsKey<K>,
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
        key: impl AsKey<K>,
        projection: Pr,
    ) -> Result<Pr::Value, Abort> {
        let key = key.into_key();
        let key: Option<&K> = key.as_ref().map(Borrow::borrow);
        let way = match key {
            Some(key) => self.way_to(tx, key),
            None => Way::nowhere(tx, &self.core().entries),
        };
        let row = IndexScan::new(self, tx, projection, way).next().transpose()?;
        row.map(|(_, columns)| columns).ok_or_else(|| self.missed(tx, key))
    }

    /// Notes that no row has a key in the index, and returns the outcome.
    #[cold]
    #[inline(never)]
    fn missed(&self, tx: &Tx<'_, P>, key: Option<&K>) -> Abort {
        let (mut state, entries) = (tx.state.borrow_mut(), &self.core().entries);
        match key {
            Some(key) => state.outcome_of(Abort::NotFound, entries, key.words().as_ref()),
            None => state.outcome_in(Abort::NotFound, entries),
        }
    }
}
