//! Access to the files of one database, which are all in one flat directory.
//!
//! Every file access goes through [`Disk`] and [`DiskFile`], so that a test can put a simulated
//! disk in place of the operating system's. Such a disk crashes, fails or is full at a chosen
//! operation.
//!
//! # What survives a loss of power
//!
//! * The contents and the size of a file are durable as of the file's last [`DiskFile::sync`].
//! * The name of a file, and its removal, are durable as of the last [`Disk::sync_directory`].
//! * Anything that was done later may survive or not, in part, and in any order. After a write,
//!   each sector of 512 bytes may have its old content or its new content.

mod real;

pub use real::RealDisk;

use std::error::Error;
use std::fmt::{self, Debug, Display, Formatter};
use std::io;
use std::path::Path;

/// A directory that contains the files of one database.
///
/// A name is a plain file name without separators. An implementation returns an error of kind
/// [`io::ErrorKind::InvalidInput`] for any other name.
pub trait Disk: Send + Sync + Debug {
    /// Returns the names of all files, in no particular order.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Creates an empty file for reading and writing. A file that has this name already becomes
    /// empty.
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;

    /// Opens an existing file for reading and writing. If there is none, the error is of kind
    /// [`io::ErrorKind::NotFound`].
    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;

    /// Opens an existing file for reading only. If there is none, the error is of kind
    /// [`io::ErrorKind::NotFound`].
    fn open_to_read(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;

    /// Gives a file another name. A file that has the name `to` already is replaced.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes all creations, renames and removals up to now durable.
    fn sync_directory(&self) -> io::Result<()>;

    /// Acquires exclusive use of the directory, for as long as the returned value lives. The file
    /// `LOCK` belongs to this function. The right to write is not needed if there is such a file,
    /// or if the directory is on a file system to which no process can write.
    fn lock(&self) -> Result<Box<dyn Send + Sync + Debug>, LockError>;

    /// Returns the path of the directory, if it is one of the operating system.
    fn path(&self) -> Option<&Path> {
        None
    }
}

/// An open file. The handle refers to the same file after a rename or removal.
pub trait DiskFile: Send + Sync + Debug {
    /// Returns the size in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Returns whether the file has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Fills `to` with the bytes at `offset`. If the file ends before, the error is of kind
    /// [`io::ErrorKind::UnexpectedEof`].
    fn read_at(&self, offset: u64, to: &mut [u8]) -> io::Result<()>;

    /// Writes all parts, one after the other, from `offset` on. The file grows as far as necessary,
    /// and bytes that are skipped are zeros. After an error, any part of the bytes may be written.
    fn write_at(&self, offset: u64, parts: &[&[u8]]) -> io::Result<()>;

    /// Returns an error if the file or its directory was removed and the disk can notice that.
    fn check(&self) -> io::Result<()>;

    /// Makes the contents and the size durable, and [checks](DiskFile::check) the file. After an
    /// error, it is unknown which of the writes since the last successful call are durable, even if
    /// a later call succeeds.
    fn sync(&self) -> io::Result<()>;
}

/// The reason why a directory could not be locked.
#[derive(Debug)]
pub enum LockError {
    /// The directory is in use, by this process or by another one.
    InUse {
        /// The process that uses the directory, if it is known.
        pid: Option<u32>,
    },
    /// The attempt to lock failed.
    Io(io::Error),
}

impl Display for LockError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse { pid: Some(pid) } => {
                write!(f, "the directory is in use by the process {pid}")
            }
            Self::InUse { pid: None } => write!(f, "the directory is in use"),
            Self::Io(error) => write!(f, "the directory cannot be locked: {error}"),
        }
    }
}

impl Error for LockError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::InUse { .. } => None,
            Self::Io(error) => Some(error),
        }
    }
}

impl From<io::Error> for LockError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Returns an error unless `name` is a plain file name, as every [`Disk`] does.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] for any other name.
pub fn check_name(name: &str) -> io::Result<()> {
    let is_plain = !matches!(name, "" | "." | "..") && !name.contains(['/', '\\', ':', '\0']);
    if is_plain {
        return Ok(());
    }
    let message = format!("{name:?} is not a plain file name");
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}
