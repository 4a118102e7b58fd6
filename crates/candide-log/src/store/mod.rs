//! An open database: its tables, its log, its checkpoint.

pub(crate) mod backup;
pub(crate) mod checkpoint;
mod checkpoint_parts;
mod copying;
mod feed;
pub(crate) mod files;
pub(crate) mod manifest;
pub(crate) mod open;
mod progress;
pub(crate) mod recover;
mod remembered;
mod remote;
#[cfg(test)]
mod tests;
mod unopened;

pub use backup::BackedUp;
pub use checkpoint::Checkpointed;
pub use checkpoint_parts::{CheckpointParts, PartRows};
pub use feed::{Feed, Run};
pub use progress::Progress;
pub use remote::{Remote, Replies};
pub use unopened::{LocalBlock, LocalBlocks, LogPlace, Unopened};

use crate::checkpoint::pace::Hurry;
use crate::directory::Directory;
use crate::error::{StoreError, WriteError};
use crate::format::Uuid;
use crate::format::manifest::Entry;
use crate::log::writer::{Log, Obstacle};
use crate::schema::{TABLE_NUMBER_MAX, TableSchema, TableState};
use feed::Changes;
use manifest::ManifestFile;
use recover::Recovery;
use std::fmt::Debug;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// The number of segments from which on a checkpoint should be made: each opening begins one.
const SEGMENTS_MAX: usize = 256;
/// The most by which the log may be longer than [`StoreOptions::checkpoint_log_bytes`] before a
/// checkpoint should be made. A checkpoint takes about as much memory as the log.
pub const LOG_FACTOR_MAX: u64 = 4;

/// The options for opening and keeping a database.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// The bytes of the largest segments of the log; 64 MiB by default, at least 12 KiB. The first
    /// segment of a generation has at most 64 KiB; each next one has twice as many, or fewer if it
    /// is needed before they are ready. A segment is larger if a single block needs it.
    pub segment_bytes: u64,
    /// The bytes of log after which a checkpoint should be made; 256 MiB by default. If the
    /// checkpoint in force is larger, its size counts instead, up to [`LOG_FACTOR_MAX`] times this
    /// number: so a checkpoint is rarer if it takes more work. Segments of as many bytes are kept
    /// for reuse, but no more than 16.
    pub checkpoint_log_bytes: u64,
    /// The bytes that [`Store::checkpoint_at_rate`] reads and writes in a second, while the log
    /// does not grow; 64 MiB by default, at least 1 (0 counts as 1). With [`u64::MAX`] it never
    /// pauses.
    pub checkpoint_rate: u64,
    /// The number of threads that recovery uses, at least 1, if there is much to read.
    pub recovery_threads: usize,
    /// A copy of the log elsewhere. Its [`open`](Remote::open) is called at the opening, and
    /// checkpoints contain only what it has.
    pub remote: Option<Arc<dyn Remote>>,
}

impl Default for StoreOptions {
    fn default() -> StoreOptions {
        StoreOptions {
            segment_bytes: 64 << 20,
            checkpoint_log_bytes: 256 << 20,
            checkpoint_rate: 64 << 20,
            recovery_threads: 1,
            remote: None,
        }
    }
}

/// The contents that were recovered when a database was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Whether the database was created.
    pub is_new: bool,
    /// The generation that has begun, from 1.
    pub generation: u64,
    /// The generation up to which the log was recovered; 0 if nothing had been written.
    pub last_generation: u64,
    /// The cut up to which that generation was recovered.
    pub cut: u64,
    /// The number of rows of the checkpoint.
    pub rows: u64,
    /// The number of commit records of the log that were applied.
    pub records: u64,
    /// The number of commit records that were dropped, because their generation ended at a cut
    /// below their stamps.
    pub dropped: u64,
    /// The number of bytes of the blocks of the log.
    pub log_bytes: u64,
}

impl Recovered {
    /// Notes the result of recovery.
    fn describe(&mut self, recovery: &Recovery<'_>) {
        let replay = &recovery.replay;
        self.rows = recovery.rows;
        self.records = replay.records();
        self.log_bytes = replay.bytes();
        self.dropped = replay.dropped() + replay.batches().pending_count();
        (self.last_generation, self.cut) = replay.last();
    }
}

/// A database that is open. All its methods can be called while a [`LogWriter`] is in use.
#[derive(Debug)]
pub struct Store {
    shared: Arc<Shared>,
}

/// The writer of a database's log.
#[derive(Debug)]
pub struct LogWriter {
    shared: Arc<Shared>,
    /// The last segment that `MANIFEST` names, or should name.
    last_segment: u64,
    /// Whether there was no room for the last block or the next segment, so that checkpoints hurry.
    lacks_room: bool,
}

