//! Parts of a checkpoint: rows in the order of tables and keys, and pending commit records.
//!
//! A part is a header, blocks of rows, blocks of commit records, and an end, which is a block
//! without contents. The checksum of each block continues the checksum of the block before, so that
//! the last checksum depends on all bytes of the file.

#![forbid(unsafe_code)]

use super::bytes::{self, Field, byte_words, crc_of_words};
use super::commit::{self, CommitRecord};
use super::long_row::{LongRow, check_row_values, take_long_row};
use super::manifest::Part;
use super::{Fault, Malformed, Uuid};
use crate::schema::TABLE_NUMBER_MAX;
use std::borrow::Cow;

/// The number of bytes of a part's header.
pub const PART_HEADER_BYTES: usize = 64;
/// The number of bytes of the header of a block in a part.
pub const PART_BLOCK_HEADER_BYTES: usize = 40;
/// The number of bytes of rows after which a writer of a part should begin another block.
pub const PART_BLOCK_BYTES: usize = 256 << 10;
/// The number of bytes after which a writer of a checkpoint should begin another part.
pub const PART_BYTES: u64 = 64 << 20;

/// The version of the format of the parts of checkpoints that is written. This version and all
/// earlier ones are read: what they contain is valid in this version, too.
pub const VERSION: u32 = 2;

const MAGIC_BYTES: &[u8; 8] = b"candiCHK";
const PART: Field = Field::new("part", 12, 4);
const UUID: Field = Field::new("database", 16, 16);
const CHECKPOINT: Field = Field::new("checkpoint", 32, 8);
const GENERATION: Field = Field::new("generation", 40, 8);
const CUT: Field = Field::new("cut", 48, 8);
const RESERVED: Field = Field::new("reserved", 56, 4);
const CRC: Field = Field::new("CRC", 60, 4);

/// The fields of a part's header.
pub const FIELDS: &[Field] =
    &[bytes::MAGIC, bytes::FORMAT, PART, UUID, CHECKPOINT, GENERATION, CUT, RESERVED, CRC];

const BLOCK_MAGIC_BYTES: &[u8; 4] = b"cpbk";
const BLOCK_MAGIC: Field = Field::new("magic", 0, 4);
const BLOCK_KIND: Field = Field::new("kind", 4, 4);
const BLOCK_TABLE: Field = Field::new("table", 8, 4);
const BLOCK_KEY_WORDS: Field = Field::new("key words", 12, 2);
const BLOCK_ROW_WORDS: Field = Field::new("row words", 14, 2);
const BLOCK_COUNT: Field = Field::new("count", 16, 8);
const BLOCK_PAYLOAD: Field = Field::new("payload length", 24, 8);
const BLOCK_BEFORE: Field = Field::new("CRC before", 32, 4);
const BLOCK_CRC: Field = Field::new("CRC", 36, 4);

/// The fields of the header of a block in a part.
pub const BLOCK_FIELDS: &[Field] = &[
    BLOCK_MAGIC,
    BLOCK_KIND,
    BLOCK_TABLE,
    BLOCK_KEY_WORDS,
    BLOCK_ROW_WORDS,
    BLOCK_COUNT,
    BLOCK_PAYLOAD,
    BLOCK_BEFORE,
    BLOCK_CRC,
];

/// The kinds of blocks. A part has its blocks with rows first, then those with commit records.
const ROWS: u32 = 1;
const PENDING: u32 = 2;
const END: u32 = 3;
const LONG_ROWS: u32 = 4;

/// The header of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartHeader {
    /// The database.
    pub uuid: Uuid,
    /// The number of the checkpoint.
    pub checkpoint: u64,
    /// The place of the part among the parts of the checkpoint, from 0.
    pub part: u32,
    /// The generation up to which the checkpoint contains the log, from 1.
    pub generation: u64,
    /// The cut up to which the checkpoint contains the generation.
    pub cut: u64,
}

impl PartHeader {
    /// Returns the header as bytes.
    pub fn encode(&self) -> [u8; PART_HEADER_BYTES] {
        let mut header = [0; PART_HEADER_BYTES];
        PART.put(&mut header, self.part.into());
        UUID.put_bytes(&mut header, &self.uuid);
        CHECKPOINT.put(&mut header, self.checkpoint);
        GENERATION.put(&mut header, self.generation);
        CUT.put(&mut header, self.cut);
        bytes::seal(&mut header, MAGIC_BYTES, VERSION);
        header
    }

