//! The errors of calls outside of transactions.

#![forbid(unsafe_code)]

use super::Abort;
use crate::policy::Policy;
use crate::sync::Duration;
use crate::unknown_name::UnknownName;
#[cfg(any(test, feature = "experiments"))]
use crate::{factor::Factor, timestamps::Timestamps};
use candide_log::OpenError;
#[cfg(feature = "text")]
use candide_log::text::Fault;
use std::error::Error as Cause;
use std::sync::Arc;
use std::{fmt, io, mem};

/// The reason why a call outside of transactions has failed. Nothing has changed, unless the call's
/// documentation states the contrary.
///
/// All other errors of this crate convert to it, so `?` passes each of them on:
///
/// ```
/// use candide::{Database, Error, Record, Text};
///
/// #[derive(Record, Clone, Copy)]
/// struct Person { #[key] id: u32, name: Text<16> }
///
/// # fn main() -> Result<(), Error> {
/// # let directory = std::env::temp_dir().join(format!("candide-doc-error-{}", std::process::id()));
/// let run = || -> Result<u64, Error> {
///     let db = Database::open(&directory)?; // an `OpenError`
///     let people = db.table::<Person>("people")?; // an `Error`
///     let ann = Person { id: 1, name: Text::new("Ann")? }; // a `TextTooLong`
///     db.run(|tx| people.insert(tx, ann))?; // an `Abort`
///     Ok(people.export(&mut Vec::new())?) // a `StreamError`
/// };
/// assert_eq!(run()?, 1);
/// # std::fs::remove_dir_all(directory).expect("the directory is ours");
/// # Ok(())
/// # }
/// ```
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
    /// A table of this name exists, and differs from the options of the call. Either only one of
    /// the two is [volatile](crate::TableOptions::volatile), or another given option differs. Ask
    /// for the table as it was made, or use another name.
    TableOption {
        /// The table's name.
        table: String,
        /// The options of the call.
        wanted: String,
        /// The options of the table.
        existing: String,
    },
    /// The row type cannot be stored. The implementation of `Record` has to change.
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
    /// The name of a table, of an index, of a sequence or of an object is empty.
    EmptyTableName,
    /// There is no table of this name. Use one of those that there are.
    NoTable {
        /// The name that the call looked for.
        table: String,
        /// The names of the program's tables, in alphabetical order.
        tables: Vec<String>,
    },
    /// A table of this name exists. Use another name.
    TableExists {
        /// The table's name.
        table: String,
    },
    /// Names that begin with `candide.` belong to tables of the engine's own. Use another name.
    ReservedName {
        /// The name that the call asked for.
        name: String,
    },
    /// The name of a sequence or of an object is too long. Use a shorter one.
    LongName {
        /// The name that the call asked for.
        name: String,
        /// The largest number of bytes that such a name can have.
        bytes_max: usize,
    },
    /// A [transactional object](crate::objects) of this name exists with another type. Use another
    /// name, or the type it was made with.
    ObjectType {
        /// The object's name.
        object: String,
        /// The type that the call asked for.
        wanted: String,
        /// The type that the object was made with.
        existing: String,
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
    /// An option has a value above the largest possible one.
    OptionTooLarge {
        /// The option, with its type.
        option: &'static str,
        /// The value that was given.
        given: u64,
        /// The largest possible value.
        most: u64,
    },
    /// The protocol keeps no versions, so no transaction can see the past
    /// ([`Builder::read_only_past`](crate::Builder::read_only_past)). Choose `Mvcc` or `Mvto`.
    NoPast {
        /// The protocol's name.
        protocol: &'static str,
    },
    /// The protocol draws no timestamps, or cannot draw them from this source.
    /// [`Properties::timestamps`](crate::protocols::Properties::timestamps) lists the sources that
    /// the protocol can use.
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
        /// The first of the two factors.
        first: Factor,
        /// The second of the two factors.
        second: Factor,
    },
    /// This build has no such allocator. Build with the cargo feature of the allocator's name.
    #[cfg(any(test, feature = "experiments"))]
    NoAllocator {
        /// The allocator that was requested.
        wanted: Factor,
    },
    /// The protocol allows one session at a time, and one exists. Drop that session first, or
    /// choose another protocol.
    SecondSession {
        /// The protocol's name.
        protocol: &'static str,
    },
    /// A transaction is running. Iteration without a transaction, and export, need a database
    /// without running transactions.
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
    /// A row has a longer value in a column of a new index than the index keeps of it.
    KeyTooLong {
        /// The table's name.
        table: String,
        /// The index's name.
        index: String,
        /// The length of the value in bytes.
        length: usize,
        /// The largest number of bytes that the index keeps of the column.
        length_max: usize,
    },
    /// A transaction that began before the call has not ended within ten seconds. Repeat the call
    /// after the end of that transaction.
    Busy {
        /// The time for which the call has waited in all.
        waited: Duration,
    },
    /// Loading rows ended early.
    Load {
        /// The number of rows that were inserted.
        rows: usize,
        /// The reason why the next rows were not inserted.
        cause: Abort,
    },
    /// The rows of a table in the database's files are not of this row type. Name the type that the
    /// table was made with, or [migrate](crate::Builder::migration) the rows.
    Schema {
        /// The table's name.
        table: String,
        /// The row type that the call asked for.
        row: &'static str,
        /// The difference.
        difference: String,
        /// The plan of the migration that is possible, and how to ask for it; or what else to do.
        advice: String,
    },
    /// The rows of a table could not be [migrated](crate::Builder::migration). The table is as it
    /// was.
    Migration {
        /// The table's name.
        table: String,
        /// The key of the row at which the migration ended, with the names of its parts; empty if
        /// it was at no row.
        key: String,
        /// The fault, with the name of the column or the index.
        problem: String,
    },
    /// The files of the database could not be read or written. The former contents are still in
    /// force.
    Files {
        /// The fault, and the file in which it was found.
        problem: String,
    },
    /// The call needs a database in files, as [`Database::open`](crate::Database::open) returns it.
    NotDurable,
    /// [`Level::Replicated`](crate::Level::Replicated) was asked for, and there is no copy of the log
    /// elsewhere.
    NotReplicated,
    /// A copy of a running database would not be a state that its transactions can have seen: under
    /// this protocol only recovery may use such a state. Close the database, and copy its
    /// directory.
    NoReadableCut {
        /// The protocol's name.
        protocol: &'static str,
    },
    /// The database [follows](crate::replica) another one, so this program cannot change it.
    /// Promote it first.
    Follows {
        /// What the call would do.
        call: &'static str,
    },
    /// What the database [follows](crate::replica) has ended within an object, for a reason that
    /// the applier has returned, so the view stays as it is. Open the database again.
    FollowingEnded,
    /// The directory has a database that does not follow another one. Use another directory.
    NoReplica,
    /// The database was to be [closed](crate::Database::close), and has other handles. Nothing is
    /// closed. Drop them first.
    HandlesLeft {
        /// The number of the other handles: databases, tables, indexes, sequences, sessions,
        /// snapshots and pending results.
        handles: usize,
    },
    /// A transaction of the program, or of the call's own work, has ended in this error.
    Transaction(Abort),
    /// A text is longer than its column or key allows; see
    /// [`TextTooLong`](crate::schema::TextTooLong).
    TextTooLong {
        /// The length of the text in bytes.
        length: usize,
        /// The largest number of bytes that the type can hold.
        length_max: usize,
    },
    /// No protocol, or no policy, has this name.
    UnknownName(UnknownName),
    /// A database in files could not be opened.
    Open(Arc<OpenError>),
    /// A table could not be exported or imported.
    Stream(Arc<StreamError>),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::TableType { table, wanted, existing } => {
                write!(f, "table {table:?} holds rows of type {existing}, not {wanted}; use another name for {wanted}")
            }
            Error::TableOption { table, wanted, existing } => write!(
                f,
                "table {table:?} has {existing}, and the call asks for {wanted}; \
                 ask by `table_with` for the table as it was made, or use another name"
            ),
            Error::RowType { row, problem } => write!(f, "row type {row} cannot be stored: {problem}"),
            Error::NoPolicies { table, protocol } => write!(
                f,
                "table {table:?} cannot have a policy: protocol {protocol} has none; use occ"
            ),
            Error::PolicyWithoutRoom { table, wanted, possible } => refuse_policy(f, table, *wanted, possible),
            Error::EmptyTableName => f.write_str("a table, an index, a sequence or an object needs a name of at least one character"),
            Error::NoTable { table, tables } => list_tables(f, table, tables),
            Error::TableExists { table } => {
                write!(f, "there is a table {table:?} already; use another name")
            }
            Error::ReservedName { name } => {
                write!(f, "{name:?} is no name for a table: names that begin with \"candide.\" are the engine's own; use another one")
            }
            Error::ObjectType { object, wanted, existing } => write!(
                f,
                "object {object:?} is a {existing}, and the call asks for a {wanted}; \
                 ask for it by its own type, or use another name"
            ),
            Error::LongName { name, bytes_max } => {
                let bytes = name.len();
                write!(f, "{name:?} has {bytes} bytes, and the name of a sequence or of an object at most {bytes_max}; use a shorter one")
            }
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
            Error::ReserveAboveFree { bytes, free_bytes } => refuse_reserve(f, *bytes, *free_bytes),
            Error::OptionTooLarge { option, given, most } => {
                write!(f, "{option} is {given}, and at most {most} is possible")
            }
            Error::Stopped => f.write_str("the building of the database was stopped by its caller"),
            Error::SecondSession { protocol } => write!(f, "protocol {protocol} allows one session at a time; drop the other one first, or use a protocol for several threads, such as global-lock"),
            Error::NoPast { protocol } => write!(f, "protocol {protocol} keeps no versions, so its read-only transactions cannot see the past; choose mvcc or mvto, or leave `read_only_past` out"),
            #[cfg(any(test, feature = "experiments"))]
            Error::Timestamps { protocol, wanted } => {
                write!(f, "protocol {protocol} draws no timestamps from the {wanted}; leave the source to the protocol")
            }
            #[cfg(any(test, feature = "experiments"))]
            Error::TwoAllocators { first, second } => {
                write!(f, "a database has one allocator, not both {first} and {second}; choose one of them")
            }
            #[cfg(any(test, feature = "experiments"))]
            Error::NoAllocator { wanted } => {
                write!(f, "this build has no {wanted}; build with the cargo feature `{wanted}`")
            }
            Error::NotQuiescent => f.write_str("transactions are running; end them before a raw iteration"),
            Error::IndexExists { table, index } => {
                write!(f, "table {table:?} has an index {index:?} already; choose another name or drop it first")
            }
            Error::NoIndex { table, index } => {
                write!(f, "table {table:?} has no index {index:?} made by `create_index`; other indexes cannot be dropped")
            }
            Error::TooManyIndexes => f.write_str(
                "a table can have 32 secondary indexes, and dropped ones count; make an index with the name, columns and kind of a dropped one, which it replaces",
            ),
            Error::NotUnique { table, index } => {
                write!(f, "two rows of table {table:?} have the same key in {index:?}, so that index cannot be unique; change one of them, or leave out `unique`")
            }
            Error::KeyTooLong { table, index, .. } => refuse_length(f, table, index, self),
            Error::Busy { waited } => end_wait(f, waited.as_secs()),
            Error::Schema { table, row, difference, advice } => write!(
                f,
                "the rows of table {table:?} are not of type {row}: {difference}; {advice}"
            ),
            Error::Migration { table, key, problem } => end_migration(f, table, key, problem),
            Error::Files { problem } => f.write_str(problem),
            Error::NotReplicated => Abort::NotReplicated.fmt(f),
            Error::NotDurable => f.write_str("the database is in memory only; open one by `Database::open`"),
            Error::NoReadableCut { protocol } => write!(
                f,
                "a copy of a running database is not possible under protocol {protocol}; close the database and copy its directory"
            ),
            Error::Follows { .. } | Error::FollowingEnded | Error::NoReplica => refuse_following(f, self),
            Error::HandlesLeft { handles } => count_handles(f, *handles),
            Error::Load { rows, cause } => write!(f, "loading ended after {rows} rows: {cause}"),
            Error::Transaction(abort) => write!(f, "a transaction has failed: {abort}"),
            Error::TextTooLong { length, length_max } => {
                write!(f, "a text of {length} bytes does not fit into Text<{length_max}>")
            }
            Error::UnknownName(error) => error.fmt(f),
            Error::Open(error) => error.fmt(f),
            Error::Stream(error) => error.fmt(f),
        }
    }
}

