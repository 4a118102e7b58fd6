//! Opening a database: recovery, and the beginning of a new generation.

use super::files::Files;
use super::manifest::{self, Found, ManifestFile};
use super::recover::{self, Recovery};
use super::unopened::Unopened;
use super::{LogWriter, Progress, Recovered, Shared, Store, StoreOptions};
use crate::checkpoint::pace::Hurry;
use crate::directory::Directory;
use crate::disk::{Disk, LockError};
use crate::error::{OpenError, StoreError};
use crate::format::manifest::Manifest;
use crate::format::segment::GenerationEnd;
use crate::log::reader::Reader;
use crate::log::segments::{FIRST_BLOCK, Segment};
use crate::log::writer::{Beginning, Closed, Log};
use crate::names::{self, DIRECTORY, FileName, LOCK, MANIFEST};
use crate::random;
use crate::schema::TableState;
use crate::target::Target;
use std::sync::{Arc, Mutex, RwLock};

/// Locks a directory.
pub(crate) fn lock(disk: &dyn Disk) -> Result<Box<dyn Send + Sync + std::fmt::Debug>, OpenError> {
    disk.lock().map_err(|error| match error {
        LockError::InUse { pid } => OpenError::InUse { pid },
        LockError::Io(source) => OpenError::Io { file: LOCK.to_string(), source },
    })
}

impl Store {
    /// Opens the database in a directory, or creates one if the directory is empty. Loads its rows
    /// into `target`, and begins a new generation of the log.
    ///
    /// # Errors
    /// The directory is in use or contains no database, a file is damaged or cannot be read or
    /// written, or the target refuses the contents. Everything that the files contained is still
    /// there.
    pub fn open(
        disk: Arc<dyn Disk>,
        options: &StoreOptions,
        target: &dyn Target,
        progress: &dyn Fn(Progress),
    ) -> Result<(Store, LogWriter, Recovered), OpenError> {
        let disk = Arc::new(Directory::new(disk));
        let lock = lock(&**disk)?;
        let files = Files::list(&**disk)?;
        let found = manifest::read(&**disk, &files)?;
        let is_new = found.is_none();
        if let Some(remote) = &options.remote {
            let manifest = found.as_ref().map(|found| &found.manifest);
            let last_segment = manifest.map_or(0, |manifest| manifest.last_segment);
            let last_segment = files.last_segment().max(last_segment);
            remote.open(&Unopened { disk: &disk, manifest, last_segment })?;
        }
        let manifest = match found {
            // The file is written anew. Doing so again would write the same contents.
            Some(Found { mut manifest, .. }) => {
                drop_unfinished(&mut manifest);
                Manifest { sequence: manifest.sequence + 1, ..manifest }
            }
            None => {
                check_new(&**disk, &files)?;
                new_manifest()
            }
        };
        for schema in manifest.tables.iter().filter(|schema| schema.is_in_use()) {
            target.table(schema)?;
        }
        let mut recovered = Recovered { is_new, ..Recovered::default() };
        let mut beginning = Beginning {
            uuid: manifest.uuid,
            number: manifest.first_segment,
            generation: 1,
            end_before: GenerationEnd::default(),
            closed: Vec::new(),
            next_spare: first_spare(),
            segment_bytes: options.segment_bytes,
        };
        if !is_new {
            let last = files.last_segment().max(manifest.last_segment);
            let recovery = recover::recover(
                &**disk,
                &manifest,
                last,
                options.recovery_threads,
                target,
                progress,
            )?;
            make_durable(recovery.replay.reader())?;
            continue_log(&mut beginning, &manifest, &recovery);
            recovered.describe(&recovery);
        }
        recovered.generation = beginning.generation;
        // Earlier changes of names are durable before other files get names.
        disk.sync_names().map_err(OpenError::io(DIRECTORY))?;
        let begun = match begin(&disk, is_new, &manifest, &beginning) {
            Err(StoreError::Full { .. }) => {
                let last = number_of_checkpoint(&manifest);
                files.remove(&**disk, |name| match name {
                    FileName::Spare(_) => true,
                    // No MANIFEST has named the segment yet, durable or not.
                    FileName::Part(number, _) => number > last,
                    _ => false,
                });
                begin(&disk, is_new, &manifest, &beginning)
            }
            begun => begun,
        };
        let (log, manifest_files) = begun.map_err(opening)?;
        files.remove(&**disk, |name| !is_needed(&manifest, name));
        let checkpoint = number_of_checkpoint(&manifest);
        let last_segment = manifest.last_segment;
        let shared = Arc::new(Shared {
            manifest: Mutex::new(ManifestFile::new(Arc::clone(&disk), manifest, manifest_files)),
            log: Mutex::new(log),
            merging: Mutex::new(checkpoint),
            hurry: Hurry::default(),
            filling: RwLock::new(()),
            changes: Mutex::new(None),
            disk,
            options: options.clone(),
            _lock: lock,
        });
        let writer = LogWriter { shared: Arc::clone(&shared), last_segment, lacks_room: false };
        Ok((Store { shared }, writer, recovered))
    }
}

/// Drops the tables that were being made when the database was last in use.
fn drop_unfinished(manifest: &mut Manifest) {
    for table in &mut manifest.tables {
        if let TableState::Unfinished { .. } = table.state {
            *table = table.dropped();
        }
    }
}

/// Returns the number of the checkpoint in force; 0 if there is none.
fn number_of_checkpoint(manifest: &Manifest) -> u64 {
    manifest.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.number)
}