/// The state that a store and its writer share. The lock `merging` is taken first, then `filling`,
/// then `manifest`, then `log`.
#[derive(Debug)]
struct Shared {
    disk: Arc<Directory>,
    options: StoreOptions,
    manifest: Mutex<ManifestFile>,
    log: Mutex<Log>,
    /// Locked while a checkpoint or a backup is made, so that the files that it reads stay as they
    /// are. Contains the number of the last checkpoint that was begun.
    merging: Mutex<u64>,
    /// What lets a checkpoint go on without pauses.
    hurry: Hurry,
    /// Locked for reading while a file for a segment is filled.
    filling: RwLock<()>,
    /// The changes of tables that the feed has not told of.
    changes: Mutex<Changes>,
    _lock: Box<dyn Send + Sync + Debug>,
}

impl Shared {
    fn manifest(&self) -> MutexGuard<'_, ManifestFile> {
        self.manifest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the feed, if there is one, of a table that was added or changed.
    fn note_changed(&self, table: &TableSchema) {
        if self.options.remote.is_some() {
            let (segment, offset) = self.log().durable_end();
            let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(changes) = &mut *changes {
                changes.push_back((LogPlace { segment, offset }, table.clone()));
            }
        }
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls a function of the log that may need a file for the next segment. Such a file is filled
    /// while the log is not locked, since that takes longer than a block.
    fn with_files(
        &self,
        mut work: impl FnMut(&mut Log) -> Result<(), Obstacle>,
    ) -> Result<(), WriteError> {
        loop {
            let done = work(&mut self.log());
            match done {
                Ok(()) => return Ok(()),
                Err(Obstacle::Error(error)) => return Err(error),
                Err(Obstacle::NoFile { mut spare, bytes }) => {
                    let _filling = self.filling.read().unwrap_or_else(PoisonError::into_inner);
                    if self.log().is_making_room() {
                        spare.remove(&**self.disk);
                        continue;
                    }
                    let filled = spare.fill(&**self.disk, bytes);
                    self.log().add_spare(spare, filled)?;
                }
            }
        }
    }

    /// Gives back the room of files for segments to come that are not full, and lets none be made.
    fn begin_making_room(&self, no_room: Arc<io::Error>) {
        self.log().begin_making_room(no_room);
        // A file that is being filled is removed afterwards.
        drop(self.filling.write().unwrap_or_else(PoisonError::into_inner));
    }

    /// Returns the bytes of log from which on a checkpoint should be made.
    fn checkpoint_log_bytes(&self) -> u64 {
        let of_checkpoint = recover::checkpoint_bytes(self.manifest().current());
        let least = self.options.checkpoint_log_bytes;
        of_checkpoint.clamp(least, least.saturating_mul(LOG_FACTOR_MAX))
    }

    /// Locks `merging`. A checkpoint that is being made does not pause any more.
    fn merging(&self) -> MutexGuard<'_, u64> {
        self.hurry.begin();
        let merging = self.merging.lock().unwrap_or_else(PoisonError::into_inner);
        self.hurry.end();
        merging
    }
}

impl Store {
    /// Returns the identity of the database.
    pub fn uuid(&self) -> Uuid {
        self.shared.manifest().current().uuid
    }

    /// Returns the generation of the log that is being written.
    pub fn generation(&self) -> u64 {
        self.shared.log().generation()
    }

    /// Returns the tables that are in use, in the order of their numbers.
    pub fn tables(&self) -> Vec<TableSchema> {
        let manifest = self.shared.manifest();
        manifest.current().tables.iter().filter(|table| table.is_in_use()).cloned().collect()
    }

    /// Adds a table and returns its number, from 1. The number in `schema` is ignored. When this
    /// returns, the table is durable, and commit records may name it. Writes the schema, and now
    /// and then the schemas of all tables: for n tables, some multiple of n schemas. If all numbers
    /// are used, makes a checkpoint, which frees those of dropped tables.
    ///
    /// # Errors
    /// There is a table of that name, the schema cannot be stored, or `MANIFEST` cannot be written.
    /// If it cannot be written, the table is not there, and the call may be repeated, unless the
    /// error is [`StoreError::Failed`]. But if the process ends before the next change, the table
    /// may be there when the database is opened again.
    pub fn add_table(&self, schema: TableSchema) -> Result<u32, StoreError> {
        self.add_numbered_table(TableSchema { number: 0, ..schema })
    }

    /// Adds a table as [`add_table`](Store::add_table) does, with the number in `schema` if that is
    /// free and not 0.
    ///
    /// # Errors
    /// As [`add_table`](Store::add_table).
    pub fn add_numbered_table(&self, schema: TableSchema) -> Result<u32, StoreError> {
        match self.add_with_free_number(&schema) {
            Err(StoreError::TooManyTables) if self.has_dropped_tables() => {
                // A checkpoint frees the numbers of dropped tables.
                self.checkpoint()?;
                self.add_with_free_number(&schema)
            }
            added => added,
        }
    }

