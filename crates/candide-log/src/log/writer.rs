//! Writing the log: blocks, one at a time, and the segments in which they are.
//!
//! One block at most is in flight: before a block is written, the block before it is durable. A
//! *confirmation* is a block without records, which only lets a reader notice if the block before
//! it is damaged; the next block is written over it, unless the segment is closed first.

use crate::directory::Directory;
use crate::disk::DiskFile;
use crate::error::{WriteError, is_full};
use crate::format::Uuid;
use crate::format::block::{BLOCK_ALIGN, BLOCK_HEADER_BYTES, BlockHeader};
use crate::format::bytes::word_bytes;
use crate::format::commit::HEADER_WORDS;
use crate::format::segment::{GenerationEnd, SegmentHeader};
use crate::log::segments::FIRST_BLOCK;
use crate::log::spares::{self, STEP_BYTES, Spare, Spares};
use crate::names;
use crate::random;
use std::io;
use std::sync::Arc;

/// The bytes of the first segment of a generation, unless segments are to be smaller.
const FIRST_SEGMENT_BYTES: u64 = 64 << 10;
/// The bytes of the smallest segment: its header, a block and a confirmation.
const LEAST_SEGMENT_BYTES: u64 = FIRST_BLOCK + 2 * BLOCK_ALIGN;

/// The log of an open database.
#[derive(Debug)]
pub(crate) struct Log {
    disk: Arc<Directory>,
    /// The header of the segment in use.
    segment: SegmentHeader,
    file: Box<dyn DiskFile>,
    /// The place of the next block.
    offset: u64,
    /// The last block of the generation.
    last: BlockHeader,
    /// Whether something was written to the segment since its last sync.
    is_unsynced: bool,
    /// The confirmation that lies at the place of the next block.
    confirmation: Option<BlockHeader>,
    /// The largest stamp of the generation's records.
    stamp: u64,
    /// The cut that is known to be durable.
    synced: u64,
    /// The place behind the last block that is known to be durable.
    synced_offset: u64,
    /// Closed segments that contain records which the checkpoint in force does not.
    closed: Vec<Closed>,
    spares: Spares,
    /// The bytes of the largest segments, unless a single block is larger.
    segment_bytes: u64,
    /// The lack of room for which a checkpoint should be made. Until then no file is made.
    no_room: Option<Arc<io::Error>>,
    /// The first failure. Nothing is written after it.
    failure: Option<Arc<io::Error>>,
}

/// A segment to which nothing is written any more.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Closed {
    pub(crate) number: u64,
    /// The bytes of the file.
    pub(crate) bytes: u64,
    /// The place behind its last block.
    pub(crate) end: u64,
}

/// The reason why a block was not written.
#[derive(Debug)]
pub(crate) enum Obstacle {
    /// An error.
    Error(WriteError),
    /// There is no file of `bytes` for the next segment. Nothing has changed. `spare` is to be
    /// filled, while the log is not locked, and [added](Log::add_spare); then the call is to be
    /// repeated.
    NoFile { spare: Spare, bytes: u64 },
}

impl From<WriteError> for Obstacle {
    fn from(error: WriteError) -> Obstacle {
        Obstacle::Error(error)
    }
}

/// The state that a new generation continues.
#[derive(Debug)]
pub(crate) struct Beginning {
    pub(crate) uuid: Uuid,
    pub(crate) number: u64,
    pub(crate) generation: u64,
    pub(crate) end_before: GenerationEnd,
    /// The segments of earlier generations that are needed.
    pub(crate) closed: Vec<Closed>,
    /// The number in the name of the first file for segments to come. No such file may have had
    /// this name before, unless its removal is durable.
    pub(crate) next_spare: u64,
    pub(crate) segment_bytes: u64,
}

