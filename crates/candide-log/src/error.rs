//! The errors at opening, at writing the log, and at managing the files.

use crate::names::FileName;
use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::io::{self, ErrorKind};
use std::mem;
use std::sync::Arc;

/// The reason why a database could not be opened. No file that is needed has been changed.
#[derive(Debug)]
pub enum OpenError {
    /// The directory is in use.
    InUse {
        /// The process that uses the directory, if it is known.
        pid: Option<u32>,
    },
    /// The directory contains something else than a database.
    NotADatabase {
        /// The contents that were found.
        found: String,
    },
    /// The files have a format of a later version.
    Format {
        /// The file.
        file: String,
        /// The version of the file's format.
        found: u32,
        /// The latest version that is known.
        known: u32,
    },
    /// Something that was durable is damaged. A crash alone does not cause this.
    Corrupt {
        /// The damaged file.
        file: String,
        /// The place in the file, in bytes.
        offset: u64,
        /// The description of the fault.
        what: String,
    },
    /// An operation on a file failed.
    Io {
        /// The file, or `.` for the directory.
        file: String,
        /// The failure.
        source: io::Error,
    },
    /// The target of recovery refused a table or a row.
    Target(Box<dyn Error + Send + Sync>),
    /// Another directory leads the log elsewhere. Nothing was changed.
    Led {
        /// The generation of the copy that the other directory leads.
        generation: u64,
        /// When it began, in milliseconds since 1970 by the clock there.
        since: u64,
        /// The last block of that generation, and when it was made; `None` without one.
        last_block: Option<(u64, u64)>,
    },
    /// The copy of the log elsewhere and the log here go on differently.
    Diverged {
        /// Where they part.
        what: String,
    },
    /// The copy of the log elsewhere cannot be used.
    Remote(Box<dyn Error + Send + Sync>),
    /// A table in the files differs from the table of the program.
    Schema {
        /// The table's name.
        table: String,
        /// The difference.
        what: String,
    },
}

/// Two errors are equal if they are of the same kind and have the same text.
impl PartialEq for OpenError {
    fn eq(&self, other: &OpenError) -> bool {
        mem::discriminant(self) == mem::discriminant(other) && self.to_string() == other.to_string()
    }
}

impl Eq for OpenError {}

impl OpenError {
    /// Returns a function that adds the file to the error of an operation.
    pub(crate) fn io(file: &str) -> impl FnOnce(io::Error) -> OpenError + '_ {
        move |source| OpenError::Io { file: file.to_string(), source }
    }

    /// Returns the error of damage at a place.
    pub(crate) fn corrupt(file: &str, offset: u64, what: impl Into<String>) -> OpenError {
        OpenError::Corrupt { file: file.to_string(), offset, what: what.into() }
    }

    /// Returns the error of a change that the target has refused. `file` and `offset` are the place
    /// of the change.
    pub(crate) fn load(error: LoadError, file: &str, offset: u64) -> OpenError {
        match error {
            LoadError::Ghost(what) => OpenError::corrupt(file, offset, what),
            LoadError::Other(error) => OpenError::Target(error),
        }
    }
}

impl Display for OpenError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::InUse { pid: Some(pid) } if *pid == std::process::id() => f.write_str(
                "this process has the database open already; use its handles, or drop all of them",
            ),
            OpenError::InUse { pid: Some(pid) } => {
                write!(f, "the database is in use by the process {pid}; it has to end first")
            }
            OpenError::InUse { pid: None } => {
                write!(f, "the database is in use; it has to be closed there first")
            }
            OpenError::NotADatabase { found } => write!(
                f,
                "the directory is no database: it contains {found}; name a database, or a \
                 directory that is empty"
            ),
            OpenError::Format { file, found, known } => write!(
                f,
                "{file} has format {found}, and this version knows formats up to {known}; open \
                 it with a later version"
            ),
            OpenError::Corrupt { file, offset, what } => {
                write!(f, "{file} is damaged at byte {offset}: {what}; restore a backup")?;
                if let Some(FileName::Segment(_)) = FileName::parse(file) {
                    f.write_str(", or let repair make a copy of what is before the damage")?;
                }
                Ok(())
            }
            OpenError::Io { file, source } => write!(f, "{file}: {source}"),
            OpenError::Target(error) => error.fmt(f),
            OpenError::Led { generation, last_block, .. } => {
                write!(f, "another directory leads generation {generation} of the log elsewhere")?;
                if let Some((block, _)) = last_block {
                    write!(f, ", which has {block} blocks")?;
                }
                f.write_str("; follow it, or take over if it is gone for good")
            }
            OpenError::Diverged { what } => write!(
                f,
                "the log elsewhere is not the one of this directory: {what}; set the directory \
                 aside and follow"
            ),
            OpenError::Remote(error) => write!(
                f,
                "the copy of the log cannot be used: {error}; open the database alone \
                 (`ReplicateOptions::open_alone`) to go on without it"
            ),
            OpenError::Schema { table, what } => {
                write!(f, "table {table} differs from the program's: {what}")
            }
        }
    }
}