    fn has_dropped_tables(&self) -> bool {
        self.shared.manifest().current().tables.iter().any(TableSchema::is_dropped)
    }

    fn add_with_free_number(&self, schema: &TableSchema) -> Result<u32, StoreError> {
        let mut schema = schema.clone();
        let mut manifest = self.shared.manifest();
        if manifest.has_table(&schema.name) {
            return Err(StoreError::TableExists { name: schema.name });
        }
        let tables = &manifest.current().tables;
        if schema.number == 0 || manifest.current().table(schema.number).is_some() {
            schema.number = free_number(tables).ok_or(StoreError::TooManyTables)?;
        }
        let checked = schema.check().and_then(|()| match schema.row_words() {
            0 if schema.key_words == 0 => Err("its rows have no words".to_string()),
            _ => Ok(()),
        });
        checked.map_err(|what| StoreError::Schema { table: schema.name.clone(), what })?;
        let number = schema.number;
        manifest.add(Entry::Table(schema.clone()))?;
        self.shared.note_changed(&schema);
        Ok(number)
    }

    /// Changes what is known of a table that is in use, other than its number: its name, or the
    /// description of its rows, whose words stay as they are. When this returns, the change is
    /// durable.
    ///
    /// # Errors
    /// Another table has the name, the schema cannot be stored, or `MANIFEST` cannot be written; as
    /// with [`add_table`](Store::add_table), the change may be there after the process has ended.
    ///
    /// # Panics
    /// If there is no table with this number, or it has been dropped.
    pub fn change_table(
        &self,
        number: u32,
        change: impl FnOnce(&mut TableSchema),
    ) -> Result<(), StoreError> {
        let mut manifest = self.shared.manifest();
        let known = manifest.current().table(number).filter(|table| !table.is_dropped());
        let known = known.expect("the table has not been dropped");
        let mut schema = known.clone();
        change(&mut schema);
        schema.number = number;
        if schema.name != known.name && manifest.has_table(&schema.name) {
            return Err(StoreError::TableExists { name: schema.name });
        }
        let checked = schema.check();
        checked.map_err(|what| StoreError::Schema { table: schema.name.clone(), what })?;
        manifest.add(Entry::Changed(schema.clone()))?;
        self.shared.note_changed(&schema);
        Ok(())
    }

    /// Drops a table that is in use or unfinished. When this returns, that is durable, and another
    /// table can have its name. All commit records that name the table must have been written
    /// before, and cuts with their stamps closed. The log is made durable first: otherwise a crash
    /// could lose commits before the drop, such as one that has copied the rows, and not the drop.
    /// The next checkpoint leaves out the table's rows, and frees its number.
    ///
    /// # Errors
    /// The log has failed, or `MANIFEST` cannot be written; as with
    /// [`add_table`](Store::add_table), the table may be gone after the process has ended, unless
    /// [`settle`](Store::settle) has succeeded before.
    ///
    /// # Panics
    /// If there is no table with this number, or it has been dropped.
    pub fn drop_table(&self, number: u32) -> Result<(), StoreError> {
        self.shared.log().sync()?;
        self.change_table(number, |schema| *schema = schema.dropped())
    }

    /// Gives an unfinished table the name of the table that it was made from, which is dropped:
    /// both by one replacement of `MANIFEST`. All commit records that name one of the two must have
    /// been written before, and cuts with their stamps closed. The log is made durable first.
    ///
    /// # Errors
    /// As [`drop_table`](Store::drop_table).
    ///
    /// # Panics
    /// If the table is not unfinished, or the other one is not in use.
    pub fn finish_table(&self, number: u32) -> Result<(), StoreError> {
        self.shared.log().sync()?;
        let mut manifest = self.shared.manifest();
        let unfinished = manifest.current().table(number).expect("the table is unfinished");
        let TableState::Unfinished { from } = unfinished.state else {
            panic!("table {number} is not unfinished");
        };
        let former = manifest.current().table(from).filter(|table| table.is_in_use());
        let former = former.expect("the table that it was made from is in use");
        let (dropped, name) = (former.dropped(), former.name.clone());
        let finished = TableSchema { name, state: TableState::InUse, ..unfinished.clone() };
        let checked = finished.check();
        checked.map_err(|what| StoreError::Schema { table: finished.name.clone(), what })?;
        let tables = [dropped, finished];
        manifest.replace(|manifest| {
            tables.iter().for_each(|table| manifest.apply(Entry::Changed(table.clone())));
        })?;
        tables.iter().for_each(|table| self.shared.note_changed(table));
        Ok(())
    }

    /// Makes sure, after a change of the tables has failed, that the tables stay as they are even
    /// if the process ends.
    ///
    /// # Errors
    /// `MANIFEST` cannot be written. If the process ends now, the change may have been made or not.
    pub fn settle(&self) -> Result<(), StoreError> {
        self.shared.manifest().settle()
    }

