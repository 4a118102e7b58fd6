//! The functions that run transactions: databases, sessions and runners have the same ones.

#![forbid(unsafe_code)]

/// Defines `run`, `try_run`, `run_logged` and `try_run_logged` for a type of handles. Their
/// arguments are: the name of the type; an expression that makes a handle called by the given name,
/// for the examples; how the functions take the handle; the functions that run a transaction, with
/// the handle that they take and the transaction's options and read view. The documentation of
/// `run` also says what follows.
macro_rules! run_functions {
    (
        $type:literal, $handle:literal = $make:literal;
        ($($self:tt)+): $run:path, $run_logged:path, $by:expr, $options:expr, $view:expr;
        $(#[$more:meta])*
    ) => {
        /// Runs `body` as a transaction, **again after every conflict**, until it commits or ends
        /// in an error.
        ///
        /// `body` may run any number of times; only the last run counts. Effects outside the
        /// database belong into [`Tx::on_commit`]. A result of `body`, be it a value, an error or a
        /// panic, reaches the caller only if everything that this run has read is true in the
        /// serial order. (If a run panics, the panic's message may be printed even though the
        /// attempt is then repeated.)
        ///
        $(#[$more])*
        ///
        /// ```
        /// # use candide::{Abort, Database, Record, RunOptions};
        /// # #[derive(Record, Clone, Copy)]
        /// # struct Account { #[key] id: u64, cents: i64 }
        /// # let db = Database::new();
        /// # let accounts = db.table::<Account>("accounts")?;
        #[doc = $make]
        #[doc = concat!($handle, ".run(|tx| accounts.insert(tx, Account { id: 1, cents: 50 }))?;")]
        #[doc = concat!("let ended = ", $handle, ".run(|tx| {")]
        ///     accounts.update(tx, 1, Account::CENTS.sub(80).at_least(0))?;
        ///     Err::<(), Abort>(Abort::Duplicate)
        /// });
        /// assert_eq!(ended, Err(Abort::Guard));
        /// # Ok::<(), candide::Error>(())
        /// ```
        ///
        /// # Errors
        /// The error of `body`; the transaction then has no effect. Also [`Abort::Guard`] or
        /// [`Abort::Overflow`], if the engine finds at the end of the transaction that an update
        /// fails. Such a failure is returned even if `body` ends in an error or a panic of its own
        /// after the update: the first failure counts.
        ///
        /// Without a session that the caller holds, [`Abort::Nested`] if this thread is inside
        /// `run` of the same database already, and [`Abort::SecondSession`] if the protocol allows
        /// only one session and another one exists. With options that ask for it,
        /// [`Abort::AttemptsExhausted`], [`Abort::DeadlinePassed`], [`Abort::OutcomeUnknown`] or
        /// [`Abort::ReadOnly`].
        ///
        /// # Panics
        /// With the panic of `body` or of an updater, whichever came first; the transaction then
        /// has no effect. With `panic = "abort"` the process ends at the first panic, even in an
        /// attempt that is doomed.
        #[inline]
        pub fn run<T>(
            $($self)+,
            body: impl FnMut(&Tx<'_, P>) -> Result<T, Abort>,
        ) -> Result<T, Abort> {
            $run($by, $options, $view, body)
        }

        #[doc = concat!("As [`", $type, "::run`], for a closure with an error type of its own.")]
        ///
        /// ```
        /// # use candide::{Abort, Database, Record, RunOptions};
        /// # #[derive(Record, Clone, Copy)]
        /// # struct Account { #[key] id: u64, cents: i64 }
        /// #[derive(Debug, PartialEq)]
        /// enum Refusal {
        ///     Overdrawn(i64),
        ///     Database(Abort),
        /// }
        ///
        /// impl From<Abort> for Refusal {
        ///     fn from(abort: Abort) -> Refusal {
        ///         Refusal::Database(abort)
        ///     }
        /// }
        ///
        /// # let db = Database::new();
        /// # let accounts = db.table::<Account>("accounts")?;
        /// # db.run(|tx| accounts.insert(tx, Account { id: 1, cents: 50 }))?;
        #[doc = $make]
        #[doc = concat!("let paid = ", $handle, ".try_run(|tx| {")]
        ///     match accounts.read(tx, 1, Account::CENTS)? - 80 {
        ///         rest @ 0.. => Ok(accounts.update(tx, 1, Account::CENTS.set(rest))?),
        ///         lacking => Err(Refusal::Overdrawn(lacking)),
        ///     }
        /// });
        /// assert_eq!(paid, Err(Refusal::Overdrawn(-30)));
        /// # Ok::<(), candide::Error>(())
        /// ```
        ///
        /// # Errors
        #[doc = concat!("As [`", $type, "::run`], each [`Abort`] converted by `E::from`, and the")]
        /// error of `body`.
        ///
        /// # Panics
        #[doc = concat!("As [`", $type, "::run`].")]
        #[inline]
        pub fn try_run<T, E: From<Abort>>(
            $($self)+,
            body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
        ) -> Result<T, E> {
            $run($by, $options, $view, body)
        }

        #[doc = concat!("Runs a transaction as [`", $type, "::run`] does, but returns as soon")]
        /// as the transaction has ended in memory, with a [`Pending`] that can be waited for, also
        /// by `.await`. In a database that is [open](crate::Database::open), many transactions can
        /// so share one sync of the disk, even on one thread. In a database without a log, the
        /// result is there at once.
        ///
        /// What [`Tx::on_commit`] was given runs before this call returns; [`Pending::on_durable`]
        /// is for what must not happen before the transaction is durable. A panic of `body` goes on
        /// at once. Of a runner's options, a [level](RunOptions::acknowledge) has no effect, and a
        /// [deadline](RunOptions::deadline) none on waits for the [`Pending`].
        ///
        /// ```
        /// # use candide::{Database, Record, RunOptions};
        /// # #[derive(Record, Clone, Copy)]
        /// # struct Account { #[key] id: u64, cents: i64 }
        /// # let directory = std::env::temp_dir();
        #[doc = concat!("# let directory = directory.join(\"candide-doc-", $handle, "\");")]
        /// # let directory = directory.with_extension(std::process::id().to_string());
        /// # {
        /// let db = Database::open(&directory)?;
        /// let accounts = db.table::<Account>("accounts")?;
        #[doc = $make]
        /// let pending: Vec<_> = (0..100)
        #[doc = concat!("    .map(|id| ", $handle, ".run_logged(|tx| {")]
        ///         accounts.insert(tx, Account { id, cents: 0 })
        ///     }))
        ///     .collect();
        /// for inserted in pending {
        ///     inserted.wait()?; // from here on, a loss of power does not undo it
        /// }
        /// # }
        /// # std::fs::remove_dir_all(directory)?;
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        pub fn run_logged<T>(
            $($self)+,
            body: impl FnMut(&Tx<'_, P>) -> Result<T, Abort>,
        ) -> Pending<T> {
            $run_logged($by, &($options).acknowledge(Level::Memory), $view, body)
        }

        #[doc = concat!("As [`", $type, "::run_logged`], for a closure with an error type of")]
        /// its own.
        pub fn try_run_logged<T, E: From<Abort>>(
            $($self)+,
            body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
        ) -> Pending<T, E> {
            $run_logged($by, &($options).acknowledge(Level::Memory), $view, body)
        }
    };
}
pub(super) use run_functions;

/// Defines `read_view` for a type of handles, with arguments as those of [`run_functions`].
macro_rules! read_view_function {
    (
        $type:literal, $handle:literal = $make:literal;
        ($($self:tt)+): $run:path, $by:expr;
    ) => {
        /// Runs a transaction that only reads, under every protocol: in a snapshot under protocols
        /// with [versions](crate::Versioned), and otherwise as a transaction that is repeated after
        /// a conflict. So code that is generic over the protocol reads in snapshots where there are
        /// any. [`RunOptions::read_only`] says more, and is the way to name such a transaction or
        /// to use an error type of one's own.
        ///
        /// ```
        /// # use candide::{Database, Record};
        /// # #[derive(Record, Clone, Copy)]
        /// # #[record(ordered)]
        /// # struct Account { #[key] id: u64, cents: i64 }
        /// # let db = Database::new();
        /// # let accounts = db.table::<Account>("accounts")?;
        /// # db.run(|tx| accounts.insert(tx, Account { id: 1, cents: 50 }))?;
        #[doc = $make]
        #[doc = concat!("let total = ", $handle, ".read_view(|tx| {")]
        ///     accounts.scan(tx, .., Account::CENTS).sum()
        /// })?;
        /// assert_eq!(total, 50);
        /// # Ok::<(), candide::Error>(())
        /// ```
        ///
        /// # Errors
        #[doc = concat!("As [`", $type, "::run`], and [`Abort::ReadOnly`] from each operation")]
        /// that would write or lock.
        #[inline]
        pub fn read_view<T>(
            $($self)+,
            body: impl FnMut(&Tx<'_, P>) -> Result<T, Abort>,
        ) -> Result<T, Abort> {
            $run($by, const { &RunOptions::new() }, ReadView::AtBegin, body)
        }
    };
}
pub(super) use read_view_function;
