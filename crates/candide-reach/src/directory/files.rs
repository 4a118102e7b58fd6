//! The calls of a file system that a directory needs, so that a test can cut the power between any
//! two of them.

#![forbid(unsafe_code)]

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The files below one folder. Paths are relative to it, with `/`; the folder itself is `""`.
pub(super) trait Files: Send + Sync + Debug {
    /// Makes a folder in one that exists.
    fn make_folder(&self, path: &str) -> io::Result<()>;
    /// Makes an empty file, whose path must be free.
    fn make_file(&self, path: &str) -> io::Result<Box<dyn NewFile>>;
    /// Gives a file another path, which must be free, beside its own.
    fn link(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &str) -> io::Result<()>;
    /// Makes what is in a folder, though not in folders of it, durable under its names.
    fn sync_folder(&self, path: &str) -> io::Result<()>;
    /// Returns the bytes of a file.
    fn read(&self, path: &str) -> io::Result<Vec<u8>>;
    /// Returns whether there is something at a path.
    fn exists(&self, path: &str) -> io::Result<bool>;
    /// Returns what is in a folder.
    fn entries(&self, path: &str) -> io::Result<Vec<Entry>>;
    /// Returns the time since a file was written.
    fn age(&self, path: &str) -> io::Result<Duration>;
    /// Returns the path of the folder, if it is one of the operating system.
    fn root(&self) -> Option<&Path>;
}

/// A file that is being written.
pub(super) trait NewFile {
    /// Writes bytes behind those written before.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Makes the bytes durable.
    fn sync(&mut self) -> io::Result<()>;
}

/// What is in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) is_folder: bool,
}

/// A folder of the operating system.
#[derive(Debug)]
pub(super) struct RealFiles {
    pub(super) root: PathBuf,
}

impl RealFiles {
    fn path(&self, path: &str) -> PathBuf {
        if path.is_empty() { self.root.clone() } else { self.root.join(path) }
    }
}

impl Files for RealFiles {
    fn root(&self) -> Option<&Path> {
        Some(&self.root)
    }

    fn make_folder(&self, path: &str) -> io::Result<()> {
        fs::create_dir(self.path(path))
    }

    fn make_file(&self, path: &str) -> io::Result<Box<dyn NewFile>> {
        Ok(Box::new(OpenOptions::new().write(true).create_new(true).open(self.path(path))?))
    }

    fn link(&self, from: &str, to: &str) -> io::Result<()> {
        fs::hard_link(self.path(from), self.path(to))
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        fs::remove_file(self.path(path))
    }

    /// Does nothing on Windows, which offers no way to make a folder's entries durable.
    fn sync_folder(&self, path: &str) -> io::Result<()> {
        if cfg!(windows) { Ok(()) } else { File::open(self.path(path))?.sync_all() }
    }

    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        fs::read(self.path(path))
    }

    fn exists(&self, path: &str) -> io::Result<bool> {
        match fs::symlink_metadata(self.path(path)) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn entries(&self, path: &str) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(self.path(path))? {
            let entry = entry?;
            // A name that is not Unicode is none of a place.
            if let Ok(name) = entry.file_name().into_string() {
                entries.push(Entry { name, is_folder: entry.file_type()?.is_dir() });
            }
        }
        Ok(entries)
    }

    fn age(&self, path: &str) -> io::Result<Duration> {
        let written = fs::symlink_metadata(self.path(path))?.modified()?;
        // A time in the future is that of another machine's clock.
        Ok(written.elapsed().unwrap_or_default())
    }
}

impl NewFile for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}
