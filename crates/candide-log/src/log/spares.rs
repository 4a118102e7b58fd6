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
pub(crate) const STEP_BYTES: u64 = 1 << 20;
/// The bytes of one part of a write of zeros.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Files that can become segments.
#[derive(Debug)]
pub(crate) struct Spares {
    ready: VecDeque<Spare>,
    /// The file that is being filled with zeros, a step at a time.
    unfinished: Option<Spare>,
    /// The number in the name of the next file.
    next: u64,
}

/// A file that can become a segment.
#[derive(Debug)]
pub(crate) struct Spare {
    name: String,
    /// The file, if it is open. A file of zeros stays open, since the last zeros may not be
    /// durable.
    file: Option<Box<dyn DiskFile>>,
    /// The bytes that a segment can have. All of them are on the disk when the segment is
    /// published.
    bytes: u64,
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
    pub(crate) fn add_segment(&mut self, name: String, bytes: u64) {
        self.add(Spare { name, file: None, bytes });
    }

    /// Adds a file that is ready.
    pub(crate) fn add(&mut self, spare: Spare) {
        self.ready.push_back(spare);
    }

    /// Returns a file to be filled: the unfinished file, or only a name for a new one.
    pub(crate) fn reserve(&mut self) -> Spare {
        self.unfinished.take().unwrap_or_else(|| Spare { name: self.name(), file: None, bytes: 0 })
    }

    /// Fills a part of a file of `bytes`, and makes that part durable.
    pub(crate) fn prepare(&mut self, disk: &dyn Disk, bytes: u64) -> io::Result<()> {
        if self.ready.iter().any(|spare| spare.bytes >= bytes) {
            return Ok(());
        }
        let reserved = self.reserve();
        let unfinished = self.unfinished.insert(reserved);
        unfinished.write_step(disk, bytes)?;
        if let Err(error) = unfinished.sync() {
            // The contents of the file are unknown, and no later sync would report that.
            self.abandon(disk);
            return Err(error);
        }
        self.ready.extend(self.unfinished.take_if(|unfinished| unfinished.bytes >= bytes));
        Ok(())
    }

    /// Removes the file that is being filled.
    pub(crate) fn abandon(&mut self, disk: &dyn Disk) {
        if let Some(abandoned) = self.unfinished.take() {
            abandoned.remove(disk);
        }
    }

    /// Returns a file with at least `least` bytes, which may be the filled part of the unfinished
    /// one.
    pub(crate) fn take(&mut self, least: u64) -> Option<Spare> {
        let found = self.ready.iter().position(|spare| spare.bytes >= least);
        found
            .and_then(|place| self.ready.remove(place))
            .or_else(|| self.unfinished.take_if(|unfinished| unfinished.bytes >= least))
    }
}

impl Spare {
    /// Returns the bytes that a segment can have.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Fills the file with zeros, up to `bytes`. Each step but the last one is made durable. The
    /// last one becomes durable together with the header of the segment.
    pub(crate) fn fill(&mut self, disk: &dyn Disk, bytes: u64) -> io::Result<()> {
        while self.bytes < bytes {
            self.write_step(disk, bytes)?;
            if self.bytes < bytes {
                self.sync()?;
            }
        }
        Ok(())
    }

    /// Writes the next zeros, up to `bytes`. Creates the file if there is only a name.
    fn write_step(&mut self, disk: &dyn Disk, bytes: u64) -> io::Result<()> {
        let file = match self.file.take() {
            Some(file) => file,
            None => disk.create(&self.name)?,
        };
        let file = self.file.insert(file);
        let count = bytes.saturating_sub(self.bytes).min(STEP_BYTES);
        write_zeros(&**file, self.bytes, count)?;
        self.bytes += count;
        Ok(())
    }

    /// Makes the zeros durable.
    fn sync(&self) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), |file| file.sync())
    }

    /// Removes the file. If that fails, the next opening removes it.
    pub(crate) fn remove(&self, disk: &dyn Disk) {
        let _ = disk.remove(&self.name);
    }

    /// Makes the file the segment with this header. When this returns, the segment is durable.
    pub(crate) fn publish(
        &mut self,
        disk: &Directory,
        header: &SegmentHeader,
    ) -> Result<Box<dyn DiskFile>, PublishError> {
        let file = self.file.take();
        let unused = || {
            let file = file.map_or_else(|| disk.open(&self.name), Ok)?;
            file.write_at(0, &[&header.encode()])?;
            file.sync()?;
            disk.rename(&self.name, &names::segment(header.number))?;
            Ok(file)
        };
        let file = unused().map_err(PublishError::Unused)?;
        disk.sync_names().map_err(PublishError::Unknown)?;
        Ok(file)
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

/// The reason why a segment was not published.
#[derive(Debug)]
pub(crate) enum PublishError {
    /// The segment does not exist: only the spare file has changed.
    Unused(io::Error),
    /// It is unknown whether the segment exists.
    Unknown(io::Error),
}

impl PublishError {
    /// Returns the failure, and whether it was only a lack of room that has changed nothing.
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
