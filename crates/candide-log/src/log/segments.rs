//! The segments that a database needs: finding them, and checking their headers.

use crate::disk::{Disk, DiskFile};
use crate::error::OpenError;
use crate::format::block::{BLOCK_ALIGN, BLOCK_HEADER_BYTES, BlockHeader};
use crate::format::segment::{SEGMENT_HEADER_BYTES, SegmentHeader};
use crate::format::{Fault, Malformed, Uuid};
use crate::names;
use std::cell::OnceCell;
use std::io;

/// The place of the first block of a segment.
pub(crate) const FIRST_BLOCK: u64 = SEGMENT_HEADER_BYTES as u64;

/// The bytes that are read at once in search of blocks, a multiple of [`BLOCK_ALIGN`].
const SEARCH_BYTES: usize = 1 << 20;

/// A segment whose header has been checked.
#[derive(Debug)]
pub(crate) struct Segment<'a> {
    pub(crate) name: String,
    pub(crate) header: SegmentHeader,
    disk: &'a dyn Disk,
    /// The file, if it is open: a process cannot have thousands of files open.
    file: OnceCell<Box<dyn DiskFile>>,
}

/// The result of reading a block: its header and the words of its commit records, or the reason why
/// there is no valid block.
pub(crate) type Read = Result<(BlockHeader, Vec<u64>), Malformed>;

impl<'a> Segment<'a> {
    /// Opens a segment and checks its header. The database is checked if it is known.
    ///
    /// # Errors
    /// The file is missing, shorter than its header states, or of another database, or the header
    /// is damaged.
    pub(crate) fn open(
        disk: &'a dyn Disk,
        uuid: Option<&Uuid>,
        number: u64,
    ) -> Result<Segment<'a>, OpenError> {
        let name = names::segment(number);
        let corrupt = |offset, what: String| OpenError::corrupt(&name, offset, what);
        let file = match disk.open_to_read(&name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(corrupt(0, "the file is missing, and it is needed".to_string()));
            }
            opened => opened.map_err(OpenError::io(&name))?,
        };
        let length = file.len().map_err(OpenError::io(&name))?;
        let mut bytes = vec![0; SEGMENT_HEADER_BYTES.min(length as usize)];
        file.read_at(0, &mut bytes).map_err(OpenError::io(&name))?;
        let header = SegmentHeader::decode(&bytes).map_err(|error| damaged(&name, error))?;
        if uuid.is_some_and(|uuid| header.uuid != *uuid) {
            return Err(corrupt(0, "the segment is of another database".to_string()));
        }
        if header.number != number {
            return Err(corrupt(
                0,
                format!("the segment says that its number is {}", header.number),
            ));
        }
        if header.bytes > length {
            let what = format!("the file has {length} bytes, and {} are needed", header.bytes);
            return Err(corrupt(length, what));
        }
        Ok(Segment { name, header, disk, file: OnceCell::from(file) })
    }

    /// Returns the file for reading. The file is opened if it is not open.
    pub(crate) fn file(&self) -> Result<&dyn DiskFile, OpenError> {
        let file = match self.file.get() {
            Some(file) => file,
            None => {
                let opened = self.disk.open_to_read(&self.name);
                let file = opened.map_err(OpenError::io(&self.name))?;
                self.file.get_or_init(|| file)
            }
        };
        Ok(&**file)
    }

    /// Opens the file for reading and writing.
    pub(crate) fn open_to_write(&self) -> Result<Box<dyn DiskFile>, OpenError> {
        self.disk.open(&self.name).map_err(OpenError::io(&self.name))
    }

    /// Closes the file, until it is needed again.
    pub(crate) fn close(&mut self) {
        self.file.take();
    }

    /// Returns the number of the segment.
    pub(crate) fn number(&self) -> u64 {
        self.header.number
    }

    /// Reads the block at a place, which is a multiple of [`BLOCK_ALIGN`].
    ///
    /// # Errors
    /// The file cannot be read. A file without a valid block is not an error of this function.
    pub(crate) fn read(&self, offset: u64) -> Result<Read, OpenError> {
        let room = self.header.bytes.saturating_sub(offset);
        if room < BLOCK_ALIGN {
            return Ok(Err(Malformed::new(0, "the segment ends").with(Fault::Short)));
        }
        let mut first = [0; BLOCK_HEADER_BYTES];
        self.file()?.read_at(offset, &mut first).map_err(OpenError::io(&self.name))?;
        let header = match BlockHeader::parse(&first, room) {
            Ok(header) => header,
            Err(error) => return Ok(Err(error)),
        };
        let mut words = vec![0u64; header.size() as usize / size_of::<u64>()];
        let bytes = bytemuck::cast_slice_mut(&mut words);
        self.file()?.read_at(offset, bytes).map_err(OpenError::io(&self.name))?;
        if let Err(error) = header.check(self.header.salt, bytes) {
            return Ok(Err(error));
        }
        let header_words = BLOCK_HEADER_BYTES / size_of::<u64>();
        let payload_words = header.payload_bytes as usize / size_of::<u64>();
        words.copy_within(header_words..header_words + payload_words, 0);
        words.truncate(payload_words);
        // The file contains little-endian words.
        if cfg!(target_endian = "big") {
            words.iter_mut().for_each(|word| *word = u64::from_le(*word));
        }
        Ok(Ok((header, words)))
    }

    /// Returns the place and the header of a valid block of the segment's generation, at `from` or
    /// behind it, with a sequence number of at least `sequence`. `None` if there is no such block.
    pub(crate) fn find(
        &self,
        from: u64,
        sequence: u64,
    ) -> Result<Option<(u64, BlockHeader)>, OpenError> {
        let mut buffer = Vec::new();
        let mut offset = from;
        while offset < self.header.bytes {
            let count = (self.header.bytes - offset).min(SEARCH_BYTES as u64) as usize;
            buffer.resize(count, 0);
            self.file()?.read_at(offset, &mut buffer).map_err(OpenError::io(&self.name))?;
            for place in (offset..).step_by(BLOCK_ALIGN as usize).take(count / BLOCK_ALIGN as usize)
            {
                let bytes = &buffer[(place - offset) as usize..];
                let Ok(header) = BlockHeader::parse(bytes, self.header.bytes - place) else {
                    continue;
                };
                let is_sought =
                    header.generation == self.header.generation && header.sequence >= sequence;
                if is_sought && self.read(place)?.is_ok() {
                    return Ok(Some((place, header)));
                }
            }
            offset += count as u64;
        }
        Ok(None)
    }
}