/// Writes that a call has waited for too long.
fn refuse_length(
    f: &mut fmt::Formatter<'_>,
    table: &str,
    index: &str,
    error: &Error,
) -> fmt::Result {
    let Error::KeyTooLong { length, length_max, .. } = error else { return Ok(()) };
    write!(
        f,
        "a row of table {table:?} has a value of {length} bytes, and index {index:?} keeps at most {length_max}; \
         shorten the value, or give the index more `bytes`"
    )
}

fn end_wait(f: &mut fmt::Formatter<'_>, seconds: u64) -> fmt::Result {
    write!(
        f,
        "the call has waited {seconds} s for running transactions; try again when they have ended"
    )
}

/// Writes that a table could not be migrated, because of the row with this key if there is one.
fn end_migration(f: &mut fmt::Formatter<'_>, table: &str, key: &str, problem: &str) -> fmt::Result {
    write!(f, "table {table:?} could not be migrated, and is as it was: {problem}")?;
    if key.is_empty() { Ok(()) } else { write!(f, " at the row with {key}") }
}

/// Writes that a table has no room for the locks of a policy.
fn refuse_policy(
    f: &mut fmt::Formatter<'_>,
    table: &str,
    wanted: Policy,
    possible: &[Policy],
) -> fmt::Result {
    let possible: Vec<_> = possible.iter().map(|policy| policy.name()).collect();
    let possible = possible.join(" or ");
    write!(
        f,
        "table {table:?} was made without room for the locks of {wanted}; use {possible}, or make the table with a policy that locks"
    )
}