impl Log {
    /// Begins a generation with a new segment, which is durable when this returns. A segment of
    /// this number is replaced.
    pub(crate) fn begin(disk: Arc<Directory>, beginning: &Beginning) -> io::Result<Log> {
        let &Beginning { uuid, number, generation, end_before, segment_bytes, .. } = beginning;
        let segment_bytes = segment_bytes.max(LEAST_SEGMENT_BYTES).next_multiple_of(BLOCK_ALIGN);
        let bytes = FIRST_SEGMENT_BYTES.min(segment_bytes);
        let segment = SegmentHeader { uuid, number, generation, end_before, salt: salt(), bytes };
        let mut spares = Spares::new(beginning.next_spare);
        let file = spares::create(&disk, &spares.name(), &segment)?;
        Ok(Log {
            disk,
            segment,
            file,
            offset: FIRST_BLOCK,
            last: BlockHeader { generation, ..BlockHeader::default() },
            is_unsynced: false,
            confirmation: None,
            stamp: 0,
            synced: 0,
            synced_offset: FIRST_BLOCK,
            closed: beginning.closed.clone(),
            spares,
            segment_bytes,
            no_room: None,
            failure: None,
        })
    }

    /// Returns the closed segments that are needed.
    pub(crate) fn closed(&self) -> &[Closed] {
        &self.closed
    }

    /// Returns the generation that is being written.
    pub(crate) fn generation(&self) -> u64 {
        self.segment.generation
    }

    /// Returns the number of the segment in use, and the place behind its last durable block.
    pub(crate) fn durable_end(&self) -> (u64, u64) {
        (self.segment.number, self.synced_offset)
    }

    /// Returns the number of the last segment that contains a durable block, as far as the
    /// checkpoint in force does not contain it; 0 if there is none.
    pub(crate) fn last_with_durable_block(&self) -> u64 {
        if self.synced_offset > FIRST_BLOCK {
            return self.segment.number;
        }
        self.closed.last().map_or(0, |closed| closed.number)
    }

    /// Returns the number of bytes of blocks that the checkpoint in force does not contain.
    pub(crate) fn bytes(&self) -> u64 {
        let closed: u64 = self.closed.iter().map(|closed| closed.end - FIRST_BLOCK).sum();
        closed + self.offset - FIRST_BLOCK
    }

    /// Returns whether a record has been written that is above the cut of the last block.
    pub(crate) fn has_pending(&self) -> bool {
        self.stamp > self.last.cut
    }

    /// Returns the failure after which nothing can be written.
    pub(crate) fn check(&self) -> Result<(), WriteError> {
        match &self.failure {
            Some(failure) => Err(WriteError::Failed(Arc::clone(failure))),
            None => Ok(()),
        }
    }

    /// Writes a block with these records, which closes `cut`.
    pub(crate) fn write(&mut self, records: &[&[u64]], cut: u64) -> Result<(), Obstacle> {
        self.check()?;
        let stamp = match self.check_records(records, cut) {
            Ok(stamp) => stamp,
            Err(what) => {
                return Err(self.fail(io::Error::new(io::ErrorKind::InvalidInput, what)).into());
            }
        };
        self.sync()?;
        self.append(records, cut)?;
        self.stamp = self.stamp.max(stamp);
        Ok(())
    }

    /// Checks that a reader will accept the records. Returns their largest stamp.
    fn check_records(&self, records: &[&[u64]], cut: u64) -> Result<u64, String> {
        let mut largest = 0;
        if cut < self.last.cut {
            return Err(format!("cut {cut} comes after the larger cut {}", self.last.cut));
        }
        for mut words in records.iter().copied() {
            while let &[counts, stamp, _, ..] = words {
                if stamp <= self.last.cut {
                    let cut = self.last.cut;
                    return Err(format!("a record below the cut: stamp {stamp}, after cut {cut}"));
                }
                largest = largest.max(stamp);
                let count = counts as u32 as usize;
                match words.split_at_checked(count) {
                    Some((_, rest)) if count > HEADER_WORDS => words = rest,
                    _ => {
                        return Err(format!(
                            "a record says that it has {count} words, and has {}",
                            words.len()
                        ));
                    }
                }
            }
            if !words.is_empty() {
                return Err(format!(
                    "a record has more than {HEADER_WORDS} words, and {} are left",
                    words.len()
                ));
            }
        }
        Ok(largest)
    }

