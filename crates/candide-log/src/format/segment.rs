//! The header of a segment of the log.

#![forbid(unsafe_code)]

use super::block::BLOCK_ALIGN;
use super::bytes::{self, Field};
use super::{Fault, Malformed, Uuid};

/// The number of bytes of a segment's header. Blocks begin behind it.
pub const SEGMENT_HEADER_BYTES: usize = 4096;

/// The version of the format of segments that is written. This version and all earlier ones are
/// read: what they contain is valid in this version, too.
pub const VERSION: u32 = 2;

const MAGIC_BYTES: &[u8; 8] = b"candiLOG";
const RESERVED: Field = Field::new("reserved", 12, 4);
const UUID: Field = Field::new("database", 16, 16);
const NUMBER: Field = Field::new("segment number", 32, 8);
const GENERATION: Field = Field::new("generation", 40, 8);
const END_CUT: Field = Field::new("end before: cut", 48, 8);
const END_SEGMENT: Field = Field::new("end before: segment", 56, 8);
const END_OFFSET: Field = Field::new("end before: offset", 64, 8);
const SALT: Field = Field::new("salt", 72, 8);
const BYTES: Field = Field::new("length", 80, 8);
const ZEROS: Field = Field::new("zeros", 88, 4004);
const CRC: Field = Field::new("CRC", 4092, 4);

/// The fields of a segment's header.
pub const FIELDS: &[Field] = &[
    bytes::MAGIC,
    bytes::FORMAT,
    RESERVED,
    UUID,
    NUMBER,
    GENERATION,
    END_CUT,
    END_SEGMENT,
    END_OFFSET,
    SALT,
    BYTES,
    ZEROS,
    CRC,
];

/// The header of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentHeader {
    /// The database.
    pub uuid: Uuid,
    /// The number of the segment, which its name has, too.
    pub number: u64,
    /// The generation of all its blocks, from 1.
    pub generation: u64,
    /// The end of the previous generation. All zeros in the first generation, and only there.
    pub end_before: GenerationEnd,
    /// A random number that the checksums of the segment's blocks begin with.
    pub salt: u64,
    /// The length of the file in bytes, a multiple of [`BLOCK_ALIGN`] with room for a block.
    pub bytes: u64,
}

/// The end of a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GenerationEnd {
    /// The cut of its last valid block; 0 if it has none.
    pub cut: u64,
    /// The number of the segment that contains its last valid block, or of another segment before
    /// the next generation, if the generation has no valid block or the segment is not needed any
    /// more.
    pub segment: u64,
    /// The place in that segment directly behind the block, or behind the segment's header.
    pub offset: u64,
}

impl SegmentHeader {
    /// Returns the header as bytes. The fields must have the values that their documentation
    /// permits.
    pub fn encode(&self) -> [u8; SEGMENT_HEADER_BYTES] {
        debug_assert_eq!(self.check(), Ok(()));
        let mut header = [0; SEGMENT_HEADER_BYTES];
        UUID.put_bytes(&mut header, &self.uuid);
        NUMBER.put(&mut header, self.number);
        GENERATION.put(&mut header, self.generation);
        END_CUT.put(&mut header, self.end_before.cut);
        END_SEGMENT.put(&mut header, self.end_before.segment);
        END_OFFSET.put(&mut header, self.end_before.offset);
        SALT.put(&mut header, self.salt);
        BYTES.put(&mut header, self.bytes);
        bytes::seal(&mut header, MAGIC_BYTES, VERSION);
        header
    }

    /// Reads the header with which a segment begins.
    ///
    /// # Errors
    /// Returns an error if the header is damaged. A file of zeros has the fault [`Fault::Magic`].
    pub fn decode(segment: &[u8]) -> Result<SegmentHeader, Malformed> {
        let Some(header) = segment.first_chunk::<SEGMENT_HEADER_BYTES>() else {
            let error = format!("the header of a segment ends after {} bytes", segment.len());
            return Err(Malformed::new(segment.len() as u64, error).with(Fault::Short));
        };
        bytes::unseal(header, MAGIC_BYTES, VERSION, "the header of a segment")?;
        RESERVED.is_zero(header)?;
        ZEROS.is_zero(header)?;
        let mut uuid = Uuid::default();
        uuid.copy_from_slice(UUID.of(header));
        let end_before = GenerationEnd {
            cut: END_CUT.get(header),
            segment: END_SEGMENT.get(header),
            offset: END_OFFSET.get(header),
        };
        let decoded = SegmentHeader {
            uuid,
            number: NUMBER.get(header),
            generation: GENERATION.get(header),
            end_before,
            salt: SALT.get(header),
            bytes: BYTES.get(header),
        };
        decoded.check()?;
        Ok(decoded)
    }

    fn check(&self) -> Result<(), Malformed> {
        let &SegmentHeader { number, generation, end_before, bytes, .. } = self;
        if generation == 0 {
            return Err(GENERATION.wrong("the generation is 0"));
        }
        if generation == 1 && end_before != GenerationEnd::default() {
            return Err(END_CUT.wrong("the first generation names an earlier one"));
        }
        if generation > 1 && end_before.segment >= number {
            let segment = end_before.segment;
            return Err(END_SEGMENT.wrong(format!(
                "segment {number} says that the previous generation ended in segment {segment}, which is not earlier"
            )));
        }
        let offset = end_before.offset;
        if generation > 1 && (offset == 0 || !offset.is_multiple_of(BLOCK_ALIGN)) {
            return Err(END_OFFSET.wrong(format!("no block ends at byte {offset}")));
        }
        if bytes < SEGMENT_HEADER_BYTES as u64 + BLOCK_ALIGN || !bytes.is_multiple_of(BLOCK_ALIGN) {
            return Err(BYTES.wrong(format!("a segment cannot have {bytes} bytes")));
        }
        Ok(())
    }
}
