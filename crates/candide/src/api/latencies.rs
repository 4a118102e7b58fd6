//! Latencies and aborts of transactions by name, under the feature `histograms`.

#![forbid(unsafe_code)]

use super::database::Database;
use crate::engine::Protocol;
use crate::stats::{Latency, NamedAborts};
use std::sync::PoisonError;

impl<P: Protocol> Database<P> {
    /// Returns the latencies of the transactions that have a [name](crate::RunOptions::named), of
    /// all sessions together, past and present, in the order of the names. With the cargo feature
    /// `histograms`.
    ///
    /// A latency is the time from the call of `run` until it returns: with all attempts, the pauses
    /// between them and the wait for durability, without effects ([`Tx::on_commit`]). All
    /// transactions count, also those that end in an error, as in
    /// [`Database::named_stats`](crate::Database::named_stats). The wait of a
    /// [`Pending`](crate::Pending) does not count.
    ///
    /// Each session records its own latencies, and writes nothing that other sessions write. A
    /// session takes a kibibyte for each name and each power of two of nanoseconds between which
    /// its latencies lie. This call adds them up. It takes the lock that sessions take when they
    /// are made and dropped; no transaction waits for it.
    ///
    /// ```
    /// use candide::{Database, RunOptions};
    /// use std::time::Duration;
    ///
    /// let db = Database::new();
    /// let pay = db.with(RunOptions::new().named("pay"));
    /// for _ in 0..10 {
    ///     pay.run(|_| Ok(std::thread::sleep(Duration::from_millis(2))))?;
    /// }
    /// let of_pay = &db.latencies()[0];
    /// assert_eq!((of_pay.name(), of_pay.count()), ("pay", 10));
    /// assert!(of_pay.p50() >= Duration::from_millis(2) && of_pay.max() >= of_pay.p99());
    /// # Ok::<(), candide::Error>(())
    /// ```
    ///
    /// [`Tx::on_commit`]: crate::Tx::on_commit
    pub fn latencies(&self) -> Vec<Latency> {
        self.inner.latencies()
    }

    /// Returns the aborts of the transactions that have a [name](crate::RunOptions::named), by
    /// name, table and reason, of all sessions together, past and present, in the order of the
    /// names. With the cargo feature `histograms`.
    ///
    /// The counts are those of [`Stats::aborts`](crate::report::Stats::aborts): a conflict is
    /// counted for each attempt that ended in it, with the table whose row or absent key it was
    /// about. Reasons of other kinds have no table.
    ///
    /// ```
    /// use candide::{Abort, Database, Record, RunOptions};
    ///
    /// #[derive(Record, Clone, Copy)]
    /// struct Account { #[key] id: u64, cents: i64 }
    ///
    /// let db = Database::new();
    /// let accounts = db.table::<Account>("accounts")?;
    /// db.run(|tx| accounts.insert(tx, Account { id: 1, cents: 50 }))?;
    /// let mut other = db.session()?;
    /// db.with(RunOptions::new().named("pay")).run(|tx| {
    ///     let cents = accounts.read(tx, 1, Account::CENTS)?;
    ///     if tx.attempt_number() == 1 {
    ///         other.run(|tx| accounts.update(tx, 1, Account::CENTS.add(1)))?; // in between
    ///     }
    ///     accounts.update(tx, 1, Account::CENTS.set(cents - 30))
    /// })?;
    /// let aborts = db.named_aborts();
    /// let first = &aborts[0];
    /// assert_eq!((first.name, first.table.as_deref()), ("pay", Some("accounts")));
    /// assert_eq!((first.reason, first.count, aborts.len()), (Abort::ReadChanged, 1, 1));
    /// # Ok::<(), candide::Error>(())
    /// ```
    pub fn named_aborts(&self) -> Vec<NamedAborts> {
        let counted = self.inner.named_aborts();
        let tables = self.inner.engine.tables.read().unwrap_or_else(PoisonError::into_inner);
        let name_of = |number: u16| tables[usize::from(number)].name.to_string();
        let named = counted.into_iter().map(|counted| NamedAborts {
            name: counted.name,
            table: counted.table.map(name_of),
            reason: counted.reason,
            count: counted.count,
        });
        named.collect()
    }
}
