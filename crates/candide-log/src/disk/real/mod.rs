//! A directory of the operating system.

mod access;
mod file;
mod handle;
mod identity;
mod lock;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use super::{Disk, DiskFile, LockError, check_name};
use access::Access;
use file::RealFile;
use handle::Handle;
use std::fmt::Debug;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A directory of the operating system.
///
/// The path is resolved when the directory is opened. From then on it is this directory, whatever
/// its path: on Unix a directory that is moved is used at its new place, and another directory at
/// its old place is not touched. After the directory or the locked file `LOCK` was removed, or
/// `LOCK` was moved elsewhere, every sync fails. On Windows it cannot be moved or removed while it
/// is open.
///
/// Folders in it are not listed, and a name that is not Unicode is listed with replacement
/// characters. On Windows the operating system offers no way to make a directory's entries durable,
/// and [`Disk::sync_directory`] does nothing.
#[derive(Debug)]
pub struct RealDisk {
    path: PathBuf,
    /// The open directory. An error of the device since then is reported by the next sync.
    directory: Arc<Handle>,
}

impl RealDisk {
    /// Opens the directory at `path`, and creates it and its ancestors if they are missing. When
    /// this returns, the directory itself is durable.
    ///
    /// # Errors
    ///
    /// A directory that cannot be created, or that can be neither read nor synced; `path` is
    /// something else than a directory ([`ErrorKind::NotADirectory`]).
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        let missing: Vec<&Path> =
            path.ancestors().take_while(|path| !path.try_exists().unwrap_or(true)).collect();
        for directory in missing.iter().rev() {
            match fs::create_dir(directory) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
            sync_entry(directory)?;
        }
        let disk = Self::open(&path)?;
        if missing.is_empty() {
            // The process that made the directory may have ended before it synced the entry. If
            // this process may not read the parent, it has not made the directory.
            match sync_entry(&disk.path) {
                Err(error) if error.kind() != ErrorKind::PermissionDenied => return Err(error),
                _ => {}
            }
        }
        Ok(disk)
    }

    /// Opens the existing directory at `path`.
    ///
    /// # Errors
    ///
    /// There is nothing at `path` ([`ErrorKind::NotFound`]), or something else than a directory
    /// ([`ErrorKind::NotADirectory`]), or the directory cannot be read.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = fs::canonicalize(path)?;
        if !fs::metadata(&path)?.is_dir() {
            let message = format!("{} is not a directory", path.display());
            return Err(io::Error::new(ErrorKind::NotADirectory, message));
        }
        Ok(Self { directory: Arc::new(Handle::open(&path)?), path })
    }

    /// Returns the path at which the directory was opened, absolute and without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn file(&self, name: &str, access: Access) -> io::Result<Box<dyn DiskFile>> {
        check_name(name)?;
        let file = self.directory.file(name, access)?;
        Ok(Box::new(RealFile::new(file, Arc::clone(&self.directory))))
    }
}

impl Disk for RealDisk {
    fn path(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.directory.list()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.file(name, Access::Replace)
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.file(name, Access::Change)
    }

    fn open_to_read(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.file(name, Access::Read)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        check_name(from)?;
        check_name(to)?;
        self.directory.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        check_name(name)?;
        self.directory.remove(name)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.directory.sync()
    }

    fn lock(&self) -> Result<Box<dyn Send + Sync + Debug>, LockError> {
        Ok(Box::new(lock::DirectoryLock::acquire(&self.directory)?))
    }
}

/// Makes the entry of `directory` in its parent durable.
fn sync_entry(directory: &Path) -> io::Result<()> {
    match directory.parent() {
        Some(parent) if cfg!(not(windows)) => File::open(parent)?.sync_all(),
        _ => Ok(()),
    }
}