    /// Reads the header with which a part begins.
    ///
    /// # Errors
    /// Returns the fault of the header.
    pub fn decode(part: &[u8]) -> Result<PartHeader, Malformed> {
        let Some(header) = part.first_chunk::<PART_HEADER_BYTES>() else {
            let error = format!("the header of a checkpoint ends after {} bytes", part.len());
            return Err(Malformed::new(part.len() as u64, error).with(Fault::Short));
        };
        bytes::unseal(header, MAGIC_BYTES, VERSION, "the header of a checkpoint")?;
        RESERVED.is_zero(header)?;
        let mut uuid = Uuid::default();
        uuid.copy_from_slice(UUID.of(header));
        let decoded = PartHeader {
            uuid,
            checkpoint: CHECKPOINT.get(header),
            part: PART.get_u32(header),
            generation: GENERATION.get(header),
            cut: CUT.get(header),
        };
        match decoded.generation {
            0 => Err(GENERATION.wrong("the generation is 0")),
            _ => Ok(decoded),
        }
    }
}

/// The header of a block in a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartBlockHeader {
    /// The contents of the block.
    pub contents: Contents,
    /// The number of bytes behind the header, a multiple of 8.
    pub payload_bytes: u64,
    before: u32,
    crc: u32,
}

/// The contents of a block in a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    /// Rows of one table, each as the words of its key and its own words, in ascending order of
    /// their keys.
    Rows {
        /// The number of the table.
        table: u32,
        /// The number of words of a key.
        key_words: u16,
        /// The number of words of a row.
        row_words: u16,
        /// The number of rows.
        count: u64,
    },
    /// Rows of one table with values of any length, in ascending order of their keys. Each is a
    /// word, the number of words of its values; and the words of its key, its own words and the
    /// values.
    LongRows {
        /// The number of the table.
        table: u32,
        /// The number of words of a key.
        key_words: u16,
        /// The number of words of a row.
        row_words: u16,
        /// The number of rows.
        count: u64,
    },
    /// Commit records with a stamp above the cut of the checkpoint.
    Pending {
        /// The number of records.
        count: u64,
    },
    /// Nothing: the part ends here.
    End {
        /// The number of blocks before the end.
        blocks: u64,
    },
}

impl Contents {
    fn kind(self) -> u32 {
        match self {
            Contents::Rows { .. } => ROWS,
            Contents::LongRows { .. } => LONG_ROWS,
            Contents::Pending { .. } => PENDING,
            Contents::End { .. } => END,
        }
    }
}

impl PartBlockHeader {
    fn encode(&self) -> [u8; PART_BLOCK_HEADER_BYTES] {
        let mut bytes = [0; PART_BLOCK_HEADER_BYTES];
        let (kind, count) = match self.contents {
            Contents::Rows { table, key_words, row_words, count }
            | Contents::LongRows { table, key_words, row_words, count } => {
                BLOCK_TABLE.put(&mut bytes, table.into());
                BLOCK_KEY_WORDS.put(&mut bytes, key_words.into());
                BLOCK_ROW_WORDS.put(&mut bytes, row_words.into());
                (self.contents.kind(), count)
            }
            Contents::Pending { count } => (PENDING, count),
            Contents::End { blocks } => (END, blocks),
        };
        BLOCK_MAGIC.put_bytes(&mut bytes, BLOCK_MAGIC_BYTES);
        BLOCK_KIND.put(&mut bytes, kind.into());
        BLOCK_COUNT.put(&mut bytes, count);
        BLOCK_PAYLOAD.put(&mut bytes, self.payload_bytes);
        BLOCK_BEFORE.put(&mut bytes, self.before.into());
        BLOCK_CRC.put(&mut bytes, self.crc.into());
        bytes
    }

