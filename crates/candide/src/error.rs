//! The error types: [`Abort`] inside transactions, [`Error`] outside of them.

#![forbid(unsafe_code)]

mod outside;

pub use outside::{Error, StreamError};
use std::fmt;

/// The reason why an operation or a transaction has failed.
///
/// A *conflict* dooms the attempt; [`run`](crate::Session::run) makes another attempt, so closures
/// only pass conflicts on. An *outcome* is definite: the closure may match on it and continue. The
/// closure's result reaches the caller only if the outcome is true in the serial order. A *refusal*
/// comes from the engine, because of a limit or a misuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum Abort {
    /// Conflict: a row that was read has changed.
    ReadChanged,
    /// Conflict: another transaction had locked the row, for its commit or [for
    /// update](crate::Table::get_for_update), and did not unlock the row in time.
    Locked,
    /// Conflict: a key that was absent may have been inserted.
    Phantom,
    /// Conflict: the record was leaving its index.
    RecordRemoved,
    /// Conflict: a row that existed when the transaction wrote to it has been deleted since, or a
    /// row that did not exist then has been inserted since.
    ExistenceChanged,
    /// Conflict: the attempt yielded to another transaction, which had failed too often.
    Yielded,
    /// Outcome: no row has this key.
    NotFound,
    /// Outcome: a row with this key exists already.
    Duplicate,
    /// Outcome: a guard of an update did not hold. The transaction has no effect.
    Guard,
    /// Outcome: the result of an update is outside the range of the column's type. The transaction
    /// has no effect. Also of a [`Sequence`](crate::Sequence) that has given away all its numbers.
    Overflow,
    /// Outcome: two rows have the same key in a unique index, at the end of the transaction or of a
    /// [part](crate::Tx::attempt) of it.
    NotUnique,
    /// Outcome: a text is longer than its column or key allows. [`Text::new`](crate::Text::new)
    /// returns this error as a [`TextTooLong`](crate::schema::TextTooLong) with the two lengths,
    /// which becomes this. Or a value of a column of any length has more than 16 MiB:
    /// [`Session::last_outcome`](crate::Session::last_outcome) names the column and the length.
    TextTooLong,
    /// Outcome: a value of a column of any length is longer than a secondary index keeps of it
    /// (`#[index(bytes = ..)]`, [`Column::bytes`](crate::Column::bytes)).
    /// [`Session::last_outcome`](crate::Session::last_outcome) names the column, the row, the
    /// index, the length and the limit.
    KeyTooLong,
    /// Outcome: an index is not below the length of a [`TArray`](crate::objects::TArray).
    OutOfBounds,
    /// Outcome: a stored value of a column is none of the column's type, as its
    /// [codec](crate::Codec) says, or a text that is read as JSON. [`last_outcome`](crate::Session::last_outcome) names the column,
    /// the row and the reason.
    Undecodable,
    /// Outcome: a value cannot be stored in its column: its `Serialize` has failed, or it is a map
    /// whose keys are no strings, which JSON has not. Nothing has been staged.
    /// [`last_outcome`](crate::Session::last_outcome) names the column, the row and the reason.
    Unencodable,
    /// Outcome: code of a row type has panicked within an operation that may have been half done,
    /// and the closure has caught that panic. The transaction, or the [part](crate::Tx::attempt) of
    /// it in which the closure has caught the panic, has no effect. (If the closure lets the panic
    /// pass, the transaction ends in that panic.)
    Panicked,
    /// Refusal: an update of a column that a secondary index contains. Change such a column by
    /// `modify` or `put`.
    Indexed,
    /// Refusal: the secondary index has been dropped, or is younger than the snapshot in which the
    /// transaction reads.
    NoIndex,
    /// Refusal: the database's memory limit leaves no room for the row.
    MemoryLimit,
    /// Refusal: the table, or the sequence, and the transaction belong to different databases.
    ForeignTable,
    /// Refusal: the table has been [dropped](crate::Database::drop_table).
    TableDropped,
    /// Refusal: a call inside a transaction would wait for the end of that transaction, or for its
    /// session. The cases:
    /// * The call is `Database::run` on the same thread and database.
    /// * Under a protocol that runs one transaction at a time: the call runs any transaction of the
    ///   same database. Or the call runs a transaction of another such database, whose running
    ///   transaction waits, directly or through others, for the transaction of this thread.
    /// * The call runs a transaction of another session, and that second transaction needs a row
    ///   that the first one has read for update. Or the second transaction must yield to the first
    ///   one, which has met 32 conflicts.
    /// * The call runs a transaction that calls [`Tx::retry`](crate::Tx::retry), and an enclosing
    ///   transaction of this thread, of any database, holds a row for update, a lock by policy or a
    ///   global lock.
    /// * The call is made in a step ([`Table::defer`](crate::Table::defer)), while the step's
    ///   transaction commits: it would begin a transaction or make a session, wait for the log, or
    ///   make a checkpoint.
    Nested,
    /// Refusal: the protocol allows one session at a time, and another thread is running a
    /// transaction, or a [`Session`](crate::Session) exists. Threads can share a database under
    /// [`Serial`](crate::Serial) with
    /// [`Exclusion::GlobalLock`](crate::protocols::Exclusion::GlobalLock), whose name is
    /// `global-lock`, and under all other protocols.
    SecondSession,
    /// Refusal: a write or a lock in a transaction that only reads, whether current rows or a
    /// snapshot. In a database that [follows](crate::replica) another one, all transactions of the
    /// program only read.
    ReadOnly,
    /// Refusal: every allowed attempt has ended in a conflict.
    AttemptsExhausted,
    /// Refusal: the deadline passed before an attempt could commit.
    DeadlinePassed,
    /// Refusal: the database has used up its version numbers, after at least eight years. In an
    /// [open](crate::Database::open) database under [`Occ`](crate::Occ) or
    /// [`TicToc`](crate::TicToc), each block of the log takes one of 2^38 numbers, too: 10,000
    /// blocks a second use them up in about 300 days. A new process begins anew.
    VersionsExhausted,
    /// Refusal: a write to the log, or a sync of it, has failed
    /// ([`Database::log_failure`](crate::Database::log_failure) returns the error). No transaction
    /// can write any more. A transaction that reads ends in this error, too, unless what it has
    /// read is known to be durable, or [`Level::Memory`](crate::Level::Memory) was requested. If
    /// [`run`](crate::Session::run) returns this error, the transaction may be durable or not: open
    /// the database again to know.
    LogFailed,
    /// Refusal: the disk has no room for the log. Nothing is lost: transactions can write again
    /// when there is room.
    DiskFull,
    /// Refusal: the deadline passed while the call waited for durability
    /// ([`RunOptions::deadline`](crate::RunOptions::deadline),
    /// [`Pending::wait_until`](crate::Pending::wait_until)). The outcome is not known: the
    /// transaction has ended in memory, where other transactions see its effects, and what it has
    /// returned rests on writes that may become durable or not. The database continues. To run the
    /// transaction again might do twice what it does; [`Database::sync`](crate::Database::sync)
    /// waits for it.
    OutcomeUnknown,
    /// Refusal: [`Level::Replicated`](crate::Level::Replicated) was asked for, and there is no copy
    /// of the log elsewhere ([`LogOptions::remote`](crate::LogOptions::remote)). A transaction that
    /// was to wait for it has not run.
    NotReplicated,
    /// The closure has called [`Tx::retry`](crate::Tx::retry), and passes this on: the transaction
    /// waits until something has changed that it has observed, and runs again. Neither a conflict
    /// nor an outcome. The caller of `run` gets this only if a [part](crate::Tx::attempt) was
    /// undone because of its `retry`, and the closure returns the part's error: the closure calls
    /// `retry` again to wait.
    Retry,
    /// Refusal: [`Tx::retry`](crate::Tx::retry) would wait for ever, since nothing that the
    /// transaction has observed can change. The cases:
    /// * The transaction has read nothing, and its writes assume nothing.
    /// * The transaction only reads: in a snapshot, under `read_view`, or with
    ///   [`RunOptions::read_only`](crate::RunOptions::read_only).
    /// * The protocol allows one session, so no other session makes a change.
    NothingToAwait,
    /// Refusal: the operation reads what a step of the same transaction changes, and the step runs
    /// only when the transaction commits. The transaction goes on.
    NotYet,
    /// Refusal: the columns of a step lie in several groups, which are locked and versioned each
    /// for itself, or in none.
    SeveralGroups,
    /// Refusal: the [`Later`](crate::Later) belongs to another transaction, be it of another
    /// database, an enclosing one, or one that has committed.
    ForeignLater,
    /// Refusal: the [`Later`](crate::Later) belongs to an attempt that has ended without effect
    /// (because of an error, a panic or a conflict), or to a [part](crate::Tx::attempt) that was
    /// undone. So its step has not run, and will not.
    LaterUndone,
    /// Refusal: the value of the [`Later`](crate::Later) has been moved out by
    /// [`run_deferred`](crate::Database::run_deferred), or is twice in a result of it.
    LaterTaken,
    /// Refusal: a delete in a table whose rows are
    /// [permanent](crate::TableOptions::permanent).
    Permanent,
    /// Refusal: a change of columns that are [frozen](crate::Table::freeze), or a `put` in a table
    /// that has such columns.
    Frozen,
}

