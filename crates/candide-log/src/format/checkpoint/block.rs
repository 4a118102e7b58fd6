//! The headers of the blocks of a part.

use crate::format::bytes::{self, Field};
use crate::format::{Fault, Malformed};
use crate::schema::TABLE_NUMBER_MAX;

/// The number of bytes of the header of a block in a part.
pub const PART_BLOCK_HEADER_BYTES: usize = 40;

const BLOCK_MAGIC_BYTES: &[u8; 4] = b"cpbk";
const BLOCK_MAGIC: Field = Field::new("magic", 0, 4);
pub(super) const BLOCK_KIND: Field = Field::new("kind", 4, 4);
pub(super) const BLOCK_TABLE: Field = Field::new("table", 8, 4);
const BLOCK_KEY_WORDS: Field = Field::new("key words", 12, 2);
const BLOCK_ROW_WORDS: Field = Field::new("row words", 14, 2);
pub(super) const BLOCK_COUNT: Field = Field::new("count", 16, 8);
const BLOCK_PAYLOAD: Field = Field::new("payload length", 24, 8);
pub(super) const BLOCK_BEFORE: Field = Field::new("CRC before", 32, 4);
pub(super) const BLOCK_CRC: Field = Field::new("CRC", 36, 4);

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
pub(super) const ROWS: u32 = 1;
const PENDING: u32 = 2;
pub(super) const END: u32 = 3;
pub(super) const LONG_ROWS: u32 = 4;

/// The header of a block in a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartBlockHeader {
    /// The contents of the block.
    pub contents: Contents,
    /// The number of bytes behind the header, a multiple of 8.
    pub payload_bytes: u64,
    pub(super) before: u32,
    pub(super) crc: u32,
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
    pub(super) fn kind(self) -> u32 {
        match self {
            Contents::Rows { .. } => ROWS,
            Contents::LongRows { .. } => LONG_ROWS,
            Contents::Pending { .. } => PENDING,
            Contents::End { .. } => END,
        }
    }
}

impl PartBlockHeader {
    pub(super) fn encode(&self) -> [u8; PART_BLOCK_HEADER_BYTES] {
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
    /// end of the part. Only [`PartDecoder::block`](super::PartDecoder::block) finds out whether
    /// the header is damaged.
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
    pub(super) fn crc_of_header(&self) -> u32 {
        crc32c::crc32c(&PartBlockHeader { crc: 0, ..*self }.encode())
    }
}
