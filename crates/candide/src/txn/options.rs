//! Options of transactions.

#![forbid(unsafe_code)]

use super::Conflict;
use crate::engine::ReadView;
use crate::error::Abort;
use crate::log::Level;
use crate::sync::{Duration, Instant, Patience};

/// The largest length of a transaction's name, in bytes.
const NAME_BYTES_MAX: usize = 100;

/// Options of a transaction: its name, limits on retrying, a callback for conflicts, whether it
/// only reads, and the level of durability for which the call waits.
///
/// [`Database::with`](crate::Database::with) and [`Session::with`](crate::Session::with) take
/// options, and return a runner of transactions with them.
#[derive(Clone, Copy, Default)]
pub struct RunOptions<'a> {
    pub(super) name: Option<&'static str>,
    attempts_max: Option<u32>,
    pub(super) deadline: Option<Instant>,
    pub(super) on_conflict: Option<&'a dyn Fn(&Conflict)>,
    read_only: bool,
    pub(super) level: Option<Level>,
}

impl std::fmt::Debug for RunOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunOptions")
            .field("name", &self.name)
            .field("attempts_max", &self.attempts_max)
            .field("deadline", &self.deadline)
            .field("read_only", &self.read_only)
            .field("level", &self.level)
            .finish_non_exhaustive()
    }
}