    /// Writes a block at the place of the next one, or as the first of a new segment.
    fn append(&mut self, records: &[&[u64]], cut: u64) -> Result<(), Obstacle> {
        let payload: u64 = records.iter().map(|words| size_of_val(*words) as u64).sum();
        let size = (payload + BLOCK_HEADER_BYTES as u64).next_multiple_of(BLOCK_ALIGN);
        // The segment must also have room for a confirmation after the block.
        if self.offset + size + BLOCK_ALIGN > self.segment.bytes {
            let least = FIRST_BLOCK + size + BLOCK_ALIGN;
            self.next_segment(least, least.max(self.next_bytes().min(STEP_BYTES)))?;
        }
        let header = self.write_block(records, cut)?;
        self.confirmation = None;
        self.advance(header);
        Ok(())
    }

    /// Writes a block at the place of the next one.
    fn write_block(&mut self, records: &[&[u64]], cut: u64) -> Result<BlockHeader, WriteError> {
        let header = BlockHeader {
            sequence: self.last.sequence + 1,
            generation: self.segment.generation,
            cut,
            synced: self.synced,
            before: self.last.crc,
            ..BlockHeader::default()
        };
        let header = header.seal(self.segment.salt, records);
        let encoded = header.encode();
        let words: Vec<_> = records.iter().map(|words| word_bytes(words)).collect();
        let mut parts: Vec<&[u8]> = Vec::with_capacity(words.len() + 2);
        parts.push(&encoded);
        parts.extend(words.iter().map(|bytes| &**bytes));
        parts.push(header.padding());
        self.is_unsynced = true;
        match self.file.write_at(self.offset, &parts) {
            Ok(()) => Ok(header),
            Err(error) => Err(self.fail(error)),
        }
    }

    /// Moves the place of the next block behind a block that has been written.
    fn advance(&mut self, header: BlockHeader) {
        self.offset += header.size();
        self.last = header;
    }

    /// Makes everything that has been written durable.
    pub(crate) fn sync(&mut self) -> Result<(), WriteError> {
        self.check()?;
        if !self.is_unsynced {
            return Ok(());
        }
        if let Err(error) = self.file.sync() {
            return Err(self.fail(error));
        }
        self.is_unsynced = false;
        self.synced = self.last.cut;
        self.synced_offset = self.offset;
        Ok(())
    }

    /// Does a part of the work for the next segment, if the one in use is half full.
    pub(crate) fn prepare(&mut self) -> Result<(), WriteError> {
        self.check()?;
        if self.offset < self.segment.bytes / 2 || self.is_making_room() {
            return Ok(());
        }
        let prepared = self.spares.prepare(&**self.disk, self.next_bytes());
        prepared.map_err(|error| self.full_or_failed(error))
    }

    /// Adds a file for the next segment, unless it could not be filled, or a checkpoint needs its
    /// room.
    pub(crate) fn add_spare(
        &mut self,
        spare: Spare,
        filled: io::Result<()>,
    ) -> Result<(), WriteError> {
        if filled.is_err() || self.is_making_room() {
            spare.remove(&**self.disk);
        } else {
            self.spares.add(spare);
        }
        filled.map_err(|error| self.full_or_failed(error))
    }

    /// Writes a confirmation behind the last block, or in the next segment if the next segment is
    /// empty. Does nothing if the generation has no block, if the last one is confirmed already, or
    /// if a checkpoint contains it.
    pub(crate) fn confirm(&mut self) -> Result<(), WriteError> {
        self.check()?;
        let is_contained = self.offset == FIRST_BLOCK && self.closed.is_empty();
        if self.last.sequence == 0 || is_contained || self.confirmation.is_some() {
            return Ok(());
        }
        self.sync()?;
        self.confirmation = Some(self.write_block(&[], self.last.cut)?);
        Ok(())
    }

    /// Closes the segment in use, if it contains a block, and continues with a new one.
    pub(crate) fn rotate(&mut self) -> Result<(), Obstacle> {
        self.check()?;
        if self.offset == FIRST_BLOCK {
            return Ok(());
        }
        self.next_segment(self.next_bytes(), self.next_bytes())
    }

    /// Closes the segment in use as [`rotate`](Log::rotate) does. If no segment would be closed
    /// then, writes a block without records first.
    pub(crate) fn rotate_always(&mut self) -> Result<(), Obstacle> {
        if self.offset == FIRST_BLOCK && self.closed.is_empty() {
            self.write(&[], self.last.cut)?;
        }
        self.rotate()
    }

