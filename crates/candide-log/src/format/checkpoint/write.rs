//! Writing a part: the headers of its blocks.

use super::block::{Contents, PART_BLOCK_HEADER_BYTES, PartBlockHeader};
use super::header::{CRC, PART_HEADER_BYTES, PartHeader};
use crate::format::bytes::crc_of_words;
use crate::format::manifest::Part;

/// The number of bytes of rows after which a writer of a part should begin another block.
pub const PART_BLOCK_BYTES: usize = 256 << 10;
/// The number of bytes after which a writer of a checkpoint should begin another part.
pub const PART_BYTES: u64 = 64 << 20;

/// A part that is being written: the headers of its blocks. The caller writes each header that it
/// gets, and the words behind it.
#[derive(Debug)]
pub struct PartEncoder {
    bytes: u64,
    crc: u32,
    blocks: u64,
}

impl PartEncoder {
    /// Begins a part. Returns the bytes of its header, too.
    pub fn new(header: &PartHeader) -> (PartEncoder, [u8; PART_HEADER_BYTES]) {
        let header = header.encode();
        let encoder =
            PartEncoder { bytes: header.len() as u64, crc: CRC.get_u32(&header), blocks: 0 };
        (encoder, header)
    }

    /// Returns the number of bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the header of a block of rows. `rows` contains the words of each row's key, followed
    /// by the row's own words. Keys ascend strictly, from block to block of a table, too; table
    /// numbers ascend. `rows` is not empty.
    ///
    /// # Panics
    /// The rows have no words.
    pub fn rows(
        &mut self,
        table: u32,
        key_words: u16,
        row_words: u16,
        rows: &[u64],
    ) -> [u8; PART_BLOCK_HEADER_BYTES] {
        let words = usize::from(key_words) + usize::from(row_words);
        debug_assert!(!rows.is_empty() && rows.len().is_multiple_of(words), "rows are whole");
        let count = (rows.len() / words) as u64;
        self.block(Contents::Rows { table, key_words, row_words, count }, &[rows])
    }

    /// Returns the header of a block of `count` rows with values, at least one. `rows` contains for
    /// each row the number of words of its values, the words of its key, its own words, and its
    /// values. The rows are in order, as for [`rows`](PartEncoder::rows).
    pub fn long_rows(
        &mut self,
        (table, count): (u32, u64),
        key_words: u16,
        row_words: u16,
        rows: &[u64],
    ) -> [u8; PART_BLOCK_HEADER_BYTES] {
        debug_assert!(count > 0, "there is a row");
        self.block(Contents::LongRows { table, key_words, row_words, count }, &[rows])
    }

    /// Returns the header of a block of commit records, each in an item of `records`, which is not
    /// empty. All blocks of rows come before.
    pub fn pending(&mut self, records: &[&[u64]]) -> [u8; PART_BLOCK_HEADER_BYTES] {
        debug_assert!(!records.is_empty(), "there is a record");
        self.block(Contents::Pending { count: records.len() as u64 }, records)
    }

    /// Returns the end of the part, and its description for MANIFEST.
    pub fn end(mut self) -> ([u8; PART_BLOCK_HEADER_BYTES], Part) {
        let end = self.block(Contents::End { blocks: self.blocks }, &[]);
        (end, Part { bytes: self.bytes, crc: self.crc })
    }

    fn block(&mut self, contents: Contents, words: &[&[u64]]) -> [u8; PART_BLOCK_HEADER_BYTES] {
        let payload_bytes = words.iter().map(|words| size_of_val(*words) as u64).sum();
        let header = PartBlockHeader { contents, payload_bytes, before: self.crc, crc: 0 };
        let crc = words.iter().fold(header.crc_of_header(), |crc, words| crc_of_words(crc, words));
        self.bytes += header.size();
        self.crc = crc;
        self.blocks += 1;
        PartBlockHeader { crc, ..header }.encode()
    }
}
