//! Runners: a database or a session together with options of transactions.

#![forbid(unsafe_code)]

use super::database::Database;
use super::pending::Pending;
use super::session::{Session, run_cached, run_cached_logged};
use crate::engine::Protocol;
use crate::error::Abort;
use crate::log::Level;
use crate::shared::Inner;
use crate::txn::{RunOptions, Tx};

/// A database or a session, with options of transactions, as returned by [`Database::with`] and
/// [`Session::with`]. A runner of a database can be copied.
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
#[derive(Debug, Clone, Copy)]
pub struct Runner<'a, H> {
    handle: H,
    options: RunOptions<'a>,
}

impl<P: Protocol> Database<P> {
    /// Returns a runner, which runs transactions of this database with `options`, any number of
    /// times.
    #[inline]
    pub fn with<'a>(&'a self, options: RunOptions<'a>) -> Runner<'a, &'a Database<P>> {
        Runner { handle: self, options }
    }
}

impl<P: Protocol> Session<P> {
    /// Returns a runner, which runs transactions in this session with `options`, any number of
    /// times.
    #[inline]
    pub fn with<'a>(&'a mut self, options: RunOptions<'a>) -> Runner<'a, &'a mut Session<P>> {
        Runner { handle: self, options }
    }
}

impl<H> Runner<'_, H> {
    /// Refuses a level that the database cannot reach.
    fn check<P: Protocol>(&self, inner: &Inner<P>) -> Result<(), Abort> {
        let is_refused = self.options.wants_remote() && !inner.is_replicated();
        if is_refused { Err(Abort::NotReplicated) } else { Ok(()) }
    }
}

impl<P: Protocol> Runner<'_, &Database<P>> {
    #[doc = include_str!("run_docs/run.txt")]
    #[inline]
    pub fn run<T>(&self, body: impl FnMut(&Tx<'_, P>) -> Result<T, Abort>) -> Result<T, Abort> {
        self.try_run(body)
    }

    #[doc = include_str!("run_docs/try_run.txt")]
    #[inline]
    pub fn try_run<T, E: From<Abort>>(
        &self,
        body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.check(&self.handle.inner)?;
        run_cached(&self.handle.inner, &self.options, self.options.read_view(), body)
    }

    #[doc = include_str!("run_docs/run_logged.txt")]
    pub fn run_logged<T>(&self, body: impl FnMut(&Tx<'_, P>) -> Result<T, Abort>) -> Pending<T> {
        self.try_run_logged(body)
    }

    #[doc = include_str!("run_docs/try_run_logged.txt")]
    pub fn try_run_logged<T, E: From<Abort>>(
        &self,
        body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
    ) -> Pending<T, E> {
        let options = self.options.acknowledge(Level::Memory);
        run_cached_logged(&self.handle.inner, &options, options.read_view(), body)
    }
}

impl<P: Protocol> Runner<'_, &mut Session<P>> {
    #[doc = include_str!("run_docs/run.txt")]
    #[inline]
    pub fn run<T>(&mut self, body: impl FnMut(&Tx<'_, P>) -> Result<T, Abort>) -> Result<T, Abort> {
        self.try_run(body)
    }

    #[doc = include_str!("run_docs/try_run.txt")]
    #[inline]
    pub fn try_run<T, E: From<Abort>>(
        &mut self,
        body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.check(self.handle.inner())?;
        self.handle.run_as(&self.options, self.options.read_view(), body)
    }

    #[doc = include_str!("run_docs/run_logged.txt")]
    pub fn run_logged<T>(
        &mut self,
        body: impl FnMut(&Tx<'_, P>) -> Result<T, Abort>,
    ) -> Pending<T> {
        self.try_run_logged(body)
    }

    #[doc = include_str!("run_docs/try_run_logged.txt")]
    pub fn try_run_logged<T, E: From<Abort>>(
        &mut self,
        body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
    ) -> Pending<T, E> {
        let options = self.options.acknowledge(Level::Memory);
        self.handle.run_as_logged(&options, options.read_view(), body)
    }
}