    /// Removes the unfinished file for the next segment, for which there is no room, and makes no
    /// other one until [`end_making_room`](Log::end_making_room) is called.
    pub(crate) fn begin_making_room(&mut self, no_room: Arc<io::Error>) {
        self.spares.abandon(&**self.disk);
        self.no_room = Some(no_room);
    }

    /// Returns whether no file for a segment is made.
    pub(crate) fn is_making_room(&self) -> bool {
        self.no_room.is_some()
    }

    /// Lets files for segments be made again.
    pub(crate) fn end_making_room(&mut self) {
        self.no_room = None;
    }

    /// Returns the bytes of the next segment.
    fn next_bytes(&self) -> u64 {
        (2 * self.segment.bytes).min(self.segment_bytes)
    }

    /// Goes on with a segment of at least `least` bytes; `bytes` is the size of a file that is made
    /// for the segment. The new segment takes the place of the segment in use if that segment
    /// contains no block, so that no segment without a block comes before another segment of its
    /// generation.
    fn next_segment(&mut self, least: u64, bytes: u64) -> Result<(), Obstacle> {
        if let Some(error) = &self.no_room {
            return Err(WriteError::Full(Arc::clone(error)).into());
        }
        let Some(mut spare) = self.spares.take(least) else {
            return Err(Obstacle::NoFile { spare: self.spares.reserve(), bytes });
        };
        self.sync()?;
        // No later sync would report the loss.
        if let Err(error) = self.file.check() {
            return Err(self.fail(error).into());
        }
        let is_empty = self.offset == FIRST_BLOCK;
        let number = self.segment.number + u64::from(!is_empty);
        let segment = SegmentHeader { number, salt: salt(), bytes: spare.bytes(), ..self.segment };
        let file = match spare.publish(&self.disk, &segment) {
            Ok(file) => file,
            Err(error) => {
                let (error, is_full) = error.into_io();
                if is_full {
                    // The file contains part of a header; it is not used again.
                    spare.remove(&**self.disk);
                    return Err(WriteError::Full(Arc::new(error)).into());
                }
                return Err(self.fail(error).into());
            }
        };
        let confirmation = self.confirmation.take();
        if !is_empty {
            // The confirmation is durable now, and the next block cannot take its place.
            if let Some(confirmation) = confirmation {
                self.advance(confirmation);
            }
            let SegmentHeader { number, bytes, .. } = self.segment;
            self.closed.push(Closed { number, bytes, end: self.offset });
        }
        self.segment = segment;
        self.file = file;
        self.offset = FIRST_BLOCK;
        self.synced_offset = FIRST_BLOCK;
        Ok(())
    }

    /// Gives back the segments before `first`, which a checkpoint contains now. Files of the usual
    /// size become spares, as long as there are fewer than `spares_max`. Returns the number of
    /// files that could not be given back.
    pub(crate) fn recycle(&mut self, first: u64, spares_max: usize) -> u64 {
        let (given_back, needed): (Vec<Closed>, Vec<Closed>) =
            self.closed.iter().partition(|closed| closed.number < first);
        self.closed = needed;
        let mut failures = 0;
        for Closed { number, bytes, .. } in given_back {
            let name = names::segment(number);
            let given_back = if bytes >= self.segment_bytes && self.spares.len() < spares_max {
                let spare = self.spares.name();
                let renamed = self.disk.rename(&name, &spare);
                renamed.map(|()| self.spares.add_segment(spare, bytes))
            } else {
                self.disk.remove(&name)
            };
            failures += u64::from(given_back.is_err());
        }
        failures
    }

    /// Returns the failure to make a file. Unless there is no room, nothing is written after it.
    fn full_or_failed(&mut self, error: io::Error) -> WriteError {
        if is_full(&error) { WriteError::Full(Arc::new(error)) } else { self.fail(error) }
    }

    /// Notes a failure, after which nothing is written.
    fn fail(&mut self, error: io::Error) -> WriteError {
        let failure = self.failure.get_or_insert_with(|| Arc::new(error));
        WriteError::Failed(Arc::clone(failure))
    }
}

fn salt() -> u64 {
    random::word()
}