impl Abort {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Abort; 41] = [
        Abort::ReadChanged,
        Abort::Locked,
        Abort::Phantom,
        Abort::RecordRemoved,
        Abort::ExistenceChanged,
        Abort::Yielded,
        Abort::NotFound,
        Abort::Duplicate,
        Abort::Guard,
        Abort::Overflow,
        Abort::NotUnique,
        Abort::TextTooLong,
        Abort::KeyTooLong,
        Abort::OutOfBounds,
        Abort::Undecodable,
        Abort::Unencodable,
        Abort::Panicked,
        Abort::Indexed,
        Abort::NoIndex,
        Abort::MemoryLimit,
        Abort::ForeignTable,
        Abort::TableDropped,
        Abort::Nested,
        Abort::SecondSession,
        Abort::ReadOnly,
        Abort::AttemptsExhausted,
        Abort::DeadlinePassed,
        Abort::VersionsExhausted,
        Abort::LogFailed,
        Abort::DiskFull,
        Abort::OutcomeUnknown,
        Abort::NotReplicated,
        Abort::Retry,
        Abort::NothingToAwait,
        Abort::NotYet,
        Abort::SeveralGroups,
        Abort::ForeignLater,
        Abort::LaterUndone,
        Abort::LaterTaken,
        Abort::Permanent,
        Abort::Frozen,
    ];

    /// Returns whether this reason is a conflict: the attempt is doomed, and another attempt may
    /// succeed.
    #[inline]
    pub fn is_conflict(self) -> bool {
        (self as u8) <= Abort::Yielded as u8
    }

    /// Returns whether this reason is an outcome.
    pub(crate) fn is_outcome(self) -> bool {
        !self.is_conflict() && (self as u8) <= Abort::Panicked as u8
    }

    /// Returns the reason's name in statistics.
    pub fn name(self) -> &'static str {
        match self {
            Abort::ReadChanged => "read_changed",
            Abort::Locked => "locked",
            Abort::Phantom => "phantom",
            Abort::RecordRemoved => "dead",
            Abort::ExistenceChanged => "existence",
            Abort::Yielded => "yielded",
            Abort::NotFound => "not_found",
            Abort::Duplicate => "duplicate",
            Abort::Guard => "guard",
            Abort::Overflow => "overflow",
            Abort::NotUnique => "not_unique",
            Abort::TextTooLong => "text_too_long",
            Abort::KeyTooLong => "key_too_long",
            Abort::OutOfBounds => "out_of_bounds",
            Abort::Undecodable => "undecodable",
            Abort::Unencodable => "unencodable",
            Abort::Panicked => "panicked",
            Abort::Indexed => "indexed",
            Abort::NoIndex => "no_index",
            Abort::MemoryLimit => "memory_limit",
            Abort::ForeignTable => "foreign_table",
            Abort::TableDropped => "table_dropped",
            Abort::Nested => "nested",
            Abort::SecondSession => "second_session",
            Abort::ReadOnly => "read_only",
            Abort::AttemptsExhausted => "attempts_exhausted",
            Abort::DeadlinePassed => "deadline_passed",
            Abort::VersionsExhausted => "versions_exhausted",
            Abort::LogFailed => "log_failed",
            Abort::DiskFull => "disk_full",
            Abort::OutcomeUnknown => "outcome_unknown",
            Abort::NotReplicated => "not_replicated",
            Abort::Retry => "retry",
            Abort::NothingToAwait => "nothing_to_await",
            Abort::NotYet => "not_yet",
            Abort::SeveralGroups => "several_groups",
            Abort::ForeignLater => "foreign_later",
            Abort::LaterUndone => "later_undone",
            Abort::LaterTaken => "later_taken",
            Abort::Permanent => "permanent",
            Abort::Frozen => "frozen",
        }
    }
}

