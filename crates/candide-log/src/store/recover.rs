//! Recovery: the checkpoint in force, then the log, into a target.

mod apply;
mod parallel;

use crate::checkpoint::read::{Loaded, PartReader, load_part, parts};
use crate::disk::Disk;
use crate::error::OpenError;
use crate::format::manifest::Manifest;
use crate::log::batches::Batches;
use crate::log::reader::{Position, Reader, Stop};
use crate::log::replay::Replay;
use crate::log::segments::{self, Segment};
use crate::store::Progress;
use crate::target::{Loader, Target};
use apply::{apply, finish, is_in};

/// The number of bytes to read from which several threads are worth starting.
const PARALLEL_BYTES: u64 = 4 << 20;

/// The result of recovery.
#[derive(Debug)]
pub(crate) struct Recovery<'a> {
    /// The number of rows of the checkpoint.
    pub(crate) rows: u64,
    /// The log, read to its end.
    pub(crate) replay: Replay<'a>,
}

/// Returns the part of the log that the checkpoint in force contains.
pub(crate) fn position(manifest: &Manifest) -> Option<Position> {
    let checkpoint = manifest.checkpoint.as_ref()?;
    Some(Position { generation: checkpoint.generation, cut: checkpoint.cut })
}

/// Opens the segments from the first needed segment to `last`.
pub(crate) fn segments<'a>(
    disk: &'a dyn Disk,
    manifest: &Manifest,
    last: u64,
) -> Result<Vec<Segment<'a>>, OpenError> {
    segments::open_all(disk, Some(&manifest.uuid), manifest.first_segment, last)
}

/// Returns the replay of the log up to `stop`, or to its end, after a checkpoint with these pending
/// records.
pub(crate) fn replay<'a>(
    segments: Vec<Segment<'a>>,
    manifest: &Manifest,
    pending: Vec<u64>,
    stop: Option<Stop>,
) -> Result<Replay<'a>, OpenError> {
    let before = position(manifest);
    let reader = Reader::new(segments, before, stop)?;
    let Position { generation, cut } = before.unwrap_or_default();
    Ok(Replay::new(reader, Batches::after(cut, pending), generation))
}

/// Loads the checkpoint and replays the log, with `threads` threads if there is much to read.
pub(crate) fn recover<'a>(
    disk: &'a dyn Disk,
    manifest: &Manifest,
    last_segment: u64,
    threads: usize,
    target: &dyn Target,
    progress: &dyn Fn(Progress),
) -> Result<Recovery<'a>, OpenError> {
    // Headers are read first, since that is quick and finds missing files.
    let segments = segments(disk, manifest, last_segment)?;
    let checkpoint_bytes = checkpoint_bytes(manifest);
    let log_bytes: u64 = segments.iter().map(|segment| segment.header.bytes).sum();
    let loaded = |done| progress(Progress::Checkpoint { done, total: checkpoint_bytes });
    let replayed = |done| progress(Progress::Log { done, total: log_bytes });
    let dropped = &manifest.dropped();
    if threads > 1 && checkpoint_bytes + log_bytes >= PARALLEL_BYTES {
        let mut loaders: Vec<_> = (0..threads).map(|_| target.loader()).collect();
        let Loaded { rows, pending } = parallel::load(disk, manifest, &mut loaders, &loaded)?;
        let mut replay = replay(segments, manifest, pending, None)?;
        parallel::apply_log(&mut replay, &mut loaders, dropped, &replayed)?;
        return Ok(Recovery { rows, replay });
    }
    let mut loader = target.loader();
    let Loaded { rows, pending } = load(disk, manifest, &mut *loader, &loaded)?;
    let mut replay = replay(segments, manifest, pending, None)?;
    while let Some(step) = replay.next()? {
        apply(&step, &mut *loader, |table, _| !is_in(dropped, table))?;
        replayed(replay.bytes());
    }
    finish(&mut *loader)?;
    Ok(Recovery { rows, replay })
}

/// Loads all parts of the checkpoint. Calls `loaded` with the number of bytes so far.
fn load(
    disk: &dyn Disk,
    manifest: &Manifest,
    loader: &mut dyn Loader,
    loaded: &dyn Fn(u64),
) -> Result<Loaded, OpenError> {
    let mut all = Loaded::default();
    let mut done = 0;
    for part in parts(manifest) {
        let mut part = PartReader::open(disk, manifest, part)?;
        all.add(load_part(&mut part, loader)?);
        done += part.offset();
        loaded(done);
    }
    Ok(all)
}

/// Returns the number of bytes of all parts of the checkpoint in force.
pub(crate) fn checkpoint_bytes(manifest: &Manifest) -> u64 {
    let parts = manifest.checkpoint.iter().flat_map(|checkpoint| &checkpoint.parts);
    parts.map(|part| part.bytes).sum()
}
