//! A copy of the contents before a damaged place of the log, or before a chosen cut.

use super::{Source, Stretch};
use crate::checkpoint::merge::merge;
use crate::checkpoint::read::read_pending;
use crate::checkpoint::write::CheckpointWriter;
use crate::directory::Directory;
use crate::disk::Disk;
use crate::error::{OpenError, StoreError};
use crate::format::Uuid;
use crate::format::block::BLOCK_ALIGN;
use crate::format::checkpoint::{PART_BYTES, PartHeader};
use crate::format::commit::records;
use crate::format::manifest::{Checkpoint, Manifest};
use crate::format::segment::GenerationEnd;
use crate::log::replay::Step;
use crate::log::segments::{FIRST_BLOCK, Segment};
use crate::log::writer::{Beginning, Log};
use crate::names::FileName;
use crate::random;
use crate::store::backup::open_target;
use crate::store::checkpoint::remove_parts;
use crate::store::{StoreOptions, manifest, open, recover};
use std::sync::Arc;

/// A cut at which a copy ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Until {
    /// The generation.
    pub generation: u64,
    /// The cut of that generation. Commits with a larger stamp are left out, and so are later
    /// generations.
    pub cut: u64,
}

/// The contents of a repaired copy, and the blocks that it lacks.
#[derive(Debug)]
pub struct Repaired {
    /// The number of rows of the copy.
    pub rows: u64,
    /// The generation of the last commits that the copy contains; 0 if it contains none.
    pub generation: u64,
    /// The cut up to which the copy contains the generation.
    pub cut: u64,
    /// The damage at which the copy ends. `None` if there is none before the chosen cut.
    pub damage: Option<OpenError>,
    /// The readable blocks of the log of which the copy contains nothing: those behind the damage
    /// or the chosen cut.
    pub lost: Vec<LostBlock>,
}

/// A block that a copy lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostBlock {
    /// The file.
    pub file: String,
    /// The place in bytes.
    pub offset: u64,
    /// The generation.
    pub generation: u64,
    /// The cut that the block closes.
    pub cut: u64,
    /// The number of its commit records.
    pub records: u64,
}

/// Makes a copy of a database that is not in use, in an empty directory. The copy contains the
/// commits up to `until`, or up to the first place of the log that is damaged or contains a change
/// that cannot be made. The copy is a complete database, with a checkpoint and an empty log. The
/// part of the log that no checkpoint contains is kept in memory.
///
/// # Errors
/// A directory is in use, the first one contains no database or the other is not empty, or a file
/// cannot be read or written. MANIFEST or the checkpoint is damaged, or contains more than is
/// wanted: only a backup helps then.
pub fn repair(
    from: &dyn Disk,
    to: Arc<dyn Disk>,
    until: Option<Until>,
) -> Result<Repaired, StoreError> {
    let source = Source::open(from)?;
    let (to, _lock) = open_target(to)?;
    check_until(&source.manifest, until)?;
    let pending = read_pending(from, &source.manifest)?;
    let mut stretch = source.replay(pending, until)?;
    let tables = source.manifest.tables.iter();
    let mut copy = Manifest {
        uuid: random::uuid(),
        tables: tables.filter(|table| !table.is_dropped()).cloned().collect(),
        ..open::new_manifest()
    };
    let Written { rows, last: (generation, cut), checkpoint } =
        write_rows(&source, &mut stretch, &to, copy.uuid)?;
    copy.checkpoint = checkpoint;
    let end = GenerationEnd { cut, segment: 0, offset: FIRST_BLOCK };
    let beginning = Beginning {
        uuid: copy.uuid,
        number: copy.first_segment,
        generation: generation + 1,
        end_before: if generation == 0 { GenerationEnd::default() } else { end },
        closed: Vec::new(),
        next_spare: 1,
        segment_bytes: StoreOptions::default().segment_bytes,
    };
    Log::begin(Arc::clone(&to), &beginning).map_err(StoreError::io("log-0000000001"))?;
    manifest::write(&to, &copy)?;
    let lost = lost_blocks(&source, (generation, cut))?;
    Ok(Repaired { rows, generation, cut, damage: stretch.damage, lost })
}

