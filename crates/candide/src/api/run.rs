//! The documentation of the functions that run transactions. Databases, sessions and runners have
//! the same functions, and so the same text.

#![forbid(unsafe_code)]

/// Expands to the documentation of a function.
macro_rules! docs_of {
    (run) => {
        r#"
Runs `body` as a transaction, **again after every conflict**, until it commits or ends in an error.

`body` may run any number of times; only the last run counts. Effects outside the database belong
into [`Tx::on_commit`]. A result of `body`, be it a value, an error or a panic, reaches the caller
only if everything that this run has read is true in the serial order. (If a run panics, the panic's
message may be printed even though the attempt is then repeated.)

Without a [`Session`](crate::Session) of the caller, the transaction runs in one that this thread
keeps for the database until the thread ends. The function looks that session up in a thread-local
list, and its statistics are visible only as part of the database's. Under the default protocol an
empty transaction takes about 240 instructions this way, and 130 with a session that the caller
holds.

```
# use candide::{Abort, Database, Record, RunOptions};
# #[derive(Record, Clone, Copy)]
# struct Account { #[key] id: u64, cents: i64 }
# let db = Database::new();
# let accounts = db.table::<Account>("accounts")?;
db.run(|tx| accounts.insert(tx, Account { id: 1, cents: 50 }))?;
let mut session = db.session()?;
session.run(|tx| accounts.insert(tx, Account { id: 2, cents: 50 }))?;
let ended = session.with(RunOptions::new().attempts_max(3)).run(|tx| {
    accounts.update(tx, 1, Account::CENTS.sub(80).at_least(0))?;
    Err::<(), Abort>(Abort::Duplicate)
});
assert_eq!(ended, Err(Abort::Guard));
# Ok::<(), candide::Error>(())
```

# Errors
The error of `body`; the transaction then has no effect. Also [`Abort::Guard`] or
[`Abort::Overflow`], if the engine finds at the end of the transaction that an update fails. Such a
failure is returned even if `body` ends in an error or a panic of its own after the update: the
first failure counts.

Without a session of the caller, [`Abort::Nested`] if this thread is inside `run` of the same
database already, and [`Abort::SecondSession`] if the protocol allows only one session and another
one exists. With options that ask for it, [`Abort::AttemptsExhausted`], [`Abort::DeadlinePassed`],
[`Abort::OutcomeUnknown`] or [`Abort::ReadOnly`].

# Panics
With the panic of `body` or of an updater, whichever came first; the transaction then has no effect.
With `panic = "abort"` the process ends at the first panic, even in an attempt that is doomed.
"#
    };
    (try_run) => {
        r#"
As [`run`](crate::Database::run), for a closure with an error type of its own.

```
# use candide::{Abort, Database, Record};
# #[derive(Record, Clone, Copy)]
# struct Account { #[key] id: u64, cents: i64 }
#[derive(Debug, PartialEq)]
enum Refusal {
    Overdrawn(i64),
    Database(Abort),
}

impl From<Abort> for Refusal {
    fn from(abort: Abort) -> Refusal {
        Refusal::Database(abort)
    }
}

# let db = Database::new();
# let accounts = db.table::<Account>("accounts")?;
# db.run(|tx| accounts.insert(tx, Account { id: 1, cents: 50 }))?;
let pay = |id, cents| {
    db.try_run(|tx| match accounts.read(tx, id, Account::CENTS)? - cents {
        rest @ 0.. => Ok(accounts.update(tx, id, Account::CENTS.set(rest))?),
        lacking => Err(Refusal::Overdrawn(lacking)),
    })
};
assert_eq!(pay(1, 80), Err(Refusal::Overdrawn(-30)));
assert_eq!(pay(2, 80), Err(Refusal::Database(Abort::NotFound)));
# Ok::<(), candide::Error>(())
```

# Errors
As [`run`](crate::Database::run), each [`Abort`] converted by `E::from`, and the error of `body`.

# Panics
As [`run`](crate::Database::run).
"#
    };
    (run_logged) => {
        r#"
Runs a transaction as [`run`](crate::Database::run) does, but returns as soon as the transaction has
ended in memory, with a [`Pending`] that can be waited for, also by `.await`. In a database that is
[open](crate::Database::open), many transactions can so share one sync of the disk, even on one
thread. In a database without a log, the result is there at once.

What [`Tx::on_commit`] was given runs before this call returns; [`Pending::on_durable`] is for what
must not happen before the transaction is durable. A panic of `body` goes on at once. Of a runner's
options, a [level](crate::RunOptions::acknowledge) has no effect, and a
[deadline](crate::RunOptions::deadline) none on waits for the [`Pending`].

```
# use candide::{Database, Record};
# #[derive(Record, Clone, Copy)]
# struct Account { #[key] id: u64, cents: i64 }
# let (process, thread) = (std::process::id(), std::thread::current().id());
# let directory = std::env::temp_dir().join(format!("candide-doc-logged-{process}-{thread:?}"));
let db = Database::open(&directory)?;
let accounts = db.table::<Account>("accounts")?;
let pending: Vec<_> = (0..100)
    .map(|id| db.run_logged(|tx| accounts.insert(tx, Account { id, cents: 0 })))
    .collect();
for inserted in pending {
    inserted.wait()?; // from here on, a loss of power does not undo it
}
# drop((db, accounts));
# std::fs::remove_dir_all(directory)?;
# Ok::<(), Box<dyn std::error::Error>>(())
```
"#
    };
    (try_run_logged) => {
        r#"
As [`run_logged`](crate::Database::run_logged), for a closure with an error type of its own.
"#
    };
    (run_deferred) => {
        r#"
Runs a transaction as [`run`](crate::Database::run) does, and returns the values of the
[`Later`](crate::Later)s that `body` returns: of one, of a tuple of them, or of what else
[`Settle`](crate::deferred::Settle) lists. The values are moved out of the `Later`s after the commit, when the
effects have run that [`Tx::on_commit`](crate::Tx::on_commit) was given.

```
# use candide::{Database, Later, Record};
# #[derive(Record, Clone, Copy)]
# struct Counter { #[key] id: u64, hits: u64 }
# let db = Database::new();
# let counters = db.table::<Counter>("counters")?;
# db.run(|tx| counters.insert(tx, Counter { id: 1, hits: 0 }))?;
let hit = || {
    db.run_deferred(|tx| {
        let hits = counters.defer(tx, 1, Counter::HITS, (), |hits, ()| {
            *hits += 1;
            *hits
        })?;
        Ok((hits, Later::ready("known")))
    })
};
assert_eq!(hit(), Ok((1, "known")));
assert_eq!(hit(), Ok((2, "known")));
# Ok::<(), candide::Error>(())
```

# Errors
As [`run`](crate::Database::run); [`Abort::Overflow`] of an operator on which the result depends;
the errors of [misuse](crate::Later#life) of a `Later` in the result, among them
[`Abort::LaterTaken`] if one value is in the result twice. The transaction then has no effect.

# Panics
As [`run`](crate::Database::run), and with the panic of a step or a computation; the transaction
then has no effect. Also if a transaction that `on_commit` has begun has returned the same `Later`.
"#
    };
    (try_run_deferred) => {
        r#"
As [`run_deferred`](crate::Database::run_deferred), for a closure with an error type of its own, as
[`try_run`](crate::Database::try_run).
"#
    };
    (run_deferred_logged) => {
        r#"
As [`run_deferred`](crate::Database::run_deferred), but returns as soon as the transaction has ended
in memory, as [`run_logged`](crate::Database::run_logged) does.

```
# use candide::{Database, Record, RunOptions};
# #[derive(Record, Clone, Copy)]
# struct Counter { #[key] id: u64, hits: u64 }
# let db = Database::new();
# let counters = db.table::<Counter>("counters")?;
# db.run(|tx| counters.insert(tx, Counter { id: 1, hits: 7 }))?;
let hits = db.with(RunOptions::new()).run_deferred_logged(|tx| {
    counters.defer(tx, 1, Counter::HITS, (), |hits, ()| *hits)
});
assert_eq!(hits.peek(), Ok(&7));
assert_eq!(hits.wait(), Ok(7));
# Ok::<(), candide::Error>(())
```
"#
    };
    (try_run_deferred_logged) => {
        r#"
As [`run_deferred_logged`](crate::Runner::run_deferred_logged), for a closure with an error type of
its own.
"#
    };
    (read_view) => {
        r#"
Runs a transaction that only reads, under every protocol: in a snapshot under protocols with
[versions](crate::Versioned), and otherwise as a transaction that is repeated after a conflict. So
code that is generic over the protocol reads in snapshots where there are any.
[`RunOptions::read_only`] says more, and is the way to name such a transaction or to use an error
type of one's own.

```
use candide::{Abort, Database, Protocol, Record, Table};

#[derive(Record, Clone, Copy)]
#[record(ordered)]
struct Account { #[key] id: u64, cents: i64 }

fn total<P: Protocol>(db: &Database<P>, accounts: &Table<Account, P>) -> Result<i64, Abort> {
    db.read_view(|tx| {
        let mut total = 0;
        for account in accounts.scan(tx, .., Account::CENTS) {
            total += account?.1;
        }
        Ok(total)
    })
}
# let db = Database::new();
# let accounts = db.table::<Account>("accounts")?;
# db.run(|tx| accounts.insert(tx, Account { id: 1, cents: 50 }))?;
# assert_eq!(total(&db, &accounts), Ok(50));
# Ok::<(), candide::Error>(())
```

# Errors
As [`run`](crate::Database::run), and [`Abort::ReadOnly`] from each operation that would write or
lock.
"#
    };
}
pub(super) use docs_of;
