//! The two error types: [`Abort`] inside transactions, [`Error`] outside of them.

#![forbid(unsafe_code)]

use crate::policy::Policy;
#[cfg(any(test, feature = "experiments"))]
use crate::{factor::Factor, timestamps::Timestamps};
use std::fmt;

/// The reason why an operation or a transaction has failed.
///
/// A *conflict* dooms the attempt; [`run`](crate::Session::run) makes another attempt, so closures
/// only pass conflicts on. An *outcome* is definite: the closure may match on it and go on. The
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
    /// Conflict: the attempt gave way to another transaction, which had failed too often.
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
    /// Outcome: another row has this key in a unique index.
    NotUnique,
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
    /// Refusal: a call inside a transaction would wait for the end of that transaction, or for its
    /// session. The cases:
    /// * The call is `Database::run` on the same thread and database.
    /// * Under a protocol that runs one transaction at a time: the call runs any transaction of the
    ///   same database. Or the call runs a transaction of another such database, whose running
    ///   transaction waits, directly or through others, for the transaction of this thread.
    /// * The call runs a transaction of another session, and that second transaction needs a row
    ///   that the first one has read for update. Or the second transaction must give way to the
    ///   first one, which has met 32 conflicts.
    Nested,
    /// Refusal: a write or a lock in a transaction that only reads, whether current rows or a
    /// snapshot.
    ReadOnly,
    /// Refusal: every allowed attempt has ended in a conflict.
    AttemptsExhausted,
    /// Refusal: the deadline passed before an attempt could commit.
    DeadlinePassed,
    /// Refusal: the database has used up its version numbers, after at least eight years. In an
    /// [open](crate::Database::open) database under [`Occ`](crate::Occ) or
    /// [`TicToc`](crate::TicToc), each block of the log takes one of 2^38 numbers, too: 10,000 blocks
    /// a second use them up in about 300 days. A new process begins anew.
    VersionsExhausted,
    /// Refusal: a write to the log, or a sync of it, has failed
    /// ([`Database::log_failure`](crate::Database::log_failure) says how). No transaction can write
    /// any more. A transaction that reads ends in this error, too, unless what it has read is known
    /// to be durable, or [`Level::Memory`](crate::Level::Memory) was asked for. If
    /// [`run`](crate::Session::run) returns this error, the transaction may be durable or not: open
    /// the database again to know.
    LogFailed,
    /// Refusal: the disk has no room for the log. Nothing is lost: transactions can write again
    /// when there is room.
    DiskFull,
}

