//! The header of a part.

use crate::format::bytes::{self, Field};
use crate::format::{Fault, Malformed, Uuid};

/// The number of bytes of a part's header.
pub const PART_HEADER_BYTES: usize = 64;

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
pub(super) const CRC: Field = Field::new("CRC", 60, 4);

/// The fields of a part's header.
pub const FIELDS: &[Field] =
    &[bytes::MAGIC, bytes::FORMAT, PART, UUID, CHECKPOINT, GENERATION, CUT, RESERVED, CRC];

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
