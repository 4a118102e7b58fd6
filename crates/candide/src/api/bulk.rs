//! Many rows at once: loading, clearing.

#![forbid(unsafe_code)]

use super::session::Session;
use super::table::Table;
use super::way::Way;
use crate::engine::{InPlace, Protocol, TableCore};
use crate::error::{Abort, Error};
use crate::handle::Handle;
use crate::index::Direction;
use crate::schema::{Record, WordRange};
use crate::sync::{AtomicUsize, Mutex, Ordering, lock};
use crate::txn::Tx;
use std::num::NonZeroUsize;
use std::thread::Builder;

/// The number of rows that [`Table::load`] inserts in one transaction.
const ROWS_AT_ONCE: usize = 256;

/// The largest number of threads of [`Table::load`].
const WORKERS_MAX: usize = 1024;

/// Options of [`Table::load`].
#[derive(Clone, Copy)]
pub struct LoadOptions<'a> {
    workers: usize,
    progress: Option<&'a (dyn Fn(usize) + Sync)>,
}

impl Default for LoadOptions<'_> {
    fn default() -> Self {
        LoadOptions { workers: 1, progress: None }
    }
}

impl std::fmt::Debug for LoadOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadOptions").field("workers", &self.workers).finish_non_exhaustive()
    }
}

impl<'a> LoadOptions<'a> {
    /// Returns options for one worker and no reports.
    pub fn new() -> LoadOptions<'a> {
        LoadOptions::default()
    }

    /// Sets the number of threads that insert, at most 1,024. Fewer insert if there are not 256
    /// rows for each, by the iterator's [`size_hint`](Iterator::size_hint), or if the operating
    /// system refuses a thread. Under a protocol that allows only one session, one thread inserts.
    #[must_use]
    pub fn workers(self, workers: NonZeroUsize) -> LoadOptions<'a> {
        LoadOptions { workers: workers.get(), ..self }
    }

    /// Returns the number of workers, if it is possible.
    fn checked(&self) -> Result<usize, Error> {
        if self.workers > WORKERS_MAX {
            let (given, most) = (self.workers as u64, WORKERS_MAX as u64);
            return Err(Error::OptionTooLarge { option: "LoadOptions::workers", given, most });
        }
        Ok(self.workers)
    }

    /// Calls `progress` now and then, on the thread of any worker, with the number of rows inserted
    /// so far.
    #[must_use]
    pub fn progress(self, progress: &'a (dyn Fn(usize) + Sync)) -> LoadOptions<'a> {
        LoadOptions { progress: Some(progress), ..self }
    }
}

