//! The durable and the other changes of a disk, after a number of operations.

use super::contents::Contents;
use super::operation::{FileId, Name, NameChange, Names, Operation};
use super::unsynced::Unsynced;
use std::collections::{BTreeMap, BTreeSet};

/// The durable and the other changes of a disk, after a number of operations.
#[derive(Clone, Debug)]
pub(super) struct Moment {
    pub(super) names: Unsynced<Names>,
    pub(super) files: BTreeMap<FileId, Unsynced<Contents>>,
}

impl Moment {
    /// Returns the moment before the first operation: everything is durable.
    pub(super) fn new(names: Names, files: BTreeMap<FileId, Contents>) -> Self {
        let files = files.into_iter().map(|(id, contents)| (id, Unsynced::new(contents)));
        Self { names: Unsynced::new(names), files: files.collect() }
    }

    /// Moves on by one operation.
    pub(super) fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Name(change) => {
                if let NameChange::Create { file, .. } = change {
                    self.files.insert(*file, Unsynced::new(Contents::default()));
                }
                self.names.push(change.clone());
            }
            Operation::File(file, change) => self.file(*file, |file| file.push(change.clone())),
            Operation::Sync(file) => self.file(*file, Unsynced::sync),
            Operation::FailedSync(file) => self.file(*file, Unsynced::fail_sync),
            Operation::SyncDirectory => {
                self.names.sync();
                self.forget();
            }
            Operation::FailedSyncDirectory => self.names.fail_sync(),
        }
    }

    /// Returns a name that the file has or had, for messages.
    pub(super) fn name(&self, file: FileId) -> Name {
        let durable = self.names.durable.iter().find(|(_, id)| **id == file);
        let created = self.names.changes.iter().find_map(|later| match &later.change {
            NameChange::Create { name, file: id } if *id == file => Some(name),
            _ => None,
        });
        durable.map(|(name, _)| name).or(created).cloned().unwrap_or_else(|| "a file".into())
    }

    /// Changes a file, unless the file has been removed durably and only a program that has it open
    /// still writes to it.
    fn file(&mut self, file: FileId, change: impl FnOnce(&mut Unsynced<Contents>)) {
        if let Some(file) = self.files.get_mut(&file) {
            change(file);
        }
    }

    /// Forgets the files that can have no name after a crash.
    fn forget(&mut self) {
        let mut named: BTreeSet<FileId> = self.names.durable.values().copied().collect();
        for later in &self.names.changes {
            if let NameChange::Create { file, .. } = later.change {
                named.insert(file);
            }
        }
        self.files.retain(|file, _| named.contains(file));
    }
}
