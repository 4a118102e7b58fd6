//! Results of transactions that are committed, and not durable yet.

#![forbid(unsafe_code)]

use crate::engine::Protocol;
use crate::error::Abort;
use crate::handle::{Handle, Open};
use crate::log::{Awaited, Level};
use crate::sync::Instant;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// The result of a transaction that has ended, and may not be durable yet, as returned by
/// [`Database::run_logged`](crate::Database::run_logged).
///
/// Other transactions already see the transaction's writes. The result of a transaction that only
/// read, and an error, are `Pending`, too: they may rest on writes of other transactions that are
/// not durable yet, and after a crash might be untrue.
///
/// A `Pending` is a [`Future`] that any executor can run. Dropping a `Pending` changes nothing: the
/// transaction becomes durable nevertheless. Of a database with a log, a `Pending` is a handle: it
/// keeps the database open.
#[must_use = "the transaction may not be durable before this is waited for"]
pub struct Pending<T, E = Abort> {
    /// `None` once the future has returned it.
    result: Option<Result<T, E>>,
    awaited: Awaited,
    /// The waker that is registered with the log.
    waker: Option<Waker>,
    /// Keeps the database open; `None` in a database without a log, where nothing becomes durable.
    open: Option<Arc<Open>>,
}

/// A place in the log of a database and of its copies elsewhere, as [`Pending::position`] returns
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Position {
    /// The identity of the database.
    pub database: [u8; 16],
    /// The generation of the copy: the time in which one database has written to it.
    pub generation: u64,
    /// The stamp within that time.
    pub stamp: u64,
}

impl<T: fmt::Debug, E: fmt::Debug> fmt::Debug for Pending<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending")
            .field("result", &self.result)
            .field("is_durable", &self.is_at(Level::Durable))
            .finish_non_exhaustive()
    }
}

impl<T, E> Pending<T, E> {
    /// Returns the result of a transaction whose acknowledgement awaits this; in a database without
    /// a log it awaits nothing.
    pub(crate) fn new<P: Protocol>(
        result: Result<T, E>,
        awaited: Option<Awaited>,
        database: &Handle<P>,
    ) -> Pending<T, E> {
        let open = awaited.map(|_| database.open().clone());
        Pending { result: Some(result), awaited: awaited.unwrap_or_default(), waker: None, open }
    }

    /// Applies `change` to the value.
    pub(super) fn map<U>(self, change: impl FnOnce(T) -> U) -> Pending<U, E> {
        let Pending { result, awaited, waker, open } = self;
        Pending { result: result.map(|result| result.map(change)), awaited, waker, open }
    }

    /// Returns the result, which a crash may still make untrue.
    ///
    /// # Panics
    /// If this future has been completed.
    pub fn peek(&self) -> Result<&T, &E> {
        self.result.as_ref().expect("the future is not completed").as_ref()
    }

    /// Returns whether the result has reached a level. In a database without a log every result
    /// has, except [`Level::Replicated`].
    pub fn is_at(&self, level: Level) -> bool {
        match &self.open {
            Some(open) => open.log().progress.has_reached(self.awaited, level),
            None => level < Level::Replicated,
        }
    }

    /// Returns where the transaction is, or will be, in the log: readers of a copy elsewhere wait
    /// for it, to see what the transaction has written or seen. `None` without such a copy.
    pub fn position(&self) -> Option<Position> {
        let open = self.open.as_ref()?;
        let copy = open.log().progress.copy()?;
        let (database, generation) = (copy.database(open.store().uuid()), copy.generation());
        Some(Position { database, generation, stamp: self.awaited.stamp })
    }
}

impl<T, E: From<Abort>> Pending<T, E> {
    /// Waits until the result is durable, and returns it.
    ///
    /// # Errors
    /// The error of the transaction; [`Abort::LogFailed`], converted by `E::from`, if the log has
    /// failed before, and [`Abort::Nested`] if the result is not durable yet and this thread is
    /// inside a step ([`Table::defer`](crate::Table::defer)).
    pub fn wait(self) -> Result<T, E> {
        self.wait_for(Level::Durable)
    }

