//! An open file of a simulated disk.

use super::SimDisk;
use super::fault::{self, Fault, Kind};
use super::operation::{Data, FileChange, FileId, Operation};
use super::unsynced::State as _;
use super::{DiskFile, Inner};
use std::io::{self, ErrorKind};

/// An open file of a simulated disk.
#[derive(Debug)]
pub(super) struct SimFile {
    disk: SimDisk,
    id: FileId,
    /// Whether it was opened for reading only.
    is_read_only: bool,
}

impl SimFile {
    pub(super) fn new(disk: SimDisk, id: FileId, is_read_only: bool) -> Self {
        Self { disk, id, is_read_only }
    }
}

impl DiskFile for SimFile {
    fn len(&self) -> io::Result<u64> {
        let mut inner = self.disk.inner();
        inner.faults.step(Kind::Other)?;
        Ok(inner.contents(self.id).size())
    }

    fn read_at(&self, offset: u64, to: &mut [u8]) -> io::Result<()> {
        let mut inner = self.disk.inner();
        let fault = inner.faults.step(Kind::Read)?;
        let size = inner.contents(self.id).size();
        let end = offset.checked_add(to.len() as u64);
        if end.is_none_or(|end| end > size) && !to.is_empty() {
            let count = to.len();
            let message = format!("a read of {count} bytes at {offset} of a file of {size} bytes");
            return Err(io::Error::new(ErrorKind::UnexpectedEof, message));
        }
        match fault {
            Some(Fault::OldBlock) => inner.before_last_write(self.id, offset, to),
            _ => inner.contents(self.id).read(offset, to),
        }
        if let (Some(Fault::FlipBit { bit }), false) = (fault, to.is_empty()) {
            let bit = bit % (to.len() as u64 * 8);
            to[(bit / 8) as usize] ^= 1 << (bit % 8);
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, parts: &[&[u8]]) -> io::Result<()> {
        if self.is_read_only {
            let message = "the file was opened for reading only";
            return Err(io::Error::new(ErrorKind::PermissionDenied, message));
        }
        let mut inner = self.disk.inner();
        let fault = inner.faults.step(Kind::Write)?;
        let data = Data::new(parts);
        let offset = match fault {
            Some(Fault::Misdirected { offset }) => offset,
            _ => offset,
        };
        if offset.checked_add(data.len()).is_none_or(|end| end > i64::MAX as u64) {
            return Err(ErrorKind::FileTooLarge.into());
        }
        let room = inner.size_max(self.id).saturating_sub(offset);
        let (count, result) = match fault {
            Some(Fault::ShortWrite { bytes }) => (bytes.min(room), Err(fault::error())),
            _ if data.len() > room => (room, Err(fault::full())),
            _ => (data.len(), Ok(())),
        };
        let data = data.first(count);
        if data.len() > 0 {
            inner.apply(Operation::File(self.id, FileChange::Write { offset, data }));
        }
        result
    }

    fn check(&self) -> io::Result<()> {
        if !self.disk.inner().visible.names.values().any(|id| *id == self.id) {
            return Err(io::Error::other("the file was removed while it was open"));
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.inner().sync(Operation::Sync(self.id), Operation::FailedSync(self.id))?;
        self.check()
    }
}

impl Inner {
    /// Copies to `to` what was in the file before the last write to any of the bytes at `offset`.
    fn before_last_write(&self, file: FileId, offset: u64, to: &mut [u8]) {
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
