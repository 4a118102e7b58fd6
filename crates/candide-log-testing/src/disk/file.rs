//! An open file of a simulated disk.

use super::data::Data;
use super::fault::{self, Fault, Kind};
use super::inner::Shared;
use super::operation::{FileChange, FileId, Operation};
use candide_log::disk::DiskFile;
use std::io::{self, ErrorKind};

/// An open file of a simulated disk.
#[derive(Debug)]
pub(super) struct SimFile {
    disk: Shared,
    id: FileId,
    /// Whether the handle was opened for reading only.
    is_read_only: bool,
}

impl SimFile {
    pub(super) fn new(disk: Shared, id: FileId, is_read_only: bool) -> Self {
        Self { disk, id, is_read_only }
    }
}

impl DiskFile for SimFile {
    fn len(&self) -> io::Result<u64> {
        let mut inner = self.disk.lock();
        inner.faults.step(Kind::Other)?;
        Ok(inner.contents(self.id).size())
    }

    fn read_at(&self, offset: u64, to: &mut [u8]) -> io::Result<()> {
        let mut inner = self.disk.lock();
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
        let mut inner = self.disk.lock();
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
        if !self.disk.lock().visible.names.values().any(|id| *id == self.id) {
            return Err(io::Error::other("the file was removed while it was open"));
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.lock().sync(Operation::Sync(self.id), Operation::FailedSync(self.id))?;
        self.check()
    }
}
