//! The noted operations that change a disk or make changes durable.

use super::contents::Contents;
use super::data::Data;
use super::unsynced::State;
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

/// A file, independently of its name.
pub(super) type FileId = u64;

/// The name of a file.
pub(super) type Name = Arc<str>;

/// The entries of the directory.
pub(super) type Names = BTreeMap<Name, FileId>;

/// An operation that changed a disk.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    Name(NameChange),
    File(FileId, FileChange),
    Sync(FileId),
    /// A sync of a file that failed.
    FailedSync(FileId),
    SyncDirectory,
    /// A sync of the directory that failed.
    FailedSyncDirectory,
}

/// A change of the directory.
#[derive(Clone, Debug)]
pub(super) enum NameChange {
    Create { name: Name, file: FileId },
    Rename { from: Name, to: Name },
    Remove { name: Name },
}

/// A change of a file.
#[derive(Clone, Debug)]
pub(super) enum FileChange {
    Write { offset: u64, data: Data },
    Empty,
}

impl NameChange {
    /// Returns whether there is something to change: a renamed or removed file has an entry.
    pub(super) fn is_applicable(&self, names: &Names) -> bool {
        match self {
            Self::Create { .. } => true,
            Self::Rename { from: name, .. } | Self::Remove { name } => names.contains_key(name),
        }
    }
}

impl State for Names {
    type Change = NameChange;

    /// Applies the change, if it is applicable.
    fn apply(&mut self, change: &NameChange) {
        match change {
            NameChange::Create { name, file } => {
                self.insert(name.clone(), *file);
            }
            NameChange::Rename { from, to } => {
                if let Some(file) = self.remove(from) {
                    self.insert(to.clone(), file);
                }
            }
            NameChange::Remove { name } => {
                self.remove(name);
            }
        }
    }
}

impl State for Contents {
    type Change = FileChange;

    fn apply(&mut self, change: &FileChange) {
        match change {
            FileChange::Write { offset, data } => {
                self.store(*offset, data, 0..data.len());
                self.grow(*offset + data.len());
            }
            FileChange::Empty => *self = Self::default(),
        }
    }
}

impl Display for NameChange {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create { name, file } => write!(f, "create {name} as file {file}"),
            Self::Rename { from, to } => write!(f, "rename {from} to {to}"),
            Self::Remove { name } => write!(f, "remove {name}"),
        }
    }
}

impl Display for FileChange {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write { offset, data } => {
                let zeros = if matches!(data, Data::Zeros(_)) { " with zeros" } else { "" };
                write!(f, "write {offset}..{}{zeros}", offset + data.len())
            }
            Self::Empty => write!(f, "empty"),
        }
    }
}

impl Display for Operation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(change) => change.fmt(f),
            Self::File(file, change) => write!(f, "file {file}: {change}"),
            Self::Sync(file) => write!(f, "file {file}: sync"),
            Self::FailedSync(file) => write!(f, "file {file}: sync fails"),
            Self::SyncDirectory => write!(f, "sync the directory"),
            Self::FailedSyncDirectory => write!(f, "sync of the directory fails"),
        }
    }
}
