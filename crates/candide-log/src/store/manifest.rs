//! The files `MANIFEST` and `MANIFEST.copy` of a database that is open: appending entries to them,
//! and writing them anew.

mod read;

pub(crate) use read::{Found, read};

use crate::directory::Directory;
use crate::disk::DiskFile;
use crate::error::{StoreError, is_full};
use crate::format::Malformed;
use crate::format::manifest::{BASE_BYTES_MAX, Entry, Manifest, file_bytes_max};
use crate::names::{DIRECTORY, MANIFEST, MANIFEST_COPY, MANIFEST_COPY_NEW, MANIFEST_NEW};
use crate::schema::TableSchema;
use std::collections::HashSet;
use std::io;
use std::sync::Arc;

/// The names of the two files, in the order in which they are written.
const NAMES: [&str; 2] = [MANIFEST, MANIFEST_COPY];
/// The most bytes of a base after a table has been added or changed. There is room for the list of
/// a checkpoint's parts beside them, so a checkpoint and the next opening can write the base.
const TABLES_BYTES_MAX: u64 = if cfg!(test) { 1 << 20 } else { BASE_BYTES_MAX - (16 << 20) };
/// The names that they have until they are in force.
const NEW_NAMES: [&str; 2] = [MANIFEST_NEW, MANIFEST_COPY_NEW];

/// `MANIFEST` and its copy, of an open database.
#[derive(Debug)]
pub(crate) struct ManifestFile {
    disk: Arc<Directory>,
    current: Manifest,
    /// The names of the tables that are in use.
    names: HashSet<String>,
    /// The two files, if they have the same bytes. Otherwise `None`, and the next change writes
    /// them anew.
    files: Option<Pair>,
    /// The failure after which it is not known which contents are in force.
    failure: Option<Arc<io::Error>>,
}

/// The two files.
#[derive(Debug)]
pub(crate) struct Pair {
    files: [Box<dyn DiskFile>; 2],
    /// The bytes of each.
    bytes: u64,
    /// The largest number of bytes of each.
    most: u64,
}

impl ManifestFile {
    /// Returns the files with the contents that were written last.
    pub(crate) fn new(disk: Arc<Directory>, current: Manifest, files: Pair) -> ManifestFile {
        let in_use = current.tables.iter().filter(|table| table.is_in_use());
        let names = in_use.map(|table| table.name.clone()).collect();
        ManifestFile { disk, current, names, files: Some(files), failure: None }
    }

    /// Returns the contents in force.
    pub(crate) fn current(&self) -> &Manifest {
        &self.current
    }

    /// Returns whether a table in use has this name.
    pub(crate) fn has_table(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Returns the failure after which the contents cannot be changed.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        match &self.failure {
            Some(failure) => Err(StoreError::Failed(Arc::clone(failure))),
            None => Ok(()),
        }
    }

    /// Appends an entry, or writes the files anew with it if there is no room. When this returns,
    /// the change is durable.
    ///
    /// # Errors
    /// If this fails, the contents before are still in force, and the next change writes the files
    /// anew. If the process ends before that, the change may be there. Besides, as those of
    /// [`replace`](ManifestFile::replace).
    pub(crate) fn add(&mut self, entry: Entry) -> Result<(), StoreError> {
        self.check()?;
        let bytes = entry.encode(&self.current).map_err(unwritable)?;
        let name_of = |table: &TableSchema| table.is_in_use().then(|| table.name.clone());
        let (before, after) = match &entry {
            Entry::Table(table) => (None, name_of(table)),
            Entry::Changed(table) => {
                (self.current.table(table.number).and_then(name_of), name_of(table))
            }
            Entry::LastSegment(_) => (None, None),
        };
        let most = match &entry {
            Entry::Table(_) => TABLES_BYTES_MAX,
            Entry::Changed(table) if !table.is_dropped() => TABLES_BYTES_MAX,
            Entry::Changed(_) | Entry::LastSegment(_) => BASE_BYTES_MAX,
        };
        match self.files.take() {
            Some(mut files) if files.bytes + bytes.len() as u64 <= files.most => {
                files.append(&bytes)?;
                self.files = Some(files);
                self.current.apply(entry);
            }
            files => {
                self.files = files;
                self.replace_within(most, |manifest| manifest.apply(entry))?;
            }
        }
        if let Some(before) = before {
            self.names.remove(&before);
        }
        self.names.extend(after);
        Ok(())
    }