/// Writes that a table does not exist, and the names of those that do.
fn list_tables(f: &mut fmt::Formatter<'_>, table: &str, tables: &[String]) -> fmt::Result {
    let tables = tables.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>();
    let there = match &tables[..] {
        [] => "there are none".to_owned(),
        tables => format!("the tables are {}", tables.join(", ")),
    };
    write!(f, "there is no table {table:?}; {there}")
}

/// Writes why there is no memory for a reserve, with the number of free bytes if that is known.
fn refuse_reserve(f: &mut fmt::Formatter<'_>, bytes: usize, free: Option<u64>) -> fmt::Result {
    match free {
        Some(free) => write!(
            f,
            "a reserve of {bytes} bytes exceeds the {free} bytes of free memory; reserve less, or free some"
        ),
        None => write!(f, "the operating system refused a reserve of {bytes} bytes; reserve less"),
    }
}

/// Writes the error of a database that follows another one, or does not.
fn refuse_following(f: &mut fmt::Formatter<'_>, error: &Error) -> fmt::Result {
    match error {
        Error::Follows { call } => {
            write!(f, "{call} is refused, since the database follows another one; promote it first")
        }
        Error::FollowingEnded => f.write_str(
            "following has ended within an object, for a reason that the applier has returned; open the database again",
        ),
        _ => f.write_str(
            "the directory has a database that does not follow another one; use another directory",
        ),
    }
}

