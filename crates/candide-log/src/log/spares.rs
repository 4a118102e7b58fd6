//! Files for segments to come: made of zeros ahead of demand, or left by segments that are not
//! needed any more.

use crate::directory::Directory;
use crate::disk::{Disk, DiskFile};
use crate::error::is_full;
use crate::format::segment::SegmentHeader;
use crate::names;
use std::collections::VecDeque;
use std::io;

/// The bytes of zeros that are written, and made durable, at once.
const STEP_BYTES: u64 = 1 << 20;
/// The bytes of one part of a write of zeros.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Files that can become segments.
#[derive(Debug)]
pub(crate) struct Spares {
    ready: VecDeque<Spare>,
    /// The file that is being filled with zeros.
    unfinished: Option<Unfinished>,
    /// The number in the name of the next file.
    next: u64,
}

/// A file that can become a segment: all its bytes are on the disk.
#[derive(Debug)]
struct Spare {
    name: String,
    bytes: u64,
}

#[derive(Debug)]
struct Unfinished {
    name: String,
    file: Box<dyn DiskFile>,
    bytes: u64,
    done: u64,
}

impl Spares {
    /// Returns an empty store of files, whose names have numbers from `next` on.
    pub(crate) fn new(next: u64) -> Spares {
        Spares { ready: VecDeque::new(), unfinished: None, next }
    }

    /// Returns the number of files that are ready.
    pub(crate) fn len(&self) -> usize {
        self.ready.len()
    }

    /// Returns a name that no file has.
    pub(crate) fn name(&mut self) -> String {
        self.next += 1;
        names::spare(self.next - 1)
    }

    /// Adds a file that was a segment of `bytes`.
    pub(crate) fn add(&mut self, name: String, bytes: u64) {
        self.ready.push_back(Spare { name, bytes });
    }

    /// Does a part of the work to have a file of `bytes` ready. Returns whether there is one.
    pub(crate) fn prepare(&mut self, disk: &dyn Disk, bytes: u64) -> io::Result<bool> {
        if self.ready.iter().any(|spare| spare.bytes >= bytes) {
            return Ok(true);
        }
        let unfinished = match self.unfinished.take() {
            Some(unfinished) if unfinished.bytes >= bytes => unfinished,
            other => {
                // It is too small for what is needed now.
                if let Some(small) = other {
                    disk.remove(&small.name)?;
                }
                let name = self.name();
                let file = disk.create(&name)?;
                Unfinished { name, file, bytes, done: 0 }
            }
        };
        let unfinished = self.unfinished.insert(unfinished);
        unfinished.write()?;
        if let Err(error) = unfinished.file.sync() {
            // It is not known what the file contains, and no later sync would tell.
            self.abandon(disk);
            return Err(error);
        }
        if unfinished.done < unfinished.bytes {
            return Ok(false);
        }
        if let Some(Unfinished { name, bytes, .. }) = self.unfinished.take() {
            self.ready.push_back(Spare { name, bytes });
        }
        Ok(true)
    }

    /// Removes the file that is being filled.
    pub(crate) fn abandon(&mut self, disk: &dyn Disk) {
        if let Some(abandoned) = self.unfinished.take() {
            let _ = disk.remove(&abandoned.name);
        }
    }

    /// Returns the name of a file with at least `least` bytes, and its size; makes one with `bytes`
    /// bytes, if there is none.
    pub(crate) fn take(
        &mut self,
        disk: &dyn Disk,
        least: u64,
        bytes: u64,
    ) -> io::Result<(String, u64)> {
        loop {
            let found = self.ready.iter().position(|spare| spare.bytes >= least);
            if let Some(spare) = found.and_then(|place| self.ready.remove(place)) {
                return Ok((spare.name, spare.bytes));
            }
            self.prepare(disk, bytes.max(least))?;
        }
    }
}

impl Unfinished {
    /// Writes the next zeros.
    fn write(&mut self) -> io::Result<()> {
        let count = (self.bytes - self.done).min(STEP_BYTES);
        write_zeros(&*self.file, self.done, count)?;
        self.done += count;
        Ok(())
    }
}

/// Writes `count` zeros.
fn write_zeros(file: &dyn DiskFile, offset: u64, count: u64) -> io::Result<()> {
    let whole = vec![&ZEROS[..]; (count / ZEROS.len() as u64) as usize];
    let rest = &ZEROS[..(count % ZEROS.len() as u64) as usize];
    file.write_at(offset, &[&whole[..], &[rest]].concat())
}

/// Makes a file of zeros with this header, gives it the name of the segment, and makes it durable.
pub(crate) fn create(
    disk: &Directory,
    spare: &str,
    header: &SegmentHeader,
) -> io::Result<Box<dyn DiskFile>> {
    let file = disk.create(spare)?;
    let encoded = header.encode();
    file.write_at(0, &[&encoded])?;
    let offset = encoded.len() as u64;
    write_zeros(&*file, offset, header.bytes - offset)?;
    file.sync()?;
    disk.rename(spare, &names::segment(header.number))?;
    disk.sync_names()?;
    Ok(file)
}

/// Makes a spare file the segment with this header. When this returns, the segment is durable.
pub(crate) fn publish(
    disk: &Directory,
    spare: &str,
    header: &SegmentHeader,
) -> Result<Box<dyn DiskFile>, PublishError> {
    let unused = || {
        let file = disk.open(spare)?;
        file.write_at(0, &[&header.encode()])?;
        file.sync()?;
        disk.rename(spare, &names::segment(header.number))?;
        Ok(file)
    };
    let file = unused().map_err(PublishError::Unused)?;
    disk.sync_names().map_err(PublishError::Unknown)?;
    Ok(file)
}

/// The reason why a segment was not published.
#[derive(Debug)]
pub(crate) enum PublishError {
    /// There is no such segment: nothing has changed but the spare file.
    Unused(io::Error),
    /// It is not known whether there is such a segment.
    Unknown(io::Error),
}

impl PublishError {
    /// Returns the failure, and whether there was only no room, and nothing has changed.
    pub(crate) fn into_io(self) -> (io::Error, bool) {
        match self {
            PublishError::Unused(error) => {
                let is_full = is_full(&error);
                (error, is_full)
            }
            PublishError::Unknown(error) => (error, false),
        }
    }
}
