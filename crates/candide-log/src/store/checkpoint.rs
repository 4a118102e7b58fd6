//! Making a checkpoint beside a writer of the log.

use super::checkpoint_parts::CheckpointParts;
use super::recover;
use super::{Shared, Store};
use crate::checkpoint::merge::{Sink, merge};
use crate::checkpoint::pace::{Bounds, Pace};
use crate::checkpoint::read::read_pending;
use crate::checkpoint::write::{CheckpointWriter, PartError};
use crate::disk::Disk;
use crate::error::{StoreError, WriteError};
use crate::format::checkpoint::PartHeader;
use crate::format::commit::records;
use crate::format::long_row::LongRow;
use crate::format::manifest::{Checkpoint, Manifest};
use crate::log::reader::Stop;
use crate::log::replay::Step;
use crate::log::segments::FIRST_BLOCK;
use crate::log::writer::{Closed, Log};
use crate::names::{self, DIRECTORY};
use crate::schema::TableSchema;
use std::collections::BTreeSet;

/// The largest number of files that are kept for segments to come.
const SPARES_MAX: u64 = 16;

/// The result of a checkpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checkpointed {
    /// The number of the checkpoint in force; 0 if there is none, because nothing has been written.
    pub number: u64,
    /// Whether this call has made the checkpoint. If the log contained nothing new, the previous
    /// one is still in force.
    pub is_new: bool,
    /// The number of rows in the checkpoint, if it is new.
    pub rows: u64,
    /// The bytes of the checkpoint's files.
    pub bytes: u64,
    /// The number of commit records that were merged.
    pub records: u64,
    /// The bytes of the blocks that are not needed any more.
    pub log_bytes: u64,
    /// The number of files that are not needed any more and could not be removed. The next opening
    /// tries again.
    pub left_behind: u64,
}

impl Store {
    /// Makes a checkpoint of everything that has been written, and gives back the segments of the
    /// log that are not needed any more. The segment in use is closed first. Then the previous
    /// checkpoint and the log up to there are read from the disk, while the log continues. Memory
    /// is needed for that part of the log, not for the checkpoint. If there is no room for the next
    /// segment of the log, the checkpoint does not contain the segment in use.
    ///
    /// # Errors
    /// Unless `MANIFEST` fails, the earlier checkpoint is still in force, and the call may be
    /// repeated.
    pub fn checkpoint(&self) -> Result<Checkpointed, StoreError> {
        self.make_checkpoint(None)
    }

    /// Makes a checkpoint as [`checkpoint`](Store::checkpoint) does, but pauses so that it reads
    /// and writes [`checkpoint_rate`](super::StoreOptions::checkpoint_rate) bytes in a second. If
    /// the log grows, the checkpoint goes on faster, as necessary for being finished before the log
    /// has grown by the length at which the next one should be made. It does not pause while there
    /// is no room for the log, after another call has waited for it, or after
    /// [`end_pauses`](Store::end_pauses).
    ///
    /// # Errors
    /// As [`checkpoint`](Store::checkpoint).
    pub fn checkpoint_at_rate(&self) -> Result<Checkpointed, StoreError> {
        self.make_checkpoint(Some(self.shared.options.checkpoint_rate.max(1)))
    }

    /// Lets the checkpoint that is being made, and later ones, go on without pauses.
    pub fn end_pauses(&self) {
        self.shared.hurry.begin();
    }

    /// Makes a checkpoint, at this rate if there is one.
    fn make_checkpoint(&self, rate: Option<u64>) -> Result<Checkpointed, StoreError> {
        let shared = &*self.shared;
        let mut number = shared.merging();
        let mut dropped = {
            let manifest = shared.manifest();
            manifest.check()?;
            manifest.current().dropped()
        };
        // The rows of dropped tables are left out even if the log contains nothing new.
        let rotate = if dropped.is_empty() { Log::rotate } else { Log::rotate_always };
        match shared.with_files(rotate) {
            // The closed segments will make room.
            Err(WriteError::Full(error)) if !shared.log().closed().is_empty() => {
                shared.begin_making_room(error);
                // The segment in use may have their records.
                dropped.clear();
            }
            rotated => rotated?,
        }
        let mut closed = shared.log().closed().to_vec();
        if let (Some(remote), Some(last)) = (&shared.options.remote, closed.last().copied()) {
            let released = remote.release(last.number);
            if released < last.number {
                // Later segments may have records of dropped tables.
                dropped.clear();
            }
            closed.retain(|closed| closed.number <= released);
        }
        // The tables that the closed segments name were added earlier.
        let manifest = shared.manifest().current().clone();
        let log: u64 = closed.iter().map(|closed| closed.end - FIRST_BLOCK).sum();
        let bounds = rate.map(|rate| Bounds {
            rate,
            work: 2 * (log + recover::checkpoint_bytes(&manifest)),
            growth: shared.checkpoint_log_bytes(),
        });
        let log_bytes = || shared.log().bytes();
        let mut pace = Pace::new(bounds, &shared.hurry, &log_bytes);
        let done = self.checkpoint_of(&manifest, &closed, dropped, (&mut number, &mut pace));
        shared.log().end_making_room();
        if let (Some(remote), Ok(Checkpointed { is_new: true, .. })) =
            (&shared.options.remote, &done)
        {
            let now = shared.manifest().current().clone();
            let (checkpoint, first_segment) = (now.checkpoint.as_ref(), now.first_segment);
            let (disk, tables) = (&shared.disk, &*manifest.tables);
            let checkpoint = checkpoint.expect("a checkpoint has been made");
            remote.checkpointed(&CheckpointParts { disk, checkpoint, tables, first_segment });
        }
        done
    }

