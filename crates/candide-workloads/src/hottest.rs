//! The row that a workload's transactions want most: reading it, and how many versions of it are
//! kept.

use std::hint::black_box;

use candide::{Abort, Protocol, Record, Session, Table, Whole};

/// The most rows that all count as hot if they are drawn uniformly.
const FEW: u64 = 100;

/// A look at the hottest row, which a driver may take between two transactions of a
/// [`Worker`](crate::Worker).
pub trait Probe {
    /// Reads the whole row in a transaction of its own, which only reads. Attempts that conflicts
    /// end are among the worker's [`stats`](crate::Worker::stats).
    ///
    /// # Errors
    /// None that are expected.
    fn read(&mut self) -> Result<(), Abort>;

    /// Returns how many versions of it there are, as [`Table::versions_of`] counts them.
    ///
    /// # Errors
    /// None that are expected.
    fn versions(&mut self) -> Result<usize, Abort>;
}

/// The probe of a row, for a worker to give: its session, the table, and the key.
pub(crate) fn probe<'a, R: Record, P: Protocol>(
    session: &'a mut Session<P>,
    table: &'a Table<R, P>,
    key: R::Key,
) -> Option<Box<dyn Probe + 'a>> {
    Some(Box::new(HotRow { session, table, key }))
}

struct HotRow<'a, R: Record, P: Protocol> {
    session: &'a mut Session<P>,
    table: &'a Table<R, P>,
    key: R::Key,
}

impl<R: Record, P: Protocol> Probe for HotRow<'_, R, P> {
    fn read(&mut self) -> Result<(), Abort> {
        black_box(self.session.run_read_only(|tx| self.table.read(tx, &self.key, Whole))?);
        Ok(())
    }

    fn versions(&mut self) -> Result<usize, Abort> {
        self.table.versions_of(self.session, &self.key)?.ok_or(Abort::NotFound)
    }
}

/// The first of so many rows, if it stands out: it is drawn more often than others, or there are
/// few of them.
pub(crate) fn if_hot(first: &'static str, rows: u64, theta: f64) -> Option<&'static str> {
    (theta > 0.0 || rows <= FEW).then_some(first)
}