/// The rows of a copy.
struct Written {
    rows: u64,
    /// The generation of the last commits, and the cut up to which the copy contains it.
    last: (u64, u64),
    checkpoint: Option<Checkpoint>,
}

/// Writes a checkpoint with the rows that a stretch of the log leads to. If a block contains
/// changes that cannot be made, the stretch ends before it.
fn write_rows(
    source: &Source<'_>,
    stretch: &mut Stretch<'_>,
    to: &Directory,
    uuid: Uuid,
) -> Result<Written, StoreError> {
    let contained = recover::position(&source.manifest).unwrap_or_default();
    let contained = (contained.generation, contained.cut);
    loop {
        let last = stretch.steps.last().map_or(contained, |step| step.last);
        if last.0 == 0 {
            return Ok(Written { rows: 0, last, checkpoint: None });
        }
        let (generation, cut) = last;
        let header = PartHeader { uuid, checkpoint: 1, part: 0, generation, cut };
        let mut writer = CheckpointWriter::new(&**to, header, PART_BYTES);
        match merge(source.disk, &source.manifest, &stretch.steps, &mut writer) {
            Ok(()) => {
                let rows = writer.rows();
                return Ok(Written { rows, last, checkpoint: Some(writer.finish(&[])?) });
            }
            Err(StoreError::Damaged(error)) => {
                let Some(place) = stretch.steps.iter().position(|step| is_of(&error, step)) else {
                    return Err(StoreError::Damaged(error));
                };
                remove_parts(&**to, header.checkpoint);
                stretch.steps.truncate(place);
                stretch.damage = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Returns whether an error names the block that has completed a step.
fn is_of(error: &OpenError, step: &Step) -> bool {
    match error {
        OpenError::Corrupt { file, offset, .. } => *file == step.file && *offset == step.offset,
        _ => false,
    }
}

/// Checks that the checkpoint contains no more than is wanted.
fn check_until(manifest: &Manifest, until: Option<Until>) -> Result<(), StoreError> {
    let (Some(until), Some(contained)) = (until, recover::position(manifest)) else {
        return Ok(());
    };
    if (until.generation, until.cut) >= (contained.generation, contained.cut) {
        return Ok(());
    }
    let what = format!(
        "the checkpoint contains cut {} of generation {}, which is later than cut {} of generation {}",
        contained.cut, contained.generation, until.cut, until.generation
    );
    Err(StoreError::Damaged(OpenError::corrupt(crate::names::MANIFEST, 0, what)))
}

/// Returns the readable blocks behind the end of a copy.
fn lost_blocks(
    source: &Source<'_>,
    (generation, cut): (u64, u64),
) -> Result<Vec<LostBlock>, OpenError> {
    let mut lost = Vec::new();
    let uuid = &source.manifest.uuid;
    for name in &source.files.names {
        let FileName::Segment(number) = *name else { continue };
        if number < source.manifest.first_segment {
            continue;
        }
        let Ok(segment) = Segment::open(source.disk, Some(uuid), number) else { continue };
        let mut offset = FIRST_BLOCK;
        while let Some((place, header)) = segment.find(offset, 1)? {
            offset = place + header.size().max(BLOCK_ALIGN);
            let is_lost = (header.generation, header.cut) > (generation, cut);
            if let Ok((_, payload)) = segment.read(place)?
                && is_lost
                && header.payload_bytes > 0
            {
                let records = records(&payload).filter(Result::is_ok).count() as u64;
                let (generation, cut) = (header.generation, header.cut);
                let file = segment.name.clone();
                lost.push(LostBlock { file, offset: place, generation, cut, records });
            }
        }
    }
    Ok(lost)
}
