//! Everything in a database, item by item, as it lies in the files.

use super::Source;
use crate::checkpoint::read::{PartReader, all_rows, parts};
use crate::disk::Disk;
use crate::error::OpenError;
use crate::format::block::{BLOCK_HEADER_BYTES, BlockHeader};
use crate::format::checkpoint::Contents;
use crate::format::commit::{CommitRecord, records};
use crate::format::long_row::LongRow;
use crate::format::manifest::Manifest;
use crate::format::segment::SegmentHeader;
use crate::log::reader::Reader;
use crate::store::recover;
use std::ops::ControlFlow;

/// Something in the files of a database.
#[derive(Debug, Clone, Copy)]
pub enum Item<'a> {
    /// The contents of MANIFEST. The first item.
    Manifest(&'a Manifest),
    /// A row of the checkpoint in force.
    Row {
        /// The file.
        file: &'a str,
        /// The number of the table.
        table: u32,
        /// The row.
        row: LongRow<'a>,
    },
    /// A segment of the log; its blocks follow.
    Segment {
        /// The file.
        file: &'a str,
        /// Its header.
        header: &'a SegmentHeader,
    },
    /// A block of the log; its records follow.
    Block {
        /// The file.
        file: &'a str,
        /// The place of the block, in bytes.
        offset: u64,
        /// Its header.
        header: &'a BlockHeader,
    },
    /// A commit record, of a block of the log or pending in the checkpoint.
    Record {
        /// The file.
        file: &'a str,
        /// The place of the record, in bytes; in a checkpoint, the place of the record's block.
        offset: u64,
        /// The record.
        record: CommitRecord<'a>,
    },
    /// The end of the log. The last item.
    End {
        /// The file.
        file: &'a str,
        /// The place behind the last block, in bytes.
        offset: u64,
    },
}

/// Calls `visit` with everything in a database, until it breaks.
///
/// # Errors
/// The directory is in use or contains no database, or a file cannot be read or is damaged.
/// Everything before the damage has been visited.
pub fn inspect(
    disk: &dyn Disk,
    visit: &mut dyn FnMut(Item<'_>) -> ControlFlow<()>,
) -> Result<(), OpenError> {
    let source = Source::open(disk)?;
    match inspect_source(&source, visit)? {
        ControlFlow::Continue(()) | ControlFlow::Break(()) => Ok(()),
    }
}

pub(super) fn inspect_source(
    source: &Source<'_>,
    visit: &mut dyn FnMut(Item<'_>) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, OpenError> {
    let manifest = &source.manifest;
    if visit(Item::Manifest(manifest)).is_break() {
        return Ok(ControlFlow::Break(()));
    }
    for part in parts(manifest) {
        let mut part = PartReader::open(source.disk, manifest, part)?;
        if inspect_part(&mut part, visit)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    let (segments, damage) = source.segments();
    if !segments.is_empty() {
        let reader = Reader::new(segments, recover::position(manifest), None)?;
        if inspect_log(reader, visit)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    match damage {
        Some(error) => Err(error),
        None => Ok(ControlFlow::Continue(())),
    }
}

fn inspect_part(
    part: &mut PartReader<'_>,
    visit: &mut dyn FnMut(Item<'_>) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, OpenError> {
    let file = &part.name().to_string()[..];
    loop {
        let offset = part.offset();
        let Some(block) = part.next()? else { return Ok(ControlFlow::Continue(())) };
        if let Contents::Rows { table, .. } | Contents::LongRows { table, .. } = block.contents {
            for row in all_rows(&block) {
                if visit(Item::Row { file, table, row }).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        for record in block.records() {
            if visit(Item::Record { file, offset, record }).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }
}

fn inspect_log(
    mut reader: Reader<'_>,
    visit: &mut dyn FnMut(Item<'_>) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, OpenError> {
    let mut segment = None;
    loop {
        let block = reader.next()?;
        let place = block.as_ref().map_or(reader.segments().len(), |block| block.segment + 1);
        // Segments without a block are items, too.
        for passed in &reader.segments()[segment.unwrap_or(0)..place] {
            let item = Item::Segment { file: &passed.name, header: &passed.header };
            if visit(item).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        segment = Some(place);
        let Some(block) = block else { break };
        let file = &reader.segments()[block.segment].name[..];
        let (offset, header) = (block.offset, &block.header);
        if visit(Item::Block { file, offset, header }).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let mut offset = offset + BLOCK_HEADER_BYTES as u64;
        for record in records(&block.payload) {
            let record = record.map_err(|error| OpenError::corrupt(file, offset, error.what))?;
            if visit(Item::Record { file, offset, record }).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            offset += size_of_val(record.words()) as u64;
        }
    }
    let last = reader.last_block();
    let (place, offset) =
        last.map_or((0, 0), |last| (last.segment, last.offset + last.header.size()));
    Ok(visit(Item::End { file: &reader.segments()[place].name, offset }))
}