impl Error for OpenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            OpenError::Io { source, .. } => Some(source),
            OpenError::Target(error) | OpenError::Remote(error) => Some(&**error),
            _ => None,
        }
    }
}

/// The reason why a block was not written, or not made durable.
#[derive(Debug, Clone)]
pub enum WriteError {
    /// There is no room on the disk for the next segment. Nothing was written; the same call may
    /// succeed when there is room again.
    Full(Arc<io::Error>),
    /// A write or a sync has failed, now or earlier. It is unknown which of the earlier writes are
    /// durable, and nothing can be written any more: every later call returns this error.
    Failed(Arc<io::Error>),
}

impl Display for WriteError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            WriteError::Full(error) => write!(f, "no room for the log: {error}"),
            WriteError::Failed(error) => {
                write!(f, "the log has failed, and the database must be opened again: {error}")
            }
        }
    }
}

impl Error for WriteError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            WriteError::Full(error) | WriteError::Failed(error) => Some(error),
        }
    }
}

/// The reason why a table was not added, or a checkpoint or a backup not made.
#[derive(Debug)]
pub enum StoreError {
    /// There is no room on the disk. Nothing has changed; the call may be repeated. (Only a table
    /// that was to be added may be there, if the process ends before the next change of MANIFEST.)
    Full {
        /// The file for which there was no room.
        file: String,
        /// The failure.
        source: io::Error,
    },
    /// An operation on a file failed. The earlier contents are still in force, as with
    /// [`StoreError::Full`].
    Io {
        /// The file, or `.` for the directory.
        file: String,
        /// The failure.
        source: io::Error,
    },
    /// `MANIFEST` could not be replaced, now or earlier, and it is not known whether the old or the
    /// new one is in force. MANIFEST cannot be replaced any more until the database is opened
    /// again.
    Failed(Arc<io::Error>),
    /// The log cannot be written.
    Log(WriteError),
    /// A file that was read is damaged, as with [`OpenError`].
    Damaged(OpenError),
    /// A table of this name exists.
    TableExists {
        /// The name.
        name: String,
    },
    /// All numbers of tables are used.
    TooManyTables,
    /// The schema cannot be stored.
    Schema {
        /// The table's name.
        table: String,
        /// The fault of the schema.
        what: String,
    },
    /// The directory for a copy is not empty.
    NotEmpty {
        /// An existing file.
        found: String,
    },
}

impl StoreError {
    /// Returns a function that adds the file to the error of an operation.
    pub(crate) fn io(file: &str) -> impl FnOnce(io::Error) -> StoreError + '_ {
        move |source| {
            let file = file.to_string();
            if is_full(&source) {
                StoreError::Full { file, source }
            } else {
                StoreError::Io { file, source }
            }
        }
    }
}

impl From<OpenError> for StoreError {
    /// Returns the same failure as an error of an open database.
    fn from(error: OpenError) -> StoreError {
        match error {
            OpenError::Io { file, source } => StoreError::io(&file)(source),
            other => StoreError::Damaged(other),
        }
    }
}

impl From<WriteError> for StoreError {
    fn from(error: WriteError) -> StoreError {
        StoreError::Log(error)
    }
}

impl Display for StoreError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Full { file, source } => write!(f, "no room for {file}: {source}"),
            StoreError::Io { file, source } => write!(f, "{file}: {source}"),
            StoreError::Failed(error) => write!(
                f,
                "MANIFEST could not be replaced, and the database must be opened again before it \
                 is tried once more: {error}"
            ),
            StoreError::Log(error) => Display::fmt(error, f),
            StoreError::Damaged(error) => Display::fmt(error, f),
            StoreError::TableExists { name } => write!(f, "there is a table {name} already"),
            StoreError::TooManyTables => write!(f, "there are 65535 tables, and no more numbers"),
            StoreError::Schema { table, what } => {
                write!(f, "the schema of {table} cannot be stored: {what}")
            }
            StoreError::NotEmpty { found } => {
                write!(f, "the directory contains {found}, and a copy needs an empty one")
            }
        }
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            StoreError::Full { source, .. } | StoreError::Io { source, .. } => Some(source),
            StoreError::Failed(error) => Some(error),
            StoreError::Log(error) => Some(error),
            StoreError::Damaged(error) => Some(error),
            _ => None,
        }
    }
}

/// Returns whether an operation failed for lack of room, on the disk or within a quota.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// The reason why a row or a change was not loaded.
#[derive(Debug)]
pub enum LoadError {
    /// An update or a delete of a row that does not exist, or a change that does not fit the table:
    /// the files do not have their former contents. The text names the row.
    Ghost(String),
    /// The target refuses for another reason, such as a lack of memory.
    Other(Box<dyn Error + Send + Sync>),
}

impl Display for LoadError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Ghost(what) => f.write_str(what),
            LoadError::Other(error) => Display::fmt(error, f),
        }
    }
}

impl Error for LoadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            LoadError::Ghost(_) => None,
            LoadError::Other(error) => Some(&**error),
        }
    }
}
