//! Recovery: the checkpoint in force, then the log, into a target.

use crate::checkpoint::read::{Loaded, PartReader, load_part, parts};
use crate::disk::Disk;
use crate::error::OpenError;
use crate::format::manifest::Manifest;
use crate::log::batches::Batches;
use crate::log::reader::{Position, Reader, Stop};
use crate::log::replay::Replay;
use crate::log::segments::{self, Segment};
use crate::names::DIRECTORY;
use crate::store::Progress;
use crate::target::Target;

/// What was read.
#[derive(Debug)]
pub(crate) struct Recovery {
    /// The number of rows of the checkpoint.
    pub(crate) rows: u64,
    /// The log, read to its end.
    pub(crate) replay: Replay,
}

/// Returns what the checkpoint in force contains of the log.
pub(crate) fn position(manifest: &Manifest) -> Option<Position> {
    let checkpoint = manifest.checkpoint.as_ref()?;
    Some(Position { generation: checkpoint.generation, cut: checkpoint.cut })
}

/// Opens the segments from the first one that is needed to `last`.
pub(crate) fn segments(
    disk: &dyn Disk,
    manifest: &Manifest,
    last: u64,
) -> Result<Vec<Segment>, OpenError> {
    segments::open_all(disk, Some(&manifest.uuid), manifest.first_segment, last)
}

/// Returns the replay of the log up to `stop`, or to its end, after a checkpoint with these pending
/// records.
pub(crate) fn replay(
    segments: Vec<Segment>,
    manifest: &Manifest,
    pending: Vec<u64>,
    stop: Option<Stop>,
) -> Result<Replay, OpenError> {
    let before = position(manifest);
    let reader = Reader::new(segments, before, stop)?;
    let Position { generation, cut } = before.unwrap_or_default();
    Ok(Replay::new(reader, Batches::after(cut, pending), generation))
}

/// Loads the checkpoint and replays the log, in this thread.
pub(crate) fn recover(
    disk: &dyn Disk,
    manifest: &Manifest,
    last_segment: u64,
    target: &dyn Target,
    progress: &dyn Fn(Progress),
) -> Result<Recovery, OpenError> {
    // Headers first: they are quickly read, and tell of files that are missing.
    let segments = segments(disk, manifest, last_segment)?;
    let mut loader = target.loader();
    let mut all = Loaded::default();
    let total = checkpoint_bytes(manifest);
    let mut done = 0;
    for part in parts(manifest) {
        let mut part = PartReader::open(disk, manifest, part)?;
        let loaded = load_part(&mut part, &mut *loader)?;
        all.rows += loaded.rows;
        all.pending.extend(loaded.pending);
        done += part.offset();
        progress(Progress::Checkpoint { done, total });
    }
    let total = segments.iter().map(|segment| segment.header.bytes).sum();
    let mut replay = replay(segments, manifest, all.pending, None)?;
    while let Some(step) = replay.next()? {
        for change in step.batch.changes() {
            let applied = loader.apply(&change);
            applied.map_err(|error| OpenError::load(error, &step.file, step.offset))?;
        }
        progress(Progress::Log { done: replay.bytes(), total });
    }
    loader.finish().map_err(|error| OpenError::load(error, DIRECTORY, 0))?;
    Ok(Recovery { rows: all.rows, replay })
}

/// Returns the number of bytes of all parts of the checkpoint in force.
pub(crate) fn checkpoint_bytes(manifest: &Manifest) -> u64 {
    let parts = manifest.checkpoint.iter().flat_map(|checkpoint| &checkpoint.parts);
    parts.map(|part| part.bytes).sum()
}
