//! Probes of the row that a workload's transactions access most: they read the row, and count the
//! versions of the row that are kept.

use std::hint::black_box;

use candide::experiments::TableWords;
use candide::{Abort, Key, Protocol, Record, Session, Table};

use crate::read_back::load;

/// If rows are drawn uniformly from at most this many, all of them count as hot.
const FEW: u64 = 100;

/// A probe of the hottest row. A driver may use the probe between two transactions of a
/// [`Worker`](crate::Worker).
pub trait Probe {
    /// Reads the whole row in a separate read-only transaction. Attempts aborted by conflicts are
    /// counted in the worker's [`stats`](crate::Worker::stats).
    ///
    /// # Errors
    /// None that are expected.
    fn read(&mut self) -> Result<(), Abort>;

    /// Returns the number of versions of the row, as [`Table::versions_of`] counts them.
    ///
    /// # Errors
    /// None that are expected.
    fn versions(&mut self) -> Result<usize, Abort>;
}

/// Makes the probe of the row with `key` in `table`, which reads in the worker's `session`.
pub(crate) fn probe<'a, R: Record, P: Protocol>(
    session: &'a mut Session<P>,
    table: &'a Table<R, P>,
    key: R::Key,
) -> Option<Box<dyn Probe + 'a>> {
    let make = |key: &[u64], row: &[u64]| {
        black_box(load::<R>(key, row));
    };
    Some(probe_in_words(session, table.as_words(), key.words().as_ref(), make))
}

/// A function that makes a row of its words, as a program that reads the row would.
type Make = fn(&[u64], &[u64]);

/// Does the work of [`probe`] that does not depend on the row type.
#[inline(never)]
fn probe_in_words<'a, P: Protocol>(
    session: &'a mut Session<P>,
    table: TableWords<'a, P>,
    key: &[u64],
    make: Make,
) -> Box<dyn Probe + 'a> {
    let (key, row) = (key.to_vec(), Vec::with_capacity(ROW_WORDS));
    Box::new(HotRow { session, table, key, row, make })
}

/// The number of words for which a probe makes room before it reads. The read of a larger row takes
/// memory.
const ROW_WORDS: usize = 256;

struct HotRow<'a, P: Protocol> {
    session: &'a mut Session<P>,
    table: TableWords<'a, P>,
    key: Vec<u64>,
    /// The row that was read last.
    row: Vec<u64>,
    make: Make,
}

impl<P: Protocol> Probe for HotRow<'_, P> {
    fn read(&mut self) -> Result<(), Abort> {
        let HotRow { session, table, key, row, make } = self;
        if !session.read_view(|tx| table.get(tx, key, row))? {
            return Err(Abort::NotFound);
        }
        make(key, row);
        Ok(())
    }

    fn versions(&mut self) -> Result<usize, Abort> {
        self.table.versions_of(self.session, &self.key)?.ok_or(Abort::NotFound)
    }
}

/// Returns `first`, the name of the first of `rows` rows, if that row is hot. The row is hot if it
/// is drawn more often than others, or if there are at most [`FEW`] rows. Otherwise returns `None`.
pub(crate) fn if_hot(first: &'static str, rows: u64, theta: f64) -> Option<&'static str> {
    (theta > 0.0 || rows <= FEW).then_some(first)
}
