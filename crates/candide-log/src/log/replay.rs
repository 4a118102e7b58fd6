//! Replaying the log: reading blocks, and collecting their records in batches.

use crate::error::OpenError;
use crate::format::block::BLOCK_HEADER_BYTES;
use crate::log::batches::{Batch, Batches};
use crate::log::reader::Reader;

/// The log as a sequence of batches.
#[derive(Debug)]
pub(crate) struct Replay<'a> {
    reader: Reader<'a>,
    batches: Batches,
    /// The generation of the last block.
    generation: u64,
    records: u64,
    dropped: u64,
    bytes: u64,
}

/// The records that are complete with one block.
#[derive(Debug)]
pub(crate) struct Step {
    /// The records, in order.
    pub(crate) batch: Batch,
    /// The file of the block.
    pub(crate) file: String,
    /// The place of the block.
    pub(crate) offset: u64,
    /// The generation of the block, and the cut up to which records have been applied.
    pub(crate) last: (u64, u64),
}

impl<'a> Replay<'a> {
    /// Returns the replay of the blocks of `reader`. `batches` is the state after a checkpoint, and
    /// `generation` the checkpoint's generation.
    pub(crate) fn new(reader: Reader<'a>, batches: Batches, generation: u64) -> Replay<'a> {
        Replay { reader, batches, generation, records: 0, dropped: 0, bytes: 0 }
    }

    /// Reads the next block. `None` at the end of the log.
    ///
    /// # Errors
    /// A file cannot be read, or something is damaged that had been durable.
    pub(crate) fn next(&mut self) -> Result<Option<Step>, OpenError> {
        self.next_until(None)
    }

    /// Reads the next block. `None` at the end of the log, or when the cut of a generation has been
    /// reached. The cut of the previous block may have been above it. Then only the records up to
    /// this cut have been applied.
    pub(crate) fn next_until(
        &mut self,
        until: Option<(u64, u64)>,
    ) -> Result<Option<Step>, OpenError> {
        if until.is_some_and(|until| self.last() >= until) {
            return Ok(None);
        }
        let Some(block) = self.reader.next()? else { return Ok(None) };
        let mut cut = block.header.cut;
        if let Some((generation, last)) = until {
            if block.header.generation > generation {
                return Ok(None);
            }
            if block.header.generation == generation {
                cut = cut.min(last);
            }
        }
        if block.begins_generation {
            self.dropped += self.batches.end_generation();
        }
        let file = self.reader.segments()[block.segment].name.clone();
        let batch = self.batches.add(cut, block.payload).map_err(|error| {
            let place = block.offset + BLOCK_HEADER_BYTES as u64 + error.offset;
            OpenError::corrupt(&file, place, error.what)
        })?;
        self.generation = block.header.generation;
        self.records += batch.len() as u64;
        self.bytes += block.header.size();
        Ok(Some(Step { batch, file, offset: block.offset, last: self.last() }))
    }

    /// Returns the reader.
    pub(crate) fn reader(&self) -> &Reader<'a> {
        &self.reader
    }

    /// Returns the records that are pending, and the cut of the last block.
    pub(crate) fn batches(&self) -> &Batches {
        &self.batches
    }

    /// Returns the generation of the last block, or of the checkpoint if there was no block, and
    /// the cut.
    pub(crate) fn last(&self) -> (u64, u64) {
        (self.generation, self.batches.cut())
    }

    /// Returns the number of records in all batches.
    pub(crate) fn records(&self) -> u64 {
        self.records
    }

    /// Returns the number of records that were dropped at the ends of generations, except the last
    /// one.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns the number of bytes of the blocks.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}