/// Writes that a database that is to be closed has other handles.
fn count_handles(f: &mut fmt::Formatter<'_>, handles: usize) -> fmt::Result {
    write!(
        f,
        "the database has {handles} other {} (databases, tables, indexes, sequences, sessions, snapshots, pending results); \
         drop these before closing it",
        if handles == 1 { "handle" } else { "handles" }
    )
}

impl Cause for Error {
    fn source(&self) -> Option<&(dyn Cause + 'static)> {
        match self {
            Error::Load { cause, .. } | Error::Transaction(cause) => Some(cause),
            // These two errors have the text and the cause of the error that they hold.
            Error::Open(error) => error.source(),
            Error::Stream(error) => error.source(),
            _ => None,
        }
    }
}

impl From<Abort> for Error {
    fn from(abort: Abort) -> Error {
        Error::Transaction(abort)
    }
}

impl From<UnknownName> for Error {
    fn from(error: UnknownName) -> Error {
        Error::UnknownName(error)
    }
}

impl From<OpenError> for Error {
    /// Converts an error; returns the error of [`Builder::build`](crate::Builder::build) in
    /// [`OpenError::Target`] unchanged.
    fn from(error: OpenError) -> Error {
        let OpenError::Target(cause) = error else { return Error::Open(Arc::new(error)) };
        match cause.downcast::<Error>() {
            Ok(error) => *error,
            Err(cause) => Error::Open(Arc::new(OpenError::Target(cause))),
        }
    }
}

