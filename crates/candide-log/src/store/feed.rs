//! Reading the log while it is being written, for a copy of it.

use super::checkpoint_parts::CheckpointParts;
use super::remembered;
use super::unopened::LogPlace;
use crate::directory::Directory;
use crate::error::OpenError;
use crate::format::Uuid;
use crate::format::block::BlockHeader;
use crate::log::segments::{FIRST_BLOCK, Segment};
use crate::schema::TableSchema;
use std::collections::VecDeque;
use std::fmt::Debug;
use std::io;
use std::sync::{Arc, MutexGuard};

/// The tables that have changed since the feed has told of them, each with the place of the log
/// that comes before the change. `None` without a feed.
pub(super) type Changes = Option<VecDeque<(LogPlace, TableSchema)>>;

/// An open database, as a feed sees it.
pub(super) trait Source: Send + Sync + Debug {
    fn disk(&self) -> &Arc<Directory>;

    /// Returns the place behind everything that is durable.
    fn end(&self) -> LogPlace;

    /// Returns all tables, and has later changes noted.
    fn tables(&self) -> Vec<TableSchema>;

    fn changes(&self) -> MutexGuard<'_, Changes>;

    /// Calls `take` with the checkpoint in force, if there is one, while no other one is made.
    fn with_checkpoint(&self, take: &mut dyn FnMut(&CheckpointParts<'_>));
}

/// A reader of the durable part of the log of an open database, in order, together with the changes
/// of its tables. While it exists, the directory stays locked.
#[derive(Debug)]
pub struct Feed {
    source: Arc<dyn Source>,
    uuid: Uuid,
    generation: u64,
    place: LogPlace,
    /// The block before, if it is of the generation that is being read.
    last: Option<BlockHeader>,
}

/// Whole blocks of the log, one behind the other, of one segment.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Run {
    /// The tables that have changed before the records, in the order of the changes.
    pub tables: Vec<TableSchema>,
    /// The generation of the log, and the cut that the last block closes; `None` without a block.
    pub last: Option<(u64, u64)>,
    /// The number of the segment of the blocks.
    pub segment: u64,
    /// The words of the commit records.
    pub records: Vec<u64>,
}

impl Feed {
    /// Returns a feed at the beginning of a log whose generation `generation` is being written.
    pub(super) fn new(source: Arc<dyn Source>, uuid: Uuid, generation: u64) -> Feed {
        let place = LogPlace { segment: 1, offset: FIRST_BLOCK };
        Feed { source, uuid, generation, place, last: None }
    }

    /// Returns the identity of the database.
    pub fn uuid(&self) -> Uuid {
        self.uuid
    }

    /// Returns the generation that is being written.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns the place behind what has been read.
    pub fn place(&self) -> LogPlace {
        self.place
    }

    /// Goes to a place, behind which blocks are read; at first it is the beginning of the log. Its
    /// segment has to be there.
    pub fn go_to(&mut self, place: LogPlace) {
        (self.place, self.last) = (place, None);
    }

    /// Returns all tables as they are, those that are dropped included. From now on, changes come
    /// with the records.
    pub fn tables(&self) -> Vec<TableSchema> {
        self.source.tables()
    }

    /// Calls `take` with the checkpoint in force, if there is one. No other one is made meanwhile.
    pub fn with_checkpoint(&self, take: &mut dyn FnMut(&CheckpointParts<'_>)) {
        self.source.with_checkpoint(take);
    }

    /// Returns the place behind everything that is durable.
    pub fn end(&self) -> LogPlace {
        self.source.end()
    }

    /// Notes something in the directory, as [`Unopened::remember`](super::Unopened::remember) does.
    ///
    /// # Errors
    /// After an error, either note may be there.
    pub fn remember(&self, bytes: &[u8]) -> io::Result<()> {
        remembered::write(self.source.disk(), bytes)
    }

    /// Reads blocks until they have `bytes` of records, or the segment or what is durable ends, or
    /// a table changes. At least one is read if there is one.
    ///
    /// # Errors
    /// The log cannot be read, or something is damaged that had been durable.
    pub fn read(&mut self, bytes: usize) -> Result<Run, OpenError> {
        // What is durable now names only tables whose changes are in the list.
        let end = self.end();
        let mut run = Run::default();
        let mut stop = end;
        if let Some(changes) = &mut *self.source.changes() {
            while changes.front().is_some_and(|(place, _)| *place <= self.place) {
                run.tables.extend(changes.pop_front().map(|(_, table)| table));
            }
            if let Some((place, _)) = changes.front() {
                stop = stop.min(*place);
            }
        }
        let source = Arc::clone(&self.source);
        while self.place < stop {
            // The file of a segment without a durable block may be replaced.
            let segment = Segment::open(&***source.disk(), Some(&self.uuid), self.place.segment)?;
            self.read_segment(&segment, stop, bytes, &mut run)?;
            if run.last.is_some() {
                break;
            }
        }
        Ok(run)
    }

    /// Reads blocks of a segment. Goes to the next one if there are no more.
    fn read_segment(
        &mut self,
        segment: &Segment<'_>,
        stop: LogPlace,
        bytes: usize,
        run: &mut Run,
    ) -> Result<(), OpenError> {
        let generation = segment.header.generation;
        while self.place < stop && size_of_val(&run.records[..]) < bytes {
            let block = segment.read(self.place.offset)?.ok();
            let last = self.last.filter(|last| last.generation == generation);
            let is_next = |header: &BlockHeader| {
                let follows = last.is_none_or(|last| header.follows(Some(&last)).is_ok());
                header.generation == generation && follows
            };
            let Some((header, records)) = block.filter(|(header, _)| is_next(header)) else {
                if self.place.segment == stop.segment {
                    let what = "a durable block of the log is missing";
                    return Err(OpenError::corrupt(&segment.name, self.place.offset, what));
                }
                self.place = LogPlace { segment: self.place.segment + 1, offset: FIRST_BLOCK };
                return Ok(());
            };
            run.records.extend_from_slice(&records);
            run.last = Some((generation, header.cut));
            run.segment = segment.header.number;
            self.place.offset += header.size();
            self.last = Some(header);
        }
        Ok(())
    }
}