impl Abort {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Abort; 22] = [
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
        Abort::Indexed,
        Abort::NoIndex,
        Abort::MemoryLimit,
        Abort::ForeignTable,
        Abort::Nested,
        Abort::ReadOnly,
        Abort::AttemptsExhausted,
        Abort::DeadlinePassed,
        Abort::VersionsExhausted,
        Abort::LogFailed,
        Abort::DiskFull,
    ];

    /// Returns whether this reason is a conflict: the attempt is doomed, and another attempt may
    /// succeed.
    #[inline]
    pub fn is_conflict(self) -> bool {
        (self as u8) <= Abort::Yielded as u8
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
            Abort::Indexed => "indexed",
            Abort::NoIndex => "no_index",
            Abort::MemoryLimit => "memory_limit",
            Abort::ForeignTable => "foreign_table",
            Abort::Nested => "nested",
            Abort::ReadOnly => "read_only",
            Abort::AttemptsExhausted => "attempts_exhausted",
            Abort::DeadlinePassed => "deadline_passed",
            Abort::VersionsExhausted => "versions_exhausted",
            Abort::LogFailed => "log_failed",
            Abort::DiskFull => "disk_full",
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
            Abort::ExistenceChanged => "a row came or went under a write",
            Abort::Yielded => "gave way to a transaction that had failed too often",
            Abort::NotFound => "no row has this key; `get` and the `_if_present` forms allow for that",
            Abort::Duplicate => "a row with this key exists already; `put` replaces it, `insert_if_absent` leaves it",
            Abort::Guard => "a guard of an update did not hold; the transaction had no effect",
            Abort::Overflow => "an update left the range of its column's type (guard it, or use a wider type), or a sequence has no more numbers",
            Abort::NotUnique => "another row has this key in a unique index; look that row up there, or give this one another key",
            Abort::Indexed => "the column belongs to a secondary index; change it by `modify` or `put`",
            Abort::NoIndex => "there is no such secondary index (any more), or not in this snapshot; make it by `create_index`, or look by a later snapshot",
            Abort::MemoryLimit => "the memory limit leaves no room for the row; delete rows, or raise the limit",
            Abort::ForeignTable => "the table or sequence belongs to another database; open it in the transaction's own",
            Abort::Nested => {
                "this would wait for a transaction, or a session, that is already there on this thread (use that one), or for another thread that waits for this one (take the databases in one order)"
            }
            Abort::ReadOnly => "the transaction only reads; write in one begun by `run`",
            Abort::AttemptsExhausted => {
                "every allowed attempt met a conflict; `last_conflict` says where, `attempts_max` allows more"
            }
            Abort::DeadlinePassed => {
                "the deadline passed before an attempt could commit; `last_conflict` says what was in the way"
            }
            Abort::VersionsExhausted => "the database has used up its version numbers; export it into a new one",
            Abort::LogFailed => "the log has failed, and nothing can be written any more; `log_failure` says why; open the database again",
            Abort::DiskFull => "the disk has no room for the log; make room, and writes succeed again",
        })
    }
}

impl std::error::Error for Abort {}

