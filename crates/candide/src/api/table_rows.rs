//! Scans of whole rows, and of indexes without handles.

#![forbid(unsafe_code)]

use super::index_scan::IndexScan;
use super::scan::Scan;
use super::table::Table;
use super::values_of::ValuesOf;
use crate::engine::Protocol;
use crate::index::Direction;
use crate::schema::column::Whole;
use crate::schema::{InOrder, IndexKind, IndexOf, Key, KeyRange, Projection, Record};
use crate::txn::Tx;

impl<R: Record, P: Protocol> Table<R, P> {
    /// Returns the rows of a range of keys, in the order of their keys: [`Table::scan`] of whole
    /// rows, without the keys beside them, since a row has its key.
    ///
    /// ```
    /// # use candide::{Database, Record};
    /// # #[derive(Record, Clone, Copy, Debug, PartialEq)]
    /// # #[record(ordered)]
    /// # struct Reading { #[key] time: u64, celsius: i16 }
    /// # let db = Database::new();
    /// # let readings = db.table::<Reading>("readings")?;
    /// db.run(|tx| {
    ///     (1..=9).try_for_each(|time| readings.insert(tx, Reading { time, celsius: 20 }))?;
    ///     let rows: Vec<Reading> = readings.rows(tx, 3..5).collect_rows()?;
    ///     assert_eq!(rows, [3, 4].map(|time| Reading { time, celsius: 20 }));
    ///     let last = readings.rows(tx, ..).next_back().transpose()?;
    ///     assert_eq!(last, Some(Reading { time: 9, celsius: 20 }));
    ///     assert_eq!(readings.scan(tx, 8.., Reading::CELSIUS).collect_rows()?, [20, 20]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rows<'t>(
        &'t self,
        tx: &'t Tx<'_, P>,
        range: impl KeyRange<R::Key>,
    ) -> ValuesOf<Scan<'t, R, P, Whole>>
    where
        R::Index: InOrder,
    {
        self.scan(tx, range, Whole).values()
    }

    /// Returns the rows whose keys in an index that the row type declares lie in `range`, in the
    /// order of these keys: [`Index::scan`](crate::Index::scan) without a handle of the index.
    ///
    /// ```
    /// use candide::{Database, Record};
    ///
    /// #[derive(Record, Clone, Copy)]
    /// struct Product {
    ///     #[key]
    ///     id: u64,
    ///     #[index]
    ///     category: u32,
    ///     cents: i64,
    /// }
    ///
    /// let db = Database::new();
    /// let products = db.table::<Product>("products")?;
    /// db.run(|tx| {
    ///     let rows = (1..=6).map(|id| Product { id, category: id as u32 / 2, cents: 100 });
    ///     products.insert_many(tx, rows)?;
    ///     let mut scan = products.scan_by(tx, Product::BY_CATEGORY, 1..=2, Product::CENTS);
    ///     assert_eq!(scan.next().transpose()?, Some((2, 100)));
    ///     assert_eq!(scan.count()?, 3);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn scan_by<'t, K: Key, I: IndexKind + InOrder, Pr: Projection<R>>(
        &'t self,
        tx: &'t Tx<'_, P>,
        index: IndexOf<R, K, I>,
        range: impl KeyRange<K>,
        projection: Pr,
    ) -> IndexScan<'t, R, K, I, P, Pr> {
        let index = self.index(index);
        let entries = index.entry_range(&range.word_range());
        IndexScan::of_table(self, index.number(), tx, entries, Direction::Forward, projection)
    }
}