/// Returns the contents of the first `MANIFEST` of a database.
pub(crate) fn new_manifest() -> Manifest {
    Manifest {
        uuid: random::uuid(),
        sequence: 1,
        first_segment: 1,
        last_segment: 0,
        checkpoint: None,
        tables: Vec::new(),
    }
}

/// Returns the failure of an operation as an error of opening.
fn opening(error: StoreError) -> OpenError {
    match error {
        StoreError::Full { file, source } | StoreError::Io { file, source } => {
            OpenError::Io { file, source }
        }
        StoreError::Damaged(error) => error,
        other => OpenError::Io { file: MANIFEST.to_string(), source: std::io::Error::other(other) },
    }
}

/// Checks that a directory without `MANIFEST` contains at most the first segment without a block,
/// which a crash during the creation of a database leaves.
fn check_new(disk: &dyn Disk, files: &Files) -> Result<(), OpenError> {
    if let Some(name) = &files.foreign {
        return Err(OpenError::NotADatabase { found: format!("a file {name:?}") });
    }
    for name in &files.names {
        let is_leftover = match name {
            FileName::Lock
            | FileName::ManifestNew
            | FileName::ManifestCopyNew
            | FileName::Remote
            | FileName::RemoteNew
            | FileName::Spare(_) => true,
            FileName::Manifest | FileName::ManifestCopy | FileName::Part(..) => false,
            FileName::Segment(1) => {
                let segment = Segment::open(disk, None, 1)?;
                segment.header.generation == 1 && segment.find(FIRST_BLOCK, 1)?.is_none()
            }
            FileName::Segment(_) => false,
        };
        if !is_leftover {
            let what = format!("the file is missing, although there is {}", name.name());
            return Err(OpenError::corrupt(MANIFEST, 0, what));
        }
    }
    Ok(())
}

/// Makes the last block of the log durable, which may be only in the system's memory. The block is
/// written again, since a sync may have failed before, and a second sync would not report that. All
/// earlier blocks were durable before the last block was written.
fn make_durable(reader: &Reader<'_>) -> Result<(), OpenError> {
    let Some(last) = reader.last_block() else { return Ok(()) };
    let segment = &reader.segments()[last.segment];
    let file = segment.open_to_write()?;
    let mut block = vec![0; last.header.size() as usize];
    let written = file
        .read_at(last.offset, &mut block)
        .and_then(|()| file.write_at(last.offset, &[&block]))
        .and_then(|()| file.sync());
    written.map_err(OpenError::io(&segment.name))
}

/// Returns how the new generation continues the recovered log. A generation without a block counts
/// as if it had never begun: the new one takes the place of its segment.
fn continue_log(beginning: &mut Beginning, manifest: &Manifest, recovery: &Recovery<'_>) {
    let reader = recovery.replay.reader();
    let contained = recover::position(manifest);
    let last = reader.last_block();
    let segments = reader.segments();
    if let Some(last) = last {
        beginning.number = segments[last.segment].number() + 1;
    }
    let generation = match (last, contained) {
        (Some(last), _) => last.header.generation,
        (None, Some(contained)) => contained.generation,
        (None, None) => return,
    };
    beginning.generation = generation + 1;
    beginning.end_before = match last {
        Some(last) => GenerationEnd {
            cut: last.header.cut,
            segment: segments[last.segment].number(),
            offset: last.offset + last.header.size(),
        },
        // The segment in which the generation ended is not needed any more.
        None => GenerationEnd {
            cut: contained.map_or(0, |contained| contained.cut),
            segment: beginning.number.saturating_sub(1),
            offset: FIRST_BLOCK,
        },
    };
    let before = segments.iter().zip(reader.ends());
    let before = before.filter(|(segment, _)| segment.number() < beginning.number);
    let closed = before.map(|(segment, end)| Closed {
        number: segment.number(),
        bytes: segment.header.bytes,
        end: *end,
    });
    beginning.closed = closed.collect();
}

/// Begins the generation, and makes MANIFEST durable.
fn begin(
    disk: &Arc<Directory>,
    is_new: bool,
    manifest: &Manifest,
    beginning: &Beginning,
) -> Result<(Log, manifest::Pair), StoreError> {
    let log = || {
        let name = names::segment(beginning.number);
        Log::begin(Arc::clone(disk), beginning).map_err(StoreError::io(&name))
    };
    if is_new {
        return Ok((log()?, manifest::write(disk, manifest)?));
    }
    let files = manifest::write(disk, manifest)?;
    Ok((log()?, files))
}

/// Returns the number in the name of the first spare. The number is random, so that no old spare
/// has it: after a failed sync, a crash may bring back a file that no listing showed.
fn first_spare() -> u64 {
    random::word() >> 1
}

/// Returns whether a file is needed, and not left behind by a crash or a checkpoint.
fn is_needed(manifest: &Manifest, name: FileName) -> bool {
    match name {
        // The next checkpoint overwrites the last checkpoint that has not come into force.
        FileName::Lock
        | FileName::Manifest
        | FileName::ManifestCopy
        | FileName::ManifestNew
        | FileName::ManifestCopyNew
        | FileName::Remote
        | FileName::RemoteNew => true,
        FileName::Spare(_) => false,
        FileName::Segment(number) => number >= manifest.first_segment,
        FileName::Part(number, part) => manifest.checkpoint.as_ref().is_some_and(|checkpoint| {
            checkpoint.number == number && (part as usize) < checkpoint.parts.len()
        }),
    }
}