/// The reason why a call outside of transactions has failed. Nothing has changed, unless the call's
/// documentation says otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A table of this name exists with another row type. Use another name, or the type it was
    /// created with.
    TableType {
        /// The table's name.
        table: String,
        /// The row type that the call asked for.
        wanted: &'static str,
        /// The row type that the table was created with.
        existing: &'static str,
    },
    /// The row type cannot be stored. Its `Record` implementation has to change.
    RowType {
        /// The row type.
        row: &'static str,
        /// The fault, and how to correct it.
        problem: String,
    },
    /// A policy was chosen for a table, but the database's protocol has no policies; only
    /// [`Occ`](crate::Occ) has.
    NoPolicies {
        /// The table's name.
        table: String,
        /// The protocol's name.
        protocol: &'static str,
    },
    /// The cells of a table have no room for the locks of a policy, because the policy with which
    /// the table was made takes none. Make the table with a policy that locks.
    PolicyWithoutRoom {
        /// The table's name.
        table: String,
        /// The policy that the caller asked for.
        wanted: Policy,
        /// The policies that the table can have.
        possible: &'static [Policy],
    },
    /// The name of a table, of an index or of a sequence is empty.
    EmptyTableName,
    /// Names that begin with `candide.` belong to tables of the engine's own. Use another name.
    ReservedName {
        /// The name that the call asked for.
        name: String,
    },
    /// The name of a sequence is too long. Use a shorter one.
    LongName {
        /// The name that the call asked for.
        name: String,
        /// The most bytes that such a name can have.
        bytes_max: usize,
    },
    /// A database holds at most 65,535 tables, secondary indexes included.
    TooManyTables,
    /// The memory limit is below what an empty database needs, or leaves too little memory for the
    /// table.
    MemoryLimit {
        /// The limit in bytes.
        limit_bytes: usize,
    },
    /// More memory was to be [reserved](crate::Builder::reserve) than the memory limit allows.
    /// Reserve less, or raise the limit.
    ReserveAboveLimit {
        /// The bytes to be reserved.
        bytes: usize,
        /// The limit in bytes.
        limit_bytes: usize,
    },
    /// More memory was to be [reserved](crate::Builder::reserve) than is free. Reserve less, or
    /// free some.
    ReserveAboveFree {
        /// The bytes to be reserved.
        bytes: usize,
        /// The free bytes; `None` if the operating system has refused the memory without saying how
        /// much is free.
        free_bytes: Option<u64>,
    },
    /// The caller has [stopped](crate::Builder::build_unless) the building of the database.
    Stopped,
    /// The protocol draws no timestamps, or cannot draw them from this source.
    /// [`Properties::timestamps`](crate::Properties::timestamps) lists the sources that the
    /// protocol can use.
    #[cfg(any(test, feature = "experiments"))]
    Timestamps {
        /// The protocol's name.
        protocol: &'static str,
        /// The source that the caller asked for.
        wanted: Timestamps,
    },
    /// Two allocators were chosen. Choose one of them.
    #[cfg(any(test, feature = "experiments"))]
    TwoAllocators {
        /// One of them.
        first: Factor,
        /// Another one.
        second: Factor,
    },
    /// This build has no such allocator. Build with the cargo feature of the allocator's name.
    #[cfg(any(test, feature = "experiments"))]
    NoAllocator {
        /// The allocator that was asked for.
        wanted: Factor,
    },
    /// A length of waits is out of range.
    #[cfg(any(test, feature = "experiments"))]
    Waiting {
        /// The name of the length, and the values allowed.
        problem: String,
    },
    /// The protocol allows one session at a time, and one exists. Drop it first, or choose another
    /// protocol.
    SecondSession {
        /// The protocol's name.
        protocol: &'static str,
    },
    /// A transaction is running. Iteration without a transaction, and export, need a database in
    /// which none runs.
    NotQuiescent,
    /// The table has a secondary index of this name. Choose another name, or drop the index first.
    IndexExists {
        /// The table's name.
        table: String,
        /// The index's name.
        index: String,
    },
    /// The table has no secondary index of this name that can be dropped. Indexes that the row type
    /// declares cannot be dropped.
    NoIndex {
        /// The table's name.
        table: String,
        /// The name that the call looked for.
        index: String,
    },
    /// A table can have 32 secondary indexes. Dropped indexes count as well, except one with the
    /// new index's name, columns and kind.
    TooManyIndexes,
    /// Two rows have the same key in the new unique index.
    NotUnique {
        /// The table's name.
        table: String,
        /// The index's name.
        index: String,
    },
    /// A transaction that began before the call has not ended within ten seconds. Repeat the call
    /// after the end of that transaction. A transaction of the calling thread must end before the
    /// call.
    Busy,
    /// Loading rows ended early.
    Load {
        /// The number of rows that were inserted.
        rows: usize,
        /// The reason why the next rows were not inserted.
        cause: Abort,
    },
    /// The rows of a table in the database's files are not of this row type. Name the type that the
    /// table was made with, or export the table with that type and import it into another one.
    Schema {
        /// The table's name.
        table: String,
        /// The row type that the call asked for.
        row: &'static str,
        /// What differs.
        difference: String,
    },
    /// The files of the database could not be read or written. What was there is still in force.
    Files {
        /// What happened, and to which file.
        problem: String,
    },
    /// The call needs a database in files, as [`Database::open`](crate::Database::open) returns it.
    NotDurable,
    /// A copy of a running database would not be a state that its transactions can have seen: under
    /// this protocol only recovery may use such a state. Close the database, and copy its
    /// directory.
    NoReadableCut {
        /// The protocol's name.
        protocol: &'static str,
    },
    /// The engine refused a transaction that was part of the call's work.
    Refused(Abort),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::TableType { table, wanted, existing } => {
                write!(f, "table {table:?} holds rows of type {existing}, not {wanted}; use another name for {wanted}")
            }
            Error::RowType { row, problem } => write!(f, "row type {row} cannot be stored: {problem}"),
            Error::NoPolicies { table, protocol } => write!(
                f,
                "table {table:?} cannot have a policy: protocol {protocol} has none; use occ"
            ),
            Error::PolicyWithoutRoom { table, wanted, possible } => {
                let possible: Vec<_> = possible.iter().map(|policy| policy.name()).collect();
                write!(
                    f,
                    "table {table:?} was made without room for the locks of {wanted}; possible: {}",
                    possible.join(", ")
                )
            }
            Error::EmptyTableName => f.write_str("a table, an index or a sequence needs a name of at least one character"),
            Error::ReservedName { name } => {
                write!(f, "{name:?} is no name for a table: names that begin with \"candide.\" are the engine's own; use another one")
            }
            Error::LongName { name, bytes_max } => write!(
                f,
                "{name:?} has {} bytes, and the name of a sequence at most {bytes_max}; use a shorter one",
                name.len()
            ),
            Error::TooManyTables => {
                f.write_str("a database holds at most 65,535 tables and indexes; keep rows of one type in one table")
            }
            Error::MemoryLimit { limit_bytes } => {
                write!(f, "the memory limit of {limit_bytes} bytes leaves no room for the table; raise it")
            }
            Error::ReserveAboveLimit { bytes, limit_bytes } => write!(
                f,
                "a reserve of {bytes} bytes exceeds the memory limit of {limit_bytes} bytes; reserve less, or raise the limit"
            ),
            Error::ReserveAboveFree { bytes, free_bytes: Some(free) } => {
                write!(f, "a reserve of {bytes} bytes exceeds the {free} bytes of free memory; reserve less, or free some")
            }
            Error::ReserveAboveFree { bytes, free_bytes: None } => {
                write!(f, "the operating system refused a reserve of {bytes} bytes; reserve less")
            }
            Error::Stopped => f.write_str("the building of the database was stopped by its caller"),
            Error::SecondSession { protocol } => {
                write!(f, "protocol {protocol} allows one session at a time; drop the other one first")
            }
            #[cfg(any(test, feature = "experiments"))]
            Error::Timestamps { protocol, wanted } => {
                write!(f, "protocol {protocol} draws no timestamps from the {wanted}; leave that to the protocol")
            }
            #[cfg(any(test, feature = "experiments"))]
            Error::TwoAllocators { first, second } => {
                write!(f, "a database has one allocator, not both {first} and {second}; choose one of them")
            }
            #[cfg(any(test, feature = "experiments"))]
            Error::NoAllocator { wanted } => {
                write!(f, "this build has no {wanted}; build with the cargo feature `{wanted}`")
            }
            #[cfg(any(test, feature = "experiments"))]
            Error::Waiting { problem } => f.write_str(problem),
            Error::NotQuiescent => f.write_str("transactions are running; end them before a raw iteration"),
            Error::IndexExists { table, index } => {
                write!(f, "table {table:?} has an index {index:?} already; choose another name or drop it first")
            }
            Error::NoIndex { table, index } => {
                write!(f, "table {table:?} has no index {index:?} made by `create_index`; only such can be dropped")
            }
            Error::TooManyIndexes => f.write_str(
                "a table can have 32 secondary indexes, dropped ones included; make one again by the name, columns and kind of one that was dropped",
            ),
            Error::NotUnique { table, index } => write!(
                f,
                "two rows of table {table:?} have the same key in {index:?}, so that index cannot be unique; change one of them, or \
                 leave out `unique`"
            ),
            Error::Busy => f.write_str("a transaction has been running for ten seconds; try again when it has ended"),
            Error::Schema { table, row, difference } => write!(
                f,
                "the rows of table {table:?} are not of type {row}: {difference}; name the type that the table was made with"
            ),
            Error::Files { problem } => f.write_str(problem),
            Error::NotDurable => f.write_str("the database is in memory only; open one by `Database::open`"),
            Error::NoReadableCut { protocol } => write!(
                f,
                "a copy of a running database is not possible under protocol {protocol}; close the database and copy its directory"
            ),
            Error::Load { rows, cause } => write!(f, "loading ended after {rows} rows: {cause}"),
            Error::Refused(abort) => write!(f, "a transaction of the work was refused: {abort}"),
        }
    }
}

impl std::error::Error for Error {}

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
