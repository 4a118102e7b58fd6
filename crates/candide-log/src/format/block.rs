//! Blocks of the log, each written by the logger at once.
//!
//! A block is a header of 64 bytes, commit records, and zeros up to a multiple of 4 KiB. A block is
//! valid whole or not at all.

#![forbid(unsafe_code)]

use super::bytes::{Field, crc_of_words};
use super::{Fault, Malformed};

/// The number of bytes of a block's header.
pub const BLOCK_HEADER_BYTES: usize = 64;
/// The alignment of blocks: their places and sizes are multiples of this number of bytes.
pub const BLOCK_ALIGN: u64 = 4096;
/// Zeros to write behind a payload.
pub const ZEROS: [u8; BLOCK_ALIGN as usize] = [0; BLOCK_ALIGN as usize];

const MAGIC_BYTES: &[u8; 4] = b"cblk";
const MAGIC: Field = Field::new("magic", 0, 4);
const FLAGS: Field = Field::new("flags", 4, 4);
const PAYLOAD: Field = Field::new("payload length", 8, 8);
const SEQUENCE: Field = Field::new("sequence number", 16, 8);
const GENERATION: Field = Field::new("generation", 24, 8);
const CUT: Field = Field::new("cut", 32, 8);
const SYNCED: Field = Field::new("synced", 40, 8);
const BEFORE: Field = Field::new("CRC of the block before", 48, 4);
const CRC: Field = Field::new("CRC", 52, 4);
const RESERVED: Field = Field::new("reserved", 56, 8);

/// The fields of a block's header.
pub const FIELDS: &[Field] =
    &[MAGIC, FLAGS, PAYLOAD, SEQUENCE, GENERATION, CUT, SYNCED, BEFORE, CRC, RESERVED];

/// The header of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BlockHeader {
    /// The number of bytes of the commit records, a multiple of 8.
    pub payload_bytes: u64,
    /// The place of the block in its generation, from 1.
    pub sequence: u64,
    /// The generation, from 1.
    pub generation: u64,
    /// The cut: all commits with a stamp up to this are in this block or in earlier ones.
    pub cut: u64,
    /// The cut that was known to be durable when the block was written; at most `cut`.
    pub synced: u64,
    /// The checksum of the block before in the generation; 0 for the first.
    pub before: u32,
    /// The checksum of this block.
    pub crc: u32,
}

impl BlockHeader {
    /// Returns the header with the `payload_bytes` and the `crc` of this payload. The payload
    /// consists of whole commit records. `salt` is the segment's salt.
    #[must_use]
    pub fn seal(self, salt: u64, payload: &[&[u64]]) -> BlockHeader {
        let payload_bytes = payload.iter().map(|words| size_of_val(*words) as u64).sum();
        let header = BlockHeader { payload_bytes, ..self };
        let crc = payload.iter().fold(header.crc_of_header(salt), |crc, w| crc_of_words(crc, w));
        BlockHeader { crc, ..header }
    }

    /// Returns the header of a block without records that follows this one, which is durable.
    /// `salt` is the salt of the segment to which it is written.
    #[must_use]
    pub fn confirmation(&self, salt: u64) -> BlockHeader {
        let sequence = self.sequence + 1;
        BlockHeader { sequence, synced: self.cut, before: self.crc, ..*self }.seal(salt, &[])
    }

    /// Returns the header as bytes.
    pub fn encode(&self) -> [u8; BLOCK_HEADER_BYTES] {
        let mut bytes = [0; BLOCK_HEADER_BYTES];
        MAGIC.put_bytes(&mut bytes, MAGIC_BYTES);
        PAYLOAD.put(&mut bytes, self.payload_bytes);
        SEQUENCE.put(&mut bytes, self.sequence);
        GENERATION.put(&mut bytes, self.generation);
        CUT.put(&mut bytes, self.cut);
        SYNCED.put(&mut bytes, self.synced);
        BEFORE.put(&mut bytes, self.before.into());
        CRC.put(&mut bytes, self.crc.into());
        bytes
    }

    /// Reads the header with which `bytes` begin. `room` is the number of bytes from there to the
    /// end of the segment. Only [`check`](BlockHeader::check) finds out whether the header is
    /// damaged.
    ///
    /// # Errors
    /// No encoder writes such a header, or the block does not fit into the segment.
    pub fn parse(bytes: &[u8], room: u64) -> Result<BlockHeader, Malformed> {
        let Some(bytes) = bytes.first_chunk::<BLOCK_HEADER_BYTES>() else {
            let error = format!("the header of a block ends after {} bytes", bytes.len());
            return Err(Malformed::new(bytes.len() as u64, error).with(Fault::Short));
        };
        if MAGIC.of(bytes) != MAGIC_BYTES {
            return Err(MAGIC.wrong("no block begins here").with(Fault::Magic));
        }
        FLAGS.is_zero(bytes)?;
        RESERVED.is_zero(bytes)?;
        let header = BlockHeader {
            payload_bytes: PAYLOAD.get(bytes),
            sequence: SEQUENCE.get(bytes),
            generation: GENERATION.get(bytes),
            cut: CUT.get(bytes),
            synced: SYNCED.get(bytes),
            before: BEFORE.get_u32(bytes),
            crc: CRC.get_u32(bytes),
        };
        let payload = header.payload_bytes;
        if !payload.is_multiple_of(8) {
            return Err(PAYLOAD.wrong(format!("a payload of {payload} bytes is not whole words")));
        }
        if header.checked_size().is_none_or(|size| size > room) {
            let error = format!("a block with {payload} bytes of payload does not fit into {room}");
            return Err(PAYLOAD.wrong(error).with(Fault::Short));
        }
        if header.sequence == 0 {
            return Err(SEQUENCE.wrong("the sequence number is 0"));
        }
        if header.sequence == 1 && header.before != 0 {
            return Err(BEFORE.wrong("the first block has a block before it"));
        }
        if header.generation == 0 {
            return Err(GENERATION.wrong("the generation is 0"));
        }
        let (cut, synced) = (header.cut, header.synced);
        if synced > cut {
            return Err(SYNCED.wrong(format!(
                "the block says that cut {synced} is durable, but closes only cut {cut}"
            )));
        }
        Ok(header)
    }

