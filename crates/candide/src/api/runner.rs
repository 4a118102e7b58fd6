//! Runners: a database or a session together with options of transactions.

#![forbid(unsafe_code)]

use super::database::Database;
use super::pending::Pending;
use super::session::{Session, run_cached, run_cached_logged};
use crate::engine::Protocol;
use crate::error::Abort;
use crate::handle::Handle;
use crate::log::Level;
use crate::protocols::DefaultProtocol;
use crate::txn::{RunOptions, Tx};

/// A database with options of transactions: what [`Database::with`] returns.
///
/// ```
/// use candide::{Database, Record, RunOptions};
/// use std::time::{Duration, Instant};
///
/// #[derive(Record, Clone, Copy)]
/// struct Account { #[key] id: u64, cents: i64 }
///
/// let db = Database::new();
/// let accounts = db.table::<Account>("accounts")?;
/// let opening = db.with(RunOptions::new().named("open an account"));
/// for id in 1..=3 {
///     opening.run(|tx| accounts.insert(tx, Account { id, cents: 100 }))?;
/// }
/// let soon = Instant::now() + Duration::from_millis(50);
/// db.with(RunOptions::new().named("pay").deadline(soon)).run(|tx| {
///     accounts.update(tx, 1, Account::CENTS.sub(30).at_least(0))?;
///     accounts.update(tx, 2, Account::CENTS.add(30))
/// })?;
/// # Ok::<(), candide::Error>(())
/// ```
pub struct Runner<'a, P: Protocol = DefaultProtocol> {
    inner: &'a Handle<P>,
    options: RunOptions<'a>,
}

impl<P: Protocol> Clone for Runner<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Protocol> Copy for Runner<'_, P> {}

impl<P: Protocol> std::fmt::Debug for Runner<'_, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runner")
            .field("protocol", &self.inner.engine.properties.name)
            .field("options", &self.options)
            .finish()
    }
}

impl<P: Protocol> Database<P> {
    /// Returns a runner, which runs transactions of this database with `options`. A runner can be
    /// copied, and used any number of times.
    #[inline]
    pub fn with<'a>(&'a self, options: RunOptions<'a>) -> Runner<'a, P> {
        Runner { inner: &self.inner, options }
    }
}

impl<P: Protocol> Runner<'_, P> {
    /// Runs a transaction as [`Database::run`] does, with these options.
    ///
    /// # Errors
    /// As [`Database::run`], and [`Abort::AttemptsExhausted`], [`Abort::DeadlinePassed`],
    /// [`Abort::OutcomeUnknown`] or [`Abort::ReadOnly`] if the options ask for it.
    #[inline]
    pub fn run<T>(&self, body: impl FnMut(&Tx<'_, P>) -> Result<T, Abort>) -> Result<T, Abort> {
        self.try_run(body)
    }

    /// As [`Runner::run`], for a closure with an error type of its own.
    ///
    /// # Errors
    /// As [`Runner::run`], each [`Abort`] converted by `E::from`, and the error of `body`.
    #[inline]
    pub fn try_run<T, E: From<Abort>>(
        &self,
        body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
    ) -> Result<T, E> {
        run_cached(self.inner, &self.options, self.options.read_view(), body)
    }

    /// Runs a transaction as [`Database::run_logged`] does, with these options. A
    /// [level](RunOptions::acknowledge) among the options has no effect, and a
    /// [deadline](RunOptions::deadline) none on waits for the [`Pending`].
    pub fn run_logged<T>(&self, body: impl FnMut(&Tx<'_, P>) -> Result<T, Abort>) -> Pending<T> {
        self.try_run_logged(body)
    }

    /// As [`Runner::run_logged`], for a closure with an error type of its own.
    pub fn try_run_logged<T, E: From<Abort>>(
        &self,
        body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
    ) -> Pending<T, E> {
        let options = self.options.acknowledge(Level::Memory);
        run_cached_logged(self.inner, &options, options.read_view(), body)
    }
}

/// A session with options of transactions: what [`Session::with`] returns.
///
/// ```
/// # use candide::{Database, Record, RunOptions};
/// # #[derive(Record, Clone, Copy)]
/// # struct Account { #[key] id: u64, cents: i64 }
/// # let db = Database::new();
/// # let accounts = db.table::<Account>("accounts")?;
/// let mut session = db.session()?;
/// let mut careful = session.with(RunOptions::new().attempts_max(3));
/// careful.run(|tx| accounts.insert(tx, Account { id: 1, cents: 100 }))?;
/// careful.run(|tx| accounts.insert(tx, Account { id: 2, cents: 100 }))?;
/// # Ok::<(), candide::Error>(())
/// ```
#[derive(Debug)]
pub struct SessionRunner<'a, P: Protocol = DefaultProtocol> {
    session: &'a mut Session<P>,
    options: RunOptions<'a>,
}

impl<P: Protocol> Session<P> {
    /// Returns a runner, which runs transactions in this session with `options`, any number of
    /// times.
    #[inline]
    pub fn with<'a>(&'a mut self, options: RunOptions<'a>) -> SessionRunner<'a, P> {
        SessionRunner { session: self, options }
    }
}

impl<P: Protocol> SessionRunner<'_, P> {
    /// Runs a transaction as [`Session::run`] does, with these options.
    ///
    /// # Errors
    /// As [`Session::run`], and [`Abort::AttemptsExhausted`], [`Abort::DeadlinePassed`],
    /// [`Abort::OutcomeUnknown`] or [`Abort::ReadOnly`] if the options ask for it.
    #[inline]
    pub fn run<T>(&mut self, body: impl FnMut(&Tx<'_, P>) -> Result<T, Abort>) -> Result<T, Abort> {
        self.try_run(body)
    }

    /// As [`SessionRunner::run`], for a closure with an error type of its own.
    ///
    /// # Errors
    /// As [`SessionRunner::run`], each [`Abort`] converted by `E::from`, and the error of `body`.
    #[inline]
    pub fn try_run<T, E: From<Abort>>(
        &mut self,
        body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.session.run_as(&self.options, self.options.read_view(), body)
    }

    /// Runs a transaction as [`Session::run_logged`] does, with these options. A
    /// [level](RunOptions::acknowledge) among the options has no effect, and a
    /// [deadline](RunOptions::deadline) none on waits for the [`Pending`].
    pub fn run_logged<T>(
        &mut self,
        body: impl FnMut(&Tx<'_, P>) -> Result<T, Abort>,
    ) -> Pending<T> {
        self.try_run_logged(body)
    }

    /// As [`SessionRunner::run_logged`], for a closure with an error type of its own.
    pub fn try_run_logged<T, E: From<Abort>>(
        &mut self,
        body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
    ) -> Pending<T, E> {
        let options = self.options.acknowledge(Level::Memory);
        self.session.run_as_logged(&options, options.read_view(), body)
    }
}