    /// Makes a checkpoint that contains these segments, with the number after `number`. `manifest`
    /// is the MANIFEST in force. No later segment has records of the tables `dropped`.
    fn checkpoint_of(
        &self,
        manifest: &Manifest,
        closed: &[Closed],
        dropped: Vec<u32>,
        (number, pace): (&mut u64, &mut Pace<'_>),
    ) -> Result<Checkpointed, StoreError> {
        let shared = &*self.shared;
        let Some(last) = closed.last().copied() else {
            return Ok(unchanged(manifest));
        };
        *number += 1;
        let merged = write_checkpoint(shared, manifest, last, (*number, pace));
        if merged.is_err() {
            // The next opening would remove the parts; until then they take room.
            remove_parts(&**shared.disk, *number);
        }
        let Merged { checkpoint, pending, mut done } = merged?;
        let first = last.number + 1;
        let last_segment = shared.log().last_with_durable_block();
        let replaced = shared.manifest().replace(|manifest| {
            manifest.checkpoint = Some(checkpoint);
            manifest.first_segment = first;
            manifest.last_segment = manifest.last_segment.max(last_segment);
            let is_free = |table: u32| dropped.contains(&table) && !pending.contains(&table);
            manifest.tables.retain(|table| !is_free(table.number));
        });
        match replaced {
            Ok(()) => {}
            // The new checkpoint may be in force.
            Err(StoreError::Failed(error)) => return Err(StoreError::Failed(error)),
            Err(error) => {
                remove_parts(&**shared.disk, *number);
                return Err(error);
            }
        }
        done.left_behind += shared.give_back(first);
        if let Some(before) = &manifest.checkpoint {
            let parts = 0..before.parts.len() as u32;
            let names = parts.map(|part| names::part(before.number, part));
            done.left_behind +=
                names.filter(|name| shared.disk.remove(name).is_err()).count() as u64;
        }
        Ok(done)
    }
}

impl Shared {
    /// Gives back the segments before `first`. Returns the number of files that could not be
    /// removed.
    fn give_back(&self, first: u64) -> u64 {
        let segment_bytes = self.options.segment_bytes.max(1);
        let spares_max = self.checkpoint_log_bytes().div_ceil(segment_bytes).clamp(1, SPARES_MAX);
        self.log().recycle(first, spares_max as usize)
    }
}

/// Returns the result of a checkpoint that was not needed.
fn unchanged(manifest: &Manifest) -> Checkpointed {
    let number = manifest.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.number);
    let bytes = recover::checkpoint_bytes(manifest);
    Checkpointed { number, bytes, ..Checkpointed::default() }
}

/// A checkpoint that has been written, and is not in force yet.
struct Merged {
    checkpoint: Checkpoint,
    /// The tables that its pending records name.
    pending: BTreeSet<u32>,
    done: Checkpointed,
}

/// Writes the parts of a new checkpoint, which merges the checkpoint before and the log up to the
/// end of `last`.
fn write_checkpoint(
    shared: &Shared,
    manifest: &Manifest,
    last: Closed,
    (number, pace): (u64, &mut Pace<'_>),
) -> Result<Merged, StoreError> {
    let disk = &**shared.disk;
    let segments = recover::segments(disk, manifest, last.number)?;
    let stop = Stop { segment: last.number, offset: last.end };
    let pending = read_pending(disk, manifest)?;
    let mut replay = recover::replay(segments, manifest, pending, Some(stop))?;
    let mut steps: Vec<Step> = Vec::new();
    loop {
        let bytes = replay.bytes();
        let Some(step) = replay.next()? else { break };
        steps.push(step);
        pace.spend(replay.bytes() - bytes);
    }
    let (generation, cut) = replay.last();
    let header = PartHeader { uuid: manifest.uuid, checkpoint: number, part: 0, generation, cut };
    let writer = CheckpointWriter::new(disk, header, shared.options.segment_bytes);
    let mut paced = Paced { writer, pace };
    merge(disk, manifest, &steps, &mut paced)?;
    let Paced { writer, .. } = paced;
    let rows = writer.rows();
    let pending = replay.batches().pending();
    let checkpoint = writer.finish(pending)?;
    shared.disk.sync_names().map_err(StoreError::io(DIRECTORY))?;
    let done = Checkpointed {
        number,
        is_new: true,
        rows,
        bytes: checkpoint.parts.iter().map(|part| part.bytes).sum(),
        records: replay.records(),
        log_bytes: replay.bytes(),
        left_behind: 0,
    };
    let changes = records(pending).flatten().flat_map(|record| record.entries());
    let pending = changes.map(|change| change.table.into()).collect();
    Ok(Merged { checkpoint, pending, done })
}

/// A checkpoint that is being written, and its pace.
struct Paced<'a, 'b> {
    writer: CheckpointWriter<'a>,
    pace: &'a mut Pace<'b>,
}

impl Sink for Paced<'_, '_> {
    fn note_read(&mut self, bytes: u64) {
        self.pace.spend(bytes);
    }

    fn row(&mut self, schema: &TableSchema, row: LongRow<'_>) -> Result<(), PartError> {
        let bytes = self.writer.bytes();
        self.writer.row(schema, row)?;
        match self.writer.bytes() - bytes {
            0 => {}
            bytes => self.pace.spend(bytes),
        }
        Ok(())
    }
}

/// Removes the parts of a checkpoint that has not been finished.
pub(crate) fn remove_parts(disk: &dyn Disk, number: u64) {
    let mut names = (0..).map(|part| names::part(number, part));
    // The last part that was begun exists, too, unless it could not be created.
    while names.next().is_some_and(|name| disk.remove(&name).is_ok()) {}
}
