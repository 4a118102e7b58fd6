//! Reading the log block by block, through segments and generations to its end.
//!
//! The next generation states the end of the log of a finished generation, and every block before
//! that end has to be valid. The log of the last generation ends at the first place without the
//! next valid block. This place is the end only if no valid block of the generation is behind it:
//! at most one block is in flight, so a crash cannot lose a block and keep a later one.

use crate::error::OpenError;
use crate::format::block::{BLOCK_ALIGN, BlockHeader};
use crate::format::segment::GenerationEnd;
use crate::log::segments::{FIRST_BLOCK, Read, Segment};
use std::fmt::{self, Display, Formatter};

/// The part of the log that a checkpoint contains.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) generation: u64,
    pub(crate) cut: u64,
}

/// A block of the log.
#[derive(Debug)]
pub(crate) struct Block {
    /// The place of the segment among the segments of the reader.
    pub(crate) segment: usize,
    pub(crate) offset: u64,
    pub(crate) header: BlockHeader,
    /// The words of the commit records.
    pub(crate) payload: Vec<u64>,
    /// Whether a generation has ended before this block.
    pub(crate) begins_generation: bool,
}

/// A reader of the log.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    segments: Vec<Segment<'a>>,
    /// The part of the log before the first segment, which a checkpoint contains.
    before: Option<Position>,
    /// The segment in which the next block is expected, and the place in it.
    segment: usize,
    offset: u64,
    /// The last block of the generation that is being read.
    last: Option<BlockHeader>,
    /// The last block of all.
    end: Option<LastBlock>,
    begins_generation: bool,
    /// For each segment the place behind its last block.
    ends: Vec<u64>,
    /// The place at which the reader stops, if it is known.
    stop: Option<Stop>,
}

/// The place behind the last block that is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stop {
    /// The number of the segment.
    pub(crate) segment: u64,
    pub(crate) offset: u64,
}

impl Stop {
    fn of(end: &GenerationEnd) -> Stop {
        Stop { segment: end.segment, offset: end.offset }
    }
}

impl Display for Stop {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "byte {} of segment {}", self.offset, self.segment)
    }
}

/// The place of the last block of the log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LastBlock {
    /// The place of the segment among the segments of the reader.
    pub(crate) segment: usize,
    pub(crate) offset: u64,
    pub(crate) header: BlockHeader,
}

