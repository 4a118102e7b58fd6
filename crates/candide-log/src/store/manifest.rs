//! The file `MANIFEST`: reading it, and replacing it as a whole.

use crate::directory::Directory;
use crate::disk::Disk;
use crate::error::{OpenError, StoreError, is_full};
use crate::format::Fault;
use crate::format::manifest::Manifest;
use crate::log::segments::damaged;
use crate::names::{DIRECTORY, MANIFEST, MANIFEST_NEW};
use std::io;
use std::sync::Arc;

/// Reads `MANIFEST`. `None` if there is no such file.
pub(crate) fn read(disk: &dyn Disk) -> Result<Option<Manifest>, OpenError> {
    let file = match disk.open_to_read(MANIFEST) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(OpenError::io(MANIFEST))?,
    };
    let length = file.len().map_err(OpenError::io(MANIFEST))?;
    let mut bytes = vec![0; length as usize];
    file.read_at(0, &mut bytes).map_err(OpenError::io(MANIFEST))?;
    match Manifest::decode(&bytes) {
        Ok(manifest) => Ok(Some(manifest)),
        Err(error) if error.fault == Fault::Magic => Err(OpenError::NotADatabase {
            found: format!("a file {MANIFEST} that no database has written, or that is damaged"),
        }),
        Err(error) => Err(damaged(MANIFEST, error)),
    }
}

/// `MANIFEST` of a database that is open.
#[derive(Debug)]
pub(crate) struct ManifestFile {
    disk: Arc<Directory>,
    current: Manifest,
    /// The failure after which it is not known which one is in force.
    failure: Option<Arc<io::Error>>,
}

impl ManifestFile {
    /// Returns the file with the contents that were read or written last.
    pub(crate) fn new(disk: Arc<Directory>, current: Manifest) -> ManifestFile {
        ManifestFile { disk, current, failure: None }
    }

    /// Returns what is in force.
    pub(crate) fn current(&self) -> &Manifest {
        &self.current
    }

    /// Returns the failure after which the contents cannot be replaced.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        match &self.failure {
            Some(failure) => Err(StoreError::Failed(Arc::clone(failure))),
            None => Ok(()),
        }
    }

    /// Puts other contents in force. When this returns, they are durable.
    ///
    /// # Errors
    /// If the contents cannot be written, those before are still in force. If they were written,
    /// and it is not known whether they are durable, this and every later call returns
    /// [`StoreError::Failed`].
    pub(crate) fn replace(&mut self, change: impl FnOnce(&mut Manifest)) -> Result<(), StoreError> {
        self.check()?;
        let mut next = self.current.clone();
        change(&mut next);
        next.sequence += 1;
        write_new(&self.disk, &next)?;
        if let Err(error) = put_in_force(&self.disk) {
            let error = Arc::new(error);
            self.failure = Some(Arc::clone(&error));
            return Err(StoreError::Failed(error));
        }
        self.current = next;
        Ok(())
    }
}

/// Writes `MANIFEST` anew before anything rests on it: what the system shows may be what a failed
/// sync has lost. It is durable when this returns, and so are the names of all other files: a name
/// that is given to another file later cannot come back.
pub(crate) fn renew(disk: &Directory, manifest: &mut Manifest) -> Result<(), StoreError> {
    manifest.sequence += 1;
    write_new(disk, manifest)?;
    disk.rename(MANIFEST_NEW, MANIFEST).map_err(StoreError::io(MANIFEST))?;
    disk.sync_names().map_err(StoreError::io(DIRECTORY))
}

/// Writes the first `MANIFEST` of a database.
pub(crate) fn create(disk: &Directory, manifest: &Manifest) -> Result<(), StoreError> {
    write_new(disk, manifest)?;
    put_in_force(disk).map_err(StoreError::io(DIRECTORY))
}

/// Writes contents to a file beside `MANIFEST`, and makes them durable.
fn write_new(disk: &Directory, manifest: &Manifest) -> Result<(), StoreError> {
    let bytes = manifest.encode().map_err(|error| {
        StoreError::Damaged(OpenError::corrupt(MANIFEST, error.offset, error.what))
    })?;
    let written = disk.create(MANIFEST_NEW).and_then(|file| {
        file.write_at(0, &[&bytes])?;
        file.sync()
    });
    written.map_err(|error| {
        if is_full(&error) {
            // Part of it may have been written. It is in the way of what needs room.
            let _ = disk.create(MANIFEST_NEW);
        }
        StoreError::io(MANIFEST_NEW)(error)
    })
}

/// Puts the new file in the place of `MANIFEST`.
fn put_in_force(disk: &Directory) -> io::Result<()> {
    disk.rename(MANIFEST_NEW, MANIFEST)?;
    disk.sync_names()
}
