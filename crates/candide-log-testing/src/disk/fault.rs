//! The faults of the disk that a test can order.

use std::io::{self, ErrorKind};

/// A fault of a disk at one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Any operation: it is not done, and returns an error of kind [`ErrorKind::Other`].
    Error,
    /// A write: it writes at most this number of bytes and then returns an error of kind
    /// [`ErrorKind::Other`].
    ShortWrite {
        /// The number of bytes.
        bytes: u64,
    },
    /// A creation or a write: it is not done, and returns an error of kind
    /// [`ErrorKind::StorageFull`].
    StorageFull,
    /// A sync of a file or of the directory: it returns an error of kind [`ErrorKind::Other`].
    /// The running program still sees the changes since the last sync. A crash may lose any of
    /// them, although later syncs return no error.
    SyncLoses,
    /// A read: one bit of the returned bytes is flipped.
    FlipBit {
        /// The bit's number, counted from the first byte's lowest bit. The number is taken modulo
        /// the number of bits that are read.
        bit: u64,
    },
    /// A write: the bytes go to another place of the same file, and there is no error.
    Misdirected {
        /// The place, in bytes from the beginning.
        offset: u64,
    },
    /// A read: it returns the bytes as they were before the last write to any of them.
    OldBlock,
}

/// A kind of operation, as far as faults differ by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Create,
    Read,
    Write,
    Sync,
    Other,
}

impl Fault {
    fn applies_to(self, kind: Kind) -> bool {
        match self {
            Self::Error => true,
            Self::StorageFull => matches!(kind, Kind::Create | Kind::Write),
            Self::ShortWrite { .. } | Self::Misdirected { .. } => kind == Kind::Write,
            Self::SyncLoses => kind == Kind::Sync,
            Self::FlipBit { .. } | Self::OldBlock => kind == Kind::Read,
        }
    }
}

/// The faults that have been asked for and have not occurred.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// Each with the number of operations until it occurs, of those that it applies to.
    pending: Vec<(u64, Fault)>,
}

impl Faults {
    /// Asks for a fault at the `n`-th operation from now that it applies to.
    pub(super) fn add(&mut self, n: u64, fault: Fault) {
        assert!(n > 0, "the next operation is the first one");
        self.pending.push((n, fault));
    }

    /// Returns the number of faults that have not occurred.
    pub(super) fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Forgets the faults that have not occurred.
    pub(super) fn clear(&mut self) {
        self.pending.clear();
    }

    /// Counts an operation. Returns the fault that occurs at it, if it is not simply an error.
    pub(super) fn step(&mut self, kind: Kind) -> io::Result<Option<Fault>> {
        for (left, fault) in &mut self.pending {
            if fault.applies_to(kind) {
                *left -= 1;
            }
        }
        let Some(due) = self.pending.iter().position(|(left, _)| *left == 0) else {
            return Ok(None);
        };
        let (_, fault) = self.pending.remove(due);
        // Of faults at the same operation only one occurs.
        self.pending.retain(|(left, _)| *left > 0);
        match fault {
            Fault::Error => Err(error()),
            Fault::StorageFull => Err(full()),
            fault => Ok(Some(fault)),
        }
    }
}

/// Returns the error of an operation that fails because a test has asked for it.
pub(super) fn error() -> io::Error {
    io::Error::other("the simulated disk fails")
}

/// Returns the error of an operation for which there is no room.
pub(super) fn full() -> io::Error {
    io::Error::new(ErrorKind::StorageFull, "the simulated disk is full")
}
