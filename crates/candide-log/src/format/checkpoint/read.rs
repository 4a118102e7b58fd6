//! Reading a part, block by block, and checking it.

use super::block::{
    BLOCK_BEFORE, BLOCK_COUNT, BLOCK_CRC, BLOCK_KIND, BLOCK_TABLE, Contents, END, LONG_ROWS,
    PART_BLOCK_HEADER_BYTES, PartBlockHeader, ROWS,
};
use super::header::{CRC, PART_HEADER_BYTES, PartHeader};
use crate::format::bytes::byte_words;
use crate::format::commit::{self, CommitRecord};
use crate::format::long_row::{LongRow, check_row_values, take_long_row};
use crate::format::manifest::Part;
use crate::format::{Fault, Malformed};
use std::borrow::Cow;

/// A part that is being read, block by block.
#[derive(Debug)]
pub struct PartDecoder {
    part: Part,
    /// The place of the next block.
    at: u64,
    crc: u32,
    blocks: u64,
    /// The kind of the previous block.
    kind: u32,
    /// The table of the last row, and its key.
    table: u32,
    key: Option<Vec<u64>>,
}

/// A block in a part, whose checksum and contents have been checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartBlock<'a> {
    /// The contents of the block.
    pub contents: Contents,
    words: Cow<'a, [u64]>,
}

impl PartBlock<'_> {
    /// Returns the words of the rows: for each row the key, then the row. Empty if the block
    /// contains no rows, or rows with values.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = (&[u64], &[u64])> {
        let (words, key_words, row_words) = match self.contents {
            Contents::Rows { key_words, row_words, .. } => (&self.words[..], key_words, row_words),
            _ => (<&[u64]>::default(), 0, 1),
        };
        let (key_words, row_words) = (usize::from(key_words), usize::from(row_words));
        // A block with rows of no words has been refused.
        words.chunks_exact((key_words + row_words).max(1)).map(move |row| row.split_at(key_words))
    }

    /// Returns the rows with values. Empty if the block contains none.
    pub fn long_rows(&self) -> impl Iterator<Item = LongRow<'_>> {
        let (key_words, row_words, mut rest) = match self.contents {
            Contents::LongRows { key_words, row_words, .. } => {
                (key_words.into(), row_words.into(), &self.words[..])
            }
            _ => (0, 0, <&[u64]>::default()),
        };
        std::iter::from_fn(move || {
            // The rows have been checked, so there is no error.
            let (row, behind) = take_long_row(rest, key_words, row_words).ok()?;
            rest = behind;
            Some(row)
        })
    }

    /// Returns the commit records. Empty if the block contains none.
    pub fn records(&self) -> impl Iterator<Item = CommitRecord<'_>> {
        let words = match self.contents {
            Contents::Pending { .. } => &self.words[..],
            _ => <&[u64]>::default(),
        };
        // The records have been checked, so there is no error.
        commit::records(words).flatten()
    }
}

impl PartDecoder {
    /// Begins to read a part. `bytes` contain at least its header, and `part` is its description in
    /// MANIFEST. Also returns the header, which the caller compares with the part that it wants.
    ///
    /// # Errors
    /// Returns an error if the header is damaged, or `part` has no room for an end.
    pub fn new(bytes: &[u8], part: Part) -> Result<(PartDecoder, PartHeader), Malformed> {
        let header = PartHeader::decode(bytes)?;
        let at = PART_HEADER_BYTES as u64;
        if part.bytes < at + PART_BLOCK_HEADER_BYTES as u64 {
            let error = format!("MANIFEST says that the part has {} bytes", part.bytes);
            return Err(Malformed::new(part.bytes, error).with(Fault::Short));
        }
        let crc = CRC.get_u32(bytes);
        let decoder = PartDecoder { part, at, crc, blocks: 0, kind: ROWS, table: 0, key: None };
        Ok((decoder, header))
    }

    /// Begins to read a part that is there as a whole, and that no MANIFEST describes.
    ///
    /// # Errors
    /// The header or the end is damaged.
    pub fn of_whole(bytes: &[u8]) -> Result<(PartDecoder, PartHeader), Malformed> {
        let end = bytes.len().saturating_sub(PART_BLOCK_HEADER_BYTES);
        let crc = PartBlockHeader::parse(&bytes[end..], PART_BLOCK_HEADER_BYTES as u64)
            .map_err(|error| error.after(end as u64))?
            .crc;
        PartDecoder::new(bytes, Part { bytes: bytes.len() as u64, crc })
    }

    /// Returns the place in the file of the next block.
    pub fn offset(&self) -> u64 {
        self.at
    }

    /// Returns the number of bytes that are left of the part; 0 after the end.
    pub fn left(&self) -> u64 {
        self.part.bytes.saturating_sub(self.at)
    }

    /// Reads the header of the next block, with which `bytes` begin.
    ///
    /// # Errors
    /// Returns an error if the header is damaged. Offsets count from the header.
    pub fn header(&self, bytes: &[u8]) -> Result<PartBlockHeader, Malformed> {
        PartBlockHeader::parse(bytes, self.left())
    }