impl<'a> Reader<'a> {
    /// Returns a reader of these segments, at least one. `before` is the part of the log that the
    /// checkpoint in force contains. If `stop` is given, the reader stops there.
    ///
    /// # Errors
    /// The first segment does not continue the checkpoint.
    pub(crate) fn new(
        segments: Vec<Segment<'a>>,
        before: Option<Position>,
        stop: Option<Stop>,
    ) -> Result<Reader<'a>, OpenError> {
        let begins_generation = before.is_some_and(|before| {
            segments.first().is_some_and(|first| first.header.generation > before.generation)
        });
        let reader = Reader {
            ends: vec![FIRST_BLOCK; segments.len()],
            segments,
            before,
            segment: 0,
            offset: FIRST_BLOCK,
            last: None,
            end: None,
            begins_generation,
            stop,
        };
        reader.check_beginning()?;
        Ok(reader)
    }

    fn check_beginning(&self) -> Result<(), OpenError> {
        let first = &self.segments[0];
        let header = &first.header;
        let corrupt = |what| Err(OpenError::corrupt(&first.name, 0, what));
        let generation = header.generation;
        match self.before {
            None if generation != 1 => corrupt(format!(
                "the log begins with generation {generation}, and there is no checkpoint before it"
            )),
            Some(before) if generation < before.generation => corrupt(format!(
                "the log begins with generation {generation}, and the checkpoint is of generation \
                 {}",
                before.generation
            )),
            Some(before)
                if generation > before.generation && header.end_before.cut != before.cut =>
            {
                corrupt(format!(
                    "generation {generation} says that cut {} is before it, and the checkpoint \
                     has cut {}",
                    header.end_before.cut, before.cut
                ))
            }
            _ => Ok(()),
        }
    }

    /// Returns the segments.
    pub(crate) fn segments(&self) -> &[Segment<'a>] {
        &self.segments
    }

    /// Returns the last block that was read. `None` before the first.
    pub(crate) fn last_block(&self) -> Option<LastBlock> {
        self.end
    }

    /// Returns for each segment the place behind its last block, as far as it has been read.
    pub(crate) fn ends(&self) -> &[u64] {
        &self.ends
    }

    /// Reads the next block. Returns `None` at the end of the log.
    ///
    /// # Errors
    /// A file cannot be read, or something is damaged that had been durable.
    pub(crate) fn next(&mut self) -> Result<Option<Block>, OpenError> {
        loop {
            if self.stop.is_some_and(|stop| self.is_at(stop)) {
                return Ok(None);
            }
            let end = self.generation_end();
            if end.is_some_and(|(_, end)| self.is_at(Stop::of(&end))) {
                self.enter_generation()?;
                continue;
            }
            let why = match self.read_here()? {
                Ok(block) => return Ok(Some(block)),
                Err(why) => why,
            };
            if self.enter_segment()? {
                continue;
            }
            if let Some(stop) = self.stop {
                return Err(self.damage(format!("{why}; the log goes on to {stop}")));
            }
            if let Some((next, end)) = end {
                let (next, end) = (&self.segments[next].name, Stop::of(&end));
                return Err(
                    self.damage(format!("{why}; {next} says that the log goes on to {end}"))
                );
            }
            if let Some((segment, offset)) = self.later_block()? {
                return Err(
                    self.damage(format!("{why}; a later block is at byte {offset} of {segment}"))
                );
            }
            return Ok(None);
        }
    }

    /// Returns the end of the generation that is being read, and the place of the segment that
    /// states this end. `None` in the last generation.
    fn generation_end(&self) -> Option<(usize, GenerationEnd)> {
        let generation = self.segments[self.segment].header.generation;
        let mut later = self.segments.iter().enumerate().skip(self.segment);
        later
            .find(|(_, segment)| segment.header.generation != generation)
            .map(|(place, segment)| (place, segment.header.end_before))
    }

    fn is_at(&self, stop: Stop) -> bool {
        self.segments[self.segment].number() == stop.segment && self.offset == stop.offset
    }

    /// Enters the next generation, whose first segment states where and at which cut this one
    /// ended.
    fn enter_generation(&mut self) -> Result<(), OpenError> {
        let Some((next, end)) = self.generation_end() else { return Ok(()) };
        let generation = self.segments[self.segment].header.generation;
        let before = self.before.filter(|before| before.generation == generation);
        let cut = self.last.map(|last| last.cut).or(before.map(|before| before.cut)).unwrap_or(0);
        if cut != end.cut {
            let name = &self.segments[next].name;
            let what =
                format!("the log ends at cut {cut}, not at cut {} as the segment says", end.cut);
            return Err(OpenError::corrupt(name, 0, what));
        }
        self.begin_generation();
        Ok(())
    }

    /// Goes to the first segment of the next generation.
    fn begin_generation(&mut self) {
        if let Some((next, _)) = self.generation_end() {
            self.go_to(next);
            self.last = None;
            self.begins_generation = true;
        }
    }

    /// Goes to the first block of a later segment.
    fn go_to(&mut self, segment: usize) {
        self.segments[self.segment].close();
        self.segment = segment;
        self.offset = FIRST_BLOCK;
    }

    /// Goes to the next segment, if it begins with the next block of the generation. Returns
    /// whether it has gone there.
    fn enter_segment(&mut self) -> Result<bool, OpenError> {
        // A writer begins the next segment only after a segment that contains a block.
        if self.offset == FIRST_BLOCK {
            return Ok(false);
        }
        let next = self.segment + 1;
        let generation = self.segments[self.segment].header.generation;
        let Some(segment) = self.segments.get(next) else { return Ok(false) };
        if segment.header.generation != generation {
            return Ok(false);
        }
        match segment.read(FIRST_BLOCK)? {
            Ok((header, _)) if self.follows(&header).is_ok() => {
                self.go_to(next);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Reads the next block, if it is at this place. Otherwise returns the reason.
    fn read_here(&mut self) -> Result<Result<Block, String>, OpenError> {
        let read: Read = self.segments[self.segment].read(self.offset)?;
        let (header, payload) = match read {
            Ok(block) => block,
            Err(error) => return Ok(Err(error.what.into_owned())),
        };
        if let Err(why) = self.follows(&header) {
            return Ok(Err(why));
        }
        let (segment, offset) = (self.segment, self.offset);
        self.offset += header.size();
        self.ends[segment] = self.offset;
        self.last = Some(header);
        self.end = Some(LastBlock { segment, offset, header });
        let begins_generation = std::mem::take(&mut self.begins_generation);
        Ok(Ok(Block { segment, offset, header, payload, begins_generation }))
    }

    /// Returns the reason why a valid block is not the next one of the log, or `None` if it is.
    fn follows(&self, header: &BlockHeader) -> Result<(), String> {
        let generation = self.segments[self.segment].header.generation;
        if header.generation != generation {
            return Err(format!("the block is of generation {}", header.generation));
        }
        // The checkpoint may contain the beginning of a generation. Which block was the last of it
        // is not known any more, but its cut is: a block was durable before the next was written.
        let continued = self.before.filter(|before| before.generation == generation);
        match (self.last, continued) {
            (None, Some(before)) if header.synced != before.cut => Err(format!(
                "the block follows cut {}, and the checkpoint contains cut {}",
                header.synced, before.cut
            )),
            (None, Some(_)) => Ok(()),
            (last, _) => header.follows(last.as_ref()).map_err(|error| error.what.into_owned()),
        }
    }

    /// Returns the place of a valid block of this generation that has not been read.
    fn later_block(&self) -> Result<Option<(&str, u64)>, OpenError> {
        let sequence = self.last.map_or(1, |last| last.sequence + 1);
        let mut from = self.offset;
        for segment in &self.segments[self.segment..] {
            if let Some((offset, _)) = segment.find(from, sequence)? {
                return Ok(Some((&segment.name, offset)));
            }
            from = FIRST_BLOCK;
        }
        Ok(None)
    }

    fn damage(&self, what: String) -> OpenError {
        OpenError::corrupt(&self.segments[self.segment].name, self.offset, what)
    }
}

const _: () = assert!(FIRST_BLOCK.is_multiple_of(BLOCK_ALIGN), "blocks begin at multiples");