    /// Reads the header with which `bytes` begin. `room` is the number of bytes from there to the
    /// end of the part. Only [`PartDecoder::block`] finds out whether the header is damaged.
    ///
    /// # Errors
    /// No encoder writes such a header, or the block does not fit into the part.
    pub fn parse(bytes: &[u8], room: u64) -> Result<PartBlockHeader, Malformed> {
        let Some(bytes) = bytes.first_chunk::<PART_BLOCK_HEADER_BYTES>() else {
            let error = format!("the header of a block ends after {} bytes", bytes.len());
            return Err(Malformed::new(bytes.len() as u64, error).with(Fault::Short));
        };
        if BLOCK_MAGIC.of(bytes) != BLOCK_MAGIC_BYTES {
            return Err(BLOCK_MAGIC.wrong("no block begins here").with(Fault::Magic));
        }
        let (kind, count) = (BLOCK_KIND.get_u32(bytes), BLOCK_COUNT.get(bytes));
        let table = BLOCK_TABLE.get_u32(bytes);
        let key_words = BLOCK_KEY_WORDS.get(bytes) as u16;
        let row_words = BLOCK_ROW_WORDS.get(bytes) as u16;
        let contents = match kind {
            ROWS => Contents::Rows { table, key_words, row_words, count },
            LONG_ROWS => Contents::LongRows { table, key_words, row_words, count },
            PENDING => Contents::Pending { count },
            END => Contents::End { blocks: count },
            _ => return Err(BLOCK_KIND.wrong(format!("a block has the unknown kind {kind}"))),
        };
        if !matches!(kind, ROWS | LONG_ROWS) {
            BLOCK_TABLE.is_zero(bytes)?;
            BLOCK_KEY_WORDS.is_zero(bytes)?;
            BLOCK_ROW_WORDS.is_zero(bytes)?;
        }
        let header = PartBlockHeader {
            contents,
            payload_bytes: BLOCK_PAYLOAD.get(bytes),
            before: BLOCK_BEFORE.get_u32(bytes),
            crc: BLOCK_CRC.get_u32(bytes),
        };
        if header.size() > room {
            let error = format!("a block of {} bytes does not fit into {room}", header.size());
            return Err(BLOCK_PAYLOAD.wrong(error).with(Fault::Short));
        }
        header.check_counts()?;
        Ok(header)
    }

    /// Returns the number of bytes of the whole block.
    pub fn size(&self) -> u64 {
        self.payload_bytes.saturating_add(PART_BLOCK_HEADER_BYTES as u64)
    }

    /// Checks that the payload has the length that its contents have.
    fn check_counts(&self) -> Result<(), Malformed> {
        let payload = self.payload_bytes;
        match self.contents {
            Contents::Rows { table, .. } | Contents::LongRows { table, .. }
                if table > TABLE_NUMBER_MAX =>
            {
                Err(BLOCK_TABLE
                    .wrong(format!("table {table} is above the largest number of a table")))
            }
            Contents::Rows { count: 0, .. }
            | Contents::LongRows { count: 0, .. }
            | Contents::Pending { count: 0 } => Err(BLOCK_COUNT.wrong("the block has no contents")),
            Contents::Rows { key_words: 0, count: 2.., .. }
            | Contents::LongRows { key_words: 0, count: 2.., .. } => {
                Err(BLOCK_COUNT.wrong("several rows have keys of no words"))
            }
            Contents::Rows { key_words, row_words, count, .. } => {
                let words = u64::from(key_words) + u64::from(row_words);
                if words == 0 {
                    return Err(BLOCK_KEY_WORDS.wrong("neither the keys nor the rows have a word"));
                }
                let bytes = count.checked_mul(words * bytes::WORD as u64);
                match bytes == Some(payload) {
                    true => Ok(()),
                    false => Err(BLOCK_PAYLOAD.wrong(format!(
                        "{count} rows of {words} words do not have {payload} bytes"
                    ))),
                }
            }
            Contents::LongRows { .. } | Contents::Pending { .. }
                if !payload.is_multiple_of(bytes::WORD as u64) =>
            {
                Err(BLOCK_PAYLOAD.wrong(format!("{payload} bytes are not whole words")))
            }
            Contents::End { .. } if payload != 0 => {
                Err(BLOCK_PAYLOAD.wrong(format!("the end has {payload} bytes")))
            }
            Contents::LongRows { .. } | Contents::Pending { .. } | Contents::End { .. } => Ok(()),
        }
    }

    /// Returns the checksum of the header without its checksum; it continues the checksum of the
    /// block before.
    fn crc_of_header(&self) -> u32 {
        crc32c::crc32c(&PartBlockHeader { crc: 0, ..*self }.encode())
    }
}

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

    /// Checks that tables and keys ascend, and keeps the last key.
    fn check_order(
        &mut self,
        table: u32,
        key_words: usize,
        row_words: usize,
        words: &[u64],
    ) -> Result<(), Malformed> {
        if table < self.table {
            let error = format!("table {table} comes after table {}", self.table);
            return Err(BLOCK_TABLE.wrong(error));
        }
        let rows = words.chunks_exact((key_words + row_words).max(1));
        let mut last = self.key.as_deref().filter(|_| table == self.table);
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
        if table < self.table {
            let error = format!("table {table} comes after table {}", self.table);
            return Err(BLOCK_TABLE.wrong(error));
        }
        let mut last = self.key.as_deref().filter(|_| table == self.table);
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