/// Opens the segments from `first` to `last`, and closes all files but the first one.
///
/// # Errors
/// A segment is missing or has a damaged header, or two segments do not continue one another.
pub(crate) fn open_all<'a>(
    disk: &'a dyn Disk,
    uuid: Option<&Uuid>,
    first: u64,
    last: u64,
) -> Result<Vec<Segment<'a>>, OpenError> {
    let mut segments: Vec<Segment> = Vec::new();
    for number in first..=last.max(first) {
        let mut segment = Segment::open(disk, uuid, number)?;
        if number > first {
            segment.close();
        }
        if let Some(before) = segments.last() {
            let (is, was) = (&segment.header, &before.header);
            let continues = is.generation > was.generation
                || is.generation == was.generation && is.end_before == was.end_before;
            if !continues {
                let (is, was) = (is.generation, was.generation);
                let what = format!("generation {is} follows generation {was} of {}", before.name);
                return Err(OpenError::corrupt(&segment.name, 0, what));
            }
        }
        segments.push(segment);
    }
    Ok(segments)
}

/// Returns the error of a file with wrong contents.
pub(crate) fn damaged(file: &str, error: Malformed) -> OpenError {
    match error.fault {
        Fault::Version { found, known } => {
            OpenError::Format { file: file.to_string(), found, known }
        }
        _ => OpenError::corrupt(file, error.offset, error.what),
    }
}
