//! Exclusive use of a directory, among all processes and within this one.
//!
//! The operating system locks the file `LOCK`. On some file systems such a lock belongs to the
//! process as a whole: a second lock in the same process would succeed, and to close the second
//! file would release the first lock. So a list of this process's locked directories is looked at
//! first, before `LOCK` is opened.

use crate::disk::LockError;
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use std::process;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The directories that this process has locked.
static LOCKED: Mutex<BTreeSet<Identity>> = Mutex::new(BTreeSet::new());

/// What is the same for every path to a directory, and differs between directories: on Unix the
/// device and the inode, elsewhere the canonical path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    #[cfg(unix)]
    device: u64,
    #[cfg(unix)]
    inode: u64,
    #[cfg(not(unix))]
    path: std::path::PathBuf,
}

/// Exclusive use of a directory, until the value is dropped.
#[derive(Debug)]
pub(super) struct DirectoryLock {
    file: File,
    _entry: Entry,
}

/// An entry in the list of locked directories. It is removed when the value is dropped.
#[derive(Debug)]
struct Entry(Identity);

impl DirectoryLock {
    /// Locks the directory at the canonical path `directory`.
    pub(super) fn acquire(directory: &Path) -> Result<Self, LockError> {
        let entry = Entry::acquire(Identity::of(directory)?)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(directory.join("LOCK"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LockError::InUse { pid: pid(&mut file) }),
            Err(TryLockError::Error(error)) => return Err(LockError::Io(error)),
        }
        let lock = Self { file, _entry: entry };
        // A full disk may have no room for the number, and opening may be what makes room.
        _ = lock.name_process();
        Ok(lock)
    }

    /// Writes the number of this process into the file.
    fn name_process(&self) -> io::Result<()> {
        let mut file = &self.file;
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{}", process::id())
    }
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // A process that is being started at this moment has a copy of the open file until it runs
        // its program, so to close the file is not enough. After an error the lock ends with the
        // last copy, or the file names a process that has ended: neither harms the database.
        _ = self.file.set_len(0);
        _ = self.file.unlock();
    }
}

impl Entry {
    fn acquire(identity: Identity) -> Result<Self, LockError> {
        if !locked().insert(identity.clone()) {
            return Err(LockError::InUse { pid: Some(process::id()) });
        }
        Ok(Self(identity))
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        locked().remove(&self.0);
    }
}

fn locked() -> MutexGuard<'static, BTreeSet<Identity>> {
    LOCKED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Identity {
    #[cfg(unix)]
    fn of(directory: &Path) -> io::Result<Self> {
        use std::os::unix::fs::MetadataExt;
        let metadata = fs::metadata(directory)?;
        Ok(Self { device: metadata.dev(), inode: metadata.ino() })
    }

    #[cfg(not(unix))]
    fn of(directory: &Path) -> io::Result<Self> {
        Ok(Self { path: fs::canonicalize(directory)? })
    }
}

/// Returns the process that `LOCK` names. A process that has just locked the file, or a system that
/// does not let a locked file be read, leaves this unknown.
fn pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(16).read_to_string(&mut text).ok()?;
    text.trim_end().parse().ok()
}
