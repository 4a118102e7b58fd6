//! A directory and its files, found by the directory's handle. So they stay the same when the
//! directory is moved, and another directory at the old place is not touched.
//!
//! If `LOCK` is removed, another process may use the directory, too. So names are only changed, and
//! a sync only succeeds, as long as the file that this process has locked is there. A count of its
//! names is not enough: the file may have been moved elsewhere, or have a second name there.

use super::access::Access;
use super::identity::Identity;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An open directory.
#[derive(Debug)]
pub(super) struct Handle {
    directory: File,
    /// The inode of `LOCK`, while this process has locked it.
    lock: Mutex<Option<u64>>,
}

impl Handle {
    /// Opens the directory at `path`.
    pub(super) fn open(path: &Path) -> io::Result<Handle> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()));
        Ok(Handle { directory: File::from(opened?), lock: Mutex::new(None) })
    }

    /// Notes the file `LOCK` that this process has locked and keeps open.
    pub(super) fn note_lock(&self, lock: &File) -> io::Result<()> {
        *self.lock() = Some(lock.metadata()?.ino());
        Ok(())
    }

    /// Forgets the file `LOCK`, whose lock this process releases.
    pub(super) fn forget_lock(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<u64>> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a file of the directory.
    pub(super) fn file(&self, name: &str, access: Access) -> io::Result<File> {
        let flags = match access {
            Access::Read => OFlags::RDONLY,
            Access::Change => OFlags::RDWR,
            Access::ChangeOrCreate => OFlags::RDWR | OFlags::CREATE,
            Access::Replace => OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC,
        };
        if access == Access::Replace {
            self.check()?;
        }
        let mode = Mode::from_raw_mode(0o666);
        let open = || rustix::fs::openat(&self.directory, name, flags | OFlags::CLOEXEC, mode);
        Ok(File::from(retry_on_intr(open).map_err(|error| self.explain(error.into()))?))
    }

    /// Returns the names of all files that are no directories.
    pub(super) fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.directory).map_err(|error| self.explain(error.into()))? {
            let entry = entry?;
            if self.file_type(entry.file_name(), entry.file_type())? != FileType::Directory {
                names.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        Ok(names)
    }

    /// Returns the type of a file. Some file systems do not list it.
    fn file_type(&self, name: &CStr, listed: FileType) -> io::Result<FileType> {
        if listed != FileType::Unknown {
            return Ok(listed);
        }
        let metadata = rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(FileType::from_raw_mode(metadata.st_mode))
    }

    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.check()?;
        Ok(rustix::fs::renameat(&self.directory, from, &self.directory, to)?)
    }

    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        self.check()?;
        Ok(rustix::fs::unlinkat(&self.directory, name, AtFlags::empty())?)
    }

    /// Makes the names of the files durable.
    ///
    /// # Errors
    /// The sync fails, or the directory or `LOCK` was removed.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.directory.sync_all()?;
        self.check()
    }

    /// Returns an error if one of the directory's files, the directory or `LOCK` was removed.
    pub(super) fn check_file(&self, file: &File) -> io::Result<()> {
        self.check()?;
        check_links(file, "the file")
    }

    /// Returns the identity of the directory.
    pub(super) fn identity(&self) -> io::Result<Identity> {
        let metadata = self.directory.metadata()?;
        Ok(Identity { device: metadata.dev(), inode: metadata.ino() })
    }

    /// Returns an error if the directory or `LOCK` was removed.
    fn check(&self) -> io::Result<()> {
        check_links(&self.directory, "the directory")?;
        let Some(locked) = *self.lock() else { return Ok(()) };
        match rustix::fs::statat(&self.directory, "LOCK", AtFlags::empty()) {
            Ok(found) if found.st_ino == locked => Ok(()),
            Ok(_) | Err(Errno::NOENT) => Err(removed("the file LOCK")),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the error, or a better one if the directory does not exist any more.
    fn explain(&self, error: io::Error) -> io::Error {
        self.check().err().unwrap_or(error)
    }
}

/// Returns an error if a file or directory has no name any more. The kind of the error is not that
/// of a missing file, which would mean damage.
fn check_links(file: &File, what: &str) -> io::Result<()> {
    match file.metadata()?.nlink() {
        0 => Err(removed(what)),
        _ => Ok(()),
    }
}

fn removed(what: &str) -> io::Error {
    io::Error::other(format!("{what} was removed while it was open"))
}