impl<'a> RunOptions<'a> {
    /// Returns options without limits: conflicts are retried until the transaction commits.
    pub const fn new() -> RunOptions<'a> {
        RunOptions {
            name: None,
            attempts_max: None,
            deadline: None,
            on_conflict: None,
            read_only: false,
            level: None,
        }
    }

    /// Names the transaction, after its effect: `"pay"`. Its [conflicts](Conflict) contain the
    /// name, [`Database::named_stats`](crate::Database::named_stats) counts the transactions of
    /// each name, and the events of the feature `tracing` have it as the field `transaction`.
    ///
    /// A database counts 256 names apart. Transactions of all further names are counted together,
    /// under `"(other)"`. A transaction without a name costs nothing more; one with a name costs a
    /// search among the names that its session has used, by the address of the text.
    ///
    /// With the feature `histograms` the database also has their latencies
    /// (`Database::latencies`) and the reasons of their aborts (`Database::named_aborts`); that
    /// costs two readings of the clock. With the feature `tracing` each such transaction is a span.
    ///
    /// # Panics
    /// If the name is empty or longer than 100 bytes. In a `const` that is an error of the
    /// compiler.
    ///
    /// ```
    /// # use candide::{Abort, Database, Record, RunOptions};
    /// # #[derive(Record, Clone, Copy)]
    /// # struct Account { #[key] id: u64, cents: i64 }
    /// # let db = Database::new();
    /// # let accounts = db.table::<Account>("accounts")?;
    /// # db.run(|tx| accounts.insert(tx, Account { id: 1, cents: 50 }))?;
    /// let pay = db.with(RunOptions::new().named("pay"));
    /// let take = Account::CENTS.sub(30).at_least(0);
    /// assert_eq!(pay.run(|tx| accounts.update(tx, 1, take)), Ok(()));
    /// assert_eq!(pay.run(|tx| accounts.update(tx, 1, take)), Err(Abort::Guard));
    /// let stats = db.named_stats()[0];
    /// assert_eq!((stats.name, stats.commits, stats.errors), ("pay", 1, 1));
    /// # Ok::<(), candide::Error>(())
    /// ```
    #[must_use]
    pub const fn named(self, name: &'static str) -> RunOptions<'a> {
        assert!(!name.is_empty(), "the name of a transaction is empty; leave `named` out for none");
        assert!(name.len() <= NAME_BYTES_MAX, "the name of a transaction has more than 100 bytes");
        RunOptions { name: Some(name), ..self }
    }

    /// Makes the transaction read-only, as [`Database::read_view`](crate::Database::read_view)
    /// does: each operation that would write or lock returns [`Abort::ReadOnly`]. Under protocols
    /// with [versions](crate::Versioned) the transaction sees the database as it was when the
    /// transaction began, runs once, and meets no conflict. A transaction that takes longer than
    /// some milliseconds is registered like a [`Snapshot`](crate::Snapshot) and reported by
    /// [`Health::oldest_snapshot`](crate::report::Health::oldest_snapshot). Memory that other
    /// transactions free is not reused until the transaction ends; for long reports, a snapshot
    /// read in parts is therefore better. Under other protocols a read-only transaction is retried
    /// like any other.
    ///
    /// ```
    /// # use candide::{Abort, Database, Mvcc, Record, RunOptions};
    /// # #[derive(Record, Clone, Copy)]
    /// # struct Counter { #[key] id: u32, hits: u64 }
    /// # let db = Database::<Mvcc>::default();
    /// # let counters = db.table::<Counter>("counters")?;
    /// # db.run(|tx| counters.insert(tx, Counter { id: 7, hits: 0 }))?;
    /// let reading = db.with(RunOptions::new().read_only());
    /// assert_eq!(reading.run(|tx| counters.read(tx, 7, Counter::HITS)), Ok(0));
    /// assert_eq!(reading.run(|tx| counters.delete(tx, 7)), Err(Abort::ReadOnly));
    /// # Ok::<(), candide::Error>(())
    /// ```
    #[must_use]
    pub const fn read_only(self) -> RunOptions<'a> {
        RunOptions { read_only: true, ..self }
    }

    /// Returns whether the call waits for a copy of the log elsewhere.
    pub(crate) fn wants_remote(&self) -> bool {
        self.level == Some(Level::Replicated)
    }

    /// Sets the level of durability for which the call waits, in a database that is
    /// [open](crate::Database::open). By default that is the level of
    /// [`LogOptions::acknowledge`](crate::LogOptions::acknowledge). In a database without a log,
    /// the option has no effect.
    #[must_use]
    pub const fn acknowledge(self, level: Level) -> RunOptions<'a> {
        RunOptions { level: Some(level), ..self }
    }

    /// Returns the read view of a transaction with these options.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn read_view(&self) -> ReadView {
        if self.read_only { ReadView::AtBegin } else { ReadView::Current }
    }

    /// Gives up with [`Abort::AttemptsExhausted`] after `attempts` attempts have ended in
    /// conflicts. At least one attempt is made, even if `attempts` is zero.
    #[must_use]
    pub const fn attempts_max(self, attempts: u32) -> RunOptions<'a> {
        RunOptions { attempts_max: Some(attempts), ..self }
    }

    /// Gives up with [`Abort::DeadlinePassed`] if an attempt ends in a conflict after `deadline`,
    /// or if `deadline` passes while the transaction waits for a global lock. A running attempt is
    /// not interrupted, and commits if it can, even after the deadline. If the deadline has already
    /// passed, one attempt is made nevertheless, unless another transaction has the global lock. An
    /// attempt waits at most 20 ms for one row; under [`DeferredTwoPhase`] the first attempt waits
    /// 100 ms, and each later one until the deadline, but a second at most. If the limit on
    /// attempts is reached as well, [`Abort::AttemptsExhausted`] is returned.
    ///
    /// [`DeferredTwoPhase`]: crate::policy::Policy::DeferredTwoPhase
    ///
    /// In a database that is [open](crate::Database::open), a wait for durability ends at
    /// `deadline` with [`Abort::OutcomeUnknown`]: the transaction has then ended in memory.
    /// (`run_logged` does not wait; [`Pending::wait_until`](crate::Pending::wait_until) takes a
    /// deadline of its own.)
    #[must_use]
    pub const fn deadline(self, deadline: Instant) -> RunOptions<'a> {
        RunOptions { deadline: Some(deadline), ..self }
    }

    /// Calls `tell` right after every attempt that has ended in a conflict, the last one included.
    /// The call comes before the pause and before the limits are checked. Nothing is locked or
    /// pinned meanwhile. So `tell` may use the database, but not this session:
    /// [`Database::run`](crate::Database::run), which would need the session, returns
    /// [`Abort::Nested`]. If `tell` panics, the transaction ends in that panic, without effect.
    /// `tell` should be short: after 32 conflicts of a transaction, other transactions yield to
    /// this one for at most 100 ms, and the time of `tell` counts. Without conflicts this option
    /// costs nothing.
    ///
    /// ```
    /// # use candide::{Database, Record, RunOptions};
    /// # use std::cell::RefCell;
    /// # use std::collections::HashMap;
    /// # #[derive(Record, Clone, Copy)]
    /// # struct Counter { #[key] id: u32, hits: u64 }
    /// # let db = Database::new();
    /// # let counters = db.table::<Counter>("counters")?;
    /// # db.run(|tx| counters.insert(tx, Counter { id: 7, hits: 0 }))?;
    /// # let mut other = db.session()?;
    /// let causes = RefCell::new(HashMap::new());
    /// let count = |conflict: &candide::report::Conflict| {
    ///     *causes.borrow_mut().entry((conflict.table.clone(), conflict.group)).or_insert(0) += 1;
    /// };
    /// db.with(RunOptions::new().on_conflict(&count)).run(|tx| {
    ///     let hits = counters.read(tx, 7, Counter::HITS)?;
    ///     # if tx.attempt_number() < 3 { other.run(|tx| counters.update(tx, 7, Counter::HITS.add(1)))?; }
    ///     counters.update(tx, 7, Counter::HITS.set(hits * 10))
    /// })?;
    /// println!("{:?}", causes.borrow()); // {(Some("counters"), Some("row")): 2}
    /// # assert_eq!(causes.into_inner(), HashMap::from([((Some("counters".to_string()), Some("row")), 2)]));
    /// # Ok::<(), candide::Error>(())
    /// ```
    #[must_use]
    pub const fn on_conflict(self, tell: &'a dyn Fn(&Conflict)) -> RunOptions<'a> {
        RunOptions { on_conflict: Some(tell), ..self }
    }

    /// Returns how long the transaction may sleep between two attempts: for `longest`, and until
    /// its deadline.
    pub(super) fn sleeps_at_most(&self, longest: Duration) -> Patience {
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        Patience::Lasting(left.map_or(longest, |left| left.min(longest)))
    }

    /// Returns the error that ends the transaction after `failed` conflicts; `None` if no limit is
    /// reached.
    pub(super) fn refusal(&self, failed: u32) -> Option<Abort> {
        if self.attempts_max.is_some_and(|attempts_max| failed >= attempts_max) {
            return Some(Abort::AttemptsExhausted);
        }
        let passed = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        passed.then_some(Abort::DeadlinePassed)
    }
}
