//! Scans without keys: rows, or some of their columns, alone.

#![forbid(unsafe_code)]

use crate::error::Abort;
use std::iter::FusedIterator;

/// The rows of a scan, or the columns that it reads, without the keys.
///
/// [`Table::rows`](crate::Table::rows), [`Scan::values`](crate::Scan::values) and
/// [`IndexScan::values`](crate::IndexScan::values) make it. It returns `Ok(row)`, or the scan's
/// error, after which it returns nothing more.
#[derive(Debug)]
pub struct ValuesOf<S>(S);

impl<S> ValuesOf<S> {
    pub(super) fn new(scan: S) -> ValuesOf<S> {
        ValuesOf(scan)
    }
}

impl<S, K, V> ValuesOf<S>
where
    S: Iterator<Item = Result<(K, V), Abort>>,
{
    /// Returns all rows.
    ///
    /// # Errors
    /// [Those of every operation](crate::Table#errors-of-every-operation).
    pub fn collect_rows(self) -> Result<Vec<V>, Abort> {
        self.collect()
    }
}

impl<S, K, V> Iterator for ValuesOf<S>
where
    S: Iterator<Item = Result<(K, V), Abort>>,
{
    type Item = Result<V, Abort>;

    fn next(&mut self) -> Option<Result<V, Abort>> {
        self.0.next().map(|row| row.map(|(_, columns)| columns))
    }
}

impl<S, K, V> DoubleEndedIterator for ValuesOf<S>
where
    S: DoubleEndedIterator<Item = Result<(K, V), Abort>>,
{
    fn next_back(&mut self) -> Option<Result<V, Abort>> {
        self.0.next_back().map(|row| row.map(|(_, columns)| columns))
    }
}

impl<S, K, V> FusedIterator for ValuesOf<S> where S: FusedIterator<Item = Result<(K, V), Abort>> {}