    /// Reads the next block, with which `bytes` begin, and checks it and its order.
    ///
    /// # Errors
    /// Returns an error if the block is damaged. Offsets count from the block's header.
    pub fn block<'a>(&mut self, bytes: &'a [u8]) -> Result<PartBlock<'a>, Malformed> {
        let header = self.header(bytes)?;
        let whole = usize::try_from(header.size()).ok().and_then(|size| bytes.get(..size));
        let Some((_, payload)) =
            whole.and_then(|whole| whole.split_at_checked(PART_BLOCK_HEADER_BYTES))
        else {
            let error = format!("a block of {} bytes ends after {}", header.size(), bytes.len());
            return Err(Malformed::new(bytes.len() as u64, error).with(Fault::Short));
        };
        if header.before != self.crc {
            let (is, says) = (self.crc, header.before);
            return Err(BLOCK_BEFORE.wrong(format!(
                "the checksum before the block is {is:#010x}, and the block states {says:#010x}"
            )));
        }
        let crc = crc32c::crc32c_append(header.crc_of_header(), payload);
        if crc != header.crc {
            let says = header.crc;
            return Err(BLOCK_CRC.wrong(format!(
                "the checksum of the block is {crc:#010x}, and the block states {says:#010x}"
            )));
        }
        let words = byte_words(payload)?;
        self.check_contents(&header, &words)?;
        self.at += header.size();
        self.crc = crc;
        self.blocks += 1;
        Ok(PartBlock { contents: header.contents, words })
    }

    /// Checks that the contents are in order.
    fn check_contents(&mut self, header: &PartBlockHeader, words: &[u64]) -> Result<(), Malformed> {
        // Both kinds of rows come in one order.
        let kind = match header.contents.kind() {
            LONG_ROWS => ROWS,
            kind => kind,
        };
        if kind < self.kind {
            return Err(BLOCK_KIND.wrong("a block of rows comes after commit records"));
        }
        if kind != END && self.left() - header.size() < PART_BLOCK_HEADER_BYTES as u64 {
            return Err(Malformed::new(header.size(), "the part has no end").with(Fault::Short));
        }
        match header.contents {
            Contents::Rows { table, key_words, row_words, .. } => {
                self.check_order(table, key_words.into(), row_words.into(), words)?;
            }
            Contents::LongRows { table, key_words, row_words, count } => {
                self.check_long_order((table, count), key_words.into(), row_words.into(), words)?;
            }
            Contents::Pending { count } => check_records(count, words)?,
            Contents::End { blocks } => self.check_end(header, blocks)?,
        }
        self.kind = kind;
        Ok(())
    }

    /// Returns the last key, if it is of this table.
    ///
    /// # Errors
    /// The table comes too late.
    fn last_key(&self, table: u32) -> Result<Option<&[u64]>, Malformed> {
        if table < self.table {
            let error = format!("table {table} comes after table {}", self.table);
            return Err(BLOCK_TABLE.wrong(error));
        }
        Ok(self.key.as_deref().filter(|_| table == self.table))
    }

    /// Checks that tables and keys ascend, and keeps the last key.
    fn check_order(
        &mut self,
        table: u32,
        key_words: usize,
        row_words: usize,
        words: &[u64],
    ) -> Result<(), Malformed> {
        let rows = words.chunks_exact((key_words + row_words).max(1));
        let mut last = self.last_key(table)?;
        for (number, row) in rows.enumerate() {
            let key = &row[..key_words];
            if last.is_some_and(|last| last >= key) {
                return Err(unordered(number, number * size_of_val(row)));
            }
            last = Some(key);
        }
        self.key = last.map(<[u64]>::to_vec);
        self.table = table;
        Ok(())
    }

    /// Checks rows with values, and that tables and keys ascend; and keeps the last key.
    fn check_long_order(
        &mut self,
        (table, count): (u32, u64),
        key_words: usize,
        row_words: usize,
        words: &[u64],
    ) -> Result<(), Malformed> {
        let mut last = self.last_key(table)?;
        let (mut rest, mut number) = (words, 0);
        while !rest.is_empty() {
            let at = size_of_val(words) - size_of_val(rest);
            let wrong = |what| Malformed::new((at + PART_BLOCK_HEADER_BYTES) as u64, what);
            let (row, behind) = take_long_row(rest, key_words, row_words).map_err(wrong)?;
            check_row_values(row).map_err(wrong)?;
            if last.is_some_and(|last| last >= row.key) {
                return Err(unordered(number, at));
            }
            (last, rest, number) = (Some(row.key), behind, number + 1);
        }
        if number as u64 != count {
            let error = format!("the block has {number} rows, not {count}");
            return Err(BLOCK_COUNT.wrong(error));
        }
        self.key = last.map(<[u64]>::to_vec);
        self.table = table;
        Ok(())
    }

    /// Checks that the part ends here, as MANIFEST states.
    fn check_end(&self, header: &PartBlockHeader, blocks: u64) -> Result<(), Malformed> {
        if blocks != self.blocks {
            let error = format!("the part has {} blocks, and states {blocks}", self.blocks);
            return Err(BLOCK_COUNT.wrong(error));
        }
        if header.size() != self.left() {
            let left = self.left() - header.size();
            let error = format!("there are {left} bytes behind the end of the part");
            return Err(Malformed::new(header.size(), error));
        }
        if header.crc != self.part.crc {
            let (is, says) = (header.crc, self.part.crc);
            let error = format!("the part has checksum {is:#010x}, and MANIFEST says {says:#010x}");
            return Err(BLOCK_CRC.wrong(error));
        }
        Ok(())
    }
}

/// Returns the error of a row of a block, at this byte of the payload, that is not in order.
fn unordered(number: usize, at: usize) -> Malformed {
    let error = format!("row {number} of the block does not have a larger key");
    Malformed::new((at + PART_BLOCK_HEADER_BYTES) as u64, error)
}

/// Checks that the words are `count` commit records.
fn check_records(count: u64, words: &[u64]) -> Result<(), Malformed> {
    let mut is = 0;
    for record in commit::records(words) {
        record.map_err(|error| error.after(PART_BLOCK_HEADER_BYTES as u64))?;
        is += 1;
    }
    match is == count {
        true => Ok(()),
        false => Err(BLOCK_COUNT.wrong(format!("the block has {is} records, not {count}"))),
    }
}
