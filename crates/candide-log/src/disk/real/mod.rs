//! A directory of the operating system.

mod file;
mod lock;

use super::{Disk, DiskFile, LockError, check_name};
use file::RealFile;
use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// A directory of the operating system.
///
/// The path is resolved when the directory is opened, so a change of the working directory does not
/// matter. Folders in it are not listed, and a name that is not Unicode is listed with replacement
/// characters. On Windows the operating system offers no way to make a directory's entries durable,
/// and [`Disk::sync_directory`] does nothing.
#[derive(Debug)]
pub struct RealDisk {
    path: PathBuf,
    /// The open directory, so that an error of the device since then is reported by the next sync.
    #[cfg(not(windows))]
    directory: File,
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
            // The directory may have been made by a process that ended before it synced the entry.
            // A parent that this process may not read was not written by this process either.
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
        Ok(Self {
            #[cfg(not(windows))]
            directory: File::open(&path)?,
            path,
        })
    }

    /// Returns the path of the directory, absolute and without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn place(&self, name: &str) -> io::Result<PathBuf> {
        check_name(name)?;
        Ok(self.path.join(name))
    }
}

impl Disk for RealDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            if !entry.file_type()?.is_dir() {
                names.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        Ok(names)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        Ok(Box::new(RealFile::new(options.open(self.place(name)?)?)))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new().read(true).write(true).open(self.place(name)?)?;
        Ok(Box::new(RealFile::new(file)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.place(from)?, self.place(to)?)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.place(name)?)
    }

    #[cfg(not(windows))]
    fn sync_directory(&self) -> io::Result<()> {
        self.directory.sync_all()
    }

    #[cfg(windows)]
    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self) -> Result<Box<dyn Send + Sync + Debug>, LockError> {
        Ok(Box::new(lock::DirectoryLock::acquire(&self.path)?))
    }
}

/// Makes the entry of `directory` in its parent durable.
fn sync_entry(directory: &Path) -> io::Result<()> {
    match directory.parent() {
        Some(parent) if cfg!(not(windows)) => File::open(parent)?.sync_all(),
        _ => Ok(()),
    }
}
