//! Exclusive use of a directory, among all processes and within this one.
//!
//! The operating system locks the file `LOCK`. On some file systems such a lock belongs to the
//! process as a whole: a second lock in the same process would succeed, and to close the second
//! file would release the first lock. So `LOCK` is opened only if the list of this process's locked
//! directories does not have the directory.

use super::access::Access;
use super::handle::Handle;
use super::identity::Identity;
use crate::disk::LockError;
use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The directories that this process has locked.
static LOCKED: Mutex<BTreeSet<Identity>> = Mutex::new(BTreeSet::new());

/// Exclusive use of a directory, until the value is dropped.
#[derive(Debug)]
pub(super) struct DirectoryLock {
    /// The file that is locked; `None` if there is none, and no process can make one.
    file: Option<File>,
    _entry: Entry,
    /// The directory, open as long as the entry exists, so that no other directory gets its
    /// identity.
    #[cfg(unix)]
    directory: Arc<Handle>,
}

/// An entry in the list of locked directories. The entry is removed when the value is dropped.
#[derive(Debug)]
struct Entry(Identity);

impl DirectoryLock {
    /// Locks the directory.
    pub(super) fn acquire(directory: &Arc<Handle>) -> Result<Self, LockError> {
        let entry = Entry::acquire(directory.identity()?)?;
        let file = open(|access| directory.file("LOCK", access))?;
        match file.as_ref().map_or(Ok(()), File::try_lock) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(LockError::InUse { pid: file.as_ref().and_then(pid) });
            }
            Err(TryLockError::Error(error)) => return Err(LockError::Io(error)),
        }
        #[cfg(unix)]
        file.as_ref().map_or(Ok(()), |file| directory.note_lock(file))?;
        let lock = Self {
            file,
            _entry: entry,
            #[cfg(unix)]
            directory: Arc::clone(directory),
        };
        // A full disk may have no room for the number. The opening continues, since it may make
        // room.
        _ = lock.name_process();
        Ok(lock)
    }

    /// Writes the number of this process into the file.
    fn name_process(&self) -> io::Result<()> {
        let Some(mut file) = self.file.as_ref() else { return Ok(()) };
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{}", process::id())
    }
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        #[cfg(unix)]
        self.directory.forget_lock();
        let Some(file) = &self.file else { return };
        // A process that is being started at this moment has a copy of the open file until it runs
        // its program, so closing the file is not enough. After an error, the lock ends with the
        // last copy, or the file names a process that has ended. Both cases are harmless to the
        // database.
        _ = file.set_len(0);
        _ = file.unlock();
    }
}

/// Opens `LOCK`, which is made if it is missing. A file that this process may only read can be
/// locked as well. Returns `None` if there is no such file on a file system to which no process can
/// write.
fn open(open: impl Fn(Access) -> io::Result<File>) -> io::Result<Option<File>> {
    let error = match open(Access::ChangeOrCreate) {
        Ok(file) => return Ok(Some(file)),
        Err(error) => error,
    };
    let is_read_only = error.kind() == ErrorKind::ReadOnlyFilesystem;
    if !is_read_only && error.kind() != ErrorKind::PermissionDenied {
        return Err(error);
    }
    match open(Access::Read) {
        Ok(file) => Ok(Some(file)),
        Err(missing) if missing.kind() == ErrorKind::NotFound && is_read_only => Ok(None),
        Err(missing) if missing.kind() == ErrorKind::NotFound => {
            let what = "there is no such file, and this process may not make one, so it could not \
                        be noticed that another process uses the directory";
            Err(io::Error::new(ErrorKind::PermissionDenied, what))
        }
        Err(_) => Err(error),
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

/// Returns the process that `LOCK` names. The process is unknown if it has just locked the file, or
/// if the system does not let others read a locked file.
fn pid(file: &File) -> Option<u32> {
    let mut text = String::new();
    file.take(16).read_to_string(&mut text).ok()?;
    text.trim_end().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opens `LOCK` where a file can be opened for reading if `is_there`, and for nothing else.
    fn open_where(is_there: bool, error: ErrorKind) -> io::Result<Option<File>> {
        open(|access| match access {
            Access::Read if is_there => File::open(std::env::current_exe()?),
            Access::Read => Err(ErrorKind::NotFound.into()),
            _ => Err(error.into()),
        })
    }

    #[test]
    fn a_file_that_may_only_be_read_is_locked() {
        for error in [ErrorKind::PermissionDenied, ErrorKind::ReadOnlyFilesystem] {
            assert!(open_where(true, error).unwrap().is_some(), "{error}");
        }
    }

    #[test]
    fn only_a_read_only_file_system_needs_no_lock_file() {
        assert!(open_where(false, ErrorKind::ReadOnlyFilesystem).unwrap().is_none());
        let error = open_where(false, ErrorKind::PermissionDenied).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        assert!(error.to_string().contains("this process may not make one"), "{error}");
    }

    #[test]
    fn failures_other_than_missing_permission_are_returned_unchanged() {
        let error = open_where(true, ErrorKind::StorageFull).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
    }
}
