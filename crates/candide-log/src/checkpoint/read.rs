//! Reading the parts of a checkpoint, block by block.

use crate::disk::{Disk, DiskFile};
use crate::error::OpenError;
use crate::format::Malformed;
use crate::format::checkpoint::{
    Contents, PART_BLOCK_HEADER_BYTES, PART_HEADER_BYTES, PartBlock, PartDecoder, PartHeader,
};
use crate::format::long_row::LongRow;
use crate::format::manifest::{Checkpoint, Manifest};
use crate::log::segments::damaged;
use crate::names;
use crate::schema::TableSchema;
use crate::target::Loader;
use std::io;

/// A part of a checkpoint that is being read.
#[derive(Debug)]
pub(crate) struct PartReader<'a> {
    name: String,
    tables: &'a [TableSchema],
    file: Box<dyn DiskFile>,
    decoder: PartDecoder,
    buffer: Vec<u64>,
    has_ended: bool,
}

/// Returns the numbers of the parts of the checkpoint in force.
pub(crate) fn parts(manifest: &Manifest) -> std::ops::Range<usize> {
    0..manifest.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.parts.len())
}

impl<'a> PartReader<'a> {
    /// Opens a part of the checkpoint in force, and checks its header.
    ///
    /// # Errors
    /// The file is missing or has another length than MANIFEST states, or its header is damaged.
    pub(crate) fn open(
        disk: &dyn Disk,
        manifest: &'a Manifest,
        part: usize,
    ) -> Result<PartReader<'a>, OpenError> {
        let none = Checkpoint { number: 0, generation: 0, cut: 0, parts: Vec::new() };
        let checkpoint = manifest.checkpoint.as_ref().unwrap_or(&none);
        let expected = PartHeader {
            uuid: manifest.uuid,
            checkpoint: checkpoint.number,
            part: part as u32,
            generation: checkpoint.generation,
            cut: checkpoint.cut,
        };
        let name = names::part(expected.checkpoint, expected.part);
        let corrupt = |offset, what: String| OpenError::corrupt(&name, offset, what);
        let file = match disk.open_to_read(&name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(corrupt(0, "the file is missing, and it is needed".to_string()));
            }
            opened => opened.map_err(OpenError::io(&name))?,
        };
        let (length, part) = (file.len().map_err(OpenError::io(&name))?, checkpoint.parts[part]);
        if length != part.bytes {
            let what = format!("the file has {length} bytes, and MANIFEST says {}", part.bytes);
            return Err(corrupt(length.min(part.bytes), what));
        }
        let mut bytes = vec![0; PART_HEADER_BYTES.min(length as usize)];
        file.read_at(0, &mut bytes).map_err(OpenError::io(&name))?;
        let (decoder, header) =
            PartDecoder::new(&bytes, part).map_err(|error| damaged(&name, error))?;
        if header != expected {
            return Err(corrupt(0, "the file is a part of another checkpoint".to_string()));
        }
        let tables = &manifest.tables;
        Ok(PartReader { name, tables, file, decoder, buffer: Vec::new(), has_ended: false })
    }

    /// Returns the name of the file.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the place of the next block.
    pub(crate) fn offset(&self) -> u64 {
        self.decoder.offset()
    }

    /// Reads the next block. Returns `None` behind the end of the part.
    ///
    /// # Errors
    /// The file cannot be read or is damaged, or rows do not fit their table.
    pub(crate) fn next(&mut self) -> Result<Option<PartBlock<'_>>, OpenError> {
        if self.has_ended {
            return Ok(None);
        }
        let PartReader { name, tables, file, decoder, buffer, has_ended } = self;
        let offset = decoder.offset();
        let wrong = |error: Malformed| damaged(name, error.after(offset));
        let mut header = [0; PART_BLOCK_HEADER_BYTES];
        let count = header.len().min(decoder.left() as usize);
        file.read_at(offset, &mut header[..count]).map_err(OpenError::io(name))?;
        let size = decoder.header(&header[..count]).map_err(wrong)?.size();
        buffer.resize(size as usize / size_of::<u64>(), 0);
        let bytes = bytemuck::cast_slice_mut(buffer);
        file.read_at(offset, bytes).map_err(OpenError::io(name))?;
        let block = decoder.block(bytes).map_err(wrong)?;
        *has_ended = matches!(block.contents, Contents::End { .. });
        check_table(tables, block.contents)
            .map_err(|what| OpenError::corrupt(name, offset, what))?;
        Ok(Some(block))
    }
}