impl<R: Record, P: Protocol> Table<R, P> {
    /// Inserts all rows of the iterator `rows` in many transactions; returns the number of rows.
    /// Transactions of other threads may see the rows inserted so far, and may conflict with the
    /// inserting transactions. Loading is fastest if the rows come in the order of their keys.
    ///
    /// ```
    /// # use candide::{Database, LoadOptions, Record};
    /// # #[derive(Record, Clone, Copy)]
    /// # struct Account { #[key] id: u64, cents: i64 }
    /// # let db = Database::new();
    /// # let accounts = db.table::<Account>("accounts")?;
    /// let rows = (0..10_000).map(|id| Account { id, cents: 100 });
    /// let workers = std::thread::available_parallelism()?;
    /// let loaded = accounts.load(rows, LoadOptions::new().workers(workers).progress(&|rows|
    /// eprintln!("{rows} rows")))?;
    /// assert_eq!(loaded, 10_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Load`] with the number of rows that were inserted, if a row is refused by
    /// [`Abort::Duplicate`], [`Abort::NotUnique`], [`Abort::KeyTooLong`] or
    /// [`Abort::MemoryLimit`]. Also [`Error::Load`], with [`Abort::Nested`], if the call is inside a transaction under a protocol that runs one
    /// transaction at a time: the workers would wait for that transaction.
    /// [`Error::SecondSession`]; [`Error::OptionTooLarge`] if there are more than 1,024 workers.
    ///
    /// # Panics
    /// With the panic of the iterator or of `progress`.
    pub fn load<I>(&self, rows: I, options: LoadOptions<'_>) -> Result<usize, Error>
    where
        I: IntoIterator<Item = R, IntoIter: Send>,
    {
        let rows = rows.into_iter().fuse();
        let lots = rows.size_hint().1.map_or(usize::MAX, |rows| rows.div_ceil(ROWS_AT_ONCE));
        let options = LoadOptions { workers: options.checked()?.min(lots.max(1)), ..options };
        let source = Mutex::new(Some(rows));
        load(self.inner(), options, &|session, report| self.load_some(session, &source, report))
    }

    /// Inserts the rows that one worker takes from `source`. After a refusal no worker takes more
    /// rows.
    fn load_some(
        &self,
        session: &mut Session<P>,
        source: &Mutex<Option<impl Iterator<Item = R>>>,
        report: &dyn Fn(usize),
    ) -> Result<(), Abort> {
        let mut rows = Vec::with_capacity(ROWS_AT_ONCE);
        let _last = LastIfPanicking(source);
        loop {
            rows.clear();
            let mut source_now = lock(source);
            // The iterator is outside of `source` while it runs. So if it panics, no worker calls
            // it again.
            if let Some(mut taken) = source_now.take() {
                rows.extend(taken.by_ref().take(ROWS_AT_ONCE));
                *source_now = Some(taken);
            }
            drop(source_now);
            if rows.is_empty() {
                return Ok(());
            }
            if let Err(abort) = session.run_body(&mut |tx| self.insert_each(tx, &rows)) {
                *lock(source) = None;
                return Err(abort);
            }
            report(rows.len());
        }
    }

    /// Deletes all rows in the transaction `tx`, whose read and write sets then contain each row;
    /// returns the number of rows.
    ///
    /// # Errors
    /// Those of [every operation](Table#errors-of-every-operation).
    pub fn clear(&self, tx: &Tx<'_, P>) -> Result<usize, Abort> {
        clear(tx, self.core())
    }
}

/// The work of one worker of [`Table::load`]. The second argument is a function that the worker
/// calls with the number of rows that it has inserted.
type Work<'a, P> = dyn Fn(&mut Session<P>, &dyn Fn(usize)) -> Result<(), Abort> + Sync + 'a;

/// Runs the workers of [`Table::load`]; returns the number of rows that the workers have inserted.
fn load<P: Protocol>(
    inner: &Handle<P>,
    options: LoadOptions<'_>,
    work: &Work<'_, P>,
) -> Result<usize, Error> {
    let workers = if inner.engine.properties.one_session { 1 } else { options.workers };
    // The workers' threads would wait for ever for a transaction that this thread runs.
    let clock = &inner.engine.clock;
    P::InPlace::enter(clock, None).map_err(|cause| Error::Load { rows: 0, cause })?;
    P::InPlace::leave(clock);
    let own = Session::new(inner)?;
    let sessions: Vec<_> = (1..workers).map(|_| Session::new(inner)).collect::<Result<_, _>>()?;
    let loaded = AtomicUsize::new(0);
    let report = |rows: usize| {
        let total = loaded.fetch_add(rows, Ordering::Relaxed) + rows;
        if let Some(progress) = options.progress {
            progress(total);
        }
    };
    let first_error = std::thread::scope(|scope| {
        let work = |mut session: Session<P>| work(&mut session, &report);
        // This thread is one of the workers. The other workers are as many as the system allows.
        let others: Vec<_> = sessions
            .into_iter()
            .map_while(|session| Builder::new().spawn_scoped(scope, move || work(session)).ok())
            .collect();
        let own = work(own).err();
        let ends = others
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        ends.fold(own, |first: Option<Abort>, end| first.or(end.err()))
    });
    let rows = loaded.load(Ordering::Relaxed);
    first_error.map_or(Ok(rows), |cause| Err(Error::Load { rows, cause }))
}

/// Deletes all rows of a table; returns the number of rows.
fn clear<P: Protocol>(tx: &Tx<'_, P>, table: &TableCore) -> Result<usize, Abort> {
    let range = WordRange::beginning_with(&[], table.layout.key_words());
    let units = table.layout.placed_units_of(1);
    let mut way = Way::new(tx, table, range, Direction::Forward);
    let mut count = 0;
    while let Some(record) = way.next_row::<true, P>(tx, table, &units, &mut |_, _| {})? {
        let state = &mut *tx.state.borrow_mut();
        state.enter(tx.engine)?;
        state.admit_write()?;
        state.delete_row(tx.engine, table, record)?;
        count += 1;
    }
    Ok(count)
}

/// A guard that keeps all workers from taking more rows if a panic drops it.
struct LastIfPanicking<'a, I>(&'a Mutex<Option<I>>);

impl<I> Drop for LastIfPanicking<'_, I> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            *lock(self.0) = None;
        }
    }
}