    /// Returns the number of bytes of log that the next opening would have to read: the bytes of
    /// all blocks that no checkpoint contains.
    pub fn log_bytes(&self) -> u64 {
        self.shared.log().bytes()
    }

    /// Returns whether the log is long enough, or has enough segments, for a checkpoint.
    pub fn wants_checkpoint(&self) -> bool {
        let least = self.shared.checkpoint_log_bytes();
        let log = self.shared.log();
        log.bytes() >= least || log.closed().len() >= SEGMENTS_MAX
    }
}

/// Returns a number for another table: the one behind the last table's, or the first that is free.
fn free_number(tables: &[TableSchema]) -> Option<u32> {
    let last = tables.last().map_or(0, |last| last.number);
    if last < TABLE_NUMBER_MAX {
        return Some(last + 1);
    }
    let mut numbered = (1..=TABLE_NUMBER_MAX).zip(tables);
    let gap = numbered.find(|(number, table)| *number != table.number);
    gap.map(|(number, _)| number)
}

impl LogWriter {
    /// Writes one block with these commit records, and closes `cut` with it: every commit with a
    /// stamp up to `cut` is in this block or was in one before. An item of `records` is one or more
    /// records. When this returns, the block is in the hands of the operating system: it survives
    /// the end of the process, and is durable after [`sync`](LogWriter::sync).
    ///
    /// If the block before is not durable yet, it is made durable first. A record whose stamp is
    /// above `cut` is not recovered unless a later block closes a cut that contains it; that block
    /// may have no records.
    ///
    /// # Errors
    /// With [`WriteError::Full`] nothing was written. After [`WriteError::Failed`] nothing can be
    /// written any more. The log also fails if a cut is below the cut before, if a stamp is not
    /// above it, or if `records` are not whole records, since no reader would accept that.
    pub fn write(&mut self, records: &[&[u64]], cut: u64) -> Result<(), WriteError> {
        let written = self.shared.with_files(|log| log.write(records, cut));
        self.note_room(written)
    }

    /// Returns whether a record has been written that is above the cut of the last block. Then it
    /// is not enough that nothing new has been committed: before a commit with that stamp is called
    /// durable, a block has to close a cut that contains it.
    pub fn has_pending(&self) -> bool {
        self.shared.log().has_pending()
    }

    /// Makes everything that was written durable. The first sync of a segment also notes in
    /// `MANIFEST` that the segment exists, so that the loss of its file is noticed. If that fails,
    /// the next checkpoint notes it.
    ///
    /// # Errors
    /// After [`WriteError::Failed`] nothing can be written any more.
    pub fn sync(&mut self) -> Result<(), WriteError> {
        let noted = {
            let mut log = self.shared.log();
            log.sync()?;
            log.last_with_durable_block()
        };
        if noted > self.last_segment {
            self.last_segment = noted;
            let mut manifest = self.shared.manifest();
            if noted > manifest.current().last_segment {
                // The blocks stay durable whether or not MANIFEST can be written.
                let _ = manifest.add(Entry::LastSegment(noted));
            }
        }
        Ok(())
    }

    /// Does a part of the work for the next segment, when the one in use is half full. To be called
    /// after each sync, when commits have been acknowledged; it takes some milliseconds at most.
    ///
    /// # Errors
    /// With [`WriteError::Full`] there is no room for the next segment yet; the one in use still
    /// has room for blocks. After [`WriteError::Failed`] nothing can be written any more.
    pub fn prepare(&mut self) -> Result<(), WriteError> {
        let prepared = self.shared.log().prepare();
        self.note_room(prepared)
    }

    /// Lets checkpoints hurry as long as there is no room.
    fn note_room(&mut self, result: Result<(), WriteError>) -> Result<(), WriteError> {
        let lacks_room = matches!(result, Err(WriteError::Full(_)));
        if lacks_room != self.lacks_room {
            self.lacks_room = lacks_room;
            match lacks_room {
                true => self.shared.hurry.begin(),
                false => self.shared.hurry.end(),
            }
        }
        result
    }

    /// Writes a block without records behind the last one, so that a reader notices if the last one
    /// is damaged. To be called when no records have come for a while. The block is not synced. The
    /// next block takes its place.
    ///
    /// # Errors
    /// As with [`write`](LogWriter::write).
    pub fn confirm(&mut self) -> Result<(), WriteError> {
        self.shared.log().confirm()
    }

    /// Makes everything durable, and confirms the last block.
    ///
    /// # Errors
    /// As with [`sync`](LogWriter::sync).
    pub fn close(mut self) -> Result<(), WriteError> {
        self.sync()?;
        let mut log = self.shared.log();
        log.confirm()?;
        log.sync()
    }
}