impl From<StreamError> for Error {
    /// Converts an error; returns the error in [`StreamError::Refused`] unchanged.
    fn from(error: StreamError) -> Error {
        match error {
            StreamError::Refused(error) => error,
            error => Error::Stream(Arc::new(error)),
        }
    }
}

/// The reason why a table could not be exported or imported.
#[derive(Debug)]
#[non_exhaustive]
pub enum StreamError {
    /// Reading or writing the stream failed.
    Io(io::Error),
    /// The bytes were not written by an export, or have been changed since.
    Format(String),
    /// The rows of the stream and of the table have different layouts.
    Schema {
        /// The schema of the table.
        wanted: u64,
        /// The schema in the stream.
        found: u64,
        /// The first field that differs; `None` if the stream or the row type does not describe its
        /// fields, or if the descriptions agree.
        difference: Option<String>,
    },
    /// A line of a [text](crate::Table::import_json) is no row of the table, or its row was
    /// refused. All rows before it have been inserted, and none from it on. With the cargo feature
    /// `text`.
    #[cfg(feature = "text")]
    Text {
        /// The fault, and its place.
        fault: Fault,
        /// The number of the rows before it.
        rows: u64,
    },
    /// The database refused the export or the import.
    Refused(Error),
}

/// Two errors are equal if they are of the same kind and have the same text.
impl PartialEq for StreamError {
    fn eq(&self, other: &StreamError) -> bool {
        mem::discriminant(self) == mem::discriminant(other) && self.to_string() == other.to_string()
    }
}

impl Eq for StreamError {}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StreamError::Io(error) => write!(f, "the stream failed: {error}"),
            StreamError::Format(problem) => {
                write!(f, "the stream is damaged or no export of a table: {problem}")
            }
            StreamError::Schema { difference: Some(difference), .. } => {
                write!(
                    f,
                    "the rows of the stream are not the table's: {difference}; import into the row type that was exported"
                )
            }
            StreamError::Schema { wanted, found, difference: None } => write!(
                f,
                "the stream holds rows of schema {found:#018x}, the table rows of {wanted:#018x}; import into the row type \
                 that was exported"
            ),
            #[cfg(feature = "text")]
            StreamError::Text { fault, rows } => match rows {
                0 => write!(f, "{fault}; no row has been inserted"),
                1 => write!(f, "{fault}; the row before it has been inserted, and none from it on"),
                rows => write!(
                    f,
                    "{fault}; the {rows} rows before it have been inserted, and none from it on"
                ),
            },
            StreamError::Refused(error) => error.fmt(f),
        }
    }
}

impl Cause for StreamError {
    fn source(&self) -> Option<&(dyn Cause + 'static)> {
        match self {
            StreamError::Io(error) => Some(error),
            StreamError::Refused(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for StreamError {
    fn from(error: io::Error) -> StreamError {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            return StreamError::Format("it ends in the middle".into());
        }
        StreamError::Io(error)
    }
}

impl From<Error> for StreamError {
    fn from(error: Error) -> StreamError {
        StreamError::Refused(error)
    }
}
