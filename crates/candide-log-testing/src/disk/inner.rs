//! The contents of a disk, and the operations that were done to it.

use super::contents::Contents;
use super::fault::{self, Faults, Kind};
use super::moment::Moment;
use super::operation::{FileChange, FileId, NameChange, Names, Operation};
use super::unsynced::State as _;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The state of a disk, which the disk, its clones and its open files share.
#[derive(Clone, Debug, Default)]
pub(super) struct Shared(Arc<Mutex<Inner>>);

impl Shared {
    pub(super) fn new(inner: Inner) -> Self {
        Self(Arc::new(Mutex::new(inner)))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state of a disk.
#[derive(Debug, Default)]
pub(super) struct Inner {
    /// The first contents of the disk, all durable.
    pub(super) origin: Image,
    /// The contents that a running program sees.
    pub(super) visible: Image,
    pub(super) operations: Vec<Operation>,
    pub(super) files_made: FileId,
    pub(super) faults: Faults,
    /// The largest number of bytes of all files together.
    pub(super) quota: Option<u64>,
    pub(super) is_locked: bool,
}

/// The entries of a directory, and the files.
#[derive(Clone, Debug, Default)]
pub(super) struct Image {
    pub(super) names: Names,
    pub(super) files: BTreeMap<FileId, Contents>,
}

impl Inner {
    pub(super) fn find(&self, name: &str) -> io::Result<FileId> {
        self.visible.names.get(name).copied().ok_or_else(|| {
            io::Error::new(ErrorKind::NotFound, format!("there is no file {name} on the disk"))
        })
    }

    pub(super) fn contents(&self, file: FileId) -> &Contents {
        &self.visible.files[&file]
    }

    /// Does an operation and notes it.
    pub(super) fn apply(&mut self, operation: Operation) {
        self.visible.apply(&operation);
        self.operations.push(operation);
    }

    /// Notes a sync that succeeds or fails.
    pub(super) fn sync(&mut self, done: Operation, failed: Operation) -> io::Result<()> {
        match self.faults.step(Kind::Sync)? {
            None => {
                self.operations.push(done);
                Ok(())
            }
            Some(_) => {
                self.operations.push(failed);
                Err(fault::error())
            }
        }
    }

    pub(super) fn used(&self) -> u64 {
        self.visible.names.values().map(|file| self.contents(*file).size()).sum()
    }

    /// Returns how many bytes a file can have, as far as there is room.
    pub(super) fn size_max(&self, file: FileId) -> u64 {
        match self.quota {
            Some(quota) => self.contents(file).size() + quota.saturating_sub(self.used()),
            None => u64::MAX,
        }
    }

    /// Copies to `to` the bytes at `offset` as they were before the last write to any of them.
    pub(super) fn before_last_write(&self, file: FileId, offset: u64, to: &mut [u8]) {
        let end = offset + to.len() as u64;
        let overlaps = |operation: &Operation| match operation {
            Operation::File(id, FileChange::Write { offset: start, data }) => {
                *id == file && *start < end && offset < start + data.len()
            }
            _ => false,
        };
        let before = self.operations.iter().rposition(overlaps).unwrap_or(self.operations.len());
        let mut contents = self.origin.files.get(&file).cloned().unwrap_or_default();
        for operation in &self.operations[..before] {
            match operation {
                Operation::File(id, change) if *id == file => contents.apply(change),
                _ => {}
            }
        }
        contents.read(offset, to);
    }
}

impl Image {
    pub(super) fn moment(&self) -> Moment {
        Moment::new(self.names.clone(), self.files.clone())
    }

    pub(super) fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Name(change) => {
                if let NameChange::Create { file, .. } = change {
                    self.files.insert(*file, Contents::default());
                }
                self.names.apply(change);
            }
            Operation::File(file, change) => {
                self.files.entry(*file).or_default().apply(change);
            }
            _ => {}
        }
    }
}