impl fmt::Display for Abort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Abort::ReadChanged => "a row that was read has changed",
            Abort::Locked => "another transaction has locked the row",
            Abort::Phantom => "a key that was absent may have been inserted",
            Abort::RecordRemoved => "the record is leaving its index",
            Abort::ExistenceChanged => "a row that a write expects is gone, or one that it excludes has come",
            Abort::Yielded => "yielded to a transaction that had failed too often",
            Abort::NotFound => "no row has this key; `get` and the `_if_present` forms allow for that",
            Abort::Duplicate => "a row with this key exists already; `put` replaces it, `insert_if_absent` leaves it",
            Abort::Guard => "a guard of an update did not hold; the transaction had no effect",
            Abort::Overflow => "an update left the range of its column's type (guard it, or use a wider type), or a sequence has no more numbers",
            Abort::TextTooLong => "a text is longer than its column or key allows; shorten it, or give the column a longer `Text`",
            Abort::KeyTooLong => "a value is longer than a secondary index keeps of its column; shorten it, or give the index more `bytes`; `last_outcome` names both",
            Abort::Undecodable => "a column's codec refuses what is stored; `last_outcome` names the column, the row and the reason",
            Abort::Unencodable => "the value cannot be stored in its column; `last_outcome` names the column, the row and the reason",
            Abort::OutOfBounds => "the index is not below the length of the array; `len` returns it",
            Abort::NotUnique => "another row has the same key in a unique index when the transaction or its part ends; change or delete that row as well, or give this one another key",
            Abort::Panicked => "code of a row type panicked within an operation, and the closure caught the panic; put such an operation into a part of its own (`Tx::attempt`), or let the panic pass",
            Abort::Indexed => "the column belongs to a secondary index; change it by `modify` or `put`",
            Abort::NoIndex => "the secondary index does not exist any more, or not in this snapshot; make it by `create_index`, or read in a later snapshot",
            Abort::MemoryLimit => "the memory limit leaves no room for the row; delete rows, or raise the limit",
            Abort::ForeignTable => "the table or sequence belongs to another database; open it in the transaction's own",
            Abort::TableDropped => "the table has been dropped; open the table again, by its name, to make a new one",
            Abort::Nested => {
                "this would wait for a transaction or session of the same thread (use that one, and call no `retry` in its closure), or for another thread that waits for this one (take the databases in one order), or for the transaction whose step calls it (call it before or after that one)"
            }
            Abort::SecondSession => {
                "the protocol allows one session, and another thread, or a session that still exists, has it; run all transactions in that one, or use a protocol for several threads, such as global-lock"
            }
            Abort::ReadOnly => "the transaction only reads, or the database follows another one; write in one begun by `run`, and promote a standby first",
            Abort::AttemptsExhausted => {
                "every allowed attempt met a conflict; `last_conflict` says where, `attempts_max` allows more"
            }
            Abort::DeadlinePassed => {
                "the deadline passed before an attempt could commit; `last_conflict` names the last conflict"
            }
            Abort::VersionsExhausted => "the database has used up its version numbers; export it into a new one",
            Abort::LogFailed => "the log has failed, and nothing can be written any more; `log_failure` says why; open the database again",
            Abort::DiskFull => "the disk has no room for the log; make room, and writes succeed again",
            Abort::OutcomeUnknown => {
                "the deadline passed during the wait for durability: the transaction has ended in memory, and whether it becomes durable is not known; `sync` waits for it"
            }
            Abort::NotReplicated => "there is no copy of the log elsewhere; open the database with one, or ask for another level",
            Abort::Retry => {
                "a part of the transaction has called `retry` and was undone; call `retry` again to wait, or put the alternative into `or_else`"
            }
            Abort::NothingToAwait => {
                "`retry` would wait for ever: the transaction has read nothing, or only reads, or the protocol allows no other session; read in one begun by `run` what is to change, under a protocol for several threads"
            }
            Abort::NotYet => {
                "the columns' group is what a step of this transaction changes when it commits; read before the step is deferred, make what follows a step, too, or ask for the step's result by `Later::now`"
            }
            Abort::SeveralGroups => "the columns of a step lie in several groups, or are all of the key; defer a step for each group",
            Abort::ForeignLater => {
                "the `Later` belongs to another transaction; when that one has committed, take the value by `get`, and pass it on by `Later::ready`"
            }
            Abort::LaterUndone => {
                "the `Later` belongs to an attempt, or a part of one, that has ended without effect; defer the step again in the attempt that uses it"
            }
            Abort::LaterTaken => {
                "`run_deferred` has moved the value of this `Later` out, or would do so twice; return it once, and other copies by `map`"
            }
            Abort::Permanent => "the rows of the table are permanent, so none can be deleted; make the table without `TableOptions::permanent`",
            Abort::Frozen => "the columns are frozen, so they cannot be changed, nor replaced by `put`; thaw them first, or write the other columns by `update`",
        })
    }
}

impl std::error::Error for Abort {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_numbered_and_named_uniquely() {
        let names: std::collections::HashSet<_> =
            Abort::ALL.iter().map(|abort| abort.name()).collect();
        assert_eq!(names.len(), Abort::ALL.len());
        assert!(Abort::ALL.iter().enumerate().all(|(index, &abort)| abort as usize == index));
        assert_eq!(size_of::<Result<(), Abort>>(), 1);
    }
}
