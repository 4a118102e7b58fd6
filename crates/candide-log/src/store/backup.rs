//! Copying a database while it is in use.

use super::Store;
use super::files::Files;
use super::manifest;
use super::open;
use super::recover;
use crate::checkpoint::read::{PartReader, parts};
use crate::directory::Directory;
use crate::disk::{Disk, DiskFile};
use crate::error::StoreError;
use crate::format::block::BLOCK_ALIGN;
use crate::format::manifest::Manifest;
use crate::format::segment::SegmentHeader;
use crate::log::reader::{LastBlock, Reader, Stop};
use crate::log::segments::{FIRST_BLOCK, Segment};
use crate::names::{self, DIRECTORY, FileName};
use std::fmt::Debug;
use std::sync::Arc;

/// The bytes that are copied at once.
const COPY_BYTES: u64 = 1 << 20;

/// The contents of a backup.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BackedUp {
    /// The bytes of the backup's files.
    pub bytes: u64,
    /// The generation of the last commits that it contains; 0 if it contains none.
    pub generation: u64,
    /// The cut up to which the copy contains the generation.
    pub cut: u64,
}

impl Store {
    /// Copies the database to another directory, which must be empty: everything that is durable
    /// when the copy begins. The copy opens like a database that has crashed at that moment. The
    /// copy is read back and checked, and its last block is confirmed, so that later damage of that
    /// block is noticed. Meanwhile the log is written as usual, and checkpoints wait.
    ///
    /// # Errors
    /// A file cannot be read or written, or is damaged. The copy may be unfinished then, and cannot
    /// be opened.
    pub fn backup(&self, to: Arc<dyn Disk>) -> Result<BackedUp, StoreError> {
        let shared = &*self.shared;
        let _merging = shared.merging();
        let (to, _lock) = open_target(to)?;
        let (manifest, ends) = {
            // Tables as of the moment at which the log ends: what was committed before a table was
            // dropped is durable, and so in the copy.
            let manifest = shared.manifest();
            let log = shared.log();
            let closed = log.closed().iter().map(|closed| (closed.number, closed.end));
            let ends: Vec<(u64, u64)> = closed.chain([log.durable_end()]).collect();
            (manifest.current().clone(), ends)
        };
        copy(&**shared.disk, manifest, &ends, &to)
    }
}

/// Opens and locks the directory of a copy, which must be empty.
pub(crate) fn open_target(
    to: Arc<dyn Disk>,
) -> Result<(Arc<Directory>, Box<dyn Send + Sync + Debug>), StoreError> {
    let directory = Arc::new(Directory::new(to));
    let lock = open::lock(&**directory)?;
    let files = Files::list(&**directory)?;
    let own = files.names.iter().find(|name| **name != FileName::Lock).map(|name| name.name());
    match files.foreign.or(own) {
        Some(found) => Err(StoreError::NotEmpty { found }),
        None => Ok((directory, lock)),
    }
}

/// Copies the checkpoint that a manifest names, and the segments of the log with these numbers,
/// each up to the place behind its last block. The copy is read back and checked, and its last
/// block is confirmed.
pub(crate) fn copy(
    from: &dyn Disk,
    mut manifest: Manifest,
    ends: &[(u64, u64)],
    directory: &Directory,
) -> Result<BackedUp, StoreError> {
    let to = &**directory;
    // The last segment may contain no block.
    let with_blocks = ends.iter().rfind(|(_, end)| *end > FIRST_BLOCK).or(ends.last());
    manifest.last_segment =
        with_blocks.filter(|(_, end)| *end > FIRST_BLOCK).map_or(0, |end| end.0);
    let mut done = BackedUp::default();
    if let Some(checkpoint) = &manifest.checkpoint {
        for (part, about) in (0..).zip(&checkpoint.parts) {
            let name = names::part(checkpoint.number, part);
            let from = from.open_to_read(&name).map_err(StoreError::io(&name))?;
            let copy = to.create(&name).map_err(StoreError::io(&name))?;
            copy_bytes(&name, &*from, &*copy, 0, about.bytes)?;
            copy.sync().map_err(StoreError::io(&name))?;
            done.bytes += about.bytes;
        }
    }
    for &(number, end) in ends {
        let from = Segment::open(from, Some(&manifest.uuid), number)?;
        done.bytes += copy_segment(&from, to, end)?;
    }
    directory.sync_names().map_err(StoreError::io(DIRECTORY))?;
    if let Some(&(segment, offset)) = with_blocks {
        (done.generation, done.cut) = check(to, &manifest, Stop { segment, offset })?;
    }
    manifest::write(directory, &manifest)?;
    Ok(done)
}

/// Copies a segment up to `end`, as a segment that is not longer than necessary. Returns its bytes.
fn copy_segment(from: &Segment<'_>, to: &dyn Disk, end: u64) -> Result<u64, StoreError> {
    let name = &from.name;
    let copy = to.create(name).map_err(StoreError::io(name))?;
    // There is room for one more block: the end of the log is a place in the segment, where a
    // confirmation may be written.
    let header = SegmentHeader { bytes: end + BLOCK_ALIGN, ..from.header };
    let encoded = header.encode();
    let zeros = [0; BLOCK_ALIGN as usize];
    copy.write_at(0, &[&encoded]).map_err(StoreError::io(name))?;
    copy_bytes(name, from.file()?, &*copy, encoded.len() as u64, end)?;
    copy.write_at(end, &[&zeros]).and_then(|()| copy.sync()).map_err(StoreError::io(name))?;
    Ok(header.bytes)
}

fn copy_bytes(
    name: &str,
    from: &dyn DiskFile,
    to: &dyn DiskFile,
    start: u64,
    end: u64,
) -> Result<(), StoreError> {
    let mut buffer = Vec::new();
    let mut offset = start;
    while offset < end {
        buffer.resize((end - offset).min(COPY_BYTES) as usize, 0);
        let copied =
            from.read_at(offset, &mut buffer).and_then(|()| to.write_at(offset, &[&buffer]));
        copied.map_err(StoreError::io(name))?;
        offset += buffer.len() as u64;
    }
    Ok(())
}

/// Reads the copy, and confirms its last block. Returns the generation and the cut of the last
/// commits in it.
fn check(to: &dyn Disk, manifest: &Manifest, stop: Stop) -> Result<(u64, u64), StoreError> {
    let mut pending = Vec::new();
    for part in parts(manifest) {
        let mut part = PartReader::open(to, manifest, part)?;
        while let Some(block) = part.next()? {
            block.records().for_each(|record| pending.extend_from_slice(record.words()));
        }
    }
    let segments = recover::segments(to, manifest, stop.segment)?;
    let mut replay = recover::replay(segments, manifest, pending, Some(stop))?;
    while replay.next()?.is_some() {}
    confirm(replay.reader())?;
    Ok(replay.last())
}

/// Writes a confirmation behind the last block of a copy, and makes it durable.
fn confirm(reader: &Reader) -> Result<(), StoreError> {
    let Some(LastBlock { segment, offset, header }) = reader.last_block() else { return Ok(()) };
    let of = &reader.segments()[segment];
    let file = of.open_to_write()?;
    let confirmation = header.confirmation(of.header.salt);
    let parts = [&confirmation.encode()[..], confirmation.padding()];
    let written = file.write_at(offset + header.size(), &parts).and_then(|()| file.sync());
    written.map_err(StoreError::io(&of.name))
}
