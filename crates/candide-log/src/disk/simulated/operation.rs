//! The operations that change a disk or make changes durable, as they are noted.

use super::contents::Contents;
use super::unsynced::State;
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

/// A file, whatever its name is.
pub(super) type FileId = u64;

/// The name of a file.
pub(super) type Name = Arc<str>;

/// The entries of the directory.
pub(super) type Names = BTreeMap<Name, FileId>;

/// Something that was done to a disk.
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

/// The bytes of a write.
#[derive(Clone, Debug)]
pub(super) enum Data {
    Zeros(u64),
    Bytes(Arc<[u8]>),
}

impl Data {
    /// Returns the bytes of all `parts`, one after the other.
    pub(super) fn new(parts: &[&[u8]]) -> Self {
        if parts.iter().all(|part| is_zero(part)) {
            return Self::Zeros(parts.iter().map(|part| part.len() as u64).sum());
        }
        Self::Bytes(parts.concat().into())
    }

    /// Returns the number of bytes.
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Zeros(length) => *length,
            Self::Bytes(bytes) => bytes.len() as u64,
        }
    }

    /// Returns the first `count` bytes, or all if there are fewer.
    pub(super) fn first(self, count: u64) -> Self {
        match self {
            Self::Zeros(length) => Self::Zeros(length.min(count)),
            Self::Bytes(bytes) if count < bytes.len() as u64 => {
                Self::Bytes(bytes[..count as usize].into())
            }
            whole => whole,
        }
    }

    /// Returns the bytes of `range`, counted from `start`; `None` stands for zeros.
    pub(super) fn bytes(&self, start: u64, range: std::ops::Range<usize>) -> Option<&[u8]> {
        match self {
            Self::Zeros(_) => None,
            Self::Bytes(bytes) => Some(&bytes[start as usize..][range]),
        }
    }
}

/// Returns whether all bytes are zeros.
fn is_zero(bytes: &[u8]) -> bool {
    // Whole words are compared at once.
    bytes.chunks(1024).all(|chunk| chunk == &[0; 1024][..chunk.len()])
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