    /// Writes the files anew with other contents. When this returns, they are durable.
    ///
    /// # Errors
    /// If the contents cannot be written, those before are still in force. If they were written,
    /// and it is not known whether they are durable, this and every later call returns
    /// [`StoreError::Failed`].
    pub(crate) fn replace(&mut self, change: impl FnOnce(&mut Manifest)) -> Result<(), StoreError> {
        self.replace_within(BASE_BYTES_MAX, change)
    }

    /// Writes the files anew, with the contents in force, if a change has failed.
    ///
    /// # Errors
    /// As [`replace`](ManifestFile::replace).
    pub(crate) fn settle(&mut self) -> Result<(), StoreError> {
        match self.files {
            Some(_) => self.check(),
            None => self.replace(|_| {}),
        }
    }

    /// As [`replace`](ManifestFile::replace), with contents of at most this many bytes.
    fn replace_within(
        &mut self,
        most: u64,
        change: impl FnOnce(&mut Manifest),
    ) -> Result<(), StoreError> {
        self.check()?;
        let mut next = self.current.clone();
        change(&mut next);
        next.sequence = self.current.sequence + 1;
        let files = write_new(&self.disk, &next, most)?;
        // Some systems do not replace an open file.
        self.files = None;
        if let Err(error) = put_in_force(&self.disk) {
            let error = Arc::new(error);
            self.failure = Some(Arc::clone(&error));
            return Err(StoreError::Failed(error));
        }
        self.current = next;
        self.files = Some(files);
        Ok(())
    }
}

impl Pair {
    /// Appends an entry to one file after the other. After an error, a part of the entry may be
    /// there.
    fn append(&mut self, entry: &[u8]) -> Result<(), StoreError> {
        for (name, file) in NAMES.iter().zip(&self.files) {
            let appended = file.write_at(self.bytes, &[entry]).and_then(|()| file.sync());
            appended.map_err(StoreError::io(name))?;
        }
        self.bytes += entry.len() as u64;
        Ok(())
    }
}

/// Writes both files before anything rests on them, even if they exist: the system may show
/// contents that a failed sync has lost. When this returns, both files are durable, and so are the
/// names of all other files, so an old name cannot come back when another file gets it.
pub(crate) fn write(disk: &Directory, manifest: &Manifest) -> Result<Pair, StoreError> {
    let files = write_new(disk, manifest, BASE_BYTES_MAX)?;
    put_in_force(disk).map_err(StoreError::io(DIRECTORY))?;
    Ok(files)
}

/// Writes contents of at most `most` bytes to temporary files beside the two files of MANIFEST, and
/// makes them durable.
fn write_new(disk: &Directory, manifest: &Manifest, most: u64) -> Result<Pair, StoreError> {
    let base = manifest.encode().map_err(unwritable)?;
    if base.len() as u64 > most {
        let bytes = base.len();
        let what = format!("the tables would have {bytes} bytes; {most} are the most");
        return Err(unwritable(Malformed::new(0, what)));
    }
    let write = |name: &str| {
        let file = disk.create(name)?;
        file.write_at(0, &[&base])?;
        file.sync()?;
        Ok(file)
    };
    let write = |name| {
        write(name).map_err(|error| {
            if is_full(&error) {
                // The new files may have been written in part, and take room that others need.
                let _ = NEW_NAMES.map(|name| disk.create(name));
            }
            StoreError::io(name)(error)
        })
    };
    let [first, second] = NEW_NAMES;
    let files = [write(first)?, write(second)?];
    let bytes = base.len() as u64;
    // What the entries add to a base is not longer than they are.
    Ok(Pair { files, bytes, most: file_bytes_max(bytes).min(TABLES_BYTES_MAX) })
}

/// Puts the new files in the places of the two. After a crash, the file is the old one or the new
/// one.
fn put_in_force(disk: &Directory) -> io::Result<()> {
    for (new, name) in NEW_NAMES.iter().zip(NAMES) {
        disk.rename(new, name)?;
    }
    disk.sync_names()
}

/// Returns the error of contents that no MANIFEST can have.
fn unwritable(error: Malformed) -> StoreError {
    StoreError::io(MANIFEST)(io::Error::new(io::ErrorKind::InvalidInput, error))
}