/// Returns whether the rows of a table, which exists, are skipped.
fn is_dropped(tables: &[TableSchema], table: u32) -> bool {
    let place = tables.binary_search_by_key(&table, |schema| schema.number);
    place.is_ok_and(|place| tables[place].is_dropped())
}

/// Checks that rows have the words that their table has.
fn check_table(tables: &[TableSchema], contents: Contents) -> Result<(), String> {
    let (Contents::Rows { table, key_words, row_words, .. }
    | Contents::LongRows { table, key_words, row_words, .. }) = contents
    else {
        return Ok(());
    };
    let Ok(place) = tables.binary_search_by_key(&table, |schema| schema.number) else {
        return Err(format!("rows of table {table}, but there is no such table"));
    };
    let schema = &tables[place];
    if (key_words, usize::from(row_words)) == (schema.key_words, schema.row_words()) {
        return Ok(());
    }
    Err(format!(
        "its keys have {key_words} words and its rows {row_words}, but those of table {} have {} and {}",
        schema.name,
        schema.key_words,
        schema.row_words()
    ))
}

/// The contents of a part of a checkpoint.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    pub(crate) rows: u64,
    /// The words of pending commit records, one record after the other.
    pub(crate) pending: Vec<u64>,
}

impl Loaded {
    /// Adds the contents of the next part.
    pub(crate) fn add(&mut self, next: Loaded) {
        self.rows += next.rows;
        self.pending.extend(next.pending);
    }
}

/// Returns the rows of a block, with or without values.
pub(crate) fn all_rows<'a>(block: &'a PartBlock<'_>) -> impl Iterator<Item = LongRow<'a>> {
    let fixed = block.rows().map(|(key, words)| LongRow::fixed(key, words));
    fixed.chain(block.long_rows())
}

/// Puts the rows of a part into `loader`, and returns its pending records.
pub(crate) fn load_part(
    part: &mut PartReader<'_>,
    loader: &mut dyn Loader,
) -> Result<Loaded, OpenError> {
    let mut loaded = Loaded::default();
    let name = part.name().to_string();
    let tables = part.tables;
    loop {
        let offset = part.offset();
        let Some(block) = part.next()? else {
            loader.finish().map_err(|error| OpenError::load(error, &name, offset))?;
            return Ok(loaded);
        };
        if let Contents::Rows { table, count, .. } | Contents::LongRows { table, count, .. } =
            block.contents
            && !is_dropped(tables, table)
        {
            for row in all_rows(&block) {
                let loaded = loader.row(table, row);
                loaded.map_err(|error| OpenError::load(error, &name, offset))?;
            }
            loaded.rows += count;
        }
        for record in block.records() {
            loaded.pending.extend_from_slice(record.words());
        }
    }
}

/// Returns the pending records of the checkpoint in force, which are in its last part.
pub(crate) fn read_pending(disk: &dyn Disk, manifest: &Manifest) -> Result<Vec<u64>, OpenError> {
    let mut pending = Vec::new();
    if let Some(last) = parts(manifest).last() {
        let mut part = PartReader::open(disk, manifest, last)?;
        while let Some(block) = part.next()? {
            block.records().for_each(|record| pending.extend_from_slice(record.words()));
        }
    }
    Ok(pending)
}
