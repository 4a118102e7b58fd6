//! A directory and its files, found by the directory's path. An open handle keeps the directory in
//! place: the operating system does not move or remove a directory that is open and not shared for
//! that purpose, nor the file `LOCK`.

use super::access::Access;
use super::identity::Identity;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::windows::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The sharing of an open file: other processes may read and write the file, but not rename or
/// remove it (`FILE_SHARE_READ`, `FILE_SHARE_WRITE`).
const SHARED: u32 = 0x1 | 0x2;
/// Without this flag directories cannot be opened (`FILE_FLAG_BACKUP_SEMANTICS`).
const DIRECTORIES_TOO: u32 = 0x0200_0000;

/// An open directory.
#[derive(Debug)]
pub(super) struct Handle {
    path: PathBuf,
    _open: File,
}

impl Handle {
    /// Opens the directory at the canonical path `path`.
    pub(super) fn open(path: &Path) -> io::Result<Handle> {
        let mut options = OpenOptions::new();
        options.read(true).share_mode(SHARED).custom_flags(DIRECTORIES_TOO);
        Ok(Handle { _open: options.open(path)?, path: path.to_path_buf() })
    }

    /// Opens a file of the directory.
    pub(super) fn file(&self, name: &str, access: Access) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(access != Access::Read);
        if access == Access::ChangeOrCreate {
            options.share_mode(SHARED);
        }
        options.create(matches!(access, Access::ChangeOrCreate | Access::Replace));
        options.truncate(access == Access::Replace).open(self.path.join(name))
    }

    /// Returns the names of all files that are no directories.
    pub(super) fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            if !entry.file_type()?.is_dir() {
                names.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        Ok(names)
    }

    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    /// Does nothing: the operating system offers no way to make names durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    /// Does nothing: the directory cannot be removed, and the standard library has no function that
    /// finds whether a file was.
    pub(super) fn check_file(&self, _: &File) -> io::Result<()> {
        Ok(())
    }

    /// Returns the identity of the directory.
    pub(super) fn identity(&self) -> io::Result<Identity> {
        Ok(Identity { path: self.path.clone() })
    }
}
