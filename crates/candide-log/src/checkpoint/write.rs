//! Writing the parts of a checkpoint.

use crate::disk::{Disk, DiskFile};
use crate::format::bytes::word_bytes;
use crate::format::checkpoint::{PART_BLOCK_BYTES, PART_BYTES, PartEncoder, PartHeader};
use crate::format::commit::records;
use crate::format::long_row::LongRow;
use crate::format::manifest::{Checkpoint, Part};
use crate::names;
use crate::schema::TableSchema;
use std::{io, mem};

/// A checkpoint that is being written.
#[derive(Debug)]
pub(crate) struct CheckpointWriter<'a> {
    disk: &'a dyn Disk,
    /// The header of the next part.
    header: PartHeader,
    parts: Vec<Part>,
    open: Option<OpenPart>,
    /// The rows of the next block, and their table.
    block: Vec<u64>,
    block_rows: u64,
    table: Option<Shape>,
    rows: u64,
    /// The number of bytes of the blocks that have been written.
    bytes: u64,
    part_bytes: u64,
    block_bytes: usize,
}

/// The table of a block of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    table: u32,
    key_words: u16,
    row_words: u16,
    has_values: bool,
}

#[derive(Debug)]
struct OpenPart {
    file: Box<dyn DiskFile>,
    encoder: PartEncoder,
}

/// The name of the file that could not be written, and why.
#[derive(Debug)]
pub(crate) struct PartError {
    pub(crate) file: String,
    pub(crate) source: io::Error,
}

impl<'a> CheckpointWriter<'a> {
    /// Begins a checkpoint whose first part has this header. Each part ends after about
    /// `part_bytes`.
    pub(crate) fn new(
        disk: &'a dyn Disk,
        header: PartHeader,
        part_bytes: u64,
    ) -> CheckpointWriter<'a> {
        let part_bytes = part_bytes.min(PART_BYTES);
        CheckpointWriter {
            disk,
            header,
            parts: Vec::new(),
            open: None,
            block: Vec::new(),
            block_rows: 0,
            table: None,
            rows: 0,
            bytes: 0,
            part_bytes,
            block_bytes: PART_BLOCK_BYTES.min(part_bytes as usize / 4),
        }
    }

    /// Returns the number of rows so far.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the number of bytes of the blocks of rows that have been written.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds a row. Rows come in ascending order of table and key.
    pub(crate) fn row(&mut self, schema: &TableSchema, row: LongRow<'_>) -> Result<(), PartError> {
        let shape = Shape {
            table: schema.number,
            key_words: schema.key_words,
            row_words: row.words.len() as u16,
            has_values: match self.table {
                Some(Shape { table, has_values, .. }) if table == schema.number => has_values,
                _ => schema.fields.iter().any(|field| field.ty.is_value()),
            },
        };
        if self.table != Some(shape) || size_of_val(&self.block[..]) >= self.block_bytes {
            self.end_block()?;
            self.table = Some(shape);
        }
        if shape.has_values {
            row.append_to(&mut self.block);
        } else {
            self.block.extend_from_slice(row.key);
            self.block.extend_from_slice(row.words);
        }
        self.block_rows += 1;
        self.rows += 1;
        Ok(())
    }

    /// Adds the pending records, and ends the checkpoint. When this returns, the contents of all
    /// parts are durable, but their names are not.
    pub(crate) fn finish(mut self, pending: &[u64]) -> Result<Checkpoint, PartError> {
        self.end_block()?;
        let pending: Vec<&[u64]> =
            records(pending).flatten().map(|record| record.words()).collect();
        if !pending.is_empty() {
            let part = self.part()?;
            let offset = part.encoder.bytes();
            let header = part.encoder.pending(&pending);
            let words: Vec<_> = pending.iter().map(|words| word_bytes(words)).collect();
            let mut bytes: Vec<&[u8]> = vec![&header];
            bytes.extend(words.iter().map(|words| &**words));
            let written = part.file.write_at(offset, &bytes);
            written.map_err(|source| self.error(source))?;
        }
        self.end_part()?;
        let PartHeader { checkpoint: number, generation, cut, .. } = self.header;
        Ok(Checkpoint { number, generation, cut, parts: self.parts })
    }

    /// Writes the rows that have been collected.
    fn end_block(&mut self) -> Result<(), PartError> {
        let Some(Shape { table, key_words, row_words, has_values }) = self.table.take() else {
            return Ok(());
        };
        let (rows, count) = (mem::take(&mut self.block), mem::take(&mut self.block_rows));
        let part = self.part()?;
        let offset = part.encoder.bytes();
        let header = match has_values {
            true => part.encoder.long_rows((table, count), key_words, row_words, &rows),
            false => part.encoder.rows(table, key_words, row_words, &rows),
        };
        let written = part.file.write_at(offset, &[&header, &word_bytes(&rows)]);
        let end = part.encoder.bytes();
        written.map_err(|source| self.error(source))?;
        self.bytes += end - offset;
        self.block = rows;
        self.block.clear();
        if end >= self.part_bytes { self.end_part() } else { Ok(()) }
    }

    /// Returns the part that is being written. Begins a part if there is none.
    fn part(&mut self) -> Result<&mut OpenPart, PartError> {
        let open = match self.open.take() {
            Some(open) => open,
            None => self.begin_part().map_err(|source| self.error(source))?,
        };
        Ok(self.open.insert(open))
    }

    fn begin_part(&self) -> io::Result<OpenPart> {
        let file = self.disk.create(&self.name())?;
        let (encoder, header) = PartEncoder::new(&self.header);
        file.write_at(0, &[&header])?;
        Ok(OpenPart { file, encoder })
    }

    /// Ends the part that is being written, if there is one, and makes it durable.
    fn end_part(&mut self) -> Result<(), PartError> {
        let Some(OpenPart { file, encoder }) = self.open.take() else { return Ok(()) };
        let offset = encoder.bytes();
        let (end, part) = encoder.end();
        let written = file.write_at(offset, &[&end]).and_then(|()| file.sync());
        written.map_err(|source| self.error(source))?;
        self.parts.push(part);
        self.header.part += 1;
        Ok(())
    }

    /// Returns the name of the part that is being written.
    fn name(&self) -> String {
        names::part(self.header.checkpoint, self.header.part)
    }

    fn error(&self, source: io::Error) -> PartError {
        PartError { file: self.name(), source }
    }
}
