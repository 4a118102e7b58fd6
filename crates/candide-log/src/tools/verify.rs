//! Reading everything in a database, and checking it.

use super::{Source, Stretch};
use crate::checkpoint::merge::{Sink, merge};
use crate::checkpoint::read::{PartReader, parts};
use crate::checkpoint::write::PartError;
use crate::disk::Disk;
use crate::error::{OpenError, StoreError};
use crate::format::long_row::LongRow;
use crate::schema::TableSchema;
use crate::store::recover;

/// The contents that were read, and the damage.
#[derive(Debug, Default)]
pub struct Verified {
    /// The number of tables.
    pub tables: u64,
    /// The bytes of the checkpoint's files.
    pub checkpoint_bytes: u64,
    /// The number of blocks of the log.
    pub blocks: u64,
    /// The bytes of the blocks.
    pub log_bytes: u64,
    /// The number of commit records that an opening would apply.
    pub records: u64,
    /// The number of commit records that an opening would drop.
    pub dropped: u64,
    /// The number of rows that an opening would find; 0 if something is damaged.
    pub rows: u64,
    /// The generation up to which the log can be read.
    pub generation: u64,
    /// The cut up to which that generation can be read.
    pub cut: u64,
    /// The damaged places, at most one of each part of the checkpoint and one of the log. An
    /// opening would be refused unless this is empty.
    pub damage: Vec<OpenError>,
    /// The damage of MANIFEST or of its copy, if the other file is whole. The next opening writes
    /// both anew.
    pub manifest_damage: Option<OpenError>,
}

/// Checks all files of a database that is not in use: every checksum, that everything is there,
/// that the log is continuous, and that its changes can be made. The part of the log that no
/// checkpoint contains is kept in memory.
///
/// # Errors
/// The directory is in use or contains no database, MANIFEST is damaged and so is its copy, or a
/// file cannot be read.
pub fn verify(disk: &dyn Disk) -> Result<Verified, OpenError> {
    let mut source = Source::open(disk)?;
    let manifest_damage = source.manifest_damage.take();
    let manifest = &source.manifest;
    let mut verified = Verified {
        tables: manifest.tables.iter().filter(|table| !table.is_dropped()).count() as u64,
        checkpoint_bytes: recover::checkpoint_bytes(manifest),
        manifest_damage,
        ..Verified::default()
    };
    let mut pending = Vec::new();
    for part in parts(manifest) {
        let read = read_part(disk, &source, part, &mut pending);
        verified.note(read)?;
    }
    let Stretch { steps, replay, damage } = source.replay(pending, None)?;
    verified.note(damage.map_or(Ok(()), Err))?;
    verified.blocks = steps.len() as u64;
    if let Some(replay) = replay {
        verified.records = replay.records();
        verified.dropped = replay.dropped() + replay.batches().pending_count();
        verified.log_bytes = replay.bytes();
        (verified.generation, verified.cut) = replay.last();
    }
    if verified.damage.is_empty() {
        let mut count = Count(0);
        match merge(disk, manifest, &steps, &mut count) {
            Ok(()) => verified.rows = count.0,
            Err(StoreError::Damaged(error)) => verified.damage.push(error),
            Err(StoreError::Io { file, source } | StoreError::Full { file, source }) => {
                return Err(OpenError::Io { file, source });
            }
            Err(error) => return Err(OpenError::Target(Box::new(error))),
        }
    }
    Ok(verified)
}

fn read_part(
    disk: &dyn Disk,
    source: &Source<'_>,
    part: usize,
    pending: &mut Vec<u64>,
) -> Result<(), OpenError> {
    let mut part = PartReader::open(disk, &source.manifest, part)?;
    while let Some(block) = part.next()? {
        block.records().for_each(|record| pending.extend_from_slice(record.words()));
    }
    Ok(())
}

impl Verified {
    /// Notes damage. Other errors are returned.
    fn note(&mut self, result: Result<(), OpenError>) -> Result<(), OpenError> {
        match result {
            Err(error @ (OpenError::Corrupt { .. } | OpenError::Format { .. })) => {
                self.damage.push(error);
                Ok(())
            }
            other => other,
        }
    }
}

/// The number of merged rows.
struct Count(u64);

impl Sink for Count {
    fn row(&mut self, _: &TableSchema, _: LongRow<'_>) -> Result<(), PartError> {
        self.0 += 1;
        Ok(())
    }
}