    /// Returns the number of bytes of the whole block, a multiple of [`BLOCK_ALIGN`].
    pub fn size(&self) -> u64 {
        self.checked_size().unwrap_or(u64::MAX)
    }

    fn checked_size(&self) -> Option<u64> {
        let bytes = self.payload_bytes.checked_add(BLOCK_HEADER_BYTES as u64)?;
        bytes.checked_next_multiple_of(BLOCK_ALIGN)
    }

    /// Returns the zeros that have to be written behind the payload.
    pub fn padding(&self) -> &'static [u8] {
        let end = self.payload_bytes.wrapping_add(BLOCK_HEADER_BYTES as u64);
        &ZEROS[..(end.wrapping_neg() % BLOCK_ALIGN) as usize]
    }

    /// Checks a block against its header. `block` is all its bytes, [`size`](BlockHeader::size) of
    /// them, and `salt` is the segment's salt. Returns the payload.
    ///
    /// # Errors
    /// The block is cut off, the checksum is wrong, or a byte behind the payload is not zero.
    pub fn check<'a>(&self, salt: u64, block: &'a [u8]) -> Result<&'a [u8], Malformed> {
        let whole = usize::try_from(self.size()).ok().and_then(|size| block.get(..size));
        let Some(whole) = whole else {
            let error = format!("a block of {} bytes ends after {}", self.size(), block.len());
            return Err(Malformed::new(block.len() as u64, error).with(Fault::Short));
        };
        let end = BLOCK_HEADER_BYTES + self.payload_bytes as usize;
        let payload = &whole[BLOCK_HEADER_BYTES..end];
        let crc = crc32c::crc32c_append(self.crc_of_header(salt), payload);
        if crc != self.crc {
            let found = self.crc;
            return Err(CRC.wrong(format!(
                "the checksum of the block is {crc:#010x}, and the block states {found:#010x}"
            )));
        }
        let behind = &whole[end..];
        if behind != self.padding() {
            let at = end + behind.iter().position(|byte| *byte != 0).unwrap_or(0);
            return Err(Malformed::new(at as u64, "a byte behind the payload is not zero"));
        }
        Ok(payload)
    }

    /// Checks that this block comes directly after `before` in the same generation, or is its
    /// first.
    ///
    /// # Errors
    /// Returns an error if the block does not fit its header.
    pub fn follows(&self, before: Option<&BlockHeader>) -> Result<(), Malformed> {
        let first = BlockHeader { generation: self.generation, ..BlockHeader::default() };
        let before = before.unwrap_or(&first);
        if self.generation != before.generation {
            let (is, was) = (self.generation, before.generation);
            return Err(GENERATION.wrong(format!("generation {is} follows {was}")));
        }
        if before.sequence.checked_add(1) != Some(self.sequence) {
            let (is, was) = (self.sequence, before.sequence);
            return Err(SEQUENCE.wrong(format!("block {is} follows block {was}")));
        }
        if self.before != before.crc {
            let (is, was) = (self.before, before.crc);
            return Err(BEFORE.wrong(format!(
                "the checksum of the block before is {was:#010x}, and this block states {is:#010x}"
            )));
        }
        if self.cut < before.cut {
            let (is, was) = (self.cut, before.cut);
            return Err(CUT.wrong(format!("cut {is} comes after the larger cut {was}")));
        }
        if self.synced < before.synced || self.synced > before.cut {
            let (is, was, cut) = (self.synced, before.synced, before.cut);
            return Err(SYNCED.wrong(format!(
                "cut {is} is said to be synced, after {was} was and up to {cut} was written"
            )));
        }
        Ok(())
    }

    /// Returns the checksum of the salt and of the header without its checksum.
    fn crc_of_header(&self, salt: u64) -> u32 {
        let header = BlockHeader { crc: 0, ..*self }.encode();
        crc32c::crc32c_append(crc32c::crc32c(&salt.to_le_bytes()), &header)
    }
}

/// Reads and checks the block with which `bytes` begin: the rest of a segment, whose header has
/// this salt. Returns the header and the payload of the block.
///
/// # Errors
/// There is no valid block.
pub fn decode(bytes: &[u8], salt: u64) -> Result<(BlockHeader, &[u8]), Malformed> {
    let header = BlockHeader::parse(bytes, bytes.len() as u64)?;
    let payload = header.check(salt, bytes)?;
    Ok((header, payload))
}