    /// Waits until the result has reached a level, and returns it.
    ///
    /// # Errors
    /// As [`Pending::wait`].
    pub fn wait_for(self, level: Level) -> Result<T, E> {
        self.wait_at_most(level, None)
    }

    /// Waits until the result has reached a level, but no longer than until `deadline`, and returns
    /// it. With a deadline in the past, the call returns at once whether the result has reached the
    /// level.
    ///
    /// After a deadline that has passed the database continues, and the transaction most probably
    /// becomes durable: a repetition might do its work twice.
    /// [`Database::sync`](crate::Database::sync) waits for it, too, and [`Pending::peek`] shows the
    /// result before the wait.
    ///
    /// ```
    /// # use candide::{Abort, Database, Level, Record};
    /// # use std::time::{Duration, Instant};
    /// # #[derive(Record, Clone, Copy)]
    /// # struct Account { #[key] id: u64, cents: i64 }
    /// # let directory = std::env::temp_dir().join(format!("candide-doc-until-{}", std::process::id()));
    /// let db = Database::open(&directory)?;
    /// let accounts = db.table::<Account>("accounts")?;
    /// let pending = db.run_logged(|tx| accounts.insert(tx, Account { id: 1, cents: 0 }));
    /// match pending.wait_until(Level::Durable, Instant::now() + Duration::from_secs(5)) {
    ///     Err(Abort::OutcomeUnknown) => println!("the disk is slow today"),
    ///     ended => ended?,
    /// }
    /// # drop((db, accounts));
    /// # std::fs::remove_dir_all(directory)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Pending::wait`], and [`Abort::OutcomeUnknown`], converted by `E::from`, if the deadline
    /// passes before.
    pub fn wait_until(self, level: Level, deadline: Instant) -> Result<T, E> {
        self.wait_at_most(level, Some(deadline))
    }

    fn wait_at_most(self, level: Level, deadline: Option<Instant>) -> Result<T, E> {
        match &self.open {
            Some(open) => open.log().progress.wait(self.awaited, level, deadline)?,
            None if level < Level::Replicated => {}
            None => return Err(Abort::NotReplicated.into()),
        }
        self.result.expect("the future is not completed")
    }

    /// Calls `then` with the result once it is durable, or with [`Abort::LogFailed`]. The call is
    /// made on a thread of the database, one call after another, so it should be short. If the
    /// result is durable already, or the database has no log, or this is its last handle, the call
    /// is made at once. A call that is still to be made does not keep the database open: closing
    /// makes the result durable.
    pub fn on_durable(self, then: impl FnOnce(Result<T, E>) + Send + 'static)
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        let Pending { result, awaited: Awaited { stamp, .. }, open, .. } = self;
        let result = result.expect("the future is not completed");
        let Some(log) = open.as_ref().map(|open| open.log().clone()) else { return then(result) };
        // Before the call, which may drop the other handles and open the directory again. If this
        // handle is the last one, that closes the log, and the call is made at once.
        drop(open);
        if log.progress.has_reached(stamp, Level::Durable) {
            return then(result);
        }
        log.call_when_durable(stamp, move |reached: Result<(), Abort>| {
            then(reached.map_err(E::from).and(result))
        });
    }
}

impl<T: Unpin, E: From<Abort> + Unpin> Future for Pending<T, E> {
    type Output = Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T, E>> {
        let Pending { result, awaited, waker, open } = &mut *self;
        let reached = match open {
            None => Some(Ok(())),
            Some(open) => {
                let progress = &open.log().progress;
                progress.poll(awaited.stamp, Level::Durable, context.waker(), waker)
            }
        };
        match reached {
            None => Poll::Pending,
            Some(reached) => {
                let result = result.take().expect("the future is not completed");
                Poll::Ready(reached.map_err(E::from).and(result))
            }
        }
    }
}
